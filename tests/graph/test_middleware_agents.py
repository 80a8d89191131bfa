"""What an agent of `create_agent` does, with the middleware added: output, jumps, streams, subagents."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, Required

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware, hook_config
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage, convert_to_messages
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from everthread import EverthreadMiddleware, EverthreadState, open_storage
from everthread.ledger.record import events
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.state.marks import was_refetched
from everthread.storage.open import Storage
from everthread.window.tokens import counter_for

CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "ann"}}

Ask = Callable[..., dict[str, Any]]


class Weather(BaseModel):
    """The weather somewhere."""

    city: str
    degrees: int


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as opened:
        yield opened


@pytest.fixture(params=["invoke", "ainvoke"])
def ask(request: pytest.FixtureRequest) -> Ask:
    def send(graph: Any, payload: Any, **options: Any) -> dict[str, Any]:
        payload = {"messages": [HumanMessage(payload)]} if isinstance(payload, str) else payload
        if request.param == "ainvoke":
            return dict(asyncio.run(graph.ainvoke(payload, CONFIG, **options)))
        return dict(graph.invoke(payload, CONFIG, **options))

    return send


def build(storage: Storage, model: Any, *more: Any, tools: Sequence[Any] = (), **options: Any) -> Any:
    middleware = [*more, EverthreadMiddleware(window=8_000, summarizer="offline")]
    agent = create_agent(
        model, list(tools), middleware=middleware, checkpointer=storage.checkpointer, store=storage.store, **options
    )
    return storage.guard(agent)


def calls(*named: tuple[str, dict[str, Any]]) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"{name}-{i}"} for i, (name, args) in enumerate(named)]
    )


def test_structured_output_by_a_tool_is_returned(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel([calls(("Weather", {"city": "Oslo", "degrees": 3}))])

    values = ask(build(storage, model, response_format=ToolStrategy(Weather)), "How is it in Oslo?")

    assert values["structured_response"] == Weather(city="Oslo", degrees=3)


def test_structured_output_that_is_wrong_is_asked_for_again(storage: Storage, ask: Ask) -> None:
    wrong, right = {"city": "Oslo", "degrees": "cold"}, {"city": "Oslo", "degrees": 3}
    model = ScriptedModel([calls(("Weather", wrong)), calls(("Weather", right))])

    values = ask(build(storage, model, response_format=ToolStrategy(Weather)), "How is it in Oslo?")

    assert values["structured_response"] == Weather(city="Oslo", degrees=3)
    assert [message.type for message in model.prompts[1][-3:]] == ["human", "ai", "tool"]


def test_a_turn_goes_on_behind_structured_output(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel([calls(("Weather", {"city": city, "degrees": 3})) for city in ("Oslo", "Rome")])
    graph = build(storage, model, response_format=ToolStrategy(Weather))
    ask(graph, "How is it in Oslo?")

    values = ask(graph, "And in Rome?")

    assert values["structured_response"].city == "Rome"
    assert any(isinstance(message, ToolMessage) for message in model.prompts[1])


def test_the_schema_of_structured_output_is_not_made_at_every_call(storage: Storage, ask: Ask) -> None:
    made = []

    class Counted(Weather):
        @classmethod
        def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
            made.append(cls)
            return super().model_json_schema(*args, **options)

    model = ScriptedModel([calls(("Counted", {"city": "Oslo", "degrees": 3})) for _ in range(3)])
    graph = build(storage, model, response_format=ToolStrategy(Counted))
    ask(graph, "How is it in Oslo?")
    once = len(made)

    for _ in range(2):
        ask(graph, "And now?")

    assert len(made) == once


def test_a_hook_that_jumps_to_the_end_does_so(storage: Storage, ask: Ask) -> None:
    class Closed(AgentMiddleware):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"messages": [AIMessage("We are closed.")], "jump_to": "end"}

    model = ScriptedModel(["never"])

    values = ask(build(storage, model, Closed()), "Are you open?")

    assert values["messages"][-1].text == "We are closed."
    assert not model.prompts


def test_state_keys_of_the_agent_stay(storage: Storage, ask: Ask) -> None:
    class Shop(AgentState[Any]):
        basket: NotRequired[list[str]]

    @tool
    def put(item: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Put something into the basket."""
        basket = [*runtime.state.get("basket", []), item]
        done = ToolMessage("done", tool_call_id=runtime.tool_call_id)
        return Command(update={"basket": basket, "messages": [done]})

    model = ScriptedModel([calls(("put", {"item": "pear"})), "Yes.", calls(("put", {"item": "fig"})), "Yes."])
    graph = build(storage, model, tools=[put], state_schema=Shop)
    ask(graph, "a pear, please")

    assert ask(graph, "and a fig")["basket"] == ["pear", "fig"]


