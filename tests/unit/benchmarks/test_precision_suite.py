"""The suite that asks whether a question brings what it needs and nothing besides, on a few beliefs of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites import precision
from everthread.errors import RecordError
from everthread.evals.suites import Options, Report


def belief(name: str, *aliases: str, **more: Any) -> dict[str, Any]:
    own = {"_id": name, "user_id": "test-user", "type": "entity", "canonical_name": name, "scope": ["home"]}
    return {**own, "aliases": aliases, "content": f"The {name} is in the garden.", "updated_at": "2026-01-01", **more}


BELIEFS = [
    belief("kettle", "boiler"),
    belief("spade", scope=["garden"]),
    belief("old_kettle", "boiler", superseded_by="kettle"),
    belief("safe", pinned=True),
    belief("piano", "boiler", user_id="other"),
    belief("pipes", "plumbing", type="relation", participants=["tap", "spade"]),
    belief("tap"),
    belief("which_paint", pinned=True, type="open_question"),
]


def case(query: str, *only: str, **more: Any) -> dict[str, Any]:
    expect = {"relevantBeliefs": {"shouldOnlyInclude": only}, "pinnedFacts": {"mustInclude": ["safe"]}}
    return {"category": "own", "scope": ["home"], "query": query, "expect": expect, **more}


def report(folder: Path, *cases: dict[str, Any], sessions: Any = None) -> Report:
    files = {"beliefs.seed": BELIEFS, "retrieval.cases": cases, "session-retrieval.cases": sessions}
    for name, rows in files.items():
        if rows is not None:
            (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    return precision.run([folder], Options(), lambda done, total, name: None)


def test_an_alias_brings_its_belief_and_neither_a_superseded_nor_anothers(tmp_path: Path) -> None:
    figures = report(tmp_path, case("Is the boiler on?", "kettle")).figures

    assert (figures["names.passed"], figures["names.precision"], figures["names.recall"]) == (1, 1.0, 1.0)
    assert figures["everything.passed"] == 0
    assert figures["everything.precision"] < figures["everything.recall"] == 1.0


def test_what_is_missed_and_what_is_too_much_fails(tmp_path: Path) -> None:
    figures = report(tmp_path, case("Is the stove on?", "kettle"), case("Is the boiler on?")).figures

    assert (figures["names.passed"], figures["names.precision"], figures["names.recall"]) == (0, 0.0, 0.0)


def test_a_relation_brings_what_it_relates_in_the_same_scope(tmp_path: Path) -> None:
    assert report(tmp_path, case("Who does the plumbing?", "pipes", "tap")).figures["names.passed"] == 1


def test_a_query_without_words_brings_nothing_and_is_no_active_pass(tmp_path: Path) -> None:
    figures = report(tmp_path, case("  "), case("boiler", budget={"maxBeliefs": 1})).figures

    assert (figures["names.passed"], figures["names.active"]) == (2, 0)


def test_a_session_learns_behind_each_turn(tmp_path: Path) -> None:
    def turn(query: str, *only: str, **more: Any) -> dict[str, Any]:
        return {"scope": ["home"], "userMessage": query, "expect": case("", *only)["expect"], **more}

    turns = [
        turn("Where is the cistern?", updateBeliefAtTurn={"beliefId": "kettle", "addAliases": ["cistern"]}),
        turn("Where is the cistern?", "kettle", createBeliefAtTurn=belief("anvil")),
        turn("Where is the anvil?", "anvil"),
    ]

    found = report(tmp_path, case("boiler", "kettle"), sessions=[{"turns": turns}])

    assert found.tables[1].rows[0][:3] == ("names", 3, 2)
    assert found.figures["names.drift"] == 0.0
    assert found.figures["everything.drift"] > 0.5


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"beliefs\.seed\.json cannot be read"):
        precision.run([tmp_path], Options(), lambda done, total, name: None)


def test_a_file_of_another_form_is_refused_by_the_place_of_the_fault(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"retrieval\.cases\.json is no file of PrecisionMemBench: 0\.scope"):
        report(tmp_path, {"query": "no scope", "expect": {}})
