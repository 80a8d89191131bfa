"""Threads that an older version of an agent made: they open, go on, and lose nothing."""

import json
import operator
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import Mock

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from conversation import call
from everthread import (
    Agent,
    Context,
    acheck_threads,
    build_graph,
    check_threads,
    compact_now,
    open_storage,
    pipeline,
    set_profile,
)
from everthread.cli import main
from everthread.errors import SettingsError, StorageError
from everthread.graph.guard import GuardedGraph
from everthread.ledger import events
from everthread.ledger.events import Migrated
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.open import Storage

CONFIG: Any = {"configurable": {"thread_id": "t"}}
CONTEXT = Context(user_id="ada")


@dataclass
class Trip:
    """A value of the app's own."""

    to: str


class First(TypedDict, total=False):
    budget: int
    places: Annotated[list[str], operator.add]
    trip: Trip


class Second(TypedDict, total=False):
    limit: int
    places: Annotated[list[str], operator.add]


@tool
def book(what: str) -> str:
    """Book it."""
    return f"booked: {interrupt({'what': what})}"


@tool
def reserve(what: str) -> str:
    """Reserve it."""
    return f"reserved: {interrupt({'what': what})}"


def renamed(state: dict[str, Any]) -> dict[str, Any]:
    """0 → 1: `budget` is called `limit`."""
    return {**{name: value for name, value in state.items() if name != "budget"}, "limit": state.get("budget", 0)}


def doubled(state: dict[str, Any]) -> dict[str, Any]:
    """1 → 2: `limit` is in another currency."""
    return {**state, "limit": state["limit"] * 2}


OLD = Agent(name="shop", title="Shop", instructions="Help.", tools=[book])
NEW = Agent(name="shop", title="Shop", instructions="Help.", tools=[reserve])


@pytest.fixture
def storage(database_url: str) -> Iterator[Storage]:
    with open_storage(database_url) as opened:
        yield opened


def graph_of(storage: Storage, agent: Agent, schema: Any = None, *replies: Any) -> GuardedGraph:
    model = ScriptedModel([*replies, *["fine"] * 3])
    return build_graph(agent, model=model, summarizer="offline", storage=storage, state_schema=schema)


def begin(storage: Storage, **state: Any) -> None:
    """Let the older version talk once."""
    graph_of(storage, OLD, First).invoke({"messages": "hello", **(state or {"budget": 5})}, CONFIG, context=CONTEXT)


def state(graph: GuardedGraph) -> dict[str, Any]:
    values = graph.get_state(CONFIG).values
    return {name: values[name] for name in ("budget", "limit", "places", "trip") if values.get(name)}


def go_on(graph: GuardedGraph) -> dict[str, Any]:
    graph.invoke({"messages": "and now?"}, CONFIG, context=CONTEXT)
    return state(graph)


def migrations(storage: Storage) -> list[Migrated]:
    return [event for event in events(storage.store, "t") if isinstance(event, Migrated)]


def test_a_key_that_is_gone_comes_back_with_the_agent_that_has_it(storage: Storage) -> None:
    begin(storage, budget=5, trip=Trip("Rome"), places=["Rome"])

    for _ in range(3):
        assert go_on(graph_of(storage, OLD)) == {}
    again = go_on(graph_of(storage, OLD, First))

    assert again == {"budget": 5, "trip": Trip("Rome"), "places": ["Rome"]}
    assert [(one.kept, one.restored) for one in migrations(storage)] == [
        (["budget", "places", "trip"], []),
        ([], ["budget", "places", "trip"]),
    ]


def test_an_edit_keeps_what_it_has_no_key_for(storage: Storage) -> None:
    begin(storage)

    graph_of(storage, OLD).update_state(CONFIG, {"end_session": False})

    assert go_on(graph_of(storage, OLD, First)) == {"budget": 5}