def test_a_tool_sees_the_state_and_the_context_of_its_own_app(storage: Storage, ask: Ask) -> None:
    seen: list[Any] = []

    @tool
    def look(runtime: ToolRuntime[Any, Any]) -> str:
        """Look at the run."""
        seen.append((sorted(runtime.state), runtime.context))
        return "seen"

    model = ScriptedModel([calls(("look", {})), "Done."])

    ask(build(storage, model, tools=[look], context_schema=dict), "look", context={"tier": "gold"})

    assert seen == [(["messages"], {"tier": "gold"})]


def appended(messages: list[Any], writes: list[Any]) -> list[Any]:
    """Add messages and replace those of a known id, as a deep agent's channel does: one without an id gets none."""
    for message in convert_to_messages(
        [one for write in writes for one in (write if isinstance(write, list) else [write])]
    ):
        places = [place for place, old in enumerate(messages) if message.id is not None and old.id == message.id]
        messages = [one for place, one in enumerate(messages) if place not in places]
        if not isinstance(message, RemoveMessage):
            messages.insert(places[0] if places else len(messages), message)
    return messages


class DeltaState(AgentState[Any]):
    """State of an agent that keeps inputs without ids as they came."""

    messages: Required[Annotated[list[AnyMessage], DeltaChannel(appended)]]


@pytest.fixture
def unnamed(storage: Storage, ask: Ask) -> tuple[ScriptedModel, list[AnyMessage]]:
    """Return the model and the state of a thread whose user's messages have no ids, without a guard."""
    model = ScriptedModel(["Yes. " * 200] * 20)
    agent = create_agent(
        model,
        middleware=[EverthreadMiddleware(window=4_000, summarizer="offline")],
        state_schema=DeltaState,
        checkpointer=storage.checkpointer,
        store=storage.store,
    )
    for number in range(20):
        values = ask(agent, {"messages": f"question {number}"})
    return model, values["messages"]


def test_messages_without_ids_stay_in_the_state_as_they_are(unnamed: tuple[ScriptedModel, list[AnyMessage]]) -> None:
    texts = [message.text for message in unnamed[1]]

    assert texts == [text for number in range(20) for text in (f"question {number}", "Yes. " * 200)]


def test_messages_without_ids_are_sent_once_and_trimmed(unnamed: tuple[ScriptedModel, list[AnyMessage]]) -> None:
    for number, prompt in enumerate(unnamed[0].prompts):
        assert sum(message.text == f"question {number}" for message in prompt) == 1
        assert counter_for(None).messages(prompt) < 4_000


ROWS = "a row of the table\n" * 600


def test_a_long_result_for_the_user_stays_whole(storage: Storage, ask: Ask) -> None:
    @tool(return_direct=True)
    def report() -> str:
        """Print a report."""
        return ROWS

    model = ScriptedModel([calls(("report", {}))])

    values = ask(build(storage, model, tools=[report]), "report")

    assert values["messages"][-1].text == ROWS


