"""The Postgres of `scale.py`, with or without PgBouncer ahead of it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

# The server that the tests start.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
import postgres_server

__all__ = ["plain_url", "pooled", "schema_of", "server_at"]


def schema_of(url: str) -> str:
    """Return the schema that a URL names."""
    return url.partition("schema=")[2].partition("&")[0]


def plain_url(url: str) -> str:
    """Return a URL as the driver takes it, with the schema as its search path."""
    if "pgbouncer=1" in url:
        # A pooler takes no options; the schema is the role's default there.
        return url.partition("?")[0]
    return f"{url.partition('?')[0]}?options=-csearch_path%3D{schema_of(url)}"


@contextmanager
def server_at(url: str | None) -> Iterator[str]:
    """Give the URL of a Postgres: the one that is named, or one of our own."""
    if url is not None:
        yield url
        return
    folder = Path(tempfile.mkdtemp(prefix="everthread-scale-"))
    try:
        # As production has it, unlike the tests.
        settings = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum_naptime": "1min"}
        yield postgres_server.start(folder, postgres_server.free_port(), **settings)
        postgres_server.stop(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pooled(server: str, schema: str) -> Iterator[str]:
    """Start PgBouncer ahead of a server, in transaction mode; give its URL."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not Path(program).exists():
        raise SystemExit("there is no PgBouncer here: install the package pgbouncer (Debian)")
    port = postgres_server.free_port()
    host, _, rest = server.removeprefix("postgresql://postgres@").partition(":")
    with tempfile.TemporaryDirectory(prefix="everthread-pooler-") as folder:
        os.chmod(folder, 0o755)  # it runs as `postgres`
        users, settings = Path(folder, "users"), Path(folder, "pgbouncer.ini")
        users.write_text('"postgres" ""\n')
        settings.write_text(
            f"[databases]\npostgres = host={host} port={rest.partition('/')[0]}"
            f" connect_query='SET search_path={schema}'\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\nauth_file = {users}\n"
            "pool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 20\nunix_socket_dir =\n"
            "ignore_startup_parameters = extra_float_digits,options\n"
        )
        user = "postgres" if os.getuid() == 0 else None
        process = subprocess.Popen([program, "-q", str(settings)], user=user, cwd="/")
        try:
            url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
            _wait_for(url)
            yield f"{url}?schema={schema}&pgbouncer=1&direct_url={server}"
        finally:
            process.terminate()
            process.wait()


def _wait_for(url: str) -> None:
    for _ in range(100):
        try:
            psycopg.connect(url, prepare_threshold=None).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("PgBouncer did not start")
