"""The generated notes: every family in every language, and halves that share no family."""

from collections import Counter

import pytest

from benchmarks.notes.__main__ import wilson
from benchmarks.notes.generator import HALVES, LANGUAGES, Half, notes, practice, wordings


def test_no_family_is_in_both_halves() -> None:
    tuning, reporting = ({note.family for note in notes(half)} for half in HALVES)

    assert not tuning & reporting


@pytest.mark.parametrize("half", HALVES)
def test_every_language_has_as_many_families(half: Half) -> None:
    families = Counter(language for _, language in {(note.family, note.language) for note in notes(half)})

    assert set(families) == set(LANGUAGES)
    assert len(set(families.values())) == 1


def test_practice_repeats_no_note_of_a_half() -> None:
    held = {note.text for half in HALVES for note in notes(half)}

    assert not held & {note.text for note in practice()}


def test_a_choice_stands_for_either() -> None:
    assert wordings("{Pay|Book} the {train|bus}.") == [
        "Pay the train.",
        "Pay the bus.",
        "Book the train.",
        "Book the bus.",
    ]


def test_a_share_has_the_interval_of_wilson() -> None:
    assert wilson(8, 10) == pytest.approx((0.490, 0.943), abs=0.001)