def test_a_long_result_in_a_command_leaves_a_handle(storage: Storage, ask: Ask) -> None:
    @tool
    def look(runtime: ToolRuntime) -> Command[Any]:
        """Look something up."""
        return Command(update={"messages": [ToolMessage(ROWS, tool_call_id=runtime.tool_call_id)]})

    model = ScriptedModel([calls(("look", {})), "Seen."])

    values = ask(build(storage, model, tools=[look]), "look")

    assert "read_tool_output" in model.prompts[1][-1].text
    assert values["messages"][2].text == model.prompts[1][-1].text


class CountedByPlace(AgentState[Any]):
    """The state of a deep agent whose own summarizer has run."""

    _summarization_event: NotRequired[Any]


def test_a_long_result_leaves_a_handle_where_another_summarizer_counts_by_place(storage: Storage, ask: Ask) -> None:
    @tool
    def look() -> str:
        """Look something up."""
        return ROWS

    model = ScriptedModel([calls(("look", {})), "Seen."])
    state = {"messages": [HumanMessage("look")], "_summarization_event": {"cutoff_index": 0}}

    values = ask(build(storage, model, tools=[look], state_schema=CountedByPlace), state)

    assert [message.type for message in values["messages"]] == ["human", "ai", "tool", "ai"]
    assert "read_tool_output" in values["messages"][2].text


def test_a_result_that_was_fetched_twice_is_marked_in_the_state(storage: Storage, ask: Ask) -> None:
    @tool
    def look() -> str:
        """Look something up."""
        return "a row of the table"

    dials = {"policy": "sliding_window", "keep_last_turns": 1, "learn_from_refetches": True}
    model = ScriptedModel([calls(("look", {})), "Seen.", "Yes.", calls(("look", {})), "Seen."])
    agent = build(storage, model, tools=[look]).with_config({"configurable": {"everthread": dials}})

    for question in ("look", "next", "look again"):
        values = ask(agent, question)

    (result,) = (message for message in values["messages"] if isinstance(message, ToolMessage))
    assert was_refetched(result)


def test_a_result_that_was_fetched_twice_is_marked_also_when_its_first_call_fails(storage: Storage, ask: Ask) -> None:
    @tool
    def look() -> str:
        """Look something up."""
        return "a row of the table"

    dials = {"policy": "sliding_window", "keep_last_turns": 1, "learn_from_refetches": True}
    replies: list[Any] = [calls(("look", {})), "Seen.", "Yes.", calls(("look", {})), RuntimeError("no power"), "Seen."]
    retry = ModelRetryMiddleware(initial_delay=0, jitter=False)
    agent = build(storage, ScriptedModel(replies), retry, tools=[look])
    agent = agent.with_config({"configurable": {"everthread": dials}})

    for question in ("look", "next", "look again"):
        values = ask(agent, question)

    (result,) = (message for message in values["messages"] if isinstance(message, ToolMessage))
    assert was_refetched(result)


def test_a_long_result_is_offloaded_once_however_often_its_call_fails(storage: Storage, ask: Ask) -> None:
    @tool
    def look() -> str:
        """Look something up."""
        return ROWS

    model = ScriptedModel([calls(("look", {})), *[RuntimeError("no power")] * 2, "Seen."])

    ask(build(storage, model, ModelRetryMiddleware(initial_delay=0, jitter=False), tools=[look]), "look")

    assert [event.event for event in events(storage.store, "t")].count("offloaded") == 1


def test_a_note_is_saved_by_the_tool_of_ours(storage: Storage, ask: Ask) -> None:
    note = {"text": "Prefers aisle seats.", "keywords": ["seat"]}
    model = ScriptedModel([calls(("save_memory_note", note)), "Noted.", "Yes."])
    graph = build(storage, model)

    values = ask(graph, "I always prefer aisle seats.")

    result = next(message for message in values["messages"] if isinstance(message, ToolMessage))
    assert result.text == "Saved and kept after this session: Prefers aisle seats."


