"""`why`: where something is now, how it came there, and what depends on it."""

from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import counted, note, print_json, say, shortened
from everthread.cli.reading import long_term_notes, read_thread, records
from everthread.errors import NotFoundError, SettingsError
from everthread.ledger import events
from everthread.ledger.events import Erased
from everthread.ledger.lineage import Known, Thing
from everthread.ledger.regrets import counts
from everthread.ledger.why import Account, explain
from everthread.state import Summary, namespaces
from everthread.storage.open import Storage, open_storage

__all__ = ["known_of", "why"]

_MOST_LIKE = 3
"""Messages that share words with a text which nothing has as it is."""

_NAMES = {"message": "message", "note": "note", "entry": "summary entry", "index": "exact string"}


def why(
    asked: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT|ID]", help="Words as they were said, an id of a message or note, or a handle."),
    ] = None,
    thread: Annotated[str, typer.Option("--thread", metavar="THREAD", help="Id of the thread.")] = "",
    regrets: Annotated[
        bool, typer.Option("--regrets", help="Count what was needed again after it had left the prompt.")
    ] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Say where something is now, how it came there, and what depends on it.

    The answer rests on recorded ids: messages, notes, entries of the summary, and the events of the ledger.
    """
    if not thread:
        raise SettingsError("which thread? `everthread why TEXT --thread THREAD`; `everthread threads` lists them")
    if regrets == (asked is not None):
        raise SettingsError("say what to explain, `everthread why TEXT --thread THREAD`, or `--regrets`, one of both")
    with open_storage(database, create=False) as storage:
        known = known_of(storage, thread)
        if asked is None:
            _print_regrets(thread, counts(known.events), as_json=as_json)
            return
        accounts = explain(known, asked)
        like = [] if accounts else _like(storage, known, asked)
        accounts = accounts or (explain(known, asked, like) if like else [])
    if as_json:
        values = [account.as_json() for account in accounts]
        print_json({"thread_id": thread, "asked": asked, "exact": not like, "accounts": values})
    elif not accounts:
        raise NotFoundError(_nothing(known, asked))
    else:
        if like:
            note(f"nothing says {asked!r} as it is; these messages share words with it")
        for account in accounts:
            _print(account)


def known_of(storage: Storage, thread_id: str) -> Known:
    """Read all that is known of a thread.

    Raises:
        NotFoundError: there is no such thread.
    """
    view = read_thread(storage, thread_id)
    user = (view.record or {}).get("user_id")
    others = [str(record["thread_id"]) for record in records(storage.store, user)] if user else []
    return Known(
        thread_id=thread_id,
        turns=view.turns,
        messages={str(message.id): message for message in view.messages},
        working_set=view.working_set,
        summary=Summary.model_validate(view.summary) if view.summary else None,
        session_notes={one.id: one for one in view.notes},
        notes={one.id: one for one in long_term_notes(storage.store, user)} if user else {},
        events=events(storage.store, thread_id),
        elsewhere=[
            event
            for other in reversed(others)
            if other != thread_id
            for event in events(storage.store, other)
            if event.event.startswith("note_") or event.event in ("consolidated", "erased")
        ],
    )


def _like(storage: Storage, known: Known, asked: str) -> list[Thing]:
    """Return the archived messages that share most words with a text."""
    items = storage.store.search(namespaces.transcript(known.thread_id), query=asked, limit=_MOST_LIKE)
    return [Thing("message", item.key) for item in items if item.score and item.key in known.messages]


def _nothing(known: Known, asked: str) -> str:
    erased = sum(len(event.note_ids) for event in known.events if isinstance(event, Erased))
    nothing = f"nothing in thread {known.thread_id!r} or in its user's notes has {asked!r}"
    if erased:
        return f"{nothing}; {counted(erased, 'note')} of its prompts were erased, and erased text cannot be found"
    return f"{nothing}; `everthread show {known.thread_id}` shows every message"


def _print(account: Account) -> None:
    title = f"  {shortened(account.title, 120)}" if account.title else ""
    name = "" if account.kind == "index" else f" {account.id}"
    say(f"{_NAMES[account.kind]}{name}{title}", "bold")
    for fact in account.facts:
        say(f"  {fact.text}")
    for label, things in (("comes from", account.comes_from), ("leads to", account.leads_to)):
        if things:
            say(f"  {label}: " + ", ".join(f"{_NAMES[thing.kind]} {thing.id}" for thing in things), "dim")


def _print_regrets(thread: str, regrets: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json({"thread_id": thread, **regrets})
        return
    left, again = counted(regrets["left"], "message"), counted(regrets["regrets"], "regret")
    say(f"thread {thread} · {left} left the prompt · {again}", "bold")
    for reason, number in regrets["by_reason"].items():
        say(f"  {reason.replace('_', ' ')}: {number:,}")
    say(f"  recalled for the user's questions: {counted(regrets['recalled'], 'passage')}")
