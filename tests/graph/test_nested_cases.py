"""An agent as a node, a subgraph and a tool of another graph, with and without that graph's checkpointer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.models.scripted import ScriptedModel, Tools
from everthread.state import Note, namespaces
from everthread.state.marks import is_masked, marks
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript
from everthread.window.tokens import counter_for
from small_agent import AGENT, calls

PARENT: Any = {"configurable": {"thread_id": "parent"}}
SHAPES = ["node", "subgraph", "tool"]


@dataclass
class Theirs:
    """A context of the parent's own."""

    user_id: str = "ann"
    colour: str = "red"


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Invoke a graph, or await it."""

    async def run(graph: Any, graph_input: Any, config: Any = PARENT, **options: Any) -> Any:
        options = {"context": Theirs(), **options}
        if request.param == "sync":
            return graph.invoke(graph_input, config, **options)
        return await graph.ainvoke(graph_input, config, **options)

    return run


def child_of(storage: Storage | None, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    return build_graph(AGENT, model=model, summarizer="offline", storage=storage), model


def parent_of(shape: str, child: Any, checkpointer: Any = None, store: Any = None) -> Any:
    options = {"checkpointer": checkpointer, "store": store}
    if shape == "tool":

        @tool
        def ask(question: str) -> str:
            """Ask the other agent."""
            return str(child.invoke({"messages": question})["messages"][-1].text)

        @tool
        async def ask_async(question: str) -> str:
            """Ask the other agent."""
            return str((await child.ainvoke({"messages": question}))["messages"][-1].text)

        ask.coroutine = ask_async.coroutine  # type: ignore[attr-defined]
        model = ScriptedModel([calls(call("ask", "a", question="asked by the parent")), "passed on"])
        return create_agent(model, [ask], context_schema=Theirs, **options)
    graph = StateGraph(MessagesState, context_schema=Theirs)
    inner = child
    if shape == "subgraph":
        around = StateGraph(MessagesState, context_schema=Theirs)
        around.add_node("agent", child)
        around.add_edge(START, "agent")
        inner = around.compile()
    graph.add_node("child", inner)
    graph.add_edge(START, "child")
    return graph.compile(**options)


def know(storage: Storage, user_id: str, text: str) -> None:
    note = Note(
        id="n", text=text, keywords=["meals"], kind="preference", date="2026-01-01", scope="durable", sources=[]
    )
    storage.store.put(namespaces.notes(user_id), "n", note.value())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_checkpointer", [True, False])
async def test_the_child_answers_and_knows_the_user(
    storage: Storage, run: Any, shape: str, has_checkpointer: bool
) -> None:
    know(storage, "ann", "Ann is vegetarian.")
    child, model = child_of(storage, "hello")
    parent = parent_of(shape, child, *([storage.checkpointer, storage.store] if has_checkpointer else []))

    done = await run(parent, {"messages": "hi"})

    assert "hello" in [message.text for message in done["messages"]]
    assert "Ann is vegetarian." in model.prompts[0][0].text


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_checkpointer", [True, False])
async def test_only_a_node_that_shares_the_thread_owns_it(
    storage: Storage, run: Any, shape: str, has_checkpointer: bool
) -> None:
    child, _ = child_of(storage, "hello")
    parent = parent_of(shape, child, *([storage.checkpointer, storage.store] if has_checkpointer else []))

    await run(parent, hi(), PARENT if has_checkpointer else {})

    session = storage.store.get(namespaces.SESSIONS, "parent")
    owner = session.value["user_id"] if session else None
    assert owner == ("ann" if has_checkpointer and shape != "tool" else None)
    assert [item.key for item in storage.store.search(namespaces.SESSIONS)] == (["parent"] if owner else [])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_store", [True, False])
async def test_an_approval_inside_is_the_parents(storage: Storage, run: Any, shape: str, has_store: bool) -> None:
    child, model = child_of(storage, calls(call("approve", "b", what="a flight")), "booked")
    parent = parent_of(shape, child, InMemorySaver(), storage.store if has_store else None)

    paused = await run(parent, hi())
    done = await run(parent, Command(resume="yes"))

    assert [one.value for one in paused["__interrupt__"]] == [{"what": "a flight"}]
    assert model.prompts[-1][-1].text == "approved: yes"
    assert "booked" in [message.text for message in done["messages"]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_checkpointer", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_the_words_of_the_child_are_streamed(
    storage: Storage, shape: str, has_checkpointer: bool, is_async: bool
) -> None:
    child, _ = child_of(storage, "one two")
    parent = parent_of(shape, child, *([storage.checkpointer, storage.store] if has_checkpointer else []))
    options: Any = {"stream_mode": "messages", "subgraphs": True, "context": Theirs()}

    if is_async:
        parts = [part async for part in parent.astream(hi(), PARENT, **options)]
    else:
        parts = list(parent.stream(hi(), PARENT, **options))

    assert [chunk.text for _, (chunk, _) in parts if chunk.type == "AIMessageChunk"][:2] in (["one", " two"], ["", ""])
    assert {"one", " two"} <= {chunk.text for _, (chunk, _) in parts}


async def test_a_child_without_storage_keeps_its_prompt_inside_the_window(run: Any) -> None:
    child, model = child_of(None, *[calls(call("look", "c", n=400)), "found"] * 4)
    graph = StateGraph(MessagesState)
    graph.add_node("child", child)
    graph.add_edge(START, "child")
    parent = graph.compile(checkpointer=InMemorySaver())

    for place in range(4):
        done = await run(parent, {"messages": f"question {place}"}, context={"user_id": "ann", "window": 6_000})

    assert [len(message.text) > 8_000 for message in done["messages"] if message.type == "tool"] == [True] * 4
    assert max(map(counter_for("offline").messages, model.prompts)) < 6_000


def hi() -> dict[str, Any]:
    return {"messages": "hi"}


def long_thread(storage: Storage, *replies: Any) -> tuple[Any, ScriptedModel]:
    child, model = child_of(storage, *replies)
    graph = StateGraph(MessagesState)
    graph.add_node("child", child)
    graph.add_edge(START, "child")
    return graph.compile(checkpointer=storage.checkpointer, store=storage.store), model


async def test_a_node_leaves_the_messages_of_its_parent_as_they_are(storage: Storage, run: Any) -> None:
    texts = [f"question {place} " + "word " * 200 for place in range(12)]
    parent, model = long_thread(storage, *(f"answer {place} " + "word " * 200 for place in range(12)))

    for text in texts:
        done = await run(parent, {"messages": text}, context={"user_id": "ann", "window": 2_000})

    assert [message.text for message in done["messages"] if message.type == "human"] == texts
    assert len(done["messages"]) == 24
    assert max(map(counter_for("offline").messages, model.prompts)) < 2_000
    archived = transcript(storage.store, "parent", done["messages"])
    assert [message.text for message in archived] == [message.text for message in done["messages"]]


async def test_a_node_recalls_what_left_its_prompt_in_an_earlier_run(storage: Storage, run: Any) -> None:
    padding = ["padding " * 200] * 12
    parent, model = long_thread(storage, *["noted " + "word " * 150] * 14, "Behind the boiler.")
    said = ["Good morning.", "The spare key of flat 7 hangs behind the boiler.", *padding, "Where is the spare key?"]

    for text in said:
        done = await run(
            parent, {"messages": text}, context={"user_id": "ann", "window": 2_000, "policy": "token_budget"}
        )

    assert "behind the boiler" not in str(model.prompts[-2][1:])
    assert "behind the boiler" in str(model.prompts[-1][1:])
    assert "recalled" not in str(done["messages"])


def test_a_question_of_a_tool_becomes_no_note(storage: Storage) -> None:
    child, _ = child_of(storage, "hello")

    @tool
    def ask(question: str) -> str:
        """Ask the other agent."""
        return str(child.invoke({"messages": question})["messages"][-1].text)

    model = ScriptedModel([calls(call("ask", "a", question="Remember that I only eat meat.")), "done"])
    parent = create_agent(model, [ask], context_schema=Theirs, checkpointer=storage.checkpointer, store=storage.store)
    parent.invoke(hi(), PARENT, context=Theirs())

    assert storage.store.search(namespaces.session_notes("parent")) == []


async def test_a_named_thread_is_the_childs_also_without_a_checkpointer(storage: Storage, run: Any) -> None:
    child, _ = child_of(storage, "hello")

    await run(parent_of("node", child), hi())

    session = storage.store.get(namespaces.SESSIONS, "parent")
    assert session is not None
    assert session.value["user_id"] == "ann"


def test_a_guarded_parent_without_users_keeps_its_thread(storage: Storage) -> None:
    child, _ = child_of(storage, "one", "two")
    parent = storage.guard(parent_of("node", child, storage.checkpointer, storage.store))

    parent.invoke(hi(), PARENT)
    done = parent.invoke(hi(), PARENT)

    assert [message.text for message in done["messages"]] == ["hi", "one", "hi", "two"]


async def test_the_user_may_be_named_by_the_config(storage: Storage, run: Any) -> None:
    know(storage, "bob", "Bob is vegan.")
    child, model = child_of(storage, "hello")
    named = {"configurable": {"thread_id": "parent", "user_id": "bob"}}

    await run(parent_of("node", child, storage.checkpointer, storage.store), hi(), named, context=None)

    assert "Bob is vegan." in model.prompts[0][0].text


def test_a_tool_does_not_open_the_thread_of_another_user(storage: Storage) -> None:
    storage.store.put(namespaces.SESSIONS, "parent", {"thread_id": "parent", "user_id": "eve"})
    child, _ = child_of(storage, "hello")

    with pytest.raises(SettingsError, match="belongs to another user than 'ann'"):
        parent_of("tool", child, storage.checkpointer, storage.store).invoke(hi(), PARENT, context=Theirs())


class ReadsBack(ScriptedModel):
    """Reads what the first handle that it sees leads to."""

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        handle = next((str(marks(message)["handle"]) for message in messages if is_masked(message)), None)
        if handle is None or messages[-1].text.startswith("[tokens"):
            return super().next_reply(messages, tools)
        return calls(call("read_tool_output", "r", handle=handle, limit=50))


async def test_a_long_result_can_be_read_back_by_a_child_without_a_thread(storage: Storage, run: Any) -> None:
    model = ReadsBack([*(calls(call("look", str(place), n=300)) for place in range(2)), "found"])
    child = build_graph(AGENT, model=model, summarizer="offline", storage=storage)

    done = await run(parent_of("node", child), hi(), {}, context=Context(user_id="ann", window=4_000))

    assert done["messages"][-2].text.startswith("[tokens 0 to 50 of")
    assert "row 0 of the table" in done["messages"][-2].text


def fixed_child(storage: Storage | None, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    fixed = {"model": None, "pins": ["No smoking."]}
    return build_graph(AGENT, model=model, summarizer="offline", storage=storage, fixed=fixed), model


async def test_a_dial_that_an_agent_has_fixed_is_refused_inside_another_graph(storage: Storage, run: Any) -> None:
    child, model = fixed_child(storage, "hello")
    parent = parent_of("node", child, storage.checkpointer, storage.store)

    with pytest.raises(SettingsError, match="`model` is fixed by this deployment"):
        await run(parent, {"messages": "hi"}, context=Context("ann", model="offline"))

    assert not model.prompts


async def test_a_fixed_dial_has_its_value_inside_another_graph(storage: Storage, run: Any) -> None:
    child, model = fixed_child(storage, "hello")

    await run(parent_of("node", child, storage.checkpointer, storage.store), {"messages": "hi"})

    assert "No smoking." in str(model.prompts[0])


@pytest.mark.parametrize("context", [None, Context("ann")])
async def test_a_fixed_dial_has_its_value_in_a_bare_graph(context: Any, run: Any) -> None:
    graph, model = fixed_child(None, "hello")
    graph.store = InMemoryStore()

    await run(graph, {"messages": "hi"}, context=context)

    assert "No smoking." in str(model.prompts[0])


async def test_a_fixed_dial_is_refused_in_a_bare_graph(run: Any) -> None:
    graph, model = fixed_child(None, "hello")
    graph.store = InMemoryStore()

    with pytest.raises(SettingsError, match="is fixed by this deployment"):
        await run(graph, {"messages": "hi"}, context=Context("ann", model="offline"))

    assert not model.prompts
