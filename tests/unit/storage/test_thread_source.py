"""A thread's messages by words, names and kinds: what reading all of them would find, on every database."""

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from everthread import Transcript, open_storage
from everthread.ledger.events import Masked, NoteBlocked
from everthread.ledger.record import record
from everthread.state.marks import handle_of
from everthread.storage import thread_source
from everthread.storage.open import Storage
from everthread.storage.reading import read_thread, reader_of
from everthread.storage.thread_source import ThreadSource, events_of, newest_event, page_of_events

SAID: list[AnyMessage] = [
    HumanMessage("Meet me in the Große Straße, 4711.", id="m-1"),
    AIMessage('She said "no\\yes",\nand left.', id="m-2", tool_calls=[{"name": "look", "args": {"n": 3}, "id": "c-1"}]),
    ToolMessage("row 1\nrow 2", id="m-3", tool_call_id="c-1"),
    HumanMessage("Привет, как дела?", id="x-4"),
    HumanMessage("我想要靠窗的座位", id="x-5"),
    HumanMessage("100% of_it, meet again", id="x-6"),
]


def source(storage: Storage) -> ThreadSource:
    Transcript(storage.store, "t", "ada").append(SAID)
    return ThreadSource(reader_of(storage), read_thread(storage, "t", whole=False))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("GROße straße", ["m-1"]),
        ("Große  Straße", ["m-1"]),
        ('"no\\yes", and', ["m-2"]),
        ("look {'n': 3}", ["m-2"]),
        ("ow 1", ["m-3"]),
        ("привет", ["x-4"]),
        ("靠窗", ["x-5"]),
        ("100% of_it", ["x-6"]),
        ("meet", ["m-1", "x-6"]),
        ("nowhere", []),
    ],
)
def test_a_text_is_found_as_it_was_said_in_any_case(database_url: str, text: str, ids: list[str]) -> None:
    with open_storage(database_url) as storage:
        assert [one.id for one in source(storage).saying(text, 8)] == ids


@pytest.mark.parametrize("page", [1, 9])
def test_the_newest_are_taken_of_many_that_say_it(
    database_url: str, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_source, "_PAGE", page)
    with open_storage(database_url) as storage:
        assert [one.id for one in source(storage).saying("meet", 2)] == ["m-1", "x-6"]
        assert [one.id for one in source(storage).saying("meet", 1)] == ["x-6"]


@pytest.mark.parametrize(("query", "ids"), [("m-3", ["m-3"]), (handle_of("m-1"), ["m-1"]), ("c-1", ["m-3"]), ("m", [])])
def test_a_message_is_named_by_id_handle_and_call(database_url: str, query: str, ids: list[str]) -> None:
    with open_storage(database_url) as storage:
        assert source(storage).named(query) == ids


def test_messages_that_share_most_words_come_first(database_url: str) -> None:
    with open_storage(database_url) as storage:
        assert [one.id for one in source(storage).like("We met? No, meeting in a street, 4711!", 1)] == ["m-1"]


def test_the_turn_of_a_message_is_counted_in_questions(database_url: str) -> None:
    with open_storage(database_url) as storage:
        found = source(storage)
        turns = [found.turn(message) for one in ("m-3", "x-4", "x-6") if (message := found.message(one))]

    assert turns == [1, 2, 4]


def test_events_are_read_by_message_kind_and_page(database_url: str) -> None:
    with open_storage(database_url) as storage:
        found, reader = source(storage), reader_of(storage)
        masked = [
            Masked(message_id=one, handle="h", tokens_before=9, tokens_after=1, reason="old")
            for one in ("m-1", "m-11", "m-2")
        ]
        blocked = NoteBlocked(category="secret", rule="r", message_ids=["m-1"])
        record(storage.store, "t", [*masked, blocked], turn=1)
        newest = newest_event(reader, "t", "masked")
        page, total = page_of_events(reader, "t", ["masked"], 1, 1)

        assert [one.event for one in found.about("m-1")] == ["masked", "note_blocked"]
        assert [one.event for one in events_of(reader, "t", ["note_blocked"])] == ["note_blocked"]
        assert [one.message_id for one in (newest, *page) if isinstance(one, Masked)] == ["m-2", "m-11"]
        assert total == 3


def test_a_text_longer_than_any_pattern_of_the_database_is_found() -> None:
    text = "QUJD" * 20_000
    with open_storage("sqlite://") as storage:
        Transcript(storage.store, "t", "ada").append([HumanMessage(f"See {text}.", id="long")])
        messages = ThreadSource(reader_of(storage), read_thread(storage, "t", whole=False))

        assert messages.named(text) == []
        assert [one.id for one in messages.saying(text, 8)] == ["long"]
