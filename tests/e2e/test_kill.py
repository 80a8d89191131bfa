"""`kill -9` in the middle of `everthread chat`: whatever was acknowledged is there."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everthread.cli import main

pytestmark = pytest.mark.slow

TEXTS = ["Remember that I am vegetarian.", "Find me a flight from San Francisco to Paris on 2027-03-12.", "Who am I?"]


class Chat:
    """A chat in a process of its own, fed line by line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everthread", "chat", "--thread", "t"],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def read_until(self, start: str) -> list[str]:
        """Read lines up to the first that begins with a text."""
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(start):
                return lines
        raise AssertionError(f"the chat ended before {start!r}: {lines}")

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait(timeout=30) == -signal.SIGKILL


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    opened = Chat(tmp_path)
    yield opened
    opened.process.kill()
    opened.process.communicate()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVERTHREAD_", "OPENAI_"))}
    return {**kept, "PYTHONUTF8": "1"}


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["show", "t", "--json", "--database", f"sqlite:///{folder}/everthread.db"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def talk(chat: Chat) -> list[str]:
    """Send every text and wait until each is acknowledged; return all that was printed."""
    printed: list[str] = []
    for number, text in enumerate(TEXTS, 1):
        chat.send(text)
        printed += chat.read_until(f"[turn {number} saved")
    return printed


def check_acknowledged(messages: list[dict[str, Any]], printed: list[str]) -> None:
    """Every acknowledged question has its answer, in order, once, in the words that were printed."""
    assert [message["content"] for message in messages if message["role"] == "user"][:3] == TEXTS
    replies = [message["content"] for message in messages if message["role"] == "assistant" and message["content"]]
    assert len(replies) >= 3
    assert all(reply in "\n".join(printed) for reply in replies[:3])
    assert len({message["id"] for message in messages}) == len(messages)


def test_every_acknowledged_turn_survives_a_kill_between_turns(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    printed = talk(chat)

    chat.kill()

    document = shown(chat.folder, capsys)
    check_acknowledged(document["messages"], printed)
    assert (document["turns"], document["unfinished"]) == (3, False)


def test_a_turn_that_is_killed_in_its_middle_is_known_to_be_open_and_another_process_finishes_it(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = talk(chat)
    chat.send("Book option 1 for Ada Lovelace.")
    chat.read_until("Approve? [y/N]")

    chat.kill()
    killed = shown(chat.folder, capsys)
    monkeypatch.chdir(chat.folder)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert main(["chat", "--thread", "t"]) == 0

    check_acknowledged(killed["messages"], printed)
    assert [message["content"] for message in killed["messages"] if message["role"] == "user"][3:] == [
        "Book option 1 for Ada Lovelace."
    ]
    assert [asked["action"] for asked in killed["waiting_for"]] == ["book"]
    went_on = capsys.readouterr().out.splitlines()
    assert any(line.startswith("Approve this booking?") for line in went_on)
    assert any(line.startswith("Booked after your approval") for line in went_on)
    assert any(line.startswith("[turn 4 saved") for line in went_on)
