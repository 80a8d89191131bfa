"""`compact`: small files, and nothing lost."""

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everthread import Context, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.models.scripted import ScriptedModel
from everthread.storage.locations import locate
from everthread.storage.locks import ThreadLocks
from everthread.storage.open import Storage

URL = "sqlite:///everthread.db"
TURNS = 14


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


def graph_of(storage: Storage, turns: int = 0) -> Any:
    return build_graph(travel, model=ScriptedModel(["fine " * 400] * turns), summarizer="offline", storage=storage)


def talk(thread_id: str, keep: int | None = 1_000, turns: int = TURNS) -> None:
    """Have some turns of which every checkpoint is kept."""
    with open_storage(URL) as storage:
        graph = graph_of(storage, turns)
        for turn in range(turns):
            graph.invoke(
                {"messages": f"question {turn}"},
                config(thread_id),
                context=Context(keep_checkpoints=keep, window=8000),
                durability="exit",
            )


def forget_the_dial() -> None:
    """Leave the threads as an older version wrote them."""
    with closing(sqlite3.connect("everthread.db")) as database, database:
        database.execute(
            "UPDATE checkpoints SET metadata = CAST(json_remove(CAST(metadata AS TEXT), '$.keep_checkpoints') AS BLOB)"
        )


def history(thread_id: str) -> list[Any]:
    with open_storage(URL) as storage:
        return list(graph_of(storage).get_state_history(config(thread_id)))


def compact(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["compact", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_file_shrinks_and_every_message_stays(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a")
    before = history("a")

    code, out, err = compact(capsys, "--yes", "--keep-checkpoints", "1", "--json")

    told = json.loads(out)
    assert code == 0
    assert [line.partition(":")[0] for line in err.splitlines()] == [
        "compacting the database …",
        "compacting the database",
    ]
    assert told["bytes_after"] == Path("everthread.db").stat().st_size < told["bytes_before"]
    assert (told["threads"], told["checkpoints"]) == (1, len(before) - len(history("a")))
    assert told["checkpoints"] > 0
    assert history("a")[0] == before[0]


def test_all_prunes_nothing_and_does_not_ask(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a")
    before = history("a")

    code, out, _ = compact(capsys, "--keep-checkpoints", "all")

    assert code == 0
    assert "Pruned 0 checkpoints" in out
    assert history("a") == before


def test_the_default_is_that_of_the_dial(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a")
    forget_the_dial()

    compact(capsys, "--yes")

    assert len(history("a")) in range(Context().keep_checkpoints or 0, TURNS)


@pytest.mark.parametrize("keep", [None, 12])
def test_a_thread_keeps_what_it_was_run_with(capsys: pytest.CaptureFixture[str], keep: int | None) -> None:
    talk("a", 1_000)
    talk("a", keep, turns=2)
    before = history("a")

    code, out, _ = compact(capsys, "--yes")

    turns = {state.values.get("turns", 0) for state in history("a")}
    assert code == 0
    assert len(turns) in range(12, TURNS + 2) if keep else history("a") == before
    assert ("1 thread kept all of theirs" in out) is (keep is None)


def test_a_state_that_was_edited_by_hand_does_not_hide_the_dial(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a", None)
    with open_storage(URL) as storage:
        graph_of(storage).update_state(config("a"), {"moved": ""})
    before = history("a")

    compact(capsys, "--yes")

    assert history("a") == before


def test_a_number_of_turns_wins_over_the_dial(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a", None)

    compact(capsys, "--yes", "--keep-checkpoints", "1")

    assert len(history("a")) < TURNS


def test_a_thread_of_the_default_dial_stores_nothing_of_it() -> None:
    talk("a", Context.keep_checkpoints, turns=1)

    with closing(sqlite3.connect("everthread.db")) as database:
        told = database.execute("SELECT CAST(metadata AS TEXT) FROM checkpoints").fetchall()
    assert not any("keep_checkpoints" in one for (one,) in told)


def test_nothing_happens_without_a_yes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    talk("a")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    before = history("a")

    code, _, err = compact(capsys)

    assert code == 1
    assert "cannot be undone" in err
    assert history("a") == before


def test_a_database_in_use_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a")
    before = history("a")

    with ThreadLocks(locate(URL).path).hold("other"):
        code, _, err = compact(capsys, "--yes", "--keep-checkpoints", "1")

    assert code == 1
    assert "a run holds a thread; try again" in err
    assert history("a") == before


@pytest.mark.parametrize("wrong", ["0", "-1", "some", ""])
def test_a_wrong_number_of_turns_is_refused(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    talk("a")

    code, _, err = compact(capsys, "--yes", "--keep-checkpoints", wrong)

    assert code == 2
    assert "write 1 or more, or `all`" in err


def test_a_database_in_memory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compact(capsys, "--yes", "--database", "sqlite://")

    assert code == 2
    assert "in memory" in err


def test_a_missing_file_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compact(capsys, "--yes")

    assert (code, Path("everthread.db").exists()) == (1, False)
    assert "no database" in err
