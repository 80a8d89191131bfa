"""What must hold after a kill, whenever it came: every message once and in order, live handles, notes with sources."""

import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from everthread.agents.support.tickets import Tickets
from everthread.state import Note, namespaces
from everthread.state.marks import marks, sequence
from everthread.storage.open import Storage
from everthread.storage.reading import ThreadView, long_term_notes, read_thread, session_notes
from everthread.storage.transcript import full_text, message_text
from killing.workload import CONFIG, USER, Line, document, habit, lines, question

THREAD = CONFIG["configurable"]["thread_id"]


def faults(
    storage: Storage,
    acknowledged: int,
    abandoned: Sequence[int],
    handles: set[str],
    thread_id: str = THREAD,
    user_id: str = USER,
    *,
    checks_file: bool = True,
) -> list[str]:
    """Return what is wrong with a thread; empty when all invariants hold.

    Args:
        storage: the database after the kill.
        acknowledged: turns that were acknowledged, from 0, the abandoned ones included.
        abandoned: turns that the client gave up on.
        handles: every handle that a model was ever shown.
        thread_id: the thread.
        user_id: who talks in it, and in no other one.
        checks_file: look for damage of the file, too, which keeps others from writing meanwhile.
    """
    found = damage(storage) if checks_file else []
    if storage.checkpointer.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}) is None:
        return [*found, *(["the thread is gone"] if acknowledged else [])]
    view = read_thread(storage, thread_id)
    found += _messages(view, acknowledged, abandoned)
    found += _handles(storage, view, handles)
    done = [turn for turn in range(acknowledged) if turn not in abandoned]
    found += _notes(storage, view, user_id, done, abandoned)
    found += _tickets(Tickets(storage.store, user_id, thread_id), done)
    return found


def saved_items(graph: Any, config: Any = CONFIG) -> set[str]:
    """Return the items whose results are saved: in the state, or as what a task wrote before its step was done.

    A long result is archived a moment before; until it is saved, its tool may run again.
    """
    snapshot = graph.get_state(config)
    written = [(task.result or {}).get("messages") or [] for task in snapshot.tasks]
    messages = [*snapshot.values.get("messages", []), *(message for one in written for message in one)]
    calls = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    return {f"item-{call.removeprefix('call-')}" for call in calls}


def damage(storage: Storage) -> list[str]:
    """Return what is wrong with the file; Postgres looks after its own."""
    if not storage.url.startswith("sqlite"):
        return []
    with closing(sqlite3.connect(storage.url.removeprefix("sqlite:///"))) as database:
        answers = [row[0] for row in database.execute("PRAGMA integrity_check")]
        tables = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for name, sql in tables:
            if re.search(r"USING\s+fts5", sql or "", re.IGNORECASE):
                database.execute(f"INSERT INTO {name}({name}) VALUES ('integrity-check')")
    return [] if answers == ["ok"] else [f"the file is damaged: {answers[0]}"]


def _messages(view: ThreadView, acknowledged: int, abandoned: Sequence[int]) -> list[str]:
    found = [f"{count} messages have the id {known}" for known, count in _doubled(view.messages)]
    places = [sequence(message) for message in view.messages]
    if places != sorted(set(places)):
        found.append(f"places are not in order: {places}")
    results = {message.id for message in view.messages if message.type == "tool"}
    for before, message in zip(view.messages, view.messages[1:], strict=False):
        is_ahead = message.type == "tool" and marks(message).get("previous") not in results
        if marks(message).get("previous") not in (None, before.id) and not is_ahead:
            found.append(f"{message.id} follows {before.id}, but names {marks(message).get('previous')}")
    turns = _turns(view.messages)
    asked = [turn for turn, _ in turns]
    if asked != sorted(set(asked)) or (asked and asked[-1] > acknowledged):
        found.append(f"turns are {asked} after {acknowledged} acknowledged ones")
    found += [f"turn {turn} is lost" for turn in range(acknowledged) if turn not in (*asked, *abandoned)]
    for turn, messages in turns:
        is_done = turn < acknowledged and turn not in abandoned
        found += _turn(turn, messages, is_done=is_done)
    return found


