"""A chat model with LangChain's wrappers around it: counted, bound and called as the one inside."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.models.calls import ModelCall
from everthread.models.identity import describe
from everthread.models.provider import resolve
from everthread.models.scripted import ScriptedModel
from everthread.models.wrapped import chat_model, input_limit
from everthread.nodes.structured_output import content, structured
from everthread.storage.open import Storage
from openai_chat import chats
from server import Call, OpenAIServer, Refusal
from small_agent import AGENT, CONFIG, ask

BUSY = Refusal(503)


@pytest.fixture
def storage() -> Iterator[Storage]:
    """Open a database in memory: a wrapper changes nothing of what is saved."""
    with open_storage("sqlite://") as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(models=("gpt-4.1-mini", "gpt-4.1", "gpt-4o")) as running:
        yield running


@pytest.fixture
def chat(server: OpenAIServer) -> Iterator[Callable[..., ChatOpenAI]]:
    with chats(server) as make:
        yield make


MODEL = ConfigurableField(id="model")
WRAPPERS: dict[str, Callable[[Callable[..., ChatOpenAI]], Any]] = {
    "bind": lambda chat: chat().bind(temperature=0.5),
    "retry": lambda chat: chat().with_retry(),
    "fallbacks": lambda chat: chat().with_fallbacks([chat(model="gpt-4.1")]),
    "config": lambda chat: chat().with_config(tags=["mine"]),
    "fields": lambda chat: chat().configurable_fields(model_name=MODEL),
    "alternatives": lambda chat: chat().configurable_alternatives(MODEL, large=chat(model="gpt-4.1")),
    "nested": lambda chat: chat().bind(temperature=0.5).with_retry().with_fallbacks([chat(model="gpt-4.1").bind()]),
}


def configurable(server: OpenAIServer) -> Any:
    return init_chat_model(
        "gpt-4.1-mini",
        model_provider="openai",
        configurable_fields=("model",),
        base_url=server.base_url,
        api_key=server.key,
    )


@pytest.fixture(params=[*WRAPPERS, "init_chat_model"])
def wrapped(request: pytest.FixtureRequest, chat: Callable[..., ChatOpenAI], server: OpenAIServer) -> Any:
    name = request.param
    return configurable(server) if name == "init_chat_model" else WRAPPERS[name](chat)


def test_the_model_inside_names_the_model_and_its_limit(wrapped: Any) -> None:
    assert describe(resolve(wrapped)) == "openai:gpt-4.1-mini"
    assert input_limit(wrapped) == 1_047_576


def test_a_wrapped_model_calls_tools(wrapped: Any, server: OpenAIServer, storage: Storage) -> None:
    graph = build_graph(AGENT, model=wrapped, storage=storage)
    server.reply([Call("look", {"n": 1})], "one row")

    messages = ask(graph, "look it up")["messages"]

    assert [message.text for message in messages[2:]] == ["row 0 of the table", "one row"]
    assert all({"look", "approve"} <= {tool["function"]["name"] for tool in body["tools"]} for body in server.requests)


async def test_a_wrapped_model_calls_tools_under_ainvoke(wrapped: Any, server: OpenAIServer) -> None:
    server.reply([Call("look", {"n": 1})], "one row")
    async with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=wrapped, storage=storage)
        result = await graph.ainvoke({"messages": "look it up"}, CONFIG, context=Context())

    assert result["messages"][-1].text == "one row"
    assert len(server.requests) == 2


def test_a_wrapped_model_streams_its_reply(wrapped: Any, server: OpenAIServer, storage: Storage) -> None:
    graph = build_graph(AGENT, model=wrapped, storage=storage)
    server.reply("one two three")

    parts = list(graph.stream({"messages": "count"}, CONFIG, context=Context(), stream_mode="messages"))

    assert "".join(message.text for message, _ in parts) == "one two three"
    assert len(parts) > 1


def test_bound_options_reach_the_provider(
    chat: Callable[..., ChatOpenAI], server: OpenAIServer, storage: Storage
) -> None:
    server.reply("hello")

    ask(build_graph(AGENT, model=chat().bind(temperature=0.25), storage=storage), "hi", max_output_tokens=99)

    assert (server.requests[0]["temperature"], server.requests[0]["max_completion_tokens"]) == (0.25, 99)


def test_a_retry_is_around_the_model_with_its_tools(
    chat: Callable[..., ChatOpenAI], server: OpenAIServer, storage: Storage
) -> None:
    model = chat().with_retry(wait_exponential_jitter=False, stop_after_attempt=2)
    server.reply(BUSY, "hello")

    ask(build_graph(AGENT, model=model, storage=storage), "hi")

    assert [bool(body["tools"]) for body in server.requests] == [True, True]


def test_a_fallback_gets_the_same_prompt_and_tools(
    chat: Callable[..., ChatOpenAI], server: OpenAIServer, storage: Storage
) -> None:
    model = chat().with_fallbacks([chat(model="gpt-4.1")])
    server.reply(BUSY, "hello")

    ask(build_graph(AGENT, model=model, storage=storage), "hi")

    first, second = server.requests
    assert (first["model"], second["model"]) == ("gpt-4.1-mini", "gpt-4.1")
    assert (first["messages"], first["tools"]) == (second["messages"], second["tools"])


@pytest.mark.parametrize("kind", ["fields", "alternatives", "init_chat_model"])
def test_the_config_of_a_run_chooses_the_model(
    kind: str, chat: Callable[..., ChatOpenAI], server: OpenAIServer, storage: Storage
) -> None:
    model = configurable(server) if kind == "init_chat_model" else WRAPPERS[kind](chat)
    graph = build_graph(AGENT, model=model, storage=storage)
    choice = "large" if kind == "alternatives" else "gpt-4.1"
    server.reply("hello")

    graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": "t", "model": choice}}, context=Context())

    assert server.requests[0]["model"] == "gpt-4.1"
    assert server.requests[0]["tools"]


def test_the_smallest_limit_of_all_fallbacks_holds(chat: Callable[..., ChatOpenAI]) -> None:
    assert input_limit(chat().with_fallbacks([chat(model="gpt-4o")])) == 128_000


class Answer(BaseModel):
    """An answer."""

    number: int


def test_structured_output_is_inside_the_wrappers(
    wrapped: Any, chat: Callable[..., ChatOpenAI], server: OpenAIServer
) -> None:
    server.reply('{"number": 7}')

    reply = ModelCall(structured(wrapped, Answer), []).model.invoke("a number")

    assert '"number"' in str(content(reply))
    assert server.requests[0]["response_format"]["json_schema"]["name"] == "Answer"


def test_a_summarizer_may_be_wrapped(storage: Storage) -> None:
    summarizer = ScriptedModel(["They counted."]).with_retry(wait_exponential_jitter=False)
    replies = [f"reply {n} " + "word " * 60 for n in range(4)]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer=summarizer, storage=storage)

    for number in range(4):
        ask(graph, f"question {number} " + "more " * 60, window=4_000, context_limit=2, keep_last_turns=1)

    assert isinstance(inside := chat_model(summarizer), ScriptedModel)
    assert inside.left == 0


def test_tools_bound_before_are_refused(chat: Callable[..., ChatOpenAI]) -> None:
    with pytest.raises(SettingsError, match="`model` has tools bound to it"):
        build_graph(AGENT, model=chat().bind_tools(AGENT.tools).with_retry())


def test_a_model_that_cannot_call_tools_is_refused_when_the_graph_is_built() -> None:
    model = FakeListChatModel(responses=["Hello."])

    with pytest.raises(SettingsError, match="FakeListChatModel has no `bind_tools`"):
        build_graph(AGENT, model=model)


def test_a_model_whose_own_bind_tools_is_set_from_outside_is_taken(storage: Storage) -> None:
    model = FakeListChatModel(responses=["Hello."])
    object.__setattr__(model, "bind_tools", lambda tools, **options: model)

    assert ask(build_graph(AGENT, model=model, storage=storage), "Hi")["messages"][-1].text == "Hello."


@pytest.mark.parametrize("model", [7, object()])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(SettingsError, match="`model` must be a chat model or a text"):
        build_graph(AGENT, model=model)


def test_a_chain_is_refused(chat: Callable[..., ChatOpenAI]) -> None:
    with pytest.raises(SettingsError, match="got RunnableSequence"):
        build_graph(AGENT, model=chat() | (lambda reply: reply))
