"""Read a database URL and prepare the file it names."""

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from everthread.errors import SettingsError, StorageError, installing

OUR_TABLES = {
    "checkpoints": "thread_id checkpoint_ns checkpoint_id parent_checkpoint_id type checkpoint metadata",
    "writes": "thread_id checkpoint_ns checkpoint_id task_id idx channel type value",
    "store": "prefix key value created_at updated_at",
    "store_migrations": "v",
    "thread_locks": "thread_id",
    "everthread": "key value",
}
"""Tables of LangGraph's saver and store, and ours, with columns that each has had in every version."""

_SCHEMA = "SELECT max(v) FROM store_migrations"

Synchronous = Literal["normal", "full"]
"""How safe a commit is: `normal` survives the death of the process, `full` also a loss of power."""

_FORMS = "`sqlite:///relative.db`, `sqlite:////absolute/path.db` or `sqlite://` (in memory)"


@dataclass(frozen=True)
class Location:
    """A parsed database URL."""

    url: str
    path: Path | None
    """File of the database; None for one in memory."""
    synchronous: Synchronous = "normal"

    @property
    def target(self) -> str:
        """What `sqlite3.connect` takes."""
        return ":memory:" if self.path is None else str(self.path)


def locate(url: str) -> Location:
    """Parse a database URL, with `?synchronous=full` at its end or without.

    Raises:
        SettingsError: the URL is not one of the known forms.
    """
    if is_postgres(url):
        raise SettingsError("this is for a database file, but the URL names a Postgres; use " + _FORMS)
    if not url.startswith("sqlite://"):
        is_path = url and ":" not in url
        raise SettingsError(
            f"database URL {url!r} is not understood; use {_FORMS}, or `postgresql://user:password@host:5432/name`"
            + (f"; for the file {url!r} it is `sqlite:///{url}`" if is_path else "")
        )
    rest, _, parameters = url.removeprefix("sqlite://").partition("?")
    synchronous = _synchronous(url, parameters)
    if rest == "/":
        # As from an unset variable: in memory, all would be lost without a word.
        raise SettingsError(f"database URL {url!r} names no file; use {_FORMS}")
    if rest in ("", "/:memory:"):
        return Location(url, None, synchronous)
    if not rest.startswith("/"):
        raise SettingsError(f"database URL {url!r} needs three slashes before a path; use {_FORMS}")
    return Location(url, Path(rest[1:]).expanduser(), synchronous)


def is_postgres(url: str) -> bool:
    """Tell whether a URL names a Postgres database."""
    return url.startswith(("postgresql://", "postgres://"))


@contextmanager
def needing_postgres() -> Iterator[None]:
    """Import the driver of Postgres inside of the block, which is an extra.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise SettingsError(
            f"Postgres needs packages that are not installed ({error.name}): {installing('postgres')}"
        ) from error


def is_file(url: str) -> bool:
    """Tell whether a URL names a database file, or one in memory."""
    return url.startswith("sqlite://")


def _synchronous(url: str, parameters: str) -> Synchronous:
    """Read the parameter of a URL, such as `?synchronous=full`."""
    found: Synchronous = "normal"
    for name, value in parse_qsl(parameters, keep_blank_values=True):
        if name != "synchronous":
            raise SettingsError(f"database URL {url!r} has the unknown parameter {name!r}; there is `synchronous`")
        found = level(value)
    return found


def level(name: str) -> Synchronous:
    """Check the name of a level, in upper or lower case.

    Raises:
        SettingsError: there is no such level.
    """
    if name.lower() == "full":
        return "full"
    if name.lower() == "normal":
        return "normal"
    raise SettingsError(f"`synchronous` is {name!r}; use `normal`, or `full` to survive a loss of power too")


def prepare(location: Location, *, create: bool = True, read_only: bool = False) -> None:
    """Make sure the file is ours or new, with access for its owner only.

    Args:
        create: make the file when it does not exist.
        read_only: it will only be read, so neither the file nor its folder need be writable.

    Raises:
        StorageError: missing, unreadable, not SQLite, or the database of another program.
    """
    path = location.path
    if path is None:
        return
    if is_there(path):
        _check(path, read_only=read_only)
        return
    if not create or read_only:
        raise StorageError(f"there is no database at {str(path)!r}; check the path or start a conversation first")
    if not path.parent.is_dir():
        raise StorageError(f"the folder {str(path.parent)!r} does not exist; create it or choose another path")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StorageError(f"cannot create the database {str(path)!r}: {error.strerror}") from error


def is_there(path: Path) -> bool:
    """Tell whether a database file exists.

    Raises:
        StorageError: nobody can tell: a folder on the way may not be entered, or no file can have so long a name.
    """
    try:
        return path.exists()
    except OSError as error:
        raise StorageError(f"cannot open the database {str(path)!r}: {error.strerror}") from error


def is_writable(path: Path) -> bool:
    """Tell whether a file can be written, and files beside it be made."""
    return os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a database file for reading only; where it cannot be written, no file beside it is made either."""
    mode = "rw"
    if not is_writable(path):
        log = path.with_name(path.name + "-wal")
        # Without a log nobody is writing, and SQLite need not make the files in which writers and readers meet.
        mode = "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=30, check_same_thread=False, isolation_level=None
    )
    connection.execute("PRAGMA query_only=ON")
    return connection


