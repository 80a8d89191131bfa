"""A database of two users in which one row is damaged: which rows there are, and how they are damaged."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import ormsgpack
from langchain_core.messages import AIMessage, HumanMessage

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.state import Note, Source, namespaces
from small_agent import AGENT

SECRETS = {"ada": "the zebra sings at 0415", "bob": "the walrus naps at 0930"}
THREADS = {"ada": "t-ada", "bob": "t-bob"}


def make_database(path: Path) -> None:
    """Let two users talk until every kind of row is there, and leave one turn of Ada's waiting for her approval."""
    with open_storage(f"sqlite:///{path}") as storage:
        for user, secret in SECRETS.items():
            storage.store.put(namespaces.profile(user), "profile", {"name": secret}, index=False)
            note = Note(id="n-1", text=f"Says {secret}.", date="2026-01-01", sources=(Source(thread_id="old"),))
            storage.store.put(namespaces.notes(user), note.id, note.value())
            save = call("save_memory_note", "c0", text=f"Wants {secret} tea.", keywords=["tea"])
            look = call("look", "c1", n=900)
            replies: list[Any] = [
                AIMessage("", tool_calls=[save]),
                "Noted.",
                AIMessage("", tool_calls=[look]),
                "Looked.",
                *["Yes."] * 5,
                AIMessage("", tool_calls=[call("approve", "c2", what="it")]),
            ]
            graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer="offline", storage=storage)
            dials = Context(user_id=user, keep_last_turns=1, context_limit=2)
            for number in range(8 if user == "ada" else 7):
                message = HumanMessage(f"I want {secret} cake {number}.", id=f"m{number}")
                config: Any = {"configurable": {"thread_id": THREADS[user]}}
                graph.invoke({"messages": [message]}, config, context=dials)


@dataclass(frozen=True)
class Target:
    """A value of a row: table, column, and which rows; the newest of them is damaged unless it says otherwise."""

    table: str
    column: str
    where: str
    order: str = "rowid DESC"
    is_typed: bool = True
    """Whether any JSON object of another shape is noticed."""

    def damage(self, path: Path, change: Callable[[Any], Any], *, as_text: bool = False) -> bool:
        """Change the value in a file; False when it stays the same or the table does not take it."""
        with closing(sqlite3.connect(path)) as database:
            # A disk that damages a row fires no trigger.
            triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                database.execute(f"DROP TRIGGER {name}")
            row, old = database.execute(
                f"SELECT rowid, {self.column} FROM {self.table} WHERE {self.where} ORDER BY {self.order} LIMIT 1"
            ).fetchone()
            new = change(old)
            value = "CAST(? AS TEXT)" if as_text else "?"
            try:
                database.execute(f"UPDATE {self.table} SET {self.column} = {value} WHERE rowid = ?", (new, row))
            except sqlite3.IntegrityError:
                return False
            for _, sql in triggers:
                database.execute(sql)
            database.commit()
        return bool(new != old)


ADA = "thread_id = 't-ada'"
TARGETS = {
    "newest checkpoint": Target("checkpoints", "checkpoint", ADA, "checkpoint_id DESC"),
    "older checkpoint": Target("checkpoints", "checkpoint", ADA, "checkpoint_id LIMIT 1 OFFSET 7 --"),
    "type of a checkpoint": Target("checkpoints", "type", ADA, "checkpoint_id DESC"),
    "metadata of a checkpoint": Target("checkpoints", "metadata", ADA, "checkpoint_id DESC", is_typed=False),
    "newest write of a message": Target("writes", "value", f"{ADA} AND channel = 'messages'", "checkpoint_id DESC"),
    "older write of a message": Target("writes", "value", f"{ADA} AND channel = 'messages'", "checkpoint_id"),
    "type of a write": Target("writes", "type", f"{ADA} AND channel = 'messages'", "checkpoint_id DESC"),
    "session": Target("store", "value", "prefix = 'sessions' AND key = 't-ada'"),
    "note": Target("store", "value", "prefix = 'users.ada.notes'"),
    "profile": Target("store", "value", "prefix = 'users.ada.profile'", is_typed=False),
    "session note": Target("store", "value", "prefix = 'threads.t-ada.notes'"),
    "archived message": Target("store", "value", "prefix = 'threads.t-ada.transcript'"),
    "summary": Target("store", "value", "prefix = 'threads.t-ada.summaries'"),
    "event": Target("store", "value", "prefix = 'threads.t-ada.ledger'", is_typed=False),
    "handle": Target("store", "value", "prefix = 'threads.t-ada.handles'", is_typed=False),
    "time of a note": Target("store", "created_at", "prefix = 'users.ada.notes'"),
    "words of the index": Target("lexical_index_data", "block", "id > 10", "id DESC"),
    "structure of the index": Target("lexical_index_data", "block", "id = 10"),
    "counts of the index": Target("lexical_spaces", "docs", "prefix LIKE 'threads.t-ada.%'"),
    "lengths of the index": Target("lexical_docs", "words", "1"),
    "paths of the index": Target("lexical_paths", "paths", "1"),
    "version of the index": Target("lexical_meta", "value", "name = 'version'"),
    "numbers of the index": Target("lexical_meta", "value", "name = 'doc'"),
}


def _random(seed: int, length: int) -> bytes:
    return random.Random(seed).randbytes(length)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "truncated": lambda old: _bytes(old)[: len(_bytes(old)) // 2],
    "first byte changed": lambda old: bytes([_bytes(old)[0] ^ 0xFF]) + _bytes(old)[1:],
    "random bytes": lambda old: _random(1, 300),
    "no UTF-8 as text": lambda old: _random(2, 300),
    "NULL": lambda old: None,
    "empty": lambda old: b"",
    "a number": lambda old: 0,
    "huge": lambda old: b"\x93" * 3_000_000,
    "deeply nested": lambda old: b"[" * 100_000,
    "msgpack of another shape": lambda old: ormsgpack.packb([1, {"a": None}, "x"]),
    "an empty msgpack object": lambda old: ormsgpack.packb({}),
    "JSON of another shape": lambda old: orjson.dumps([1, 2, {"x": None}]),
    "a JSON object of another shape": lambda old: orjson.dumps({"x": [1, None]}),
}


def copied(source: Path, folder: Path) -> Path:
    """Copy a database that nobody has open."""
    return Path(shutil.copy(source, folder / "everthread.db"))
