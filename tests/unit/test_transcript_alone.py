"""Transcript and recall without a graph."""

from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from conversation import call
from everthread import Transcript, build_graph, open_storage, pipeline
from everthread.errors import SettingsError
from everthread.state import namespaces
from everthread.storage.erasure import erase
from everthread.storage.reading import records
from everthread.window.tokens import counter_for
from small_agent import AGENT, CONFIG

Pair = tuple[str, str]


def talk(number: int) -> list[Pair]:
    return [("user", f"What about order {number}?"), ("assistant", f"Order {number} is on its way to depot {number}.")]


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        yield InMemoryStore()
        return
    with open_storage("sqlite://") as storage:
        yield storage.store


def test_messages_come_back_in_order_with_calls_and_results(store: Any) -> None:
    messages = [HumanMessage("look"), AIMessage("", tool_calls=[call("look", "c")]), ToolMessage("7", tool_call_id="c")]

    Transcript(store, "t", "u").append(messages)
    Transcript(store, "t", "u").append([AIMessage("It is 7.")])

    kept = Transcript(store, "t", "u").messages()
    assert [message.text for message in kept] == ["look", "", "7", "It is 7."]
    assert isinstance(kept[1], AIMessage)
    assert kept[1].tool_calls[0]["id"] == "c"


def test_an_append_can_be_repeated(store: Any) -> None:
    transcript = Transcript(store, "t", "u")
    first = transcript.append(talk(1))

    assert transcript.append([*first, HumanMessage("new", id="n")])[0].id == "n"
    assert transcript.append(first) == []
    assert [message.text for message in transcript.messages()] == [*(text for _, text in talk(1)), "new"]


def test_a_question_brings_back_what_was_said(store: Any) -> None:
    transcript = Transcript(store, "t", "u")
    transcript.append([("user", "My locker code is 4711."), ("assistant", "Noted.")], at="2025-03-04T10:00:00+00:00")
    for number in range(30):
        transcript.append(talk(number), at="2025-03-05T10:00:00+00:00")

    text = transcript.recall("What was my locker code?", tokens=300)

    assert "user: My locker code is 4711." in text
    assert "2025-03-04" in text
    assert counter_for("gpt-4o").text(text) < 300


def test_a_day_is_found(store: Any) -> None:
    transcript = Transcript(store, "t", "u")
    transcript.append(talk(1), at="2025-03-04T10:00:00+00:00")
    transcript.append(talk(2), at="2025-04-04T10:00:00+00:00")

    assert "order 1" in transcript.recall("What did we say yesterday about the order?", today=date(2025, 3, 5))


@pytest.mark.parametrize("at", ["2025-03-04", "2025-03-04T00:00:00", "2025-03-04T00:00:00Z"])
def test_a_time_without_a_zone_is_in_utc(at: str, store: Any) -> None:
    Transcript(store, "t", "u").append(talk(1), at=at)

    assert store.get(namespaces.SESSIONS, "t").value["last_activity"] == "2025-03-04T00:00:00+00:00"


@pytest.mark.parametrize("at", ["yesterday", "", 3])
def test_what_is_no_time_is_refused_before_anything_is_kept(at: Any, store: Any) -> None:
    with pytest.raises(SettingsError, match="`at` must be a time such as"):
        Transcript(store, "t", "u").append(talk(1), at=at)

    assert store.get(namespaces.SESSIONS, "t") is None


def test_a_record_of_before_without_a_zone_is_in_utc(store: Any) -> None:
    record = {"user_id": "u", "last_activity": "2025-03-04T10:00:00"}
    store.put(namespaces.SESSIONS, "t", record)

    assert records(store)[0]["last_activity"] == "2025-03-04T10:00:00+00:00"


def test_what_the_prompt_shows_is_not_recalled(store: Any) -> None:
    transcript = Transcript(store, "t", "u")
    shown = transcript.append(talk(1))

    assert transcript.recall("What about order 1?", shown=shown) == ""


def test_the_answer_of_another_append_comes_along(store: Any) -> None:
    transcript = Transcript(store, "t", "u")
    transcript.append([("user", "Which restaurant did Ada recommend?")])
    transcript.append([("assistant", "The Lighthouse.")])

    assert "The Lighthouse." in transcript.recall("What restaurant did Ada recommend?")


def test_nothing_is_found_in_an_empty_thread_or_by_no_words(store: Any) -> None:
    assert Transcript(store, "t", "u").recall("What was my code?") == ""
    assert Transcript(store, "t", "u").recall("?") == ""


def test_another_users_thread_is_refused(store: Any) -> None:
    Transcript(store, "t", "u").append(talk(1))

    other = Transcript(store, "t", "v")
    for use in (lambda: other.append(talk(2)), other.messages, lambda: other.recall("What about order 1?")):
        with pytest.raises(SettingsError, match="belongs to another user than 'v'"):
            use()


def test_a_thread_that_a_graph_runs_is_refused() -> None:
    with open_storage("sqlite://") as storage:
        build_graph(AGENT, model="offline", storage=storage).invoke({"messages": "hi"}, CONFIG)

        with pytest.raises(SettingsError, match="keeps its transcript itself"):
            Transcript(storage.store, "t", "local").append(talk(1))


@pytest.mark.parametrize("is_guarded", [True, False])
def test_an_agent_does_not_go_on_with_a_transcript_of_an_app(is_guarded: bool) -> None:
    with open_storage("sqlite://") as storage:
        transcript = Transcript(storage.store, "t", "local")
        transcript.append(talk(1))
        builder = pipeline(AGENT, model="offline")
        bare = builder.compile(checkpointer=storage.checkpointer, store=storage.store)

        with pytest.raises(SettingsError, match="was made by `Transcript"):
            (storage.guard(bare) if is_guarded else bare).invoke({"messages": "hi"}, CONFIG)
        assert transcript.append(talk(2))


def test_a_transcript_alone_is_erased_with_its_user(tmp_path: Any) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        Transcript(storage.store, "t", "u").append([("user", "My locker code is 4711.")])

        assert erase(storage, user_id="u").is_verified
        assert Transcript(storage.store, "t", "u").messages() == []


@pytest.mark.parametrize(("arguments", "name"), [(("", "u"), "thread_id"), (("t", ""), "user_id")])
def test_an_id_that_cannot_be_stored_is_refused(arguments: Any, name: str) -> None:
    with pytest.raises(SettingsError, match=f"`{name}`"):
        Transcript(InMemoryStore(), *arguments)


@pytest.mark.parametrize(
    ("arguments", "name"), [({"question": None}, "question"), ({"question": "which?", "threads": "all"}, "threads")]
)
def test_a_wrong_argument_of_recall_is_refused(arguments: Any, name: str) -> None:
    with pytest.raises(SettingsError, match=f"`{name}`"):
        Transcript(InMemoryStore(), "t", "u").recall(**arguments)


def test_what_is_no_store_is_refused() -> None:
    with open_storage("sqlite://") as storage, pytest.raises(SettingsError, match="`store` must be a store"):
        Transcript(storage, "t", "u")  # type: ignore[arg-type]


def test_too_few_tokens_are_refused() -> None:
    with pytest.raises(SettingsError, match="`tokens` must be at least 64"):
        Transcript(InMemoryStore(), "t", "u").recall("What?", tokens=10)


@pytest.mark.parametrize("messages", ["hello", HumanMessage("hello"), {"role": "user", "content": "hello"}])
def test_what_is_no_list_of_messages_is_refused(messages: Any) -> None:
    with pytest.raises(SettingsError, match="`append` takes a list of messages, got one"):
        Transcript(InMemoryStore(), "t", "u").append(messages)
