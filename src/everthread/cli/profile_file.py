"""Read a profile from a file and check it field by field."""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from everthread.errors import RecordError
from everthread.state import Agent

__all__ = ["read_profile"]


class _Loader(yaml.SafeLoader):
    """Leaves dates as they are written: the schema decides what is a date."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and the kind of value are PyYAML's
        sign: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_profile(file: Path, agent: Agent) -> dict[str, Any]:
    """Read a profile, JSON or YAML, and check it against the agent's schema.

    Returns:
        The profile as JSON, without fields that are not set.

    Raises:
        RecordError: the file cannot be read, is neither JSON nor YAML, or does not fit; every field is named.
    """
    raw = _parsed(file)
    if not isinstance(raw, dict):
        raise RecordError(f"{str(file)!r} holds a {type(raw).__name__} where a profile with named fields is expected")
    if agent.profile is None:
        return raw
    try:
        made = agent.profile.model_validate(raw)
    except ValidationError as error:
        problems = "; ".join(map(_problem, error.errors(include_url=False)))
        raise RecordError(f"{str(file)!r} does not fit the profile of the {agent.name} agent: {problems}") from error
    return made.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def _parsed(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RecordError(f"cannot read {str(file)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{str(file)!r} is not UTF-8 text (byte {error.start})") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if file.suffix.lower() == ".json":
            raise RecordError(f"{file}:{error.lineno} is not JSON: {error.msg}") from error
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise RecordError(f"{where} is neither JSON nor YAML: {problem}") from error


def _problem(detail: ErrorDetails) -> str:
    where = ".".join(map(str, detail["loc"])) or "profile"
    message = detail["msg"].removeprefix("Value error, ")
    # A field that does not belong here may hold what must not be shown, such as a passport's number.
    is_shown = detail["type"] not in ("missing", "extra_forbidden") and isinstance(detail["input"], str | int | float)
    given = f" (got {str(detail['input'])[:60]!r})" if is_shown else ""
    return f"`{where}`: {message}{given}"
