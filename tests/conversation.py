"""Small conversations for tests."""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.state.messages import reduce_messages


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}


def tool_round(call_ids: list[str], result: str = "ok", *, prefix: str = "") -> list[BaseMessage]:
    calls = [call("look", call_id, n=1) for call_id in call_ids]
    return [
        AIMessage("", tool_calls=calls, id=f"{prefix}a-{call_ids[0]}"),
        *(ToolMessage(result, tool_call_id=call_id, id=f"{prefix}t-{call_id}") for call_id in call_ids),
    ]


def conversation(turns: int, *, words: int = 20, tool_words: int = 0) -> list[BaseMessage]:
    """Make turns of one size: a question, maybe a tool round, an answer."""
    messages: list[BaseMessage] = []
    for turn in range(turns):
        messages.append(HumanMessage(f"question {turn} " + "word " * words, id=f"h{turn}"))
        if tool_words:
            messages += tool_round([f"c{turn}"], "data " * tool_words)
        messages.append(AIMessage(f"answer {turn} " + "word " * words, id=f"b{turn}"))
    return reduce_messages([], [messages])