@pytest.mark.parametrize(
    ("name", "args", "answer"),
    [
        ("read_tool_output", {"handle": "h0"}, "there is no handle 'h0'"),
        ("recall_history", {"query": "seat", "after": "last week"}, "`after` must be a day"),
    ],
)
def test_what_a_tool_of_ours_refuses_is_told_to_the_model(
    storage: Storage, ask: Ask, name: str, args: dict[str, Any], answer: str
) -> None:
    model = ScriptedModel([calls((name, args)), "I look again."])

    values = ask(build(storage, model), "Which seat was it?")

    assert answer in next(message.text for message in values["messages"] if message.type == "tool")
    assert values["messages"][-1].text == "I look again."


def test_an_interrupt_in_a_tool_is_resumed(storage: Storage, ask: Ask) -> None:
    @tool
    def sign(paper: str) -> str:
        """Sign a paper."""
        return f"{paper}: {interrupt(f'Sign {paper}?')}"

    model = ScriptedModel([calls(("sign", {"paper": "lease"}), ("sign", {"paper": "will"})), "Both are answered."])
    graph = build(storage, model, tools=[sign])

    asked = ask(graph, "sign both")["__interrupt__"]
    values = ask(graph, Command(resume={one.id: f"re {one.value}" for one in asked}))

    results = [message.text for message in values["messages"] if isinstance(message, ToolMessage)]
    assert results == ["lease: re Sign lease?", "will: re Sign will?"]


def test_tokens_are_streamed_and_updates_are_mappings(storage: Storage) -> None:
    graph = build(storage, ScriptedModel(["one two three"]))

    parts = list(graph.stream({"messages": "hi"}, CONFIG, stream_mode=["messages", "updates"]))

    words = [part[0].text for mode, part in parts if mode == "messages" and part[0].text]
    updates = [part for mode, part in parts if mode == "updates"]
    assert "".join(words) == "one two three"
    assert len(words) == 3
    assert [list(update) for update in updates] == [["model"]]
    assert updates[0]["model"]["messages"][0].text == "one two three"


async def test_tokens_are_streamed_asynchronously(storage: Storage) -> None:
    graph = build(storage, ScriptedModel(["one two three"]))

    parts = [part async for part in graph.astream({"messages": "hi"}, CONFIG, stream_mode="messages")]

    assert "".join(message.text for message, _ in parts) == "one two three"


@pytest.mark.parametrize("state", [None, EverthreadState])
def test_an_agent_that_is_a_tool_of_another_is_only_trimmed(storage: Storage, ask: Ask, state: Any) -> None:
    inner_model = ScriptedModel(["Found."])
    inner = create_agent(inner_model, [], middleware=[EverthreadMiddleware(window=8_000)], state_schema=state)

    @tool
    def research(question: str) -> str:
        """Research something."""
        return str(inner.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text)

    model = ScriptedModel([calls(("research", {"question": "why?"})), "Because."])

    values = ask(build(storage, model, tools=[research]), "Find out why.")

    assert [message.text for message in values["messages"]][-2:] == ["Found.", "Because."]
    assert [message.text for message in inner_model.prompts[0]] == ["why?"]


def test_what_another_model_asks_an_agent_is_no_note_of_the_user(storage: Storage, ask: Ask) -> None:
    note = {"text": "Always ship to the depot.", "keywords": ["shipping"]}
    inner_model = ScriptedModel([calls(("save_memory_note", note)), "Done."])
    inner = create_agent(inner_model, [], middleware=[EverthreadMiddleware(window=8_000)])

    @tool
    def ask_shop(question: str) -> str:
        """Ask the shop."""
        return str(inner.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text)

    model = ScriptedModel([calls(("ask_shop", {"question": "Always ship to the depot."})), "It is on its way."])

    ask(build(storage, model, tools=[ask_shop]), "Where is my order?")

    assert storage.store.search(namespaces.thread("t", "notes")) == []
    assert inner_model.prompts[-1][-1].text == "Not saved: this conversation has no store."
