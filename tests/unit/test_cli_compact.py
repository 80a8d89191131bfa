"""`compact`: small files, and nothing lost."""

import io
import json
import time
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


def talk(thread_id: str) -> None:
    """Have some turns of which every checkpoint is kept."""
    with open_storage(URL) as storage:
        graph = graph_of(storage, TURNS)
        for turn in range(TURNS):
            graph.invoke(
                {"messages": f"question {turn}"},
                config(thread_id),
                context=Context(keep_checkpoints=None, window=8000),
                durability="exit",
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
    assert (code, err) == (0, "")
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

    compact(capsys, "--yes")

    assert len(history("a")) in range(Context().keep_checkpoints or 0, TURNS)


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
    locks = ThreadLocks(locate(URL))

    with locks.hold("other"):
        code, _, err = compact(capsys, "--yes", "--keep-checkpoints", "1")
    locks.close()

    assert code == 1
    assert "a run holds thread 'other'; try again" in err
    assert history("a") == before


def test_a_lease_that_expired_is_no_use(capsys: pytest.CaptureFixture[str]) -> None:
    talk("a")
    with open_storage(URL) as storage:
        row = ("a", "dead", time.time() - 1)
        storage.locks._database.execute("INSERT INTO thread_locks VALUES (?, ?, ?)", row)

    assert compact(capsys, "--yes")[0] == 0


@pytest.mark.parametrize("wrong", ["0", "-1", "some", ""])
def test_a_wrong_number_of_turns_is_refused(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    talk("a")

    code, _, err = compact(capsys, "--yes", "--keep-checkpoints", wrong)

    assert code == 2
    assert "write 1 or more, or `all`" in err


def test_a_database_in_memory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compact(capsys, "--yes", "--database", "sqlite://")

    assert code == 2
    assert "only a SQLite file" in err


def test_a_missing_file_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compact(capsys, "--yes")

    assert (code, Path("everthread.db").exists()) == (1, False)
    assert "no database" in err
