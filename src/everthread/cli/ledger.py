"""`ledger`: the decisions of a thread, as they were recorded."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import note, print_json, say, shortened
from everthread.errors import SettingsError

__all__ = ["ledger"]

_HIDDEN = frozenset({"event", "at", "turn", "thread_id"})


def ledger(
    thread: Annotated[str | None, typer.Argument(metavar="[THREAD]", help="Id of the thread.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="EVENT", help="Only events of this kind; can be repeated.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N events.  [default: all]")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of an event and leave.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List the events of a thread: what was evicted, masked, injected, saved, blocked, and with which numbers.

    --json prints one event a line.
    """
    from everthread.cli.reading import exists, unknown
    from everthread.ledger import events
    from everthread.ledger import schema as schema_of
    from everthread.storage.open import open_storage

    if schema:
        print_json(schema_of())
        return
    if not thread:
        raise SettingsError("which thread? `everthread ledger THREAD`; `everthread threads` lists them")
    _check(kind or [])
    with open_storage(database, create=False) as storage:
        if not exists(storage, thread):
            raise unknown(thread)
        found = [event for event in events(storage.store, thread) if not kind or event.event in kind]
    told = [event.model_dump(mode="json") for event in (found if limit is None else found[-limit:])]
    for value in told:
        if as_json:
            print_json(value)
        else:
            say(f"turn {value['turn']}  {value['at'][:19]}  {value['event']}  {_figures(value)}")
    if not told and not as_json:
        note(f"thread {thread!r} has no such events")


def _check(kinds: list[str]) -> None:
    from everthread.ledger import schema

    known = schema()["discriminator"]["mapping"]
    for kind in kinds:
        if kind not in known:
            raise SettingsError(f"unknown kind of event {kind!r}; choose from {', '.join(known)}")


def _figures(value: dict[str, Any]) -> str:
    """Return what an event says on one line: numbers and words as they are, lists by their length."""
    told = {name: _shown(known) for name, known in value.items() if name not in _HIDDEN}
    return " ".join(f"{name}={shown}" for name, shown in told.items() if shown)


def _shown(known: Any) -> str:
    if isinstance(known, dict) and all(type(part) is int for part in known.values()):
        return "+".join(f"{name}:{size:,}" for name, size in known.items() if size)
    if isinstance(known, list | dict):
        return f"{len(known)}" if known else ""
    return f"{known:,}" if type(known) is int else shortened("" if known is None else str(known), 60)
