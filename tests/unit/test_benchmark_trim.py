"""The benchmark of the trim: what it times really trims, and its report has every figure."""

import importlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

trim = importlib.import_module("trim")
COUNTER = trim.counter_for("gpt-4.1")


def test_a_working_set_fits_or_has_to_come_down() -> None:
    rows = [row for row in trim.working_set(40, 20, COUNTER) if row["policy"] == "token_budget"]

    assert [row["evicted"] > 0 for row in rows] == [False, False, True]
    assert rows[1]["masked"] > 0


def test_the_report_has_every_mark_and_figure(tmp_path: Path) -> None:
    trim.main(["--messages", "40", "--long", "400", "--repeat", "20", "--json", str(tmp_path / "r.json")])

    parts = json.loads((tmp_path / "r.json").read_text())["parts"]
    report = (tmp_path / "r.md").read_text()
    assert 0 < parts["long_history"][0]["evicted"] < 400
    assert all(f"- {name}, slowest policy" in report for name in trim.ROOMS)
