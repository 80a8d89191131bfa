"""Threads that another graph made: they stay as they are, whoever opens the database."""

import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NotRequired

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.structured_output import ToolStrategy
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from pydantic import BaseModel

from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError, StorageError
from everthread.models.scripted import ScriptedModel
from everthread.storage import pruning
from everthread.storage.open import Storage
from small_agent import AGENT
from stock_app import APPROVAL, THREADS, app, call, config, make, rows

ANN = Context(user_id="ann")


@pytest.fixture(scope="module", params=["sync", "async"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what the app left behind once; tests change copies."""
    made = tmp_path_factory.mktemp("stock") / "app.db"
    make(made, is_async=request.param == "async")
    return made


@pytest.fixture
def path(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copy(template, tmp_path))


def opened(path: Path) -> Storage:
    return open_storage(f"sqlite:///{path}", lock_timeout_seconds=0)


def ours(storage: Storage, *replies: Any) -> Any:
    return build_graph(AGENT, model=ScriptedModel(list(replies)), summarizer="offline", storage=storage)


def texts(graph: Any, thread_id: str) -> list[str]:
    return [str(message.text) for message in graph.get_state(config(thread_id)).values["messages"]]


def test_opening_a_database_changes_nothing_of_another_app(path: Path) -> None:
    before = rows(path)

    with opened(path):
        pass

    assert rows(path) == before


@pytest.mark.parametrize("thread_id", [*THREADS])
def test_our_graph_refuses_a_thread_of_another_one_and_changes_nothing(path: Path, thread_id: str) -> None:
    before = rows(path)

    with opened(path) as storage:
        with pytest.raises(SettingsError, match=f"everthread adopt {thread_id} --into NEW"):
            ours(storage).invoke({"messages": "hi"}, config(thread_id), context=ANN)
        assert storage.store.search(("sessions",)) == []

    assert rows(path) == before


async def test_our_graph_refuses_asynchronously_too(path: Path) -> None:
    before = rows(path)

    with opened(path) as storage:
        with pytest.raises(SettingsError, match="was made by another graph"):
            await ours(storage).ainvoke({"messages": "hi"}, config("chat"), context=ANN)
        assert storage.store.search(("sessions",)) == []

    assert rows(path) == before


@pytest.mark.parametrize("sent", [Command(resume={"decisions": [{"type": "approve"}]}), None], ids=["resume", "go on"])
def test_an_approval_of_another_graph_cannot_be_answered_by_ours(path: Path, sent: Any) -> None:
    before = rows(path)

    with opened(path) as storage, pytest.raises(SettingsError, match="its open approval"):
        ours(storage).invoke(sent, config(APPROVAL), context=ANN)

    assert rows(path) == before


def test_the_reason_names_what_would_be_lost(path: Path) -> None:
    with opened(path) as storage, pytest.raises(SettingsError) as refused:
        ours(storage).invoke({"messages": "hi"}, config(APPROVAL), context=ANN)

    assert "would drop its state key 'budget', its state key 'visited' and its open approval" in str(refused.value)


def test_our_graph_edits_no_thread_of_another_one(path: Path) -> None:
    before = rows(path)

    with opened(path) as storage, pytest.raises(SettingsError, match="was made by another graph"):
        ours(storage).update_state(config("chat"), {"messages": "planted"})

    assert rows(path) == before


def test_an_older_checkpoint_of_ours_is_no_way_into_a_thread_that_another_graph_went_on_with(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as storage:
        graph = ours(storage, "fine")
        graph.invoke({"messages": "hi"}, config("t"), context=ANN)
        here = graph.get_state(config("t")).config
        app(storage.checkpointer, ["stock"]).invoke({"messages": "there", "budget": 5}, config("t"))

        with pytest.raises(SettingsError, match="its state key 'budget'"):
            graph.invoke({"messages": "again"}, here, context=ANN)


def test_a_thread_of_ours_that_was_edited_by_hand_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as storage:
        graph = ours(storage, "fine", "finer")
        graph.invoke({"messages": "hi"}, config("t"), context=ANN)
        graph.graph.update_state(config("t"), {"moved": ""})  # past the guard, as a script may

        graph.invoke({"messages": "there"}, config("t"), context=ANN)

        assert texts(graph, "t") == ["hi", "fine", "there", "finer"]


def test_a_new_thread_of_ours_may_begin_with_an_edit(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as storage:
        graph = ours(storage, "fine")
        graph.update_state(config("t"), {"messages": [("user", "one"), ("ai", "two")]}, as_node="consolidate")

        graph.invoke({"messages": "three"}, config("t"), context=ANN)

        assert texts(graph, "t") == ["one", "two", "three", "fine"]


def test_a_guard_around_the_app_prunes_none_of_the_checkpoints_that_the_app_wrote(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "RUNS_BETWEEN", 4)
    before = rows(path)
    turns = 6

    with opened(path) as storage:
        guarded = storage.guard(app(storage.checkpointer, ["more"] * turns, store=storage.store))
        for turn in range(turns):
            guarded.invoke({"messages": f"later {turn}"}, config("chat"), context={"keep_checkpoints": 1})
        storage.checkpointer.prune_turns("chat", 1)
        left = [state.config["configurable"]["checkpoint_id"] for state in guarded.get_state_history(config("chat"))]

    assert [row for row in before if row not in rows(path)] == []
    assert len(left) < 12 * 3 + 3 * turns


def test_a_guard_around_the_app_keeps_keys_and_approval(path: Path) -> None:
    with opened(path) as storage:
        guarded = storage.guard(app(storage.checkpointer, ["Ordered."], store=storage.store))
        guarded.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config(APPROVAL))
        values = guarded.get_state(config(APPROVAL)).values

    assert (values["budget"], values["visited"]) == (100, ["door"])
    assert [str(message.text) for message in values["messages"][-2:]] == ["ordered: lamp", "Ordered."]


def test_our_graph_refuses_a_thread_that_a_guarded_app_has_gone_on_with(path: Path) -> None:
    with opened(path) as storage:
        storage.guard(app(storage.checkpointer, ["more"], store=storage.store)).invoke(
            {"messages": "go on"}, {"configurable": {"thread_id": "chat", "user_id": "ann"}}
        )
        before = rows(path)
        with pytest.raises(SettingsError, match="was made by another graph"):
            ours(storage).invoke({"messages": "hi"}, config("chat"), context=ANN)

    assert rows(path) == before


def test_an_app_that_calls_a_tool_goes_on_under_a_guard(path: Path) -> None:
    with opened(path) as storage:
        replies = [call("spend", "c9", amount=10), "10 EUR are left."]
        guarded = storage.guard(app(storage.checkpointer, replies, store=storage.store))
        guarded.invoke({"messages": "Spend it."}, config("both"))
        values = guarded.get_state(config("both")).values

    assert (values["budget"], values["visited"]) == (10, ["door", "till", "till"])


class Customer(BaseModel):
    name: str


@dataclass
class Lamp:
    colour: str


class Size(Enum):
    LARGE = "large"


class Typed(AgentState[Any]):
    customer: NotRequired[Customer]
    lamps: NotRequired[list[Lamp]]
    size: NotRequired[Size]


TYPED: Any = {"customer": Customer(name="Ann"), "lamps": [Lamp("red"), Lamp("blue")], "size": Size.LARGE}


def typed_app(checkpointer: Any, *replies: Any) -> Any:
    return create_agent(ScriptedModel(list(replies)), state_schema=Typed, checkpointer=checkpointer)


def typed_thread(path: Path) -> None:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        typed_app(saver, "fine").invoke({"messages": "hi", **TYPED}, config("t"))


def typed_values(path: Path) -> dict[str, Any]:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        values = typed_app(saver).get_state(config("t")).values
    return {name: values[name] for name in TYPED}


def test_values_of_types_that_a_guarded_graph_declares_keep_them(tmp_path: Path) -> None:
    typed_thread(tmp_path / "a.db")
    with opened(tmp_path / "a.db") as storage:
        storage.guard(typed_app(storage.checkpointer, "more")).invoke({"messages": "go on"}, config("t"))

    assert typed_values(tmp_path / "a.db") == TYPED


def test_without_a_guard_values_of_allowed_types_keep_them(tmp_path: Path) -> None:
    typed_thread(tmp_path / "a.db")
    with open_storage(f"sqlite:///{tmp_path}/a.db", allowed_types=[Customer, Lamp, Size]) as storage:
        typed_app(storage.checkpointer, "more").invoke({"messages": "go on"}, config("t"))

    assert typed_values(tmp_path / "a.db") == TYPED


def test_a_value_that_would_lose_its_type_stops_the_run_before_anything_is_saved(tmp_path: Path) -> None:
    typed_thread(tmp_path / "a.db")
    before = rows(tmp_path / "a.db")

    with opened(tmp_path / "a.db") as storage:
        guarded = storage.guard(app(storage.checkpointer, ["more"], store=storage.store))
        for graph in (guarded, guarded.graph):
            with pytest.raises(StorageError, match=r"allowed_types=\[Customer\]"):
                graph.invoke({"messages": "go on"}, config("t"))
        assert storage.store.search(("sessions",)) == []

    assert rows(tmp_path / "a.db") == before


def test_a_structured_answer_stops_no_later_turn(tmp_path: Path) -> None:
    replies = [call("Customer", f"c{turn}", name="Ann") for turn in range(3)]
    with opened(tmp_path / "a.db") as storage:
        model = ScriptedModel(replies)
        agent = create_agent(model, response_format=ToolStrategy(Customer), checkpointer=storage.checkpointer)
        answers = [agent.invoke({"messages": "who?"}, config("t"))["structured_response"] for _ in replies]

    assert answers == [Customer(name="Ann")] * 3
