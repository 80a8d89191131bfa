"""The guard: decide whether a text may become, stay or be shown as a memory.

It reads a text as it stands and with what hides words undone (`views`), looks for what names or unlocks a
person (`values`) and for wording that steers the assistant (`wording`), and answers with a typed verdict.
It is a filter, not a security boundary; see docs/guard.md.
"""

from everthread.memory.guard.scan import check, is_safe, redacted, warm_up
from everthread.memory.guard.verdict import ALLOW, Category, Finding, Verdict, phrase

__all__ = ["ALLOW", "Category", "Finding", "Verdict", "check", "is_safe", "phrase", "redacted", "warm_up"]
