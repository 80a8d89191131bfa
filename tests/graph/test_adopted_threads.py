"""A stock app's database, its own graph with our middleware and without, in turn: nothing of the app's is lost."""

import asyncio
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from everthread import Context, EverthreadMiddleware, build_graph, open_storage
from everthread.cli import main
from everthread.errors import SettingsError
from everthread.nodes.thread_view import thread_messages
from everthread.storage.transcript import transcript
from stock_app import APPROVAL, THREADS, app, call, make, rows

APPROVED = Command(resume={"decisions": [{"type": "approve"}]})
WINDOW = 2_000
LONG = "A lamp needs a bulb, and a bulb needs a lamp. " * 40
"""About a quarter of the window."""

Continue = Callable[..., dict[str, Any]]


def config(thread_id: str) -> Any:
    dials = {"keep_checkpoints": 2}  # so that soon there are some to prune
    return {"configurable": {"thread_id": thread_id, "user_id": "ann", "everthread": dials}}


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def adopted(storage: Any, replies: list[Any]) -> Any:
    middleware = EverthreadMiddleware(window=WINDOW, max_output_tokens=100, summarizer="offline")
    return storage.guard(app(storage.checkpointer, replies, [middleware], store=storage.store))


@pytest.fixture(scope="module", params=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return request.param == "async"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, is_async: bool) -> Path:
    """Make what the app left behind once; tests change copies."""
    made = tmp_path_factory.mktemp("stock") / "app.db"
    make(made, is_async=is_async)
    return made


@pytest.fixture
def path(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copy(template, tmp_path))


@pytest.fixture
def with_middleware(path: Path, is_async: bool) -> Continue:
    """Run the app's graph with the middleware, in a storage of its own."""
    return continued(path, is_async)


def continued(path: Path, is_async: bool) -> Continue:
    def go_on(thread_id: str, sent: Any, *replies: Any) -> dict[str, Any]:
        with open_storage(url(path)) as storage:
            graph = adopted(storage, list(replies))
            if is_async:
                return dict(asyncio.run(graph.ainvoke(sent, config(thread_id))))
            return dict(graph.invoke(sent, config(thread_id)))

    return go_on


@pytest.fixture
def without(path: Path, is_async: bool) -> Continue:
    """Run the app as it was, on LangGraph's own saver."""

    async def ago_on(thread_id: str, sent: Any, replies: Any) -> dict[str, Any]:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            return dict(await app(saver, replies).ainvoke(sent, config(thread_id)))

    def go_on(thread_id: str, sent: Any, *replies: Any) -> dict[str, Any]:
        if is_async:
            return asyncio.run(ago_on(thread_id, sent, replies))
        with SqliteSaver.from_conn_string(str(path)) as saver:
            return dict(app(saver, replies).invoke(sent, config(thread_id)))

    return go_on


