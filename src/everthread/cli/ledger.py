"""`ledger`: the decisions of a thread, as they were recorded."""

from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import note, print_json, say, shortened
from everthread.errors import SettingsError
from everthread.ledger import events
from everthread.ledger import schema as event_schema
from everthread.storage.reading import exists, unknown
from everthread.storage.sqlite.reader import open_reader

__all__ = ["ledger"]

_HIDDEN = frozenset({"event", "at", "turn", "thread_id", "recipe"})


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
    if schema:
        print_json(event_schema())
        return
    if not thread:
        raise SettingsError("which thread? `everthread ledger THREAD`; `everthread threads` lists them")
    kinds = event_schema()["discriminator"]["mapping"]
    if unknown_kinds := [one for one in kind or () if one not in kinds]:
        raise SettingsError(f"unknown kind of event {unknown_kinds[0]!r}; choose from {', '.join(kinds)}")
    with open_reader(database) as reader:
        if not exists(reader, thread):
            raise unknown(thread)
        chosen = [event for event in events(reader, thread) if not kind or event.event in kind]
    for event in chosen if limit is None else chosen[-limit:]:
        value = event.model_dump(mode="json")
        if as_json:
            print_json(value)
        else:
            say(f"turn {value['turn']}  {value['at'][:19]}  {value['event']}  {_figures(value)}")
    if not chosen and not as_json:
        note(f"thread {thread!r} has no such events")


def _figures(event: dict[str, Any]) -> str:
    """Return an event on one line: numbers and words as they are, lists by their length."""
    texts = {name: _shown(value) for name, value in event.items() if name not in _HIDDEN}
    return " ".join(f"{name}={text}" for name, text in texts.items() if text)


def _shown(value: Any) -> str:
    if isinstance(value, dict) and all(type(part) is int for part in value.values()):
        return "+".join(f"{name}:{size:,}" for name, size in value.items() if size)
    if isinstance(value, list | dict):
        return f"{len(value)}" if value else ""
    return f"{value:,}" if type(value) is int else shortened("" if value is None else str(value), 60)
