"""What is stored of an event, and what reading gives back."""

import logging
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from everthread.ledger import events, record, schema
from everthread.ledger.events import Evicted, Injected, Masked, NoteBlocked, PromptAssembled
from everthread.state import namespaces

EVICTED = Evicted(
    policy="salience", reason="over budget", message_ids=["a" * 30, "b" * 30], tokens_before=9, tokens_after=5, budget=6
)


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


def test_what_is_stored_is_what_is_streamed() -> None:
    store = InMemoryStore()
    (streamed,) = told(store, EVICTED)

    (row,) = store.search(namespaces.ledger("t"))

    assert {"everthread": "ledger", **row.value} == streamed
    assert {"everthread": "ledger", **events(store, "t")[0].model_dump(mode="json")} == streamed


def test_a_row_of_version_0_1_is_read_with_its_messages_time_and_breakdown() -> None:
    store = InMemoryStore()
    for message_id in ("m-1", "m-2"):
        store.put(namespaces.transcript("t"), message_id, {"text": "hi"})
    figures = {"policy": "p", "reason": "r", "tokens_before": 9, "tokens_after": 5, "budget": 6, "turn": 2}
    # Hashes of m-1, of a message that is gone, and of m-2.
    row = {"event": "evicted", "message_ids": "3Yl9XlgAAAAAAAqJlSR7Q", **figures}
    sizes = {"system": 300, "history": 50}
    prompt = {"window": 1_000, "budget": 800, "tokens": 350, "cacheable_tokens": 0, "messages": 2, "accuracy": "exact"}
    store.put(namespaces.ledger("t"), "01735689600000000000-000001", row)
    store.put(
        namespaces.ledger("t"),
        "01735689601000000000-000002",
        {"event": "prompt_assembled", "breakdown": sizes, **prompt},
    )

    evicted, assembled = events(store, "t")

    assert (evicted.at, evicted.turn, evicted.thread_id) == ("2025-01-01T00:00:00.000+00:00", 2, "t")
    assert isinstance(evicted, Evicted)
    assert evicted.message_ids == ["m-1", "~AAAAAAA", "m-2"]
    assert isinstance(assembled, PromptAssembled)
    assert sum(assembled.breakdown.values()) == 1_000


def test_an_event_of_a_newer_version_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryStore()
    told(store, EVICTED)
    store.put(namespaces.ledger("t"), "9", {"event": "from the future"})

    assert [event.event for event in events(store, "t")] == ["evicted"]
    assert "left out: event 9 of thread 't'" in caplog.text


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
