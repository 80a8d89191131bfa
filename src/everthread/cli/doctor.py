"""`doctor`: is everything here that a conversation needs? Nothing is changed, and no secret is shown."""

import os
import platform
import re
import sqlite3
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

import everthread
from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, ModelName, load_agent_or_graph
from everthread.cli.output import counted, first_of, note, out, plain, print_json, progress, say
from everthread.errors import EverthreadError
from everthread.state.scrubbing import scrub
from everthread.storage.damage import damaged_index_rows, unreadable
from everthread.storage.locations import connect_to_read, is_postgres, is_there, locate, needing_postgres, prepare
from everthread.storage.sqlite.formats import INDEX_VERSION
from everthread.storage.sqlite.tables import SqliteTables
from everthread.window import ranks

if TYPE_CHECKING:
    from everthread.graph.thread_checks import ThreadChecks

_NEEDED = {
    "langgraph": "1.2.22",
    "langgraph-checkpoint": "4.1.1",
    # Below 3.1.1 user "1" reads what belongs to the users "10" and "1x".
    "langgraph-checkpoint-sqlite": "3.1.1",
    "langchain-core": "1.7",
    "langchain-openai": "1.7",
    # Older ones are quadratic on text without blanks.
    "tiktoken": "0.13",
}
"""Packages and the oldest version of each that works."""

_OPTIONAL = {"langgraph-cli": "studio", "langgraph-checkpoint-postgres": "postgres", "psycopg": "postgres"}
"""Packages and the extra that installs each."""

