"""The graph over HTTP: what the user sees, and what the thread keeps, when the provider fails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from everthread import Context, build_graph
from everthread.errors import ModelError
from everthread.ledger import events
from everthread.state import Agent
from everthread.storage.open import Storage, open_storage
from openai_chat import chats
from server import WORDINGS, Call, Fault, OpenAIServer, Refusal

CONFIG: Any = {"configurable": {"thread_id": "t"}}
AGENT = Agent(name="test", title="Test", instructions="Be brief.")


def words(body: dict[str, Any]) -> int:
    return sum(len(str(message.get("content") or "").split()) for message in body["messages"])


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(window=100_000, count=words) as running:
        yield running


@pytest.fixture
def in_memory() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        yield opened


@pytest.fixture
def chat(server: OpenAIServer) -> Iterator[Callable[..., ChatOpenAI]]:
    with chats(server, max_retries=2) as make:
        yield make


def asked(server: OpenAIServer, number: int) -> list[str]:
    return [message["content"] for message in server.requests[number]["messages"][1:]]


FAILURES: dict[str, tuple[Any, str]] = {
    "401": (Refusal(401, "Incorrect API key", "invalid_api_key"), "authentication"),
    "404": (Refusal(404, "no such model", "model_not_found"), "not_found"),
    "429": (Refusal(429, "slow down", "rate_limit_exceeded", times=3), "rate_limit"),
    "500": (Refusal(500, times=3), "server"),
    "drop": (Fault.DROP, "dropped"),
    "eof": (Fault.EOF, "dropped"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_failure_is_one_clear_error_and_the_next_run_continues_the_turn(
    name: str, streamed: bool, server: OpenAIServer, chat: Callable[..., ChatOpenAI], in_memory: Storage
) -> None:
    fault, kind = FAILURES[name]
    graph = build_graph(AGENT, model=chat(streaming=streamed), storage=in_memory)
    # The client itself tries a request again whose connection broke before the reply began.
    tries = 3 if fault is Fault.DROP and not streamed else 1
    server.reply(*[fault] * tries, "hello")

    with pytest.raises(ModelError) as failure:
        graph.invoke({"messages": "hi"}, CONFIG)
    result = graph.invoke({"messages": "hi"}, CONFIG)

    assert failure.value.kind == kind or (kind == "dropped" and failure.value.kind == "connection")
    assert "\n" not in str(failure.value)
    assert [message.text for message in result["messages"]] == ["hi", "hello"]
    assert asked(server, -1) == ["hi"]


def test_a_model_that_the_provider_does_not_know_suggests_the_right_one(
    chat: Callable[..., ChatOpenAI], storage: Storage
) -> None:
    graph = build_graph(AGENT, model=chat(model="gpt-5-mimi"), storage=storage)

    with pytest.raises(ModelError, match=r"\(404\).*\(did you mean 'openai:gpt-5-mini'\?\)"):
        graph.invoke({"messages": "hi"}, CONFIG)


def test_a_time_out_is_one_clear_error(server: OpenAIServer, chat: Callable[..., ChatOpenAI], storage: Storage) -> None:
    graph = build_graph(AGENT, model=chat(timeout=0.05, max_retries=0), storage=storage)
    server.reply(Fault.TIMEOUT)

    with pytest.raises(ModelError) as failure:
        graph.invoke({"messages": "hi"}, CONFIG)

    assert failure.value.kind == "timeout"


def test_a_short_outage_is_bridged_by_retries(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], storage: Storage
) -> None:
    graph = build_graph(AGENT, model=chat(), storage=storage)
    server.reply(Refusal(503, times=2), "hello")

    assert graph.invoke({"messages": "hi"}, CONFIG)["messages"][-1].text == "hello"


def test_a_new_message_after_a_failure_comes_after_the_unanswered_one(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], storage: Storage
) -> None:
    graph = build_graph(AGENT, model=chat(), storage=storage)
    server.reply(Refusal(401), "hello")
    with pytest.raises(ModelError):
        graph.invoke({"messages": "hi"}, CONFIG)

    graph.invoke({"messages": "are you there?"}, CONFIG)

    assert asked(server, -1) == ["hi", "are you there?"]


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("streamed", [True, False])
def test_an_overflow_in_any_wording_is_recovered_without_a_model(
    wording: str, streamed: bool, server: OpenAIServer, chat: Callable[..., ChatOpenAI], in_memory: Storage
) -> None:
    graph = build_graph(AGENT, model=chat(streaming=streamed), storage=in_memory)
    server.wording = wording
    for number in range(4):
        server.reply("fine " * 200)
        graph.invoke({"messages": f"{number} " + "word " * 200}, CONFIG, context=Context(policy="token_budget"))
    # The server now takes three quarters of what the thread has, and no setting says so.
    server.window = int(words(server.requests[-1]) * 0.75)
    server.handler = lambda body: "short"

    result = graph.invoke({"messages": "and now?"}, CONFIG, context=Context(policy="token_budget"))

    assert result["messages"][-1].text == "short"
    assert 1 <= [event.event for event in events(in_memory.store, "t")].count("overflow") <= 5


@pytest.mark.slow
def test_the_real_protocol_accepts_every_prompt_of_a_tool_using_thread(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], in_memory: Storage
) -> None:
    from everthread.tools.save_memory_note import save_memory_note

    agent = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note])
    graph = build_graph(agent, model=chat(), summarizer="offline", storage=in_memory)
    for number in range(6):
        note = {"text": f"Likes tea number {number}", "keywords": ["tea"]}
        server.reply(
            [Call("save_memory_note", note), Call("save_memory_note", {**note, "scope": "session"})], "ok " * 60
        )
        graph.invoke({"messages": f"{number} " + "word " * 60}, CONFIG, context=Context(window=1_800))

    assert {"compacted"} <= {event.event for event in events(in_memory.store, "t")}
    assert len(server.requests) == 12


async def test_the_async_flavour_recovers_too(server: OpenAIServer, chat: Callable[..., ChatOpenAI]) -> None:
    async with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=chat(), storage=storage)
        server.reply(Refusal(401), "hello")
        with pytest.raises(ModelError):
            await graph.ainvoke({"messages": "hi"}, CONFIG)

        result = await graph.ainvoke({"messages": "hi"}, CONFIG)

    assert [message.text for message in result["messages"]] == ["hi", "hello"]
