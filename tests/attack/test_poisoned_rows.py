"""One damaged row: no traceback, the rest is read, what is erased is gone, and nothing is executed."""

import base64
import json
import os
import pickle
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from attack.conftest import AttackRow
from attack.poisoned import DAMAGES, SECRETS, TARGETS, copied, make_database
from attack.scale import PARTS, SCALE, part_of, tries
from everthread import Context, build_graph, open_storage
from everthread.cli import main
from everthread.errors import EverthreadError, UnreadableError
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from small_agent import AGENT

PAIRS = [(target, damage) for target in TARGETS for damage in DAMAGES]
READING = (
    ("threads",),
    ("threads", "--json"),
    ("show", "t-ada"),
    ("show", "t-ada", "--json"),
    ("show", "t-ada", "--summaries"),
    ("why", "zebra", "--thread", "t-ada"),
    ("why", "--refetches", "--thread", "t-ada"),
    ("ledger", "t-ada"),
    ("ledger", "t-ada", "--json"),
    ("notes", "ada"),
    ("notes", "ada", "--json"),
    ("export", "--user", "ada"),
    ("end", "t-ada", "--dry-run"),
)
OF_BOB = (("show", "t-bob"), ("ledger", "t-bob"), ("notes", "bob"), ("export", "--user", "bob"))
MAY_FAIL = ("notes", "end", "why")
"""Commands that need one row, such as the note or the session that they are asked about."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "healthy.db"
    make_database(path)
    return path


class Commands:
    """Runs commands on one database and notes what is wrong with what they do."""

    def __init__(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.name = name
        self.wrong: list[str] = []
        self._capsys = capsys

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run one command and return what it printed."""
        try:
            code = main(arguments)
        except Exception as error:  # noqa: BLE001 - a traceback of any kind is what is looked for
            self._capsys.readouterr()
            self.note(arguments, f"ended in {error!r:.200}")
            return ""
        shown = self._capsys.readouterr()
        if code not in codes:
            self.note(arguments, f"has code {code}: {shown.err[-300:]}")
        return shown.out

    def note(self, arguments: tuple[str, ...], what: str) -> None:
        self.wrong.append(f"{self.name}: `{' '.join(arguments)}` {what}")


def attacked(healthy: Path, folder: Path, target: str, damage: str, capsys: Any) -> list[str]:
    path = copied(healthy, folder)
    if not TARGETS[target].damage(path, DAMAGES[damage], as_text="as text" in damage):
        return []
    commands = Commands(f"{target}, {damage}", capsys)
    for arguments in READING:
        commands.run(*arguments, codes=(0, 1) if arguments[0] in MAY_FAIL else (0,))
    for arguments in OF_BOB:
        if SECRETS["bob"] not in (shown := commands.run(*arguments)) and arguments[0] != "ledger":
            commands.note(arguments, f"lacks Bob's words: {shown:.100}")
    commands.run("doctor", codes=(0, 1))
    commands.run("sweep", "--idle", "0s", codes=(0, 1))
    commands.run("compact", "--yes", codes=(0, 1))
    commands.run("forget", "--thread", "t-ada", "--yes")
    commands.run("forget", "--user", "ada", "--yes", codes=(0, 1))
    for file in folder.glob("everthread.db*"):
        if file.is_file() and SECRETS["ada"].encode() in file.read_bytes():
            commands.note(("forget",), f"left Ada's words in {file.name}")
    if SECRETS["bob"] not in commands.run("export", "--user", "bob"):
        commands.note(("forget",), "took Bob's words")
    return commands.wrong


def some_pairs(short: int) -> list[tuple[str, str]]:
    """Return as many pairs as the form of the run asks for."""
    known = [("session", "no UTF-8 as text"), ("version of the index", "no UTF-8 as text")]
    return [*known, *random.Random(16).sample(PAIRS, min(len(PAIRS), tries(short)) - len(known))]


@pytest.mark.parametrize("part", PARTS)
def test_no_command_ends_in_a_traceback(
    part: int,
    healthy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    attack_row: AttackRow,
) -> None:
    wrong, pairs = [], part_of(some_pairs(5), part)
    for number, (target, damage) in enumerate(pairs):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        wrong += attacked(healthy, folder, target, damage, capsys)
    attack_row("a damaged row: commands", len(pairs) * (len(READING) + len(OF_BOB) + 6), len(wrong))

    assert wrong == []


ROWS = [name for name in TARGETS if TARGETS[name].table in ("checkpoints", "writes", "store")]


