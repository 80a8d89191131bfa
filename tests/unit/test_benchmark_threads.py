"""The benchmark of long-lived threads: its parts measure real runs, and its report has every figure."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from everthread import open_storage
from everthread.state import namespaces
from everthread.storage.transcript import archived

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

threads = importlib.import_module("threads")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the parts in this process: starting Python four times is most of a test's time."""
    monkeypatch.setattr(threads, "_apart", lambda run, values: run(*values))
    monkeypatch.setattr(threads, "TURNS_OF_EACH", 2)


def results(path: Path, *arguments: str) -> Any:
    assert threads.main(["--turns", "0", "--threads", "0", "--messages", "0", *arguments, "--json", str(path)]) == 0
    return json.loads(path.read_text())["parts"]


def test_a_long_thread_is_measured_and_read_again(tmp_path: Path) -> None:
    parts = results(tmp_path / "r.json", "--turns", "6")

    assert [sample["turn"] for sample in parts["long"]["samples"]] == [1, 2, 3, 4, 5, 6]
    assert parts["long"]["cpu_ms"] > 0
    assert parts["long"]["useful_bytes_a_turn"] <= parts["long"]["file_bytes_a_turn"]
    assert parts["opening"]["messages"] == 6 * 4


def test_many_threads_share_a_file(tmp_path: Path) -> None:
    made = threads.many_threads(tmp_path / "a.db", 3, 2, "exit")

    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        turns = {item.key: item.value["turns"] for item in storage.store.search(namespaces.SESSIONS)}
    assert turns == {f"thread-{number}": 2 for number in range(3)}
    assert made["cpu_ms"] > 0


def test_an_archive_holds_whole_turns_in_order_and_finds_them(tmp_path: Path) -> None:
    made = threads.recall(tmp_path / "a.db", 16)

    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        types = [message.type for message in archived(storage.store, "archive")]
    assert types == ["human", "ai", "tool", "ai"] * 4
    assert (made["messages"], made["search_found"], made["recall_found"]) == (16, 1.0, 1.0)


def test_the_report_is_written_as_json_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results(tmp_path / "r.json", "--messages", "8")

    assert "search_ms_p95" in (tmp_path / "r.md").read_text()
    assert "search_ms_p95" in capsys.readouterr().out


def test_the_chart_is_left_out_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    assert not threads.chart({"parts": {}}, tmp_path / "r.svg")
