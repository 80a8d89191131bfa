"""What importing leaves alone: large tables and packages are read when something needs them."""

import json
import subprocess
import sys
from typing import Any

import pytest

_CODE = """
import importlib, json, sys

loaded = {}
for name in sys.argv[1:]:
    importlib.import_module(name)
    loaded[name] = sorted(sys.modules)
encodings = len(sys.modules["everthread.window.encoding"]._built)
airports = sys.modules["everthread.agents.travel.sandbox.airports"].airports.cache_info().misses
print(json.dumps({"loaded": loaded, "encodings": encodings, "airports": airports}))
"""
_NAMES = (
    "everthread.memory.guard",
    "everthread.window.encoding",
    "everthread.window.calibration",
    "everthread.models",
    "everthread.agents.travel.sandbox.airports",
)


@pytest.fixture(scope="module")
def imported() -> Any:
    """Import one module after the other in a new process; return what was loaded after each, and what was read."""
    ended = subprocess.run([sys.executable, "-c", _CODE, *_NAMES], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("everthread.memory.guard", {"stdnum", "phonenumbers", "detect_secrets"}),
        ("everthread.window.calibration", {"numpy", "tiktoken_ext.openai_public"}),
        ("everthread.models", {"langchain_openai", "openai"}),
    ],
)
def test_importing_loads_no_package_that_few_need(name: str, packages: set[str], imported: Any) -> None:
    assert packages.isdisjoint(imported["loaded"][name])


def test_importing_reads_no_ranks_and_no_airports(imported: Any) -> None:
    assert (imported["encodings"], imported["airports"]) == (0, 0)
