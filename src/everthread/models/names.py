"""What a misspelt name of a model was meant to be (names.yaml)."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

_NAMES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text(encoding="utf-8"))


def did_you_mean(text: str) -> str:
    """Return what an error about a name such as `opanai:gpt-5` may add to itself; empty without a guess."""
    guess = suggestion(text)
    return f" (did you mean {guess!r}?)" if guess and guess != text else ""


def suggestion(text: str) -> str | None:
    """Return the name in the form `provider:name` that was probably meant; None when nothing comes close."""
    provider, colon, name = text.strip().partition(":")
    if not colon:
        if get_close_matches(text.lower(), ["offline"]):
            return "offline"
        owner = _owner(text.lower())
        return f"{owner}:{text}" if owner else None
    lower = provider.lower()
    known = _NAMES["other_names"].get(lower) or _closest(lower, _NAMES["providers"])
    if known is None or not name:
        return None
    return f"{known}:{_closest(name.lower(), _NAMES['models'].get(known, ())) or name}"


def _owner(name: str) -> str | None:
    for provider, beginnings in _NAMES["families"].items():
        if name.startswith(tuple(beginnings)):
            return str(provider)
    return None


def _closest(name: str, names: Any) -> str | None:
    return next(iter(get_close_matches(name, names, n=1, cutoff=0.75)), None)
