"""Prompts are Markdown files; `render` fills their fields and refuses a missing or an unused one."""

import re
from functools import cache
from importlib.resources import files

from everthread.errors import SettingsError

_FIELD = re.compile(r"\{\{(\w+)\}\}")


def render(name: str, **fields: str) -> str:
    """Fill the prompt `name`.

    Args:
        name: file name without `.md`.
        fields: a text for every `{{field}}` of the file, no more and no less.

    Raises:
        SettingsError: a field is missing or unused, or there is no such prompt.
    """
    text = _read(name)
    wanted = set(_FIELD.findall(text))
    if missing := sorted(wanted - set(fields)):
        raise SettingsError(f"prompt {name!r} needs the field {missing[0]!r}")
    if unused := sorted(set(fields) - wanted):
        raise SettingsError(f"prompt {name!r} has no field {unused[0]!r}")
    return _FIELD.sub(lambda found: fields[found.group(1)], text).strip()


@cache
def _read(name: str) -> str:
    try:
        return files("everthread.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError(f"there is no prompt {name!r}") from None
