"""`profile import` and `profile show`: what trusted systems know about a user."""

import json
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
import yaml

from everthread.cli.options import DEFAULT_DATABASE, WAIT_SECONDS, AsJson, DatabaseUrl, UserId, load_agent
from everthread.cli.output import print_json, say
from everthread.errors import NotFoundError, RecordError, SettingsError
from everthread.state import Agent, namespaces
from everthread.storage.reader import open_reader

profile = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="Import or show a user's profile."
)


@profile.command("import")
def import_profile(
    user: UserId,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON or YAML with the fields of the agent's schema.")],
    agent: Annotated[
        str,
        typer.Option(
            "--agent", metavar="NAME", help="Whose schema it must fit: `travel`, `support` or `module:attribute`."
        ),
    ] = "travel",
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Check a profile and store it; it replaces the one before."""
    # Taken when called: a profile is shown without LangChain.
    from everthread.profiles import set_profile
    from everthread.storage.open import open_storage

    value = read_profile(file, load_agent(agent))
    with open_storage(database, lock_timeout_seconds=WAIT_SECONDS) as storage:
        set_profile(storage, user, value)
    if as_json:
        print_json({"user_id": user, "profile": value})
    else:
        say(f"The profile of user {user!r} is stored: {', '.join(value) or 'no fields'}.")


@profile.command("show")
def show_profile(user: UserId, database: DatabaseUrl = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Show a user's profile."""
    with open_reader(database) as reader:
        item = reader.get(namespaces.profile(user), "profile")
    if item is None:
        raise NotFoundError(f"user {user!r} has no profile; `everthread profile import {quote(user)} FILE` stores one")
    if as_json:
        print_json({"user_id": user, "profile": item.value})
    else:
        say(yaml.safe_dump(item.value, sort_keys=False, allow_unicode=True).rstrip())


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
    if raw is None:
        raise RecordError(f"{str(file)!r} is empty; it must hold the named fields of a profile")
    if not isinstance(raw, dict):
        raise RecordError(f"{str(file)!r} holds a {type(raw).__name__} where a profile with named fields is expected")
    from everthread.profiles import valid_profile

    try:
        return valid_profile(raw, agent)
    except SettingsError as error:
        raise RecordError(f"{str(file)!r} cannot be the profile: {error}") from error


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
