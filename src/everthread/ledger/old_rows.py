"""Rows of version 0.1, which left out what a reader can fill in and named messages by short hashes.

Rows are plain JSON today: `everthread.ledger.record`. The old ones go with their turn, as retention has it.
"""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from everthread.state import namespaces
from everthread.state.records import RecordReader, items

_HASH_CHARACTERS = 7
_CATEGORIES = (
    *("system", "profile", "notes", "tools", "summary", "session_notes", "recalled", "history", "reply_reserve"),
    "safety",
)


def is_old(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is of version 0.1: it leaves the time to its key."""
    return "at" not in row


def completed(key: str, row: Mapping[str, Any], ids_by_hash: Mapping[str, str]) -> dict[str, Any]:
    """Return a row with all that version 0.1 left out.

    Args:
        key: of the row; it begins with the time in nanoseconds.
        row: as it is stored.
        ids_by_hash: what `message_ids` gives; a message that is gone keeps its hash.
    """
    value = dict(row)
    nanoseconds = key.partition("-")[0]
    if nanoseconds.isdigit():
        value["at"] = datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC).isoformat(timespec="milliseconds")
    if isinstance(joined := row.get("message_ids"), str):
        hashes = [joined[at : at + _HASH_CHARACTERS] for at in range(0, len(joined), _HASH_CHARACTERS)]
        value["message_ids"] = [ids_by_hash.get(one, f"~{one}") for one in hashes]
    if (sizes := row.get("breakdown")) is not None:
        value["breakdown"] = {**dict.fromkeys(_CATEGORIES, 0), **sizes, "free": row["window"] - sum(sizes.values())}
    return value


def message_ids(store: RecordReader, thread_id: str) -> dict[str, str]:
    """Return the archived messages of a thread by their hashes; events of version 0.1 name no others in lists."""
    return {_hash(item.key): item.key for item in items(store, namespaces.transcript(thread_id))}


def _hash(message_id: str) -> str:
    digest = hashlib.blake2b(message_id.encode("utf-8", "replace"), digest_size=5).digest()
    return base64.urlsafe_b64encode(digest).decode()[:_HASH_CHARACTERS]
