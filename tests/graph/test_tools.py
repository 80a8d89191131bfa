"""Tool calls as tasks of their own: approvals, direct results, failures."""

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.open import Storage
from small_agent import CONFIG, calls

BOTH = [call("book", "one", what="flight"), call("book", "two", what="hotel")]
ran: list[str] = []


@tool
def book(what: str) -> str:
    """Book something."""
    answer = interrupt({"what": what})
    ran.append(what)
    return f"{what}: {answer}"


@tool
def note(text: str) -> str:
    """Write something down."""
    ran.append(text)
    return f"noted {text}"


@tool(return_direct=True)
def show(text: str) -> str:
    """Show something to the user."""
    return f"here it is: {text}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("the shelf is empty, says Bearer abc.def")


@tool
async def fetch(url: str) -> str:
    """Fetch a page."""
    return f"page {url}"


@tool
def rename(title: str, runtime: ToolRuntime) -> Command[Any]:
    """Change the state as a tool may."""
    return Command(update={"messages": [ToolMessage(f"renamed {title}", tool_call_id=str(runtime.tool_call_id))]})


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def graph_of(storage: Storage, *replies: Any, tools: Any = (book, note, show, fail, rename)) -> tuple[Any, Any]:
    model = ScriptedModel(list(replies))
    agent = Agent(name="test", title="Test", instructions="Be brief.", tools=list(tools))
    return build_graph(agent, model=model, storage=storage), model


def results(state: dict[str, Any]) -> list[str]:
    return [str(message.text) for message in state["messages"] if isinstance(message, ToolMessage)]


def ids(paused: dict[str, Any]) -> dict[str, str]:
    return {pending.value["what"]: pending.id for pending in paused["__interrupt__"]}


def test_two_approvals_of_one_step_get_an_answer_each(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(*BOTH), "done")
    asked = ids(graph.invoke({"messages": "book both"}, CONFIG))

    result = graph.invoke(Command(resume={asked["flight"]: "yes", asked["hotel"]: "no"}), CONFIG)

    assert results(result) == ["flight: yes", "hotel: no"]
    assert sorted(ran) == ["flight", "hotel"]


@pytest.mark.parametrize("order", [("flight", "hotel"), ("hotel", "flight")], ids=" then ".join)
def test_approvals_are_answered_one_by_one_in_any_order_after_a_restart(order: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph, _ = graph_of(storage, calls(*BOTH))
        asked = ids(graph.invoke({"messages": "book both"}, CONFIG))
    for number, what in enumerate(order):
        with open_storage(url) as storage:
            graph, _ = graph_of(storage, *(["done"] if number else []))
            result = graph.invoke(Command(resume={asked[what]: f"answer {what}"}), CONFIG)

    assert results(result) == ["flight: answer flight", "hotel: answer hotel"]
    assert ran == list(order)


async def test_two_approvals_of_one_step_get_an_answer_each_under_ainvoke(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, calls(*BOTH), "done")
        asked = ids(await graph.ainvoke({"messages": "book both"}, CONFIG))
        await graph.ainvoke(Command(resume={asked["hotel"]: "no"}), CONFIG)

        result = await graph.ainvoke(Command(resume={asked["flight"]: "yes"}), CONFIG)

    assert results(result) == ["flight: yes", "hotel: no"]


def test_what_ran_beside_an_approval_does_not_run_again(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("note", "n", text="seat"), BOTH[0]), "done")
    graph.invoke({"messages": "note and book"}, CONFIG)

    result = graph.invoke(Command(resume="yes"), CONFIG)

    assert results(result) == ["noted seat", "flight: yes"]
    assert ran == ["seat", "flight"]


def test_results_of_tools_that_return_directly_end_the_turn(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("show", "a", text="map"), call("show", "b", text="plan")), "next")

    result = graph.invoke({"messages": "show me"}, CONFIG)

    assert results(result) == ["here it is: map", "here it is: plan"]
    assert model.left == 1
    assert graph.invoke({"messages": "thanks"}, CONFIG)["messages"][-1].text == "next"


