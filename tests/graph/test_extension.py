"""The graph of an agent with nodes, keys and subgraphs of one's own."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from everthread import build_graph, open_storage, pipeline
from everthread.errors import SettingsError
from everthread.models.scripted import ScriptedModel
from everthread.state import Conversation
from everthread.storage.open import Storage
from small_agent import AGENT, CONFIG


class Tier(Enum):
    GOLD = "gold"


class Address(BaseModel):
    city: str


@dataclass
class Customer:
    tier: Tier
    address: Address


def appended(old: list[str] | None, new: list[str]) -> list[str]:
    return [*(old or []), *new]


class ShopState(Conversation, total=False):
    basket: Annotated[list[str], appended]
    customer: Customer


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        yield opened


def shop(storage: Storage, *replies: str) -> Any:
    return build_graph(AGENT, model=ScriptedModel(replies), state_schema=ShopState, storage=storage)


def test_a_key_of_ones_own_is_taken_kept_and_returned(storage: Storage) -> None:
    graph = shop(storage, "hello", "again")

    first = graph.invoke({"messages": "hi", "basket": ["tea"]}, CONFIG)
    second = graph.invoke({"messages": "more", "basket": ["rice"]}, CONFIG)

    assert first["basket"] == ["tea"]
    assert second["basket"] == ["tea", "rice"]
    assert [message.text for message in second["messages"]] == ["hi", "hello", "more", "again"]


async def test_the_same_under_ainvoke(storage: Storage) -> None:
    graph = shop(storage, "hello")

    await graph.ainvoke({"messages": "hi", "basket": ["tea"]}, CONFIG)

    assert (await graph.aget_state(CONFIG)).values["basket"] == ["tea"]


def test_types_of_ones_own_come_back_from_a_checkpoint(storage: Storage) -> None:
    customer = Customer(Tier.GOLD, Address(city="Bonn"))
    shop(storage, "hello").invoke({"messages": "hi", "customer": customer}, CONFIG)

    assert shop(storage).get_state(CONFIG).values["customer"] == customer


def test_an_input_that_is_no_key_is_named(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="no input 'turns'; send `messages` or `end_session` or `basket`"):
        shop(storage).invoke({"messages": "hi", "turns": 7}, CONFIG)


class Clash(TypedDict):
    turns: str


@pytest.mark.parametrize(("schema", "key"), [(Clash, "turns"), (MessagesState, "messages")])
def test_a_key_with_a_name_of_ours_is_refused(schema: Any, key: str) -> None:
    with pytest.raises(SettingsError, match=f"'{key}', which is a key of Everthread's own"):
        pipeline(AGENT, model=ScriptedModel(), state_schema=schema)


def test_a_state_schema_that_is_no_typed_dict_is_refused() -> None:
    with pytest.raises(SettingsError, match="must be a TypedDict, got 'Address'"):
        build_graph(AGENT, model=ScriptedModel(), state_schema=Address)


def payment() -> Any:
    """A subgraph that asks somebody."""

    def ask(state: ShopState) -> dict[str, Any]:
        answer = interrupt({"pay for": state["basket"]})
        return {"messages": [AIMessage(f"Payment {answer}.")], "basket": [answer]}

    graph = StateGraph(ShopState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return graph.compile()


def extended(storage: Storage, *replies: str) -> Any:
    graph = pipeline(AGENT, model=ScriptedModel(replies), state_schema=ShopState, after="fill", before="pay")
    graph.add_node("fill", lambda state: {"basket": ["tea"]})
    graph.add_node("pay", payment())
    graph.add_edge(START, "fill")
    graph.add_edge("pay", END)
    return storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))


def test_a_node_runs_ahead_of_the_agent_and_an_approval_behind_it(storage: Storage) -> None:
    graph = extended(storage, "hello")

    paused = graph.invoke({"messages": "hi"}, CONFIG)
    done = graph.invoke(Command(resume="approved"), CONFIG)

    assert [one.value for one in paused["__interrupt__"]] == [{"pay for": ["tea"]}]
    assert done["basket"][-1] == "approved"
    assert [message.text for message in done["messages"]] == ["hi", "hello", "Payment approved."]


async def test_the_same_approval_under_ainvoke(storage: Storage) -> None:
    graph = extended(storage, "hello")

    paused = await graph.ainvoke({"messages": "hi"}, CONFIG)
    done = await graph.ainvoke(Command(resume="approved"), CONFIG)

    assert paused["__interrupt__"]
    assert done["messages"][-1].text == "Payment approved."


def test_a_new_message_does_not_run_the_waiting_approval_again(storage: Storage) -> None:
    asked: list[str] = []

    def review(state: ShopState) -> dict[str, Any]:
        asked.append(state["messages"][-1].text)
        return {"basket": [interrupt("right?")]}

    graph = pipeline(AGENT, model=ScriptedModel(["hello", "bye"]), state_schema=ShopState, before="review")
    graph.add_node("review", review)
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))
    guarded.invoke({"messages": "hi"}, CONFIG)

    guarded.invoke({"messages": "never mind"}, CONFIG)

    assert asked == ["hello", "bye"]


def test_a_subgraph_saves_nothing_of_the_plan(storage: Storage) -> None:
    graph = extended(storage, "hello")

    graph.invoke({"messages": "hi"}, CONFIG)

    saved = storage.checkpointer.list({"configurable": {"thread_id": "t"}})
    inputs = [one.checkpoint["channel_values"].get("__start__") for one in saved]
    assert {"messages", "basket"} in [set(value) for value in inputs if value]
    assert not any({"plan", "summary"} & set(value) for value in inputs if value)


class Tally(TypedDict, total=False):
    count: int


def test_an_input_without_messages_is_checked_as_well(storage: Storage) -> None:
    graph = StateGraph(Tally)
    graph.add_node("add", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "add")
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))

    with pytest.raises(SettingsError, match="no input 'cuont'; send `count`"):
        guarded.invoke({"count": 1, "cuont": 2}, CONFIG)
    assert guarded.invoke({"count": 1}, CONFIG) == {"count": 2}


def test_an_input_that_is_no_mapping_passes_as_it_is(storage: Storage) -> None:
    graph = StateGraph(int)
    graph.add_node("add", lambda count: count + 1)
    graph.add_edge(START, "add")
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))

    assert guarded.invoke(1, CONFIG) == 2
