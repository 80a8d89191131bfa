"""The benchmark of the trim: what it times really trims, and its report has every figure."""

import importlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

trim = importlib.import_module("trim")
COUNTER = trim.counter_for("gpt-4.1")


def test_a_working_set_fits_or_has_to_come_down() -> None:
    rows = trim.working_set(40, 20, COUNTER)

    assert {row["policy"] for row in rows} == {"token_budget", "salience", "summarize"}
    assert all((row["evicted"] + row["masked"] > 0) == (row["working set"] == "must evict") for row in rows)


def test_a_long_history_is_cut_beside_langchain(tmp_path: Path) -> None:
    trim.main(["--messages", "40", "--long", "400", "--repeat", "20", "--json", str(tmp_path / "r.json")])

    parts = json.loads((tmp_path / "r.json").read_text())["parts"]
    smallest = parts["long_history"][0]
    assert 0 < smallest["kept"] < 400
    assert 0 < smallest["kept by trim_messages"] < 400
    assert "share in use" in (tmp_path / "r.md").read_text()


def test_each_mark_is_told_with_its_figure() -> None:
    rows = [{"working set": name, "ms median": 0.5} for name in ("fits", "must evict")]
    shares = [{"share in use": 0.01, "share warm": 0.03, "share cold": 0.02}]

    met = trim.met({"parts": {"working_set": rows, "long_history": shares}})

    assert list(met.values()) == [True, True, True, False, False]