def test_a_direct_result_beside_another_one_goes_back_to_the_model(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("show", "a", text="map"), call("note", "b", text="seat")), "both done")

    assert graph.invoke({"messages": "go"}, CONFIG)["messages"][-1].text == "both done"


def test_a_tool_that_fails_is_logged_with_its_traceback_and_told_without_its_key(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    graph, model = graph_of(storage, calls(call("fail", "c")), "sorry")

    with caplog.at_level(logging.ERROR, logger="everthread"):
        graph.invoke({"messages": "go"}, CONFIG)

    told = model.prompts[1][-1].text
    assert told == "Error: the shelf is empty, says Bearer [key]. Correct the arguments, or tell the user."
    (logged,) = [entry for entry in caplog.records if entry.name == "everthread.nodes.tools"]
    assert logged.exc_info is not None
    assert isinstance(logged.exc_info[1], ValueError)


def test_arguments_that_the_model_got_wrong_are_no_error_in_the_log(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    graph, model = graph_of(storage, calls(call("note", "c")), "sorry")

    with caplog.at_level(logging.WARNING, logger="everthread"):
        graph.invoke({"messages": "go"}, CONFIG)

    assert "text: Field required" in model.prompts[1][-1].text
    assert not caplog.records


def test_a_tool_that_is_async_only_is_refused_under_invoke_before_the_model_is_called(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("fetch", "c", url="x")), "done", tools=[fetch])

    with pytest.raises(SettingsError, match="tool `fetch` is async only"):
        graph.invoke({"messages": "go"}, CONFIG)

    assert model.left == 2


async def test_a_tool_that_is_async_only_runs_under_ainvoke(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, calls(call("fetch", "c", url="x")), "done", tools=[fetch])

        result = await graph.ainvoke({"messages": "go"}, CONFIG)

    assert results(result) == ["page x"]


def test_a_command_of_a_tool_changes_the_state(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("rename", "c", title="Ada")), "done")

    assert results(graph.invoke({"messages": "go"}, CONFIG)) == ["renamed Ada"]


def test_a_result_that_cannot_be_kept_fails_the_run_and_is_no_news_for_the_model(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, model = graph_of(storage, calls(call("note", "c", text="word " * 900)), "done")

    def full(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr("everthread.nodes.tools.record", full)
        with pytest.raises(OSError, match="the disk is full"):
            graph.invoke({"messages": "go"}, CONFIG, context=Context(tool_output_tokens=64))

    assert model.left == 1
    assert graph.invoke(None, CONFIG)["messages"][-1].text == "done"


def test_the_plan_is_made_again_after_a_resume(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    context = Context(pins=("Never fly at night.",))
    with open_storage(url) as storage:
        graph, _ = graph_of(storage, calls(BOTH[0]))
        graph.invoke({"messages": "book it"}, CONFIG, context=context)
    with open_storage(url) as storage:
        graph, model = graph_of(storage, "done")
        graph.invoke(Command(resume="yes"), CONFIG, context=context)

    assert "Today is" in model.prompts[0][0].text
    assert any("Never fly at night." in message.text for message in model.prompts[0])


def test_no_run_returns_or_saves_its_plan(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")

    result = graph.invoke({"messages": [HumanMessage("hi")]}, CONFIG)

    assert set(result) == {"messages", "summary", "turns"}
    assert all("plan" not in state.values for state in graph.get_state_history(CONFIG))
    assert isinstance(result["messages"][-1], AIMessage)


@tool
def snap() -> list[Any]:
    """Take a picture, with a long text."""
    image = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    return [{"type": "text", "text": "word " * 5_000}, image]


def test_an_image_beside_a_long_text_stays_in_the_next_prompt(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("snap", "one")), "A dog.", tools=[snap])

    graph.invoke({"messages": "What is there?"}, CONFIG)

    text, image = model.prompts[-1][-1].content
    assert "tokens left out" in text["text"]
    assert image["base64"] == "iVBORw0KGgo="


def test_an_image_that_does_not_fit_is_named_in_its_place(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("snap", "one")), "A dog.", tools=[snap])

    graph.invoke({"messages": "What is there?"}, CONFIG, context=Context(window=1_600, max_output_tokens=100))

    assert model.prompts[-1][-1].text.startswith("[1 attachment left out]")
