"""`why`: where something is now, how it came there, and what depends on it."""

from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import counted, note, print_json, say, shortened
from everthread.cli.reading import Source, long_term_notes, read_thread, reader_of, records
from everthread.errors import NotFoundError, SettingsError
from everthread.ledger import events
from everthread.ledger.events import Erased
from everthread.ledger.lineage import LineageItem, ThreadHistory, words_of
from everthread.ledger.refetches import refetch_counts
from everthread.ledger.why import Explanation, explain
from everthread.memory.text.words import index_words, query_words
from everthread.state import Summary
from everthread.storage.sqlite.reader import open_reader

__all__ = ["thread_history", "why"]

_MOST_LIKE = 3
"""Messages that share words with a text which nothing has as it is."""

_NAMES = {"message": "message", "note": "note", "entry": "summary entry", "index": "exact string"}


def why(
    asked: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT|ID]", help="Words as they were said, an id of a message or note, or a handle."),
    ] = None,
    thread: Annotated[str, typer.Option("--thread", metavar="THREAD", help="Id of the thread.")] = "",
    refetches: Annotated[
        bool, typer.Option("--refetches", "--regrets", help="Count what was needed again after it had left the prompt.")
    ] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Say where something is now, how it came there, and what depends on it.

    The answer rests on recorded ids: messages, notes, entries of the summary, and the events of the ledger.
    """
    if not thread:
        raise SettingsError("which thread? `everthread why TEXT --thread THREAD`; `everthread threads` lists them")
    if refetches == (asked is not None):
        raise SettingsError("say what to explain, `everthread why TEXT --thread THREAD`, or `--refetches`, one of both")
    with open_reader(database) as reader:
        history = thread_history(reader, thread)
        if asked is None:
            _print_refetches(thread, refetch_counts(history.events), as_json=as_json)
            return
        explanations = explain(history, asked)
        like = [] if explanations else _like(history, asked)
        explanations = explanations or (explain(history, asked, like) if like else [])
    if as_json:
        values = [explanation.as_json() for explanation in explanations]
        print_json({"thread_id": thread, "asked": asked, "exact": not like, "accounts": values})
    elif not explanations:
        raise NotFoundError(_nothing(history, asked))
    else:
        if like:
            note(f"nothing says {asked!r} as it is; these messages share words with it")
        for explanation in explanations:
            _print(explanation)


def thread_history(source: Source, thread_id: str) -> ThreadHistory:
    """Read all that the database has about a thread.

    Raises:
        NotFoundError: there is no such thread.
    """
    reader = reader_of(source)
    view = read_thread(reader, thread_id)
    user = (view.record or {}).get("user_id")
    others = [str(record["thread_id"]) for record in records(reader, user)] if user else []
    return ThreadHistory(
        thread_id=thread_id,
        turns=view.turns,
        messages={str(message.id): message for message in view.messages},
        working_set=view.working_set,
        summary=Summary.model_validate(view.summary) if view.summary else None,
        session_notes={one.id: one for one in view.notes},
        notes={one.id: one for one in long_term_notes(reader, user)} if user else {},
        events=events(reader, thread_id),
        elsewhere=[
            event
            for other in reversed(others)
            if other != thread_id
            for event in events(reader, other)
            if event.event.startswith("note_") or event.event in ("consolidated", "erased")
        ],
    )


def _like(history: ThreadHistory, asked: str) -> list[LineageItem]:
    """Return the messages that share most words with a text, the best first."""
    wanted = set(query_words(asked))
    shared = {key: len(wanted.intersection(index_words([words_of(one)]))) for key, one in history.messages.items()}
    best = sorted(filter(shared.__getitem__, shared), key=lambda key: -shared[key])
    return [LineageItem("message", key) for key in best[:_MOST_LIKE]]


def _nothing(history: ThreadHistory, asked: str) -> str:
    erased = sum(len(event.note_ids) for event in history.events if isinstance(event, Erased))
    nothing = f"nothing in thread {history.thread_id!r} or in its user's notes has {asked!r}"
    if erased:
        return f"{nothing}; {counted(erased, 'note')} of its prompts were erased, and erased text cannot be found"
    return f"{nothing}; `everthread show {history.thread_id}` shows every message"


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
