"""What consolidation decides by rules: every note accounted for, and nothing but words of the user."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everthread.memory.consolidate import operations, plan
from everthread.memory.consolidate.plan import MOST_CONFIRMATIONS, MOST_SOURCES, confirmed
from everthread.memory.consolidate.rules import BLOCKED, MEMORY_FULL
from everthread.state import Note, Source, namespaces

EARLY, LATE, LATEST = "2026-01-01", "2026-02-01", "2026-03-01"
WORDS = ["Prefers aisle seats.", "Prefers window seats.", "Is vegetarian.", "Is vegan.", "Likes tea.", "Hates tea."]


def note(text: str, date: str = EARLY, **values: object) -> Note:
    source = Source(thread_id="t", message_ids=(f"{text}-{date}",), quote=text)
    return Note.model_validate({"id": f"{text}-{date}", "text": text, "date": date, "sources": (source,)} | values)


def active(notes: dict[str, Note]) -> list[str]:
    return sorted(found.text for found in notes.values() if found.status == "active")


def test_the_later_value_wins_and_the_older_one_stays_as_history() -> None:
    after = plan([note("Prefers window seats.", LATE)], [note("Prefers aisle seats.")]).after()

    old = after[f"Prefers aisle seats.-{EARLY}"]
    assert active(after) == ["Prefers window seats."]
    assert (old.status, old.valid_to, old.superseded_by) == ("superseded", LATE, f"Prefers window seats.-{LATE}")


def test_the_session_wins_on_the_same_day() -> None:
    assert active(plan([note("Is vegan.")], [note("Is vegetarian.")]).after()) == ["Is vegan."]


def test_a_note_said_before_what_is_known_becomes_history_at_once() -> None:
    after = plan([note("Prefers aisle seats.", EARLY)], [note("Prefers window seats.", LATE)]).after()

    assert active(after) == ["Prefers window seats."]
    assert len(after) == 2


def test_a_stale_value_that_is_repeated_does_not_come_back() -> None:
    known = list(plan([note("Is vegan.", LATE)], [note("Is vegetarian.", EARLY)]).after().values())

    after = plan([note("Is vegetarian.", "2026-01-15")], known).after()

    assert active(after) == ["Is vegan."]


def test_a_stale_value_comes_back_when_the_user_says_it_again_later() -> None:
    known = list(plan([note("Is vegan.", LATE)], [note("Is vegetarian.", EARLY)]).after().values())

    after = plan([note("Is vegetarian.", LATEST)], known).after()

    assert active(after) == ["Is vegetarian."]


def test_what_a_tool_repeats_never_brings_a_stale_value_back() -> None:
    known = list(plan([note("Is vegan.", LATE)], [note("Is vegetarian.", EARLY)]).after().values())

    assert active(plan([note("Is vegetarian.", LATEST, origin="tool")], known).after()) == ["Is vegan."]


def test_a_retracted_note_is_not_brought_back_by_an_older_session() -> None:
    gone = note("Is vegan.", EARLY, status="retracted", valid_to=LATE)

    assert active(plan([note("Is vegan.", "2026-01-15")], [gone]).after()) == []


def test_a_change_of_mind_inside_one_session_ends_with_the_last_word() -> None:
    said = [note("Prefers aisle seats.", EARLY), note("Prefers window seats.", EARLY)]

    assert active(plan(said, []).after()) == ["Prefers window seats."]


def test_what_the_guard_refuses_never_becomes_long_term() -> None:
    made = plan([note("Pays with 4111 1111 1111 1111.")], [])

    assert list(made.dropped.values()) == [BLOCKED]


def test_a_full_memory_keeps_the_note_in_the_session_and_says_so() -> None:
    made = plan([note("Likes jazz.")], [note("Likes tea."), note("Speaks French.")], most=2)

    writes = operations(made, "u", "t")
    assert list(made.kept.values()) == [MEMORY_FULL]
    assert writes == []


def test_a_full_memory_still_takes_a_new_value_of_what_it_knows() -> None:
    made = plan([note("Is vegan.", LATE)], [note("Is vegetarian.", EARLY)], most=1)

    assert active(made.after()) == ["Is vegan."]


def test_an_expired_note_is_deleted() -> None:
    ended = note("Has a voucher.", EARLY, expires_at="2026-02-15")

    made = plan([], [ended], today=LATEST)

    assert made.expired == {ended.id: "expired on 2026-02-15"}
    assert [(write.namespace, write.value) for write in operations(made, "u", "t")] == [(namespaces.notes("u"), None)]


def test_notes_that_may_contradict_each_other_are_both_kept_and_marked() -> None:
    one, two = note("Wants a sauna.", subject="wellness"), note("Wants a massage.", LATE, subject="wellness")

    after = plan([two], [one]).after()

    assert active(after) == ["Wants a massage.", "Wants a sauna."]
    assert (after[one.id].conflicts_with, after[two.id].conflicts_with) == ((two.id,), (one.id,))


def test_confirmations_and_sources_do_not_grow_without_bound() -> None:
    known = note("Likes tea.")
    for day in range(1, 29):
        for month in (2, 3):
            known = confirmed(known, note("Likes tea.", f"2026-{month:02d}-{day:02d}"))

    assert len(known.confirmations) == MOST_CONFIRMATIONS
    assert len(known.sources) == MOST_SOURCES
    assert known.sources[0].message_ids == (f"Likes tea.-{EARLY}",)


NOTES = st.builds(
    note,
    st.sampled_from(WORDS),
    st.sampled_from([EARLY, LATE, LATEST]),
    scope=st.sampled_from(["durable", "durable", "session"]),
    status=st.sampled_from(["active", "active", "retracted"]),
)
LISTS = st.lists(NOTES, max_size=6, unique_by=lambda found: found.id)


@given(LISTS, LISTS)
def test_every_session_note_is_accounted_for_exactly_once(session: list[Note], long_term: list[Note]) -> None:
    made = plan(session, long_term)

    told = [*(found.id for found in made.added), *made.merged, *made.dropped, *made.kept]
    assert sorted(told) == sorted(found.id for found in session)


@given(LISTS, LISTS)
def test_no_value_is_lost_without_one_in_its_place(session: list[Note], long_term: list[Note]) -> None:
    after = plan(session, long_term).after()

    for found in after.values():
        if found.status == "superseded":
            assert found.superseded_by in after
    assert {found.id for found in long_term} <= set(after)
    assert {found.text for found in after.values()} <= {found.text for found in (*session, *long_term)}


@settings(max_examples=100)
@example([note("Prefers aisle seats."), note("Prefers aisle seats.", LATE), note("Prefers window seats.", LATE)], [])
@given(LISTS, LISTS)
def test_a_second_try_changes_nothing(session: list[Note], long_term: list[Note]) -> None:
    after = plan(session, long_term).after()

    assert plan(session, list(after.values())).after() == after


@pytest.mark.parametrize("first", [0, 1])
def test_two_sessions_end_alike_in_either_order(first: int) -> None:
    sessions = [[note("Is vegan.", LATE), note("Likes tea.", LATE)], [note("Is vegetarian."), note("Likes tea.")]]

    after = plan(sessions[first], []).after()
    after = plan(sessions[1 - first], list(after.values())).after()

    assert active(after) == ["Is vegan.", "Likes tea."]
