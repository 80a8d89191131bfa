"""Pruning: whatever stays reads as if nothing had gone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

import postgres_server
from everthread import open_storage
from everthread.errors import StorageError
from everthread.state.messages import reduce_messages
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.open import Storage
from sql import is_sqlite, sql

OURS = {"everthread": 1}
CONFIG: Any = {"configurable": {"thread_id": "t"}, "metadata": OURS}
KEEP = 2


class Small(TypedDict, total=False):
    """What pruning looks at, in a graph that is fast."""

    messages: Annotated[list[Any], DeltaChannel(reduce_messages, snapshot_frequency=4)]
    turns: int
    summary_id: str


def begin(state: Any) -> Any:
    return {"turns": state.get("turns", 0) + 1}


def act(state: Any) -> Any:
    wanted = state["messages"][-1].text
    if wanted == "ask":
        return {"messages": [AIMessage(f"so {interrupt('sure?')}")]}
    if wanted == "evict":
        return {"messages": [*(RemoveMessage(id=one.id) for one in state["messages"][:-3]), AIMessage("less")]}
    if wanted == "empty":
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("empty")]}
    return {"messages": [AIMessage("yes")]}


def close(state: Any) -> Any:
    turns = state["turns"]
    return {"summary_id": f"{turns // 3:06d}-x"} if turns >= 3 else {}


class Snapshots(Small, total=False):
    """The same with a snapshot at every step that writes messages, so that a cut can be anywhere."""

    messages: Annotated[list[Any], DeltaChannel(reduce_messages, snapshot_frequency=1)]  # type: ignore[misc]


def small(saver: Any, state: type = Small) -> Any:
    graph: Any = StateGraph(state)
    for node in (begin, act, close):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "act")
    graph.add_edge("act", "close")
    graph.add_edge("close", END)
    return graph.compile(checkpointer=saver)


@pytest.fixture
def saver(database_url: str) -> Iterator[Checkpointer]:
    with open_storage(database_url) as opened:
        yield opened.checkpointer


def say(graph: Any, text: str = "hi", config: Any = CONFIG, **options: Any) -> Any:
    return graph.invoke({"messages": [HumanMessage(text)]}, config, **options)


def rows(saver: Checkpointer, table: str) -> list[Any]:
    return sql(saver.database, f"SELECT * FROM {table} ORDER BY thread_id, checkpoint_ns, checkpoint_id")


def size(saver: Checkpointer, thread_id: str = "t") -> int:
    ((found,),) = sql(saver.database, "SELECT count(*) FROM checkpoints WHERE thread_id = ?", thread_id)
    return int(found)


def copy(source: Checkpointer, target: Checkpointer) -> None:
    """Add what the source holds now; nothing ever leaves the target."""
    if not is_sqlite(source.database):
        copy_on_postgres(source, target)
        return
    for table in ("checkpoints", "writes"):
        for row in rows(source, table):
            sql(target.database, f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", *row)


def copy_on_postgres(source: Checkpointer, target: Checkpointer) -> None:
    place, schema = "thread_id, checkpoint_ns", source.database.location.schema  # type: ignore[attr-defined]
    keys = {"checkpoints": "checkpoint_id", "checkpoint_blobs": "channel, version"}
    for table, key in {**keys, "checkpoint_writes": "checkpoint_id, task_id, idx"}.items():
        whole = f"({place}, {key})"
        sql(target.database, f"DELETE FROM {table} WHERE {whole} IN (SELECT {place}, {key} FROM {schema}.{table})")
        sql(target.database, f"INSERT INTO {table} SELECT * FROM {schema}.{table}")


def seen(graph: Any, config: Any) -> Any:
    """Everything a caller can read of one checkpoint."""
    state = graph.get_state(config)
    tasks = [(task.name, task.error, task.interrupts, task.result) for task in state.tasks]
    return state.values, state.next, state.metadata, state.created_at, tasks, state.interrupts


def checkpoints(graph: Any) -> list[Any]:
    """Return the configs of all checkpoints, newest first."""
    return [{**state.config, "metadata": OURS} for state in graph.get_state_history(CONFIG)]


Step = tuple[str, int]
TEXTS = st.sampled_from(["hi", "hi", "ask", "evict", "empty"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "turn", "turn", "exit", "fork", "back", "replay", "update", "copy"]), TEXTS
    ).flatmap(lambda pair: st.tuples(st.just(pair), st.integers(0, 30))),
    min_size=5,
    max_size=14,
)


def take(graph: Any, kind: str, text: str, place: int) -> None:
    """Do one thing to the thread, at a checkpoint counted from the newest."""
    known = checkpoints(graph)
    config = known[place % len(known)] if known else CONFIG
    if kind == "turn" or not known:
        waiting = graph.get_state(CONFIG).interrupts
        graph.invoke(Command(resume=text), CONFIG) if waiting and place % 2 else say(graph, text)
    elif kind == "exit":
        say(graph, text, durability="exit")
    elif kind == "fork":
        edited = graph.update_state(config, {"messages": [AIMessage(text)]}, as_node="close")
        say(graph, text, {**edited, "metadata": OURS})
    elif kind == "back":
        say(graph, text, config)
    elif kind == "replay":
        graph.invoke(None, config)
    elif kind == "update":
        graph.update_state(CONFIG, {"messages": [AIMessage(text)]}, as_node="close")
    elif kind == "copy":
        graph.update_state(config, None, as_node="__copy__")


@contextmanager
def on_postgres(url: str) -> Iterator[Storage]:
    with postgres_server.database(url) as here, open_storage(here) as storage:
        yield storage


@pytest.mark.slow
@settings(max_examples=6)
@given(STEPS)
def test_what_stays_reads_and_goes_on_as_in_an_unpruned_thread(steps: list[Any]) -> None:
    with open_storage("sqlite://") as one, open_storage("sqlite://") as other:
        pruned, whole = one.checkpointer, other.checkpointer
        graph, twin = small(pruned), small(whole)
        for (kind, text), place in steps:
            take(graph, kind, text, place)
            copy(pruned, whole)
            wanted = travelable(graph)
            pruned.prune_turns("t", KEEP)
            kept = checkpoints(graph)
            assert [config for config in wanted if config not in kept] == []

        assert kept[0] == checkpoints(twin)[0]
        for config in kept:
            assert seen(graph, config) == seen(twin, config)
        for config in kept[:: max(len(kept) // 4, 1)]:
            assert branched(graph, config) == branched(twin, config)


WALKS = [
    ["turn hi 0", "turn ask 0", "turn be 1", "turn evict 0", "fork hi 0", "turn hi 0", "turn empty 0", "turn hi 0"],
    ["turn hi 0", "turn hi 0", "update hi 0", "turn evict 0", "back hi 5", "turn hi 0", "replay hi 2", "turn hi 0"],
]
"""What is done, with which text, at which checkpoint from the newest."""


@pytest.mark.postgres
@pytest.mark.parametrize("walk", WALKS)
def test_what_stays_on_postgres_reads_and_goes_on_too(postgres: str, walk: list[str]) -> None:
    with on_postgres(postgres) as one, on_postgres(postgres) as other:
        pruned, whole = one.checkpointer, other.checkpointer
        graph, twin = small(pruned), small(whole)
        for step in walk:
            kind, text, place = step.split()
            take(graph, kind, text, int(place))
            copy(pruned, whole)
            wanted = travelable(graph)
            pruned.prune_turns("t", KEEP)
            kept = checkpoints(graph)
            assert [config for config in wanted if config not in kept] == []

        assert [seen(graph, config) for config in kept] == [seen(twin, config) for config in kept]
        assert [branched(graph, config) for config in kept[::4]] == [branched(twin, config) for config in kept[::4]]


def travelable(graph: Any) -> list[Any]:
    """Return the checkpoints of the last turns on the newest branch, and the end of the turn before them."""
    state: Any = graph.get_state(CONFIG)
    newest, found, child = state.values.get("turns", 0), [], ""
    while state is not None and state.metadata:
        found.append({**state.config, "metadata": OURS})
        is_before = state.values.get("turns", 0) <= newest - KEEP
        if is_before and state.metadata["source"] != "input" and (child == "input" or not state.next):
            break
        child = state.metadata["source"]
        state = graph.get_state(state.parent_config) if state.parent_config else None
    return found


def branched(graph: Any, config: Any) -> Any:
    """Return what a new turn makes of a checkpoint; ids that LangGraph draws at random are left out."""
    messages = say(graph, "hi", config)["messages"]
    return [(message.type, message.content, message.additional_kwargs["everthread"]["seq"]) for message in messages]


def test_a_long_thread_keeps_a_bounded_number_of_checkpoints(saver: Checkpointer) -> None:
    graph, sizes = small(saver), []

    for _ in range(32):
        say(graph)
        saver.prune_turns("t", KEEP)
        sizes.append(size(saver))

    assert max(sizes[22:]) == max(sizes[10:22]) < 40


def test_no_message_is_lost(saver: Checkpointer) -> None:
    graph = small(saver)
    for _ in range(10):
        say(graph)

    saver.prune_turns("t", 1)

    assert len(graph.get_state(CONFIG).values["messages"]) == 20


def test_the_oldest_checkpoint_is_the_end_of_the_turn_before_the_kept_ones(saver: Checkpointer) -> None:
    graph = small(saver, Snapshots)
    for _ in range(10):
        say(graph)

    saver.prune_turns("t", KEEP)

    states = [(state.values["turns"], state.next) for state in graph.get_state_history(CONFIG)]
    # The first kept turn before it was counted, the end of the turn before it, and the snapshot that the end needs.
    before = [(8, ("begin",)), (8, ("__start__",)), (8, ()), (8, ("close",))]
    assert states[states.index(before[0]) :] == before


def test_a_branch_younger_than_the_cut_stays_with_the_ancestors_it_needs(saver: Checkpointer) -> None:
    graph = small(saver)
    for _ in range(6):
        say(graph)
    main, *older = graph.get_state_history(CONFIG)
    # The node that is next writes no message, so what it is replayed into has no snapshot of its own.
    left = next(state for state in older if state.values["turns"] == 2 and state.next == ("close",))
    graph.invoke(None, left.config)
    branch = graph.get_state(CONFIG).config
    before = seen(graph, branch)
    say(graph, config=main.config)

    pruned = saver.prune_turns("t", KEEP)

    assert seen(graph, branch) == before
    assert pruned > 0


def test_other_threads_stay_as_they_are(saver: Checkpointer) -> None:
    graph = small(saver)
    for thread_id in ["t", "t2", "s"] * 10:
        say(graph, config={"configurable": {"thread_id": thread_id}, "metadata": OURS})
    tables = ("checkpoints", "writes" if is_sqlite(saver.database) else "checkpoint_writes")
    others = sorted((row for table in tables for row in rows(saver, table) if row[0] != "t"), key=repr)

    saver.prune_turns("t", KEEP)

    after = (row for table in tables for row in rows(saver, table) if row[0] != "t")
    assert sorted(after, key=repr) == others
    assert size(saver) < size(saver, "s")


def test_a_pending_approval_can_be_answered_after_pruning(saver: Checkpointer) -> None:
    graph = small(saver)
    for text in ["hi"] * 10 + ["ask"]:
        say(graph, text)

    saver.prune_turns("t", 1)
    graph.invoke(Command(resume="be it"), CONFIG)

    assert graph.get_state(CONFIG).values["messages"][-1].text == "so be it"


FULL = {
    True: ["CREATE TRIGGER full BEFORE DELETE ON writes BEGIN SELECT RAISE(ABORT, 'disk is full'); END"],
    False: [
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk is full'; END $$",
        'CREATE TRIGGER "full" BEFORE DELETE ON checkpoint_writes FOR EACH ROW EXECUTE FUNCTION fail()',
    ],
}
"""By whether it is SQLite."""


def test_a_failure_half_way_removes_nothing(saver: Checkpointer) -> None:
    graph = small(saver)
    for _ in range(10):
        say(graph)
    writes = "writes" if is_sqlite(saver.database) else "checkpoint_writes"
    for statement in FULL[is_sqlite(saver.database)]:
        sql(saver.database, statement)
    before = rows(saver, "checkpoints"), rows(saver, writes)

    with pytest.raises(StorageError, match="disk is full"):
        saver.prune_turns("t", KEEP)

    assert (rows(saver, "checkpoints"), rows(saver, writes)) == before


def parent_of(saver: Checkpointer, *, memory: bool) -> Any:
    """A graph whose node runs another graph, with memory of its own or without."""
    inner = StateGraph(Small)
    inner.add_node("close", close)
    inner.add_edge(START, "close")
    outer = StateGraph(Small)
    outer.add_node("begin", begin)
    outer.add_node("inner", inner.compile(checkpointer=True if memory else None))
    outer.add_node("act", act)
    outer.add_edge(START, "begin")
    outer.add_edge("begin", "inner")
    outer.add_edge("inner", "act")
    return outer.compile(checkpointer=saver)


def namespaces_of(saver: Checkpointer) -> set[str]:
    return {row[0] for row in sql(saver.database, "SELECT DISTINCT checkpoint_ns FROM checkpoints") if row[0]}


def test_subgraphs_of_pruned_steps_go_with_them(saver: Checkpointer) -> None:
    graph = parent_of(saver, memory=False)
    for _ in range(10):
        say(graph)
    before = namespaces_of(saver)

    saver.prune_turns("t", KEEP)

    assert len(before) == 10
    assert 2 <= len(namespaces_of(saver)) <= 6
    assert namespaces_of(saver) < before


def test_a_subgraph_with_a_memory_of_its_own_keeps_it(saver: Checkpointer) -> None:
    graph = parent_of(saver, memory=True)
    for _ in range(10):
        say(graph)
    inner = [row for row in rows(saver, "checkpoints") if row[1]]

    saver.prune_turns("t", KEEP)

    assert [row for row in rows(saver, "checkpoints") if row[1]] == inner
    assert inner


def test_the_checkpoints_of_another_app_stay_with_what_they_need(saver: Checkpointer) -> None:
    graph = small(saver)
    theirs: Any = {"configurable": CONFIG["configurable"]}
    for _ in range(3):
        say(graph)
    for _ in range(2):
        say(graph, config=theirs)
    foreign = [state.config for state in graph.get_state_history(CONFIG) if "everthread" not in state.metadata]
    before = [seen(graph, config) for config in foreign]
    for _ in range(10):
        say(graph)

    pruned = saver.prune_turns("t", KEEP)

    assert pruned > 0
    assert [seen(graph, config) for config in foreign] == before


def test_a_thread_of_another_app_is_left_alone(saver: Checkpointer) -> None:
    graph = small(saver)
    for _ in range(10):
        say(graph, config={"configurable": CONFIG["configurable"]})
    before = rows(saver, "checkpoints")

    saver.prune_turns("t", KEEP)

    assert rows(saver, "checkpoints") == before


def test_no_value_is_decoded(saver: Checkpointer) -> None:
    graph = small(saver)
    for _ in range(10):
        say(graph)
    broken = "x'c1'" if is_sqlite(saver.database) else "'{}'"
    sql(saver.database, f"UPDATE checkpoints SET checkpoint = {broken}")

    assert saver.prune_turns("t", KEEP) > 0


def test_the_file_stays_flat(tmp_path: Any) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.database.connection.execute("PRAGMA synchronous=OFF")
        graph, pages = small(storage.checkpointer), []
        for _ in range(50):
            say(graph, "evict")
            storage.checkpointer.prune_turns("t", KEEP)
            pages.append(storage.database.connection.execute("PRAGMA page_count").fetchone()[0])

    assert pages[-1] == pages[25]


def test_an_empty_thread_is_fine(saver: Checkpointer) -> None:
    assert saver.prune_turns("nobody", KEEP) == 0
