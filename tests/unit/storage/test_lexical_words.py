"""What a word is, and which text counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.storage.lexical import dates, words
from everthread.storage.lexical.texts import texts
from everthread.storage.lexical.words import LONGEST_WORD, MOST_WORDS, document_words, query_words


@given(st.text(st.characters(), max_size=60))
def test_what_a_text_says_finds_it(text: str) -> None:
    document = document_words([text])

    assert set(query_words(text)) <= set(document)


@given(st.text(st.characters()))
def test_a_word_has_only_characters_that_the_index_keeps_whole(text: str) -> None:
    words = [*document_words([text]), *query_words(text)]

    assert all(char.isalnum() or char == "¤" or ord(char) > 127 for word in words for char in word)
    assert all(0 < len(word) <= LONGEST_WORD for word in words)
    assert not any("_" in word or "²" in word for word in words)


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
    assert set(query_words(asked)) & set(document_words(["2025-03-04T10:00:00.123+00:00"]))


@pytest.mark.parametrize("asked", ["2024-03-04", "April 4", "March 5", "March 2024", "in April"])
def test_another_date_is_not_found(asked: str) -> None:
    assert "¤20250304" not in query_words(asked)
    assert not {word for word in query_words(asked) if word != "¤d0304"} & set(document_words(["2025-03-04"]))


@pytest.mark.parametrize("text", ["2025-13-45", "Feb 30", "99 May 2025", "may I march on?"])
def test_what_is_no_date_is_ordinary_words(text: str) -> None:
    assert not [word for word in query_words(text) if word.startswith(("¤d", "¤2"))]


PIECES = st.sampled_from(
    [
        "2025",
        "3",
        "04",
        "12",
        "31st",
        "-",
        "/",
        ".",
        " ",
        "  ",
        ",",
        "t10:20z",
        "march",
        "may",
        "sept.",
        "of",
        "月",
        "日",
        "年",
    ]
)


@given(st.lists(PIECES, max_size=9).map("".join))
def test_the_cheaper_patterns_find_the_same_dates(text: str) -> None:
    cheap = dates._pattern(text)

    assert [match.groupdict() for match in cheap.finditer(text)] == [
        {name: match[name] for name in cheap.groupindex} for match in dates._DATE.finditer(text)
    ]


@given(st.lists(PIECES, max_size=9).map("".join))
def test_a_text_without_the_name_of_a_month_needs_no_search_for_one(text: str) -> None:
    if "月" not in text and dates.MONTHS.isdisjoint(words._cut(text, pairs_only=False)):
        assert dates.date_words(text, has_month=False) == dates.date_words(text)


def test_a_timestamp_leaves_no_meaningless_digits() -> None:
    assert set(document_words(["2025-03-04T10:20:30+00:00"])) == {"¤m03", "¤d0304", "¤y202503", "¤20250304", "2025"}


@pytest.mark.parametrize(
    "text",
    [
        "2025-03-04t10:20:30.5+00:00",
        "2025-03-04t10:20z",
        "2025-13-04t10:20",
        "2025-03-04t1",
        "0000-01-01t10:20",
        "2025-03-04",
    ],
)
def test_a_timestamp_alone_has_the_words_it_has_in_a_text(text: str) -> None:
    words, rest = dates.date_words(text)

    assert (tuple(words), rest) == dates._date_words(text, has_month=True)


def test_scripts_without_spaces_are_found_by_any_part() -> None:
    document = document_words(["東京タワーに行きました"])

    assert all(set(query_words(part)) <= set(document) for part in ("東京", "タワー", "行", "東"))
    assert not set(query_words("大阪")) & set(document)


def test_a_long_query_keeps_its_longest_words() -> None:
    words = query_words(" ".join(f"w{number}" for number in range(5_000)) + " zeppelin")

    assert len(words) == MOST_WORDS
    assert "zeppelin" in words


VALUE = {
    "title": "one",
    "count": 3,
    "message": {"content": [{"type": "text", "text": "two", "id": "x"}, "three"], "name": "four"},
    "tags": ["five", "six"],
}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (None, ["one", "two", "three", "four", "five", "six"]),
        (["$"], ["one", "two", "three", "four", "five", "six"]),
        (["message.content"], ["two", "three"]),
        (["title", "count"], ["one", "3"]),
        (["tags[*]"], ["five", "six"]),
        (["tags[0]", "tags[-1]", "tags[7]"], ["five", "six"]),
        (["message.*"], ["two", "three", "four"]),
        (["{title,count}"], ["one", "3"]),
        (["missing.path", "title.deeper"], []),
        ([], []),
    ],
)
def test_paths_name_the_text(paths: list[str] | None, expected: list[str]) -> None:
    assert texts(VALUE, paths) == expected


def test_data_is_not_text() -> None:
    assert texts({"image": "QUJD" * 1000, "text": "words " * 200, "han": "東" * 1000}, None)[0].startswith("words")
    assert len(texts({"image": "QUJD" * 1000, "han": "東" * 1000}, None)) == 1


def test_deep_values_are_read() -> None:
    value: object = "bottom"
    for _ in range(5_000):
        value = {"a": [value]}

    assert texts(value, None) == ["bottom"]
