"""The database's file, or its log, is deleted, moved or replaced while it is open: no turn is acknowledged and lost."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from attack.conftest import AttackRow
from attack.scale import SCALE
from everthread import Context, build_graph, open_storage
from everthread.errors import StorageError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.erasure import erase
from everthread.storage.open import Storage

AGENT = Agent(name="test", title="Test", instructions="Be brief.")
CONFIG: Any = {"configurable": {"thread_id": "t"}}
ANN = Context(user_id="ann")


def _replaced(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    os.replace(copy, file)


def _emptied(file: Path) -> None:
    file.unlink()
    file.touch()


LOSSES: dict[str, Callable[[Path], Any]] = {
    "the file is deleted": lambda path: path.unlink(),
    "the file is moved": lambda path: path.rename(path.with_name("b.db")),
    "the file is replaced by a copy": _replaced,
    "an empty file takes its place": _emptied,
    "the log is deleted": lambda path: path.with_name("a.db-wal").unlink(),
    "the log is replaced by a copy": lambda path: _replaced(path.with_name("a.db-wal")),
    "file and log are deleted": lambda path: [path.with_name(name).unlink() for name in ("a.db", "a.db-wal")],
    "the folder is moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


async def _turn(storage: Storage, api: str, model: Any, text: str) -> str:
    """Have one turn and return what is acknowledged."""
    graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
    given = {"messages": text}
    if api == "invoke":
        return graph.invoke(given, CONFIG, context=ANN)["messages"][-1].text
    if api == "ainvoke":
        return (await graph.ainvoke(given, CONFIG, context=ANN))["messages"][-1].text
    if api == "stream":
        parts = list(graph.stream(given, CONFIG, context=ANN, stream_mode="values"))
    else:
        parts = [part async for part in graph.astream(given, CONFIG, context=ANN, stream_mode="values")]
    return parts[-1]["messages"][-1].text


class _Losing(ScriptedModel):
    """A model during whose call the file is lost."""

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        self.metadata["lose"]()  # type: ignore[index]
        return super()._generate(*args, **kwargs)


APIS = ("invoke", "stream", "ainvoke", "astream")
WHEN = ("between turns", "in a turn")
CASES = [
    (loss, when, api)
    for place, (loss, when) in enumerate(product(LOSSES, WHEN))
    # In the short form the ways of calling take turns: each meets losses between turns and in a turn.
    for api in (APIS if SCALE > 1 else [APIS[(place + place // 4) % 4]])
]


@pytest.mark.parametrize(("loss", "when", "api"), CASES)
async def test_no_turn_is_acknowledged_once_the_file_is_lost(
    loss: str, when: str, api: str, tmp_path: Path, attack_row: AttackRow
) -> None:
    path = tmp_path / "folder" / "a.db"
    path.parent.mkdir()
    acknowledged = 0
    with open_storage(f"sqlite:///{path}") as storage:
        assert await _turn(storage, api, ScriptedModel(["one"]), "first") == "one"
        model: Any = ScriptedModel(["two"])
        if when == "between turns":
            LOSSES[loss](path)
        else:
            model = _Losing(["two"], metadata={"lose": lambda: LOSSES[loss](path)})
        for number in range(3):
            with suppress(StorageError):
                await _turn(storage, api, model if number == 0 else ScriptedModel(["more"]), f"again {number}")
                acknowledged += 1
        with pytest.raises(StorageError, match="was deleted, moved or replaced while it was open") as failure:
            await storage.store.aget(("a",), "k") if api.startswith("a") else storage.store.get(("a",), "k")
    attack_row("a lost database file: turns acknowledged after it", 3, acknowledged)

    assert acknowledged == 0
    assert "\n" not in str(failure.value)


def test_a_file_that_is_put_back_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_storage(f"sqlite:///{path}") as storage:
        storage.store.put(("a",), "k", {"n": 1})
        path.rename(tmp_path / "b.db")
        with pytest.raises(StorageError, match="put the file back"):
            storage.store.put(("a",), "l", {"n": 2})
        (tmp_path / "b.db").rename(path)

        storage.store.put(("a",), "m", {"n": 3})
    with open_storage(f"sqlite:///{path}") as storage:
        assert storage.store.get(("a",), "m") is not None


def test_a_process_that_changes_its_folder_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with open_storage("sqlite:///a.db") as storage:
        monkeypatch.chdir(tmp_path / "other")

        storage.store.put(("a",), "k", {"n": 1})


def test_nothing_is_erased_from_a_file_that_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_storage(f"sqlite:///{path}") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["one"]), summarizer="offline", storage=storage)
        graph.invoke({"messages": "first"}, CONFIG, context=ANN)
        _replaced(path)

        with pytest.raises(StorageError, match="was deleted, moved or replaced"):
            erase(storage, user_id="ann")


def test_another_process_that_comes_and_goes_after_an_erasure_leaves_the_log(tmp_path: Path) -> None:
    visit = "import sqlite3; c = sqlite3.connect('a.db'); c.execute('CREATE TABLE x (y)'); c.close()"
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["one", "two"]), summarizer="offline", storage=storage)
        graph.invoke({"messages": "first"}, CONFIG, context=ANN)
        assert erase(storage, user_id="ann").is_verified
        subprocess.run([sys.executable, "-c", visit], cwd=tmp_path, check=True)

        assert graph.invoke({"messages": "second"}, CONFIG, context=ANN)["messages"][-1].text == "two"
        assert (tmp_path / "a.db-wal").exists()
