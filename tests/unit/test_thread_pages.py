"""The page of a thread as it was, and what a notebook shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from everthread import build_graph, open_storage, prompt_at
from everthread.agents import travel
from everthread.cli import main
from everthread.errors import NotFoundError
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage

HOSTILE = 'hello \x1b[31m red \u202e turned <script>alert(1)</script> <img src=x onerror="alert(2)"> {{ "a" * 9 }}'
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        graph = build_graph(travel, model=ScriptedModel(["one", "two"]), storage=opened)
        for words in (HOSTILE, "x" * 5_000):
            graph.invoke({"messages": [HumanMessage(words)]}, CONFIG)
        yield opened


def is_harmless(page: str) -> bool:
    return (
        not any(one in page for one in ("<script", "<img", "\x1b", "\u202e", "aaaaaaaaa")) and "&lt;script&gt;" in page
    )


def test_the_page_of_a_thread_shows_every_prompt_and_runs_nothing(storage: Storage, tmp_path: Path) -> None:
    page = tmp_path / "t.html"

    assert main(["ledger", "t", "--html", str(page), "--database", storage.url]) == 0

    shown = page.read_text()
    assert is_harmless(shown)
    assert "default-src 'none'" in shown
    assert (shown.count("<details"), "came: kept" in shown, "more characters" in shown) == (2, True, True)
    assert page.stat().st_mode & 0o777 == 0o600


def test_a_page_has_the_newest_calls_that_were_asked_for(storage: Storage, tmp_path: Path) -> None:
    page = tmp_path / "t.html"

    main(["ledger", "t", "--html", str(page), "--limit", "1", "--database", storage.url])

    assert page.read_text().count("<details") == 1
    assert "2 model calls, the newest 1" in page.read_text()


def test_a_page_that_cannot_be_written_is_refused_first(
    storage: Storage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "t", "--html", str(tmp_path), "--database", storage.url]) != 0
    assert "it is a folder" in capsys.readouterr().err


def test_a_notebook_shows_a_thread_and_a_prompt(storage: Storage) -> None:
    thread, prompt = storage.thread("t")._repr_html_(), prompt_at(storage, "t", 1)._repr_html_()

    assert is_harmless(thread)
    assert is_harmless(prompt)
    assert ("2 turns, 4 messages, 4 of them in the prompt" in thread, "Call 1" in prompt) == (True, True)


def test_a_notebook_names_what_no_ledger_tells(storage: Storage) -> None:
    (row, *_) = storage.store.search(namespaces.ledger("t"), filter={"event": "prompt_assembled"}, limit=1)
    without = {name: value for name, value in row.value.items() if name != "recipe"}
    storage.store.put(namespaces.ledger("t"), row.key, without, index=False)
    call = next(call for call in (1, 2) if prompt_at(storage, "t", call).parts is None)

    assert "kept no recipe" in prompt_at(storage, "t", call)._repr_html_()


def test_a_thread_that_is_not_there_is_named(storage: Storage) -> None:
    with pytest.raises(NotFoundError, match="no thread 'other'"):
        storage.thread("other")
