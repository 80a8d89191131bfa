"""Promotion into the profile, and back; forgetting."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from everthread.memory.consolidate import confidence_on, given_back, plan, settle
from everthread.memory.consolidate.promotion import Promotion, promotable
from everthread.state import Note

TODAY = "2026-04-01"
DAYS = ("2026-02-01", "2026-03-01", "2026-03-20")


class Profile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    seat_preference: Literal["aisle", "window", "middle"] | None = None
    channel: Literal["email", "phone"] | None = Field(default=None, json_schema_extra={"note_subject": "contact"})


def note(text: str = "Prefers aisle seats.", **values: Any) -> Note:
    given = {"id": text, "text": text, "date": DAYS[-1], "valid_from": DAYS[0], "confirmations": DAYS[1:]}
    return Note.model_validate(given | values)


def settled(*notes: Note, profile: dict[str, Any] | None = None, provenance: dict[str, Any] | None = None) -> Any:
    return settle({found.id: found for found in notes}, profile, provenance, Profile, TODAY)


def test_a_preference_confirmed_often_and_for_long_becomes_a_field() -> None:
    made = settled(note())

    assert made.profile == {"seat_preference": "aisle"}
    assert made.provenance["seat_preference"]["note_id"] == "Prefers aisle seats."
    assert made.notes["Prefers aisle seats."].superseded_by == "profile:seat_preference"


@pytest.mark.parametrize(
    "unripe",
    [
        note(confirmations=DAYS[2:], valid_from=None),
        note(valid_from="2026-03-10", confirmations=("2026-03-15",)),
        note(expires_at="2027-01-01"),
        note(origin="tool"),
        note(kind="constraint"),
        note(conflicts_with=("another",)),
        note(confidence=0.3),
        note(status="superseded"),
    ],
)
def test_what_is_rare_new_volatile_or_disputed_stays_a_note(unripe: Note) -> None:
    assert promotable([unripe], Profile, TODAY) == []


@pytest.mark.parametrize(
    "text",
    ["Prefers aisle seats on long flights.", "Prefers aisle or window seats.", "Avoids aisle seats.", "Likes aisles."],
)
def test_a_condition_a_choice_or_a_denial_is_not_a_field(text: str) -> None:
    assert promotable([note(text)], Profile, TODAY) == []


def test_a_schema_can_say_which_notes_are_about_a_field() -> None:
    assert promotable([note("Contact: email.")], Profile, TODAY) == [Promotion("Contact: email.", "channel", "email")]


def test_what_a_trusted_system_has_set_is_never_changed() -> None:
    made = settled(note(), profile={"seat_preference": "window"})

    assert (made.profile, made.promoted) == ({"seat_preference": "window"}, ())


def test_two_ripe_notes_that_compete_for_a_field_are_both_left() -> None:
    assert promotable([note(), note("Prefers window seats.")], Profile, TODAY) == []


def test_a_newer_note_takes_the_field_back() -> None:
    first = settled(note(), profile={"name": "Ada"})
    newer = note("Prefers window seats.", date="2026-05-01", valid_from=None, confirmations=())

    after = plan([newer], list(first.notes.values())).after()
    made = settle(after, first.profile, first.provenance, Profile, "2026-05-01")

    assert (made.profile, made.provenance) == ({"name": "Ada"}, {})
    assert [one.field for one in made.reverted] == ["seat_preference"]
    assert after["Prefers window seats."].status == "active"


def test_saying_it_again_confirms_the_promoted_note_and_makes_no_new_one() -> None:
    first = settled(note())

    made = plan([note(date="2026-05-01", id="again")], list(first.notes.values()))

    assert (made.added, list(made.merged)) == ([], ["again"])


def test_a_profile_that_was_set_anew_gives_the_note_back() -> None:
    promoted = settled(note()).notes["Prefers aisle seats."]

    assert given_back({promoted.id: promoted}, {"name": "Ada"})[promoted.id].status == "active"
    assert given_back({promoted.id: promoted}, {"seat_preference": "window"}) == {}


def test_confidence_fades_unless_the_note_is_a_rule_of_the_user() -> None:
    year = "2027-03-20"

    assert confidence_on(note(kind="habit"), year) == pytest.approx(0.5)
    assert confidence_on(note(expires_at="2026-05-09"), "2026-04-14") == pytest.approx(0.5, abs=0.01)
    assert confidence_on(note(kind="constraint"), year) == 1


def test_a_volatile_note_that_is_said_again_lives_on() -> None:
    known = note(
        "Has a voucher.", id="n", date="2026-01-01", expires_at="2026-01-31", valid_from=None, confirmations=()
    )
    again = known.model_copy(update={"id": "m", "date": "2026-01-20", "expires_at": "2026-02-01"})

    after = plan([again], [known], today="2026-01-20").after()

    assert after["n"].expires_at == "2026-02-19"
