"""Which text of a value is indexed: all of its strings, or those that JSON paths name; the default for our records."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from langgraph.store.base import get_text_at_path, tokenize_path

Paths = Sequence[str] | Literal[False] | None
"""What LangGraph's `put(index=...)` takes: paths, False for nothing, None for the default."""

_LONGEST_UNBROKEN = 512
"""Characters; an ASCII string that goes on for longer without a space is data, such as base64."""


def texts(value: Any, paths: Sequence[str] | None) -> list[str]:
    """Return the texts of a value, in order.

    Args:
        value: JSON.
        paths: as LangGraph's: `a.b`, `a[0]`, `a[*]`, `*`, `{a,b}`, `$`. A path to a list of content
            blocks gives the text of each block. None gives all strings.
    """
    if paths is None:
        return list(_strings(value))
    return [text for path in paths for text in _at(value, _tokens(path))]


@lru_cache(maxsize=1024)
def _tokens(path: str) -> tuple[str, ...]:
    return tuple(tokenize_path(path)) if path != "$" else ()


def _at(value: Any, tokens: tuple[str, ...]) -> Iterator[str]:
    # Most tokens are names, and most paths lead nowhere: both end here.
    place = 0
    while place < len(tokens) and type(value) is dict and tokens[place].isidentifier():
        if tokens[place] not in value:
            return
        value = value[tokens[place]]
        place += 1
    if place == len(tokens):
        yield from [str(value)] if isinstance(value, int | float) else _strings(value)
        return
    token, rest = tokens[place], tokens[place + 1 :]
    if token.startswith("{"):
        yield from get_text_at_path(value, list(tokens[place:]))
    elif token in ("*", "[*]"):
        for child in _children(value) if token == "*" or isinstance(value, list) else []:
            yield from _at(child, rest)
    elif token.startswith("[") and isinstance(value, list):
        index = token[1:-1]
        if index.lstrip("-").isdigit() and -len(value) <= int(index) < len(value):
            yield from _at(value[int(index)], rest)
    elif isinstance(value, Mapping) and token in value:
        yield from _at(value[token], rest)


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings of a value without recursion, since JSON may nest deeply."""
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, str):
            if not _is_data(current):
                yield current
        elif isinstance(current, Mapping) and isinstance(current.get("text"), str) and "type" in current:
            stack.append(current["text"])  # a content block: its id and type are not text
        else:
            stack.extend(reversed(_children(current)))


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _is_data(text: str) -> bool:
    head = text[: _LONGEST_UNBROKEN + 1]
    return len(head) > _LONGEST_UNBROKEN and head.isascii() and len(head.split(maxsplit=1)) == 1


_NOT_SEARCHED = frozenset(
    {"ledger", "prompts", "summaries", "calls", "handles", "left", "removed", "sessions", "profile", "steering"}
)
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
    if namespace[0] == "users" and last == "said":
        return ["text", "date"]
    if namespace[0] != "threads" or last != "transcript":
        return None
    if isinstance(value.get("text"), str):
        return ["text", "date"]
    message = value.get("message")
    fields = message.get("data", message) if type(message) is dict else None
    has_calls = type(fields) is dict and bool(fields.get("tool_calls"))
    return _MESSAGE["message." if fields is message else "message.data.", has_calls]
