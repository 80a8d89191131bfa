"""Namespaces and the encoding of ids."""

from hypothesis import given
from hypothesis import strategies as st

from everthread.state import namespaces

_HOSTILE = st.one_of(st.text(), st.sampled_from(["", ".", "a.b", "%", "*", "~", "1", "10", "1x", "é", "é", "x" * 5000]))


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
