"""The program as a shell sees it: pipes, signals, exit codes, no escape codes, a quick start."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everthread import build_graph, open_storage
from everthread.cli import main

COMMAND = [sys.executable, "-m", "everthread"]


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVERTHREAD_", "OPENAI_"))}
    return {**kept, "PYTHONUTF8": "1"}


def run(
    folder: Path, environment: dict[str, str], *arguments: str, lines: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment,
        input=lines,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def talk(folder: Path, text: str) -> None:
    """Let the agent answer a message in this process."""
    with open_storage(f"sqlite:///{folder / 'everthread.db'}") as storage:
        config: Any = {"configurable": {"thread_id": "t"}}
        build_graph(model="offline", storage=storage).invoke({"messages": text}, config)


def read(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what `show` prints of the thread."""
    assert main(["show", "t", "--json", "--database", f"sqlite:///{folder / 'everthread.db'}"]) == 0
    return json.loads(capsys.readouterr().out)


def test_lines_from_a_pipe_are_a_conversation_that_another_process_reads(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    talked = run(tmp_path, environment, "chat", "--thread", "t", lines="Remember that I am vegetarian.\n")
    shown = run(tmp_path, environment, "show", "t", "--json")

    assert (talked.returncode, talked.stderr) == (0, "")
    assert "\x1b" not in talked.stdout
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout)["messages"][0]["content"] == "Remember that I am vegetarian."


def test_bytes_that_are_no_text_do_not_stop_a_chat(tmp_path: Path, environment: dict[str, str]) -> None:
    talked = subprocess.run(
        [*COMMAND, "chat", "--thread", "t"],
        cwd=tmp_path,
        env=environment,
        input=b"caf\xe9 \x00\n",
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert (talked.returncode, talked.stderr) == (0, b"")
    assert b"[turn 1 saved" in talked.stdout


def test_help_loads_no_graph_and_no_model(tmp_path: Path, environment: dict[str, str]) -> None:
    script = (
        "import sys; from everthread.cli import main; code = main(['--help']); "
        "slow = {'langgraph', 'langchain_core', 'langchain_openai', 'openai', 'tiktoken', 'pydantic', 'yaml'}; "
        "sys.exit(str(slow & set(sys.modules)) if slow & set(sys.modules) else code)"
    )

    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_commands_that_only_read_load_no_langchain(tmp_path: Path, environment: dict[str, str]) -> None:
    talk(tmp_path, "Remember that I am vegetarian.")
    script = (
        "import sys; from everthread.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    assert main(line.split()) == 0, line\n"
        "    assert not {'langchain_core', 'langgraph', 'openai'} & set(sys.modules), line\n"
    )
    commands = (
        "threads",
        "show t",
        "why vegetarian --thread t",
        "why remember/vegetarian --thread t",
        "notes local",
        "doctor",
    )
    more = ("ledger t --kind note_saved", "why --refetches --thread t", "ledger --schema")

    done = subprocess.run(
        [sys.executable, "-c", script, *commands, *more], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_a_paste_of_several_lines_is_one_message(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "chat", "--thread", "t"],
        cwd=tmp_path,
        env={**environment, "TERM": "xterm", "INPUTRC": os.devnull},
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)

    def read_to(mark: bytes) -> bytes:
        shown = b""
        while mark not in shown:
            assert select.select([terminal], [], [], 60)[0], shown
            shown += os.read(terminal, 4096)
        return shown

    try:
        read_to(b"you> ")
        os.write(terminal, b"\x1b[200~first line\nsecond line\x1b[201~")
        read_to(b"second line")
        os.write(terminal, b"\r")
        read_to(b"[turn 1 saved")
        os.write(terminal, b"/quit\r")
        read_to(b"goes on with this conversation")
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)

    shown = read(tmp_path, capsys)
    assert [one["content"] for one in shown["messages"] if one["role"] == "user"] == ["first line\nsecond line"]


def test_ctrl_c_ends_a_chat_with_130_and_no_traceback(tmp_path: Path, environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--thread", "t"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in its background with the signal ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("hi\n")
    process.stdin.flush()
    while not process.stdout.readline().startswith("[turn 1 saved"):
        assert process.poll() is None

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)

    assert (process.returncode, err) == (130, "")


@pytest.mark.parametrize("arguments", [["show", "t", "--json"], ["show", "t"], ["threads"]], ids=str)
def test_a_reader_that_goes_away_is_no_error_message(
    tmp_path: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    talk(tmp_path, "hi")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, env=environment, stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_server_that_cannot_be_reached_is_one_sentence_and_the_message_is_kept(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    # Port 9 is the discard service: nothing listens there.
    settings = {**environment, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}

    failed = run(tmp_path, settings, "chat", "--thread", "t", "--model", "openai:gpt-4.1", lines="hi\n")
    again = run(tmp_path, environment, "chat", "--thread", "t")

    assert failed.returncode == 1
    assert "cannot be reached" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "[turn 1 saved" in again.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_one_sentence(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "everthread.db").touch(mode=0o000)

    done = run(tmp_path, environment, "threads")

    assert done.returncode == 1
    assert done.stderr == "error: cannot read the database 'everthread.db': permission denied\n"
