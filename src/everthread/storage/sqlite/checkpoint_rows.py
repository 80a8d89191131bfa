"""What the rows of checkpoints tell without being decoded, for those who only look at a database too."""

import sqlite3
from collections.abc import Mapping

from everthread.storage.kept_checkpoints import OURS

__all__ = ["METADATA", "last_writer", "thread_sizes"]

# Metadata that is no JSON would stop the whole query.
METADATA = "CASE WHEN json_valid(CAST(metadata AS TEXT)) THEN json_extract(CAST(metadata AS TEXT), '$.{}') END"
_SIZES = (
    "SELECT thread_id, count(*), sum(length(checkpoint) + length(CAST(metadata AS BLOB)))"
    " + ifnull((SELECT sum(length(value)) FROM writes WHERE writes.thread_id = checkpoints.thread_id), 0)"
    " FROM checkpoints GROUP BY thread_id"
)
# Edits that did not come through a guard say nothing.
_LAST_WRITER = (
    f"SELECT {METADATA.format(OURS)} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
    f" AND ({METADATA.format('source')} <> 'update' OR {METADATA.format(OURS)} IS NOT NULL)"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)


def last_writer(database: sqlite3.Connection, thread_id: str) -> int | None:
    """Return which graph wrote the newest checkpoint of a thread, see `kept_checkpoints`; None: no guarded one."""
    row = database.execute(_LAST_WRITER, (thread_id,)).fetchone()
    return None if row is None or row[0] is None else int(row[0])


def thread_sizes(database: sqlite3.Connection) -> Mapping[str, tuple[int, int]]:
    """Return checkpoints of each thread, and bytes of all its rows, by its id."""
    return {str(thread_id): (count, size) for thread_id, count, size in database.execute(_SIZES)}
