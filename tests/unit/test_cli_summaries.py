"""`show --summaries`: every stored version and what it changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from everthread import Context, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.models.scripted import ScriptedModel


def talk(path: Path, turns: int, keep: int | None) -> str:
    url = f"sqlite:///{path}/own.db"
    with open_storage(url) as storage:
        model = ScriptedModel(["It costs 120 EUR. " + "fine " * 200] * turns)
        graph = build_graph(travel, model=model, summarizer="offline", storage=storage)
        for turn in range(turns):
            given: Any = {"messages": f"What is code AB{turn}12?"}
            dials = Context(window=5_500, keep_checkpoints=keep)
            graph.invoke(given, {"configurable": {"thread_id": "t-1"}}, context=dials)
    return url


def shown(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], str]:
    assert main(["show", "t-1", "--summaries", "--database", url, "--json"]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


def test_every_version_is_shown_with_what_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    versions, _ = shown(talk(tmp_path, 18, None), capsys)

    assert [one["version"] for one in versions] == list(range(1, len(versions) + 1))
    assert len(versions) > 1
    assert [one["current"] for one in versions] == [False] * (len(versions) - 1) + [True]
    came = [line[2:] for line in versions[-1]["changes"] if line.startswith("+ ")]
    assert came
    assert all(line.removeprefix("identifier ") in versions[-1]["text"] for line in came)


def test_versions_that_pruning_removed_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = talk(tmp_path, 32, 1)
    assert main(["compact", "--yes", "--keep-checkpoints", "1", "--database", url]) == 0
    capsys.readouterr()
    versions, err = shown(url, capsys)

    gone = versions[0]["version"] - 1
    assert gone > 0
    assert f"{gone} older version" in err


def test_people_see_the_lines_that_came_and_the_whole_newest_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = talk(tmp_path, 14, None)

    assert main(["show", "t-1", "--summaries", "--database", url]) == 0
    told = capsys.readouterr().out
    assert "version 1 · by rules" in told
    assert "  + " in told
    assert "  + identifier" not in told
    assert max(map(len, told.splitlines())) <= 120
    assert "The newest version as the prompt shows it" in told


def test_a_thread_without_a_summary_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = talk(tmp_path, 1, None)

    assert main(["show", "t-1", "--summaries", "--database", url]) == 0
    assert "has no summary: nothing has left its prompt" in capsys.readouterr().err
