"""`forget` and `export`."""

import errno
import io
import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from everthread import Context, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.cli.app import app
from everthread.cli.forget import in_words
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces

Run = Callable[..., tuple[int, str, str]]
SECRET = "the zebra sings at 0415"


@pytest.fixture(autouse=True)
def _talked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_storage("sqlite:///everthread.db") as storage:
        for thread_id, user_id in (("t", "ada"), ("t-2", "bob")):
            graph = build_graph(travel, model=ScriptedModel(["hello"]), summarizer="offline", storage=storage)
            config: Any = {"configurable": {"thread_id": thread_id}}
            graph.invoke({"messages": f"{SECRET} for {user_id}"}, config, context=Context(user_id=user_id))
        storage.store.put(namespaces.profile("ada"), "profile", {"name": "Ada"})


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def test_forget_says_what_went_and_that_it_was_verified(run: Run) -> None:
    code, out, _ = run("forget", "--user", "ada", "--yes")

    assert code == 0
    assert "Erased user 'ada': 1 profile" in out
    assert "Verified: none of" in out
    assert f"{SECRET} for ada".encode() not in Path("everthread.db").read_bytes()


def test_a_no_leaves_nothing_on_stdout(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    code, out, err = run("forget", "--user", "ada", "--json")

    assert (code, out) == (1, "")
    assert "It cannot be undone" in err


def test_forget_speaks_of_what_people_know(run: Run) -> None:
    _, out, _ = run("forget", "--user", "ada", "--yes", "--receipt", "r.json")

    told = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert re.search(r"1 profile, \d+ checkpoints, \d+ events of the ledger and \d+ internal records\.", out)
    assert not re.search(r"\b(writes|sessions|store|lexical)\b", out)
    assert {"profile", "checkpoints", "writes", "ledger", "sessions"} <= told["erased"].keys()


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({}, "nothing but traces of an erasure"),
        ({"notes": 1}, "1 long-term note"),
        ({"writes": 3, "removed": 1}, "4 internal records"),
        ({"wishes": 2, "transcript": 1_200}, "1,200 messages of the transcript and 2 wishes"),
    ],
)
def test_counts_are_told_in_words(counts: dict[str, int], words: str) -> None:
    assert in_words(counts) == words


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["forget", "--user", "ada", "--yes"], "erasing user 'ada'"),
        (["export", "--user", "ada"], "exporting user 'ada'"),
        (["sweep", "--idle", "0s"], "sweeping 2 sessions"),
    ],
)
def test_a_long_command_tells_its_start_and_its_end_where_no_terminal_shows_a_bar(
    run: Run, arguments: list[str], what: str
) -> None:
    _, _, err = run(*arguments)

    first, second, *_ = err.splitlines()
    assert first == f"{what} …"
    assert re.fullmatch(rf"{what}: done after \d+\.\d s", second)


def test_the_receipt_is_the_json_and_only_its_owner_can_read_it(run: Run) -> None:
    code, out, _ = run("forget", "--thread", "t", "--yes", "--json", "--receipt", "r.json")

    told = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert (code, told) == (0, json.loads(out))
    assert (told["thread_id"], told["verified"], told["left"]) == ("t", True, [])
    assert stat.S_IMODE(Path("r.json").stat().st_mode) == 0o600
    assert SECRET not in out


def test_forget_asks_and_no_leaves_everything(run: Run) -> None:
    asked = CliRunner().invoke(app, ["forget", "--user", "ada"], input="n\n")

    assert asked.exit_code == 1
    assert "user 'ada' has 1 profile" in asked.stderr
    assert run("show", "t")[0] == 0


def test_yes_as_an_answer_erases(run: Run) -> None:
    assert CliRunner().invoke(app, ["forget", "--thread", "t"], input="y\n").exit_code == 0
    assert run("show", "t")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--user", "eve"], 1, "there is no user 'eve'"),
        (["--thread", "t-9"], 1, "there is no thread 't-9'"),
        ([], 2, "either `--user USER` or `--thread THREAD`"),
        (["--user", "ada", "--receipt", "everthread.db"], 2, "exists already"),
        (["--user", "ada", "--receipt", "missing/r.json"], 2, "does not exist"),
    ],
)
def test_what_cannot_be_forgotten_is_refused_in_one_sentence(
    run: Run, arguments: list[str], code: int, message: str
) -> None:
    found, out, err = run("forget", "--yes", *arguments)

    assert (found, out, err.count("\n")) == (code, "", 1)
    assert message in err


