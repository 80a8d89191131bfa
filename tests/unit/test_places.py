"""Places of messages as a record has them."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from everthread.state import namespaces
from everthread.state.marks import marked, marks, sequence
from everthread.state.places import newest_record, placed, places_in, places_of, rows_of
from everthread.storage.call_records import prune_calls


def message(name: str, seq: int, previous: str | None, at: str | None = "2025-03-04") -> BaseMessage:
    return marked(HumanMessage(name, id=name), seq=seq, previous=previous, at=at)


THREAD = [message("a", 0, None), message("x", 7, "w"), message("y", 8, "x"), message("z", 9, "y")]


def test_a_record_has_the_places_that_the_messages_have() -> None:
    assert places_in({"places": rows_of(THREAD)}) == places_of(THREAD)


def test_who_is_ahead_is_in_a_record_only_behind_a_gap() -> None:
    assert [row[3:] for row in rows_of(THREAD)] == [[None], ["w"], [], []]


def test_new_messages_come_behind_all_others_with_the_date() -> None:
    given = placed([*THREAD, HumanMessage("new", id="n")], places_of(THREAD), date="2025-03-05")

    assert marks(given[-1]) == {"seq": 10, "previous": "z", "at": "2025-03-05"}
    assert [sequence(one) for one in given] == [0, 7, 8, 9, 10]


def test_the_record_that_knows_most_is_taken() -> None:
    earlier, later = ({"places": rows_of(THREAD[:end])} for end in (2, 4))

    assert newest_record({"x": earlier, "z": later}) == ("z", later)
    assert newest_record({}) == (None, {})


def record(turn: int, call: int, *, shows: list[str] | None = None) -> dict[str, object]:
    reply = AIMessage("", id=f"r{turn}-{call}")
    places = rows_of([marked(reply, seq=turn, at=f"2025-03-04T{turn:02}:{call:02}")])
    return {"places": places, "turns": turn, "shows": shows or []}


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    for turn in range(1, 9):
        for call in range(3):
            store.put(namespaces.calls("t"), f"r{turn}-{call}", record(turn, call, shows=[f"recalled-{turn}"]))
        store.put(namespaces.calls("t"), f"recalled-{turn}", {"type": "human", "data": {}})
    return store


def left_in(store: InMemoryStore) -> set[str]:
    return {item.key for item in store.search(namespaces.calls("t"), limit=100)}


def test_the_records_of_the_newest_turns_stay_with_what_they_show(store: InMemoryStore) -> None:
    gone = prune_calls(store, "t", 2)

    kept = {name for turn in (7, 8) for name in (f"recalled-{turn}", *(f"r{turn}-{call}" for call in range(3)))}
    assert (left_in(store), gone) == (kept, 24)


def test_turns_of_another_branch_count_by_when_they_were(store: InMemoryStore) -> None:
    store.put(namespaces.calls("t"), "fork", {**record(9, 0), "turns": 3})

    prune_calls(store, "t", 2)

    assert left_in(store) == {"fork", "recalled-8", "r8-0", "r8-1", "r8-2"}


def test_pruning_again_changes_nothing(store: InMemoryStore) -> None:
    prune_calls(store, "t", 2)

    assert prune_calls(store, "t", 2) == 0
