"""Turn threads of a database into records, so that they can be replayed like recordings."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from everthread.agents import AGENTS
from everthread.evals.records import Record, Toolkit
from everthread.state.marks import MARK, is_synthetic

_READERS = {"read_tool_output": "recorded_read_tool_output", "recall_history": "recorded_recall_history"}
"""The recorded results of these tools hold handles of another policy: they are replayed as those of other tools."""


def record_of_thread(thread_id: str, messages: Sequence[BaseMessage], agent: str | None) -> Record:
    """Make a record of a thread.

    Args:
        messages: its transcript, oldest first.
        agent: name of its agent, whose instructions and tools are in every prompt; unknown ones have none.
    """
    shipped = AGENTS.get(agent or "")
    tools = [convert_to_openai_tool(tool) for tool in shipped.tools] if shipped else []
    kit = Toolkit(system=shipped.instructions if shipped else "", tools=tools)
    return Record(thread_id, f"thread {thread_id}", tuple(_replayable(messages)), toolkit=kit)


def _replayable(messages: Iterable[BaseMessage]) -> Iterator[BaseMessage]:
    """Yield messages without our marks; a call whose result never came is left out."""
    conversation = [message for message in messages if not is_synthetic(message)]
    answered = {message.tool_call_id for message in conversation if isinstance(message, ToolMessage)}
    called: set[str] = set()
    for message in conversation:
        extra = {key: value for key, value in message.additional_kwargs.items() if key != MARK}
        changes: dict[str, Any] = {"additional_kwargs": extra}
        if isinstance(message, AIMessage):
            calls = [
                {**call, "name": _READERS.get(call["name"], call["name"])}
                for call in message.tool_calls
                if call["id"] in answered
            ]
            called |= {str(call["id"]) for call in calls}
            if not calls and not str(message.text):
                continue
            changes |= {"tool_calls": calls, "invalid_tool_calls": [], "usage_metadata": None}
        elif isinstance(message, ToolMessage):
            if message.tool_call_id not in called:
                continue
            changes["name"] = _READERS.get(message.name or "", message.name)
        elif not isinstance(message, HumanMessage):
            continue
        yield message.model_copy(update=changes)
