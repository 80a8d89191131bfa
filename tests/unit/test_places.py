"""Places of messages as a record has them."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from everthread.state import namespaces
from everthread.state.marks import marked, marks, sequence
from everthread.state.places import newest_record, placed, places_in, places_of, rows_of, with_renamed_reply
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


def replied(*before: str, reply: str = "r", at: str = "2025-03-04T10:00") -> dict[str, Any]:
    """Return the record of a call that had these messages and kept them all."""
    messages = [message(name, seq, None) for seq, name in enumerate(before)]
    return {"places": rows_of([*messages, message(reply, len(before), None, at)]), "after": before[-1], "stays": False}


def resolved(sent: str, *records: dict[str, Any], known: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Look for the records of messages, each named by its letter: `R` is a reply, all others are the user's."""
    messages = [AIMessage("", id=name) if name.isupper() else HumanMessage("", id=name) for name in sent]
    return with_renamed_reply(known or {}, messages, lambda name: [one for one in records if one["after"] == name])


def test_a_reply_with_another_id_has_the_record_of_its_call() -> None:
    found = resolved("abR", replied("a", "b"))

    assert places_in(found["R"])["R"].seq == 2
    assert set(places_in(found["R"])) == {"a", "b", "R"}


def test_of_two_calls_that_went_on_from_one_message_the_later_counts() -> None:
    calls = [replied("a", "b", at=f"2025-03-04T1{hour}:00") for hour in (1, 2, 0)]

    assert places_in(resolved("abR", *calls)["R"])["R"].at == "2025-03-04T12:00"


def test_a_call_that_left_out_what_is_still_here_was_never_saved() -> None:
    assert resolved("abR", replied("b")) == {}


def test_nothing_is_looked_for_behind_a_reply_with_a_record() -> None:
    known = {"S": replied("a", "R", "b", reply="S")}

    assert resolved("aRbS", replied("a"), known=known) == known


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
