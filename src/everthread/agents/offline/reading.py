"""Read a prompt: who speaks, what is known about the user, what the tools have answered.

Everything that comes out of a prompt is data. Only the user's own message is ever read as a request;
notes, profile and tool results are shown, compared and quoted, whatever they say.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.agents.offline.patterns import pattern
from everthread.state.marks import is_synthetic, marks, sequence

LONGEST_READ = 8_000
"""Characters of a user's message that are looked at; patterns find nothing new in a longer one."""


@dataclass(frozen=True)
class NoteLine:
    """A note as the prompt shows it."""

    text: str
    date: str = ""
    keywords: tuple[str, ...] = ()


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
class Reading:
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
    summary: str = ""
    begins: bool = True
    """Whether nothing was answered in this thread so far."""
    asks_for_summary: bool = False
    """Whether the prompt is one for a summariser or an extractor, not a turn of a conversation."""
    key: str = ""
    """What tells this turn from all others; ids of calls are derived from it."""

    @property
    def last_answer(self) -> str:
        """What the assistant said last; empty at the beginning."""
        return self.turns[-1].assistant if self.turns else ""

    def latest(self, *tools: str) -> Result | None:
        """Return the newest successful answer of one of these tools in earlier turns."""
        known = (result for turn in reversed(self.turns) for result in reversed(turn.results))
        return next((result for result in known if result.tool in tools and not result.failed), None)


def read(messages: Sequence[BaseMessage], tools: frozenset[str], today: date | None = None) -> Reading:
    """Read a prompt.

    Args:
        messages: as they are sent: one system message, then the conversation, ours among them.
        tools: names of the bound tools.
        today: the day to reckon from; None takes the prompt's `Today is …` line, else the clock.
    """
    system = "\n\n".join(_text(message) for message in messages if isinstance(message, SystemMessage))
    ours = [message for message in messages if is_synthetic(message)]
    conversation = [m for m in messages if not isinstance(m, SystemMessage) and not is_synthetic(m)]
    turns = _turns(conversation)
    current = turns[-1] if turns else Turn("")
    notes = _notes("\n".join((system, *(_text(message) for message in ours if isinstance(message, HumanMessage)))))
    return Reading(
        today=today or _today(system),
        text=current.user[:LONGEST_READ],
        tools=tools,
        results=current.results,
        turns=tuple(turns[:-1]),
        profile=_profile(system),
        long_term=notes["long-term notes"],
        session=notes["session notes"],
        summary=next((_text(message) for message in ours if marks(message)["kind"] == "summary"), ""),
        begins=_begins(conversation, ours),
        asks_for_summary=_asks_for_summary(messages, system, tools),
        key=_key(conversation),
    )


def without_secrets(text: str) -> str:
    """Take passwords and codes that somebody wrote down out of a text; "my password is expired" stays."""
    return _SECRET.sub("[secret left out]", text)


def visible(text: str, longest: int = 2_000) -> str:
    """Return text from elsewhere as it may be shown: without control characters, cut at a whole line or word."""
    text = "".join(sign for sign in text if sign in "\n\t" or sign.isprintable()).strip()
    if len(text) <= longest:
        return text
    cut = text[:longest]
    end = max(cut.rfind("\n"), cut.rfind(" "))
    return f"{cut[: end if end > longest // 2 else longest].rstrip()} …"


def _text(message: BaseMessage) -> str:
    """Return the text of a message, also of one whose content is a list of blocks."""
    return str(message.text)


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
            name = call["name"] if call else message.name or "tool"
            text = _text(message)
            failed = message.status == "error" or text.startswith("Error:")
            results.append(Result(name, call["args"] if call else {}, text, failed))
    said = (_text(message) for message in group if isinstance(message, AIMessage))
    asked = _text(group[0]) if isinstance(group[0], HumanMessage) else ""
    return Turn(asked, tuple(results), "\n\n".join(text for text in said if text))


def _begins(conversation: Sequence[BaseMessage], ours: Sequence[BaseMessage]) -> bool:
    """Tell whether this is the first turn of the thread, as far as the prompt can show.

    A turn that left the prompt leaves a trace: a summary, returned notes, the task anchor without its
    answer, or a place in the thread above 0.
    """
    humans = [message for message in conversation if isinstance(message, HumanMessage)]
    answered = any(isinstance(message, AIMessage) and _text(message) for message in conversation)
    later = any(sequence(message) > 0 for message in humans)
    return not (ours or answered or later or len(humans) > 1)


def _asks_for_summary(messages: Sequence[BaseMessage], system: str, tools: frozenset[str]) -> bool:
    humans = [message for message in messages if isinstance(message, HumanMessage)]
    if humans and marks(humans[-1]).get("kind") == "summary_request":
        return True
    if tools or "<memory_policy>" in system:
        return False
    last = _text(humans[-1])[:LONGEST_READ] if humans else ""
    return _SUMMARISING.search(f"{system[:LONGEST_READ]}\n{last}") is not None


_SECRET = pattern(
    r"(?:\b(?:my|the) )?\b(?:password|passphrase|passcode|pin|otp)\s*(?:is|was|:|=)\s*"
    r"(?!(?:not|expired|wrong|incorrect|correct|locked|rejected|refused|denied|invalid|about|too|the|a|no)\b)\S+"
)
_SUMMARISING = re.compile(
    r"\b(?:summari[sz]e|summary|hand over this case|JSON|distil|consolidate|extract)", re.IGNORECASE
)
_TODAY = re.compile(r"^Today is (\d{4}-\d{2}-\d{2})\b", re.MULTILINE)
_PROFILE = re.compile(r"^<user_profile>\n---\n(.*?)\n---\n</user_profile>$", re.MULTILINE | re.DOTALL)
_MEMORIES = re.compile(r"^<memories>\n(.*?)^</memories>$", re.MULTILINE | re.DOTALL)
_NOTE = re.compile(r"^- (?:(\d{4}-\d{2}-\d{2}): )?(.*?)(?: \[([^\[\]]*)\])?$")


def _today(system: str) -> date:
    found = _TODAY.search(system)
    try:
        return date.fromisoformat(found[1]) if found else date.today()
    except ValueError:
        return date.today()


def _profile(system: str) -> Mapping[str, Any]:
    found = _PROFILE.search(system)
    if found is None:
        return {}
    try:
        values = yaml.safe_load(found[1])
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}


def _notes(text: str) -> dict[str, tuple[NoteLine, ...]]:
    """Read the notes below each heading of the memory blocks."""
    found: dict[str, list[NoteLine]] = {"long-term notes": [], "session notes": []}
    for block in _MEMORIES.finditer(text):
        heading = "long-term notes"
        for line in block[1].splitlines():
            if line.startswith("## "):
                heading = line[3:].strip().lower()
            elif match := _NOTE.match(line):
                keywords = tuple(word.strip() for word in (match[3] or "").split(",") if word.strip())
                found.setdefault(heading, []).append(NoteLine(match[2].strip(), match[1] or "", keywords))
    return {heading: tuple(lines) for heading, lines in found.items()}


def _key(conversation: Sequence[BaseMessage]) -> str:
    """Identify the turn: the id of its message when it has one, else its text and place."""
    last = next((place for place in range(len(conversation) - 1, -1, -1) if conversation[place].type == "human"), 0)
    if not conversation:
        return ""
    message = conversation[last]
    rounds = sum(isinstance(later, AIMessage) for later in conversation[last + 1 :])
    return json.dumps([message.id or [last, _text(message)], rounds], ensure_ascii=True)
