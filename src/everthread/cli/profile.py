"""`profile import` and `profile show`: what trusted systems know about a user."""

from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import print_json, say
from everthread.errors import NotFoundError

__all__ = ["profile"]

profile = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Import or show a user's profile.")

User = Annotated[str, typer.Argument(metavar="USER", help="Whose profile.")]


@profile.command("import")
def import_profile(
    user: User,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON or YAML with the fields of the agent's schema.")],
    agent: Annotated[str, typer.Option("--agent", help="Agent whose schema the profile must fit.")] = "travel",
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Check a profile and store it; it takes the place of the one before."""
    from everthread.agents import agent_named
    from everthread.cli.profile_file import read_profile
    from everthread.nodes.consolidate import imported
    from everthread.state import Context
    from everthread.state.namespaces import user_key
    from everthread.storage.open import open_storage

    Context(user_id=user)  # refuses an unusable id
    value = read_profile(file, agent_named(agent))
    with open_storage(database) as storage, storage.locks.hold(user_key(user)):
        storage.store.batch(imported(storage.store, user, value))
    if as_json:
        print_json({"user_id": user, "profile": value})
    else:
        say(f"The profile of user {user!r} is stored: {', '.join(value) or 'no fields'}.")


@profile.command("show")
def show_profile(user: User, database: DatabaseUrl = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Show a user's profile."""
    import yaml

    from everthread.state import namespaces
    from everthread.storage.open import open_storage

    with open_storage(database, create=False) as storage:
        item = storage.store.get(namespaces.profile(user), "profile")
    if item is None:
        raise NotFoundError(f"user {user!r} has no profile; `everthread profile import {user} FILE` stores one")
    if as_json:
        print_json({"user_id": user, "profile": item.value})
    else:
        say(yaml.safe_dump(item.value, sort_keys=False, allow_unicode=True).rstrip())
