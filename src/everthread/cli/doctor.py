"""`doctor`: is everything here that a conversation needs? Nothing is changed, and no secret is shown."""

import os
import platform
import re
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import typer
from rich.text import Text

import everthread
from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, ModelName
from everthread.cli.output import out, plain, print_json
from everthread.errors import EverthreadError
from everthread.models.provider import describe, input_limit, resolve
from everthread.state.scrubbing import scrub
from everthread.storage.lexical.words import VERSION
from everthread.storage.locations import locate, prepare
from everthread.window.budget import UNKNOWN_WINDOW
from everthread.window.tokens import counter_for

__all__ = ["doctor"]

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

_OPTIONAL = {"langgraph-cli": "studio"}
"""Packages and the extra that installs each."""

_SAFE_SQLITE = (3, 51, 3)
"""First version without the WAL-reset bug. Source: sqlite.org/wal.html, "The WAL-Reset Bug"."""

_TRACING = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2")

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True)
class _Finding:
    """One line of the report."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str


def doctor(model: ModelName = None, database: DatabaseUrl = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Check what a conversation needs; exit 1 if it fails.

    Packages, SQLite, token counting, the model, keys (never their values), the database.
    """
    findings = [
        _python(),
        *map(_package, _NEEDED),
        *map(_extra, _OPTIONAL),
        *_sqlite(),
        _tokens(),
        _model(model),
        *_environment(),
        *_database(database),
    ]
    failed = any(finding.status == "fail" for finding in findings)
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(finding) for finding in findings]})
    else:
        console = out()
        for finding in findings:
            status = (f"{finding.status:4}", _STYLES[finding.status])
            console.print(Text.assemble(status, f"  {finding.name}: {plain(finding.detail)}"), soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def _python() -> _Finding:
    detail = f"{platform.python_version()} on {platform.system()}, everthread {everthread.__version__}"
    return _Finding("python", "ok" if sys.version_info >= (3, 11) else "fail", detail)


def _package(name: str) -> _Finding:
    least = _NEEDED[name]
    try:
        installed = version(name)
    except PackageNotFoundError:
        return _Finding(name, "fail", f"not installed; `pip install '{name}>={least}'`")
    if _numbers(installed) < _numbers(least):
        return _Finding(name, "fail", f"{installed} is too old; `pip install '{name}>={least}'`")
    return _Finding(name, "ok", installed)


def _extra(name: str) -> _Finding:
    try:
        return _Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return _Finding(name, "ok", f"not installed (optional, the extra `{_OPTIONAL[name]}`)")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def _sqlite() -> Iterator[_Finding]:
    if sqlite3.sqlite_version_info >= _SAFE_SQLITE:
        yield _Finding("sqlite", "ok", sqlite3.sqlite_version)
    else:
        yield _Finding(
            "sqlite",
            "warn",
            f"{sqlite3.sqlite_version}; before {'.'.join(map(str, _SAFE_SQLITE))} a rare bug can damage a file that "
            "several processes write at the same moment: use one process at a time, or a newer SQLite",
        )
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        except sqlite3.Error as error:
            yield _Finding("full-text search", "fail", f"this SQLite has no FTS5 ({error}), which search needs")
        else:
            yield _Finding("full-text search", "ok", "FTS5")


def _tokens() -> _Finding:
    try:
        counts = {name: counter_for(name).text("Hello, world!") for name in ("gpt-4.1", "gpt-4")}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the ranks, the report says so
        detail = f"cannot be loaded: {type(error).__name__}: {error}; reinstall everthread"
        return _Finding("token ranks", "fail", detail)
    examples = ", ".join(f"{name} {tokens}" for name, tokens in counts.items())
    detail = f"o200k and cl100k, shipped with the package, load (tokens of 'Hello, world!': {examples})"
    return _Finding("token ranks", "ok", detail)


def _model(name: str | None) -> _Finding:
    where = ("`EVERTHREAD_MODEL`" if name == os.environ.get("EVERTHREAD_MODEL") else "--model") if name else "default"
    try:
        model = resolve(name)
    except EverthreadError as error:
        return _Finding("model", "fail", str(error))
    limit = input_limit(model)
    size = f"takes {limit:,} tokens in" if limit else f"has no known limit; {UNKNOWN_WINDOW:,} tokens are assumed"
    kind = " (pattern matching, not a language model)" if describe(model) == "offline" else ""
    return _Finding("model", "ok", f"{describe(model)}{kind}, {where}, {size}")


def _environment() -> Iterator[_Finding]:
    yield _Finding("OPENAI_API_KEY", "ok", "set" if os.environ.get("OPENAI_API_KEY") else "not set")
    # A URL may hold a password, which is no one's business here.
    yield _Finding("OPENAI_BASE_URL", "ok", scrub(os.environ.get("OPENAI_BASE_URL") or "not set"))
    if active := [name for name in _TRACING if os.environ.get(name, "").lower() in ("true", "1")]:
        yield _Finding("tracing", "warn", f"`{active[0]}` is on: conversations are also sent to LangSmith")


def _database(url: str) -> Iterator[_Finding]:
    try:
        path = locate(url).path
        if path is None:
            yield _Finding("database", "ok", f"{scrub(url)}, in memory: nothing is kept")
            return
        if not path.exists():
            yield _missing(path)
            return
        prepare(locate(url), create=False)
    except EverthreadError as error:
        yield _Finding("database", "fail", scrub(str(error)))
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    size = f"{path.resolve()}, {path.stat().st_size:,} bytes, mode {mode:03o}"
    if mode & 0o077:
        yield _Finding("database", "warn", f"{size}: others can read it; `chmod 600 {path}`")
    else:
        yield _Finding("database", "ok", size)
    yield from _content(path)


def _missing(path: Path) -> _Finding:
    file, folder = path.resolve(), path.resolve().parent
    if not folder.is_dir():
        return _Finding("database", "fail", f"{file} does not exist, nor does its folder")
    if not os.access(folder, os.W_OK):
        return _Finding("database", "fail", f"{file} does not exist and its folder is read-only")
    return _Finding("database", "ok", f"{file} does not exist yet; the first conversation makes it")


def _content(path: Path) -> Iterator[_Finding]:
    """Look whether the file is intact and whether an erasure has to be finished."""
    try:
        with closing(sqlite3.connect(path, timeout=30)) as database:
            integrity = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
            unfinished = _first(database, "erasures", "SELECT began FROM erasures ORDER BY began")
            index = int(_first(database, "lexical_meta", "SELECT value FROM lexical_meta WHERE name = 'version'") or 0)
    except sqlite3.DatabaseError as error:
        integrity, unfinished, index = str(error), None, 0
    if integrity != "ok":
        yield _Finding(
            "integrity",
            "fail",
            f"the file is damaged ({integrity}); stop every process that uses it and restore a copy, without the "
            "`-wal` and `-shm` files beside it",
        )
    else:
        yield _Finding("integrity", "ok", "the file is intact")
    if index > VERSION:
        yield _Finding(
            "full-text index",
            "fail",
            f"made by a newer version ({index}, this one knows {VERSION}); upgrade everthread",
        )
    if unfinished:
        yield _Finding(
            "erasure",
            "warn",
            f"one that began at {unfinished} was not finished; run the same `everthread forget` command again",
        )


def _first(database: sqlite3.Connection, table: str, query: str) -> str | None:
    """Return the first value of a query; None when its table is missing or it finds nothing."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return None
    row = database.execute(query).fetchone()
    return None if row is None else str(row[0])
