"""`everthread context`, and `/context` in chat."""

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everthread import Context, Transcript, build_graph, open_storage, set_profile
from everthread.agents import travel
from everthread.cli import main
from everthread.models.scripted import ScriptedModel

CONFIG: Any = {"configurable": {"thread_id": "t"}}
HOSTILE = "hello \x1b[31m red \u202e turned <script>alert(1)</script>"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph = build_graph(travel, model=ScriptedModel(["one", "two", "three"]), storage=storage)
        for turn, words in enumerate([HOSTILE, "b " * 300, "c " * 300]):
            set_profile(storage, "local", {"home_airport": "FRA" if turn < 2 else "MUC"})
            question = HumanMessage(words, id=f"q{turn}")
            dials = Context(window=3_600, max_output_tokens=100, policy="token_budget")
            graph.invoke({"messages": [question]}, CONFIG, context=dials)
    return url


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        return main(["context", *arguments, "--database", url]), *capsys.readouterr()

    return command


def test_a_call_is_shown_message_by_message(run: Run) -> None:
    code, out, _ = run("t", "--call", "2")

    assert (code, max(map(len, out.splitlines())) <= 100) == (0, True)
    assert "call 2 · after call 1 · turn 2" in out
    rows = [line.split()[2:4] for line in out.splitlines() if line[:4].strip().isdigit()]
    assert rows == [["system", "system:"], ["kept", "user:"], ["kept", "assistant:"], ["kept", "user:"]]
    assert "(exact count)" in out


def test_what_others_wrote_can_neither_colour_nor_turn_the_terminal(run: Run) -> None:
    _, out, _ = run("t", "--call", "1")

    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "<script>alert(1)</script>" in out


def test_the_difference_names_what_came_and_what_changed(run: Run) -> None:
    _, out, _ = run("t", "--call", "-1", "--diff")

    assert "call 2 → call 3" in out
    assert "the rest moved: memory" in out
    assert "+ kept       user: c c c" in out
    assert "~ system" in out
    assert ("FRA" in out, "MUC" in out) == (True, True)


def test_the_first_call_has_nothing_before_it(run: Run) -> None:
    _, out, err = run("t", "--call", "1", "--diff")

    assert (out, "has no call before it" in err) == ("", True)


def test_json_has_each_message_and_nothing_else_is_printed(run: Run) -> None:
    _, out, err = run("t", "--call", "2", "--diff", "--json")

    found = json.loads(out)
    assert ([part["form"] for part in found["parts"]], err) == (["system", "whole", "whole", "whole"], "")
    assert found["parts"][1]["content"] == HOSTILE
    assert [(change["kind"], change["after"]["role"]) for change in found["changes"]] == [
        ("came", "assistant"),
        ("came", "user"),
    ]


def test_the_next_compaction_is_told_with_its_price(run: Run) -> None:
    code, out, _ = run("t", "--preview")

    assert (code, max(map(len, out.splitlines())) <= 100) == (0, True)
    assert "next compaction by `summarize`" in out


def test_the_preview_as_json_has_the_price(run: Run) -> None:
    found = json.loads(run("t", "--preview", "--json")[1])

    assert {"evicted", "masked", "price", "saves", "tokens_before", "tokens_after"} <= found.keys()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["other"], "no thread 'other'"),
        (["t", "--call", "9"], "has no call 9"),
        (["t", "--call", "nine"], "has no call 'nine'"),
        (["t", "--preview", "--diff"], "leave out"),
        (["t", "--window", "4000"], "add `--preview`"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(run: Run, arguments: list[str], reason: str) -> None:
    code, out, err = run(*arguments)

    assert (code != 0, out, reason in err) == (True, "", True)


def test_a_thread_without_calls_says_that_it_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/b.db"
    with open_storage(url) as storage:
        Transcript(storage.store, "t", user_id="u").append([("user", "Hello!")])

    code = main(["context", "t", "--database", url])

    assert (code, "has no calls: none was made yet" in capsys.readouterr().err) == (1, True)


def test_an_agent_that_only_code_has_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from small_agent import AGENT

    url = f"sqlite:///{tmp_path}/b.db"
    with open_storage(url) as storage:
        build_graph(AGENT, model=ScriptedModel([AIMessage("fine")]), storage=storage).invoke({"messages": "hi"}, CONFIG)

    assert main(["context", "t", "--preview", "--database", url]) != 0
    assert "--agent module:attribute" in capsys.readouterr().err
    assert main(["context", "t", "--preview", "--agent", "small_agent:AGENT", "--database", url]) == 0


APP = """
from langchain.agents import create_agent
from everthread import EverthreadMiddleware, build_graph
from everthread.models.scripted import ScriptedModel
from small_agent import AGENT

model = ScriptedModel(["fine " * 200] * 9)
agent = create_agent(model, [], middleware=[EverthreadMiddleware(window=4_000, summarizer="offline")])
own = build_graph(AGENT, model="offline")
number = 7
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the URL of a database with a thread of `preview_app:agent`."""
    (tmp_path / "preview_app.py").write_text(APP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "preview_app", raising=False)
    agent, url = import_module("preview_app").agent, f"sqlite:///{tmp_path}/c.db"
    with open_storage(url) as storage:
        saved = {"checkpointer": storage.checkpointer, "store": storage.store}
        for number in range(6):
            config: Any = {"configurable": {"thread_id": "t", "user_id": "ada"}}
            storage.guard(agent.copy(saved)).invoke({"messages": f"question {number} " + "word " * 90}, config)
    yield url
    sys.modules.pop("preview_app", None)


def test_an_agent_with_the_middleware_tells_its_next_compaction(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["context", "t", "--preview", "--agent", "preview_app:agent", "--database", app, "--json"])
    told = json.loads(capsys.readouterr().out)

    assert code == 0
    assert (told["policy"], bool(told["evicted"])) == ("summarize", True)


def test_the_model_of_the_environment_is_not_for_a_graph_with_a_model(
    app: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTHREAD_MODEL", "offline")

    code = main(["context", "t", "--preview", "--agent", "preview_app:agent", "--database", app])

    assert (code, capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "by `--agent module:attribute`"),
        (["--agent", "travel"], "by `--agent module:attribute`"),
        (["--agent", "preview_app:own"], "was not made by the graph"),
        (["--agent", "preview_app:number"], "neither an everthread.Agent nor a graph"),
        (["--agent", "preview_app:agent", "--model", "offline"], "has its model already"),
    ],
)
def test_what_cannot_plan_a_thread_of_the_middleware_is_named(
    app: str, options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["context", "t", "--preview", *options, "--database", app])

    assert (code != 0, reason in capsys.readouterr().err.replace("\n", " ")) == (True, True)
