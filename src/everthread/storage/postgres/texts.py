"""Values of the store as Postgres takes them: `jsonb` holds no NUL, which a message may."""

from typing import Any

import orjson

from everthread.storage.store import as_json

_MARK = "\ufdd0"
"""No character of any text: Unicode keeps it for inside a program."""

_NUL, _ITSELF = _MARK + "0", _MARK + "1"


def written_json(value: Any) -> str:
    """Return a value as JSON that `jsonb` takes; `read_json` gives it back."""
    text = as_json(value).decode()
    # Rarely, so that the value is walked through only then.
    return as_json(_mapped(value, text_in)).decode() if "\\u0000" in text or _MARK in text else text


def read_json(text: str) -> Any:
    """Read what `written_json` wrote."""
    value = orjson.loads(text)
    return _mapped(value, text_out) if _MARK in text else value


def text_in(text: str) -> str:
    """Return a text as it is stored."""
    return text.replace(_MARK, _ITSELF).replace("\x00", _NUL) if "\x00" in text or _MARK in text else text


def text_out(text: str) -> str:
    """Return a text as it was."""
    return text.replace(_NUL, "\x00").replace(_ITSELF, _MARK) if _MARK in text else text


def _mapped(value: Any, change: Any) -> Any:
    """Change every text in a value, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key) if isinstance(key, str) else key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, list | tuple) else value
