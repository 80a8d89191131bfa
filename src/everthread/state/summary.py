"""The rolling summary of what left the working set, and the index of identifiers beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from pydantic import BaseModel, ConfigDict, field_serializer, field_validator

STANDING = "Standing instructions"
"""Section of the user's own rules, kept word for word."""


class SummaryEntry(BaseModel):
    """One bullet of the summary and the messages it rests on."""

    model_config = ConfigDict(frozen=True)

    section: str
    text: str
    sources: tuple[str, ...] = ()
    """Ids of the messages it came from."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """One exact string, and how much speaks for keeping it."""

    text: str
    weight: float
    """How likely a string of its kind is needed again; more when the user or a call used it."""
    mentions: int = 1
    last: int = 0
    """Place in the thread of the newest message that has it."""


_COLUMNS = {field.name: attrgetter(field.name) for field in fields(Identifier)}


class Summary(BaseModel):
    """The state of the conversation up to a message, in the agent's sections."""

    model_config = ConfigDict(frozen=True)

    entries: tuple[SummaryEntry, ...] = ()
    text: str = ""
    """What a model wrote when it did not keep to headings and bullets."""
    identifiers: tuple[Identifier, ...] = ()
    """Exact strings of what was masked or folded and stands nowhere else in the prompt."""
    rules_left_out: int = 0
    """The user's own rules that had no room any more; the least urgent go first, of equals the oldest."""
    covers: int = 0
    """Messages folded in so far."""
    last_message_id: str | None = None
    """Newest message folded in."""
    version: int = 0
    """Counts the changes, from 1."""
    writer: str = "extractive"
    """`model` or `extractive`."""
    pending: tuple[str, ...] = ()
    """Messages that the rules folded and no summariser has read yet."""
    pending_tokens: int = 0
    """What a summariser would have to read of them."""
    failures: int = 0
    """Times in a row that the summariser failed."""

    @field_serializer("identifiers", when_used="json")
    def _in_columns(self, identifiers: tuple[Identifier, ...]) -> dict[str, list[Any]]:
        # Every run reads the summary: a list for each field is two fifths of the bytes.
        return {name: list(map(read, identifiers)) for name, read in _COLUMNS.items()}

    @field_validator("identifiers", mode="before")
    @classmethod
    def _from_columns(cls, value: Any) -> Any:
        """Read columns, and what was written before there were any: an object for each."""
        if not isinstance(value, Mapping):
            return value
        if missing := [name for name in _COLUMNS if not isinstance(value.get(name), list)]:
            raise ValueError(f"no column {missing[0]!r}")
        return [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*(value[name] for name in _COLUMNS), strict=True)]

    @property
    def constraints(self) -> list[str]:
        """The user's own rules, word for word."""
        return [entry.text for entry in self.entries if entry.section == STANDING]