def _turn(turn: int, messages: Sequence[BaseMessage], *, is_done: bool) -> list[str]:
    expected = lines(turn)
    if not is_done:
        # Each call is a task of its own: of a round that was cut off, a later result may be there without an earlier.
        there = {message_text(message) for message in messages}
        expected = [line for line in expected if line[0] != "tool" or line[1] in (None, *there)]
    for place, message in enumerate(messages):
        if place >= len(expected) or not _is(message, expected[place]):
            return [f"turn {turn}: message {place} is {message.type} {message_text(message)[:60]!r}"]
    if is_done and len(messages) < len(expected):
        return [f"turn {turn} has {len(messages)} of {len(expected)} messages"]
    return []


def _is(message: BaseMessage, line: Line) -> bool:
    return message.type == line[0] and line[1] in (None, message_text(message))


def _turns(messages: Sequence[BaseMessage]) -> list[tuple[int, list[BaseMessage]]]:
    found: list[tuple[int, list[BaseMessage]]] = []
    for message in messages:
        if message.type == "human":
            found.append((int(str(message.id).removeprefix("u-")), []))
        found[-1][1].append(message)
    return found


def _doubled(messages: Sequence[BaseMessage]) -> list[tuple[str | None, int]]:
    return [(known, count) for known, count in Counter(message.id for message in messages).items() if count > 1]


def _handles(storage: Storage, view: ThreadView, shown: set[str]) -> list[str]:
    found = []
    shown = shown | {str(marks(m)["handle"]) for m in view.working_set.values() if "handle" in marks(m)}
    results = {str(m.id): m for m in view.messages if isinstance(m, ToolMessage)}
    for handle in sorted(shown):
        pointer = storage.store.get(namespaces.thread(view.thread_id, "handles"), handle)
        if pointer is None:
            found.append(f"the handle {handle} is dead: no pointer")
            continue
        message_id = str(pointer.value["message_id"])
        text = full_text(storage.store, view.thread_id, message_id)
        if text is None:
            found.append(f"the handle {handle} is dead: no message {message_id}")
        elif message_id in results and text not in _documents(results[message_id]):
            found.append(f"the handle {handle} gives another text: {text[:60]!r}")
    return found


def _documents(message: ToolMessage) -> list[str]:
    turn, _, place = message.tool_call_id.removeprefix("call-").partition("-")
    return [document(f"item-{turn}-{place}"), str(message.text)]


def _notes(
    storage: Storage, view: ThreadView, user_id: str, done: Sequence[int], abandoned: Sequence[int]
) -> list[str]:
    lasting = long_term_notes(storage.store, user_id)
    notes = [*lasting, *session_notes(storage.store, view.thread_id)]
    found = []
    for turn in done:
        if (told := habit(turn)) is None:
            continue
        count = len({note.id for note in notes if re.search(rf"{told}\b", note.text)})
        if count != 1:
            found.append(f"the habit of turn {turn} is noted {count} times")
    texts = {str(message.id): message_text(message) for message in view.messages}
    # Durability `exit` saves nothing of a turn that dies; a note of it stays when the client gives the turn up.
    texts |= {f"u-{turn}": question(turn) for turn in abandoned}
    return found + [f"the note {note.id} has no source" for note in lasting if not _has_source(note, texts)]


def _has_source(note: Note, texts: dict[str, str]) -> bool:
    return any(source.quote in texts.get(known, "") for source in note.sources for known in source.message_ids)


def _tickets(tickets: Tickets, done: Sequence[int]) -> list[str]:
    counts = Counter(ticket.title for ticket in tickets.find())
    found = [f"{title!r} is there {count} times" for title, count in counts.items() if count > 1]
    expected = {f"Ticket of turn {turn}" for turn in done if turn % 4 == 3}
    return found + [f"{title!r} is lost" for title in sorted(expected - set(counts))]
