"""Read recorded conversations that have questions, each with the messages that hold its answer."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from everthread.errors import RecordError
from everthread.evals.records import lines
from everthread.state.marks import marked
from everthread.state.messages import reduce_messages

UNDATED = "2025-01-01T00:00:00"
"""Date of the messages of a record without dates."""

_WANTED = ("long_conversation", "composite_session")


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Question(_Lenient):
    """A question about a conversation."""

    qid: str
    question: str
    category: str = ""
    evidence: list[str] = []
    suspect: bool = False
    """The source's evidence does not hold the answer."""
    audit: dict[str, Any] | None = None
    """What a published second annotation says against this one."""


class _Session(_Lenient):
    id: str
    date: str | None = None
    start: int
    end: int


class _Gold(_Lenient):
    questions: list[Question] = []


class _Line(_Lenient):
    id: str = Field(min_length=1)
    kind: str = ""
    messages: list[dict[str, Any]]
    sessions: list[_Session] = []
    gold: _Gold = _Gold()


@dataclass(frozen=True)
class Conversation:
    """A recorded conversation with places, dates and questions."""

    id: str
    messages: tuple[BaseMessage, ...]
    """As the reducer leaves them, each with its date; ids are the recorded ones."""
    questions: tuple[Question, ...]
    """Those with evidence that holds the answer."""
    left_out: int
    """Questions without evidence, or whose evidence does not hold the answer."""

    @property
    def group(self) -> str:
        """Where it comes from: the first part of its id."""
        return self.id.split("/")[0]

    @property
    def is_audited(self) -> bool:
        """Whether somebody checked its annotation a second time."""
        return any(question.audit for question in self.questions)


def read_conversations(paths: Sequence[Path]) -> list[Conversation]:
    """Read the long conversations with questions in files, or in all `.jsonl` files of folders.

    Raises:
        RecordError: a file cannot be read, a line is malformed, or there is no such conversation.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    found = [one for file in files for one in _read(file) if one.questions]
    if not found:
        raise RecordError(
            f"no long conversation with questions in {', '.join(map(str, paths)) or 'nothing'}; "
            "give a folder that holds `long_conversations.jsonl`"
        )
    return found


def _read(file: Path) -> Iterator[Conversation]:
    for where, line in lines(file):
        try:
            value = json.loads(line)
            if value.get("kind") in _WANTED:
                yield _conversation(_Line.model_validate(value))
        except (ValueError, AttributeError, ValidationError) as error:
            raise RecordError(f"{where}: {str(error).splitlines()[0]}") from error


def _conversation(line: _Line) -> Conversation:
    dates = {place: iso_date(session.date) for session in line.sessions for place in range(session.start, session.end)}
    said = [_message(value, place) for place, value in enumerate(line.messages)]
    known = {str(message.id) for message in said}
    for question in line.gold.questions:
        if missing := set(question.evidence) - known:
            raise RecordError(f"{line.id}: question {question.qid!r} cites {sorted(missing)[0]!r}, which is no message")
    messages = [
        marked(message, at=dates.get(place) or UNDATED) for place, message in enumerate(reduce_messages([], [said]))
    ]
    usable = [question for question in line.gold.questions if question.evidence and not question.suspect]
    return Conversation(line.id, tuple(messages), tuple(usable), len(line.gold.questions) - len(usable))


def _message(value: dict[str, Any], place: int) -> BaseMessage:
    content, message_id = value.get("content") or "", str(value.get("id") or f"m{place:04d}")
    if value.get("role") == "tool":
        return ToolMessage(content, id=message_id, tool_call_id=str(value["tool_call_id"]), name=value.get("name"))
    if value.get("role") == "user":
        return HumanMessage(content, id=message_id, name=value.get("name"))
    calls = [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "args": json.loads(call["function"]["arguments"] or "{}"),
            "type": "tool_call",
        }
        for call in value.get("tool_calls") or ()
    ]
    return AIMessage(content, id=message_id, name=value.get("name"), tool_calls=calls)


def iso_date(text: str | None) -> str | None:
    """Return a recorded date as ISO 8601; `March-15-2024` is one of the ways in which they are written."""
    if not text:
        return None
    if match := re.fullmatch(r"([A-Za-z]+)-(\d{1,2})-(\d{4})", text):
        return datetime.strptime(" ".join(match.groups()), "%B %d %Y").isoformat()
    return datetime.fromisoformat(text).isoformat()
