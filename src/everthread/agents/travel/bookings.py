"""Bookings as they are stored: one record for each approved call, whatever happens in between."""

import base64
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from langgraph.store.base import BaseStore
from pydantic import TypeAdapter

from everthread.agents.travel.options import Details, Option
from everthread.state import namespaces
from everthread.state.records import items


@dataclass(frozen=True, kw_only=True)
class Booking(Details):
    """A booked option with everything it was approved with."""

    reference: str
    travellers: tuple[str, ...]
    booked_on: date
    note: str = ""
    """What the user wants the provider to know, such as a meal."""
    comment: str = ""
    """What the user said with the approval."""
    thread_id: str = ""
    """Conversation in which it was booked."""

    def describe(self) -> str:
        """Describe the booking with every detail, for the model."""
        lines = [
            f"{self.reference} · {self.headline} · {self.total} ({self.source})",
            *self.facts,
            f"travellers: {', '.join(self.travellers)}",
            self.terms,
            *([f"note: {self.note}"] if self.note else []),
            f"booked on {self.booked_on}",
        ]
        return "\n   ".join(lines)


_JSON = TypeAdapter(Booking)


def booking_key(thread_id: str, tool_call_id: str, option_id: str) -> str:
    """Return the store key of one call of `book`.

    Tools run at least once, and the same call must land on the same record. Some models number their
    calls from 1 in every thread, so the call id alone would make two bookings one.
    """
    return hashlib.sha256("\x1f".join((thread_id, tool_call_id, option_id)).encode("utf-8", "replace")).hexdigest()[:32]


def book(
    store: BaseStore,
    user_id: str,
    key: str,
    option: Option,
    *,
    travellers: Sequence[str],
    booked_on: date,
    note: str,
    comment: str,
    thread_id: str,
) -> Booking:
    """Store an approved option under the user's trips; the reference follows from the key."""
    booking = Booking(
        **{field.name: getattr(option, field.name) for field in dataclasses.fields(Details)},
        reference=f"SBX-{base64.b32encode(bytes.fromhex(key)).decode()[:6]}",
        travellers=tuple(travellers),
        booked_on=booked_on,
        note=note,
        comment=comment,
        thread_id=thread_id,
    )
    store.put(namespaces.user(user_id, "trips"), key, {"type": "booking", **_JSON.dump_python(booking, mode="json")})
    return booking


def find(store: BaseStore, user_id: str, key: str) -> Booking | None:
    """Return the booking of a key; None when there is none."""
    item = store.get(namespaces.user(user_id, "trips"), key)
    return _read(item.value) if item else None


def all_bookings(store: BaseStore, user_id: str) -> list[Booking]:
    """Return a user's bookings by first day; other records of past trips are left out."""
    namespace = namespaces.user(user_id, "trips")
    own = (item for item in items(store, namespace) if item.namespace == namespace)
    found = [booking for item in own if (booking := _read(item.value))]
    return sorted(found, key=lambda booking: (booking.starts, booking.reference))


def _read(value: Mapping[str, Any]) -> Booking | None:
    """Read a record; None for one that is no booking, such as an imported trip."""
    return _JSON.validate_python(value) if value.get("type") == "booking" else None