def test_a_compaction_keeps_what_it_has_no_key_for(storage: Storage) -> None:
    begin(storage)

    compact_now(graph_of(storage, OLD), "t", context=replace(CONTEXT, window=4_000))

    assert go_on(graph_of(storage, OLD, First)) == {"budget": 5}


def test_migrations_run_once_each_in_their_order(storage: Storage) -> None:
    begin(storage)
    agent = replace(NEW, migrations=[renamed, doubled])

    assert [go_on(graph_of(storage, agent, Second)) for _ in range(2)] == [{"limit": 10}] * 2
    (event,) = migrations(storage)
    assert (event.from_version, event.to_version, event.kept) == (0, 2, [])


def test_a_thread_goes_on_from_the_version_that_it_has(storage: Storage) -> None:
    begin(storage)
    go_on(graph_of(storage, replace(NEW, migrations=[renamed]), Second))

    assert go_on(graph_of(storage, replace(NEW, migrations=[renamed, doubled]), Second)) == {"limit": 10}


def test_a_new_thread_needs_no_migration(storage: Storage) -> None:
    graph = graph_of(storage, replace(NEW, migrations=[renamed, doubled]), Second)

    graph.invoke({"messages": "hello", "limit": 7}, CONFIG, context=CONTEXT)

    assert go_on(graph) == {"limit": 7}


def test_a_migration_gets_what_was_kept_by_a_version_in_between(storage: Storage) -> None:
    begin(storage)
    go_on(graph_of(storage, OLD))

    assert go_on(graph_of(storage, replace(NEW, migrations=[renamed]), Second)) == {"limit": 5}


def test_a_value_with_a_reducer_is_replaced_and_not_reduced(storage: Storage) -> None:
    begin(storage, places=["Rome"])
    shout = replace(NEW, migrations=[lambda state: {"places": [place.upper() for place in state["places"]]}])

    assert go_on(graph_of(storage, shout, Second)) == {"places": ["ROME"]}


def test_what_a_migration_leaves_out_is_gone(storage: Storage) -> None:
    begin(storage)
    go_on(graph_of(storage, replace(NEW, migrations=[lambda state: {}]), Second))

    assert not storage.store.search(namespaces.thread("t", "state"))


def test_a_migration_may_change_a_value_in_place(storage: Storage) -> None:
    def add(state: dict[str, Any]) -> dict[str, Any]:
        state["places"].append("Bonn")
        return state

    begin(storage, places=["Rome"])

    assert go_on(graph_of(storage, replace(NEW, migrations=[add]), Second)) == {"places": ["Rome", "Bonn"]}


async def test_async_runs_migrate_too(storage: Storage) -> None:
    begin(storage)
    graph = graph_of(storage, replace(NEW, migrations=[renamed]), Second)

    await graph.ainvoke({"messages": "and now?"}, CONFIG, context=CONTEXT)

    assert state(graph) == {"limit": 5}


@pytest.mark.parametrize(
    ("migration", "says"),
    [
        (lambda state: state["nothing"], "KeyError: 'nothing'"),
        (lambda state: None, "NoneType"),
        (lambda state: {"limit": iter([1])}, "returned 'limit' with a value that cannot be saved"),
        (lambda state: {"gone": iter([1])}, "returned 'gone' with a value that cannot be saved"),
        (lambda state: {**state, "messages": []}, "returned 'messages', which is no state key of your own"),
    ],
)
def test_a_migration_that_fails_changes_nothing(migration: Any, says: str, storage: Storage) -> None:
    begin(storage)

    with pytest.raises(SettingsError, match=says):
        go_on(graph_of(storage, replace(NEW, migrations=[migration]), Second))

    assert go_on(graph_of(storage, OLD, First)) == {"budget": 5}
    assert migrations(storage) == []


def test_an_older_agent_refuses_the_thread_of_a_newer_one(storage: Storage) -> None:
    begin(storage)
    newer = graph_of(storage, replace(NEW, migrations=[renamed]), Second)
    go_on(newer)

    with pytest.raises(SettingsError, match="has the state of version 1 of its agent, and this one is version 0"):
        go_on(graph_of(storage, OLD, First))
    assert state(newer) == {"limit": 5}


