"""The shapes of codes, which tell a value whatever kind it is of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.memory.learned.shapes import without_codes


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Locker 4711 is mine.", "Locker  0  is mine."),
        ("Writes to ada@post.net", "Writes to  0 "),
        ("The word is winterBerry", "The word is  0 "),
        ("密码改成了Doudou2016，记一下", "密码改成了 0 ,记一下"),
    ],
)
def test_a_code_gives_way_to_a_zero(text: str, rest: str) -> None:
    assert without_codes(text)[0] == rest


@pytest.mark.parametrize("text", ["Prefers aisle seats.", "Likes the iOS app.", "好きな色は青です", ""])
def test_plain_words_are_no_codes(text: str) -> None:
    assert without_codes(text)[1] == []


def test_codes_of_one_shape_are_told_by_the_same_names() -> None:
    assert without_codes("AB-1234x")[1] == without_codes("QZ-9876k")[1]
    assert without_codes("AB-1234x")[1] != without_codes("1234")[1]


@given(st.text())
def test_no_digit_is_left(text: str) -> None:
    assert not set(without_codes(text)[0]) & set("123456789")
