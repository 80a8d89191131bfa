"""A small agent on a scripted model, for tests of the graph from end to end."""

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.types import interrupt

from everthread import Context, build_graph
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.tools.save_memory_note import save_memory_note

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of the table" for number in range(n))


@tool
def approve(what: str) -> str:
    """Ask the user."""
    return f"approved: {interrupt({'what': what})}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("the shelf is empty")


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note, look, approve, fail])


def calls(*wanted: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=list(wanted))


def graph_of(storage: Storage, *replies: Any, summarizer: Any = "offline") -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return build_graph(AGENT, model=model, summarizer=summarizer, storage=storage), model


def ask(graph: Any, text: str | None, **dials: Any) -> dict[str, Any]:
    result = graph.invoke({"messages": text} if text else {"end_session": True}, CONFIG, context=Context(**dials))
    assert isinstance(result, dict)
    return result


def names(storage: Storage) -> list[str]:
    return [event.event for event in events(storage.store, "t")]
