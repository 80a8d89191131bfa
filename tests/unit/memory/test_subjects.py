"""The one list of what has one value at a time."""

import pytest

from everthread.memory.distill.attributes import attributes, subject_of
from everthread.memory.subjects import EXCLUSIVE, SUBJECTS, named, value_of

_REQUESTS = (
    "A window seat in the exit row, business class, please.",
    "A cheap 4-star hotel with a king bed, a high floor and non-smoking rooms.",
    "A compact car, an automatic car or a hybrid car.",
)


@pytest.mark.parametrize(
    ("subject", "words", "value"),
    [
        ("seat", "aisle seats", "aisle"),
        ("cabin", "coach class", "economy"),
        ("cabin", "Premium Economy", "premium economy"),
        ("stars", "four-star hotels", "4"),
        ("price", "inexpensive", "low"),
        ("language", "German", "german"),
        ("contact", "email", "email"),
        ("seat", "aisle or window", ""),
        ("seat", "middle of nowhere", ""),
        ("budget", "900", ""),
    ],
)
def test_words_name_one_value_or_none(subject: str, words: str, value: str) -> None:
    assert value_of(subject, words) == value


@pytest.mark.parametrize("name", sorted(EXCLUSIVE - {"stars"}))
def test_every_subject_goes_by_its_name(name: str) -> None:
    assert named(name.split()) == name


def test_a_subject_may_have_other_names() -> None:
    assert (named(["class"]), named(["home", "city"]), named(["star"]), named(["weather"])) == (
        "cabin",
        "home",
        "stars",
        "",
    )


@pytest.mark.parametrize("name", sorted(name for name, subject in SUBJECTS.items() if subject.request))
def test_what_a_request_names_is_a_value_that_consolidation_knows(name: str) -> None:
    told = {one.phrase for text in _REQUESTS for one in attributes(text) if one.subject == name}

    assert told
    assert all(value_of(name, phrase) for phrase in told)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Prefers aisle seats.", "seat"),
        ("Lives in the middle of town.", ""),
        ("Wants a table by the window.", ""),
        ("Aisle seats and five-star hotels.", ""),
    ],
)
def test_a_note_is_about_a_subject_only_when_it_names_a_value_of_it(text: str, subject: str) -> None:
    assert subject_of(text) == subject
