"""Records with answers that are known: what their annotations must look like, checked before anything is scored."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import BaseMessage
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from everthread.errors import RecordError
from everthread.evals.picking import Picked
from everthread.evals.records import RecordedMessage, first_problem, to_messages, without_instructions

from .picking import Chains, Wanted, is_conversation, pick

__all__ = ["AnnotatedRecord", "Message", "Preference", "Question", "Session", "Slot", "Update", "annotated", "iso_date"]


Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Ids = Annotated[list[str], BeforeValidator(lambda value: [] if value is None else value)]
"""Ids of the messages that say it."""


def _many(value: Any) -> Any:
    """Read what is no list as none: other suites have other annotations under the same name."""
    return value if isinstance(value, list) else []


class _Lenient(BaseModel):
    # A value such as a price or a number of stars may be recorded as a number.
    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


def iso_date(text: str | None) -> str | None:
    """Return a recorded date as ISO 8601; `March-15-2024` is one of the ways in which they are written."""
    if not text:
        return None
    if match := re.fullmatch(r"([A-Za-z]+)-(\d{1,2})-(\d{4})", text):
        return datetime.strptime(" ".join(match.groups()), "%B %d %Y").isoformat()
    return datetime.fromisoformat(text).isoformat()


class Message(RecordedMessage):
    """A message that annotations can name."""

    id: str = Field(min_length=1)

    @property
    def text(self) -> str:
        """Return its text; a provider's content may be a list of parts, or nothing beside calls."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class Session(_Lenient):
    """A half-open range of messages, with its day."""

    date: Annotated[str | None, AfterValidator(iso_date)] = None
    start: int
    end: int


class Preference(_Lenient):
    """A lasting taste of the user."""

    text: str
    evidence: Ids
    explicit_form: Text = ""


class Slot(_Lenient):
    """A value that was settled in a conversation."""

    service: str = ""
    slot: str
    values: list[str] = Field(min_length=1)
    evidence: Ids
    stated_by: str = ""
    durable: bool = False
    canonical: Text = ""


class Update(_Lenient):
    """A value that the user changed."""

    service: str = ""
    slot: str
    old: str
    new: str
    old_evidence: Ids
    evidence: Ids


class Question(_Lenient):
    """A question about a conversation."""

    qid: str = ""
    question: str
    category: str = ""
    evidence: Ids = []
    preference: Text = ""
    """The taste that an answer has to respect."""
    suspect: bool = False
    """The source's evidence does not hold the answer."""
    audit: dict[str, Any] | None = None
    """What a published second annotation says against this one."""


class _Gold(_Lenient):
    preferences: Annotated[list[Preference], BeforeValidator(_many)] = []
    slots: Annotated[list[Slot], BeforeValidator(_many)] = []
    updates: Annotated[list[Update], BeforeValidator(_many)] = []
    questions: Annotated[list[Question], BeforeValidator(_many)] = []
    stale: Ids = []
    current: Ids = []


class _Meta(_Lenient):
    type: Text = ""


class AnnotatedRecord(_Lenient):
    """A conversation with annotations."""

    id: str = Field(min_length=1)
    where: str = ""
    """File and line, for messages to people."""
    kind: Text = ""
    messages: list[Message]
    sessions: Annotated[list[Session], BeforeValidator(_many)] = []
    gold: _Gold = _Gold()
    meta: _Meta = _Meta()

    @property
    def source(self) -> str:
        """Where it comes from: the first part of its id."""
        return self.id.split("/")[0]

    @property
    def texts(self) -> dict[str, str]:
        """Return the texts by message id."""
        return {message.id: message.text for message in self.messages}

    def as_messages(self) -> list[BaseMessage]:
        """Return the messages as LangChain has them.

        Raises:
            RecordError: a call or a result stands alone.
        """
        return list(to_messages(self.where, self.messages))


def annotated(
    paths: Sequence[Path],
    suits: Callable[[dict[str, Any], dict[str, Any]], bool],
    what: str,
    *,
    chains: Chains = "all",
    limit: int | None = None,
) -> Picked[AnnotatedRecord]:
    """Return the records whose annotations a suite can score.

    Args:
        paths: files, or folders of them.
        suits: tells of a record and its `gold` whether it can be scored.
        what: what `suits` looks for, for people.
        chains: which records that were put together from others are scored.
        limit: only the first so many.

    Raises:
        RecordError: a file cannot be read, an annotation is malformed, or nothing can be scored.
    """

    def fits(value: dict[str, Any]) -> bool:
        gold = value.get("gold")
        return suits(value, gold if isinstance(gold, dict) else {})

    form = "a record has at least `id` and `messages`"
    wanted = Wanted(what=what, suits=fits, is_formed=is_conversation, form=form, chains=chains)
    picked = pick(paths, wanted, limit)
    return Picked(tuple(_checked(where, value) for where, value in picked.records), picked.remarks)


def _checked(where: str, value: dict[str, Any]) -> AnnotatedRecord:
    gold, meta = value.get("gold"), value.get("meta")
    fields = {
        **without_instructions(value)[0],
        "where": where,
        "gold": gold if isinstance(gold, dict) else {},
        "meta": meta if isinstance(meta, dict) else {},
    }
    try:
        return AnnotatedRecord.model_validate(fields)
    except ValidationError as error:
        raise RecordError(f"{where}: {first_problem(error)}") from error
