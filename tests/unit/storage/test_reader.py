"""Reading a thread without LangChain gives what LangGraph reads."""

import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite, interrupt
from pydantic import BaseModel

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.agents import travel
from everthread.graph.guard import GuardedGraph
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces, reducer
from everthread.state.marks import is_answer
from everthread.storage.open import Storage
from everthread.storage.reader import Reader
from everthread.storage.store import StoredRow
from everthread.storage.unreadable import readable
from small_agent import graph_of
from sql import sql

NOW = datetime(2027, 3, 1, tzinfo=UTC)
CONFIG: Any = {"configurable": {"thread_id": "t"}}
BOOKING = ("Find me a flight from San Francisco to Paris on 2027-03-12.", "Book option 1 for Ada Lovelace.")
LOOK = AIMessage("", tool_calls=[call("list_bookings", "c1")])


def told(messages: Any) -> list[dict[str, Any]]:
    fields = ("type", "content", "id", "name", "additional_kwargs", "tool_calls", "tool_call_id", "status")
    return [{name: getattr(message, name, None) or None for name in fields} for message in messages]


def assert_the_same(storage: Storage, graph: Any) -> None:
    snapshot = graph.get_state(CONFIG)
    read = Reader(storage.tables).state("t")

    assert told(read.messages) == told(snapshot.values.get("messages", []))
    assert read.is_unfinished == bool(snapshot.next or snapshot.tasks)
    assert list(read.asked) == [one.value for one in snapshot.interrupts]
    is_open = read.is_unfinished and not is_answer(read.messages[-1])
    assert Reader(storage.tables).turn("t") == ("interrupted" if read.asked else "unfinished" if is_open else "idle")
    assert {name: read.values.get(name) for name in ("turns", "summary_id")} == {
        name: snapshot.values.get(name) for name in ("turns", "summary_id")
    }


def talk(storage: Storage, says: Any, *replies: Any, **dials: Any) -> GuardedGraph:
    model: Any = ScriptedModel(list(replies)) if replies else "offline"
    graph = build_graph(travel, model=model, summarizer="offline", storage=storage)
    for text in says:
        graph.invoke({"messages": text}, CONFIG, context=Context(user_id="ada", **dials))
    return graph


@pytest.mark.parametrize("turns", [1, 2, 5, 9])
def test_a_thread_reads_the_same_wherever_the_last_snapshot_is(storage: Storage, turns: int) -> None:
    graph = talk(storage, [f"question {turn}" for turn in range(turns)], *["answer"] * turns)

    assert_the_same(storage, graph)


def test_calls_results_and_evicted_turns_read_the_same(storage: Storage) -> None:
    says = [f"{number} " + "word " * 150 for number in range(8)]
    graph = talk(storage, says, *[LOOK, "answer " * 50] * 8, window=4_000, max_output_tokens=500)

    assert graph.get_state(CONFIG).values["summary_id"]
    assert_the_same(storage, graph)


def test_an_open_approval_reads_the_same(storage: Storage) -> None:
    graph = talk(storage, BOOKING)

    assert graph.get_state(CONFIG).interrupts
    assert_the_same(storage, graph)


def test_an_approval_that_was_answered_ahead_of_another_one_is_not_open(storage: Storage) -> None:
    approvals = AIMessage("", tool_calls=[call("approve", f"c{number}", what=f"tea {number}") for number in (1, 2)])
    graph, _ = graph_of(storage, approvals)
    graph.invoke({"messages": "Tea?"}, CONFIG)
    first, second = graph.get_state(CONFIG).interrupts

    graph.invoke(Command(resume={first.id: "yes"}), CONFIG)

    assert list(Reader(storage.tables).state("t").asked) == [second.value]


@pytest.mark.parametrize("steps", range(1, 6))
def test_a_run_that_was_cut_off_reads_the_same(storage: Storage, steps: int) -> None:
    graph = talk(storage, ["hi"], "hello", LOOK, "nothing yet")
    parts: Any = graph.stream({"messages": "my bookings?"}, CONFIG, stream_mode="checkpoints", context=Context("ada"))
    for _ in range(steps):
        next(parts)
    parts.close()

    read = Reader(storage.tables).state("t")

    assert "my bookings?" in [message.text for message in read.messages]
    assert read.is_unfinished == bool(graph.get_state(CONFIG).tasks)
    assert Reader(storage.tables).turn("t") == ("idle" if is_answer(read.messages[-1]) else "unfinished")


