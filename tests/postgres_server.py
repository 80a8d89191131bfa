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


def end_sessions(url: str) -> None:
    """Cut all connections to a database of `database`, as a restart of the server does, and wait until they are."""
    import psycopg

    ours = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect(url.partition("?")[0]) as connection:
        connection.execute(ours, (url.rpartition("=")[2],))


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
