"""The check for names that other packages do not promise to keep."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from private_names import main, uses_in


def uses(folder: Path, code: str) -> list[str]:
    (folder / "module.py").write_text(code, encoding="utf-8")
    return [use.name for use in uses_in([folder])]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from langgraph.pregel._loop import PregelLoop", "langgraph.pregel._loop: _loop"),
        ("from langgraph.pregel import _loop", "langgraph.pregel: _loop"),
        ("import langgraph._internal", "langgraph._internal"),
        ("def f(model):\n    return model._llm_type", "._llm_type"),
        ("def f(model):\n    return getattr(model, '_llm_type', '')", "getattr(…, '_llm_type')"),
        ("def f(graph):\n    graph.__dict__.update({})", ".__dict__"),
        ("def f(cls):\n    return object.__new__(cls)", ".__new__"),
        ("def f(task):\n    return f'branch:to:{task}'", "'branch:to:'"),
        ("KEY = '__pregel_task_id'", "'__pregel_task_id'"),
    ],
)
def test_a_name_that_nobody_promised_is_listed(code: str, name: str, tmp_path: Path) -> None:
    assert uses(tmp_path, code) == [name]


@pytest.mark.parametrize(
    "code",
    [
        "from __future__ import annotations",
        "class A:\n    def __init__(self):\n        self._size = 1\n    def size(self):\n        return self._size",
        "def _f():\n    return 1\n\nx = _f()",
        "for _ in range(3):\n    pass",
        "def f(x):\n    return type(x).__name__",
    ],
)
def test_names_of_our_own_and_public_ones_are_not(code: str, tmp_path: Path) -> None:
    assert uses(tmp_path, code) == []


def test_the_command_fails_and_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("import os\n\nx = os._exit\n", encoding="utf-8")

    assert main([str(tmp_path)]) == 1
    assert f"{tmp_path}/a.py:3: ._exit" in capsys.readouterr().out
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 0
