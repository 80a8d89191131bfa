"""Read a prompt: who speaks, what is known about the user, what the tools have answered.

Only the user's own message is ever read as a request; notes, profile and tool results are data, whatever they say.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.state.marks import is_synthetic, sequence

MAX_CHARACTERS = 8_000
"""Characters of a user's message that are looked at; patterns find nothing new in a longer one."""

_TODAY = re.compile(r"^Today is (\d{4}-\d{2}-\d{2})\b", re.MULTILINE)
_PROFILE = re.compile(r"^<user_profile>\n---\n(.*?)\n---\n</user_profile>$", re.MULTILINE | re.DOTALL)
_MEMORIES = re.compile(r"^<memories>\n(.*?)^</memories>$", re.MULTILINE | re.DOTALL)
_NOTE = re.compile(r"^- (?:(\d{4}-\d{2}-\d{2}): )?(.*?)(?: \[([^\[\]]*)\])?$")


@dataclass(frozen=True)
class NoteLine:
    """A note as the prompt shows it."""

    text: str
    date: str = ""


@dataclass(frozen=True)
class Result:
    """A tool's answer, with the call it answers."""

    tool: str
    args: Mapping[str, Any]
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Turn:
    """A user's message and what followed it."""

    user: str
    results: tuple[Result, ...] = ()
    assistant: str = ""


@dataclass(frozen=True)
class Prompt:
    """All that a reply may rest on."""

    today: date
    text: str = ""
    """The current user message."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that can be called."""
    results: tuple[Result, ...] = ()
    """Answers of tools in the current turn."""
    turns: tuple[Turn, ...] = ()
    """Earlier turns that are still in the prompt, oldest first."""
    profile: Mapping[str, Any] = field(default_factory=dict)
    long_term: tuple[NoteLine, ...] = ()
    session: tuple[NoteLine, ...] = ()
    begins: bool = True
    """Whether nothing was answered in this thread so far."""
    key: str = ""
    """What tells this turn from all others; ids of calls are derived from it."""

    @property
    def last_answer(self) -> str:
        """What the assistant said last; empty at the beginning."""
        return self.turns[-1].assistant if self.turns else ""

    def latest(self, *tools: str) -> Result | None:
        """Return the newest successful answer of one of these tools in earlier turns."""
        results = (result for turn in reversed(self.turns) for result in reversed(turn.results))
        return next((result for result in results if result.tool in tools and not result.failed), None)


def read(messages: Sequence[BaseMessage], tools: frozenset[str], today: date | None = None) -> Prompt:
    """Read a prompt.

    Args:
        messages: as they are sent: one system message, then the conversation, ours among them.
        today: the day to reckon from; None takes the prompt's `Today is …` line, else the clock.
    """
    system = "\n\n".join(str(message.text) for message in messages if isinstance(message, SystemMessage))
    ours = [message for message in messages if is_synthetic(message)]
    conversation = [one for one in messages if not isinstance(one, SystemMessage) and not is_synthetic(one)]
    turns = _turns(conversation)
    current = turns[-1] if turns else Turn("")
    notes = _notes("\n".join([system, *(str(one.text) for one in ours if isinstance(one, HumanMessage))]))
    return Prompt(
        today=today or _today(system),
        text=current.user[:MAX_CHARACTERS].strip(),
        tools=tools,
        results=current.results,
        turns=tuple(turns[:-1]),
        profile=_profile(system),
        long_term=notes["long-term notes"],
        session=notes["session notes"],
        begins=_begins(conversation, ours),
        key=_key(conversation),
    )


def _turns(conversation: Sequence[BaseMessage]) -> list[Turn]:
    """Group messages by the user's messages; what comes before the first one is a turn without a question."""
    groups: list[list[BaseMessage]] = []
    for message in conversation:
        if isinstance(message, HumanMessage) or not groups:
            groups.append([])
        groups[-1].append(message)
    return [_turn(group) for group in groups]


def _turn(group: Sequence[BaseMessage]) -> Turn:
    calls = {call["id"]: call for message in group if isinstance(message, AIMessage) for call in message.tool_calls}
    results = []
    for message in group:
        if isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id)
            text = str(message.text)
            failed = message.status == "error" or text.startswith("Error:")
            name, args = (call["name"], call["args"]) if call else (message.name or "tool", {})
            results.append(Result(name, args, text, failed))
    replies = [str(message.text) for message in group if isinstance(message, AIMessage) and message.text]
    question = str(group[0].text) if isinstance(group[0], HumanMessage) else ""
    return Turn(question, tuple(results), "\n\n".join(replies))


def _begins(conversation: Sequence[BaseMessage], ours: Sequence[BaseMessage]) -> bool:
    """Tell whether this is the first turn of the thread, as far as the prompt can show.

    A turn that left the prompt leaves a trace: a summary, returned notes, the task anchor without its
    answer, or a place in the thread above 0.
    """
    humans = [message for message in conversation if isinstance(message, HumanMessage)]
    answered = any(isinstance(message, AIMessage) and message.text for message in conversation)
    return not (ours or answered or len(humans) > 1 or any(sequence(message) > 0 for message in humans))


def _today(system: str) -> date:
    match = _TODAY.search(system)
    try:
        return date.fromisoformat(match[1]) if match else date.today()
    except ValueError:
        return date.today()


def _profile(system: str) -> Mapping[str, Any]:
    match = _PROFILE.search(system)
    try:
        values = yaml.safe_load(match[1]) if match else {}
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}


def _notes(text: str) -> dict[str, tuple[NoteLine, ...]]:
    """Read the notes below each heading of the memory blocks."""
    notes: dict[str, list[NoteLine]] = {"long-term notes": [], "session notes": []}
    for block in _MEMORIES.finditer(text):
        heading = "long-term notes"
        for line in block[1].splitlines():
            if line.startswith("## "):
                heading = line[3:].strip().lower()
            elif match := _NOTE.match(line):
                notes.setdefault(heading, []).append(NoteLine(match[2].strip(), match[1] or ""))
    return {heading: tuple(lines) for heading, lines in notes.items()}


def _key(conversation: Sequence[BaseMessage]) -> str:
    """Identify the turn: the id of its message when it has one, else its text and place."""
    if not conversation:
        return ""
    last = max((place for place, message in enumerate(conversation) if message.type == "human"), default=0)
    message = conversation[last]
    rounds = sum(isinstance(later, AIMessage) for later in conversation[last + 1 :])
    return json.dumps([message.id or [last, str(message.text)], rounds])
