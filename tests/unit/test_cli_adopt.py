"""`adopt`: threads of other graphs are listed, copied from and handed back to, and never changed."""

import ast
import json
import operator
import shlex
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, messages_from_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from everthread import Context, EverthreadMiddleware, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.models.scripted import ScriptedModel
from everthread.storage.adoption import new_messages
from stock_app import APPROVAL, THREADS, app, config, make, rows

URL = "sqlite:///everthread.db"
FILE = Path("everthread.db")
ANN = Context(user_id="ann")


@dataclass
class Lamp:
    """A type of the app's own."""

    colour: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the app; each test gets a copy."""
    file = tmp_path_factory.mktemp("app") / FILE
    make(file)
    return file


@pytest.fixture(autouse=True)
def _database(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(made, FILE)


def adopt(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["adopt", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = adopt(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return {thread["thread_id"]: thread for thread in json.loads(out)}


def chat(thread_id: str, *texts: str) -> None:
    """Go on with a thread of ours."""
    with open_storage(URL) as storage:
        graph = build_graph(travel, model=ScriptedModel([f"re: {text}" for text in texts]), storage=storage)
        for text in texts:
            graph.invoke({"messages": text}, config(thread_id), context=ANN)


def messages_of(thread_id: str) -> list[Any]:
    with open_storage(URL) as storage:
        graph = build_graph(travel, model="offline", storage=storage)
        return list(graph.get_state(config(thread_id)).values["messages"])


def said(messages: Sequence[Any]) -> list[str]:
    return [str(message.text) for message in messages]


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["threads"], 0, f"{len(THREADS)} threads of other graphs: `everthread adopt` lists them"),
        (["context", APPROVAL], 1, f"error: thread '{APPROVAL}' is one of another graph, so no prompts and no events"),
        (["context", APPROVAL, "--preview"], 1, f"error: thread '{APPROVAL}' is one of another graph"),
        (["ledger", APPROVAL], 0, f"thread '{APPROVAL}' is one of another graph, so no prompts and no events"),
        (["context", "nowhere"], 1, "error: there is no thread 'nowhere'"),
    ],
    ids=str,
)
def test_other_commands_say_what_a_thread_of_another_graph_is(
    capsys: pytest.CaptureFixture[str], command: list[str], code: int, says: str
) -> None:
    assert main(command) == code
    assert says in capsys.readouterr().err


def test_every_thread_is_listed_with_what_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    threads = listed(capsys)

    assert threads.keys() == THREADS.keys()
    counts = [[threads[name][count] for count in ("turns", "messages", "checkpoints")] for name in THREADS]
    assert counts == [[12, 24, 48], [1, 2, 4], [2, 8, 14], [2, 6, 11], [3, 8, 14]]
    assert threads["keys"]["keys"] == ["budget", "messages", "visited"]
    assert [ask["action_requests"][0]["name"] for ask in threads[APPROVAL]["waiting_for"]] == ["order"]
    assert all(not one["waiting_for"] for name, one in threads.items() if name != APPROVAL)


def test_the_bytes_of_a_thread_are_those_of_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    blobs = [value for row in rows(FILE, "tools") for value in (row[-2:] if row[0] == "checkpoints" else row[-1:])]

    assert listed(capsys, "tools")["tools"]["bytes"] == sum(map(len, blobs))


def test_listing_changes_not_one_byte(capsys: pytest.CaptureFixture[str]) -> None:
    before = FILE.read_bytes()

    code, out, _ = adopt(capsys)

    assert code == 0
    assert "1 approval" in out
    assert FILE.read_bytes() == before


def test_the_threads_of_our_own_graph_are_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    chat("ours", "hi")

    assert listed(capsys).keys() == THREADS.keys()


def test_a_thread_that_a_guard_has_run_on_has_its_user(capsys: pytest.CaptureFixture[str]) -> None:
    with open_storage(URL) as storage:
        guarded = storage.guard(app(storage.checkpointer, ["fine"], store=storage.store))
        guarded.invoke({"messages": "hi"}, {"configurable": {"thread_id": "keys", "user_id": "ann"}})

    threads = listed(capsys)

    assert {name: one["user_id"] for name, one in threads.items() if one["user_id"]} == {"keys": "ann"}


def test_values_of_the_apps_own_types_do_not_stop_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteSaver.from_conn_string(str(FILE)) as saver:
        app(saver, []).update_state(config("typed"), {"budget": Lamp("red"), "messages": "hi"})

    assert listed(capsys, "typed")["typed"]["keys"] == ["budget", "messages"]


def test_a_database_without_threads_lists_none(capsys: pytest.CaptureFixture[str]) -> None:
    sqlite3.connect("other.db").close()

    assert adopt(capsys, "--json", "--database", "sqlite:///other.db") == (0, "[]\n", "")


def test_a_database_of_another_program_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect("other.db")) as database:
        database.execute("CREATE TABLE checkpoints (thread_id)")

    code, _, told = adopt(capsys, "--json", "--database", "sqlite:///other.db")

    assert (code, "belongs to another program" in told) == (1, True)


def test_a_thread_of_ours_begins_with_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    before = rows(FILE)

    code, out, _ = adopt(capsys, "both", "--into", "mine", "--user", "ann", "--json")

    assert (code, json.loads(out)) == (0, {"thread_id": "mine", "user_id": "ann", "adopted": "both", "messages": 6})
    assert [row for row in rows(FILE) if row[1] != "mine"] == before
    inputs, replies = THREADS["both"]
    chat("mine", "And now?")
    assert said(messages_of("mine")) == [
        inputs[0]["messages"],
        replies[0],
        inputs[1]["messages"],
        "",
        "60 EUR are left",
        replies[2],
        "And now?",
        "re: And now?",
    ]


def test_the_messages_keep_the_dates_on_which_they_came(capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteSaver.from_conn_string(str(FILE)) as saver:
        runs = [one.created_at for one in app(saver, []).get_state_history(config("tools"), filter={"source": "input"})]

    adopt(capsys, "tools", "--into", "mine")

    dates = [message.additional_kwargs["everthread"]["at"] for message in messages_of("mine")]
    assert dates == [runs[1]] * 4 + [runs[0]] * 4


def test_the_command_that_goes_on_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--user", "ann lee", "--agent", "support", "--database", "sqlite:///./everthread.db")

    _, _, err = adopt(capsys, "tools", "--into", "my own", *named)

    assert shlex.split(err.split("`")[1]) == ["everthread", "chat", "--thread", "my own", *named]


def test_the_turns_that_it_begins_with_count_once(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, "chat", "--into", "mine", "--user", "ann")
    chat("mine", "one more")

    main(["threads", "--json"])

    (record,) = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["thread_id"], record["user_id"], record["turns"], record["agent"]) == ("mine", "ann", 13, "travel")


def test_an_open_approval_stays_with_its_app(capsys: pytest.CaptureFixture[str]) -> None:
    before = rows(FILE, APPROVAL)

    adopt(capsys, APPROVAL, "--into", "mine", "--user", "ann")
    chat("mine", "Never mind.")

    assert said(messages_of("mine"))[-2:] == ["Never mind.", "re: Never mind."]
    assert rows(FILE, APPROVAL) == before


def test_a_system_message_of_the_app_stays_behind(capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteSaver.from_conn_string(str(FILE)) as saver:
        kept = [SystemMessage("Be rude."), HumanMessage("hi"), AIMessage("hm")]
        app(saver, []).update_state(config("rude"), {"messages": kept})

    adopt(capsys, "rude", "--into", "mine")

    assert said(messages_of("mine")) == ["hi", "hm"]


@pytest.mark.parametrize(
    ("arguments", "code", "said_why"),
    [
        (["nobody", "--into", "mine"], 1, "there is no thread 'nobody'"),
        (["ours", "--into", "mine"], 2, "is one of ours already"),
        (["chat", "--into", "ours"], 2, "there is a thread 'ours' already"),
        (["chat", "--into", "keys"], 2, "there is a thread 'keys' already"),
        (["chat", "--into", ""], 2, "`thread_id` must be a non-empty text"),
        (["--into", "mine"], 2, "adopt THREAD --into NEW"),
        (["chat", "--back"], 2, "adopt THREAD --into NEW --back"),
        (["nobody"], 1, "no other graph has a thread 'nobody'"),
        (["ours"], 1, "no other graph has a thread 'ours'"),
        (["chat", "--into", "ours", "--back"], 2, "did not begin with the messages of thread 'chat'"),
        (["chat", "--into", "nobody", "--back"], 1, "there is no thread 'nobody'"),
        (["--database", "sqlite:///nowhere.db"], 1, "there is no database at 'nowhere.db'"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said_why: str
) -> None:
    chat("ours", "hi")
    before = rows(FILE)

    done, out, err = adopt(capsys, *arguments)

    assert (done, out) == (code, "")
    assert said_why in err
    assert rows(FILE) == before


def test_what_was_said_since_goes_back_to_the_app_and_twice_does_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, "both", "--into", "mine", "--user", "ann")
    chat("mine", "one", "two")

    for _ in range(2):
        _, out, _ = adopt(capsys, "both", "--into", "mine", "--back", "--json")
        with SqliteSaver.from_conn_string(str(FILE)) as saver:
            graph = app(saver, [])
            graph.update_state(config("both"), {"messages": messages_from_dict(json.loads(out)["messages"])})

    with SqliteSaver.from_conn_string(str(FILE)) as saver:
        graph = app(saver, ["three, too"])
        assert graph.get_state(config("both")).next == ()
        values = graph.invoke({"messages": "three"}, config("both"))
    assert said(values["messages"])[6:] == ["one", "re: one", "two", "re: two", "three", "three, too"]
    assert (values["budget"], values["visited"]) == (60, ["door", "till"])
    assert all("everthread" not in message.additional_kwargs for message in values["messages"])


async def test_what_was_said_since_goes_back_to_an_asynchronous_app(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, "keys", "--into", "mine", "--user", "ann")
    chat("mine", "one")

    with open_storage(URL) as storage:
        new = new_messages(storage, "keys", "mine")
    async with AsyncSqliteSaver.from_conn_string(str(FILE)) as saver:
        graph = app(saver, ["two, too"])
        await graph.aupdate_state(config("keys"), {"messages": new})
        values = await graph.ainvoke({"messages": "two"}, config("keys"))

    assert said(values["messages"])[2:] == ["one", "re: one", "two", "two, too"]


def test_nothing_is_handed_back_to_a_thread_that_waits_for_an_approval(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, APPROVAL, "--into", "mine", "--user", "ann")
    chat("mine", "one")

    code, out, err = adopt(capsys, APPROVAL, "--into", "mine", "--back")

    assert (code, out) == (2, "")
    assert "answer it in its own app first" in err


def test_without_json_it_says_how_the_app_takes_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, "keys", "--into", "mine", "--user", "ann")
    chat("mine", "one")

    _, out, _ = adopt(capsys, "keys", "--into", "mine", "--back")

    assert out.startswith("2 messages of thread mine are new.")
    assert """app.update_state({"configurable": {"thread_id": 'keys'}}, {"messages": new})""" in out


def test_an_id_adds_nothing_to_the_code_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = 'mine"); import os; os.abort()  # '
    adopt(capsys, "keys", "--into", hostile, "--user", "ann")
    chat(hostile, "one")

    _, out, _ = adopt(capsys, "keys", "--into", hostile, "--back")

    code = ast.parse(out.split("\n", 1)[1])
    assert {node.names[0].name for node in ast.walk(code) if isinstance(node, ast.Import)} == set()


def test_an_adopted_thread_is_listed_with_its_first_message(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, "both", "--into", "mine", "--user", "ann")

    main(["threads", "--json"])

    listed = json.loads(capsys.readouterr().out)
    assert [one["first_message"] for one in listed] == [THREADS["both"][0][0]["messages"]]


def test_an_id_adds_nothing_to_the_command_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = adopt(capsys, "keys", "--into", "mine; rm -rf ~", "--user", "$(id)")

    command = err.split("`")[1]
    assert shlex.split(command) == ["everthread", "chat", "--thread", "mine; rm -rf ~", "--user", "$(id)"]


class Added(TypedDict):
    """A state whose messages have no ids, since its reducer gives none."""

    messages: Annotated[list[Any], operator.add]


def add(thread_id: str, *inputs: Any) -> None:
    """Run the graph of these messages, a run for each."""
    graph = StateGraph(Added)
    graph.add_node("echo", lambda state: {"messages": [AIMessage("yes")]})
    graph.add_edge(START, "echo")
    with SqliteSaver.from_conn_string(str(FILE)) as saver:
        for one in inputs:
            graph.compile(checkpointer=saver).invoke({"messages": [one]}, config(thread_id))


def test_messages_without_ids_are_all_adopted(capsys: pytest.CaptureFixture[str]) -> None:
    add("added", HumanMessage("one"), HumanMessage("two"), HumanMessage("two"))

    adopt(capsys, "added", "--into", "ours", "--user", "ann")

    assert said(messages_of("ours")) == ["one", "yes", "two", "yes", "two", "yes"]


def test_what_left_the_state_of_an_app_is_adopted_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    questions = [f"question {number}" for number in range(6)]
    answers = [f"answer {number} " * 60 for number in range(6)]
    with open_storage(URL) as storage:
        bounded = EverthreadMiddleware(window=1_800, summarizer="offline")
        graph = app(storage.checkpointer, answers, [bounded], store=storage.store)
        for question in questions:
            left = graph.invoke({"messages": question}, {"configurable": {"thread_id": "bounded", "user_id": "ann"}})

    adopt(capsys, "bounded", "--into", "ours", "--user", "ann")

    assert len(left["messages"]) < 2 * len(questions)
    assert said(messages_of("ours")) == [text for turn in zip(questions, answers, strict=True) for text in turn]


def test_what_was_said_on_a_branch_that_was_left_is_not_adopted(capsys: pytest.CaptureFixture[str]) -> None:
    thread: Any = {"configurable": {"thread_id": "bounded", "user_id": "ann"}}
    with open_storage(URL) as storage:
        bounded = EverthreadMiddleware(window=1_800, summarizer="offline")
        graph = app(storage.checkpointer, ["answer 1 " * 60] * 9, [bounded], store=storage.store)
        for number in range(6):
            graph.invoke({"messages": f"question {number}"}, thread)
        second = [one for one in graph.get_state_history(thread) if not one.next][4]
        graph.invoke({"messages": "fork 0"}, {"configurable": {**second.config["configurable"], "user_id": "ann"}})
        for number in (1, 2):
            graph.invoke({"messages": f"fork {number}"}, thread)

    adopt(capsys, "bounded", "--into", "ours", "--user", "ann")

    asked = [message.text for message in messages_of("ours") if message.type == "human"]
    assert asked == ["question 0", "question 1", "fork 0", "fork 1", "fork 2"]


def test_what_was_said_on_a_branch_that_was_left_is_not_handed_back(capsys: pytest.CaptureFixture[str]) -> None:
    adopt(capsys, "keys", "--into", "ours", "--user", "ann")
    small = Context(user_id="ann", window=4_000)
    with open_storage(URL) as storage:
        graph = build_graph(travel, model=ScriptedModel(["answer 1 " * 100] * 8), summarizer="offline", storage=storage)
        for number in range(6):
            graph.invoke({"messages": f"new {number}"}, config("ours"), context=small)
        first = [one for one in graph.get_state_history(config("ours")) if not one.next][5]
        graph.invoke({"messages": "fork 0"}, first.config, context=small)
        graph.invoke({"messages": "fork 1"}, config("ours"), context=small)

        new = new_messages(storage, "keys", "ours")

    assert [message.text for message in new if message.type == "human"] == ["new 0", "fork 0", "fork 1"]


def test_a_thread_whose_messages_are_none_hides_no_other_thread(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    add("odd", 1, {"a": 2})

    assert listed(capsys).keys() == {*THREADS, "odd"}
    assert "left out: the state of thread 'odd' cannot be read" in caplog.text
