"""`everthread demo`: the six steps, read from what it did and not from what it claims."""

import io
import json
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import everthread.cli.demo as played_by
from everthread.cli import main


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder, printed = tmp_path_factory.mktemp("demo"), io.StringIO()
    with chdir(folder), redirect_stdout(printed):
        assert main(["demo", "--json"]) == 0
    assert not list(folder.iterdir())  # the database was a temporary one
    document: dict[str, Any] = json.loads(printed.getvalue())
    return document


@pytest.fixture
def turns(played: dict[str, Any]) -> list[dict[str, Any]]:
    first, second = played["sessions"]
    return [*first["turns"], *second["turns"]]


def test_step_1_a_flight_to_paris_next_month_is_looked_for_and_not_booked(turns: list[dict[str, Any]]) -> None:
    turn = turns[0]

    assert turn["user"] == "Book me a flight to Paris next month."
    assert [(call["name"], call["args"]["destination"]) for call in turn["tool_calls"]] == [("search_flights", "Paris")]
    assert "CDG" in turn["reply"]
    assert "Booked" not in turn["reply"]


def test_step_2_the_preferences_come_from_the_profile_and_the_notes(turns: list[dict[str, Any]]) -> None:
    reply = turns[1]["reply"]

    assert turns[1]["user"] == "Do you know my preferences?"
    assert all(fact in reply for fact in ("San Francisco", "Gold", "Titanium", "aisle", "Schengen"))
    assert all(note in reply for note in ("check bags on trips under a week", "high floors", "walkable", "2024-06"))


def test_step_3_vegetarian_is_noted(turns: list[dict[str, Any]]) -> None:
    turn = turns[2]

    assert turn["user"] == "Remember that I am vegetarian."
    assert [call["name"] for call in turn["tool_calls"]] == ["save_memory_note"]
    assert [(note["text"], note["scope"]) for note in turn["session_notes"]] == [("Is vegetarian.", "durable")]


def test_step_4_the_window_seat_is_noted_for_this_trip_only(turns: list[dict[str, Any]]) -> None:
    turn = turns[3]

    assert turn["user"] == "This time, I like to have a window seat. I really want to sleep."
    seats = [note for note in turn["session_notes"] if "window" in note["text"]]
    assert [note["scope"] for note in seats] == ["session"]
    assert seats[0]["sources"][0]["quote"] == turn["user"]


def test_step_5_vegetarian_becomes_long_term_and_the_window_seat_does_not(played: dict[str, Any]) -> None:
    ending = played["sessions"][0]["consolidation"]
    lasting = [note["text"] for note in played["long_term_notes"]]

    assert [note["text"] for note in ending["added"]] == ["Is vegetarian."]
    assert [("window" in note["text"], note["reason"]) for note in ending["dropped"]] == [
        (True, "for this session only")
    ]
    assert "Is vegetarian." in lasting
    assert any("aisle" in text for text in lasting)
    assert not any("window" in text for text in lasting)


def test_step_6_a_new_thread_knows_vegetarian_and_the_aisle_and_not_the_window(played: dict[str, Any]) -> None:
    first, second = played["sessions"]
    (turn,) = second["turns"]

    assert first["thread_id"] != second["thread_id"]
    assert "vegetarian" in turn["reply"].lower()
    assert "aisle" in turn["reply"]
    assert "window" not in turn["reply"]


def test_every_turn_shows_a_prompt_that_adds_up_to_its_window(turns: list[dict[str, Any]]) -> None:
    for turn in turns:
        prompt = turn["prompt"]
        assert sum(prompt["breakdown"].values()) == prompt["window"]
        assert prompt["breakdown"]["profile"] > 0
        assert prompt["breakdown"]["notes"] > 0
        assert prompt["tokens"] + prompt["breakdown"]["reply_reserve"] <= prompt["window"]


def test_people_see_the_turns_the_bars_and_the_checks_and_that_the_model_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["demo", "--database", f"sqlite:///{tmp_path}/kept.db"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "\x1b" not in shown
    assert "pattern matching, not a language model" in shown.splitlines()[1]
    assert shown.count("       [S") == 5
    assert "8 of 8 claims hold" in shown
    assert (tmp_path / "kept.db").stat().st_mode & 0o777 == 0o600


def test_a_demo_can_be_played_twice_in_one_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kept.db'}"

    assert [main(["demo", "--json", "--database", url]) for _ in range(2)] == [0, 0]


def test_a_claim_that_does_not_hold_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = {**played_by.EXAMPLE["profile"], "seat_preference": "window"}
    monkeypatch.setitem(played_by.EXAMPLE, "profile", profile)

    code = main(["demo", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert (code, document["ok"]) == (1, False)
    assert [claim["holds"] for claim in document["claims"]].count(False) == 1


def test_a_session_whose_notes_all_last_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("everthread.memory.capture.is_for_this_time", lambda text: False)
    monkeypatch.setattr("everthread.memory.consolidate.FOR_THIS_SESSION", "x")
    monkeypatch.setattr(played_by, "FIRST_SESSION", (*played_by.FIRST_SESSION[:3], "I prefer window seats."))

    code = main(["demo"])

    assert code == 1
    assert "✗ the window seat does not" in capsys.readouterr().out


@pytest.mark.slow
def test_what_to_try_next_can_be_run_where_the_command_is_not_on_the_path(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("everthread")
    done = subprocess.run(
        [command, "demo"], cwd=tmp_path, env={"PATH": "/bin"}, capture_output=True, text=True, timeout=120, check=True
    )

    assert done.stderr == ""
    assert f"\n  {command} chat\n" in done.stdout
