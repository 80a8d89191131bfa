"""Let a model read messages for notes; what it proposes is checked, and the rules do without it when it fails."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from langchain_core.messages import AIMessage, BaseMessage

from everthread.memory.distill import Candidate
from everthread.memory.distill.proposals import Proposals, accepted, read_proposals
from everthread.memory.text.wording import wording
from everthread.models.calls import ModelCalls
from everthread.models.wrapped import ChatModel
from everthread.nodes.structured_output import asked
from everthread.prompts import render
from everthread.window.turns import opens_turn

LONGEST_REQUEST = 24_000
"""Characters of messages in one request, some 6,000 tokens."""

MOST_REQUESTS = 4
"""Requests for one reading; the newest messages are read, and the rules read all."""

_LONGEST_MESSAGE = 4_000
_LONGEST_QUESTION = 400
_KNOWN = 40
"""Notes that a model is shown, so that it does not repeat them."""


@dataclass(frozen=True)
class Read:
    """What a model found."""

    found: Mapping[str, Sequence[Candidate]] = field(default_factory=dict)
    """By message id."""
    failure: str = ""
    """Why the rules are alone with some of the messages; empty when they are not."""
    refused: tuple[str, ...] = ()
    """What was wrong with each proposal that was not taken."""


@dataclass(frozen=True)
class _Shown:
    message: BaseMessage
    question: str
    """What the assistant had said just before it; empty when that was no text."""

    @property
    def size(self) -> int:
        return len(_clipped(self.question, _LONGEST_QUESTION)) + len(_clipped(self.text, _LONGEST_MESSAGE)) + 40

    @property
    def text(self) -> str:
        return str(self.message.text)


def read_with_model(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    *,
    skip: Collection[str] = (),
    known: Sequence[str] = (),
    seconds: float | None = None,
) -> ModelCalls[Read]:
    """Ask a model for the notes that the user's messages hold, some messages at a time.

    Args:
        messages: in order; the assistant's are shown as what a short answer answers.
        skip: ids of messages that are not read.
        known: texts of notes that there are.
        seconds: how long one request may take.
    """
    found: dict[str, list[Candidate]] = {}
    refused: list[str] = []
    for part in _parts(messages, skip):
        take = partial(_take, part=part, known=known, found=found, refused=refused)
        _, failure = yield from asked(model, Proposals, _request(part, known), take, seconds=seconds)
        if failure:
            # The client has tried again already, so the other parts are left to the rules as well.
            return Read(found, failure, tuple(refused))
    return Read(found, "", tuple(refused))


def questioned(messages: Sequence[BaseMessage]) -> Iterator[tuple[BaseMessage, str]]:
    """Yield the user's messages, each with what the assistant had said just before it."""
    question = ""
    for message in messages:
        if opens_turn(message):
            yield message, question
            question = ""
        elif isinstance(message, AIMessage):
            question = "" if message.tool_calls else str(message.text)


def _take(
    reply: object, part: Sequence[_Shown], known: Sequence[str], found: dict[str, list[Candidate]], refused: list[str]
) -> None:
    """Add what holds of a reply to `found`, and what is wrong with the rest to `refused`."""
    proposals, malformed = read_proposals(reply)
    refused += ["cannot be read"] * malformed
    numbered = {number: one for number, _, one in _lines(part) if one is not None}
    for made in proposals:
        shown = numbered.get(made.message)
        candidate = accepted(made, shown.text, shown.question, known) if shown else "no such message of the user"
        if isinstance(candidate, str):
            refused.append(candidate)
        elif shown is not None:
            found.setdefault(str(shown.message.id), []).append(candidate)


def _parts(messages: Sequence[BaseMessage], skip: Collection[str]) -> list[list[_Shown]]:
    """Return the messages to read in the parts that make a request, the oldest first."""
    shown = [_Shown(message, question) for message, question in questioned(messages) if str(message.id) not in skip]
    parts: list[list[_Shown]] = []
    room = 0
    for one in shown:
        if not wording(one.text[:_LONGEST_MESSAGE]).words:
            continue
        if one.size > room:
            parts.append([])
            room = LONGEST_REQUEST
        parts[-1].append(one)
        room -= one.size
    return parts[-MOST_REQUESTS:]


def _request(part: Sequence[_Shown], known: Sequence[str]) -> str:
    lines = [f"[{number}] {line}" for number, line, _ in _lines(part)]
    notes = [f"- {_clipped(note, _LONGEST_QUESTION)}" for note in known[-_KNOWN:]]
    return render("distill", messages="\n".join(lines), known="\n".join(notes) or "(none)")


def _lines(part: Sequence[_Shown]) -> Iterator[tuple[int, str, _Shown | None]]:
    """Yield number and line of each message, and what is shown when it is the user's."""
    number = 0
    for one in part:
        if one.question:
            number += 1
            yield number, f"assistant: {_clipped(one.question, _LONGEST_QUESTION)}", None
        number += 1
        yield number, f"user: {_clipped(one.text, _LONGEST_MESSAGE)}", one


def _clipped(text: str, longest: int) -> str:
    """Return a text in one line, which can close no block; of a long one its end, where questions stand."""
    line = " ".join(text[-longest:].split()) if len(text) > longest else " ".join(text.split())
    return line.replace("<", "&lt;")