def test_forget_fails_when_a_text_is_left(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        storage.store.put(("stray",), "k", {"text": f"{SECRET} for ada"})

    code, _, err = run("forget", "--user", "ada", "--yes")

    assert (code, "still in the record stray/k" in err) == (1, True)


def test_export_holds_everything_of_the_user_and_nothing_of_others(run: Run) -> None:
    _, out, _ = run("export", "--user", "ada")

    told = json.loads(out)
    assert (told["user_id"], told["profile"]) == ("ada", {"name": "Ada"})
    assert [one["thread_id"] for one in told["threads"]] == ["t"]
    assert [one["content"] for one in told["threads"][0]["messages"]] == [f"{SECRET} for ada", "hello"]
    assert told["threads"][0]["other_branches"] == []
    assert "bob" not in out


def test_export_has_every_record_that_forget_would_erase(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        storage.store.put(namespaces.user("ada", "tickets"), "INC-1", {"title": "A ticket"})
        storage.store.put(namespaces.user("ada", "badges"), "b-1", {"title": "A badge"})
        storage.store.put(namespaces.thread("t", "summaries"), "1", {"text": "A summary"})

    _, out, _ = run("export", "--user", "ada")

    told = json.loads(out)
    assert [told[kind][0]["title"] for kind in ("tickets", "badges")] == ["A ticket", "A badge"]
    assert [one["text"] for one in told["threads"][0]["summaries"]] == ["A summary"]
    assert told["threads"][0]["ledger"]


def test_export_has_the_messages_of_a_branch_that_was_left(run: Run) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        graph = build_graph(travel, model=ScriptedModel(["other"]), summarizer="offline", storage=storage)
        first = list(graph.get_state_history({"configurable": {"thread_id": "t"}}))[-1]
        graph.invoke({"messages": "go another way"}, first.config, context=Context(user_id="ada"))

    _, out, _ = run("export", "--user", "ada")

    thread = json.loads(out)["threads"][0]
    assert "hello" in [one["content"] for one in thread["other_branches"]]
    assert "other" in [one["content"] for one in thread["messages"]]


def test_export_writes_a_new_file_for_its_owner_only(run: Run) -> None:
    code, out, err = run("export", "--user", "ada", "--output", "ada.json")

    assert (code, out) == (0, "")
    assert "1 thread of user 'ada'" in err
    assert stat.S_IMODE(Path("ada.json").stat().st_mode) == 0o600
    assert run("export", "--user", "ada", "--output", "ada.json")[0] == 2


def no_space(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_export_that_finds_no_room_is_one_sentence_and_leaves_no_half_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.cli.output._save", no_space)

    code, _, err = run("export", "--user", "ada", "--output", "out.json")

    assert (code, err.splitlines()[-1]) == (1, "error: cannot write 'out.json': No space left on device")
    assert not Path("out.json").exists()


def test_a_receipt_that_finds_no_room_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everthread.cli.output._save", no_space)

    code, out, err = run("forget", "--user", "ada", "--yes", "--receipt", "r.json")

    assert (code, json.loads(out)["verified"]) == (1, True)
    assert "is erased, but the receipt went to the standard output: cannot write 'r.json'" in err


def test_export_refuses_an_unknown_user(run: Run) -> None:
    assert run("export", "--user", "eve")[0] == 1


def checks(run: Run) -> dict[str, Any]:
    return {check["name"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}


def test_doctor_names_an_erasure_that_was_not_finished(run: Run) -> None:
    assert "erasure" not in checks(run)
    with closing(sqlite3.connect("everthread.db")) as database, database:
        database.execute("CREATE TABLE erasures (target TEXT PRIMARY KEY, began TEXT)")
        database.execute("INSERT INTO erasures VALUES ('x', '2027-01-01')")

    found = checks(run)["erasure"]

    assert (found["status"], "2027-01-01" in found["detail"]) == ("warn", True)


def test_doctor_fails_for_an_index_of_a_newer_version(run: Run) -> None:
    with closing(sqlite3.connect("everthread.db")) as database, database:
        database.execute("UPDATE lexical_meta SET value = 99 WHERE name = 'version'")

    code, out, _ = run("doctor")

    assert (code, "fail  full-text index: made by a newer version (99" in out) == (1, True)


def test_doctor_fails_for_a_damaged_file(run: Run) -> None:
    assert checks(run)["integrity"]["status"] == "ok"
    with closing(sqlite3.connect("everthread.db")) as database:
        root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'writes'").fetchone()[0]
    with open("everthread.db", "r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xa5" * 4096)

    assert checks(run)["integrity"]["status"] == "fail"
    assert run("doctor")[0] == 1


@pytest.mark.parametrize("arguments", [("--thread", "t"), ("--user", "ada")])
def test_forget_says_that_it_waits_for_a_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr("everthread.cli.forget.WAIT_SECONDS", 0.01)
    with open_storage("sqlite:///everthread.db") as storage, storage.locks.hold("t"):
        code, out, err = run("forget", *arguments, "--yes")

    assert (code, out) == (1, "")
    assert "is running thread 't'; waiting up to 0.01 s …" in err
    assert "wait for that run and try again" in err
