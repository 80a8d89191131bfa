"""A stock LangChain app, which knows nothing of Everthread, and the database that it leaves behind.

`python tests/stock_app.py FILE [--async]` makes one: five threads, state keys of the app's own, tool calls, and an
approval that is still open.
"""

import asyncio
import operator
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from everthread.models.scripted import ScriptedModel

__all__ = ["APPROVAL", "THREADS", "app", "call", "config", "make", "rows"]

APPROVAL = "approval"
"""Thread of the open approval."""


class ShopState(AgentState[Any]):
    """State keys of the app's own: one that is replaced, and one with a reducer."""

    budget: NotRequired[int]
    visited: NotRequired[Annotated[list[str], operator.add]]


@tool
def look_up(item: str) -> str:
    """Look an item up in the catalogue."""
    return f"{item}: 40 EUR, in stock"


@tool
def spend(amount: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Write down what is left of the budget."""
    done = ToolMessage(f"{amount} EUR are left", tool_call_id=tool_call_id)
    return Command(update={"budget": amount, "visited": ["till"], "messages": [done]})


@tool
def order(item: str) -> str:
    """Order an item; somebody has to approve."""
    return f"ordered: {item}"


def call(name: str, identifier: str, /, **arguments: Any) -> AIMessage:
    """Make a reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": identifier}])


def app(checkpointer: Any, replies: Iterable[Any], middleware: Sequence[Any] = (), **options: Any) -> Any:
    """Build the app's graph; a test adds middleware and a store."""
    approval = HumanInTheLoopMiddleware(interrupt_on={"order": True})
    return create_agent(
        ScriptedModel(list(replies)),
        [look_up, spend, order],
        system_prompt="You sell lamps.",
        state_schema=ShopState,
        middleware=[approval, *middleware],
        checkpointer=checkpointer,
        **options,
    )


THREADS: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "chat": ([{"messages": f"question {n}"} for n in range(12)], [f"answer {n}" for n in range(12)]),
    "keys": ([{"messages": "I have 100 EUR.", "budget": 100, "visited": ["door"]}], ["Noted."]),
    "tools": (
        [{"messages": "What is a lamp?"}, {"messages": "And a desk?"}],
        [call("look_up", "c1", item="lamp"), "40 EUR.", call("look_up", "c2", item="desk"), "40 EUR, too."],
    ),
    "both": (
        [{"messages": "I have 100 EUR.", "budget": 100, "visited": ["door"]}, {"messages": "Buy the lamp."}],
        ["Noted.", call("spend", "c3", amount=60), "60 EUR are left."],
    ),
    APPROVAL: (
        [
            {"messages": "I have 100 EUR.", "budget": 100, "visited": ["door"]},
            {"messages": "What is a lamp?"},
            {"messages": "Order it."},
        ],
        ["Noted.", call("look_up", "c4", item="lamp"), "40 EUR.", call("order", "c5", item="lamp")],
    ),
}
"""Inputs and replies of each thread."""


def config(thread_id: str) -> Any:
    """Return the config of a thread as the app passes it."""
    return {"configurable": {"thread_id": thread_id}}


def make(path: Path, *, is_async: bool = False) -> None:
    """Make the database."""
    if is_async:
        asyncio.run(_amake(path))
        return
    with SqliteSaver.from_conn_string(str(path)) as saver:
        for thread_id, (inputs, replies) in THREADS.items():
            graph = app(saver, replies)
            for sent in inputs:
                graph.invoke(sent, config(thread_id))


async def _amake(path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        for thread_id, (inputs, replies) in THREADS.items():
            graph = app(saver, replies)
            for sent in inputs:
                await graph.ainvoke(sent, config(thread_id))


def rows(path: Path, thread_id: str | None = None) -> list[Any]:
    """Return every row of LangGraph's tables, or those of one thread."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        every = [
            (table, *row)
            for table in ("checkpoints", "writes")
            for row in database.execute(f"SELECT * FROM {table} ORDER BY thread_id, checkpoint_ns, checkpoint_id, 5, 6")
        ]
    return [row for row in every if thread_id in (None, row[1])]


if __name__ == "__main__":
    make(Path(sys.argv[1]), is_async="--async" in sys.argv)
