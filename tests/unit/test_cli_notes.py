"""`notes`, `end --dry-run` and `profile import`: what a person can see and put right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everthread import open_storage
from everthread.cli import main
from everthread.ledger import events
from everthread.nodes.consolidate import promotions
from everthread.state import Note, Source, namespaces
from everthread.storage.open import Storage

Run = Callable[..., tuple[int, str, str]]
DATABASE = "sqlite:///everthread.db"
AISLE = "Prefers aisle seats."


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    with open_storage(DATABASE) as opened:
        session = {
            "thread_id": "t",
            "user_id": "ada",
            "agent": "travel",
            "turns": 1,
            "consolidated_turns": 0,
            "last_activity": "2026-01-01T00:00:00+00:00",
        }
        opened.store.put(namespaces.SESSIONS, "t", session, index=False)
        keep(opened, note(AISLE))
        yield opened


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def note(text: str, date: str = "2026-01-01", **values: Any) -> Note:
    values = {"keywords": ("aisle",), **values}
    source = Source(thread_id="t", message_ids=("m1",), quote="I like the aisle")
    given = {"id": f"n-{text.lower().replace(' ', '-')}", "text": text, "date": date, "sources": (source,)}
    return Note.model_validate(given | values)


def keep(storage: Storage, kept: Note, namespace: tuple[str, ...] = ()) -> None:
    storage.store.put(namespace or namespaces.notes("ada"), kept.id, kept.value(), index=False)


def stored(storage: Storage) -> dict[str, Note]:
    found = [Note.model_validate(item.value) for item in storage.store.search(namespaces.notes("ada"))]
    return {known.text: known for known in found}


def told(run: Run, *arguments: str) -> Any:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_the_list_shows_ids_that_the_other_actions_take(storage: Storage, run: Run) -> None:
    assert "n-prefers-aisle-seats.  2026-01-01  Prefers aisle seats." in run("notes", "ada")[1]


def test_an_edit_keeps_the_old_text_as_history(storage: Storage, run: Run) -> None:
    assert run("notes", "ada", "edit", "n-prefers", "Prefers window seats")[0] == 0

    notes = stored(storage)
    assert notes["Prefers window seats."].status == "active"
    assert notes["Prefers window seats."].keywords == ("window", "seats")
    assert notes[AISLE].superseded_by == notes["Prefers window seats."].id
    assert [event.event for event in events(storage.store, "t")] == ["note_changed"]


def test_a_note_is_forgotten_with_its_history(storage: Storage, run: Run) -> None:
    run("notes", "ada", "edit", "n-prefers", "Prefers window seats")
    code, out, _ = run("notes", "ada", "forget", stored(storage)["Prefers window seats."].id, "--yes")

    assert (code, out, stored(storage)) == (0, "", {})


def test_an_edit_cannot_store_what_the_guard_refuses(storage: Storage, run: Run) -> None:
    code, _, err = run("notes", "ada", "edit", "n-prefers", "Pays with 4111 1111 1111 1111")

    assert code == 2
    assert "never kept as a note" in err
    assert list(stored(storage)) == [AISLE]


def test_a_retracted_note_holds_again_when_it_is_confirmed(storage: Storage, run: Run) -> None:
    run("notes", "ada", "retract", "n-prefers")
    gone = stored(storage)[AISLE].status
    run("notes", "ada", "confirm", "n-prefers")

    assert (gone, stored(storage)[AISLE].status) == ("retracted", "active")


def test_what_another_note_replaced_cannot_be_retracted(storage: Storage, run: Run) -> None:
    run("notes", "ada", "edit", "n-prefers", "Prefers window seats")

    code, out, err = run("notes", "ada", "retract", note(AISLE).id)

    assert (code, out) == (2, "")
    assert "is superseded by" in err
    assert "retract the note in its place" in err
    assert stored(storage)[AISLE].status == "superseded"


def test_a_change_says_what_follows_from_it(storage: Storage, run: Run) -> None:
    assert "holds no longer; `confirm` brings it back" in run("notes", "ada", "retract", "n-prefers")[2]
    assert "the note holds" in run("notes", "ada", "confirm", "n-prefers")[2]


def test_confirming_adds_a_day_and_makes_the_note_the_users_own(storage: Storage, run: Run) -> None:
    keep(storage, note(AISLE, origin="tool", confidence=0.4))

    run("notes", "ada", "confirm", "n-prefers")

    found = stored(storage)[AISLE]
    assert (found.origin, found.confidence, len(found.confirmations)) == ("user", 1.0, 1)
    assert found.valid_from == "2026-01-01"


def test_retracting_takes_away_the_doubt_from_the_other_note(storage: Storage, run: Run) -> None:
    other = note("Likes window seats.", conflicts_with=(note(AISLE).id,))
    keep(storage, other)

    run("notes", "ada", "retract", note(AISLE).id)

    assert stored(storage)["Likes window seats."].conflicts_with == ()


def test_retracting_a_promoted_note_takes_the_field_back(storage: Storage, run: Run) -> None:
    keep(storage, note(AISLE, status="superseded", superseded_by="profile:seat_preference", valid_to="2026-02-01"))
    storage.store.put(namespaces.profile("ada"), "profile", {"name": "Ada", "seat_preference": "aisle"}, index=False)
    origin = {"note_id": note(AISLE).id, "value": "aisle", "at": "2026-02-01"}
    storage.store.put(promotions("ada"), "fields", {"seat_preference": origin}, index=False)

    said = run("notes", "ada", "retract", "n-prefers")[2]

    assert "the field `seat_preference` of the profile is taken back" in said
    profile = storage.store.get(namespaces.profile("ada"), "profile")
    assert profile is not None
    assert profile.value == {"name": "Ada"}
    assert storage.store.get(promotions("ada"), "fields") is None


def test_an_imported_profile_gives_the_notes_back_that_it_says_nothing_of(storage: Storage, run: Run) -> None:
    keep(storage, note(AISLE, status="superseded", superseded_by="profile:seat_preference", valid_to="2026-02-01"))
    Path("p.yaml").write_text("name: Ada\n")

    assert run("profile", "import", "ada", "p.yaml")[0] == 0

    assert stored(storage)[AISLE].status == "active"


def test_a_profile_that_does_not_fit_names_every_field(storage: Storage, run: Run) -> None:
    Path("p.json").write_text('{"age": "old", "seat_preference": "roof", "passport_number": "X"}')

    code, _, err = run("profile", "import", "ada", "p.json")

    assert code == 1
    assert "passport_number" in err


def test_why_tells_source_history_and_events(storage: Storage, run: Run) -> None:
    run("notes", "ada", "edit", "n-prefers", "Prefers window seats")

    new = stored(storage)["Prefers window seats."].id
    found = told(run, "notes", "ada", "why", new)
    shown = run("notes", "ada", "why", "n-prefers")[1]

    assert [old["text"] for old in found["replaced"]] == [AISLE]
    assert 'thread t, message m1: "I like the aisle"' in shown
    assert "gave way to" in shown
    assert "note changed" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["burn", "n-prefers"], 2, "unknown action 'burn'"),
        (["retract"], 2, "which note?"),
        (["edit", "n-prefers"], 2, "takes the note's new text"),
        (["retract", "n-none"], 1, "has no note 'n-none'"),
        (["edit", "n-prefers", AISLE], 2, "needs a new text"),
        (["edit", "n-prefers", f"{'Aisle seats, ' * 32}except to Oslo."], 2, "at most 400 characters, not 431"),
    ],
)
def test_a_wrong_use_says_what_to_do(
    storage: Storage, run: Run, arguments: list[str], status: int, problem: str
) -> None:
    code, out, err = run("notes", "ada", *arguments)

    assert (code, out) == (status, "")
    assert problem in err


def test_an_id_that_fits_two_notes_is_refused(storage: Storage, run: Run) -> None:
    keep(storage, note("Prefers trains."))

    assert "2 notes begin with 'n-prefers'" in run("notes", "ada", "retract", "n-prefers")[2]


def test_a_note_of_another_user_cannot_be_changed(storage: Storage, run: Run) -> None:
    assert run("notes", "bob", "retract", "n-prefers")[0] == 1
    assert stored(storage)[AISLE].status == "active"


def test_a_dry_run_shows_the_plan_and_changes_nothing(storage: Storage, run: Run) -> None:
    session = namespaces.session_notes("t")
    keep(storage, note("Prefers window seats.", "2026-02-01"), session)
    keep(storage, note("Window seat this trip.", "2026-02-01", scope="session"), session)

    shown = run("end", "t", "--dry-run")[1]

    assert "+ long-term   Prefers window seats." in shown
    assert "~ superseded  Prefers aisle seats." in shown
    assert "- dropped     Window seat this trip.  (for this session only)" in shown
    assert (len(storage.store.search(session)), list(stored(storage))) == (2, [AISLE])


def test_the_end_does_what_the_dry_run_showed(storage: Storage, run: Run) -> None:
    keep(storage, note("Prefers window seats.", "2026-02-01"), namespaces.session_notes("t"))

    before, after = told(run, "end", "t", "--dry-run"), told(run, "end", "t")

    assert {**before, "dry_run": False} == after
    assert stored(storage)[AISLE].status == "superseded"