def test_a_fork_from_before_a_change_is_migrated_from_its_own_version(storage: Storage) -> None:
    begin(storage)
    old = graph_of(storage, OLD, First).get_state(CONFIG).config
    graph = graph_of(storage, replace(NEW, migrations=[renamed, doubled]), Second)
    go_on(graph)

    fork: Any = {"configurable": {"thread_id": "t", "checkpoint_id": old["configurable"]["checkpoint_id"]}}
    graph.invoke({"messages": "another way"}, fork, context=CONTEXT)

    assert state(graph) == {"limit": 10}


def test_each_branch_gets_back_what_it_had(storage: Storage) -> None:
    first, without = graph_of(storage, OLD, First), graph_of(storage, OLD)
    heads = []
    for budget in (5, 7):
        begin(storage, budget=budget)
        heads.append(first.get_state(CONFIG).config)

    ends = []
    for head in reversed(heads):
        without.invoke({"messages": "and now?"}, head, context=CONTEXT)
        ends.append(without.get_state(CONFIG).config)

    for end, budget in zip(ends, (7, 5), strict=True):
        first.invoke({"messages": "and then?"}, end, context=CONTEXT)
        assert state(first) == {"budget": budget}


def versions(storage: Storage, later: str) -> tuple[GuardedGraph, GuardedGraph, dict[str, Any]]:
    """Return a graph without the key of a thread, one that takes its value again, and the state that it has then."""
    if later == "migrated":
        return graph_of(storage, OLD), graph_of(storage, replace(OLD, migrations=[renamed]), Second), {"limit": 5}
    return graph_of(storage, OLD), graph_of(storage, OLD, First), {"budget": 5}


@pytest.mark.parametrize("later", ["restored", "migrated"])
def test_branches_that_part_behind_a_change_get_the_same_back(later: str, storage: Storage) -> None:
    begin(storage)
    without, again, whole = versions(storage, later)
    go_on(without)
    shared, ends = without.get_state(CONFIG).config, []
    for _ in range(2):
        without.invoke({"messages": "which way?"}, shared, context=CONTEXT)
        ends.append(without.get_state(CONFIG).config)

    for end in ends:
        again.invoke({"messages": "and then?"}, end, context=CONTEXT)
        assert state(again) == whole


@pytest.mark.parametrize("later", ["restored", "migrated"])
def test_a_branch_keeps_what_another_takes_back_where_they_part(later: str, storage: Storage) -> None:
    begin(storage)
    without, again, whole = versions(storage, later)
    parting = again.get_state(CONFIG).config
    go_on(without)
    end = without.get_state(CONFIG).config

    for place in (parting, end):
        again.invoke({"messages": "and then?"}, place, context=CONTEXT)
        assert state(again) == whole


@pytest.mark.parametrize("later", ["restored", "migrated"])
def test_a_fork_from_the_time_without_a_key_gets_its_value_back(later: str, storage: Storage) -> None:
    begin(storage)
    without, again, whole = versions(storage, later)
    go_on(without)
    then = without.get_state(CONFIG).config
    go_on(without)
    go_on(again)

    again.invoke({"messages": "another way"}, then, context=CONTEXT)

    assert state(again) == whole


def test_a_migration_that_is_cut_off_begins_again_with_the_same_values(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(storage)
    go_on(graph_of(storage, OLD))
    graph = graph_of(storage, replace(OLD, migrations=[renamed]), Second)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpointer, "put", Mock(side_effect=StorageError("killed")))
        with pytest.raises(StorageError):
            go_on(graph)

    assert go_on(graph) == {"limit": 5}


def test_versions_that_take_turns_keep_a_value_once(storage: Storage) -> None:
    begin(storage)

    for schema in (None, First) * 3:
        go_on(graph_of(storage, OLD, schema))

    assert len(storage.store.search(namespaces.thread("t", "state"))) == 1


