"""Notes: one fact each, with where it came from."""

import hashlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

NoteKind = Literal["preference", "constraint", "fact", "habit"]
NoteScope = Literal["durable", "session"]
NoteStatus = Literal["active", "superseded", "expired", "retracted"]
NoteOrigin = Literal["user", "tool", "assistant", "import"]


class Source(BaseModel):
    """Where a note was said."""

    model_config = ConfigDict(frozen=True)

    thread_id: str
    message_ids: tuple[str, ...] = ()
    quote: str = ""
    """The user's own words, verbatim."""


class Note(BaseModel):
    """One fact about the user, in one or two sentences."""

    model_config = ConfigDict(frozen=True)

    id: str
    text: str
    keywords: tuple[str, ...] = ()
    """One to three lowercase words."""
    kind: NoteKind = "preference"
    scope: NoteScope = "durable"
    """`session` notes are for this trip or case only and never become long-term."""
    date: str
    """Day it was said, ISO 8601."""
    said_at: str = ""
    """Time at which it was said, ISO 8601, which orders the notes of a day; empty when only the day is known."""
    status: NoteStatus = "active"
    origin: NoteOrigin = "user"
    """Whose words it is made of; those of a tool or of the assistant wait until the user has confirmed them."""
    scope_if_confirmed: NoteScope | None = None
    """What `scope` becomes once the user has confirmed it; None: it stays as it is."""
    confidence: float = Field(default=1.0, ge=0, le=1)
    confirmations: tuple[str, ...] = ()
    """Days on which it was said again, ISO 8601; each day counts once."""
    subject: str = ""
    """What the note is about, such as `seat`, when the rules can tell: only notes of one subject can be in conflict."""
    valid_from: str | None = None
    """First day on which it holds, ISO 8601; None: the day it was said."""
    valid_to: str | None = None
    """Day on which another note took its place, ISO 8601."""
    superseded_by: str | None = None
    """Id of the note that took its place."""
    expires_at: str | None = None
    """Day from which it no longer holds, ISO 8601; None: it has no set end."""
    conflicts_with: tuple[str, ...] = ()
    """Ids of notes that say otherwise while nobody can tell which holds."""
    sources: tuple[Source, ...] = ()

    @property
    def when(self) -> tuple[str, str]:
        """What orders notes by time: the day, and the time of day where it is known."""
        return self.date, self.said_at

    @property
    def is_waiting(self) -> bool:
        """Tell whether the user has yet to confirm it: until then it is no rule, no pin and not durable."""
        return self.origin in ("tool", "assistant")

    @property
    def quotes_user(self) -> bool:
        """Tell whether it is shown to be made of what the user typed."""
        return self.origin == "user" and any(source.quote for source in self.sources)

    @property
    def message_ids(self) -> list[str]:
        """The messages of all its sources."""
        return [message_id for source in self.sources for message_id in source.message_ids]

    def value(self) -> dict[str, Any]:
        """Return the note as JSON for the store."""
        return self.model_dump(mode="json")


def note_id(*parts: str) -> str:
    """Derive a note's id from what it is about, so that a retry can never double it."""
    return "n-" + hashlib.sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
