"""Which text of a value counts."""

import pytest

from everthread.storage.texts import texts

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
