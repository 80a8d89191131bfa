"""What LangChain promises to middlewares and agents, kept with ours among them, in either order, sync and async.

Each case runs twice: sync with theirs outside, and async with ours outside. Ours does the same in both kinds of run.

The list is that of `langchain`'s own unit tests of agents and their middleware, in cases of our own:

| their file | here |
|---|---|
| `core/test_framework` | hooks, jumps, state attributes, structured answers beside tools, requests changed in place |
| `core/test_wrap_model_call`, `core/test_composition` | errors, retries, answers made or written again, other models |
| `core/test_wrap_model_call_state_update` | commands of other middlewares |
| `core/test_overrides`, `test_system_message`, `test_dynamic_system_prompt` | system prompts, settings |
| `core/test_tools`, `core/test_dynamic_tools` | tools taken away, added and unknown |
| `core/test_wrap_tool_call`, `test_tool_error` | arguments, results and errors of tools, answers without the tool |
| `core/test_sync_async_wrappers` | every case runs both ways |
| `core/test_after_model_streaming`, `core/test_streaming_isolation` | streams |
| `test_response_format`, `test_response_format_integration` | schemas by tool and by the provider |
| `test_return_direct_spec`, `test_injected_runtime_create_agent` | direct results, what tools see |
| `implementations/*` that touch messages | `test_middleware_pairs`, `test_middleware_agents` |

Not here, since no middleware of ours can change them: drawn graphs (`test_diagram`, `test_react_agent_graph`), types
and decorators (`test_middleware_typing`, `test_decorators`), the order of dependencies between middlewares,
checkpointers and stores, and what single middlewares do by themselves (PII patterns, shells, file search).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, hook_config
from langchain.agents.middleware.types import OmitFromInput, OmitFromOutput, PrivateStateAttr
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputError, ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from everthread import EverthreadMiddleware, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.nodes.thread_view import thread_messages
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript

CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "ann"}}

Ask = Callable[..., dict[str, Any]]
Build = Callable[..., Any]


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as opened:
        yield opened


@pytest.fixture(params=[("invoke", "theirs outside"), ("ainvoke", "ours outside")], ids="-".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return how a graph is run, and who is outside."""
    api, outside = request.param
    return api, outside


@pytest.fixture
def ask(way: tuple[str, str]) -> Ask:
    def send(graph: Any, payload: Any, **options: Any) -> dict[str, Any]:
        payload = {"messages": [HumanMessage(payload)]} if isinstance(payload, str) else payload
        if way[0] == "ainvoke":
            return dict(asyncio.run(graph.ainvoke(payload, CONFIG, **options)))
        return dict(graph.invoke(payload, CONFIG, **options))

    return send


@pytest.fixture
def build(way: tuple[str, str], storage: Storage) -> Build:
    """Make a guarded agent with their middlewares on either side of ours."""

    def agent(model: Any, *theirs: Any, tools: Sequence[Any] = (), **options: Any) -> Any:
        ours = EverthreadMiddleware(window=8_000, summarizer="offline")
        middleware = [*theirs, ours] if way[1] == "theirs outside" else [ours, *theirs]
        options = {"system_prompt": "You sell things.", **options}
        made = create_agent(
            model, list(tools), middleware=middleware, checkpointer=storage.checkpointer, store=storage.store, **options
        )
        return storage.guard(made)

    return agent


class Around(AgentMiddleware[Any, Any, Any]):
    """A middleware around model calls, written once for both kinds of run."""

    def request(self, request: ModelRequest) -> ModelRequest:
        return request

    def response(self, response: Any) -> Any:
        return response

    def error(self, error: Exception) -> Any:
        raise error

    def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        try:
            return self.response(handler(self.request(request)))
        except RuntimeError as error:
            return self.error(error)

    async def awrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        try:
            return self.response(await handler(self.request(request)))
        except RuntimeError as error:
            return self.error(error)


class AroundTools(AgentMiddleware[Any, Any, Any]):
    """A middleware around tool calls, written once for both kinds of run."""

    def request(self, request: Any) -> Any:
        return request

    def result(self, result: Any) -> Any:
        return result

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return self.result(handler(self.request(request)))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return self.result(await handler(self.request(request)))


@tool
def search(query: str) -> str:
    """Search the shop."""
    return f"found {query}"


@tool
def hidden(query: str) -> str:
    """Search the back of the shop."""
    return f"hidden {query}"


def calls(*named: tuple[str, dict[str, Any]]) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"{name}-{i}"} for i, (name, args) in enumerate(named)]
    )


