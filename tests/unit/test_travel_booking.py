"""Booking through a graph: approval first, never twice, never what no search returned."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph.types import Command

from everthread.agents.travel import travel_tools
from everthread.agents.travel.options import Option
from everthread.agents.travel.queries import FlightQuery
from everthread.agents.travel.sandbox import flights
from everthread.state import Context, namespaces

TODAY = date(2026, 11, 21)
ADA = Context(user_id="ada")
Graph = CompiledStateGraph[Any, Any, Any, Any]


def desk(store: BaseStore | None, today: Callable[[], date] = lambda: TODAY) -> Graph:
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("tools", ToolNode(travel_tools(today=today)))
    graph.set_entry_point("tools")
    return graph.compile(checkpointer=InMemorySaver(), store=store)


def options() -> tuple[Option, ...]:
    return flights.search(FlightQuery("SFO", "CDG", date(2026, 12, 4)), TODAY).options


def calls(*arguments: Mapping[str, Any], name: str = "book") -> dict[str, Any]:
    """Return the input of a turn in which the model calls a tool once for each set of arguments."""
    asked = [{"name": name, "args": dict(args), "id": f"call-{place}"} for place, args in enumerate(arguments)]
    return {"messages": [AIMessage("", tool_calls=asked)]}


def booking(place: int = 0, **changed: Any) -> dict[str, Any]:
    return {"option_id": options()[place].option_id, "travellers": ["Ada Lovelace"], **changed}


def thread(name: str = "t-1") -> Any:
    return {"configurable": {"thread_id": name}}


def trips(store: BaseStore, user_id: str = "ada") -> list[dict[str, Any]]:
    return [item.value for item in store.search(namespaces.user(user_id, "trips"), limit=100)]


def said(result: dict[str, Any]) -> list[str]:
    return [message.text for message in result["messages"] if message.type == "tool"]


def test_nothing_is_stored_before_the_approval() -> None:
    store = InMemoryStore()

    result = desk(store).invoke(calls(booking()), thread(), context=ADA)

    assert result["__interrupt__"][0].value["details"]["option_id"] == options()[0].option_id
    assert trips(store) == []


@pytest.mark.parametrize("answer", [True, "yes", "approve", {"approved": True, "comment": "great"}])
def test_an_approval_books_at_the_price_of_the_inventory(answer: object) -> None:
    graph = desk(store := InMemoryStore())
    graph.invoke(calls(booking(note="aisle seat")), thread(), context=ADA)

    result = graph.invoke(Command(resume=answer), thread(), context=ADA)

    (trip,) = trips(store)
    assert (trip["price"], trip["travellers"], trip["note"]) == (options()[0].price, ["Ada Lovelace"], "aisle seat")
    assert trip["reference"] in said(result)[0]
    assert "sandbox inventory, not a real offer" in said(result)[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (False, "the user declined"),
        ("no", "the user declined"),
        ("ok, maybe later", "'ok, maybe later' is not a clear yes"),
        ({"approved": False, "comment": "too dear"}, "too dear"),
    ],
)
def test_a_refusal_books_nothing_and_says_why(answer: object, why: str) -> None:
    graph = desk(store := InMemoryStore())
    graph.invoke(calls(booking()), thread(), context=ADA)

    result = graph.invoke(Command(resume=answer), thread(), context=ADA)

    assert trips(store) == []
    assert said(result)[0].startswith("Nothing was booked")
    assert why in said(result)[0]


class DyingStore(InMemoryStore):
    """Dies once, right after it has stored something."""

    died = False

    def put(self, *args: Any, **kwargs: Any) -> None:
        super().put(*args, **kwargs)
        if not self.died:
            self.died = True
            raise RuntimeError("the process died")


def test_a_node_that_runs_again_does_not_book_again() -> None:
    graph = desk(store := DyingStore())
    graph.invoke(calls(booking()), thread(), context=ADA)
    with pytest.raises(RuntimeError, match="died"):
        graph.invoke(Command(resume=True), thread(), context=ADA)

    result = graph.invoke(None, thread(), context=ADA)

    (trip,) = trips(store)
    assert trip["reference"] in said(result)[0]


def test_the_same_call_id_in_another_thread_is_another_booking() -> None:
    graph = desk(store := InMemoryStore())
    for name in ("t-1", "t-2"):
        graph.invoke(calls(booking()), thread(name), context=ADA)
        graph.invoke(Command(resume=True), thread(name), context=ADA)

    assert len({trip["reference"] for trip in trips(store)}) == 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"option_id": "FLT-SFO-CDG-20261204-E1A-AAAA"}, "no search returned"),
        ({"travellers": []}, "needs 1"),
        ({"travellers": ["Ada Lovelace", "Alan Turing"]}, "needs 1"),
        ({"travellers": ["Ada, passport 123456789"]}, "which is no name"),
        ({"travellers": [" "]}, "which is no name"),
        ({"note": "x" * 301}, "shorten it"),
    ],
)
def test_a_wrong_argument_is_refused_before_anyone_is_asked(changed: dict[str, Any], why: str) -> None:
    graph = desk(store := InMemoryStore())

    result = graph.invoke(calls(booking(**changed)), thread(), context=ADA)

    assert "__interrupt__" not in result
    assert why in said(result)[0]
    assert trips(store) == []


def test_an_approval_that_comes_after_the_day_of_departure_books_nothing() -> None:
    store, now = InMemoryStore(), [TODAY]
    graph = desk(store, today=lambda: now[0])
    graph.invoke(calls(booking()), thread(), context=ADA)
    now[0] = date(2026, 12, 5)

    result = graph.invoke(Command(resume=True), thread(), context=ADA)

    assert "in the past" in said(result)[0]
    assert trips(store) == []


async def test_booking_works_in_an_async_graph_over_an_async_store() -> None:
    async with AsyncSqliteStore.from_conn_string(":memory:") as store:
        await store.setup()
        graph = desk(store)
        await graph.ainvoke(calls(booking()), thread(), context=ADA)

        result = await graph.ainvoke(Command(resume=True), thread(), context=ADA)
        listed = await graph.ainvoke(calls({}, name="list_bookings"), thread("t-2"), context=ADA)

        (trip,) = await store.asearch(namespaces.user("ada", "trips"))
    assert trip.value["reference"] in said(result)[0]
    assert trip.value["reference"] in said(listed)[0]


def test_a_graph_without_a_store_says_so() -> None:
    result = desk(None).invoke(calls(booking()), thread(), context=ADA)

    assert "has no store" in said(result)[0]


def test_a_user_without_bookings_gets_a_clear_answer() -> None:
    result = desk(InMemoryStore()).invoke(calls({}, name="list_bookings"), thread(), context=ADA)

    assert said(result) == ["There are no bookings for this user."]


def test_a_user_whom_only_the_config_names_books_for_themselves() -> None:
    graph = desk(store := InMemoryStore())
    config = {"configurable": {"thread_id": "t-1", "user_id": "bob"}}
    graph.invoke(calls(booking()), config)

    graph.invoke(Command(resume=True), config)

    assert (len(trips(store, "bob")), trips(store, "local")) == (1, [])


def test_all_bookings_are_listed_by_date_and_only_the_user_s_own() -> None:
    graph = desk(store := InMemoryStore())
    # More than the ten records that a store returns when it is not asked for more.
    for day in (*range(15, 26), 4):
        found = flights.search(FlightQuery("SFO", "CDG", date(2026, 12, day)), TODAY)
        arguments = {"option_id": found.options[0].option_id, "travellers": ["Ada Lovelace"]}
        graph.invoke(calls(arguments), thread(f"t-{day}"), context=ADA)
        graph.invoke(Command(resume=True), thread(f"t-{day}"), context=ADA)
    store.put(namespaces.user("ada", "trips"), "imported", {"city": "Rome", "year": 2024})

    text = said(graph.invoke(calls({}, name="list_bookings"), thread("list"), context=ADA))[0]
    other = said(graph.invoke(calls({}, name="list_bookings"), thread("bob"), context=Context(user_id="bob")))[0]

    places = [text.index(f"Paris (CDG), 2026-12-{day:02d}") for day in (4, *range(15, 26))]
    assert places == sorted(places)
    assert text.count("upcoming") == 12
    assert other == "There are no bookings for this user."
