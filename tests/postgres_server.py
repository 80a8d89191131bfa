"""A private Postgres for the tests: a temporary folder, a free port of this machine, gone when the session ends."""

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

FOLDER = "PYTEST_POSTGRES_FOLDER"
"""Names the folder of the session's server, for all processes of the session."""

MISSING = "there is no Postgres here: install the package postgresql (Debian), or put initdb on the PATH"

# A test database need not survive a power failure.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "300",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "5min",
}


def binaries() -> Path | None:
    """Return the folder of the newest Postgres of this machine; None when there is none."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in debian), key=lambda path: int(path.parent.name), default=None)


def begin_session() -> None:
    """Name a folder for the session; the server is started by the first test that needs one."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="everthread-postgres-")


def end_session() -> None:
    """Stop the server, if one was started."""
    folder = Path(os.environ.pop(FOLDER))
    if (data := folder / "data").exists():
        _as_owner([_tool("pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop"])
    shutil.rmtree(folder, ignore_errors=True)


def server() -> str:
    """Return the URL of the session's server, which is started when it is not there."""
    folder = Path(os.environ[FOLDER])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "url").exists():
            (folder / "url").write_text(_started(folder))
    return (folder / "url").read_text()


@contextmanager
def database(url: str) -> Iterator[str]:
    """Give a schema of its own on the server, as a database's URL."""
    import psycopg

    schema = f"t_{uuid4().hex[:12]}"
    yield f"{url}?schema={schema}&pool_size=4&application_name={schema}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}", "{schema}_jobs" CASCADE'.encode())


_SHAPE = """SELECT array_agg(name ORDER BY name) FROM (
    SELECT relname || '.' || attname AS name FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = current_schema()::regnamespace
    UNION ALL SELECT tgname FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid
        WHERE relnamespace = current_schema()::regnamespace
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
) AS parts"""
"""The names of all columns, triggers and functions of a schema."""

_EMPTY = (
    "DELETE FROM checkpoints; DELETE FROM checkpoint_blobs; DELETE FROM checkpoint_writes; DELETE FROM store;"
    "DELETE FROM everthread_spaces; DELETE FROM everthread_docs; DELETE FROM everthread_changes;"
    "DELETE FROM everthread WHERE key NOT IN ('format', 'index')"
)
_END = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = %s"
_free: list[tuple[str, object]] = []
"""Schemas of this process with empty tables, each with its shape."""


@contextmanager
def tables(url: str) -> Iterator[str]:
    """Give a schema with all tables and no rows, as a database's URL.

    To make the tables costs more than most tests, to empty them next to nothing: unless a test changed more than
    rows, the next one gets its schema.
    """
    import psycopg

    schema, shape = _free.pop() if _free else _made(url)
    name = f"n_{uuid4().hex[:12]}"
    yield f"{url}?schema={schema}&pool_size=4&application_name={name}"
    with psycopg.connect(url, autocommit=True, options=f"-c search_path={schema}") as connection:
        connection.execute(_END, (name,))
        if connection.execute(_SHAPE).fetchone() == shape:
            connection.execute(_EMPTY)
            _free.append((schema, shape))
        else:
            connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())


def _made(url: str) -> tuple[str, object]:
    """Make a schema with all tables; return it with its shape."""
    import psycopg

    from everthread import open_storage

    schema = f"t_{uuid4().hex[:12]}"
    open_storage(f"{url}?schema={schema}").close()
    with psycopg.connect(url, options=f"-c search_path={schema}") as connection:
        return schema, connection.execute(_SHAPE).fetchone()


def end_sessions(url: str) -> None:
    """Cut all connections to a database of these tests, as a restart of the server does, and wait until they are."""
    import psycopg

    with psycopg.connect(url.partition("?")[0]) as connection:
        connection.execute(_END, (url.rpartition("=")[2],))


def start(folder: Path, port: int, **settings: str) -> str:
    """Start a server on a folder; make its data when there is none; return its URL."""
    data = folder / "data"
    if not data.exists():
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        _as_owner(
            [_tool("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8"]
        )
    given = " ".join(f"-c {name}='{value}'" for name, value in {**_SETTINGS, **settings}.items())
    _as_owner([_tool("pg_ctl"), "-D", data, "-l", folder / "log", "-w", "-o", f"-p {port} {given}", "start"])
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"


def stop(folder: Path, mode: str = "fast") -> None:
    """Stop the server of a folder."""
    _as_owner([_tool("pg_ctl"), "-D", folder / "data", "-m", mode, "-w", "stop"])


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _started(folder: Path) -> str:
    import psycopg

    url = start(folder, free_port())
    with psycopg.connect(url) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    assert Path(data).resolve() == (folder / "data").resolve(), f"another server answers, on {data}"
    return url


def _tool(name: str) -> Path:
    found = binaries()
    assert found is not None, MISSING
    return found / name


def _as_owner(command: Sequence[object]) -> None:
    """Run a tool of Postgres, which refuses to be run by root."""
    user = "postgres" if os.getuid() == 0 else None
    # Not through a pipe: the server that stays would keep it open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run([*map(str, command)], user=user, stdout=output, stderr=output, cwd="/", check=False)
        output.seek(0)
        assert done.returncode == 0, output.read().decode()
