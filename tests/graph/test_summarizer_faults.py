"""A summariser that fails in any way costs nothing but an event; over HTTP, against the strict server."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from everthread import Context, build_graph, open_storage
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript
from openai_chat import chats
from server import Fault, OpenAIServer, Refusal, Reply

CONFIG: Any = {"configurable": {"thread_id": "t"}}
AGENT = Agent(name="test", title="Test", instructions="Be brief.", summary_sections=("Decisions", "Facts"))
DIALS = Context(context_limit=2, keep_last_turns=1)
RULE = "Never book anything before I approve."
GOOD = "## Decisions\n- Chose the night train for the price [1].\n## Facts\n- Meets Ann in Rome [2]."


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def summarizer(server: OpenAIServer) -> Iterator[Callable[..., ChatOpenAI]]:
    with chats(server) as make:
        yield make


def run(storage: Storage, summarizer: Any, texts: list[str]) -> dict[str, Any]:
    model = ScriptedModel([f"answer {number}" for number in range(len(texts))])
    graph = build_graph(AGENT, model=model, summarizer=summarizer, storage=storage)
    for text in texts:
        result = graph.invoke({"messages": text}, CONFIG, context=DIALS)
    return dict(result)


FAULTS: dict[str, list[Reply]] = {
    "time-out": [Fault.TIMEOUT],
    "429": [Refusal(429, "slow down", "rate_limit_exceeded")],
    "500": [Refusal(500)],
    "empty twice": [Fault.EMPTY, Fault.EMPTY],
    "garbage": [Fault.GARBAGE],
    "far too long twice": ["word " * 4_000, "word " * 4_000],
    "overflows itself twice": [Refusal(400, "prompt is too long", "context_length_exceeded", times=2)],
    "dropped": [Fault.DROP],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_leaves_the_turn_the_rules_and_an_event(
    fault: str, server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]
) -> None:
    server.reply(*FAULTS[fault])
    with open_storage("sqlite://") as storage:
        result = run(storage, summarizer(timeout=0.2), ["Hello", RULE, "3"])
        ledger = events(storage.store, "t")
        told = [message.text for message in transcript(storage.store, "t", result["messages"])]

    assert result["messages"][-1].text == "answer 2"
    assert result["summary"]["writer"] == "extractive"
    assert RULE in str(result["summary"])
    assert [event.step for event in ledger if event.event == "fallback_used"] == ["summarize"]
    assert told == ["Hello", "answer 0", RULE, "answer 1", "3", "answer 2"]


def test_a_summary_that_is_too_long_is_asked_for_again_shorter(
    server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]
) -> None:
    server.reply("word " * 4_000, GOOD)
    with open_storage("sqlite://") as storage:
        result = run(storage, summarizer(), ["Hello", RULE, "3"])

    asked = [request["messages"][0]["content"] for request in server.requests]
    assert ["at most 200 words" in asked[0], "at most 100 words" in asked[1]] == [True, True]
    assert result["summary"]["writer"] == "model"


def test_a_good_summary_is_kept_by_section_with_its_sources_and_the_rule_word_for_word(
    server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]
) -> None:
    server.reply(GOOD)
    with open_storage("sqlite://") as storage:
        result = run(storage, summarizer(), ["Hello", RULE, "3"])

    entries = result["summary"]["entries"]
    assert [entry["section"] for entry in entries] == ["Standing instructions", "Decisions", "Facts"]
    assert entries[0]["text"] == RULE
    assert all(entry["sources"] for entry in entries)


def test_the_next_summary_folds_the_last_one_in(server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]) -> None:
    server.reply(GOOD, GOOD, GOOD)
    with open_storage("sqlite://") as storage:
        run(storage, summarizer(), ["Hello", RULE, "3", "4"])

    assert "Chose the night train" in server.requests[1]["messages"][0]["content"]
    assert "Hello" not in server.requests[1]["messages"][0]["content"]


def test_a_bad_summary_never_replaces_a_good_one(server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]) -> None:
    server.reply(GOOD, Fault.EMPTY, Fault.EMPTY)
    with open_storage("sqlite://") as storage:
        result = run(storage, summarizer(), ["Hello", RULE, "3", "4"])

    assert "Chose the night train" in str(result["summary"])


UNSUPPORTED = [
    "## Facts\n- Order #W777123 is late\n- Flight QX417 left",
    '{"facts": ["all went well here, they said"]}',
]


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_a_summary_of_what_nobody_said_never_replaces_a_good_one(
    text: str, server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]
) -> None:
    server.reply(GOOD, text)
    with open_storage("sqlite://") as storage:
        result = run(storage, summarizer(), ["Hello", RULE, "3", "4"])
        reasons = [event.reason for event in events(storage.store, "t") if event.event == "fallback_used"]

    assert "Chose the night train" in str(result["summary"])
    assert reasons == ["unsupported summary"]


def test_a_summarizer_that_fails_time_and_again_is_left_alone(
    server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]
) -> None:
    server.handler = lambda body: Refusal(500)
    with open_storage("sqlite://") as storage:
        run(storage, summarizer(), [f"question {number}" for number in range(14)])

    assert 3 <= len(server.requests) <= 6


def test_a_transcript_larger_than_the_summarizers_window_is_sent_in_parts(
    server: OpenAIServer, summarizer: Callable[..., ChatOpenAI]
) -> None:
    server.reply(GOOD, GOOD, GOOD, GOOD)
    small = summarizer(profile={"max_input_tokens": 1_000})
    with open_storage("sqlite://") as storage:
        result = run(storage, small, ["Hello", "word " * 900 + "detail " * 400, "3"])

    sent = " ".join(request["messages"][0]["content"] for request in server.requests)
    assert result["summary"]["writer"] == "model"
    assert len(server.requests) >= 3
    assert "word word" in sent
    assert sent.count("detail") == 400
