"""What the database says when it fails, as what happened and what to do."""

import sqlite3

from everthread.errors import StorageError

_ADVICE = {
    "SQLITE_FULL": "what was saved before is intact: make room and try again",
    "SQLITE_IOERR": "what was saved before is intact: see whether the disk is full or failing, and try again",
    "SQLITE_READONLY": "what was saved before is intact: allow writing and try again",
    "SQLITE_BUSY": "another process kept it locked: try again when that one is done",
    "SQLITE_CORRUPT": (
        "the file is damaged: stop every process that uses it and restore a copy, without the `-wal` and `-shm` files "
        "that lie beside it; `everthread doctor` checks it"
    ),
    "SQLITE_ERROR": "its tables are not as this version knows them; `everthread doctor` names the versions in use",
}
_ADVICE["SQLITE_NOTADB"] = _ADVICE["SQLITE_CORRUPT"]


def described(error: sqlite3.Error) -> StorageError:
    """Return the error to raise for one of SQLite; of several, the first: a rollback after it may fail too."""
    first: BaseException = error
    while isinstance(first.__context__, sqlite3.Error):
        first = first.__context__
    name = getattr(first, "sqlite_errorname", "") or ""
    advice = next((advice for begin, advice in _ADVICE.items() if name.startswith(begin)), None)
    return StorageError(f"the database failed: {first}; {advice or 'what was saved before is intact: try again'}")