_SAFE_SQLITE = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""First version without the WAL-reset bug, and the older ones that have its fix. Source: sqlite.org/wal.html."""

_TRACING = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2")

_MOST_NAMED = 5
"""Rows that cannot be read and are named; the others are counted."""

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


_Findings = Iterator[tuple[str, str, str]]
"""What was looked at, `ok`, `warn` or `fail`, and a sentence."""


def doctor(
    model: ModelName = None,
    threads: Annotated[
        bool, typer.Option("--threads", help="Instead: list threads that today's agents could not continue.")
    ] = False,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="For `--threads`: `travel`, `support`, or `module:attribute` of an agent or a graph; can be repeated.",
        ),
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Check what a conversation needs; exit 1 if it fails.

    Packages, SQLite, token counting, the model, keys (never their values), the database. Or with `--threads`: which
    threads wait in a step or for a tool that is gone, have a state that cannot be migrated, or keys that are gone.
    """
    if threads:
        _check_threads(database, agent or ("travel", "support"), as_json=as_json)
        return
    checks = (_packages(), _sqlite(database), _tokens(), _model(model), _environment(), _database(database))
    findings = [finding for check in checks for finding in check]
    failed = any(status == "fail" for _, status, _ in findings)
    if as_json:
        rows = [{"name": name, "status": status, "detail": detail} for name, status, detail in findings]
        print_json({"ok": not failed, "checks": rows})
    else:
        console = out()
        for name, status, detail in findings:
            line = Text.assemble((f"{status:4}", _STYLES[status]), f"  {name}: {plain(detail)}")
            console.print(line, soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def _check_threads(database: str, agents: Sequence[str], *, as_json: bool) -> None:
    """Say which threads of a database the agents of today could not continue.

    Raises:
        typer.Exit: with 1, when one of them could not go on.
    """
    # Taken when called: both bring LangGraph.
    from everthread.graph.thread_checks import check_threads
    from everthread.storage.to_read import storage_to_read

    given = [load_agent_or_graph(name) for name in agents]
    with storage_to_read(database) as storage, progress("checking threads") as report:
        checks = check_threads(storage, given, progress=report)
    result = checks.as_json()
    if as_json:
        print_json(result)
    else:
        _print_threads(checks)
    if not result["ok"]:
        raise typer.Exit(1)


def _print_threads(checks: "ThreadChecks") -> None:
    stopped = [one for one in checks.checked if not one.can_continue]
    for one in checks.checked:
        for problem in one.problems:
            say(f"{'fail' if problem.stops else 'warn'}  thread {one.thread_id} of {one.agent}: {problem.detail}")
    say(f"{counted(len(checks.checked), 'thread')} checked; {len(stopped):,} could not go on as they are.", "bold")
    for name, number in checks.others.items():
        note(f"{counted(number, 'thread')} of the agent {name!r}, which was not given: `--agent module:attribute`")
    if checks.foreign:
        threads = counted(checks.foreign, "thread")
        note(f"{threads} of graphs with EverthreadMiddleware or a guard, which go on in their own app: not checked")


def _packages() -> _Findings:
    python = f"{platform.python_version()} on {platform.system()}, everthread {everthread.__version__}"
    yield "python", "ok" if sys.version_info >= (3, 11) else "fail", python
    for name, least in _NEEDED.items():
        installed = _installed(name)
        if installed is None:
            yield name, "fail", f"not installed; `pip install '{name}>={least}'`"
        elif _numbers(installed) < _numbers(least):
            yield name, "fail", f"{installed} is too old; `pip install '{name}>={least}'`"
        else:
            yield name, "ok", installed
    for name, extra in _OPTIONAL.items():
        yield name, "ok", _installed(name) or f"not installed (optional, the extra `{extra}`)"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def _sqlite(url: str) -> _Findings:
    if is_postgres(url):
        return
    installed, (safe, *patched) = sqlite3.sqlite_version_info, _SAFE_SQLITE
    if installed >= safe or any(one <= installed and one[:2] == installed[:2] for one in patched):
        yield "sqlite", "ok", sqlite3.sqlite_version
    else:
        yield (
            "sqlite",
            "warn",
            f"{sqlite3.sqlite_version}; before {'.'.join(map(str, safe))} a rare bug can damage a file when two "
            "processes write or checkpoint at the same instant; with many writers take a newer SQLite, or Postgres",
        )
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        except sqlite3.Error as error:
            yield "full-text search", "fail", f"this SQLite has no FTS5 ({error}), which search needs"
        else:
            yield "full-text search", "ok", "FTS5"


def _tokens() -> _Findings:
    try:
        sizes = {name: len(ranks.read(name)) for name in ranks.SHA256}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the ranks, the report says so
        yield "token ranks", "fail", f"cannot be loaded: {type(error).__name__}: {error}; reinstall everthread"
        return
    tokens = " and ".join(f"{name} with {size:,} tokens" for name, size in sizes.items())
    yield "token ranks", "ok", f"{tokens} come from the package"


def _model(name: str | None) -> _Findings:
    where = ("`EVERTHREAD_MODEL`" if name == os.environ.get("EVERTHREAD_MODEL") else "--model") if name else "default"
    if (name or "offline").strip() == "offline":
        yield "model", "ok", f"offline (pattern matching, not a language model), {where}"
        return
    # Taken when called: a model brings LangChain, whose import takes seconds.
    from everthread.models.identity import describe
    from everthread.models.provider import resolve
    from everthread.models.wrapped import input_limit
    from everthread.window.budget import UNKNOWN_WINDOW

    try:
        model = resolve(name)
    except EverthreadError as error:
        yield "model", "fail", str(error)
        return
    limit = input_limit(model)
    size = f"takes {limit:,} tokens in" if limit else f"has no known limit; {UNKNOWN_WINDOW:,} tokens are assumed"
    yield "model", "ok", f"{describe(model)}, {where}, {size}"


def _environment() -> _Findings:
    yield "OPENAI_API_KEY", "ok", "set" if os.environ.get("OPENAI_API_KEY") else "not set"
    # A URL may hold a password, which is no one's business here.
    yield "OPENAI_BASE_URL", "ok", scrub(os.environ.get("OPENAI_BASE_URL") or "not set")
    for name in _TRACING:
        if os.environ.get(name, "").lower() in ("true", "1"):
            yield "tracing", "warn", f"`{name}` is on: conversations are also sent to LangSmith"


def _database(url: str) -> _Findings:
    if is_postgres(url):
        try:
            with needing_postgres():
                from everthread.storage.postgres.health import findings
        except EverthreadError as error:
            yield "database", "fail", str(error)
            return
        yield from findings(url)
        return
    try:
        path = locate(url).path
        if path is None:
            yield "database", "ok", f"{scrub(url)}, in memory: nothing is kept"
            return
        if not is_there(path):
            yield _missing(path)
            return
        prepare(locate(url), read_only=True)
    except EverthreadError as error:
        yield "database", "fail", scrub(str(error))
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    size = f"{path.resolve()}, {path.stat().st_size:,} bytes, mode {mode:03o}"
    refused = next((one for one in (path.resolve(), path.resolve().parent) if not os.access(one, os.W_OK)), None)
    if refused is not None:
        yield "database", "fail", f"{size}: cannot be written: no permission to write {refused}"
    elif mode & 0o077:
        yield "database", "warn", f"{size}: others can read it; `chmod 600 {path}`"
    else:
        yield "database", "ok", size
    yield from _content(path)


def _missing(path: Path) -> tuple[str, str, str]:
    file, folder = path.resolve(), path.resolve().parent
    if not folder.is_dir():
        return "database", "fail", f"{file} does not exist, nor does its folder"
    if not os.access(folder, os.W_OK):
        return "database", "fail", f"{file} does not exist and its folder is read-only"
    return "database", "ok", f"{file} does not exist yet; the first conversation makes it"


def _content(path: Path) -> _Findings:
    """Look whether the file is intact and whether an erasure has to be finished."""
    try:
        with closing(connect_to_read(path)) as database:
            integrity = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
            unfinished = _first(database, "erasures", "SELECT began FROM erasures ORDER BY began")
            index = _first(database, "lexical_meta", "SELECT value FROM lexical_meta WHERE name = 'version'") or ""
            rows = list(unreadable(SqliteTables(database.execute))) if integrity == "ok" else []
            words = damaged_index_rows(database) if integrity == "ok" else 0
    except sqlite3.DatabaseError as error:
        integrity, unfinished, index, rows, words = str(error), None, "", [], 0
    if integrity == "ok":
        yield "integrity", "ok", "the file is intact"
    else:
        restore = "stop every process that uses it and restore a copy, without the `-wal` and `-shm` files beside it"
        yield "integrity", "fail", f"the file is damaged ({integrity}); {restore}"
    if rows:
        cannot = f"{counted(len(rows), 'row')} cannot be read: {first_of(rows, _MOST_NAMED)}"
        yield "rows", "fail", f"{cannot}; restore a copy, or erase their threads with `everthread forget`"
    elif integrity == "ok":
        yield "rows", "ok", "every row can be read"
    if index.isdigit() and int(index) > INDEX_VERSION:
        newer = f"made by a newer version ({index}, this one knows {INDEX_VERSION}); upgrade everthread"
        yield "full-text index", "fail", newer
    elif words:
        again = "`everthread compact` builds it again"
        yield "full-text index", "warn", f"{counted(words, 'row')} of it cannot be read; {again}"
    if unfinished:
        again = "run the same `everthread forget` or `retain` command again"
        yield "erasure", "warn", f"one that began at {unfinished} was not finished; {again}"


def _first(database: sqlite3.Connection, table: str, query: str) -> str | None:
    """Return the first value of a query; None when its table is missing or it finds nothing."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return None
    row = database.execute(query).fetchone()
    return None if row is None else str(row[0])
