"""Recorded conversations made for tests."""

import json
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.evals.records import Record, Toolkit

RULE = "Don't order anything before I approve it."


def long_record(turns: int, name: str = "long", **gold: Any) -> Record:
    """Make turns with a tool call each; the last call uses a code that only the first result has."""
    messages: list[BaseMessage] = []
    for turn in range(turns):
        last = turn == turns - 1
        args = {"code": "KX-4711"} if last else {"n": turn}
        call = {"name": "look", "args": args, "id": f"c{turn}", "type": "tool_call"}
        row = f"row {turn} " * 100 + ("code KX-4711 " if turn == 0 else "")
        messages += [
            HumanMessage(f"question {turn}." + (f" {RULE}" if turn == 1 else ""), id=f"h{turn}"),
            AIMessage("", tool_calls=[call], id=f"a{turn}"),
            ToolMessage(row, tool_call_id=f"c{turn}", name="look", id=f"t{turn}"),
            AIMessage(f"answer {turn}", id=f"b{turn}"),
        ]
    return Record(name, f"{name}.jsonl:1", tuple(messages), toolkit=Toolkit(system="Be brief."), gold=gold)


def write(path: Path, *records: Record) -> Path:
    """Write records as a file of JSON lines."""
    path.write_text("\n".join(json.dumps(_line(record)) for record in records), encoding="utf-8")
    return path


def _line(record: Record) -> dict[str, Any]:
    messages = [_message(message) for message in record.messages]
    return {"id": record.id, "messages": messages, "meta": {"system": record.toolkit.system}, "gold": record.gold}


def _message(message: BaseMessage) -> dict[str, Any]:
    role = {"human": "user", "ai": "assistant", "tool": "tool"}[message.type]
    told: dict[str, Any] = {"id": message.id, "role": role, "content": message.content}
    if isinstance(message, ToolMessage):
        told |= {"tool_call_id": message.tool_call_id, "name": message.name}
    if isinstance(message, AIMessage) and message.tool_calls:
        told["tool_calls"] = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": json.dumps(call["args"])}}
            for call in message.tool_calls
        ]
    return told
