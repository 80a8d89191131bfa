"""Read recorded conversations that have questions, each with the messages that hold its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.messages import BaseMessage

from everthread.errors import RecordError
from everthread.evals.picking import Picked
from everthread.state.marks import marked
from everthread.state.messages import reduce_messages

from .annotations import AnnotatedRecord, Question, annotated

UNDATED = "2025-01-01T00:00:00"
"""Date of the messages of a record without dates."""

_KINDS = ("", "long_conversation", "composite_session")
"""Short dialogues have questions, too, but nothing of theirs ever has to leave a prompt."""


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


def read_conversations(paths: Sequence[Path], limit: int | None = None) -> Picked[Conversation]:
    """Read the long conversations with questions in files, or in all `.jsonl` files of folders.

    Raises:
        RecordError: a file cannot be read, a line is malformed, or there is no such conversation.
    """
    picked = annotated(
        paths,
        lambda value, gold: value.get("kind", "") in _KINDS and any(map(_has_evidence, gold.get("questions") or ())),
        "questions with evidence about a long conversation",
        limit=limit,
    )
    return Picked(tuple(map(_conversation, picked.records)), picked.remarks)


def _has_evidence(question: object) -> bool:
    return isinstance(question, dict) and bool(question.get("evidence")) and not question.get("suspect")


def _conversation(record: AnnotatedRecord) -> Conversation:
    dates = {place: session.date for session in record.sessions for place in range(session.start, session.end)}
    texts = record.texts
    for question in record.gold.questions:
        if missing := set(question.evidence) - texts.keys():
            raise RecordError(
                f"{record.id}: question {question.qid!r} cites {sorted(missing)[0]!r}, which is no message"
            )
    messages_in_order = reduce_messages([], [record.as_messages()])
    messages = [marked(message, at=dates.get(place) or UNDATED) for place, message in enumerate(messages_in_order)]
    usable = [question for question in record.gold.questions if question.evidence and not question.suspect]
    return Conversation(record.id, tuple(messages), tuple(usable), len(record.gold.questions) - len(usable))