def results(values: dict[str, Any]) -> list[str]:
    return [message.text for message in values["messages"] if isinstance(message, ToolMessage)]


def texts(prompt: Sequence[BaseMessage]) -> list[str]:
    """Return what the conversation says in a prompt, without the system prompt and what memory puts behind it."""
    return [message.text for message in prompt if message.type != "system" and "<memory_policy>" not in message.text]


# Hooks, jumps and state


class Logged(Around):
    def __init__(self, log: list[str], label: str) -> None:
        self._log, self._label = log, label

    @property
    def name(self) -> str:
        return self._label

    def before_agent(self, state: Any, runtime: Any) -> None:
        self._log.append(f"{self._label} begins")

    def before_model(self, state: Any, runtime: Any) -> None:
        self._log.append(f"{self._label} before")

    def request(self, request: ModelRequest) -> ModelRequest:
        self._log.append(f"{self._label} around")
        return request

    def after_model(self, state: Any, runtime: Any) -> None:
        self._log.append(f"{self._label} after")

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._log.append(f"{self._label} ends")


def test_hooks_run_in_their_order(build: Build, ask: Ask) -> None:
    log: list[str] = []
    model = ScriptedModel([calls(("search", {"query": "pears"})), "Here."])

    ask(build(model, Logged(log, "a"), Logged(log, "b"), tools=[search]), "pears?")

    call = ["a before", "b before", "a around", "b around", "b after", "a after"]
    assert log == ["a begins", "b begins", *call, *call, "b ends", "a ends"]


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_model"])
def test_a_jump_to_the_end_ends_the_turn(build: Build, ask: Ask, hook: str) -> None:
    class Jump(AgentMiddleware[Any, Any, Any]):
        pass

    @hook_config(can_jump_to=["end"])
    def jump(self: Any, state: Any, runtime: Any) -> dict[str, Any]:
        return {"jump_to": "end", "messages": [AIMessage("We are closed.")]}

    setattr(Jump, hook, jump)
    model = ScriptedModel(["Yes.", "Yes."])
    graph = build(model, Jump())

    values = [ask(graph, "open?"), ask(graph, "open now?")]

    assert [one["messages"][-1].text for one in values] == ["We are closed."] * 2
    assert len(model.prompts) == (2 if hook == "after_model" else 0)
    assert "jump_to" not in values[-1]


def test_a_jump_back_to_the_model_asks_again(build: Build, ask: Ask) -> None:
    class Again(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            if state["messages"][-1].text != "bad":
                return None
            return {"jump_to": "model", "messages": [HumanMessage("Try again.")]}

    model = ScriptedModel(["bad", "good"])

    values = ask(build(model, Again()), "hi")

    assert [message.text for message in values["messages"]] == ["hi", "bad", "Try again.", "good"]
    assert texts(model.prompts[1]) == ["hi", "bad", "Try again."]


def test_a_run_without_messages_that_jumps_to_the_end_is_empty(build: Build, ask: Ask) -> None:
    class Closed(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"jump_to": "end"}

    assert ask(build(ScriptedModel(), Closed()), {"messages": []}) == {"messages": []}


def test_private_keys_of_another_middleware_stay_private(build: Build, ask: Ask) -> None:
    class Marked(AgentState[Any]):
        not_in: Annotated[NotRequired[str], OmitFromInput]
        not_out: Annotated[NotRequired[str], OmitFromOutput]
        private: Annotated[NotRequired[str], PrivateStateAttr]

    class Marking(AgentMiddleware[Any, Any, Any]):
        state_schema = Marked

        def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"not_in": "set", "not_out": "set", "private": "set"}

    values = ask(build(ScriptedModel(["Hello."]), Marking()), "hi")

    assert values.keys() - {"messages"} == {"not_in"}


# Requests and responses


def test_a_message_added_to_the_request_in_place_is_sent(build: Build, ask: Ask) -> None:
    class Kind(Around):
        def request(self, request: ModelRequest) -> ModelRequest:
            request.messages.append(HumanMessage("Be kind."))
            return request

    model = ScriptedModel(["One.", "Two."])
    graph = build(model, Kind())
    ask(graph, "hi")

    ask(graph, "again")

    assert [texts(prompt)[-1] for prompt in model.prompts] == ["Be kind.", "Be kind."]
    assert "again" in texts(model.prompts[1])


