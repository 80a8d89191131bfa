"""Promotion: what a user has confirmed often and for long becomes a field of the profile, and can come back from it.

A field takes part when its type lists its values, such as `Literal["aisle", "window"]`; the words of its name, or
`json_schema_extra={"note_subject": "…"}`, say what notes are about it. What a trusted system has set is never changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from everthread.memory.consolidate.claims import claims
from everthread.memory.consolidate.expiry import confidence_on
from everthread.memory.subjects import named
from everthread.memory.text.wording import root, wording
from everthread.state.notes import Note

FEWEST_DAYS = 3
"""Different days on which a note was said before it is promoted."""

SHORTEST_SPAN_DAYS = 30
"""Days from the first of these days to the last."""

LEAST_CONFIDENCE = 0.5

_HOLDS = {"status": "active", "superseded_by": None, "valid_to": None}
_MARK = "profile:"
_GENERIC = frozenset(map(root, ("preference", "preferred", "usual", "default", "type", "kind")))


@dataclass(frozen=True)
class Promotion:
    """A note that becomes a field of the profile."""

    note_id: str
    field: str
    value: str


@dataclass(frozen=True)
class Settled:
    """Profile and notes once promotions were made and outdated ones taken back."""

    profile: dict[str, Any]
    provenance: dict[str, Any]
    """By field: which note it came from, with which value, on which day."""
    notes: dict[str, Note]
    """The notes that changed, by id."""
    promoted: tuple[Promotion, ...] = ()
    reverted: tuple[Promotion, ...] = ()
    """Fields that were taken back, because their note holds no longer."""


def holds(note: Note) -> bool:
    """Tell whether a long-term note holds, be it as a field of the profile."""
    return note.status == "active" or is_promoted(note)


def is_promoted(note: Note) -> bool:
    """Tell whether a note holds as a field of the profile."""
    return note.status == "superseded" and bool(field_of(note))


def field_of(note: Note) -> str:
    """Return the field that a note became; empty when it became none."""
    by = note.superseded_by or ""
    return by.removeprefix(_MARK) if by.startswith(_MARK) else ""


def settle(
    notes: Mapping[str, Note],
    profile: Mapping[str, Any] | None,
    provenance: Mapping[str, Any] | None,
    schema: type[BaseModel] | None,
    today: str,
) -> Settled:
    """Bring profile and notes in line: take back what no longer holds, then promote what is ripe.

    Args:
        notes: all long-term notes by id, as a plan left them.
        profile: the user's profile; None when there is none.
        provenance: which fields came from notes.
        schema: the agent's profile; None promotes nothing.
        today: ISO 8601.
    """
    settled = released(notes, profile or {}, provenance or {})
    if schema is None:
        return settled
    values, came_from, changed = settled.profile, settled.provenance, dict(settled.notes)
    promotions = []
    for promotion in promotable([changed.get(note.id, note) for note in notes.values()], schema, today):
        if values.get(promotion.field) not in (None, "") or not _fits(
            schema, {**values, promotion.field: promotion.value}
        ):
            continue
        values[promotion.field] = promotion.value
        came_from[promotion.field] = {"note_id": promotion.note_id, "value": promotion.value, "at": today}
        update = {"status": "superseded", "superseded_by": _MARK + promotion.field, "valid_to": today}
        changed[promotion.note_id] = notes[promotion.note_id].model_copy(update=update)
        promotions.append(promotion)
    return Settled(values, came_from, changed, tuple(promotions), settled.reverted)


def released(notes: Mapping[str, Note], profile: Mapping[str, Any], provenance: Mapping[str, Any]) -> Settled:
    """Take back the fields whose note holds no longer, and the notes whose field is no longer theirs.

    A field that a trusted system has set since stays as it is; its note then holds again as a note only when the
    profile says nothing at that place.
    """
    values, came_from, changed = dict(profile), dict(provenance), {}
    reverted = []
    for name, origin in provenance.items():
        note = notes.get(str(origin["note_id"]))
        is_its, is_ours = note is not None and field_of(note) == name, values.get(name) == origin["value"]
        if is_its and is_ours:
            continue
        del came_from[name]
        if is_ours:
            del values[name]
            reverted.append(Promotion(str(origin["note_id"]), name, str(origin["value"])))
        elif note is not None and is_its and values.get(name) in (None, ""):
            changed[note.id] = note.model_copy(update=_HOLDS)
    return Settled(values, came_from, changed, reverted=tuple(reverted))


def given_back(notes: Mapping[str, Note], profile: Mapping[str, Any]) -> dict[str, Note]:
    """Return the promoted notes that hold as notes again, because a profile that was set anew says nothing there."""
    return {
        note.id: note.model_copy(update=_HOLDS)
        for note in notes.values()
        if is_promoted(note) and profile.get(field_of(note)) in (None, "")
    }


def promotable(notes: Sequence[Note], schema: type[BaseModel], today: str) -> list[Promotion]:
    """Return the notes that are ripe for a field of the schema, one for each field; none where two notes compete."""
    by_field: dict[str, list[Promotion]] = {}
    for note in notes:
        if _is_ripe(note, today):
            for name, value in _fields(note, schema):
                by_field.setdefault(name, []).append(Promotion(note.id, name, value))
    return [promotions[0] for promotions in by_field.values() if len(promotions) == 1]


def _is_ripe(note: Note, today: str) -> bool:
    if note.status != "active" or note.origin != "user" or note.kind == "constraint" or note.conflicts_with:
        return False
    days = sorted({note.valid_from or note.date, note.date, *note.confirmations})
    span = (date.fromisoformat(days[-1][:10]) - date.fromisoformat(days[0][:10])).days
    is_often = len(days) >= FEWEST_DAYS and span >= SHORTEST_SPAN_DAYS
    return is_often and not note.expires_at and confidence_on(note, today) >= LEAST_CONFIDENCE


def _fields(note: Note, schema: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the fields that a note states outright, with the value."""
    read = wording(note.text)
    for name, info in schema.model_fields.items():
        choices = _choices(info.annotation)
        subject = _subject(name, info)
        stated = [choice for choice in choices if wording(choice).words and wording(choice).words <= read.affirmed]
        if len(stated) != 1:
            continue
        # Anything else that the note says is a condition or another matter.
        rest = read.words - subject - frozenset(word for choice in choices for word in wording(choice).words) - _GENERIC
        is_about = bool(subject & read.words) or any(
            claim.is_certain and {f"{named(subject)}?"} == claim.subject for claim in claims(note.text, note.subject)
        )
        if is_about and not rest:
            yield name, stated[0]


def _subject(name: str, info: FieldInfo) -> frozenset[str]:
    extra = info.json_schema_extra
    named_subject = extra.get("note_subject") if isinstance(extra, dict) else None
    words = str(named_subject).split() if named_subject else name.split("_")
    return frozenset(map(root, words)) - _GENERIC


def _choices(annotation: Any) -> list[str]:
    """Return the values of a type that lists them; empty for any other."""
    if get_origin(annotation) in (Union, UnionType):
        return [choice for part in get_args(annotation) for choice in _choices(part)]
    return (
        [value for value in get_args(annotation) if isinstance(value, str)] if get_origin(annotation) is Literal else []
    )


def _fits(schema: type[BaseModel], profile: Mapping[str, Any]) -> bool:
    try:
        schema.model_validate(dict(profile))
    except ValidationError:
        return False
    return True
