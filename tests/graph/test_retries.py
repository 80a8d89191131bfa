"""A message that is sent again gets its own answer once, whatever was said on the thread meanwhile."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END
from langgraph.types import interrupt

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.errors import ModelError
from everthread.graph.resend import arrival
from everthread.models.scripted import CannedModel, ScriptedModel, Tools
from everthread.state import Agent, namespaces
from everthread.state.marks import RECALLED, marks, sequence, synthetic
from everthread.state.messages import reduce_messages
from everthread.storage.open import Storage
from everthread.storage.reading import read_thread

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SMALL = {"context_limit": 2, "keep_last_turns": 1}
"""Dials that keep one turn beside the first message."""


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of the table" for number in range(n))


@tool
def approve(what: str) -> str:
    """Ask the user."""
    return f"approved: {interrupt({'what': what})}"


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[look, approve])


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def graph_of(storage: Storage, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return build_graph(AGENT, model=model, summarizer="offline", storage=storage), model


def message(name: str, text: str | None = None) -> dict[str, Any]:
    return {"messages": [HumanMessage(text or f"question {name}", id=name)]}


def say(graph: Any, name: str, **dials: Any) -> list[str]:
    return [one.text for one in graph.invoke(message(name), CONFIG, context=Context(**dials))["messages"]]


def dies(graph: Any, given: dict[str, Any], steps: int, **dials: Any) -> None:
    """Run so many steps of a turn and no more."""
    wanted: dict[str, Any] | None = given
    for _ in range(steps):
        list(graph.stream(wanted, CONFIG, context=Context(**dials), interrupt_before="*"))
        wanted = None  # goes on where it stopped
        if not graph.get_state(CONFIG).next:
            return


def fails(graph: Any, name: str, **dials: Any) -> None:
    with pytest.raises(ModelError):
        say(graph, name, **dials)


def told(storage: Storage) -> list[str]:
    """Return every message of the thread, once its places and ids are found to be in order."""
    messages = read_thread(storage, "t").messages
    places = [sequence(one) for one in messages]
    assert places == sorted(set(places))
    assert len({one.id for one in messages}) == len(messages)
    for before, one in pairwise(messages):
        assert marks(one)["previous"] == before.id
    return [one.text for one in messages]


DOWN = ModelError("the provider is down", kind="server")


@pytest.mark.parametrize("steps", [1, 2])
def test_an_old_message_without_an_answer_is_answered_when_it_is_sent_again(storage: Storage, steps: int) -> None:
    graph, model = graph_of(storage, "zero", "to b", "to a")
    say(graph, "zero")
    dies(graph, message("a"), steps)
    say(graph, "b")

    assert say(graph, "a")[-2:] == ["question a", "to a"]
    assert told(storage) == ["question zero", "zero", "question b", "to b", "question a", "to a"]
    assert [one.text for one in model.prompts[-1][-2:]] == ["to b", "question a"]


@pytest.mark.parametrize("deaths", [1, 2])
@pytest.mark.parametrize("steps", [1, 2])
def test_words_that_are_sent_again_as_plain_text_are_one_turn(storage: Storage, steps: int, deaths: int) -> None:
    graph, _ = graph_of(storage, "to a")
    for _ in range(deaths):
        dies(graph, {"messages": "question a"}, steps)

    after = graph.invoke({"messages": "question a"}, CONFIG, context=Context())

    assert [one.text for one in after["messages"]] == ["question a", "to a"]
    assert after["turns"] == 1


def test_results_without_a_next_step_get_their_reply_when_the_message_is_sent_again(storage: Storage) -> None:
    calls = AIMessage("", tool_calls=[call("look", "c", n=1)])
    graph, model = graph_of(storage, calls, DOWN, "to a", "to b")
    fails(graph, "a")
    # As Ctrl-C leaves it between two steps of a run that saves at its end.
    graph.graph.update_state(CONFIG, None, as_node=END)

    assert say(graph, "a")[-1] == "to a"
    assert model.left == 1
    assert told(storage) == ["question a", "", "row 0 of the table", "to a"]
    assert say(graph, "b")[-1] == "to b"


def test_it_is_answered_once_however_often_it_is_sent(storage: Storage) -> None:
    graph, model = graph_of(storage, DOWN, "to b", "to a")
    fails(graph, "a")
    for name in ("b", "a", "a", "b", "a"):
        say(graph, name)

    assert model.left == 0
    assert told(storage) == ["question b", "to b", "question a", "to a"]


async def test_the_async_flavour_does_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_storage(url) as storage:
        graph, _ = graph_of(storage, DOWN, "to b", "to a")
        with pytest.raises(ModelError):
            await graph.ainvoke(message("a"), CONFIG)
        await graph.ainvoke(message("b"), CONFIG)
        done = await graph.ainvoke(message("a"), CONFIG)

    assert [one.text for one in done["messages"]] == ["question b", "to b", "question a", "to a"]


def test_a_storage_in_memory_does_the_same() -> None:
    with open_storage("sqlite://") as storage:
        graph, _ = graph_of(storage, DOWN, "to b", "to a")
        fails(graph, "a")
        say(graph, "b")

        assert say(graph, "a")[-2:] == ["question a", "to a"]


def test_what_its_turn_had_done_goes_with_it_and_is_not_done_again(storage: Storage) -> None:
    graph, model = graph_of(storage, AIMessage("", tool_calls=[call("look", "c", n=2)]), DOWN, "to b", "to a")
    fails(graph, "a")
    say(graph, "b")

    say(graph, "a")

    assert [one.type for one in model.prompts[-1][1:]] == ["human", "ai", "human", "ai", "tool"]
    assert [one.type for one in read_thread(storage, "t").messages] == ["human", "ai", "human", "ai", "tool", "ai"]


def test_a_long_result_of_its_turn_keeps_its_place_behind_its_call(storage: Storage) -> None:
    long = AIMessage("", tool_calls=[call("look", "c", n=300)])
    graph, _ = graph_of(storage, "zero", long, DOWN, "to b", "to a")
    say(graph, "zero")
    fails(graph, "a", tool_output_tokens=64)
    say(graph, "b")
    say(graph, "a")

    assert "row 299" in told(storage)[-2]


def test_a_call_that_was_never_answered_is_told_to_the_model(storage: Storage) -> None:
    graph, model = graph_of(storage, AIMessage("", tool_calls=[call("approve", "c", what="it")]), "to b", "to a")
    say(graph, "a")
    say(graph, "b")
    say(graph, "a")

    assert "interrupted before its result" in model.prompts[-1][-1].text
    assert model.left == 0


def test_it_is_answered_also_after_it_has_left_the_working_set(storage: Storage) -> None:
    graph, _ = graph_of(storage, "zero", DOWN, *"bcde", "to a")
    say(graph, "zero", **SMALL)
    fails(graph, "a", **SMALL)
    for name in "bcde":
        say(graph, name, **SMALL)
    assert "a" not in read_thread(storage, "t").working_set

    assert say(graph, "a", **SMALL)[-2:] == ["question a", "to a"]
    assert [one.text for one in read_thread(storage, "t").messages].count("question a") == 1


def test_a_message_that_left_the_working_set_with_its_answer_is_not_asked_again(storage: Storage) -> None:
    graph, model = graph_of(storage, *"abcde")
    for name in "abcde":
        say(graph, name, **SMALL)

    say(graph, "c", **SMALL)

    assert len(model.prompts) == 5
    assert told(storage) == [text for name in "abcde" for text in (f"question {name}", name)]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_every_message_gets_its_own_answer_also_the_first_one_whose_answer_has_left(
    asynchronous: bool, storage: Storage
) -> None:
    graph, model = graph_of(storage, *"abcde")
    for name in "abcde":
        say(graph, name, **SMALL)
    assert [*read_thread(storage, "t").working_set][:2] == ["a", "e"]

    for name in "abcde":
        work = graph.ainvoke if asynchronous else partial(asyncio.to_thread, graph.invoke)
        output = await work(message(name), CONFIG, context=Context(**SMALL))
        assert output["messages"][-1].text == name

    assert len(model.prompts) == 5


def test_once_answered_late_it_is_not_asked_again_from_the_transcript(storage: Storage) -> None:
    graph, model = graph_of(storage, "zero", DOWN, "b", "a", *"cdef")
    say(graph, "zero", **SMALL)
    fails(graph, "a", **SMALL)
    for name in "bacdef":
        say(graph, name, **SMALL)
    assert "a" not in read_thread(storage, "t").working_set

    say(graph, "a", **SMALL)

    assert model.left == 0
    assert told(storage).count("question a") == 1


@pytest.mark.parametrize("failed", [False, True], ids=["answered", "left without an answer"])
def test_other_words_under_a_known_id_are_another_message_with_an_answer_of_its_own(
    failed: bool, storage: Storage
) -> None:
    graph, _ = graph_of(storage, "to zero", DOWN if failed else "to a", "to b", "to other", "to c")
    say(graph, "zero")
    (fails if failed else say)(graph, "a")
    say(graph, "b")
    other = {"messages": [HumanMessage("other words", id="a")]}

    first = graph.invoke(other, CONFIG)["messages"][-1].text
    say(graph, "c")
    again = graph.invoke(other, CONFIG)["messages"][-1].text

    assert (first, again) == ("to other", "to other")
    asked = [one for one in told(storage) if one.startswith(("question", "other"))]
    assert asked == ["question zero", "question a", "question b", "other words", "question c"]


def test_messages_that_were_sent_together_stay_together(storage: Storage) -> None:
    graph, _ = graph_of(storage, DOWN, "to b", "to both")
    both = {"messages": [HumanMessage("first", id="a1"), HumanMessage("second", id="a2")]}
    with pytest.raises(ModelError):
        graph.invoke(both, CONFIG)
    say(graph, "b")

    graph.invoke(both, CONFIG)

    assert told(storage) == ["question b", "to b", "first", "second", "to both"]


def test_messages_that_were_answered_together_are_not_asked_again(storage: Storage) -> None:
    graph, model = graph_of(storage, "to both", "to b")
    both = {"messages": [HumanMessage("first", id="a1"), HumanMessage("second", id="a2")]}
    graph.invoke(both, CONFIG)
    say(graph, "b")

    graph.invoke(both, CONFIG)

    assert model.left == 0
    assert told(storage) == ["first", "second", "to both", "question b", "to b"]


def test_the_first_of_messages_that_were_answered_together_gets_their_answer(storage: Storage) -> None:
    graph, _ = graph_of(storage, "to both", "to b")
    graph.invoke({"messages": [HumanMessage("first", id="a1"), HumanMessage("second", id="a2")]}, CONFIG)
    say(graph, "b")

    assert graph.invoke({"messages": [HumanMessage("first", id="a1")]}, CONFIG)["messages"][-1].text == "to both"


@pytest.mark.parametrize(
    ("asynchronous", "earlier", "rows"),
    [(False, 0, 2), (False, 2, 900), (True, 0, 900), (True, 2, 2)],
    ids=["the first message, short", "a later one, long", "the first one, long, async", "a later one, short, async"],
)
async def test_a_tool_whose_result_was_saved_does_not_run_again_fourteen_turns_later(
    asynchronous: bool, earlier: int, rows: int, storage: Storage
) -> None:
    ran: list[int] = []

    @tool
    def count(n: int) -> str:
        """Count."""
        ran.append(n)
        return "\n".join(f"row {number} of the table" for number in range(n))

    agent = replace(AGENT, tools=[count])
    others = [f"other {number}" for number in range(14)]
    counts = AIMessage("", tool_calls=[call("count", "c", n=rows)])
    model = ScriptedModel(["before"] * earlier + [counts, DOWN, *others, "to a"])
    graph = build_graph(agent, model=model, summarizer="offline", storage=storage)

    async def send(name: str) -> list[BaseMessage]:
        work = graph.ainvoke if asynchronous else partial(asyncio.to_thread, graph.invoke)
        messages: list[BaseMessage] = (await work(message(name), CONFIG, context=Context(**SMALL)))["messages"]
        return messages

    for number in range(earlier):
        await send(f"before {number}")
    with pytest.raises(ModelError):
        await send("a")
    for name in others:
        await send(name)
    assert all(one.type != "tool" for one in read_thread(storage, "t").working_set.values())

    answered = await send("a")

    assert answered[-1].text == "to a"
    assert ran == [rows]
    shown = model.prompts[-1]
    assert [one.text[:5] for one in shown if one.type == "tool"] == ["row 0"]
    assert [one.type for one in read_thread(storage, "t").messages[-4:]] == ["human", "ai", "tool", "ai"]
    assert told(storage).count("question a") == 1


def test_what_was_recalled_for_the_next_question_is_no_part_of_an_answer(storage: Storage) -> None:
    recalled = synthetic(RECALLED, "Earlier messages", before="b", shows=[], notes=[])
    asked = [HumanMessage("question a", id="a"), AIMessage("to a", id="1")]
    later = [HumanMessage("question b", id="b"), AIMessage("to b", id="2")]
    messages = reduce_messages([], [*asked, *later, recalled])
    assert [one.id for one in messages] == ["a", "1", recalled.id, "b", "2"]

    come = arrival(message("a"), {"messages": messages}, storage.store, "t", is_cut_off=False)

    assert [one.id for one in come.answer] == ["a", "1"]


def test_a_result_beside_an_approval_that_is_given_up_keeps_its_place(storage: Storage) -> None:
    both = AIMessage("", tool_calls=[call("approve", "c1", what="x"), call("look", "c2", n=300)])
    graph, _ = graph_of(storage, both, "to b")
    graph.invoke(message("a"), CONFIG)

    say(graph, "b")

    messages = read_thread(storage, "t").messages
    assert [one.type for one in messages] == ["human", "ai", "tool", "human", "ai"]
    assert [sequence(one) for one in messages] == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_turn_that_ends_with_the_result_of_a_tool_does_not_run_it_again(
    asynchronous: bool, storage: Storage
) -> None:
    ran: list[str] = []

    @tool(return_direct=True)
    def order(what: str) -> str:
        """Order something."""
        ran.append(what)
        return f"ordered {what}"

    agent = replace(AGENT, tools=[order])
    replies = [AIMessage("", tool_calls=[call("order", "c", what="tea")]), "to b"]
    graph = build_graph(agent, model=ScriptedModel(replies), summarizer="offline", storage=storage)

    async def send(name: str) -> str:
        work = graph.ainvoke if asynchronous else partial(asyncio.to_thread, graph.invoke)
        output = await work(message(name), CONFIG)
        return str(output["messages"][-1].text)

    assert [await send(name) for name in "aaba"] == ["ordered tea", "ordered tea", "to b", "ordered tea"]
    assert ran == ["tea"]


def test_a_turn_that_failed_with_the_end_of_its_session_is_answered_before_the_session_ends(storage: Storage) -> None:
    graph, _ = graph_of(storage, DOWN, "to a")
    last = {**message("a"), "end_session": True}
    with pytest.raises(ModelError):
        graph.invoke(last, CONFIG)

    done = graph.invoke(last, CONFIG)

    session = storage.store.get(namespaces.SESSIONS, "t")
    assert done["messages"][-1].text == "to a"
    assert session is not None
    assert session.value["consolidated_turns"] == session.value["turns"] == 1


def test_an_old_message_that_also_ends_the_session_is_answered_first(storage: Storage) -> None:
    graph, _ = graph_of(storage, DOWN, "to b", "to a")
    fails(graph, "a")
    say(graph, "b")

    done = graph.invoke({**message("a"), "end_session": True}, CONFIG)

    session = storage.store.get(namespaces.SESSIONS, "t")
    assert done["messages"][-1].text == "to a"
    assert session is not None
    assert session.value["consolidated_turns"] == session.value["turns"] == 2


def test_the_end_of_a_session_over_a_failed_turn_leaves_it_answerable(storage: Storage) -> None:
    graph, _ = graph_of(storage, DOWN, "to b", "to a")
    fails(graph, "a")
    graph.invoke({"end_session": True}, CONFIG)
    say(graph, "b")

    assert say(graph, "a")[-2:] == ["question a", "to a"]


def test_a_thread_whose_runs_end_well_keeps_no_record_of_it(storage: Storage) -> None:
    graph, _ = graph_of(storage, DOWN, "to a", "to b")
    fails(graph, "a")
    say(graph, "a")
    say(graph, "b")

    assert storage.store.search(namespaces.thread("t", "unanswered")) == []


NOTES: dict[str, Any] = {"distillation": ("turn",)}


@pytest.mark.parametrize("name", ["a", "b"], ids=["the same message", "another message"])
def test_notes_that_a_crash_cut_off_behind_the_reply_are_made_before_the_next_message(
    storage: Storage, name: str
) -> None:
    graph, _ = graph_of(storage, "noted", "to b")
    asked = message("a", "I always prefer aisle seats.")
    list(graph.stream(asked, CONFIG, context=Context(**NOTES), interrupt_before=["distill_notes"]))

    parts = graph.stream(asked if name == "a" else message("b"), CONFIG, context=Context(**NOTES), stream_mode="values")
    last = list(parts)[-1]["messages"][-1].text

    notes = storage.store.search(namespaces.session_notes("t"))
    assert [note.value["text"] for note in notes] == ["Always prefers aisle seats."]
    assert last == ("noted" if name == "a" else "to b")


class Echo(CannedModel):
    """Calls a tool on every second question and then repeats it."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        place = max(at for at, one in enumerate(messages) if isinstance(one, HumanMessage))
        asked = str(messages[place].text)
        if asked.endswith("!") and not any(isinstance(one, AIMessage) for one in messages[place:]):
            return AIMessage("", tool_calls=[call("look", f"c-{asked}", n=3)])
        return AIMessage(f"re: {asked}")


ENOUGH = 9
"""Steps that are enough for any turn."""

SENT = st.lists(
    st.tuples(st.sampled_from(["a", "b!", "c", "d!"]), st.sampled_from([1, 2, 3, 4, 5, ENOUGH, ENOUGH])),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("dials", [{}, SMALL])
@settings(max_examples=12)
@given(sent=SENT)
def test_whoever_sends_what_in_whatever_order_and_dies_gets_each_answer_once(
    dials: dict[str, Any], sent: list[tuple[str, int]]
) -> None:
    names = list(dict.fromkeys(name for name, _ in sent))
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)
        for name, steps in [*sent, *((name, ENOUGH) for name in names)]:
            dies(graph, message(name, name), steps, **dials)

        messages = read_thread(storage, "t").messages
        assert sorted(one.text for one in messages if one.type == "human") == sorted(names)
        assert sorted(one.text for one in messages if one.text.startswith("re: ")) == sorted(f"re: {n}" for n in names)
        assert told(storage)
