"""Support tickets in the store: opened, updated and listed, each exactly once however often a call runs."""

import base64
import hashlib
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from langgraph.store.base import BaseStore
from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError

from everthread.errors import NotFoundError, SettingsError, StorageError
from everthread.state import namespaces
from everthread.state.records import items

Priority = Literal["low", "normal", "high", "urgent"]
"""How soon somebody must act."""

Status = Literal["open", "waiting", "resolved", "closed"]
"""Where a ticket is; `waiting` means for the user or a third party."""

Model = TypeVar("Model", bound=BaseModel)

Clock = Callable[[], datetime]
"""Says what time it is, with a time zone."""

TRANSITIONS: dict[Status, frozenset[Status]] = {
    "open": frozenset({"waiting", "resolved", "closed"}),
    "waiting": frozenset({"open", "resolved", "closed"}),
    "resolved": frozenset({"open", "closed"}),
    "closed": frozenset(),
}
"""Which status may follow which; a closed ticket stays closed."""

REMOVED = "[secret removed]"

_ID = re.compile(r"INC-[A-Z2-7]{8}")

# What follows must look like a secret (a digit in it), so that "password is expired" stays readable.
_SECRETS = (
    re.compile(
        r"(?i)\b((?:password|passwort|passphrase|passcode|pin|otp|(?:one-time|verification|security|mfa|recovery) code)"
        r"\s*(?:is|was|:|=)\s*)(?=\S*\d)\S{4,}"
    ),
    re.compile(r"()\b\d{6}(?:-\d{6}){7}\b"),  # a BitLocker recovery key
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
)

# Parallel tool calls of one message run in threads of one process and may touch one ticket.
_lock = threading.Lock()


class Change(BaseModel):
    """One entry of a ticket's history."""

    model_config = ConfigDict(frozen=True)

    call: str
    """Digest of the tool call that made the change; a second run of that call changes nothing."""
    at: AwareDatetime
    comment: Annotated[str, StringConstraints(max_length=8000)] | None = None
    status: Status | None = None
    """The new status, when the change set one."""
    priority: Priority | None = None
    """The new priority, when the change set one."""


