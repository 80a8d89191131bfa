"""`ledger`: the decisions of a thread, as they were recorded."""

from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, Page
from everthread.cli.output import check_writable, note, print_json, say, shortened, write_page
from everthread.cli.reading import explained, when
from everthread.errors import SettingsError
from everthread.ledger import events
from everthread.ledger import schema as event_schema
from everthread.storage.reader import open_reader
from everthread.storage.reading import exists, record_of, unknown, unrecorded

_CALLS = 50
"""Calls that a page shows."""

_COLOURS = {
    "system": "#0072b2",
    "profile": "#009e73",
    "notes": "#d9b834",
    "tools": "#56b4e9",
    "summary": "#b8589a",
    "session_notes": "#8a6d00",
    "recalled": "#d98cc0",
    "history": "#d55e00",
    "free": "#8882",
    "safety": "#8884",
    "reply_reserve": "#8886",
}
"""Of the parts of a bar, in order; they hold on light and on dark."""

_HIDDEN = frozenset({"event", "at", "turn", "thread_id", "recipe"})


def ledger(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help="Id of the thread.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="EVENT", help="Only events of this kind; can be repeated.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N events.  [default: all]")
    ] = None,
    html: Page = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of an event and leave.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List the events of a thread: what was evicted, masked, injected, saved, blocked, and with which numbers.

    --json prints one event a line. --html writes a new page with every prompt as it was sent, of the newest 50 calls
    or of as many as --limit says.
    """
    if schema:
        print_json(event_schema())
        return
    if not thread:
        raise SettingsError("which thread? `everthread ledger THREAD`; `everthread threads` lists them")
    if html is not None:
        if kind or as_json:
            raise SettingsError("`--html` writes every prompt with what became of it; leave out `--kind` and `--json`")
        check_writable(html, new=True)
        write_page(html, _page(database, thread, limit or _CALLS))
        return
    kinds = event_schema()["discriminator"]["mapping"]
    if unknown_kinds := [one for one in kind or () if one not in kinds]:
        raise SettingsError(f"unknown kind of event {unknown_kinds[0]!r}; choose from {', '.join(kinds)}")
    with open_reader(database) as reader, explained(reader, thread):
        if not exists(reader, thread):
            raise unknown(thread)
        recorded = events(reader, thread)
        is_foreign = not recorded and record_of(reader, thread) is None and not reader.is_ours(thread)
    chosen = [event for event in recorded if not kind or event.event in kind]
    for event in chosen if limit is None else chosen[-limit:]:
        value = event.model_dump(mode="json")
        if as_json:
            print_json(value)
        else:
            say(f"turn {value['turn']}  {when(value['at'])}  {value['event']}  {_figures(value)}")
    if not chosen and not as_json:
        note(str(unrecorded(thread)) if is_foreign else f"thread {thread!r} has no such events")


def _page(database: str, thread: str, limit: int) -> str:
    """Return the page of a thread as it was."""
    # Taken when called: it brings LangChain, which the rest of `ledger` does without.
    from everthread.calls import prompt_changes, sent_prompts
    from everthread.pages import render
    from everthread.storage.to_read import storage_to_read

    with storage_to_read(database) as storage:
        recorded, prompts = events(storage.store, thread), sent_prompts(storage, thread, newest=limit)
    by_number = {sent.number: sent for sent in prompts}
    calls = [
        (sent, prompt_changes(by_number[sent.parent], sent, recorded) if sent.parent in by_number else [])
        for sent in prompts
    ]
    return render(
        "thread.html", thread_id=thread, calls=calls, total=prompts[-1].number if prompts else 0, colours=_COLOURS
    )


def _figures(event: dict[str, Any]) -> str:
    """Return an event on one line: numbers and words as they are, lists by their length."""
    texts = {name: _shown(value) for name, value in event.items() if name not in _HIDDEN}
    return " ".join(f"{name}={text}" for name, text in texts.items() if text)


def _shown(value: Any) -> str:
    if isinstance(value, dict) and all(type(part) in (int, float) for part in value.values()):
        return "+".join(f"{name}:{size:,.10g}" for name, size in value.items() if size)
    if isinstance(value, list | dict):
        return f"{len(value)}" if value else ""
    return f"{value:,}" if type(value) is int else shortened("" if value is None else str(value), 60)
