"""Which text of Everthread's own records `search(query=...)` finds."""

from collections.abc import Mapping
from typing import Any

from everthread.storage.lexical.texts import Paths

_NOT_SEARCHED = frozenset({"ledger", "summaries", "handles", "left", "sessions", "profile"})
"""Last labels of namespaces that are read by key or in order, never by words."""

_SAID = ("content", "tool_calls[*].name", "tool_calls[*].args")
_MESSAGE = {
    (form, has_calls): ("date", *(form + name for name in (_SAID if has_calls else _SAID[:1])))
    for form in ("message.data.", "message.")
    for has_calls in (False, True)
}
"""Of LangChain's two forms of a message as JSON; a path that leads nowhere takes as long as one that gives a text."""


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
    message = value.get("message")
    told = message.get("data", message) if type(message) is dict else None
    has_calls = type(told) is dict and bool(told.get("tool_calls"))
    return _MESSAGE["message." if told is message else "message.data.", has_calls]