@pytest.mark.parametrize("schemas", [[None], [None, First]])
def test_what_a_migration_left_out_does_not_come_back(storage: Storage, schemas: list[Any]) -> None:
    begin(storage)
    for schema in schemas:
        go_on(graph_of(storage, OLD, schema))
    out = replace(OLD, migrations=[lambda state: {}])
    go_on(graph_of(storage, out))

    assert go_on(graph_of(storage, out, First)) == {}


def ask(storage: Storage, agent: Agent = OLD) -> None:
    """Let the older version ask for an approval."""
    wanted = AIMessage("", tool_calls=[call("book", "c1", what="a flight")])
    graph_of(storage, agent, First, wanted).invoke({"messages": "book", "budget": 5}, CONFIG, context=CONTEXT)


def results(graph: GuardedGraph) -> list[str]:
    return [message.text for message in graph.get_state(CONFIG).values["messages"] if isinstance(message, ToolMessage)]


def test_an_approval_survives_a_migration(storage: Storage) -> None:
    ask(storage)
    agent = replace(OLD, migrations=[renamed])
    graph = graph_of(storage, agent, Second)

    graph.invoke(Command(resume="yes"), CONFIG, context=CONTEXT)

    assert (results(graph), state(graph)) == (["booked: yes"], {"limit": 5})


async def test_an_approval_of_a_renamed_tool_goes_on_in_it(storage: Storage) -> None:
    ask(storage)
    graph = graph_of(storage, replace(NEW, renamed_tools={"book": "reserve"}))

    await graph.ainvoke(Command(resume="yes"), CONFIG, context=CONTEXT)

    assert results(graph) == ["reserved: yes"]


def test_the_model_is_told_of_a_tool_that_is_gone(storage: Storage) -> None:
    ask(storage)
    graph = graph_of(storage, NEW)

    graph.invoke(Command(resume="yes"), CONFIG, context=CONTEXT)

    assert "book is not a valid tool" in results(graph)[0]


def ask_in_a_step_of_its_own(storage: Storage) -> None:
    builder = pipeline(OLD, model=ScriptedModel(["fine"]), summarizer="offline", before="review")
    builder.add_node("review", lambda state: {"messages": [AIMessage(str(interrupt("Is it fine?")))]})
    builder.add_edge("review", END)
    compiled = builder.compile(checkpointer=storage.checkpointer, store=storage.store, name="shop")
    storage.guard(compiled).invoke({"messages": "hello"}, CONFIG, context=CONTEXT)


