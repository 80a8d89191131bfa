"""Which events go with their turn, and which stay."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everthread import Context, build_graph, open_storage
from everthread.ledger import events, record
from everthread.ledger.events import Event, Injected, NoteSaved
from everthread.ledger.retention import RUNS_BETWEEN, prune
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.storage.pruning import Pruner

SAVED = NoteSaved(note_id="n", scope="durable", kind="preference", by="tool", message_ids=["m"])


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite:///:memory:") as opened:
        yield opened


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def tell(storage: Storage, event: Event, turns: int, thread: str = "t") -> None:
    for turn in range(1, turns + 1):
        record(storage.store, thread, [event], write=lambda _: None, turn=turn)


def turns(storage: Storage, thread: str = "t") -> list[int]:
    return [event.turn for event in events(storage.store, thread)]


def test_only_the_newest_turns_stay(on_disk: Storage) -> None:
    tell(on_disk, Injected(), 10)

    gone = prune(on_disk.store, "t", 7)

    assert gone == 7
    assert turns(on_disk) == [8, 9, 10]


def test_events_about_notes_stay(on_disk: Storage) -> None:
    tell(on_disk, SAVED, 3)
    tell(on_disk, Injected(), 10)

    prune(on_disk.store, "t", 9)

    assert turns(on_disk) == [1, 2, 3, 10]


def test_another_thread_is_not_touched(on_disk: Storage) -> None:
    tell(on_disk, Injected(), 5, "t2")
    tell(on_disk, Injected(), 5)

    prune(on_disk.store, "t", 4)

    assert len(turns(on_disk, "t2")) == 5


def test_names_of_what_left_go_with_their_turn(on_disk: Storage) -> None:
    left = namespaces.thread("t", "left")
    for turn in (1, 9):
        on_disk.store.put(left, f"call-{turn}", {"turn": turn, "left": "masked", "message_id": "m"}, index=False)
    tell(on_disk, Injected(), 10)

    prune(on_disk.store, "t", 5)

    assert [item.key for item in on_disk.store.search(left)] == ["call-9"]


def test_a_ledger_is_looked_at_every_few_runs_and_in_the_first(on_disk: Storage) -> None:
    pruner = Pruner(on_disk)
    on_disk.store.put(namespaces.SESSIONS, "t", {"turns": 5})
    tell(on_disk, Injected(), 5)
    pruner.after_run("t", None, 2)
    tell(on_disk, Injected(), 5)
    for _ in range(RUNS_BETWEEN - 1):
        pruner.after_run("t", None, 2)
    before = len(turns(on_disk))

    pruner.after_run("t", None, 2)

    assert (before, len(turns(on_disk))) == (7, 4)


def test_a_run_prunes_by_its_dial(on_disk: Storage) -> None:
    tell(on_disk, Injected(), 50)
    graph = build_graph(model=ScriptedModel(["Hi."]), storage=on_disk)

    graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": "t"}}, context=Context(ledger_turns=None))
    assert len(turns(on_disk)) > 50


def test_a_thread_without_a_ledger_is_left_alone(on_disk: Storage) -> None:
    assert prune(on_disk.store, "t", 1) == 0
