"""The benchmark of the ledger: both sides do the same, and one of them without a ledger."""

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everthread.ledger import record as recording
from everthread.nodes import inject_memory, node_run

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

ledger = importlib.import_module("ledger")


def test_without_the_ledger_nothing_of_it_is_written() -> None:
    with_it, without = (ledger.one_run(has_ledger, 12, "exit") for has_ledger in (True, False))

    assert {"prompt_assembled", "injected"} <= with_it.rows.keys()
    assert (without.rows, without.turns_kept) == ({}, 0)
    assert with_it.turns_kept == len(with_it.cpu) == len(without.cpu) == 12
    assert with_it.prompts == without.prompts
    assert with_it.file_bytes > without.file_bytes


def test_everything_is_as_it_was_afterwards() -> None:
    nodes: tuple[ModuleType, ...] = (inject_memory, node_run)
    before = [node.record for node in nodes]

    with ledger.without_ledger():
        during = [node.record for node in nodes]

    assert before == [node.record for node in nodes] == [sys.modules["everthread.ledger.record"].record] * 2
    assert not set(during) & set(before)
    assert recording is sys.modules["everthread.ledger.record"].record


def run(cpu: Sequence[float], file_bytes: float, **rows: tuple[int, int]) -> Any:
    return ledger.Run(list(cpu), file_bytes, rows, turns_kept=2 if rows else 0, prompts=4, prompt_tokens=1_000)


def test_the_share_is_of_the_least_that_each_turn_took() -> None:
    with_it = [run([0.011, 0.050], 900, injected=(2, 300)), run([0.030, 0.011], 900, injected=(2, 300))]

    found = ledger.compared(with_it, [run([0.010, 0.040], 700), run([0.090, 0.010], 700)], turns=2)

    assert found["cpu_share"] == pytest.approx(1 / 11)
    assert (found["row_bytes_a_kept_turn"], found["file_bytes_a_kept_turn"]) == (150, 200)
    assert found["prompts_alike"]


def test_the_report_says_of_each_mark_whether_it_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ledger,
        "_side_by_side",
        lambda order, turns, durability: [
            run([0.02, 0.02], 900, injected=(2, 300)) if has_ledger else run([0.01, 0.01], 700) for has_ledger in order
        ],
    )

    assert ledger.main(["--turns", "2", "--rounds", "2", "--json", str(tmp_path / "r.json")]) == 0
    told = (tmp_path / "r.md").read_text()
    assert "(missed: 50.0%)" in told
    assert "(met: 21, since" in told
    assert json.loads((tmp_path / "r.json").read_text())["found"]["rounds"] == 2