def test_a_system_prompt_of_another_middleware_is_sent_as_it_is(build: Build, ask: Ask) -> None:
    class Dynamic(Around):
        def request(self, request: ModelRequest) -> ModelRequest:
            return request.override(system_message=SystemMessage(f"Turn {len(request.state['messages'])}."))

    model = ScriptedModel(["One.", "Two."])
    graph = build(model, Dynamic())
    ask(graph, "hi")

    ask(graph, "again")

    assert [prompt[0].text for prompt in model.prompts] == ["Turn 1.", "Turn 3."]


def test_an_agent_without_a_system_prompt_gets_none(build: Build, ask: Ask) -> None:
    model = ScriptedModel(["Hello."])

    ask(build(model, system_prompt=None), "hi")

    assert [message.type for message in model.prompts[0]] == ["human", "human"]


def test_settings_and_another_model_reach_the_call(build: Build, ask: Ask) -> None:
    seen = []

    class Other(ScriptedModel):
        def bind_tools(self, tools: Any, *, tool_choice: Any = None, **options: Any) -> Any:
            seen.append((tool_choice, options))
            return super().bind_tools(tools)

    other = Other(["From the other."])

    class Routed(Around):
        def request(self, request: ModelRequest) -> ModelRequest:
            return request.override(model=other, model_settings={"temperature": 0}, tool_choice="any")

    values = ask(build(ScriptedModel(), Routed(), tools=[search]), "hi")

    assert values["messages"][-1].text == "From the other."
    assert seen == [("any", {"temperature": 0})]


def test_an_answer_without_the_model_is_kept(build: Build, ask: Ask, storage: Storage) -> None:
    class Canned(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: ModelRequest, handler: Any) -> AIMessage:
            return AIMessage("Canned.")

        async def awrap_model_call(self, request: ModelRequest, handler: Any) -> AIMessage:
            return AIMessage("Canned.")

    graph = build(ScriptedModel(), Canned())
    for _ in range(3):
        values = ask(graph, "hi there")

    kept = transcript(storage.store, "t", thread_messages(storage.store, "t", values["messages"]))
    assert [message.text for message in kept] == ["hi there", "Canned."] * 3


def test_an_error_of_the_model_is_its_own_and_can_be_answered(build: Build, ask: Ask) -> None:
    class Excused(Around):
        def error(self, error: Exception) -> AIMessage:
            return AIMessage(f"Sorry: {error}")

    values = ask(build(ScriptedModel([RuntimeError("down")]), Excused()), "hi")

    assert values["messages"][-1].text == "Sorry: down"


def test_an_error_that_nobody_answers_reaches_the_caller(build: Build, ask: Ask) -> None:
    graph = build(ScriptedModel([RuntimeError("down"), "Up again."]), Around())

    with pytest.raises(RuntimeError, match="down"):
        ask(graph, "hi")

    assert ask(graph, "still there?")["messages"][-1].text == "Up again."


def test_a_call_that_another_middleware_makes_twice_is_kept_once(build: Build, ask: Ask, storage: Storage) -> None:
    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
            handler(request)
            return handler(request)

        async def awrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
            await handler(request)
            return await handler(request)

    model = ScriptedModel([text for number in range(3) for text in (f"draft {number}", f"answer {number}")])
    graph = build(model, Twice())
    for number in range(3):
        values = ask(graph, f"question {number}")

    kept = transcript(storage.store, "t", thread_messages(storage.store, "t", values["messages"]))
    assert [message.text for message in kept] == [
        text for number in range(3) for text in (f"question {number}", f"answer {number}")
    ]


def test_commands_of_another_middleware_are_applied(build: Build, ask: Ask) -> None:
    class Counted(AgentState[Any]):
        asked: NotRequired[int]

    class Counting(Around):
        state_schema = Counted

        def request(self, request: ModelRequest) -> ModelRequest:
            self._asked = request.state.get("asked", 0) + 1
            return request

        def response(self, response: Any) -> Any:
            said = HumanMessage(f"asked {self._asked}", id=f"said-{self._asked}")
            return ExtendedModelResponse(response, Command(update={"asked": self._asked, "messages": [said]}))

    graph = build(ScriptedModel(["One.", "Two."]), Counting())
    ask(graph, "hi")

    values = ask(graph, "again")

    assert values["asked"] == 2
    assert {"asked 1", "asked 2"} <= {message.text for message in values["messages"]}


# Tools


def test_tools_that_another_middleware_takes_away_are_not_sent(build: Build, ask: Ask) -> None:
    class Bare(Around):
        def request(self, request: ModelRequest) -> ModelRequest:
            return request.override(tools=[])

    model = ScriptedModel(["Hello."])

    ask(build(model, Bare(), tools=[search]), "hi")

    assert model.tools == [[]]


