"""What a model proposes, read with suspicion: small numbers instead of ids, and nothing taken on trust."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from everthread.memory.consolidate.promotion import holds
from everthread.memory.consolidate.rules import in_order, reason_to_drop
from everthread.memory.replies import json_of, valid_items
from everthread.memory.text.wording import wording
from everthread.state.notes import Note

MOST_SHOWN = 80
"""Long-term notes that a model is shown: those with most words in common with the session's, then the newest."""


class Step(BaseModel):
    """What to do with one note."""

    model_config = ConfigDict(extra="ignore")

    action: Literal["keep", "add", "merge", "supersede", "expire", "drop"]
    note: int = Field(description="Number of the note.")
    other: int | None = Field(default=None, description="merge: the note it joins; supersede: the note in its place.")
    text: str | None = Field(default=None, description="add, merge: better words, from the notes' own; else null.")
    reason: str | None = Field(default=None, description="drop: why; else null.")


class Proposal(BaseModel):
    """The steps of a consolidation, one for every note."""

    model_config = ConfigDict(extra="ignore")

    steps: list[Step]


@dataclass(frozen=True)
class Numbered:
    """The notes that a model is shown, by number."""

    long_term: dict[int, Note]
    session: dict[int, Note]

    def lines(self, notes: Mapping[int, Note]) -> str:
        """Return notes as the prompt shows them, one a line; no text can close the block that it stands in."""
        shown = [
            f"[{number}] {note.date} {note.kind}: {' '.join(note.text.split()).replace('<', '&lt;')}"
            for number, note in notes.items()
        ]
        return "\n".join(shown) or "(none)"


def numbered(session: Sequence[Note], long_term: Sequence[Note], today: str = "") -> Numbered:
    """Number the notes that a model can decide on: active long-term notes, and session notes that may last."""
    lasting = [note for note in in_order(session) if not reason_to_drop(note, today)]
    words = frozenset(word for note in lasting for word in wording(note.text).words)
    active = [note for note in long_term if holds(note)]
    newest = sorted(active, key=lambda note: note.when, reverse=True)
    shown = sorted(newest, key=lambda note: -len(words & wording(note.text).words))[:MOST_SHOWN]
    ids = {note.id for note in shown}
    kept = sorted((note for note in active if note.id in ids), key=lambda note: (*note.when, note.id))
    return Numbered(long_term=dict(enumerate(kept, start=1)), session=dict(enumerate(lasting, start=len(kept) + 1)))


def read_proposal(reply: object) -> list[Step]:
    """Read a model's reply: a parsed proposal, the arguments of a tool call, or text with JSON in it.

    A step that is malformed is left out; its note is then one that the proposal does not name.

    Raises:
        ValueError: the reply holds no list of steps.
    """
    value = json_of(reply.model_dump() if isinstance(reply, Proposal) else reply)
    if isinstance(value, Mapping):
        value = value.get("steps")
    if not isinstance(value, list):
        raise ValueError("no list of steps")
    return valid_items(value, Step)
