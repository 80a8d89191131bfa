"""The checkpointer: LangGraph's own conformance suite, and what that suite does not ask."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from everthread import open_storage
from everthread.errors import SettingsError, StorageError
from everthread.state import Context, PromptPlan, namespaces
from everthread.state.messages import reduce_messages
from everthread.storage.open import Storage
from sql import is_sqlite, sql

CONFIG: Any = {"configurable": {"thread_id": "t"}}


async def test_it_conforms_in_all_eight_capabilities(database_url: str) -> None:
    @checkpointer_test(name="everthread")
    async def registered() -> AsyncIterator[Any]:
        with open_storage(database_url) as storage:
            yield storage.checkpointer

    report = await validate(registered)

    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert failures == {}
    assert len(report.results) == 8


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(reduce_messages, snapshot_frequency=5)]


def act(state: Any) -> Any:
    last = state["messages"][-1].text
    return {"messages": [AIMessage(f"so {interrupt('sure?')}" if last == "ask" else f"re {last}")]}


@pytest.fixture
def storage(database_url: str) -> Iterator[Storage]:
    with open_storage(database_url) as opened:
        yield opened


def graph_of(storage: Storage) -> Any:
    graph = StateGraph(State)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    return graph.compile(checkpointer=storage.checkpointer)


def talk(storage: Storage, turns: int) -> Any:
    graph = graph_of(storage)
    for turn in range(turns):
        say(graph, f"q{turn}", run_id=f"run-{turn}")
    return graph


def say(graph: Any, text: str, **configurable: str) -> None:
    graph.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t", **configurable}})


def texts(graph: Any, config: Any = CONFIG) -> list[str]:
    return [message.text for message in graph.get_state(config).values.get("messages", [])]


def saved(storage: Storage) -> list[str]:
    return [one.checkpoint["id"] for one in storage.checkpointer.list(CONFIG)]


@pytest.mark.parametrize("turns", range(1, 9))
def test_the_latest_checkpoint_of_a_delta_thread_reads_the_same_after_pruning(storage: Storage, turns: int) -> None:
    graph = talk(storage, turns)
    head, before, whole = graph.get_state(CONFIG), texts(graph), saved(storage)

    storage.checkpointer.prune(["t"])

    after = graph.get_state(CONFIG)
    assert (after.config, after.next, texts(graph)) == (head.config, head.next, before)
    assert len(saved(storage)) <= min(len(whole), 3 * 5)
    say(graph, "more")
    assert texts(graph)[-2:] == ["more", "re more"]


def test_an_unknown_strategy_is_refused(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="`keep_latest` or `delete`"):
        storage.checkpointer.prune(["t"], strategy="keep_some")


def test_one_text_is_no_list_of_ids(storage: Storage) -> None:
    for deletes in (storage.checkpointer.prune, storage.checkpointer.delete_for_runs):
        with pytest.raises(SettingsError, match=r"must be a list, such as \['t-1'\]"):
            deletes("t-1")


def test_a_run_that_later_checkpoints_are_read_from_is_not_deleted(storage: Storage) -> None:
    graph = talk(storage, 4)
    before = texts(graph)

    with pytest.raises(StorageError, match="later checkpoints are read from what they wrote"):
        storage.checkpointer.delete_for_runs(["run-3", "run-1"])

    assert texts(graph) == before


def test_the_newest_runs_can_be_deleted(storage: Storage) -> None:
    graph = talk(storage, 4)

    storage.checkpointer.delete_for_runs(["run-3", "run-2"])

    assert texts(graph) == ["q0", "re q0", "q1", "re q1"]


async def test_a_copy_has_all_messages_and_its_pending_approval(storage: Storage) -> None:
    graph = talk(storage, 3)
    say(graph, "ask")
    copy: Any = {"configurable": {"thread_id": "copy"}}

    await storage.checkpointer.acopy_thread("t", "copy")
    graph.invoke(Command(resume="be it"), copy)

    assert texts(graph, copy) == [*texts(graph), "so be it"]
    assert graph.get_state(CONFIG).interrupts


def test_a_thread_is_never_copied_over_another(storage: Storage) -> None:
    talk(storage, 1)

    with pytest.raises(SettingsError, match="copy to one that is new"):
        storage.checkpointer.copy_thread("s", "t")


def test_a_copy_belongs_to_the_owner_of_the_thread(storage: Storage) -> None:
    talk(storage, 1)
    storage.store.put(namespaces.SESSIONS, "t", {"thread_id": "t", "user_id": "ann", "turns": 1})

    storage.checkpointer.copy_thread("t", "copy")

    session = storage.store.get(namespaces.SESSIONS, "copy")
    assert session is not None
    assert session.value == {"thread_id": "copy", "user_id": "ann", "turns": 1}


def test_a_copy_of_a_thread_named_by_a_number_belongs_to_its_owner(storage: Storage) -> None:
    storage.store.put(namespaces.SESSIONS, "5", {"thread_id": "5", "user_id": "ann", "turns": 1})

    storage.checkpointer.copy_thread(cast(str, 5), cast(str, 7))

    session = storage.store.get(namespaces.SESSIONS, "7")
    assert session is not None
    assert session.value == {"thread_id": "7", "user_id": "ann", "turns": 1}


def test_a_thread_is_never_copied_into_one_that_has_an_owner(storage: Storage) -> None:
    talk(storage, 1)
    storage.store.put(namespaces.SESSIONS, "of-eve", {"thread_id": "of-eve", "user_id": "eve"})

    with pytest.raises(SettingsError, match="there is a thread 'of-eve' already"):
        storage.checkpointer.copy_thread("t", "of-eve")


async def test_the_history_of_a_delta_channel_takes_one_hop(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = talk(storage, 4)
    hops, call = list[str](), storage.worker.call

    def counted(work: Any, *args: Any, **more: Any) -> Any:
        hops.append(work.__name__)
        return call(work, *args, **more)

    monkeypatch.setattr(storage.worker, "call", counted)
    await graph.aget_state(CONFIG)

    assert hops == ["get_tuple", "get_delta_channel_history"]


def test_what_a_listing_gives_may_be_read_while_others_write(storage: Storage) -> None:
    graph = talk(storage, 2)

    for _ in storage.checkpointer.list(CONFIG):
        say(graph, "more")

    assert len(texts(graph)) > 4


class Secret(Exception):
    pass


def test_an_exception_is_saved_without_its_secrets(storage: Storage) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}
    error = Secret("header was Authorization: Bearer SECRETSECRET")
    storage.checkpointer.put_writes(config, [("__error__", error)], "task")

    value = "value" if is_sqlite(storage.database) else "blob"
    rows = sql(storage.database, f"SELECT {value} FROM {{writes}}")

    assert b"Authorization" in rows[0][0]
    assert b"SECRETSECRET" not in rows[0][0]


def test_the_plan_of_a_turn_is_not_saved_with_a_run_that_was_cut_off(storage: Storage) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}
    plan = PromptPlan(context=Context(), today="2027-01-01", system=SystemMessage("Be brief."))
    storage.checkpointer.put_writes(config, [("plan", plan), ("turns", 1)], "task")

    rows = sql(storage.database, "SELECT channel FROM {writes}")

    assert rows == [("turns",)]


def test_a_row_that_names_a_type_that_is_not_on_the_list_is_not_revived(storage: Storage) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}
    storage.checkpointer.put(config, empty_checkpoint(), {}, {})
    saved = storage.checkpointer.list(CONFIG)
    storage.checkpointer.put_writes(next(saved).config, [("m", Secret("x")), ("m", Crafted("rm"))], "task")

    (found,) = storage.checkpointer.list(CONFIG)

    assert not any(isinstance(value, Crafted) for _, _, value in found.pending_writes or ())


@dataclass
class Crafted:
    command: str
