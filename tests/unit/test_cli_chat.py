"""`chat`, fed with lines in one process."""

import asyncio
import importlib
import io
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from conversation import call
from everthread import Context, EverthreadMiddleware, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.errors import ModelError
from everthread.graph.turn_parts import Part, Text
from everthread.models.scripted import ScriptedModel

Chat = Callable[..., tuple[int, str, str]]

FLIGHT = "Find me a flight from San Francisco to Paris on 2027-03-12."
BOOK = "Book option 1 for Ada Lovelace."
BROKEN = ModelError("the model provider failed", kind="server")
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def chat(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Chat:
    def talk(
        *lines: str, options: tuple[str, ...] = ("--thread", "t"), model: BaseChatModel | None = None
    ) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        if model is not None:
            monkeypatch.setattr("everthread.cli.chat.resolve", lambda name: model)
        code = main(["chat", *options])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return talk


def messages(capsys: pytest.CaptureFixture[str], thread_id: str = "t") -> list[tuple[str, str]]:
    assert main(["show", thread_id, "--json"]) == 0
    return [(message["role"], message["content"]) for message in json.loads(capsys.readouterr().out)["messages"]]


def test_every_line_is_a_turn_that_is_saved_before_it_is_acknowledged(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = chat("hi", "", "bye", model=ScriptedModel(["hello", "goodbye"]))

    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert [line.split(" ·")[0] for line in lines[1:]] == ["hello", "[turn 1 saved", "goodbye", "[turn 2 saved"]
    assert messages(capsys) == [("user", "hi"), ("assistant", "hello"), ("user", "bye"), ("assistant", "goodbye")]


def test_a_reply_is_written_piece_by_piece(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Part] = []
    monkeypatch.setattr("everthread.cli.chat.Screen.show", lambda self, part: parts.append(part))

    chat("hi", model=ScriptedModel(["one two three"]))

    assert [one.text for one in parts if isinstance(one, Text)] == ["one", " two", " three"]


def test_a_model_that_does_not_stream_is_shown_once(chat: Chat) -> None:
    _, out, _ = chat("hi", model=ScriptedModel(["one two three"], disable_streaming=True))

    assert out.count("one two three") == 1


def test_a_new_thread_gets_an_id_that_goes_on(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = chat("hi", options=())

    thread_id = out.split("thread ")[1].split()[0]
    assert messages(capsys, thread_id)[0] == ("user", "hi")
    assert "This thread has 2 messages in 1 turn." in chat(options=("--thread", thread_id))[1]


def test_the_offline_model_is_said_to_be_no_language_model(chat: Chat) -> None:
    assert "pattern matching, not a language model" in chat()[1]


def test_tool_calls_and_their_results_are_shown(chat: Chat) -> None:
    saved = AIMessage("", tool_calls=[call("save_memory_note", "c", text="Likes tea.", keywords=["tea"])])

    _, out, _ = chat("I like tea.", model=ScriptedModel([saved, "Noted."]))

    assert "  → save_memory_note(text='Likes tea.', keywords=['tea'])\n  ← Saved and kept after this session" in out
    assert "notes saved: 1]" in out


def test_a_note_that_is_not_kept_is_told(chat: Chat) -> None:
    leak = AIMessage("", tool_calls=[call("save_memory_note", "c", text="SSN is 078-05-1120.", keywords=["id"])])

    _, _, err = chat("Remember it.", model=ScriptedModel([leak, "I do not keep that."]))

    assert err == "a note was not kept: it looks like a social security number\n"


@pytest.mark.parametrize(
    ("answer", "booked"),
    [("y", True), ("Yes", True), ("yes, please", True), ("go ahead", True), ("no", False), ("ok", False), ("", False)],
)
def test_an_approval_is_shown_in_full_and_asked_for(chat: Chat, answer: str, booked: bool) -> None:
    code, out, _ = chat(FLIGHT, BOOK, answer)

    assert code == 0
    assert "Approve this booking?" in out
    assert "Price: USD" in out
    assert ("Booked after the user's approval" in out) == booked
    assert ("Nothing was booked" in out) == (not booked)


def test_the_end_of_the_input_leaves_an_approval_open_and_the_next_chat_asks_again(chat: Chat) -> None:
    code, out, err = chat(FLIGHT, BOOK)

    assert code == 0
    assert "declined" not in out
    assert "the question stays open" in err
    assert "Booked after" in chat("yes please")[1]


def test_what_is_not_a_plain_yes_declines(chat: Chat) -> None:
    assert "Nothing was booked" in chat(FLIGHT, BOOK, "yes but with a window seat")[1]


@pytest.mark.parametrize("line", ["What do you know about me?", "yes but by the window", "no, take option 2"])
def test_a_line_from_a_pipe_that_answers_nothing_declines_and_is_the_next_message(
    chat: Chat, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    _, out, err = chat(FLIGHT, BOOK, line, "Hello")

    assert f"Approve? [y/N]\n> {line}\ndeclined\n" in out
    assert "it declines, and is the next message" in err
    assert [text for role, text in messages(capsys) if role == "user"] == [FLIGHT, BOOK, line, "Hello"]


def test_a_line_that_is_kept_answers_no_further_approval(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_clerk.py").write_text(OWN_AGENT)
    three = AIMessage("", tool_calls=[call("sign", f"c{paper}", paper=paper) for paper in ("lease", "will", "deed")])
    options = ("--thread", "t", "--agent", "my_clerk:clerk")

    chat(
        "sign all", "yes", "who are you?", "yes", options=options, model=ScriptedModel([three, "one", "a clerk", "ok"])
    )

    said = messages(capsys)
    assert [text for role, text in said if role == "tool"] == ["lease: signed", "will: refused", "deed: refused"]
    assert [text for role, text in said if role == "user"] == ["sign all", "who are you?", "yes"]


def test_a_failing_model_is_one_sentence_and_the_chat_goes_on(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = chat("hi", "still there?", model=ScriptedModel([BROKEN, "yes"]))

    assert code == 1
    assert err.splitlines()[0] == "error: the model provider failed"
    assert "Traceback" not in err
    assert "[turn 2 saved" in out
    assert messages(capsys) == [("user", "hi"), ("user", "still there?"), ("assistant", "yes")]


def test_retry_goes_on_with_the_turn_that_failed(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = chat("hi", "/retry", "/retry", model=ScriptedModel([BROKEN, "hello"]))

    assert "[turn 1 saved" in out
    assert messages(capsys) == [("user", "hi"), ("assistant", "hello")]


def test_retry_says_when_nothing_is_waiting(chat: Chat) -> None:
    assert "nothing is waiting" in chat("hi", "/retry", model=ScriptedModel(["hello"]))[2]


@pytest.mark.parametrize(
    ("message", "steps"),
    [*(("hi", steps) for steps in (1, 2)), *((HumanMessage("hi", id="mine"), steps) for steps in (1, 2, 3))],
    ids=["saved", "opened", "saved with an id", "applied with an id", "opened with an id"],
)
def test_a_turn_that_a_crash_cut_off_is_finished_first(
    chat: Chat, capsys: pytest.CaptureFixture[str], message: Any, steps: int
) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        graph = build_graph(travel, model="offline", storage=storage)
        parts = graph.stream({"messages": [message]}, CONFIG, stream_mode="checkpoints", durability="sync")
        for _ in range(steps):
            next(parts)
        parts.close()  # type: ignore[attr-defined]

    _, _, err = chat("bye", model=ScriptedModel(["hello", "goodbye"]))

    assert "going on with it first" in err
    assert messages(capsys) == [("user", "hi"), ("assistant", "hello"), ("user", "bye"), ("assistant", "goodbye")]


def test_an_approval_that_is_still_open_is_asked_for_at_the_start(chat: Chat) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        graph = build_graph(travel, model="offline", storage=storage)
        for text in (FLIGHT, BOOK):
            graph.invoke({"messages": text}, CONFIG)

    _, out, _ = chat("y")

    assert "Approve this booking?" in out
    assert "Booked after the user's approval" in out


def test_end_tells_what_lasts_and_the_thread_goes_on(chat: Chat) -> None:
    _, out, _ = chat("Remember that I am vegetarian.", "/end", "What do you know about me?")

    assert "  + long-term   Is vegetarian." in out
    assert "[turn 2 saved" in out


def test_end_before_the_first_message_says_so(chat: Chat) -> None:
    assert "nothing to end" in chat("/end")[2]


def test_notes_and_budget_show_what_is_remembered_and_sent(chat: Chat) -> None:
    _, out, err = chat("/budget", "Remember that I am vegetarian.", "/notes", "/budget")

    assert "no prompt has been sent yet" in err
    assert "Session notes\n  2" in out
    assert "Is vegetarian. [" in out
    assert "S system" in out


def test_help_lists_the_commands_and_an_unknown_one_is_no_message(chat: Chat) -> None:
    _, out, err = chat("/help", "/frob", "/quit", "never read", model=ScriptedModel([]))

    assert "/budget  what was in the last prompt" in out
    assert err == "there is no command /frob; /help lists them\n"


@pytest.mark.parametrize("line", ["/quit now", "/end\tnow", "/help me", "/notes ada"])
def test_a_command_with_words_behind_it_is_neither_done_nor_sent(chat: Chat, line: str) -> None:
    _, out, err = chat(line, "/frob it", "hi", model=ScriptedModel(["hello"]))

    command = line.split()[0]
    assert err == (
        f"{command} takes nothing behind it; nothing was done\nthere is no command /frob; /help lists them\n"
    )
    assert out.splitlines()[1] == "hello"


@pytest.mark.parametrize("lines", [["/etc/hosts is empty"], ['"""', "/usr is full", '"""']])
def test_a_path_or_a_block_that_begins_with_a_slash_is_a_message(
    chat: Chat, capsys: pytest.CaptureFixture[str], lines: list[str]
) -> None:
    chat(*lines, model=ScriptedModel(["ok"]))

    assert messages(capsys)[0] == ("user", next(line for line in lines if line.startswith("/")))


def test_a_block_of_several_lines_is_one_message(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat('"""', "first", "/end", '"""', model=ScriptedModel(["ok"]))

    assert messages(capsys)[0] == ("user", "first\n/end")


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (("--agent", "nope"), 2, "unknown agent 'nope'"),
        (("--model", "nope"), 2, "model 'nope' has no known form"),
        (("--model", "openai:gpt-4.1"), 2, "`OPENAI_API_KEY`"),
        (("--window", "10"), 2, "`--window` must be"),
        (("--user", ""), 2, "`--user` must be"),
        (("--database", "sqlite:///no/such/folder.db"), 1, "does not exist"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(chat: Chat, options: tuple[str, ...], code: int, reason: str) -> None:
    found, out, err = chat("hi", options=options)

    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert reason in err
    assert not Path("everthread.db").exists()


def test_a_window_that_nothing_fits_into_is_refused_before_a_message_is_read(chat: Chat) -> None:
    code, out, err = chat(options=("--window", "1500"))

    assert (code, out) == (1, "")
    assert err.startswith("error: `--window` is 1,500 tokens but")


def test_the_thread_remembers_its_user_and_its_agent(chat: Chat) -> None:
    chat("hi", options=("--thread", "t", "--user", "ada", "--agent", "support"))

    assert chat()[1].startswith("IT support · model offline · user ada · thread t")


def test_a_thread_of_another_user_is_refused(chat: Chat) -> None:
    chat("hi", options=("--thread", "t", "--user", "ada"))

    code, out, err = chat("hi", options=("--thread", "t", "--user", "bob"))

    assert (code, out) == (1, "")
    assert err == "error: user 'bob' has no thread 't'; it belongs to user 'ada'\n"


def test_a_thread_that_is_in_use_is_one_sentence(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everthread.cli.chat.WAIT_SECONDS", 0.01)
    with open_storage("sqlite:///everthread.db") as storage, storage.locks.hold("t"):
        code, out, err = chat("hi")

    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "another run of this process is running thread 't'; waiting up to 0.01 s …",
        "error: thread 't' is busy: another run of this process held its lock for 0.01 s; wait for that run and try "
        "again",
    ]


def test_context_shows_the_last_prompt_its_changes_and_the_next_compaction(chat: Chat) -> None:
    _, out, err = chat("/context", "Hello!", "/context", "And you?", "/context diff", "/context preview")

    assert "no prompt has been sent yet" in err
    assert "  kept       user: Hello!" in out
    assert "+ kept       user: And you?" in out
    assert "next compaction by `summarize`" in out


def test_context_refuses_what_it_does_not_know(chat: Chat) -> None:
    _, out, err = chat("Hello!", "/context prewiew")

    assert "kept       user: Hello!" not in out
    assert "/context stands alone or with `diff` or `preview`, got 'prewiew'" in err


def test_a_message_over_the_budget_is_one_sentence_and_the_next_one_works(chat: Chat) -> None:
    code, out, err = chat("word " * 6000, "hi", options=("--thread", "t", "--window", "4000"))

    assert code == 1
    assert err.startswith("error: ")
    assert "[turn 2 saved" in out


def test_a_failure_of_an_earlier_chat_is_no_failure_once_it_is_answered(chat: Chat) -> None:
    chat("word " * 6000, options=("--thread", "t", "--window", "4000"))

    code, out, err = chat("hi", options=("--thread", "t", "--window", "4000"))

    assert (code, "[turn 2 saved" in out) == (0, True)
    assert "raise `--window`" in err


def test_the_dials_reach_the_run(chat: Chat) -> None:
    chat("hi", options=("--thread", "t", "--window", "6000", "--user", "ada"))

    assert "of 6,000 tokens" in chat("/budget")[1]


@pytest.mark.parametrize("window", [2500, 2800])
def test_chat_takes_a_window_that_the_graph_takes(chat: Chat, window: int) -> None:
    with open_storage("sqlite:///:memory:") as storage:
        graph = build_graph(travel, model="offline", storage=storage)
        graph.invoke({"messages": [HumanMessage("hello")]}, CONFIG, context=Context(window=window))

    assert chat("hello", options=("--window", str(window)))[0] == 0


def test_chat_refuses_a_window_that_every_prompt_fills(chat: Chat) -> None:
    code, _, err = chat(options=("--window", "2000"))

    assert code == 1
    assert "`--window` is 2,000 tokens" in err


OWN_AGENT = """
from langchain_core.tools import tool
from langgraph.types import interrupt

from everthread import Agent


@tool
def sign(paper: str) -> str:
    "Sign a paper."
    return f"{paper}: {'signed' if interrupt(f'Sign {paper}?') else 'refused'}"


clerk = Agent(name="clerk", title="Clerk", instructions="You sign papers.", tools=[sign])
number = 7
"""


def test_chat_takes_an_agent_of_the_current_folder(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_clerk.py").write_text(OWN_AGENT)

    _, out, _ = chat("hi", options=("--thread", "t", "--agent", "my_clerk:clerk"), model=ScriptedModel(["hello"]))

    assert out.startswith("Clerk · model scripted")
    assert chat("hi") == (
        2,
        "",
        "error: thread 't' is run by the agent 'clerk', which only your code has; name it by `--agent "
        "module:attribute`\n",
    )
    assert main(["end", "t", "--agent", "my_clerk:clerk"]) == 0


def test_the_last_line_goes_on_with_an_own_agent_user_and_database(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my_clerk.py").write_text(OWN_AGENT)
    monkeypatch.setattr("everthread.cli.chat._is_interactive", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: "/quit")
    options = ("--thread", "t 1", "--user", "ada", "--agent", "my_clerk:clerk", "--database", "sqlite:///a b.db")

    _, _, err = chat(options=options)
    again = err.splitlines()[-1].removesuffix(" goes on with this conversation")

    assert shlex.split(again) == ["everthread", "chat", *options]


def test_show_names_the_command_that_goes_on(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_clerk.py").write_text(OWN_AGENT)
    options = ("--thread", "t", "--agent", "my_clerk:clerk", "--database", "sqlite:///b.db")
    chat("hi", options=options, model=ScriptedModel([BROKEN]))

    assert main(["show", "t", "--database", "sqlite:///b.db"]) == 0
    goes_on = "everthread chat --thread t --agent module:attribute --database sqlite:///b.db"
    assert f"`{goes_on}` goes on with it" in capsys.readouterr().out


def test_another_agent_that_takes_a_thread_over_is_told(chat: Chat) -> None:
    chat("hi", model=ScriptedModel(["hello"]))

    _, _, err = chat(options=("--thread", "t", "--agent", "support"), model=ScriptedModel([]))

    assert err == "the agent 'travel' has run this thread; from now on 'support' does\n"


@pytest.mark.parametrize("options", [(), ("--agent", "travel")])
def test_a_thread_of_another_graph_is_refused_before_a_message(chat: Chat, options: tuple[str, ...]) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        agent = create_agent(
            ScriptedModel(["hello"]),
            middleware=[EverthreadMiddleware(window=4_000, summarizer="offline")],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
        config: Any = {"configurable": {"thread_id": "t", "user_id": "local"}}
        storage.guard(agent).invoke({"messages": [HumanMessage("hi")]}, config)

    code, out, err = chat("hi", options=("--thread", "t", *options))

    assert (code, out) == (2, "")
    assert err.startswith("error: thread 't' was made by another graph")


@pytest.mark.parametrize(
    "command",
    [
        ["chat", "--thread", ""],
        ["forget", "--thread", ""],
        ["spend", "--thread", ""],
        ["why", "tea", "--thread", ""],
    ],
)
def test_an_empty_thread_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    assert "must be a non-empty text, got ''" in capsys.readouterr().err
    assert not Path("everthread.db").exists()


@pytest.mark.parametrize("name", ["my_clerk:nobody", "my_clerk:number", "no_such_module:clerk", ":"])
def test_what_is_no_agent_is_one_sentence(chat: Chat, name: str) -> None:
    Path("my_clerk.py").write_text(OWN_AGENT)

    code, out, err = chat("hi", options=("--agent", name))

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert repr(name) in err


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("clerk = (", "'(' was never closed"),
        ("1 / 0", "division by zero"),
        ("raise KeyError", "KeyError"),
        ("from everthread import Agent\nclerk = Agent('clerk', 'Clerk', '')", "`instructions` of an agent must be"),
    ],
)
def test_a_module_that_fails_is_one_sentence(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    Path("broken_clerk.py").write_text(source)
    monkeypatch.delitem(sys.modules, "broken_clerk", raising=False)
    importlib.invalidate_caches()

    code, out, err = chat("hi", options=("--agent", "broken_clerk:clerk"))

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_every_approval_of_a_step_is_asked_for_and_answered_by_itself(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my_clerk.py").write_text(OWN_AGENT)
    both = AIMessage("", tool_calls=[call("sign", "c1", paper="lease"), call("sign", "c2", paper="will")])
    options = ("--thread", "t", "--agent", "my_clerk:clerk")

    _, asked, _ = chat("sign both", options=options, model=ScriptedModel([both]))
    _, answered, _ = chat("yes", "no", options=options, model=ScriptedModel(["done"]))

    assert "Sign lease?" in asked
    assert "It waits for 2 approvals:" in answered
    results = [text for role, text in messages(capsys) if role == "tool"]
    assert results == ["lease: signed", "will: refused"]


class Hanging(BaseChatModel):
    """Has no async client; its first call answers nothing, not even Ctrl-C, until the test is over."""

    _began: threading.Event = PrivateAttr(default_factory=threading.Event)
    _over: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def _llm_type(self) -> str:
        return "hanging"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        if self._began.is_set():
            return ChatResult(generations=[ChatGeneration(message=AIMessage("hello"))])
        self._began.set()
        self._over.wait()
        raise AssertionError("the test is over")

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """Press Ctrl-C as soon as the call hangs."""

        def press() -> None:
            self._began.wait()
            if not self._over.is_set():
                os.kill(os.getpid(), signal.SIGINT)

        # A shell lets what it runs in its background, such as these tests, ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        finger = threading.Thread(target=press)
        finger.start()
        try:
            yield
        finally:
            self._over.set()
            self._began.set()
            finger.join()
            signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_a_hanging_call_at_once_and_the_next_chat_goes_on(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Hanging()
    with model.interrupted():
        code, _, err = chat("hi", model=model)

    assert (code, err) == (130, "stopped; your message is kept, and everthread chat --thread t goes on with it\n")
    chat(model=ScriptedModel(["hello"]))
    assert messages(capsys) == [("user", "hi"), ("assistant", "hello")]


class LeavesBehind(ScriptedModel):
    """Begins a task that nobody waits for."""

    _left: list[asyncio.Task[bool]] = PrivateAttr(default_factory=list)

    async def _astream(self, *arguments: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        self._left.append(asyncio.create_task(asyncio.Event().wait()))
        async for chunk in super()._astream(*arguments, **options):
            yield chunk


def test_what_a_run_leaves_behind_has_ended_with_the_chat(chat: Chat) -> None:
    model = LeavesBehind(["hello"])

    chat("hi", model=model)

    assert [task.cancelled() for task in model._left] == [True]


def test_ctrl_c_leaves_a_person_in_the_chat(
    chat: Chat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.cli.chat._is_interactive", lambda: True)
    typed = iter(["hi", "/retry", "/quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    model = Hanging()
    with model.interrupted():
        code, out, err = chat(model=model)

    assert (code, "[turn 1 saved" in out) == (0, True)
    assert "stopped; your message is kept, and /retry goes on with it\n" in err
    assert err.endswith("everthread chat --thread t goes on with this conversation\n")
    assert messages(capsys) == [("user", "hi"), ("assistant", "hello")]


def test_ctrl_c_at_the_prompt_says_how_to_go_on(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("everthread.cli.chat._is_interactive", lambda: True)
    monkeypatch.setattr("builtins.input", interrupt)

    code, _, err = chat(model=ScriptedModel([]))

    assert (code, err) == (130, "everthread chat --thread t goes on with this conversation\n")
