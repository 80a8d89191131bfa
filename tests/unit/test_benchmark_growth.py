"""The benchmark of patterns: it reads every shape."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

growth = importlib.import_module("growth")


def test_every_reader_reads_every_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert growth.main(["--short", "2", "--long", "4"]) == 0
    assert "worst growth: " in capsys.readouterr().out