class Adding(Around, AroundTools):
    """Sends a tool that the agent does not have, and runs it."""

    def request(self, request: Any) -> Any:
        if isinstance(request, ModelRequest):
            return request.override(tools=[*request.tools, hidden])
        return request.override(tool=hidden) if request.tool_call["name"] == "hidden" else request


def test_a_tool_that_another_middleware_adds_runs(build: Build, ask: Ask) -> None:
    model = ScriptedModel([calls(("hidden", {"query": "figs"}), ("search", {"query": "pears"})), "Here."])

    values = ask(build(model, Adding(), tools=[search]), "figs and pears")

    assert results(values) == ["hidden figs", "found pears"]


def test_a_tool_that_nobody_runs_is_told_to_the_model(build: Build, ask: Ask) -> None:
    class Sending(Around):
        def request(self, request: ModelRequest) -> ModelRequest:
            return request.override(tools=[*request.tools, hidden])

    model = ScriptedModel([calls(("hidden", {"query": "figs"})), "Sorry."])

    # As beside any middleware around tools, which might have run it: without one, LangChain raises a `ValueError`.
    assert "hidden is not a valid tool" in results(ask(build(model, Sending(), tools=[search]), "figs"))[0]


def test_another_middleware_changes_arguments_and_results(build: Build, ask: Ask) -> None:
    class Louder(AroundTools):
        def request(self, request: Any) -> Any:
            return request.override(tool_call={**request.tool_call, "args": {"query": "figs"}})

        def result(self, result: Any) -> Any:
            return ToolMessage(result.text.upper(), tool_call_id=result.tool_call_id, name=result.name)

    model = ScriptedModel([calls(("search", {"query": "pears"})), "Here."])

    values = ask(build(model, Louder(), tools=[search]), "pears?")

    assert results(values) == ["FOUND FIGS"]
    assert texts(model.prompts[1])[-1] == "FOUND FIGS"


