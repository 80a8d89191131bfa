"""The checks behind `doctor`; none changes anything, and none shows a secret."""

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
from typing import Any, Literal

import everthread
from everthread.errors import EverthreadError
from everthread.models.provider import describe, input_limit, resolve
from everthread.state.scrubbing import scrub
from everthread.storage.lexical.words import VERSION
from everthread.storage.locations import locate, prepare
from everthread.window.budget import UNKNOWN_WINDOW
from everthread.window.tokens import counter_for

__all__ = ["Finding", "examine"]

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


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return asdict(self)


def examine(model: str | None, database: str) -> list[Finding]:
    """Look at everything that a conversation needs.

    Args:
        model: `provider:name`; None takes `EVERTHREAD_MODEL`, else the offline model.
        database: URL of the database; its file is not made.
    """
    return [
        _python(),
        *map(_package, _NEEDED),
        *map(_extra, _OPTIONAL),
        *_sqlite(),
        _tokens(),
        _model(model),
        *_environment(),
        *_database(database),
    ]


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.system()}, everthread {everthread.__version__}"
    return Finding("python", "ok" if sys.version_info >= (3, 11) else "fail", detail)


def _package(name: str) -> Finding:
    least = _NEEDED[name]
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "fail", f"not installed; `pip install '{name}>={least}'`")
    if _numbers(found) < _numbers(least):
        return Finding(name, "fail", f"{found} is too old; `pip install '{name}>={least}'`")
    return Finding(name, "ok", found)


def _extra(name: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, "ok", f"not installed (optional, the extra `{_OPTIONAL[name]}`)")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def _sqlite() -> Iterator[Finding]:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= _SAFE_SQLITE:
        yield Finding("sqlite", "ok", found)
    else:
        yield Finding(
            "sqlite",
            "warn",
            f"{found}; before {'.'.join(map(str, _SAFE_SQLITE))} a rare bug can damage a file that several processes "
            "write at the same moment: use one process at a time, or a newer SQLite",
        )
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        except sqlite3.Error as error:
            yield Finding("full-text search", "fail", f"this SQLite has no FTS5 ({error}); the knowledge base needs it")
        else:
            yield Finding("full-text search", "ok", "FTS5")


def _tokens() -> Finding:
    try:
        counts = {name: counter_for(name).text("Hello, world!") for name in ("gpt-4.1", "gpt-4")}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the ranks, the report says so
        return Finding(
            "token ranks", "fail", f"cannot be loaded: {type(error).__name__}: {error}; reinstall everthread"
        )
    told = ", ".join(f"{name} {tokens}" for name, tokens in counts.items())
    return Finding("token ranks", "ok", f"shipped o200k and cl100k load (tokens of 'Hello, world!': {told})")


def _model(name: str | None) -> Finding:
    where = ("`EVERTHREAD_MODEL`" if name == os.environ.get("EVERTHREAD_MODEL") else "--model") if name else "default"
    try:
        made = resolve(name)
    except EverthreadError as error:
        return Finding("model", "fail", str(error))
    limit = input_limit(made)
    told = f"takes {limit:,} tokens in" if limit else f"has no known limit; {UNKNOWN_WINDOW:,} tokens are assumed"
    kind = " (pattern matching, not a language model)" if describe(made) == "offline" else ""
    return Finding("model", "ok", f"{describe(made)}{kind}, {where}, {told}")


def _environment() -> Iterator[Finding]:
    yield Finding("OPENAI_API_KEY", "ok", "set" if os.environ.get("OPENAI_API_KEY") else "not set")
    # A URL may hold a password, which is no one's business here.
    yield Finding("OPENAI_BASE_URL", "ok", scrub(os.environ.get("OPENAI_BASE_URL") or "not set"))
    if traced := [name for name in _TRACING if os.environ.get(name, "").lower() in ("true", "1")]:
        yield Finding("tracing", "warn", f"`{traced[0]}` is on: what is said is also sent to LangSmith")


def _database(url: str) -> Iterator[Finding]:
    shown = scrub(url)
    try:
        path = locate(url).path
        if path is None:
            yield Finding("database", "ok", f"{shown}, in memory: nothing is kept")
            return
        if not path.exists():
            yield _missing(path)
            return
        prepare(locate(url), create=False)
    except EverthreadError as error:
        yield Finding("database", "fail", scrub(str(error)))
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    size = f"{path.resolve()}, {path.stat().st_size:,} bytes, mode {mode:03o}"
    if mode & 0o077:
        yield Finding("database", "warn", f"{size}: others can read it; `chmod 600 {path}`")
    else:
        yield Finding("database", "ok", size)
    yield from _content(path)


def _content(path: Path) -> Iterator[Finding]:
    """Look whether the file is whole and whether an erasure has to be finished."""
    try:
        with closing(sqlite3.connect(path, timeout=30)) as database:
            told = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
            table = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'erasures'").fetchone()
            open_ones = database.execute("SELECT began FROM erasures ORDER BY began").fetchall() if table else []
            index = _index_version(database)
    except sqlite3.DatabaseError as error:
        told, open_ones, index = str(error), [], 0
    if told != "ok":
        yield Finding(
            "integrity",
            "fail",
            f"the file is damaged ({told}); stop every process that uses it and restore a copy, without the `-wal` and "
            "`-shm` files that lie beside it",
        )
    else:
        yield Finding("integrity", "ok", "the file is whole")
    if index > VERSION:
        yield Finding(
            "full-text index",
            "fail",
            f"made by a newer version ({index}, this one knows {VERSION}); upgrade everthread",
        )
    if open_ones:
        yield Finding(
            "erasure",
            "warn",
            f"one that began at {open_ones[0][0]} was not finished; run the same `everthread forget` command again",
        )


def _index_version(database: sqlite3.Connection) -> int:
    """Return the version of the full-text index; 0 when there is none."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'lexical_meta'").fetchone():
        return 0
    row = database.execute("SELECT value FROM lexical_meta WHERE name = 'version'").fetchone()
    return int(row[0]) if row else 0


def _missing(path: Path) -> Finding:
    folder = path.resolve().parent
    if not folder.is_dir():
        return Finding("database", "fail", f"{path.resolve()} does not exist, nor does its folder")
    if not os.access(folder, os.W_OK):
        return Finding("database", "fail", f"{path.resolve()} does not exist and its folder cannot be written")
    return Finding("database", "ok", f"{path.resolve()} does not exist yet; the first conversation makes it")
