"""Turn a candidate into a session note, or say why not."""

import re
from collections.abc import Sequence

from langgraph.store.base import PutOp

from everthread.memory.guard import Verdict, check
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.constraints import is_constraint, is_for_this_time, is_lasting
from everthread.state import namespaces
from everthread.state.notes import Note, NoteKind, NoteOrigin, NoteScope, Source, note_id
from everthread.state.reducer import clean

LONGEST = 400
"""Characters of a note."""

_DAY = len("2026-01-31")

_LONGEST_KEYWORD = 24
_KEYWORD = re.compile(r"[\W\d_]+")


def capture(
    text: str,
    keywords: Sequence[str],
    *,
    scope: NoteScope,
    source: Source,
    date: str,
    salt: str,
    kind: NoteKind | None = None,
    subject: str = "",
    confidence: float = 1.0,
    origin: NoteOrigin,
    is_own: bool = False,
    rules: Rules = BUILT_IN,
) -> tuple[Note | None, Verdict, list[PutOp]]:
    """Check a candidate and prepare the write of a session note.

    Args:
        text: the candidate, one or two sentences.
        keywords: as given by a model; normalised to at most three lowercase words.
        scope: what the caller says; wording such as `this trip` makes it `session` in any case.
        source: thread, messages and the user's own words.
        date: when it was said, ISO 8601: the time or, where only that is known, the day.
        salt: what the id is derived from beside thread and text, such as the tool call's id.
        kind: what the note is; None lets its wording decide.
        subject: what it is about, when that is known.
        confidence: how sure it is, in [0, 1].
        origin: whose words it is made of; what is not the user's is for this session and no constraint, which would be
            pinned, until the user has confirmed it.
        is_own: nothing in the user's message looks pasted, so the guard leaves them their own wording.
        rules: the agent's.

    Returns:
        The note or None, the guard's verdict, and the writes to make.
    """
    text = normalised(text)
    verdict = check(text, rules=rules, is_own=is_own) if text else Verdict("block", rule="empty")
    if not verdict.allowed:
        return None, verdict, []
    if not check(source.quote, rules=rules, is_own=is_own).allowed:
        # The ids still lead to the message; the store of notes does not repeat what it must not hold.
        source = source.model_copy(update={"quote": ""})
    is_now = is_for_this_time(text, rules) and not is_lasting(text, rules)
    scope = "session" if is_now else scope
    is_waiting = origin in ("tool", "assistant")
    note = Note(
        id=note_id(source.thread_id, salt, text),
        text=text,
        keywords=tuple(_keywords(keywords)),
        kind="fact" if is_waiting else kind or kind_of(text, rules),
        scope="session" if is_waiting else scope,
        scope_if_confirmed=scope if is_waiting else None,
        subject=subject,
        confidence=confidence,
        date=date[:_DAY],
        said_at=date if len(date) > _DAY else "",
        origin=origin,
        sources=(source,),
    )
    return note, verdict, [PutOp(namespaces.session_notes(source.thread_id), note.id, note.value(), index=None)]


def normalised(text: str) -> str:
    """Return a note's text in one line, with a full stop; one above 400 characters is cut at a word and ends in `…`."""
    text = " ".join(clean(text).split())
    if len(text) > LONGEST:
        # What was cut off may be an exception, so the note must not look whole.
        text = text[: LONGEST - 2].rsplit(" ", 1)[0] + " …"
    if text and text[-1].isalnum():
        text += "."
    return text


def kind_of(text: str, rules: Rules = BUILT_IN) -> NoteKind:
    """Tell a constraint, which must never be lost, from a preference."""
    return "constraint" if is_constraint(text, rules) else "preference"


def _keywords(keywords: Sequence[str]) -> list[str]:
    words = (_KEYWORD.sub("", str(word).lower()) for word in keywords)
    return list(dict.fromkeys(word for word in words if word and len(word) <= _LONGEST_KEYWORD))[:3]
