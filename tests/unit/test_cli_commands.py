"""The commands that read and change a database, in one process with it."""

import io
import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.cli.app import COMMANDS, app
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def told(run: Run, *arguments: str) -> Any:
    code, out, err = run(*arguments, "--json")
    assert (code, [line for line in err.splitlines() if not line.startswith("sweeping")]) == (0, [])
    return json.loads(out)


def remember(text: str, scope: str = "durable") -> AIMessage:
    return AIMessage("", tool_calls=[call("save_memory_note", "c1", text=text, keywords=["food"], scope=scope)])


SAID = "I am vegetarian. I want a window seat this trip."
"""What the user of these tests says, so that the notes are theirs."""


def talk(*replies: Any, thread_id: str = "t", user_id: str = "ada", says: Any = SAID, **dials: Any) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        graph = build_graph(travel, model=ScriptedModel(list(replies)), summarizer="offline", storage=storage)
        config: Any = {"configurable": {"thread_id": thread_id}}
        graph.invoke({"messages": says}, config, context=Context(user_id=user_id, **dials), durability="sync")


def ask_for_a_booking() -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        graph = build_graph(travel, model="offline", storage=storage)
        config: Any = {"configurable": {"thread_id": "t"}}
        for text in ("Find me a flight from San Francisco to Paris on 2027-03-12.", "Book option 1 for Ada Lovelace."):
            graph.invoke({"messages": text}, config)


def change(act: Callable[[Storage], object]) -> Any:
    with open_storage("sqlite:///everthread.db", create=False) as storage:
        return act(storage)


def aged(storage: Storage, thread_id: str, minutes: int) -> None:
    item = storage.store.get(namespaces.SESSIONS, thread_id)
    assert item is not None
    then = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
    storage.store.put(namespaces.SESSIONS, thread_id, {**item.value, "last_activity": then}, index=False)


def test_help_names_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"])

    names = ("demo", "chat", "threads", "show", "notes", "profile", "end", "sweep", "replay", "doctor")
    assert shown.exit_code == 0
    assert all(f"\n  {name} " in shown.output for name in names)


@pytest.mark.parametrize("arguments", [["frobnicate"], ["threads", "--nope"], ["show"], ["sweep", "--idle", "soon"]])
def test_a_wrong_use_exits_with_2_and_says_why(arguments: list[str]) -> None:
    shown = CliRunner().invoke(app, arguments)

    assert shown.exit_code == 2
    assert "Error: " in shown.output


def test_a_command_that_is_misspelt_is_named() -> None:
    assert "No such command 'chatt'. Did you mean 'chat'?" in CliRunner().invoke(app, ["chatt"]).output