def test_a_result_without_the_tool_is_kept(build: Build, ask: Ask) -> None:
    class Cached(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> ToolMessage:
            return ToolMessage("cached", tool_call_id=request.tool_call["id"], name="search")

        async def awrap_tool_call(self, request: Any, handler: Any) -> ToolMessage:
            return self.wrap_tool_call(request, handler)

    model = ScriptedModel([calls(("search", {"query": "pears"})), "Here.", "Yes."])
    graph = build(model, Cached(), tools=[search])

    assert results(ask(graph, "pears?")) == ["cached"]
    assert ask(graph, "sure?")["messages"][-1].text == "Yes."


def test_a_failing_tool_fails_the_run_and_the_turn_can_go_on(build: Build, ask: Ask) -> None:
    failures = [RuntimeError("shop is closed")]

    @tool
    def enter() -> str:
        """Enter the shop."""
        if failures:
            raise failures.pop()
        return "inside"

    graph = build(ScriptedModel([calls(("enter", {})), "Here."]), tools=[enter])
    with pytest.raises(RuntimeError, match="closed"):
        ask(graph, {"messages": [HumanMessage("go in", id="q")]})

    values = ask(graph, {"messages": [HumanMessage("go in", id="q")]})

    assert results(values) == ["inside"]


def test_wrong_arguments_are_told_to_the_model(build: Build, ask: Ask) -> None:
    model = ScriptedModel([calls(("search", {"words": "pears"})), "Sorry."])

    values = ask(build(model, tools=[search]), "pears?")

    assert "query" in results(values)[0]
    assert values["messages"][-1].text == "Sorry."


def test_a_direct_result_ends_the_turn(build: Build, ask: Ask) -> None:
    @tool(return_direct=True)
    def receipt() -> str:
        """Print a receipt."""
        return "Receipt: 3 pears"

    model = ScriptedModel([calls(("receipt", {})), "Anything else?"])
    graph = build(model, tools=[receipt])

    assert ask(graph, "receipt please")["messages"][-1].text == "Receipt: 3 pears"
    assert ask(graph, "thanks")["messages"][-1].text == "Anything else?"
    assert texts(model.prompts[1])[-2:] == ["Receipt: 3 pears", "thanks"]


def test_parallel_tools_see_state_store_and_context(build: Build, ask: Ask, storage: Storage) -> None:
    seen = []

    @tool
    def look(place: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Look around."""
        seen.append((place, len(runtime.state["messages"]), runtime.context, runtime.store is not None))
        return place

    model = ScriptedModel([calls(("look", {"place": "shelf"}), ("look", {"place": "till"})), "Seen."])

    values = ask(build(model, tools=[look], context_schema=dict), "look", context={"tier": "gold"})

    assert sorted(seen) == [("shelf", 2, {"tier": "gold"}, True), ("till", 2, {"tier": "gold"}, True)]
    assert results(values) == ["shelf", "till"]


# Structured output


class Weather(BaseModel):
    """The weather somewhere."""

    city: str
    degrees: int


@dataclass
class WeatherData:
    """The weather somewhere."""

    city: str
    degrees: int


class WeatherDict(TypedDict):
    """The weather somewhere."""

    city: str
    degrees: int


WEATHER_JSON = {"title": "weather", **Weather.model_json_schema(), "description": "The weather somewhere."}
OSLO = {"city": "Oslo", "degrees": 3}


@pytest.mark.parametrize(
    ("schema", "name", "expected"),
    [
        (Weather, "Weather", Weather(**OSLO)),
        (WeatherData, "WeatherData", WeatherData("Oslo", 3)),
        (WeatherDict, "WeatherDict", OSLO),
        (WEATHER_JSON, "Weather", OSLO),
        (Weather | WeatherData, "WeatherData", WeatherData("Oslo", 3)),
    ],
    ids=["pydantic", "dataclass", "typed dict", "json schema", "union"],
)
def test_a_schema_is_answered_by_a_tool(build: Build, ask: Ask, schema: Any, name: str, expected: Any) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "title": name}
    model = ScriptedModel([calls((name, OSLO)), calls((name, OSLO))])
    graph = build(model, response_format=ToolStrategy(schema))

    assert [ask(graph, "Oslo?")["structured_response"] for _ in range(2)] == [expected, expected]


def test_a_schema_is_answered_by_the_provider(build: Build, ask: Ask) -> None:
    model = ScriptedModel(['{"city": "Oslo", "degrees": 3}'])

    values = ask(build(model, response_format=ProviderStrategy(Weather)), "Oslo?")

    assert values["structured_response"] == Weather(city="Oslo", degrees=3)


def test_an_answer_beside_a_tool_call_waits_for_the_tool(build: Build, ask: Ask) -> None:
    model = ScriptedModel([calls(("Weather", OSLO), ("search", {"query": "coats"})), "Take a coat."])

    values = ask(build(model, tools=[search], response_format=ToolStrategy(Weather)), "Oslo?")

    assert values["structured_response"] == Weather(city="Oslo", degrees=3)
    assert "found coats" in results(values)


def test_a_wrong_answer_that_may_not_be_asked_again_fails(build: Build, ask: Ask) -> None:
    model = ScriptedModel([calls(("Weather", {"city": "Oslo", "degrees": "cold"}))])
    graph = build(model, response_format=ToolStrategy(Weather, handle_errors=False))

    with pytest.raises(StructuredOutputError):
        ask(graph, "Oslo?")


def test_two_answers_at_once_are_asked_again(build: Build, ask: Ask) -> None:
    model = ScriptedModel([calls(("Weather", OSLO), ("Weather", OSLO)), calls(("Weather", OSLO))])

    values = ask(build(model, response_format=ToolStrategy(Weather)), "Oslo?")

    assert values["structured_response"] == Weather(city="Oslo", degrees=3)
    assert [message.type for message in model.prompts[1][-4:]] == ["human", "ai", "tool", "tool"]


# Streams


def test_values_and_events_of_the_app_are_streamed(build: Build) -> None:
    class Telling(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            runtime.stream_writer({"mine": len(state["messages"])})

    graph = build(ScriptedModel(["one two"]), Telling())

    parts = list(graph.stream({"messages": "hi"}, CONFIG, stream_mode=["values", "custom"]))

    mine = [part for mode, part in parts if mode == "custom" and "everthread" not in part]
    assert mine == [{"mine": 2}]
    assert [len(part["messages"]) for mode, part in parts if mode == "values"] == [1, 2]


async def test_events_name_the_tokens_of_the_reply_only(build: Build) -> None:
    graph = build(ScriptedModel([calls(("search", {"query": "pears"})), "one two"]), tools=[search])

    events = [event async for event in graph.astream_events({"messages": "hi"}, CONFIG, version="v2")]

    words = [one["data"]["chunk"].text for one in events if one["event"] == "on_chat_model_stream"]
    assert "".join(words) == "one two"
    assert [one["name"] for one in events if one["event"] == "on_tool_end"] == ["search"]