def _check(path: Path, *, read_only: bool) -> None:
    if path.is_dir():
        raise StorageError(f"{str(path)!r} is a folder, not a database file")
    if not os.access(path, os.R_OK):
        raise StorageError(f"cannot read the database {str(path)!r}: permission denied")
    if not read_only and not os.access(path, os.W_OK):
        raise StorageError(
            f"cannot write the database {str(path)!r}: it is read-only; allow writing, or copy it elsewhere"
        )
    try:
        with closing(connect_to_read(path) if read_only else sqlite3.connect(path, timeout=30)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
            tables = {str(row[0]) for row in rows}
            foreign = _foreign_table(connection, tables)
            has_version = foreign is None and "store_migrations" in tables
            schema = connection.execute(_SCHEMA).fetchone()[0] if has_version else None
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            needed = "read the log beside" if read_only else "write in the folder of"
            raise StorageError(
                f"cannot {needed} the database {str(path)!r}, where SQLite keeps its log; allow it, or copy the "
                "database with the files beside it elsewhere"
            ) from error
        raise StorageError(
            f"{str(path)!r} is not a readable SQLite database ({error}); it was left as it is"
        ) from error
    if foreign is not None:
        if "everthread" in tables - {foreign}:
            raise StorageError(
                f"{str(path)!r} is of another version: its tables are not as this version knows them ({foreign!r}); it "
                "was left as it is, `everthread doctor` names the versions in use"
            )
        raise StorageError(
            f"{str(path)!r} belongs to another program (it has the table {foreign!r}); "
            "it was left as it is, choose another path"
        )
    if not read_only:
        _refuse_newer_store(path, schema)


def _foreign_table(connection: sqlite3.Connection, tables: Collection[str]) -> str | None:
    """Return a table by which a file is another program's: one of a name of ours, or any where none has such a name."""
    named = [name for name in OUR_TABLES if name in tables]
    for name in named:
        columns = {str(row[1]) for row in connection.execute(f"PRAGMA table_info({name})")}
        if not columns >= {*OUR_TABLES[name].split()}:
            return name
    return None if named else min(tables, default=None)


def _refuse_newer_store(path: Path, version: int | None) -> None:
    # Taken when called: a database is read without LangGraph too.
    from langgraph.store.sqlite.base import MIGRATIONS

    if version is not None and version >= len(MIGRATIONS):
        raise StorageError(
            f"{str(path)!r} was made by a newer LangGraph (its store is of version {version}, this one knows "
            f"{len(MIGRATIONS) - 1}); it was left as it is, upgrade langgraph-checkpoint-sqlite"
        )
