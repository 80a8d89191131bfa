"""Two sessions of one user that end at the same moment, in two threads or processes: one goes first, then the other."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from everthread import open_storage
from everthread.nodes import consolidate
from everthread.state import Note, Source, namespaces
from everthread.storage.open import Storage

WORKER = """
import sys, time
from everthread.nodes import consolidate
from everthread.storage.open import open_storage

planned = consolidate.plan

def slow(*given, **options):
    time.sleep(0.1)  # long enough for the other process to read what this one is about to change
    return planned(*given, **options)

consolidate.plan = slow
with open_storage(sys.argv[1]) as storage:
    print("ready", flush=True)
    sys.stdin.readline()
    end = consolidate.SessionEnd(storage.store, sys.argv[2], "u", write=lambda event: None, turn=1)
    consolidate.end_session(end)
"""
SAID = {
    "t-1": [("Is vegetarian.", "2026-03-01"), ("Prefers aisle seats.", "2026-03-01"), ("Likes jazz.", "2026-03-01")],
    "t-2": [("Is vegetarian.", "2026-03-02"), ("Prefers window seats.", "2026-03-02"), ("Likes tea.", "2026-03-02")],
}


@pytest.fixture(autouse=True)
def _slow_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = consolidate.plan

    def slow(*given: Any, **options: Any) -> Any:
        time.sleep(0.1)  # long enough for the other session to read what this one is about to change
        return planned(*given, **options)

    monkeypatch.setattr(consolidate, "plan", slow)


def test_two_sessions_of_one_user_end_one_after_the_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with open_storage(url) as storage:
        save(storage)

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(partial(end, url), SAID))

        check_ended(storage)


@pytest.mark.slow
def test_two_sessions_of_one_user_in_two_processes_end_one_after_the_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with open_storage(url) as storage:
        save(storage)

        with ended_elsewhere(url, "t-1"):
            end(url, "t-2")

        check_ended(storage)


def save(storage: Storage) -> None:
    for thread_id, notes in SAID.items():
        for text, date in notes:
            note = Note(id=f"{thread_id}-{text}", text=text, date=date, sources=(Source(thread_id=thread_id),))
            storage.store.put(namespaces.session_notes(thread_id), note.id, note.value(), index=False)


def end(url: str, thread_id: str) -> None:
    with open_storage(url) as storage:
        ending = consolidate.SessionEnd(storage.store, thread_id, "u", write=lambda event: None, turn=1)
        consolidate.end_session(ending)


@contextmanager
def ended_elsewhere(url: str, thread_id: str) -> Iterator[None]:
    """Let another process end a session meanwhile."""
    command = [sys.executable, "-c", WORKER, url, thread_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        worker.stdin.write("go\n")
        worker.stdin.flush()
        yield
        worker.communicate(timeout=120)
    assert worker.returncode == 0


def check_ended(storage: Storage) -> None:
    found = [Note.model_validate(item.value) for item in storage.store.search(namespaces.notes("u"), limit=99)]
    left = [note for thread_id in SAID for note in storage.store.search(namespaces.session_notes(thread_id))]
    assert sorted(note.text for note in found if note.status == "active") == [
        "Is vegetarian.",
        "Likes jazz.",
        "Likes tea.",
        "Prefers window seats.",
    ]
    assert [note.text for note in found if note.status == "superseded"] == ["Prefers aisle seats."]
    assert left == []