@pytest.mark.parametrize(
    "edit",
    [
        [HumanMessage("by hand", id="h")],
        [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("by hand", id="h")],
        Overwrite([HumanMessage("by hand", id="h", additional_kwargs={"everthread": {"seq": 0}})]),
    ],
)
def test_a_state_that_was_edited_reads_the_same(storage: Storage, edit: Any) -> None:
    graph = talk(storage, ["hi"], "hello")
    graph.update_state(CONFIG, {"messages": edit}, as_node="summarize")

    assert_the_same(storage, graph)


def test_the_thread_of_another_graph_reads_the_same(storage: Storage) -> None:
    def ask(state: MessagesState) -> Any:
        return {"messages": [AIMessage(str(interrupt("really?")), id="b")]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=storage.checkpointer)
    graph.invoke({"messages": [HumanMessage("hi", id="a")]}, CONFIG)

    read = Reader(storage.tables).state("t")

    assert [(one.id, one.text) for one in read.messages] == [("a", "hi")]
    assert (read.is_unfinished, read.asked) == (True, ["really?"])


def test_a_thread_without_checkpoints_is_empty(storage: Storage) -> None:
    assert Reader(storage.tables).state("t").messages == ()


def test_a_state_that_cannot_be_read_is_named_and_left_out(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    talk(storage, ["hi"], "hello")
    storage.database.connection.execute("UPDATE checkpoints SET type = 'msgpack+aes'")

    state = Reader(storage.tables).state("t")

    assert state.values == {}
    assert "of thread 't' cannot be read (stored as 'msgpack+aes')" in caplog.text


def test_items_are_read_page_by_page_and_by_name(storage: Storage) -> None:
    for number in range(5):
        storage.store.put(("users", "ada", "notes"), f"n{number}", {"text": str(number)})
    reader = Reader(storage.tables)

    assert [one.key for one in reader.search(namespaces.notes("ada"), limit=2, offset=2)] == ["n2", "n3"]
    assert reader.get(namespaces.notes("ada"), "n4") == reader.search(namespaces.notes("ada"), limit=1, offset=4)[0]
    assert reader.get(namespaces.notes("bob"), "n4") is None


def test_a_write_that_removes_everything_has_langgraphs_name() -> None:
    assert reducer.REMOVE_ALL == REMOVE_ALL_MESSAGES


@pytest.fixture
def storage() -> Any:
    with open_storage("sqlite://") as opened:
        yield opened


def test_what_is_not_committed_is_not_read(storage: Storage) -> None:
    seen: list[Any] = []
    look = threading.Thread(target=lambda: seen.append(Reader(storage.tables).get(("a",), "b")))

    def work() -> None:
        storage.store.restore([StoredRow("a", "b", {"n": 1}, NOW, NOW, None, None)])
        look.start()
        look.join(0.05)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        storage.database.write(work)
    look.join()

    assert seen == [None]


KEYS = ["a\x00b", "a", "\x00", "\ufdd0", "a\\u0000"]


def test_a_key_with_a_nul_is_found_as_any_other(database_url: str) -> None:
    with open_storage(database_url) as opened:
        for key in KEYS:
            opened.store.put(("app",), key, {"key": key})

        for key in KEYS:
            item, record = opened.store.get(("app",), key), Reader(opened.tables).get(("app",), key)
            assert (item and item.value, record and record.value) == ({"key": key}, {"key": key})


@pytest.mark.parametrize("damaged", KEYS)
def test_a_damaged_record_is_left_out_whatever_its_key(database_url: str, damaged: str) -> None:
    with open_storage(database_url) as opened:
        for key in (damaged, "z"):
            opened.store.put(("app",), key, {"key": key})
        sql(opened.database, "UPDATE store SET value = '[]' WHERE key <> 'z'")

        assert [one.key for one in Reader(opened.tables).search(("app",), limit=1)] == ["z"]


def test_a_warning_does_not_quote_what_a_damaged_record_holds(caplog: pytest.LogCaptureFixture) -> None:
    class Held(BaseModel):
        text: list[str]

    items = [SimpleNamespace(namespace=("users", "ada", "notes"), key="n1", value={"text": "Prefers the aisle."})]

    assert list(readable(items, lambda item: Held.model_validate(item.value))) == []
    assert "the record 'n1' of `users.ada.notes` cannot be read (text: list_type)" in caplog.text
    assert "aisle" not in caplog.text
