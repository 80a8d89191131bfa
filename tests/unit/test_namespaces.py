"""Namespaces and the encoding of ids."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.errors import SettingsError
from everthread.state import namespaces

_HOSTILE = st.one_of(
    st.text(), st.sampled_from(["", ".", "a.b", "%", "*", "~", "1", "10", "1x", "é", "e\u0301", "x" * 5000])
)


@given(_HOSTILE)
def test_any_id_is_a_legal_label(identifier: str) -> None:
    label = namespaces.label(identifier)

    assert label
    assert not set(label) & set(".%*[? \x00")


@given(_HOSTILE, _HOSTILE)
def test_two_ids_never_share_a_label(one: str, other: str) -> None:
    assert (namespaces.label(one) == namespaces.label(other)) == (one == other)


def test_plain_ids_stay_readable() -> None:
    assert namespaces.notes("u-1") == ("users", "u-1", "notes")


@given(_HOSTILE, _HOSTILE)
def test_no_namespace_lies_below_that_of_another_id(one: str, other: str) -> None:
    below = ".".join(namespaces.notes(one)).startswith(".".join(namespaces.user(other)) + ".")

    assert below == (one == other)


@pytest.mark.parametrize("bad", ["", None, 7, b"a", "a\x00", "\ud800", ("a",)])
def test_an_id_that_no_store_can_hold_is_refused_by_name(bad: Any) -> None:
    with pytest.raises(SettingsError, match="`thread_id`"):
        namespaces.checked("thread_id", bad)


@pytest.mark.parametrize("good", [" ", ".", "%", "\n", "é", "x" * 5000, "😀", "\u200b"])
def test_any_other_id_is_taken_as_it_is(good: str) -> None:
    assert namespaces.checked("thread_id", good) == good
