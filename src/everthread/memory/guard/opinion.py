"""A second opinion on notes that the rules allow: what a model is shown, and what counts as its answer.

A note is kept when the answer allows it in so many words. Whatever else comes back is a no.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from everthread.memory.guard.verdict import ALLOW, Verdict
from everthread.memory.replies import json_of
from everthread.state.notes import Note

_LONGEST_QUOTE = 400


class Opinion(BaseModel):
    """The answer on one note."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="Id of the note, copied letter by letter.")
    verdict: Literal["allow", "instruction_payload", "policy_override", "system_rule", "exfil_link", "secret"]


class Opinions(BaseModel):
    """One answer for each note."""

    model_config = ConfigDict(extra="forbid")

    answers: list[Opinion]


def lines(notes: Sequence[Note]) -> str:
    """Return notes as the prompt shows them, each a JSON object in a line, which no text can leave."""
    shown = [
        {
            "id": name,
            "note": note.text,
            "kind": note.kind,
            "from": note.origin,
            "said": " ".join(source.quote for source in note.sources)[-_LONGEST_QUOTE:],
        }
        for name, note in zip(_names(notes), notes, strict=True)
    ]
    return "\n".join(json.dumps(one, ensure_ascii=False).replace("<", "\\u003c") for one in shown)


def read_opinions(reply: object, notes: Sequence[Note]) -> list[Verdict]:
    """Read an answer on notes.

    Args:
        reply: arguments of a call, or text with JSON in it.
        notes: those that were shown, in order.

    Returns:
        A verdict for each note; one that has no answer, or two, is blocked.

    Raises:
        ValueError: the reply has another shape, or an answer on what nobody asked, such as an id that a note made up.
    """
    answers = Opinions.model_validate(json_of(reply)).answers
    names = _names(notes)
    if not {one.id for one in answers} <= set(names):
        raise ValueError("an id that nobody asked about")
    verdicts = []
    for name in names:
        given = [one.verdict for one in answers if one.id == name]
        if len(given) != 1:
            verdicts.append(unanswered("two answers" if given else "no answer"))
        else:
            verdicts.append(ALLOW if given[0] == "allow" else Verdict("block", given[0], "second opinion"))
    return verdicts


def unanswered(reason: str) -> Verdict:
    """Return the verdict on a note that the model did not judge."""
    return Verdict("block", "unreadable", reason)


def _names(notes: Sequence[Note]) -> list[str]:
    # Of the notes' ids, which come from the ids of thread and message: no text of a note can foretell them.
    key = hashlib.sha256("\x00".join(note.id for note in notes).encode()).hexdigest()[:8]
    return [f"{key}-{number}" for number in range(1, len(notes) + 1)]
