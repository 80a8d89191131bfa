"""What is stored of an event, and what reading gives back."""

import logging
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from everthread.ledger import events, record, schema
from everthread.ledger.events import Compacted, Evicted, Injected, Masked, NoteBlocked, PromptAssembled
from everthread.ledger.packing import is_about, packed, short, unpacked
from everthread.state import namespaces

EVICTED = Evicted(
    policy="salience", reason="over budget", message_ids=["a" * 30, "b" * 30], tokens_before=9, tokens_after=5, budget=6
)


def prompt(**sizes: int) -> PromptAssembled:
    known = ("system", "profile", "notes", "tools", "summary", "session_notes", "recalled", "history", "reply_reserve")
    whole = {name: sizes.get(name, 0) for name in (*known, "safety")}
    breakdown = {**whole, "free": 1_000 - sum(whole.values())}
    figures: Any = {"window": 1_000, "budget": 800, "tokens": 5, "cacheable_tokens": 0, "messages": 2}
    return PromptAssembled(breakdown=breakdown, accuracy="exact", **figures)


def told(store: InMemoryStore, *given: Any) -> list[dict[str, Any]]:
    streamed: list[dict[str, Any]] = []
    record(store, "t", given, write=streamed.append, turn=3)
    return streamed


def test_an_event_is_read_back_with_its_time_turn_and_thread() -> None:
    store = InMemoryStore()
    (streamed,) = told(store, Masked(reason="r", message_id="m", handle="h", tokens_before=2, tokens_after=1))

    (event,) = events(store, "t")

    assert (event.turn, event.thread_id) == (3, "t")
    assert event.at[:16] == streamed["at"][:16]


def test_a_breakdown_is_read_back_whole_and_adds_up_to_the_window() -> None:
    event = prompt(system=300, history=50)
    stored = packed(event, event.model_dump())

    assert stored["breakdown"] == {"system": 300, "history": 50}
    assert unpacked("t", "1", stored).model_dump()["breakdown"] == event.breakdown


def test_messages_are_stored_by_short_names_and_streamed_by_id() -> None:
    store = InMemoryStore()
    (streamed,) = told(store, EVICTED)

    (event,) = events(store, "t")

    assert streamed["message_ids"] == EVICTED.message_ids
    assert is_about(event, "a" * 30)
    assert not is_about(event, "c" * 30)


def test_a_short_name_is_not_the_id_of_a_message() -> None:
    assert short("m-1").startswith("~")
    assert len({short(f"m-{number}") for number in range(10_000)}) == 10_000


def test_a_row_of_an_older_version_reads_as_it_was() -> None:
    old = {"event": "evicted", "at": "2025-01-01T00:00:00+00:00", "turn": 2, **EVICTED.model_dump(exclude={"event"})}

    event = unpacked("t", "00001-000001", {**old, "at": "2025-01-01T00:00:00+00:00", "turn": 2})

    assert event.at == "2025-01-01T00:00:00+00:00"
    assert is_about(event, "a" * 30)


def test_an_event_of_a_newer_version_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryStore()
    told(store, EVICTED)
    store.put(namespaces.ledger("t"), "9", {"event": "from the future"})

    assert [event.event for event in events(store, "t")] == ["evicted"]
    assert "left out event 9" in caplog.text


def test_events_stay_in_the_order_of_writing() -> None:
    store = InMemoryStore()
    told(store, EVICTED, Injected(), EVICTED)

    assert [event.event for event in events(store, "t")] == ["evicted", "injected", "evicted"]


def test_the_log_has_the_event_as_data(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "everthread.ledger.record")
    told(InMemoryStore(), NoteBlocked(category="payment_card", rule="card", message_ids=["m"]), Injected())

    (entry,) = caplog.records

    assert entry.message == "note_blocked on turn 3 of t"
    assert entry.__dict__["everthread"]["category"] == "payment_card"


def test_the_schema_tells_the_kinds_apart() -> None:
    kinds = set(schema()["discriminator"]["mapping"])

    wanted = "prompt_assembled evicted masked offloaded compacted recalled injected note_saved note_blocked note_merged"
    more = "note_superseded note_promoted note_expired consolidated fallback_used overflow pin_repaired erased regret"
    assert kinds >= {*wanted.split(), *more.split()}


def test_a_list_of_many_messages_takes_seven_bytes_each() -> None:
    ids = [f"lc_run--{number:030d}" for number in range(100)]
    figures: Any = {"tokens_before": 9, "tokens_after": 5, "summary_tokens": 3, "version": 1}
    event = Compacted(reason="high watermark", message_ids=ids, writer="model", **figures)

    assert len(str(packed(event, event.model_dump()))) < 100 * 7 + 200
