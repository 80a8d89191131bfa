"""What a word is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.memory.text.words import (
    LONGEST_WORD,
    MOST_WORDS,
    content_words,
    index_words,
    query_words,
    same_start,
    stem,
    words,
)


@given(st.text(st.characters(), max_size=60))
def test_what_a_text_says_finds_it(text: str) -> None:
    # A month in a question is looked for as a date too.
    asked = {word for word in query_words(text) if not word.startswith("¤")}
    assert asked <= set(index_words([text]))


@given(st.text(st.characters()))
def test_a_word_has_only_letters_and_digits(text: str) -> None:
    found = [*index_words([text]), *query_words(text)]

    assert all(char.isalnum() or char == "¤" or ord(char) > 127 for word in found for char in word)
    assert all(0 < len(word) <= LONGEST_WORD for word in found)
    assert not any("_" in word or "²" in word for word in found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Zürich", "zurich"),
        ("CAFÉ", "cafe"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("Ａ１", "a1"),
        ("ёлка", "елка"),
        ("مُحَمَّد", "محمد"),
        ("flights", "flight"),
        ("booking", "booked"),
        ("boxes", "box"),
        ("cities", "city"),
        ("planned", "plan"),
        ("hoping", "hope"),
        ("2025/3/4", "2025-03-04"),
        ("4th of March, 2025", "march 4, 2025"),
        ("2025年3月4日", "2025-03-04"),
    ],
)
def test_spellings_of_one_word_agree(one: str, other: str) -> None:
    assert query_words(one) == query_words(other)


@pytest.mark.parametrize(
    ("one", "other"), [("need", "ne"), ("string", "str"), ("business", "busines"), ("March 4", "March 5")]
)
def test_different_words_stay_apart(one: str, other: str) -> None:
    assert query_words(one) != query_words(other)


@pytest.mark.parametrize(
    "asked", ["2025-03-04", "March 4", "4 March 2025", "Mar 4th", "March 2025", "in March", "2025"]
)
def test_a_date_is_found_however_it_is_asked_for(asked: str) -> None:
    assert set(query_words(asked)) & set(index_words(["2025-03-04T10:00:00.123+00:00"]))


@pytest.mark.parametrize("asked", ["2024-03-04", "April 4", "March 5", "March 2024", "in April"])
def test_another_date_is_not_found(asked: str) -> None:
    assert not {word for word in query_words(asked) if word != "¤d0304"} & set(index_words(["2025-03-04"]))


@pytest.mark.parametrize("text", ["2025-13-45", "Feb 30", "99 May 2025", "may I march on?"])
def test_what_is_no_date_is_ordinary_words(text: str) -> None:
    assert not [word for word in query_words(text) if word.startswith(("¤d", "¤2"))]


def test_a_timestamp_leaves_no_meaningless_digits() -> None:
    assert set(index_words(["2025-03-04T10:20:30+00:00"])) == {"¤m03", "¤d0304", "¤y202503", "¤20250304", "2025"}


def test_scripts_without_spaces_are_found_by_any_part() -> None:
    document = set(index_words(["東京タワーに行きました"]))

    assert all(set(query_words(part)) <= document for part in ("東京", "タワー", "行", "東"))
    assert not set(query_words("大阪")) & document


def test_a_long_query_keeps_its_longest_words() -> None:
    found = query_words(" ".join(f"w{number}" for number in range(5_000)) + " zeppelin")

    assert len(found) == MOST_WORDS
    assert "zeppelin" in found


def test_an_index_gets_words_in_order_and_as_often_as_they_stand_there() -> None:
    assert index_words(["one two", "one"]) == ["one", "two", "one"]


def test_an_apostrophe_adds_nothing_to_a_word() -> None:
    assert words("Nora's sister didn’t say") == ["nora", "sister", "didn", "say"]


def test_content_words_hold_a_subject() -> None:
    assert content_words("What is the price of the hotel? I don't know the hotel.") == ["price", "hotel", "know"]


def test_words_of_other_scripts_have_no_english_stem() -> None:
    assert [stem(word) for word in ("straßen", "b2bs", "東京")] == ["straßen", "b2bs", "東京"]


def test_a_common_beginning_stops_at_the_first_difference_and_at_the_shorter_end() -> None:
    assert same_start("abcd", "abxd") == 2
    assert same_start("ab", "abc") == 2
