"""Option ids that carry their own query, with check letters against ids that were made up or changed."""

import base64
import hashlib
from datetime import date, datetime

from everthread.agents.travel.errors import TravelError

_CHECK_LETTERS = 4


def encode(kind: str, *parts: object) -> str:
    """Make an id such as `FLT-SFO-CDG-20261204-E1A-K7QX`."""
    body = "-".join((kind, *(part.strftime("%Y%m%d") if isinstance(part, date) else str(part) for part in parts)))
    return f"{body}-{_check(body)}"


def decode(option_id: str) -> tuple[str, list[str]]:
    """Split an id into its kind and parts.

    Raises:
        TravelError: no search returned this id.
    """
    body, _, check = option_id.strip().strip("`").upper().rpartition("-")
    if not body or check != _check(body):
        raise unknown(option_id)
    kind, *parts = body.split("-")
    return kind, parts


def day(text: str) -> date:
    """Read a date part of an id."""
    return datetime.strptime(text, "%Y%m%d").date()


def unknown(option_id: str) -> TravelError:
    """Return the error for an id that no search returned."""
    return TravelError(
        f"no search returned the option id {option_id[:80]!r}; copy the id exactly from the results, or search again. "
        "Nothing was booked"
    )


def _check(body: str) -> str:
    digest = hashlib.sha256(f"everthread sandbox option {body}".encode()).digest()
    return base64.b32encode(digest).decode()[:_CHECK_LETTERS]