@pytest.mark.parametrize("target", ROWS)
def test_the_doctor_says_how_many_and_which(
    target: str, healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    TARGETS[target].damage(copied(healthy, tmp_path), DAMAGES["truncated"])

    assert main(["doctor", "--json"]) == 1

    rows = next(one for one in json.loads(capsys.readouterr().out)["checks"] if one["name"] == "rows")
    assert rows["status"] == "fail"
    assert rows["detail"].startswith("1 row cannot be read: ")
    assert "ada" in rows["detail"]


@pytest.mark.parametrize("target", [name for name in TARGETS if "index" in name and "version" not in name])
def test_the_doctor_finds_a_damaged_index_and_compact_builds_it_again(
    target: str, healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    TARGETS[target].damage(copied(healthy, tmp_path), DAMAGES["random bytes"])

    main(["doctor"])
    before = capsys.readouterr().out
    main(["compact", "--yes"])
    main(["doctor"])

    assert "warn  full-text index" in before
    assert "full-text index" not in capsys.readouterr().out
    with open_storage("sqlite:///everthread.db") as storage:
        assert storage.store.search(namespaces.notes("ada"), query="zebra")


def test_what_is_left_out_is_named_and_the_rest_is_shown(
    healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    path = copied(healthy, tmp_path)
    for target in ("newest checkpoint", "archived message", "session note", "summary"):
        TARGETS[target].damage(path, DAMAGES["random bytes"])

    assert main(["show", "t-ada"]) == 0

    shown = capsys.readouterr().out
    assert "I want the zebra sings at 0415 cake 7." in shown  # of the working set
    assert "I want the zebra sings at 0415 cake 0." in shown  # of the transcript
    for name in ("checkpoint '1", "`threads.t-ada.transcript`", "`threads.t-ada.notes`", "`threads.t-ada.summaries`"):
        assert any(name in one and "cannot be read" in one for one in caplog.messages), name


async def _run(path: Path, api: str, user: str) -> str:
    """Have one turn on Ada's thread; return the answer."""
    with open_storage(f"sqlite:///{path}") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["Hello."]), summarizer="offline", storage=storage)
        given: Any = {
            "input": {"messages": "What about the zebra cake that I wanted on 2026-11-23?"},
            "config": {"configurable": {"thread_id": "t-ada"}},
            "context": Context(user_id=user),
        }
        done = await graph.ainvoke(**given) if api == "ainvoke" else graph.invoke(**given)
        return str(done["messages"][-1].text)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_run_answers_or_is_refused_in_one_sentence(
    api: str, part: int, healthy: Path, tmp_path: Path, attack_row: AttackRow
) -> None:
    wrong, pairs = [], part_of(some_pairs(6), part)
    for target, damage in pairs:
        path = copied(healthy, tmp_path)
        TARGETS[target].damage(path, DAMAGES[damage], as_text="as text" in damage)
        try:
            answer = await _run(path, api, "ada")
            wrong += [] if answer == "Hello." else [f"{target}, {damage}: {answer!r}"]
        except EverthreadError as error:
            wrong += [f"{target}, {damage}: {error}"] if "\n" in str(error) else []
        except Exception as error:  # noqa: BLE001 - a traceback of any kind is what is looked for
            wrong.append(f"{target}, {damage}: {error!r:.200}")
    attack_row("a damaged row: runs", len(pairs), len(wrong))

    assert wrong == []


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_thread_whose_session_is_damaged_is_not_taken_over(
    api: str, healthy: Path, tmp_path: Path, attack_row: AttackRow
) -> None:
    taken = []
    for damage in DAMAGES:
        path = copied(healthy, tmp_path)
        if TARGETS["session"].damage(path, DAMAGES[damage], as_text="as text" in damage):
            try:
                taken.append(f"{damage}: {await _run(path, api, 'eve')}")
            except UnreadableError as error:
                taken += [] if "'t-ada' of `sessions`" in str(error) else [str(error)]
    attack_row("a damaged session: taken over", len(DAMAGES), len(taken))

    assert taken == []


async def test_pages_of_a_search_join_over_a_row_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    async with open_storage("sqlite://") as storage:
        for number in range(30):
            storage.store.put(("a",), f"k{number:02}", {"n": number, "text": "common"})
        storage.database.connection.execute("UPDATE store SET value = '{' WHERE key IN ('k03', 'k17', 'k29')")
        pages = [await storage.store.asearch(("a",), limit=5, offset=offset) for offset in range(0, 40, 5)]
        found = storage.store.search(("a",), query="common", limit=99)
        filtered = storage.store.search(("a",), filter={"n": {"$gte": 15}}, limit=99)

        assert storage.store.get(("a",), "k03") is None
        assert storage.store.get(("a",), "k04") is not None

    keys = [item.key for page in pages for item in page]
    assert [len(page) for page in pages] == [5, 5, 5, 5, 5, 2, 0, 0]
    assert len(set(keys)) == 27
    assert len(found) == 27
    assert len(filtered) == 13
    assert "the record 'k03' of `a` cannot be read" in caplog.text


def test_forgetting_a_user_finds_a_thread_whose_session_is_damaged(
    healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    TARGETS["session"].damage(copied(healthy, tmp_path), DAMAGES["random bytes"])

    assert main(["forget", "--user", "ada", "--yes"]) == 0

    assert SECRETS["ada"].encode() not in Path("everthread.db").read_bytes()
    assert main(["show", "t-ada"]) == 1


def test_forgetting_a_user_names_the_threads_of_which_nobody_knows_whose_they_are(
    healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = copied(healthy, tmp_path)
    TARGETS["session"].damage(path, DAMAGES["random bytes"])
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM store WHERE prefix = 'threads.t-ada.transcript'")
        database.commit()

    main(["forget", "--user", "ada", "--yes"])
    told = capsys.readouterr().err

    assert "`everthread forget --thread t-ada` erases it" in told
    assert main(["forget", "--thread", "t-ada", "--yes"]) == 0
    assert SECRETS["ada"].encode() not in path.read_bytes()


MARK = "everthread_was_attacked"


class _Pickled:
    def __init__(self, module: str, code: str) -> None:
        self._code = code

    def __reduce__(self) -> Any:
        return exec, (self._code,)


def _ext(kind: int, *parts: Any) -> bytes:
    """Return a msgpack extension that asks for a constructor, as LangGraph's serializer writes them."""
    return ormsgpack.packb(ormsgpack.Ext(kind, ormsgpack.packb(parts)))


def _crafted() -> Iterator[tuple[str, str, bytes]]:
    """Yield forty rows that want to write a file: name, type and value."""
    code = f"open({MARK!r}, 'w').close()"
    calls: list[tuple[str, str, Any]] = [
        ("os", "system", f"touch {MARK}"),
        ("builtins", "exec", code),
        ("builtins", "eval", f"open({MARK!r}, 'w')"),
        ("builtins", "open", MARK),
        ("subprocess", "getoutput", f"touch {MARK}"),
        ("pathlib", "Path.touch", MARK),
        ("pickle", "loads", pickle.dumps(_Pickled("os", code))),
        ("importlib", "import_module", "antigravity"),
    ]
    for module, name, argument in calls:
        yield f"{module}.{name}, one argument", "msgpack", _ext(0, module, name, argument)
        yield f"{module}.{name}, arguments", "msgpack", _ext(1, module, name, [argument])
        yield f"{module}.{name}, keywords", "msgpack", _ext(2, module, name, {"file": argument})
        yield f"{module}.{name}, a method", "msgpack", _ext(3, module, name, argument, "__call__")
    for protocol in range(2, 5):
        yield f"pickle {protocol}", "pickle", pickle.dumps(_Pickled("os", code), protocol)
    yield "pickle in bytes", "bytes", pickle.dumps(_Pickled("os", code))
    constructor = {"lc": 2, "type": "constructor", "id": ["builtins", "exec"], "kwargs": {}, "args": [code]}
    yield "JSON constructor", "json", json.dumps(constructor).encode()
    system = {**constructor, "id": ["os", "system"], "args": [f"touch {MARK}"]}
    yield "JSON constructor of a module", "json", json.dumps({"channel_values": {"messages": [system]}}).encode()
    method = {**constructor, "id": ["builtins", "open"], "method": "__call__", "args": [MARK, "w"]}
    yield "JSON constructor with a method", "json", json.dumps(method).encode()
    secret = {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]}
    yield "JSON secret", "json", json.dumps({"channel_values": {"messages": [secret]}}).encode()


CRAFTED = list(_crafted())
assert len(CRAFTED) == 40
PLACES: dict[str, Callable[[sqlite3.Connection, str, bytes], Any]] = {
    "checkpoint": lambda database, kind, value: database.execute(
        "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE thread_id = 't-ada'", (kind, value)
    ),
    "write": lambda database, kind, value: database.execute(
        "UPDATE writes SET type = ?, value = ? WHERE thread_id = 't-ada' AND channel = 'messages'", (kind, value)
    ),
    "record": lambda database, kind, value: database.execute(
        "UPDATE store SET value = ? WHERE prefix LIKE 'threads.t-ada.%' OR prefix LIKE 'users.ada.%'",
        (value if kind == "json" else json.dumps({"type": kind, "value": base64.b64encode(value).decode()}).encode(),),
    ),
}


def _left_a_mark() -> bool:
    with suppress(FileNotFoundError):
        os.unlink(MARK)
        return True
    return False


@pytest.mark.parametrize("place", PLACES)
async def test_a_crafted_row_executes_nothing(
    place: str,
    healthy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    attack_row: AttackRow,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-deployment")
    executed = []
    # In the short form each row stands in one of the places.
    crafted = CRAFTED if SCALE > 1 else CRAFTED[list(PLACES).index(place) :: len(PLACES)]
    for name, kind, value in crafted:
        path = copied(healthy, tmp_path)
        with closing(sqlite3.connect(path)) as database:
            PLACES[place](database, kind, value)
            database.commit()
        for arguments in (["show", "t-ada"], ["export", "--user", "ada"], ["doctor"]):
            main(arguments)
        with open_storage(f"sqlite:///{path}") as storage:
            list(storage.checkpointer.list(None))
        with suppress(EverthreadError):
            await _run(path, "ainvoke", "ada")
        main(["forget", "--user", "ada", "--yes"])
        if "sk-of-the-deployment" in capsys.readouterr().out or _left_a_mark():
            executed.append(name)
    attack_row("a crafted row: code executed", len(crafted), len(executed))

    assert executed == []