class Ticket(BaseModel):
    """A support ticket of one user."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=8000)]
    priority: Priority = "normal"
    status: Status = "open"
    opened_at: AwareDatetime
    updated_at: AwareDatetime
    thread_id: str
    """The conversation in which it was opened."""
    history: tuple[Change, ...] = ()


def utc_now() -> datetime:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


class Tickets:
    """The tickets of one user, written from one conversation.

    Args:
        store: where they are kept, under `("users", user_id, "tickets")`.
        user_id: whose tickets; no other user's ticket can be read or changed.
    """

    def __init__(self, store: BaseStore, user_id: str, thread_id: str, *, clock: Clock = utc_now) -> None:
        self._store = store
        self._namespace = namespaces.user(user_id, "tickets")
        self._thread_id = thread_id
        self._clock = clock

    def open(self, call_id: str, *, title: str, description: str, priority: Priority = "normal") -> Ticket:
        """Open a ticket, or return the one that this very call has opened before.

        The id is a digest of thread, call and content: a crash between the call and its checkpoint runs
        the call again, and some servers number the calls of every reply from zero.

        Raises:
            SettingsError: title or description is empty or too long.
        """
        title, description = redact(title), redact(description)
        # 40 bits in base32 are eight characters: short enough to read out, and no two meet within one user.
        digest = _digest(self._thread_id, call_id, title, description, priority)[:5]
        ticket_id = f"INC-{base64.b32encode(digest).decode()}"
        now = self._clock().astimezone(UTC)
        with _lock:
            ticket = self._read(ticket_id)
            if ticket is not None:
                return ticket
            ticket = _checked(
                Ticket,
                id=ticket_id,
                title=title,
                description=description,
                priority=priority,
                opened_at=now,
                updated_at=now,
                thread_id=self._thread_id,
            )
            self._write(ticket)
        return ticket

    def update(
        self,
        call_id: str,
        ticket_id: str,
        *,
        comment: str | None = None,
        status: Status | None = None,
        priority: Priority | None = None,
    ) -> Ticket:
        """Add a comment, a new status or a new priority, once per call.

        Raises:
            NotFoundError: this user has no such ticket.
            SettingsError: nothing to change, a comment is too long, or the status may not follow the present one.
        """
        comment = redact(comment) if comment is not None else None
        if not comment and status is None and priority is None:
            raise SettingsError("nothing to change: give at least one of `comment`, `status` and `priority`")
        call = _digest(self._thread_id, call_id, ticket_id, comment, status, priority).hex()[:16]
        with _lock:
            ticket = self.get(ticket_id)
            if any(change.call == call for change in ticket.history):
                return ticket
            _check_change(ticket, status, priority)
            change = _checked(
                Change,
                call=call,
                at=self._clock().astimezone(UTC),
                comment=comment or None,
                status=status if status != ticket.status else None,
                priority=priority if priority != ticket.priority else None,
            )
            if change.comment is None and change.status is None and change.priority is None:
                return ticket
            changed = ticket.model_copy(
                update={
                    "status": status or ticket.status,
                    "priority": priority or ticket.priority,
                    "updated_at": change.at,
                    "history": (*ticket.history, change),
                }
            )
            self._write(changed)
        return changed

    def get(self, ticket_id: str) -> Ticket:
        """Return one ticket; case and surrounding blanks of the id do not matter.

        Raises:
            NotFoundError: this user has no such ticket.
        """
        key = ticket_id.strip().upper()
        # The model writes the id, and a database raises on keys with NUL or half a surrogate pair.
        ticket = self._read(key) if _ID.fullmatch(key) else None
        if ticket is None:
            raise NotFoundError(f"this user has no ticket {ticket_id!r}; `list_tickets` shows those that exist")
        return ticket

    def find(self, status: Status | None = None) -> list[Ticket]:
        """Return all tickets, or those in one status, last changed first."""
        # A search takes a prefix; records in a namespace below this one are not tickets.
        own = [item for item in items(self._store, self._namespace) if item.namespace == self._namespace]
        found = [_parse(item.key, item.value) for item in own]
        wanted = [ticket for ticket in found if status is None or ticket.status == status]
        return sorted(wanted, key=lambda ticket: (-ticket.updated_at.timestamp(), ticket.id))

    def _read(self, ticket_id: str) -> Ticket | None:
        item = self._store.get(self._namespace, ticket_id)
        return _parse(item.key, item.value) if item is not None else None

    def _write(self, ticket: Ticket) -> None:
        # Tickets are listed and filtered by their fields; no text index is wanted for them.
        self._store.put(self._namespace, ticket.id, ticket.model_dump(mode="json"), index=False)


def redact(text: str) -> str:
    """Clean a text for storage: no secrets that are easy to recognise, nothing that a database refuses."""
    text = text.encode("utf-8", "replace").decode().replace("\0", "").strip()
    for pattern in _SECRETS:
        text = pattern.sub(lambda match: match[1] + REMOVED, text)
    return text


def render(ticket: Ticket) -> str:
    """Write a ticket with its history for the model."""
    lines = [
        render_line(ticket),
        f"Opened {_iso(ticket.opened_at)}, updated {_iso(ticket.updated_at)}",
        f"Description: {ticket.description}",
    ]
    if ticket.history:
        lines += ["History:", *(f"- {_render_change(change)}" for change in ticket.history)]
    return "\n".join(lines)


def render_line(ticket: Ticket) -> str:
    """Write a ticket in one line."""
    return f"{ticket.id} · {ticket.status} · {ticket.priority} · {ticket.title}"


def _render_change(change: Change) -> str:
    parts = [f"status {change.status}"] if change.status else []
    parts += [f"priority {change.priority}"] if change.priority else []
    parts += [change.comment] if change.comment else []
    return f"{_iso(change.at)}: {'; '.join(parts)}"


def _check_change(ticket: Ticket, status: Status | None, priority: Priority | None) -> None:
    if ticket.status == "closed" and priority not in (None, ticket.priority):
        raise SettingsError(f"ticket {ticket.id} is closed; its priority stays {ticket.priority!r}, open a new ticket")
    if status is None or status == ticket.status or status in TRANSITIONS[ticket.status]:
        return
    allowed = ", ".join(sorted(TRANSITIONS[ticket.status]))
    advice = f"allowed are {allowed}" if allowed else f"open a new ticket that names {ticket.id}"
    raise SettingsError(f"ticket {ticket.id} is {ticket.status!r} and cannot become {status!r}; {advice}")


def _digest(*parts: str | None) -> bytes:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()


def _checked(model: type[Model], **values: object) -> Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from error


def _parse(key: str, value: object) -> Ticket:
    try:
        return Ticket.model_validate(value)
    except ValidationError as error:
        raise StorageError(f"ticket {key!r} in the store is damaged: {_explain(error)}") from error


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"`{'.'.join(str(part) for part in first['loc'])}`: {first['msg']}, got {str(first['input'])[:80]!r}"


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
