"""What a stream of a run tells: pieces of text, tool calls and results, events, and what it asks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Interrupt

from everthread.ledger.record import STREAM_KEY

STREAM_MODES = ["messages", "updates", "custom"]
"""What `TurnReader` reads."""


@dataclass(frozen=True)
class Text:
    """The next piece of the reply."""

    text: str
    message_id: str


@dataclass(frozen=True)
class Call:
    """A tool call that is about to run."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What a tool returned."""

    call_id: str
    name: str
    text: str
    failed: bool


@dataclass(frozen=True)
class Decision:
    """An event of the ledger."""

    event: dict[str, Any]


@dataclass(frozen=True)
class NodeDone:
    """A node of the graph is done."""

    node: str


@dataclass(frozen=True)
class Asked:
    """The run waits for answers; those of other tool calls of the step may follow."""

    interrupts: tuple[Interrupt, ...]


Part = Text | Call | Result | Decision | NodeDone | Asked


@dataclass
class TurnReader:
    """Reads the parts of one run's stream in `STREAM_MODES`."""

    reply: str = ""
    """Text of the newest message of the model."""
    _streamed: set[str] = field(default_factory=set)

    def read(self, mode: str, part: Any) -> Iterator[Part]:
        """Yield what a part of the stream tells."""
        if mode == "messages":
            message, metadata = part
            # Summaries are written by the same model, but nobody asked for their text.
            if metadata.get("langgraph_node") == "model" and isinstance(message, AIMessage) and message.text:
                self._streamed.add(str(message.id))
                yield Text(str(message.text), str(message.id))
        elif mode == "custom" and isinstance(part, dict) and STREAM_KEY in part:
            yield Decision(part)
        elif mode == "updates":
            yield from self._update(part)

    def _update(self, part: Mapping[str, Any]) -> Iterator[Part]:
        if "__interrupt__" in part:
            yield Asked(tuple(part["__interrupt__"]))
        for reply in _messages(part.get("model")):
            if isinstance(reply, AIMessage):
                self.reply = str(reply.text)
                if self.reply and str(reply.id) not in self._streamed:
                    yield Text(self.reply, str(reply.id))
                yield from (Call(str(call["id"]), call["name"], call["args"]) for call in reply.tool_calls)
        for result in _messages(part.get("tools")):
            if isinstance(result, ToolMessage):
                yield Result(result.tool_call_id, str(result.name), str(result.text), result.status == "error")
        yield from (NodeDone(node) for node in part if not node.startswith("__"))


def _messages(update: Any) -> list[BaseMessage]:
    """Return the messages in a node's update, which is a mapping or a list of them."""
    parts = update if isinstance(update, list) else [update]
    messages = [message for part in parts if isinstance(part, Mapping) for message in part.get("messages", [])]
    return [message for message in messages if isinstance(message, BaseMessage)]


def question(value: Any) -> str:
    """Return the text of an interrupt: the agent's own words, or every field of what it sent."""
    if isinstance(value, Mapping):
        summary = value.get("summary")
        if isinstance(summary, str) and summary.strip():
            return summary.strip()
        return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True).strip()
    return str(value)
