"""The program as a shell sees it: pipes, signals, exit codes, no escape codes, a quick start."""

import io
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


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVERTHREAD_", "OPENAI_"))}
    return {**kept, "PYTHONUTF8": "1"}


def talk(folder: Path, text: str) -> None:
    """Let the agent answer a message in this process."""
    with open_storage(f"sqlite:///{folder / 'everthread.db'}") as storage:
        config: Any = {"configurable": {"thread_id": "t"}}
        build_graph(model="offline", storage=storage).invoke({"messages": text}, config)


def read(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what `show` prints of the thread."""
    assert main(["show", "t", "--json", "--database", f"sqlite:///{folder / 'everthread.db'}"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def piped(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    """A chat that got a line of text from a pipe, and one of other bytes, with the folder of its database."""
    folder = tmp_path_factory.mktemp("piped")
    done = subprocess.run(
        [*COMMAND, "chat", "--thread", "t"],
        cwd=folder,
        env=environment,
        input=b"Remember that I am vegetarian.\ncaf\xe9 \x00\n",
        capture_output=True,
        timeout=120,
        check=False,
    )
    return folder, done


@pytest.mark.slow
def test_lines_from_a_pipe_are_a_conversation_that_another_process_reads(
    piped: tuple[Path, subprocess.CompletedProcess[bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, talked = piped

    assert (talked.returncode, talked.stderr) == (0, b"")
    assert b"\x1b" not in talked.stdout
    assert read(folder, capsys)["messages"][0]["content"] == "Remember that I am vegetarian."


def test_bytes_that_are_no_text_do_not_stop_a_chat(
    piped: tuple[Path, subprocess.CompletedProcess[bytes]],
) -> None:
    _, talked = piped

    assert (talked.returncode, talked.stderr) == (0, b"")
    assert b"[turn 2 saved" in talked.stdout


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("hi\n"))
    # Port 9 is the discard service: nothing listens there.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    failed = main(["chat", "--thread", "t", "--model", "openai:gpt-4.1"])
    told = capsys.readouterr().err
    main(["chat", "--thread", "t"])

    assert failed == 1
    assert "cannot be reached" in told
    assert "Traceback" not in told
    assert "[turn 1 saved" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_one_sentence(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "everthread.db").touch(mode=0o000)

    done = subprocess.run([*COMMAND, "threads"], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr == "error: cannot read the database 'everthread.db': permission denied\n"