def ask(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def said(path: Path, thread_id: str) -> list[str]:
    """Return every text of a thread, oldest first: what the state has, and what left it."""
    with open_storage(url(path)) as storage:
        state = app(storage.checkpointer, []).get_state(config(thread_id)).values["messages"]
        view = thread_messages(storage.store, thread_id, state)
        return [str(message.text) for message in transcript(storage.store, thread_id, view)]


@pytest.mark.parametrize("thread_id", [name for name in THREADS if name != APPROVAL])
def test_no_message_is_lost_when_the_app_goes_on_with_the_middleware_without_and_with(
    path: Path, with_middleware: Continue, without: Continue, thread_id: str
) -> None:
    before, expected = said(path, thread_id), []
    for turn, go_on in enumerate([with_middleware, with_middleware, without, with_middleware, with_middleware]):
        state = go_on(thread_id, ask(f"more {turn}"), f"{turn}: {LONG}")["messages"]
        expected += [f"more {turn}", f"{turn}: {LONG}"]

    assert said(path, thread_id) == [*before, *expected]
    assert len(state) < len(expected)  # so much has left the prompts


@pytest.mark.parametrize("order", ["with first", "without first"])
def test_the_apps_own_state_keys_stay_in_both_directions(
    with_middleware: Continue, without: Continue, order: str
) -> None:
    both = [with_middleware, without] if order == "with first" else [without, with_middleware]
    for turn in range(4):
        values = both[turn % 2]("both", ask("Spend it."), call("spend", f"s{turn}", amount=turn), LONG)

        assert values["budget"] == turn
        assert values["visited"] == ["door", "till", *["till"] * (turn + 1)]


def test_an_open_approval_is_answered_with_the_middleware(
    path: Path, with_middleware: Continue, without: Continue
) -> None:
    values = with_middleware(APPROVAL, APPROVED, "Ordered.")
    without(APPROVAL, ask("Thanks."), "Welcome.")

    assert (values["budget"], values["visited"]) == (100, ["door"])
    assert said(path, APPROVAL)[-4:] == ["ordered: lamp", "Ordered.", "Thanks.", "Welcome."]


def test_an_approval_that_is_asked_with_the_middleware_is_answered_without(
    path: Path, with_middleware: Continue, without: Continue
) -> None:
    for turn in range(6):
        with_middleware("both", ask(f"more {turn}"), LONG)
    asked = with_middleware("both", ask("Order a desk."), call("order", "o1", item="desk"))
    values = without("both", APPROVED, "Ordered.")
    with_middleware("both", ask("Thanks."), "Welcome.")

    assert asked["__interrupt__"]
    assert (values["budget"], values["visited"]) == (60, ["door", "till"])
    assert said(path, "both")[-5:] == ["", "ordered: desk", "Ordered.", "Thanks.", "Welcome."]


def test_threads_that_nobody_has_run_stay_byte_for_byte(path: Path, with_middleware: Continue) -> None:
    others = [row for row in rows(path) if row[1] != "chat"]

    with_middleware("chat", ask("more"), "fine")

    assert [row for row in rows(path) if row[1] != "chat"] == others


def test_the_apps_checkpoints_stay_when_the_middleware_has_gone_on(path: Path, with_middleware: Continue) -> None:
    before = rows(path, "chat")
    for turn in range(6):
        with_middleware("chat", ask(f"more {turn}"), LONG)

    assert [row for row in before if row not in rows(path, "chat")] == []


def test_compacting_spares_what_the_app_wrote_unless_it_is_asked_for(
    path: Path, with_middleware: Continue, capsys: pytest.CaptureFixture[str]
) -> None:
    with_middleware("chat", ask("more"), "fine")
    before, others = rows(path), [row for row in rows(path) if row[1] != "chat"]
    arguments = ["compact", "--yes", "--keep-checkpoints", "2", "--database", url(path), "--json"]

    main(arguments)
    spared = rows(path)
    main([*arguments, "--adopted"])

    assert spared == before
    assert [row for row in rows(path) if row[1] != "chat"] == others
    assert [json.loads(line)["checkpoints"] for line in capsys.readouterr().out.splitlines()] == [0, 43]


def test_a_compacted_thread_goes_on_in_both_directions(
    path: Path, with_middleware: Continue, without: Continue
) -> None:
    for turn in range(3):
        with_middleware("both", ask(f"more {turn}"), LONG)
    with_middleware("both", ask("Order a desk."), call("order", "o1", item="desk"))
    before = said(path, "both")

    main(["compact", "--yes", "--keep-checkpoints", "1", "--database", url(path), "--adopted"])
    values = without("both", APPROVED, "Ordered.")
    with_middleware("both", ask("Thanks."), "Welcome.")

    assert (values["budget"], values["visited"]) == (60, ["door", "till"])
    assert said(path, "both") == [*before, "ordered: desk", "Ordered.", "Thanks.", "Welcome."]


def test_compacting_what_an_app_wrote_asks_first(
    path: Path, with_middleware: Continue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_middleware("chat", ask("more"), "fine")
    before = rows(path)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    code = main(["compact", "--adopted", "--keep-checkpoints", "1", "--database", url(path)])

    assert (code, rows(path)) == (1, before)
    assert "checkpoints go that another app wrote" in capsys.readouterr().err


def cli(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> str:
    assert main([*arguments, "--database", url(path)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("thread_id", THREADS)
def test_show_prints_a_thread_that_nobody_has_adopted(
    path: Path, capsys: pytest.CaptureFixture[str], thread_id: str
) -> None:
    before = rows(path)

    shown = json.loads(cli(capsys, path, "show", thread_id, "--json"))

    assert [message["content"] for message in shown["messages"]] == said(path, thread_id)
    assert shown["turns"] == len(THREADS[thread_id][0])
    assert (len(shown["waiting_for"]), shown["unfinished"]) == ((1, True) if thread_id == APPROVAL else (0, False))
    assert rows(path) == before


def test_an_open_approval_of_an_app_is_shown_as_the_apps(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "1 approval open: the app whose thread it is asks for it" in cli(capsys, path, "show", APPROVAL)


def test_show_threads_and_why_know_an_adopted_thread(
    path: Path, with_middleware: Continue, without: Continue, capsys: pytest.CaptureFixture[str]
) -> None:
    for turn in range(7):
        with_middleware("both", ask(f"more {turn}"), f"{turn}: {LONG}")
    without("both", ask("And now?"), "Fine.")

    (record,) = json.loads(cli(capsys, path, "threads", "--json"))
    shown = json.loads(cli(capsys, path, "show", "both", "--json"))
    why = json.loads(cli(capsys, path, "why", "more 1", "--thread", "both", "--json"))

    assert [record[name] for name in ("thread_id", "user_id", "turns")] == ["both", "ann", 9]
    assert [message["content"] for message in shown["messages"]] == said(path, "both")
    assert shown["turns"] == 10
    assert any(message["in_prompt"] for message in shown["messages"])
    assert not all(message["in_prompt"] for message in shown["messages"])
    assert any("left" in fact["text"] or "transcript" in fact["text"] for fact in why["accounts"][0]["facts"])


def test_end_makes_the_notes_of_an_adopted_thread_long_term_and_leaves_its_state(
    path: Path, with_middleware: Continue, capsys: pytest.CaptureFixture[str]
) -> None:
    note = {"text": "User is vegetarian.", "keywords": ["vegetarian"], "scope": "durable"}
    with_middleware("both", ask("I am vegetarian."), call("save_memory_note", "s1", **note), "Noted.")
    before = said(path, "both")

    would = json.loads(cli(capsys, path, "end", "both", "--dry-run", "--json"))
    ended = json.loads(cli(capsys, path, "end", "both", "--json"))

    texts = [one["text"] for one in ended["added"]]
    assert texts == [note["text"]]
    assert texts == [one["text"] for one in would["added"]]
    assert said(path, "both") == before


@pytest.mark.parametrize("thread_id", ["both", APPROVAL])
def test_our_graph_refuses_an_adopted_thread_and_changes_nothing(
    path: Path, with_middleware: Continue, thread_id: str
) -> None:
    sent = APPROVED if thread_id == APPROVAL else ask("more")
    with_middleware(thread_id, sent, call("order", "o1", item="desk"))
    before = rows(path)

    would_drop = pytest.raises(SettingsError, match="was made by another graph, and this graph would drop")
    with open_storage(url(path)) as storage, would_drop:
        build_graph(model="offline", storage=storage).invoke(ask("hi"), config(thread_id), context=Context("ann"))

    assert rows(path) == before


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from test_adopted_threads import LONG, adopted, ask, config, url
from everthread import open_storage
from stock_app import call

def play(path, puts, is_async):
    with open_storage(url(path)) as storage:
        graph = adopted(storage, [call("spend", "k1", amount=1), LONG])
        save = storage.checkpointer.put

        def put(*args):
            nonlocal puts
            if not puts:
                os.kill(os.getpid(), signal.SIGKILL)
            puts -= 1
            return save(*args)

        storage.checkpointer.put = put
        if is_async:
            asyncio.run(graph.ainvoke(ask("Spend it."), config("both")))
        else:
            graph.invoke(ask("Spend it."), config("both"))

# Each is killed in a process of its own; what is imported and read when it is first needed, is here once for all.
with open_storage("sqlite://") as storage:
    graph = adopted(storage, [LONG] * 5)
    for turn in range(5):
        graph.invoke(ask("more"), config("both"))
for puts, path in enumerate(sys.argv[2:]):
    if (child := os.fork()) == 0:
        play(Path(path), puts, sys.argv[1] == "async")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
"""
"""A turn with the middleware that is killed ahead of each checkpoint; what left the state is in the store by then."""

PUTS = range(5)


@pytest.fixture(scope="module")
def killed(template: Path, is_async: bool, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the folders of a thread of four turns whose fifth was killed, ahead of one checkpoint more in each."""
    talked = tmp_path_factory.mktemp("talked") / "app.db"
    shutil.copy(template, talked)
    for turn in range(4):
        continued(talked, is_async)("both", ask(f"more {turn}"), f"{turn}: {LONG}")
    folders = [tmp_path_factory.mktemp(f"killed-{puts}") for puts in PUTS]
    paths = [shutil.copy(talked, folder) for folder in folders]
    here = Path(__file__).parent
    environment = {"PYTHONPATH": ":".join(map(str, [here, here.parent, *sys.path]))}
    flavour = "async" if is_async else "sync"
    subprocess.run([sys.executable, "-c", KILLED, flavour, *paths], env=environment, timeout=300, check=True)
    return folders


@pytest.mark.slow
@pytest.mark.parametrize("puts", PUTS)
def test_nothing_is_lost_when_the_process_is_killed_ahead_of_any_checkpoint(
    path: Path, killed: list[Path], with_middleware: Continue, without: Continue, is_async: bool, puts: int
) -> None:
    before = [*said(path, "both"), *(text for turn in range(4) for text in (f"more {turn}", f"{turn}: {LONG}"))]
    shutil.copytree(killed[puts], path.parent, dirs_exist_ok=True)

    # Behind each checkpoint a thread goes on with the middleware and one without it, one of them asynchronously.
    is_with = puts % 2 == is_async
    first, second = (with_middleware, without) if is_with else (without, with_middleware)
    first("both", ask("And now?"), f"first: {LONG}")
    values = second("both", ask("And then?"), f"second: {LONG}")

    every = said(path, "both")
    cut_off = every[len(before) : -4]
    assert every[: len(before)] == before
    assert every[-4:] == ["And now?", f"first: {LONG}", "And then?", f"second: {LONG}"]
    assert cut_off == ["Spend it.", "", "1 EUR are left"][: len(cut_off)]
    # What was saved is there. Whether the results of the step that was cut off were too, is LangGraph's to say.
    assert len(cut_off) >= ([0, 1, 1, 2, 2] if is_with else [0, 0, 1, 2, 2])[puts]
    assert (values["budget"], values["visited"][2:]) == ((1, ["till"]) if cut_off[2:] else (60, []))
