"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.memory.text.sentences import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "We met at 5 p.m. near St. Mary, e.g. by bus. Then home.",
            ["We met at 5 p.m. near St. Mary, e.g. by bus.", "Then home."],
        ),
        ('He said "Go." I went.', ['He said "Go."', "I went."]),
        ("It cost 3.50 in all.", ["It cost 3.50 in all."]),
        ("First line\nsecond line", ["First line", "second line"]),
        ("- milk\n2. eggs and ham", ["milk", "eggs and ham"]),
        ("行きました。明日も行きます！", ["行きました。", "明日も行きます！"]),
        ("[a photo] Never book it.", ["[a photo]", "Never book it."]),
        ("Ask J. Smith.", ["Ask J. Smith."]),
        ("Spätestens am 25. muss sie da sein. Danke.", ["Spätestens am 25. muss sie da sein.", "Danke."]),
        ("I am 25. Hello.", ["I am 25.", "Hello."]),
        (
            "We live in San Diego, CA. Under 30. Team 5. Hi.",
            ["We live in San Diego, CA.", "Under 30.", "Team 5.", "Hi."],
        ),
        ("Todo pasa por la Sra. Gil. Gracias.", ["Todo pasa por la Sra. Gil.", "Gracias."]),
        ("", []),
    ],
)
def test_a_text_is_cut_into_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_semicolons_end_a_sentence_when_asked_for() -> None:
    assert sentences("Aisle; no bags.", at_semicolons=True) == ["Aisle;", "no bags."]


@given(st.text(max_size=200))
def test_sentences_are_parts_of_the_text_in_order(text: str) -> None:
    place = 0
    for sentence in sentences(text, at_semicolons=True):
        place = text.index(sentence, place) + len(sentence)
