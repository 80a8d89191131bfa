"""The user's standing rules, by their former names; `everthread.memory.text.constraints` has them."""

from everthread.memory.text.constraints import constraints_in as standing_in
from everthread.memory.text.constraints import is_prohibition

__all__ = ["is_prohibition", "standing_in"]
