"""The tools of the core: save a note, search what left the prompt, read a long result."""

from everthread.tools.read_tool_output import read_tool_output
from everthread.tools.recall_history import recall_history
from everthread.tools.save_memory_note import save_memory_note

__all__ = ["OWN_TOOLS", "READERS", "read_tool_output", "recall_history", "save_memory_note"]

READERS = (read_tool_output, recall_history)
"""Read what the prompt no longer shows."""

OWN_TOOLS = tuple(tool.name for tool in (save_memory_note, *READERS))
"""Names of all tools of the core."""
