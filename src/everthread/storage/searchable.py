"""Which text of Everthread's own records `search(query=...)` finds."""

from collections.abc import Mapping
from typing import Any

from everthread.storage.lexical.texts import Paths

_NOT_SEARCHED = frozenset({"ledger", "summaries", "handles", "left", "sessions", "profile"})
"""Last labels of namespaces that are read by key or in order, never by words."""

_SAID = ("content", "tool_calls[*].name", "tool_calls[*].args")
_MESSAGE = ("date", *(form + name for form in ("message.data.", "message.") for name in _SAID))
"""Of LangChain's two forms of a message as JSON."""


def text_fields(namespace: tuple[str, ...], value: Mapping[str, Any]) -> Paths:
    """Return the paths of the text of a record; None for all strings, as in a user's own namespaces.

    Ids would be words that nobody asks for, and as many bytes of index as a short message.
    """
    last = namespace[-1]
    if last in _NOT_SEARCHED and namespace[0] in ("threads", "users", "sessions"):
        return False
    if namespace[0] != "threads" or last != "transcript":
        return None
    if isinstance(value.get("text"), str):
        return ["text", "date"]
    return _MESSAGE
