"""The real OpenAI client against the test server: what each failure becomes, and that the server is strict."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from everthread.errors import ModelError
from everthread.models.provider import MAX_RETRIES, resolve
from everthread.nodes.failures import check_complete, classify, is_overflow, overflow_sizes
from openai_chat import chats
from server import WORDINGS, Answer, Call, Fault, OpenAIServer, Refusal

HELLO = [HumanMessage("hello")]
MODES = ("stream", "invoke", "astream")


def words(body: dict[str, Any]) -> int:
    """Count one token a word: exact, because both sides of a test use it."""
    return sum(len((message["content"] or "").split()) for message in body["messages"])


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(window=100, count=words) as running:
        yield running


@pytest.fixture
def chat(server: OpenAIServer) -> Iterator[Callable[..., ChatOpenAI]]:
    with chats(server) as make:
        yield make


async def call(model: ChatOpenAI, mode: str, messages: Sequence[BaseMessage] = HELLO) -> AIMessage:
    """Call the model in one of the three ways and give the whole reply."""
    if mode == "invoke":
        return model.invoke(messages)
    chunks = [c async for c in model.astream(messages)] if mode == "astream" else list(model.stream(messages))
    whole: AIMessageChunk = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


async def failure(model: ChatOpenAI, mode: str, messages: Sequence[BaseMessage] = HELLO) -> Exception:
    with pytest.raises(Exception) as caught:  # which one it is, is what the tests ask
        check_complete(await call(model, mode, messages))
    return caught.value


def kind(error: Exception) -> str | None:
    found = classify(error)
    return found.kind if found else None


@pytest.mark.parametrize("mode", MODES)
async def test_text_and_parallel_calls_arrive_whole(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], mode: str
) -> None:
    server.reply(Answer("Two  searches.\n", [Call("flights", {"to": "Paris"}), Call("hotels", {"city": "Paris"})]))

    reply = await call(chat(), mode)

    check_complete(reply)
    assert reply.text == "Two  searches.\n"
    assert [(c["name"], c["args"]) for c in reply.tool_calls] == [
        ("flights", {"to": "Paris"}),
        ("hotels", {"city": "Paris"}),
    ]
    assert len({c["id"] for c in reply.tool_calls}) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_usage_is_the_counter_s(server: OpenAIServer, chat: Callable[..., ChatOpenAI], mode: str) -> None:
    server.reply("one two three")

    reply = await call(chat(), mode, [HumanMessage("four words are here")])

    assert reply.usage_metadata is not None
    assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (4, 3)


@pytest.mark.parametrize("mode", ["stream", "invoke"])
@pytest.mark.parametrize("wording", WORDINGS)
async def test_every_wording_of_an_overflow_is_one(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], wording: str, mode: str
) -> None:
    server.wording = wording

    error = await failure(chat(), mode, [HumanMessage("word " * 101)])

    assert is_overflow(error)
    assert kind(error) == "overflow"
    # Azure's nested error and Ollama's text hold no sizes.
    assert overflow_sizes(error) == ((None, None) if wording in ("azure", "ollama") else (101, 100))


async def test_the_reply_reserve_counts_towards_the_window(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI]
) -> None:
    error = await failure(chat(max_tokens=50), "stream", [HumanMessage("word " * 60)])

    assert is_overflow(error)
    assert overflow_sizes(error) == (60, 100)


async def test_a_reply_reserve_over_the_window_is_no_overflow(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI]
) -> None:
    error = await failure(chat(max_tokens=200), "stream")

    assert not is_overflow(error)
    assert kind(error) == "invalid"


async def test_a_prompt_that_just_fits_is_answered(server: OpenAIServer, chat: Callable[..., ChatOpenAI]) -> None:
    server.reply("fits")

    assert (await call(chat(), "stream", [HumanMessage("word " * 100)])).text == "fits"


@pytest.mark.parametrize("mode", ["stream", "invoke"])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "invalid"),
        (401, "authentication"),
        (403, "permission"),
        (404, "not_found"),
        (429, "rate_limit"),
        (500, "server"),
        (503, "server"),
    ],
)
async def test_each_status_has_its_kind(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], status: int, expected: str, mode: str
) -> None:
    server.reply(Refusal(status, "it went wrong"))

    error = await failure(chat(), mode)

    assert kind(error) == expected
    assert f"({status}): it went wrong; " in str(classify(error))


@pytest.mark.parametrize(
    ("fault", "mode", "expected"),
    [
        (Fault.TIMEOUT, "stream", "timeout"),
        (Fault.TIMEOUT, "invoke", "timeout"),
        (Fault.TIMEOUT, "astream", "timeout"),
        (Fault.STALL, "stream", "timeout"),
        (Fault.STALL, "invoke", "timeout"),
        (Fault.DROP, "stream", "dropped"),
        (Fault.DROP, "invoke", "dropped"),
        (Fault.DROP, "astream", "dropped"),
        (Fault.EOF, "stream", "dropped"),
        (Fault.EOF, "invoke", "dropped"),
        (Fault.EOF, "astream", "dropped"),
        (Fault.GARBAGE, "stream", "server"),
        (Fault.GARBAGE, "invoke", "server"),
        (Fault.GARBAGE, "astream", "server"),
        (Fault.NO_CHOICES, "stream", "dropped"),
        (Fault.NO_CHOICES, "invoke", "server"),
    ],
)
async def test_each_fault_has_its_kind(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], fault: Fault, mode: str, expected: str
) -> None:
    server.reply(fault)

    patience = 0.1 if expected == "timeout" else 60.0

    assert kind(await failure(chat(timeout=patience), mode)) == expected


async def test_a_stalled_async_stream_times_out(server: OpenAIServer, chat: Callable[..., ChatOpenAI]) -> None:
    server.reply(Fault.STALL)

    assert kind(await failure(chat(timeout=60, stream_chunk_timeout=0.1), "astream")) == "timeout"


async def test_an_early_clean_end_raises_nothing_in_the_client(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI]
) -> None:
    server.reply(Fault.EOF)

    half = await call(chat(), "stream")

    assert half.text == "This reply breaks off"
    with pytest.raises(ModelError, match="without a finish reason after 21 characters"):
        check_complete(half)


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_call_cut_in_its_arguments_is_dropped(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], mode: str
) -> None:
    server.reply(Answer(calls=[Call("book", '{"option_id": "F-1", "travellers": ["Ad')], finish="length"))

    error = await failure(chat(), mode)

    assert isinstance(error, ModelError)
    assert error.kind == "dropped"


@pytest.mark.parametrize("mode", MODES)
async def test_an_empty_reply_is_complete(server: OpenAIServer, chat: Callable[..., ChatOpenAI], mode: str) -> None:
    server.reply(Fault.EMPTY)

    reply = await call(chat(), mode)

    check_complete(reply)
    assert (reply.text, reply.tool_calls) == ("", [])


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("mode", MODES)
async def test_a_passing_failure_is_retried_twice_and_then_answered(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], status: int, mode: str
) -> None:
    server.reply(Refusal(status, times=MAX_RETRIES), "there")

    reply = await call(chat(max_retries=MAX_RETRIES), mode)

    assert (reply.text, len(server.requests)) == ("there", 3)


@pytest.mark.parametrize(("status", "requests"), [(429, 3), (500, 3), (503, 3), (400, 1), (401, 1), (404, 1)])
async def test_a_lasting_failure_is_told_after_bounded_retries(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], status: int, requests: int
) -> None:
    server.reply(Refusal(status, times=3))

    await failure(chat(max_retries=MAX_RETRIES), "stream")

    assert len(server.requests) == requests


async def test_a_server_that_is_not_there_is_a_connection_failure(chat: Callable[..., ChatOpenAI]) -> None:
    with OpenAIServer() as gone:
        model = chat(base_url=gone.base_url)

    error = await failure(model, "stream")

    assert kind(error) == "connection"
    assert "refused" in str(classify(error))


async def test_a_wrong_key_is_refused_and_not_repeated_to_the_user(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI]
) -> None:
    error = await failure(chat(api_key=SecretStr("sk-wrong-SECRETSECRET")), "stream")

    assert kind(error) == "authentication"
    assert "SECRET" not in str(classify(error))


async def test_an_unknown_model_is_not_found_by_name(server: OpenAIServer, chat: Callable[..., ChatOpenAI]) -> None:
    error = await failure(chat(model="gpt-none"), "stream")

    assert kind(error) == "not_found"
    assert "`gpt-none`" in str(classify(error))


CALL = AIMessage("", tool_calls=[{"name": "hotels", "args": {}, "id": "c1"}, {"name": "cars", "args": {}, "id": "c2"}])


@pytest.mark.parametrize(
    ("messages", "words_of_refusal"),
    [
        ([HumanMessage("hi"), ToolMessage("found", tool_call_id="c1")], "must be a response to a preceeding message"),
        ([CALL, ToolMessage("found", tool_call_id="other")], "must be a response to a preceeding message"),
        ([CALL, ToolMessage("found", tool_call_id="c1")], "did not have response messages: c2"),
        ([CALL, HumanMessage("well?")], "did not have response messages: c1, c2"),
        ([CALL, HumanMessage("well?"), ToolMessage("late", tool_call_id="c1")], "did not have response messages"),
        ([], "too short"),
    ],
)
async def test_broken_tool_pairs_are_refused(
    server: OpenAIServer, chat: Callable[..., ChatOpenAI], messages: list[BaseMessage], words_of_refusal: str
) -> None:
    error = await failure(chat(), "stream", messages)

    assert kind(error) == "invalid"
    assert words_of_refusal in str(error)


async def test_a_whole_tool_round_is_accepted(server: OpenAIServer, chat: Callable[..., ChatOpenAI]) -> None:
    server.reply("done")
    results = [ToolMessage("a", tool_call_id="c2"), ToolMessage("b", tool_call_id="c1")]

    assert (await call(chat(), "stream", [CALL, *results, HumanMessage("thanks")])).text == "done"


async def test_a_handler_answers_from_the_request(server: OpenAIServer, chat: Callable[..., ChatOpenAI]) -> None:
    server.handler = lambda body: json.dumps([message["role"] for message in body["messages"]])

    assert (await call(chat(), "stream")).text == '["user"]'


def test_a_request_without_a_reply_fails_the_test_that_made_it() -> None:
    def ask() -> None:
        with OpenAIServer(key=None) as server:
            server.answer(None, {"model": server.models[0], "messages": [{"role": "user", "content": "hi"}]})

    with pytest.raises(AssertionError, match="1 requests came without a queued reply"):
        ask()


def test_a_window_without_a_counter_is_refused() -> None:
    with pytest.raises(ValueError, match="`window` needs `count`"):
        OpenAIServer(window=100)


def test_the_models_are_listed(server: OpenAIServer) -> None:
    with openai.OpenAI(base_url=server.base_url, api_key=server.key) as client:
        assert [model.id for model in client.models.list()] == server.models


def test_a_resolved_model_reaches_a_local_server_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(key=None, models=["llama3.2"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        server.reply(Refusal(503, times=MAX_RETRIES), "hello from here")

        assert resolve("openai:llama3.2").invoke("hi").text == "hello from here"
