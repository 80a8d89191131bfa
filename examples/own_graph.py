"""A graph of one's own around an Everthread agent, with a subgraph that asks for approval.

    python examples/own_graph.py [DATABASE]

The agent answers and collects what is to be ordered; behind it a subgraph asks a person, each order by itself.
"""

import sys
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from everthread import Agent, Context, open_storage, pipeline
from everthread.models.scripted import ScriptedModel


class Orders(TypedDict, total=False):
    """State keys of our own, beside those of Everthread."""

    wanted: str
    ordered: list[str]


@tool
def want(item: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Put an item on the list of what is to be ordered."""
    return Command(update={"wanted": item, "messages": [ToolMessage("on the list", tool_call_id=tool_call_id)]})


def ask(state: Orders) -> Orders:
    """Ask a person about what is wanted; the run stops here until there is an answer."""
    wanted = state.get("wanted")
    if not wanted:
        return {}
    approved = interrupt(f"Order {wanted}?")
    return {"wanted": "", "ordered": [*state.get("ordered", []), *([wanted] if approved else [])]}


def main(url: str) -> None:
    """Order a boat: the agent wants it, a person approves."""
    approval = StateGraph(Orders)
    approval.add_node("ask", ask)
    approval.add_edge(START, "ask")
    shop = Agent(name="shop", title="Shop", instructions="You order things.", tools=[want])
    call = {"name": "want", "args": {"item": "a boat"}, "id": "call-1", "type": "tool_call"}
    model = ScriptedModel([AIMessage("", tool_calls=[call]), AIMessage("I have put a boat on the list.")])

    graph = pipeline(shop, model=model, state_schema=Orders, before="approval")
    graph.add_node("approval", approval.compile())
    graph.add_edge("approval", END)
    with open_storage(url) as storage:
        guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))
        thread: RunnableConfig = {"configurable": {"thread_id": "boats"}}
        asked = guarded.invoke({"messages": "I need a boat."}, thread, context=Context(user_id="ann"))
        print("asked:", asked["__interrupt__"][0].value)
        values = guarded.invoke(Command(resume=True), thread, context=Context(user_id="ann"))
        print("ordered:", values["ordered"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///:memory:")