def test_an_answer_to_a_step_that_is_gone_is_refused(storage: Storage) -> None:
    ask_in_a_step_of_its_own(storage)
    graph = graph_of(storage, NEW)

    with pytest.raises(SettingsError, match="in a step that this graph no longer has"):
        graph.invoke(Command(resume="yes"), CONFIG, context=CONTEXT)
    assert graph.invoke({"messages": "go on"}, CONFIG, context=CONTEXT)["messages"][-1].text == "fine"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"migrations": ["up"]}, "takes functions"),
        ({"renamed_tools": {"book": "order"}}, "has no tool 'order'"),
        ({"renamed_tools": {"reserve": "reserve"}}, "has a tool 'reserve' still"),
    ],
)
def test_a_history_that_cannot_be_is_refused(fields: Any, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        replace(NEW, **fields)


# Which threads could not go on.


def problems(storage: Storage, *agents: Any) -> list[tuple[str, bool]]:
    (checked,) = check_threads(storage, agents).checked
    return [(one.kind, one.stops) for one in checked.problems]


def test_a_thread_of_the_same_agent_has_no_problem(storage: Storage) -> None:
    ask(storage)

    assert problems(storage, graph_of(storage, OLD, First)) == []


def test_a_state_key_that_is_gone_is_named_before_and_after_it_is_kept(storage: Storage) -> None:
    begin(storage)

    assert problems(storage, OLD) == [("key", False)]
    go_on(graph_of(storage, OLD))
    assert problems(storage, OLD) == [("key", False)]


def test_an_open_call_of_a_tool_that_is_gone_stops_a_thread(storage: Storage) -> None:
    ask(storage)

    assert problems(storage, pipeline(NEW, model="offline", state_schema=First)) == [("tool", True)]
    renamed = replace(NEW, renamed_tools={"book": "reserve"})
    assert problems(storage, pipeline(renamed, model="offline", state_schema=First)) == []


def test_a_step_that_is_gone_stops_a_thread(storage: Storage) -> None:
    ask_in_a_step_of_its_own(storage)

    assert problems(storage, OLD) == [("step", True)]


def test_a_migration_that_would_fail_stops_a_thread_and_is_not_made(storage: Storage) -> None:
    begin(storage)

    broken = replace(NEW, migrations=[lambda state: {"limit": state["nothing"]}])
    assert problems(storage, pipeline(broken, model="offline", state_schema=Second)) == [("migration", True)]
    works = pipeline(replace(NEW, migrations=[renamed]), model="offline", state_schema=Second)
    assert problems(storage, works) == []
    assert go_on(graph_of(storage, OLD, First)) == {"budget": 5}


def test_the_thread_of_a_newer_agent_stops(storage: Storage) -> None:
    begin(storage)
    go_on(graph_of(storage, replace(NEW, migrations=[renamed]), Second))

    assert problems(storage, graph_of(storage, OLD, First)) == [("version", True)]


def test_a_profile_that_no_longer_fits_is_named(storage: Storage) -> None:
    class Profile(BaseModel):
        seat: int

    begin(storage)
    set_profile(storage, "ada", {"seat": "window"})

    agent = replace(OLD, profile=Profile)
    assert problems(storage, pipeline(agent, model="offline", state_schema=First)) == [("profile", False)]


async def test_threads_of_other_agents_and_graphs_are_counted(storage: Storage) -> None:
    begin(storage)
    app = StateGraph(MessagesState)
    app.add_node("reply", lambda state: {"messages": [AIMessage("fine")]})
    app.add_edge(START, "reply")
    guarded = storage.guard(app.compile(checkpointer=storage.checkpointer, store=storage.store))
    guarded.invoke({"messages": "hello"}, {"configurable": {"thread_id": "app", "user_id": "ada"}})

    checks = await acheck_threads(storage, [])

    assert (checks.checked, dict(checks.others), checks.foreign) == ((), {"shop": 1}, 1)


def test_doctor_tells_which_threads_could_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_storage("sqlite:///everthread.db") as storage:
        ask(storage)

    code = main(["doctor", "--threads", "--agent", "test_schema_changes:NEW", "--json"])

    told = json.loads(capsys.readouterr().out)
    (thread,) = told["threads"]
    assert (code, told["ok"], told["checked"], thread["can_continue"]) == (1, False, 1, False)
    assert [one["kind"] for one in thread["problems"]] == ["tool", "key"]
    assert main(["doctor", "--threads"]) == 0
    assert "1 thread of the agent 'shop', which was not given" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(3))
def test_versions_that_take_turns_lose_no_key_of_each_other(seed: int, storage: Storage) -> None:
    chance, values = random.Random(seed), dict[str, Any]()
    keys = {None: (), First: ("budget",), Second: ("limit",)}
    graphs = {schema: graph_of(storage, OLD, schema, *["fine"] * 10) for schema in keys}
    for turn in range(8):
        schema = chance.choice(list(graphs))
        sent = {name: turn + 1 for name in keys[schema] if chance.random() < 0.5}
        graphs[schema].invoke({"messages": f"turn {turn}", **sent}, CONFIG, context=CONTEXT)
        values |= sent

    seen = [go_on(graphs[schema]) for schema in (First, Second)]

    assert {name: value for one in seen for name, value in one.items()} == values
