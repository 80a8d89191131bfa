"""`everthread search`: what was said in any thread of a user."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everthread import Context, build_graph, open_storage
from everthread.cli import main
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from small_agent import AGENT

URL = "sqlite:///everthread.db"
TALK = [
    ("first", "ada", "Where is my umbrella?", "The umbrella is in the attic."),
    ("first", "ada", "Thanks.", "You are welcome."),
    ("second", "ada", "My locker code is 4711.", "Noted."),
    ("other", "ben", "My umbrella is red.", "Noted."),
]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs `search` on a database with three threads of two users."""
    monkeypatch.chdir(tmp_path)
    with open_storage(URL) as storage:
        for thread_id, user, text, reply in TALK:
            graph = build_graph(AGENT, model=ScriptedModel([reply]), storage=storage)
            config: Any = {"configurable": {"thread_id": thread_id}}
            graph.invoke({"messages": text}, config, context=Context(user_id=user))

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(("search", *arguments))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def found(run: Run, *arguments: str) -> Any:
    code, out, err = run(*arguments, "--user", "ada", "--json")
    assert (code, [line for line in err.splitlines() if not line.startswith("reading threads")]) == (0, [])
    return json.loads(out)


def test_it_finds_both_sides_of_every_thread_with_thread_and_speaker(run: Run) -> None:
    code, out, _ = run("umbrella", "--user", "ada")

    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == {"first"}
    assert "user: Where is my umbrella?" in out
    assert "assistant: The umbrella is in the attic." in out


def test_the_answer_as_json_names_place_day_and_score(run: Run) -> None:
    (one,) = found(run, "locker code", "--limit", "1")

    assert (one["thread"], one["seq"], one["role"], one["text"]) == ("second", 0, "human", "My locker code is 4711.")
    assert one["date"].startswith("202")
    assert one["score"] > 0


def test_another_users_words_are_not_found(run: Run) -> None:
    assert found(run, "red") == []


@pytest.mark.parametrize(
    ("text", "user", "code", "problem"),
    [("umbrella", "eve", 1, "user 'eve' has no threads"), (" ", "ada", 2, "search for what?")],
)
def test_what_cannot_be_searched_is_one_sentence(run: Run, text: str, user: str, code: int, problem: str) -> None:
    ended, out, err = run(text, "--user", user)

    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert problem in err


def test_rebuild_adds_what_an_older_version_did_not_keep(run: Run) -> None:
    with open_storage(URL) as storage:
        for item in storage.store.search(namespaces.said("ada")):
            storage.store.delete(item.namespace, item.key)
    assert found(run, "umbrella") == []

    texts = {one["text"] for one in found(run, "umbrella", "--rebuild")}

    assert texts == {"Where is my umbrella?", "The umbrella is in the attic."}