@pytest.mark.parametrize("command", ["why", "ledger", "notes", "steer", "adopt"])
def test_the_usage_puts_an_optional_argument_in_one_pair_of_brackets(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"]).output

    assert "[[" not in shown


@pytest.mark.parametrize("command", list(COMMANDS))
def test_the_line_of_the_help_is_that_of_the_command(command: str) -> None:
    line = COMMANDS[command][1]

    shown = " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())

    assert line.rstrip(".") in shown
    assert "--install-completion" not in shown


def test_the_dashboard_names_a_missing_package_before_a_missing_database(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.cli.serve.find_spec", lambda _: None)

    code, _, err = run("dashboard")

    assert (code, "'starlette' is not installed" in err) == (2, True)


def test_version(run: Run) -> None:
    assert run("--version") == (0, "everthread 0.1.0\n", "")


def test_threads_are_listed_newest_first_and_by_user(run: Run) -> None:
    talk("hello", thread_id="t-1", user_id="ada")
    talk("hello", thread_id="t-2", user_id="bob")

    assert [record["thread_id"] for record in told(run, "threads")] == ["t-2", "t-1"]
    assert [record["thread_id"] for record in told(run, "threads", "--user", "ada")] == ["t-1"]
    assert "t-1     ada   travel      1" in run("threads")[1]


def test_threads_shows_how_the_first_message_begins(run: Run) -> None:
    talk("hello", says="Where are\nmy keys? " + "Please " * 20)
    talk("again", says="And my hat?")

    assert told(run, "threads")[0]["first_message"].startswith("Where are my keys? Please")
    assert "Where are my keys? Please Please" in run("threads")[1]
    assert "hat" not in run("threads")[1]


def test_show_marks_what_a_message_brings_beside_text(run: Run) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}}
    paper = {"type": "file", "base64": "JVBER", "mime_type": "application/pdf", "filename": "report.pdf"}
    sound = {"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}}
    talk("I see.", says=[{"role": "user", "content": [{"type": "text", "text": "Look!"}, image, paper, sound]}])

    assert told(run, "show", "t")["messages"][0]["attachments"] == ["image", "file report.pdf", "audio"]
    assert "  Look!\n  [image]\n  [file report.pdf]\n  [audio]\n" in run("show", "t")[1]


def test_show_gives_roles_calls_and_results_in_order(run: Run) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")

    shown = told(run, "show", "t")

    user, assistant, result, reply = shown["messages"]
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert assistant["tool_calls"][0]["name"] == "save_memory_note"
    assert (result["tool_call_id"], result["name"]) == ("c1", "save_memory_note")
    assert (user["content"], reply["content"], shown["turns"]) == ("I am vegetarian.", "Noted.", 1)
    assert shown["session_notes"][0]["text"] == "Is vegetarian."


def test_show_has_what_left_the_prompt_and_says_so(run: Run) -> None:
    for turn in range(6):
        talk(f"answer {turn}", says=f"question {turn} " + "word " * 200, policy="sliding_window", keep_last_turns=2)

    shown = told(run, "show", "t")

    expected = [f"{kind} {turn}" for turn in range(6) for kind in ("question", "answer")]
    assert [message["content"][: len("question 0")].strip() for message in shown["messages"]] == expected
    assert not shown["messages"][3]["in_prompt"]
    assert shown["messages"][-1]["in_prompt"]
    assert "user · " in (text := run("show", "t")[1])
    assert "only in the transcript" in text


def test_show_as_json_marks_what_is_on_a_branch_that_was_left(run: Run) -> None:
    for turn in range(6):
        talk(f"answer {turn}", says=f"question {turn} " + "word " * 200, policy="sliding_window", keep_last_turns=2)
    run("steer", "t", "fork", "2")
    talk("otherwise", says="another")

    shown = told(run, "show", "t")["messages"]

    left = [one["content"][: len("question 0")].strip() for one in shown if one["on_left_branch"]]
    assert left == ["answer 1", "question 2", "answer 2", "question 3", "answer 3"]


def test_show_limits_to_the_newest_messages(run: Run) -> None:
    talk("hello")

    shown = told(run, "show", "t", "--limit", "1")

    assert [message["content"] for message in shown["messages"]] == ["hello"]
    assert shown["messages_total"] == 2


@pytest.mark.parametrize("steps", [1, 2])
def test_show_finds_a_thread_that_crashed_before_its_first_record(run: Run, steps: int) -> None:
    with open_storage("sqlite:///everthread.db") as storage:
        graph = build_graph(travel, model="offline", storage=storage)
        config: Any = {"configurable": {"thread_id": "t"}}
        parts = graph.stream({"messages": "hi"}, config, stream_mode="checkpoints", durability="sync")
        for _ in range(steps):
            next(parts)
        parts.close()  # type: ignore[attr-defined]

    shown = told(run, "show", "t")

    assert [message["content"] for message in shown["messages"]] == ["hi"]
    assert shown["unfinished"]


def test_show_says_that_an_approval_is_open(run: Run) -> None:
    ask_for_a_booking()

    shown = told(run, "show", "t")

    assert shown["waiting_for"][0]["details"]["option_id"].startswith("FLT-SFO-CDG-20270312")
    assert "1 approval open" in run("show", "t")[1]
    assert told(run, "threads")[0]["status"] == "interrupted"
    assert "waits for approval" in run("threads")[1]


def test_text_in_a_message_cannot_steer_the_terminal(run: Run) -> None:
    talk("safe \x1b[2J\x1b]0;title\x07 text")

    assert "\x1b" not in run("show", "t")[1]


def test_notes_shows_long_term_and_session_notes(run: Run) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")
    run("end", "t")
    talk(remember("Window seat this trip.", "session"), "Noted.", thread_id="t-2")

    shown = told(run, "notes", "ada")

    assert [note["text"] for note in shown["long_term"]] == ["Is vegetarian."]
    assert [(note["thread_id"], note["text"]) for note in shown["session"]] == [("t-2", "Window seat this trip.")]
    assert "Window seat this trip. [food]  (thread t-2, this session only)" in run("notes", "ada")[1]


def test_notes_of_one_user_are_not_shown_to_another(run: Run) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")

    Path("p.yaml").write_text("name: Ad\n")
    run("profile", "import", "ad", "p.yaml")

    assert told(run, "notes", "ad") == {"user_id": "ad", "long_term": [], "session": []}


def test_notes_of_a_user_who_does_not_exist_are_an_error(run: Run) -> None:
    talk("hello")

    code, out, err = run("notes", "nobody")

    assert (code, out) == (1, "")
    assert "there is no user 'nobody'" in err


def test_sweep_counts_an_ended_session_as_ended_however_young(run: Run) -> None:
    talk("hello")
    run("end", "t")

    assert "0 active, 1 already ended" in run("sweep", "--idle", "30m")[2]


def test_guard_names_the_rule_of_each_text(run: Run) -> None:
    Path("texts.jsonl").write_text('{"id": "1", "text": "My password is hunter2."}\n')

    verdict = told(run, "guard", "texts.jsonl")

    assert (verdict["decision"], bool(verdict["rule"])) == ("block", True)
    assert verdict["rule"] in run("guard", "texts.jsonl")[1]


def test_a_profile_is_imported_and_shown(run: Run) -> None:
    Path("p.yaml").write_text("name: Ada\nseat_preference: aisle\n")

    told(run, "profile", "import", "ada", "p.yaml")

    assert told(run, "profile", "show", "ada")["profile"] == {"name": "Ada", "seat_preference": "aisle"}
    assert run("profile", "show", "ada")[1] == "name: Ada\nseat_preference: aisle\n"


def test_a_profile_that_does_not_fit_is_not_stored(run: Run) -> None:
    Path("p.yaml").write_text("age: old\n")

    code, out, err = run("profile", "import", "ada", "p.yaml")

    assert (code, out) == (1, "")
    assert "`age`" in err
    assert not Path("everthread.db").exists()


def test_the_end_of_a_session_tells_what_lasts_and_what_goes(run: Run) -> None:
    both = [call("save_memory_note", "c1", text="Is vegetarian.", keywords=["food"])]
    both.append(call("save_memory_note", "c2", text="Window seat this trip.", keywords=["seat"], scope="session"))
    talk(AIMessage("", tool_calls=both), "Noted.", says="I am vegetarian. A window seat this trip, please.")

    ending = told(run, "end", "t")

    assert [note["text"] for note in ending["added"]] == ["Is vegetarian."]
    assert [(note["text"], note["reason"]) for note in ending["dropped"]] == [
        ("Window seat this trip.", "for this session only")
    ]
    assert told(run, "threads")[0]["consolidated_turns"] == 1
    assert "no session notes" in run("end", "t")[1]


def test_the_end_of_a_session_leaves_an_open_approval_alone(run: Run) -> None:
    ask_for_a_booking()

    code, _, _ = run("end", "t")

    assert code == 0
    assert told(run, "show", "t")["waiting_for"]


def test_a_session_of_another_user_is_not_ended(run: Run) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")

    code, _, err = run("end", "t", "--user", "bob")

    assert code == 1
    assert err == "error: user 'bob' has no thread 't'; it belongs to user 'ada'\n"
    assert told(run, "notes", "ada")["session"]


def test_sweep_ends_idle_sessions_once(run: Run) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.", thread_id="idle")
    talk(remember("Likes tea."), "Noted.", says="I like tea.", thread_id="active")
    change(lambda storage: aged(storage, "idle", minutes=31))

    first, second = told(run, "sweep", "--idle", "30m"), told(run, "sweep", "--idle", "30m")

    assert [(end["thread_id"], end["user_id"], end["added"][0]["text"]) for end in first["ended"]] == [
        ("idle", "ada", "Is vegetarian.")
    ]
    assert first["skipped"] == {"active": 1, "ended": 0, "busy": 0}
    assert (second["ended"], second["skipped"]["ended"]) == ([], 1)


def test_sweep_passes_over_a_thread_that_is_in_use(run: Run) -> None:
    talk("hello")
    with open_storage("sqlite:///everthread.db") as storage, storage.locks.hold("t"):
        swept = told(run, "sweep", "--idle", "0s")

    assert (swept["ended"], swept["skipped"]["busy"]) == ([], 1)


def test_sweep_ends_a_session_that_has_new_turns_since_its_end(run: Run) -> None:
    talk("hello")
    run("end", "t")
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")

    swept = told(run, "sweep", "--idle", "0s")

    assert [note["text"] for note in swept["ended"][0]["added"]] == ["Is vegetarian."]


def test_a_consolidation_that_fails_is_told_and_tried_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")

    with monkeypatch.context() as broken:
        # `dict("x")` is a ValueError, as a damaged note is one.
        broken.setattr("everthread.nodes.consolidate.plan", lambda *given: dict("x"))
        code, out, err = run("sweep", "--idle", "0s")
    again = told(run, "sweep", "--idle", "0s")

    assert code == 1
    assert "kept as is" in out
    assert "1 session could not be consolidated, the first on thread 't'" in err
    assert [note["text"] for note in again["ended"][0]["added"]] == ["Is vegetarian."]


READERS = (["threads"], ["show", "t"], ["notes", "ada"], ["profile", "show", "ada"], ["end", "t"])


@pytest.mark.parametrize("arguments", [*READERS, ["sweep", "--idle", "1m"]], ids=lambda arguments: str(arguments[0]))
def test_a_command_that_reads_makes_no_database(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)

    assert (code, out) == (1, "")
    assert err.startswith("error: there is no database at 'everthread.db'")
    assert not list(Path().iterdir())


@pytest.mark.parametrize("command", ["show", "end"])
@pytest.mark.parametrize("thread_id", ["nope", ""])
def test_an_unknown_thread_is_one_sentence(run: Run, command: str, thread_id: str) -> None:
    talk("hello")

    code, out, err = run(command, thread_id)

    assert (code, out) == (1, "")
    assert err == f"error: there is no thread {thread_id!r} in this database; `everthread threads` lists them\n"


@pytest.mark.parametrize(
    "command",
    ["threads", "chat", "doctor", "compact --yes", "retain --retention idle_days=1 --yes", "forget --user ann --yes"],
)
@pytest.mark.parametrize("kind", ["foreign", "alike", "junk", "folder"])
def test_a_database_that_is_not_ours_is_refused_and_left_alone(run: Run, kind: str, command: str) -> None:
    path = Path("other.db")
    if kind == "folder":
        path.mkdir()
    elif kind == "junk":
        path.write_bytes(b"not a database " * 100)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE theirs (id)" if kind == "foreign" else "CREATE TABLE store (id)")
    before = path.read_bytes() if path.is_file() else b""

    code, out, err = run(*command.split(), "--database", "sqlite:///other.db")

    assert code == 1
    assert "other.db" in out + err
    assert "Traceback" not in err
    assert ("belongs to another program" in out + err) == (kind in {"foreign", "alike"})
    assert before == (path.read_bytes() if path.is_file() else b"")
    assert len(os.listdir()) == 1


def test_a_database_url_that_is_not_understood_is_a_wrong_use(run: Run) -> None:
    code, out, err = run("threads", "--database", "mysql://x")

    assert (code, out) == (2, "")
    assert err.startswith("error: database URL 'mysql://x' is not understood")


def test_a_path_in_place_of_a_database_url_is_told_as_a_url(run: Run) -> None:
    code, _, err = run("threads", "--database", "data/app.db")

    assert (code, "`sqlite:///data/app.db`" in err) == (2, True)


def test_the_database_comes_from_the_environment_unless_an_argument_says_otherwise(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk("hello")
    monkeypatch.setenv("EVERTHREAD_DATABASE", "sqlite:///nowhere.db")

    assert "nowhere.db" in run("threads")[2]
    assert run("threads", "--database", "sqlite:///everthread.db")[0] == 0


def test_a_database_that_breaks_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    talk("hello")

    def broken(*_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr("everthread.cli.threads.records", broken)

    code, out, err = run("threads")

    assert (code, out) == (1, "")
    assert err.startswith("error: the database failed: database disk image is malformed")


def test_doctor_reports_without_making_a_database(run: Run) -> None:
    code, out, _ = run("doctor")

    assert code == 0
    assert "ok    model: offline (pattern matching" in out
    assert "does not exist yet" in out
    assert not list(Path().iterdir())


def test_doctor_never_shows_a_secret(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-123456")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:pa55word@localhost:1/v1")

    _, out, err = run("doctor", "--model", "openai:gpt-4.1")

    assert "OPENAI_API_KEY: set" in out
    assert "model: openai:gpt-4.1, --model" in out
    assert not [secret for secret in ("sk-very", "secret", "pa55word") if secret in out + err]


def test_doctor_fails_when_the_model_cannot_be_made(run: Run) -> None:
    code, out, _ = run("doctor", "--model", "openai:gpt-4.1", "--json")

    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert code == 1
    assert checks["model"]["status"] == "fail"
    assert "OPENAI_API_KEY" in checks["model"]["detail"]


def test_doctor_warns_when_others_can_read_the_database(run: Run) -> None:
    talk("hello")
    Path("everthread.db").chmod(0o644)

    checks = {check["name"]: check for check in told(run, "doctor")["checks"]}

    assert checks["database"]["status"] == "warn"
    assert "chmod 600" in checks["database"]["detail"]


@pytest.mark.parametrize(
    ("found", "status"), [((3, 51, 2), "warn"), ((3, 51, 3), "ok"), ((3, 50, 6), "warn"), ((3, 50, 7), "ok")]
)
def test_doctor_warns_of_an_sqlite_that_can_damage_files(
    run: Run, monkeypatch: pytest.MonkeyPatch, found: tuple[int, ...], status: str
) -> None:
    monkeypatch.setattr("everthread.cli.doctor.sqlite3.sqlite_version_info", found)

    checks = {check["name"]: check for check in told(run, "doctor")["checks"]}

    assert checks["sqlite"]["status"] == status


def test_doctor_fails_for_a_package_that_is_too_old_or_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"langgraph": "99", "no-such-package": "1"}
    monkeypatch.setattr("everthread.cli.doctor._NEEDED", wanted)

    code, out, _ = run("doctor", "--json")

    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert code == 1
    assert "is too old" in checks["langgraph"]["detail"]
    assert "not installed" in checks["no-such-package"]["detail"]


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Take away the right to write in the folder; for root it cannot be taken, so the question is answered instead."""
    access = os.access

    def answer(path: Path, mode: int) -> bool:
        return not (mode == os.W_OK and Path(path).resolve().is_relative_to(tmp_path)) and access(path, mode)

    return lambda: monkeypatch.setattr(os, "access", answer)


READING = (
    "threads",
    "show t",
    "why vegetarian --thread t",
    "notes ada",
    "ledger t",
    "export --user ada",
    "end t --dry-run",
    "search vegetarian --user ada",
    "steer t",
    "retain --retention idle_days=9 --dry-run",
)


@pytest.mark.parametrize("command", READING)
def test_a_database_that_cannot_be_written_is_read(run: Run, read_only: Callable[[], None], command: str) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")
    run("steer", "t", "pin", "The quay closes at noon.")
    before = {path.name: path.is_dir() or path.read_bytes() for path in Path().iterdir()}
    read_only()

    code, out, err = run(*command.split())

    assert (code, bool(out)) == (0, True), err
    assert {path.name: path.is_dir() or path.read_bytes() for path in Path().iterdir()} == before


def test_doctor_fails_for_a_database_that_cannot_be_written(run: Run, read_only: Callable[[], None]) -> None:
    talk("hello")
    read_only()

    code, out, _ = run("doctor", "--json")

    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert (code, checks["database"]["status"]) == (1, "fail")
    assert (
        f"cannot be written: no permission to write {Path('everthread.db').resolve()}" in checks["database"]["detail"]
    )
    assert checks["rows"]["status"] == "ok"


def test_a_command_that_writes_refuses_a_read_only_database(run: Run, read_only: Callable[[], None]) -> None:
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")
    read_only()

    code, out, err = run("end", "t")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "it is read-only" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_read(run: Run, tmp_path: Path) -> None:
    talk("hello")
    os.chmod("everthread.db", 0o444)
    tmp_path.chmod(0o555)
    try:
        assert [run(*command)[0] for command in (("threads",), ("show", "t"), ("export", "--user", "ada"))] == [0, 0, 0]
    finally:
        tmp_path.chmod(0o755)


def test_steer_pins_lists_and_withdraws(run: Run) -> None:
    talk("Noted.")
    pinned = told(run, "steer", "t", "pin", "The quay closes at noon.")

    assert [one["text"] for one in told(run, "steer", "t")] == ["The quay closes at noon."]
    assert "The quay closes at noon." in run("steer", "t")[1]
    assert told(run, "steer", "t", "withdraw", pinned["id"])["withdrawn"] is True
    assert told(run, "steer", "t") == []


def test_what_is_done_by_hand_names_the_person_at_the_command_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "olga")
    talk(remember("Is vegetarian."), "Noted.", says="I am vegetarian.")
    pinned = told(run, "steer", "t", "pin", "The quay closes at noon.")
    run("steer", "t", "withdraw", pinned["id"])
    run("steer", "t", "fork", "1")
    run("end", "t")
    note = told(run, "notes", "ada")["long_term"][0]
    run("notes", "ada", "confirm", note["id"])

    _, out, _ = run("ledger", "t", "--kind", "steered", "--kind", "note_changed", "--json")

    assert pinned["actor"] == "olga"
    assert [json.loads(line)["actor"] for line in out.splitlines()] == ["olga"] * 5


@pytest.mark.parametrize(
    "command",
    ["chat --user", "end t --user", "search x --user", "export --user", "threads --user", "notes", "serve-key"],
)
def test_an_empty_user_is_refused_by_the_name_of_its_option(run: Run, command: str) -> None:
    name = "--user" if command.endswith("--user") else "USER"

    assert run(*command.split(), "") == (2, "", f"error: `{name}` must be a non-empty text, got ''\n")


@pytest.mark.parametrize("command", ["serve --wait", "serve --grace", "serve --idle", "worker --idle", "sweep --idle"])
def test_a_time_in_another_form_is_refused_by_the_name_of_its_option(run: Run, command: str) -> None:
    code, out, err = run(*command.split(), "5x", "--database", "postgresql://nowhere")

    assert (code, out) == (2, "")
    assert f"'{command.split()[1]}': '5x' is not a length of time" in err


def test_an_agent_that_langchain_refuses_is_refused_without_a_link(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("refused.py").write_text("from langchain.agents import create_agent\nagent = create_agent('banana', [])\n")
    monkeypatch.syspath_prepend(".")

    code, out, err = run("chat", "--agent", "refused:agent")

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Unable to infer model provider for model='banana'" in err
    assert "http" not in err


def test_times_of_steering_and_of_the_ledger_name_their_zone(run: Run) -> None:
    talk("Noted.")
    run("steer", "t", "pin", "The quay closes at noon.")

    assert all(re.search(r"\d\d:\d\d:\d\dZ", line) for line in run("ledger", "t")[1].splitlines())
    assert re.search(r"\d\d:\d\d:\d\dZ", run("steer", "t")[1])


def test_steer_forks_from_a_call(run: Run) -> None:
    talk("One.")
    talk("Two.")
    made = told(run, "steer", "t", "fork", "1")

    assert made["call"] != made["left_call"]
    assert run("steer", "t", "fork", "9")[0] == 1


@pytest.mark.parametrize("arguments", [("burn", "x"), ("pin",), ("pin", " "), ("pin", "Card 4111 1111 1111 1111")])
def test_steer_says_what_it_does_not_do(run: Run, arguments: tuple[str, ...]) -> None:
    talk("One.")

    assert run("steer", "t", *arguments)[0] == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("command", ["--version", "show t", "threads --json"])
def test_an_output_that_cannot_be_written_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    talk("hello")
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        code = main(command.split())

    assert (code, capsys.readouterr().err) == (1, "error: cannot write the output: No space left on device\n")


class _CtrlC(io.StringIO):
    def readline(self, size: int | None = -1, /) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("answer", "code"), [(_CtrlC(), 130), (io.StringIO("n\n"), 1), (io.StringIO(), 1)])
def test_a_question_is_left_by_ctrl_c_and_by_a_no(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: io.StringIO, code: int
) -> None:
    talk("hello")
    monkeypatch.setattr("sys.stdin", answer)

    left, _, err = run("forget", "--thread", "t")

    assert left == code
    assert ("Aborted" in err) == (code == 1)
    assert run("show", "t")[0] == 0


def test_an_agent_by_a_path_is_told_to_name_its_module(run: Run) -> None:
    _, _, err = run("chat", "--agent", "./shop.py:shop")

    assert err == (
        "error: cannot load the agent './shop.py:shop': write a module name and not a path, such as `shop:shop`\n"
    )


def test_what_an_agents_module_prints_is_not_on_stdout(run: Run) -> None:
    talk("hello")
    code = "from everthread import Agent\nprint('loaded')\nit = Agent(name='loud', title='L', instructions='Talk.')\n"
    Path("loud_agent.py").write_text(code, encoding="utf-8")

    _, out, err = run("doctor", "--threads", "--agent", "loud_agent:it", "--json")

    assert json.loads(out)["ok"]
    assert err.startswith("loaded\n")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import json\njson.loads('{')\n", r".*shop_{}\.py, line 2\)"),
        ("def shop(:\n", r".*shop_{}\.py, line 1\)"),
        ("shop = 1\n", r".* is of type `int` and not an everthread\.Agent"),
        ("", r"[^(]* has no attribute 'shop'$"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_named_with_its_line(run: Run, code: str, says: str, request: Any) -> None:
    module = f"shop_{request.node.callspec.indices['code']}"
    Path(f"{module}.py").write_text(code, encoding="utf-8")

    _, _, err = run("chat", "--agent", f"{module}:shop")

    assert re.match(says.format(module[5:]), err), err


@pytest.mark.parametrize("options", [["--kind", "evicted"], ["--json"]])
def test_a_page_of_the_ledger_refuses_options_of_the_list(run: Run, options: list[str]) -> None:
    talk("hello")

    code, _, err = run("ledger", "t", "--html", "page.html", *options)

    assert (code, "leave out `--kind` and `--json`" in err) == (2, True)
    assert not Path("page.html").exists()


def test_a_page_of_the_ledger_is_a_new_file(run: Run) -> None:
    talk("hello")
    Path("kept.html").write_text("kept", encoding="utf-8")

    code, _, err = run("ledger", "t", "--html", "kept.html")

    assert (code, err) == (2, "error: 'kept.html' exists already; choose a new file\n")
    assert Path("kept.html").read_text(encoding="utf-8") == "kept"


def test_a_call_is_counted_from_the_end_where_a_thread_forks(run: Run) -> None:
    talk("one", "two")
    talk("three")

    assert run("steer", "t", "fork", "-1")[0] == 0
    assert run("steer", "t", "--frob") == (2, "", "error: no such option: --frob\n")


def test_a_dashboard_makes_no_database(run: Run) -> None:
    code, out, err = run("dashboard", "--database", "sqlite:///typo.db")

    assert (code, out) == (1, "")
    assert err.startswith("error: there is no database at 'typo.db'")
    assert not Path("typo.db").exists()


def test_a_dashboard_that_cannot_start_says_only_why(run: Run) -> None:
    talk("Hello.")

    code, out, err = run("dashboard", "--host", "0.0.0.0")

    assert (code, out) == (2, "")
    assert err.startswith("error: others than this machine can reach")


def test_a_report_of_a_name_that_no_file_can_have_is_refused_at_once(run: Run) -> None:
    code, _, err = run("ledger", "t", "--html", "n" * 300)

    assert (code, err) == (2, f"error: cannot write '{'n' * 300}': File name too long\n")
