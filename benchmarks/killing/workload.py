"""A conversation whose every message is known in advance, so that nothing lost or doubled can hide."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import Field

from everthread.agents import support
from everthread.models.scripted import CannedModel, Tools
from everthread.state import Agent, Context
from everthread.window.masking import handles_in

CONFIG: Any = {"configurable": {"thread_id": "t-1"}}

USER = "u-1"

CONTEXT = Context(
    user_id=USER, window=3_000, max_output_tokens=300, tool_output_tokens=150, keep_last_turns=2, distillation=("turn",)
)
"""So small that every few turns something is evicted, masked and summarised."""

Line = tuple[str, str | None]
"""Type and text of a message; None for a text with an id that only the run knows."""

_ASKED = re.compile(r"Question (\d+) of")
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "marsh")
_HABITS = ("oat milk", "green tea", "paper maps", "rye bread", "wool blankets", "plain soap", "soft pears")


def question(turn: int) -> str:
    """Return what the user says on a turn; on every fourth it tells a habit that becomes a note."""
    preference = f" Remember that I prefer {habit(turn)}." if habit(turn) else ""
    return f"Question {turn} of many: what about {_word(turn)} {turn * 7919}?{preference}"


def habit(turn: int) -> str | None:
    """Return the words of a turn that must be remembered, once."""
    return f"{_HABITS[turn // 4 % len(_HABITS)]} of kind {turn}" if turn % 4 == 0 else None


def document(item: str) -> str:
    """Return what `fetch` finds: over the limit for the prompt, so that it gets a handle."""
    return "\n".join(f"{item} line {line}: {_word(line * 5)} {line * 31}" for line in range(40))


def answer(turn: int) -> str:
    """Return the reply that ends a turn."""
    return f"Answer {turn}: " + " ".join(_word(turn + place) for place in range(60))


def rounds(turn: int) -> list[list[dict[str, Any]]]:
    """Return the tool calls of a turn: none, one, two in parallel, or one and then a ticket."""
    fetches = [_call("fetch", f"{turn}-{place}", item=f"item-{turn}-{place}") for place in range(2)]
    ticket = _call("open_ticket", f"{turn}-2", title=f"Ticket of turn {turn}", description=f"About {_word(turn)}.")
    kinds: list[list[list[dict[str, Any]]]] = [[], [fetches[:1]], [fetches], [fetches[:1], [ticket]]]
    return kinds[turn % 4]


def lines(turn: int) -> list[Line]:
    """Return all messages of a turn."""
    found: list[Line] = [("human", question(turn))]
    for calls in rounds(turn):
        found.append(("ai", "\n".join(_as_text(call) for call in calls)))
        found += [("tool", document(call["args"]["item"]) if call["name"] == "fetch" else None) for call in calls]
    return [*found, ("ai", answer(turn))]


class Assistant(CannedModel):
    """Replies from the question and the results after it, whatever else the prompt holds."""

    report: Callable[..., None] = Field(default=lambda *_: None)
    """Hears of every handle that was shown and of every prompt that a provider would refuse."""

    @property
    def _llm_type(self) -> str:
        return "known-conversation"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Return the next message of the conversation."""
        for handle in handles_in(messages):
            self.report("shown", handle)
        if fault := _fault(messages):
            self.report("illegal", fault)
        place, turn = _last_question(messages)
        calls = rounds(turn)
        done = sum(1 for message in messages[place:] if isinstance(message, AIMessage) and message.tool_calls)
        return AIMessage("", tool_calls=calls[done]) if done < len(calls) else AIMessage(answer(turn))


class Summarizer(CannedModel):
    """Writes a short summary, and fails every third time."""

    calls: list[int] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "short-summary"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Return a summary, or fail."""
        self.calls.append(len(messages))
        if len(self.calls) % 3 == 0:
            raise TimeoutError("the summariser is away")
        return AIMessage("## Goal\n- Answer many questions.\n## Facts\n- The questions are numbered.")


def on_fetch(item: str) -> None:
    """Be told of every item that the tool looks up; a process replaces it."""


@tool
def fetch(item: str) -> str:
    """Fetch a document."""
    on_fetch(item)
    return document(item)


AGENT = Agent(
    name="known",
    title="Known conversation",
    instructions="Answer every question.",
    tools=[
        fetch,
        *(one for one in support.tools if "ticket" in one.name),
    ],
)


def _last_question(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    for place in range(len(messages) - 1, -1, -1):
        found = _ASKED.match(str(messages[place].text)) if messages[place].type == "human" else None
        if found:
            return place, int(found[1])
    raise AssertionError("the prompt has no question")


def _fault(messages: Sequence[BaseMessage]) -> str:
    """Say why a provider would refuse a prompt: calls and results that do not belong together."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return f"the result of {message.tool_call_id} has no call"
            open_calls.remove(message.tool_call_id)
            continue
        if open_calls:
            return f"the call {open_calls[0]} has no result"
        open_calls = [str(call["id"]) for call in getattr(message, "tool_calls", [])]
    return f"the call {open_calls[0]} has no result" if open_calls else ""


def _call(name: str, place: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"call-{place}", "type": "tool_call"}


def _as_text(call: dict[str, Any]) -> str:
    return f"{call['name']}({', '.join(f'{name}={value!r}' for name, value in call['args'].items())})"


def _word(number: int) -> str:
    return _WORDS[number % len(_WORDS)]
