"""`why`: where something is now, how it came there, and what depends on it."""

from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, command_line, thread_option
from everthread.cli.output import counted, note, print_json, say, shortened
from everthread.cli.reading import explained
from everthread.errors import NotFoundError, SettingsError
from everthread.ledger import events
from everthread.ledger.events import Erased
from everthread.ledger.lineage import ThreadHistory
from everthread.ledger.refetches import refetch_counts
from everthread.ledger.why import Explanation, explain_closest
from everthread.storage.history import thread_history
from everthread.storage.reader import open_reader
from everthread.storage.reading import read_thread

_NAMES = {"message": "message", "note": "note", "entry": "summary entry", "index": "exact string"}


def why(
    asked: Annotated[
        str | None,
        typer.Argument(metavar="TEXT|ID", help="Words as they were said, an id of a message or note, or a handle."),
    ] = None,
    thread: Annotated[str | None, thread_option("Id of the thread.", metavar="THREAD")] = None,
    refetches: Annotated[
        bool, typer.Option("--refetches", "--regrets", help="Count what was needed again after it had left the prompt.")
    ] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Say where something is now, how it came there, and what depends on it.

    The answer rests on recorded ids: messages, notes, entries of the summary, and the events of the ledger.
    """
    if thread is None:
        raise SettingsError("which thread? `everthread why TEXT --thread THREAD`; `everthread threads` lists them")
    if refetches == (asked is not None):
        raise SettingsError("say what to explain: either `everthread why TEXT --thread THREAD`, or `--refetches`")
    with open_reader(database) as reader, explained(reader, thread):
        view = read_thread(reader, thread, whole=False)
        if asked is None:
            _print_refetches(thread, refetch_counts(events(reader, thread)), as_json=as_json)
            return
        history = thread_history(reader, view)
        explanations, is_exact = explain_closest(history, asked)
    if as_json:
        values = [explanation.as_json() for explanation in explanations]
        print_json({"thread_id": thread, "asked": asked, "exact": is_exact, "accounts": values})
    elif not explanations:
        raise NotFoundError(_nothing(history, asked, database))
    else:
        if not is_exact:
            note(f"nothing says {shortened(asked)!r} as it is; these messages share words with it")
        for explanation in explanations:
            _print(explanation)


def _nothing(history: ThreadHistory, asked: str, database: str) -> str:
    erased = sum(len(event.note_ids) for event in history.note_events if isinstance(event, Erased))
    nothing = f"nothing in thread {history.thread_id!r} or in its user's notes has {shortened(asked)!r}"
    if erased:
        return f"{nothing}; {counted(erased, 'note')} of its prompts were erased, and erased text cannot be found"
    return f"{nothing}; `{command_line('show', history.thread_id, database=database)}` shows every message"


def _print(explanation: Explanation) -> None:
    title = f"  {shortened(explanation.title, 120)}" if explanation.title else ""
    name = "" if explanation.kind == "index" else f" {explanation.id}"
    say(f"{_NAMES[explanation.kind]}{name}{title}", "bold")
    for fact in explanation.facts:
        say(f"  {fact.text}")
    for label, items in (("comes from", explanation.comes_from), ("leads to", explanation.leads_to)):
        if items:
            say(f"  {label}: " + ", ".join(f"{_NAMES[item.kind]} {item.id}" for item in items), "dim")


def _print_refetches(thread: str, counts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json({"thread_id": thread, **counts})
        return
    left, again = counted(counts["left"], "message"), f"{counts['refetches']:,} refetched"
    say(f"thread {thread} · {left} left the prompt · {again}", "bold")
    for reason, number in counts["by_reason"].items():
        say(f"  {reason.replace('_', ' ')}: {number:,}")
    say(f"  recalled for the user's questions: {counted(counts['recalled'], 'passage')}")
