"""The tools of the core: save a note, search what left the prompt, read a long result."""

from everthread.tools.read_tool_output import read_tool_output
from everthread.tools.recall_history import recall_history
from everthread.tools.save_memory_note import save_memory_note

__all__ = ["read_tool_output", "recall_history", "save_memory_note"]
