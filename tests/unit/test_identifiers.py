"""The index of identifiers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from conversation import call
from everthread.state import Identifier
from everthread.window.identifiers import identifiers_in, merged, render_identifiers, shown_in, within
from everthread.window.tokens import counter_for

COUNTER = counter_for("gpt-4o")


@pytest.mark.parametrize(
    "identifier",
    [
        "https://intra.example.org/a?b=1",
        "ann@example.org",
        "src/app/main.py",
        "2026-03-04",
        "QX417",
        "#W2378156",
        "0x80070057",
        "credit_card_4421486",
        "INC-4F7K2M",
        "$1,249.50",
        "SFO",
        "BOHQZR",
        "555-010-4477",
        "Response.iter_lines",
    ],
)
def test_an_identifier_is_found_whole(identifier: str) -> None:
    assert identifier in [text for text, _ in identifiers_in(f"see {identifier}, please")]


def test_short_values_of_json_are_identifiers() -> None:
    assert "144 Lake Road" in [text for text, _ in identifiers_in('{"street": "144 Lake Road"}')]


def test_small_numbers_and_plain_words_are_none() -> None:
    assert identifiers_in("we need 2 rooms for 12 nights, nothing else") == []


@given(st.from_regex(r"[A-Z0-9-]{1,12}(\.[0-9]{1,3})?[.,:;]{0,2}", fullmatch=True))
def test_an_identifier_on_its_own_is_found_as_between_brackets(word: str) -> None:
    assert identifiers_in(word) == identifiers_in(f"[{word}]")  # brackets keep it from the quick look


def test_what_follows_a_point_is_no_number_of_its_own() -> None:
    assert identifiers_in(".500 and QX417.") == [("QX417", 1.5)]


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("to:ann.lee@example.org;", ["ann.lee@example.org"]),
        ("(../src/app/*.py)", ["../src/app/*.py"]),
        ("foo-HAT-003", ["HAT-003"]),
        ("1.234.567,89", ["1.234.567"]),
        (f"{'a' * 300}@example.org", []),
        (f"{'a-' * 300}{'b.' * 300}{'c/' * 300} QX417", ["QX417"]),
    ],
)
def test_long_words_hold_what_short_ones_hold(text: str, identifiers: list[str]) -> None:
    assert [identifier for identifier, _ in identifiers_in(text)] == identifiers


def test_what_the_user_said_or_a_call_used_weighs_more() -> None:
    index = merged([], [ToolMessage("QX417 and ZK900", tool_call_id="c"), HumanMessage("take QX417")])

    weights = {entry.text: entry.weight for entry in index}

    assert weights["QX417"] > weights["ZK900"]


def test_arguments_of_calls_are_indexed() -> None:
    call = {"name": "get", "args": {"order": "#W2378156"}, "id": "c", "type": "tool_call"}

    assert [entry.text for entry in merged([], [AIMessage("", tool_calls=[call])])] == ["#W2378156"]


def test_a_full_index_keeps_what_is_mentioned_often() -> None:
    index = [Identifier(text="A100", weight=1.0, mentions=9), Identifier(text="B200", weight=1.0)]

    assert [entry.text for entry in within(index, 8, COUNTER)] == ["A100"]


_TEXTS = st.text(min_size=1, max_size=9).filter(lambda told: told.split() == [told])
_ENTRIES = st.lists(st.builds(Identifier, text=_TEXTS, weight=st.floats(0.1, 2)))


@given(_ENTRIES, st.integers(0, 60))
def test_an_index_holds_its_limit(index: list[Identifier], limit: int) -> None:
    assert COUNTER.text(render_identifiers(within(index, limit, COUNTER))) <= limit


@given(_ENTRIES, st.integers(0, 60), st.text("ab1 ", max_size=20))
def test_an_index_leaves_out_what_the_prompt_shows_in_any_case(
    index: list[Identifier], limit: int, visible: str
) -> None:
    hidden = [entry for entry in index if entry.text not in visible]
    # What is visible still tells how old the others are.
    newest = [Identifier(text="a" * 500, weight=0, last=max((entry.last for entry in index), default=0))]

    shown = within([*index, *newest], limit, COUNTER, is_shown=visible.__contains__)

    assert shown == within([*hidden, *newest], limit, COUNTER)


@pytest.mark.parametrize(
    ("told", "is_shown"),
    [
        ("QX417", True),
        ("2026-05-03", True),
        ("84.50", True),
        ("Lyon", True),
        ("KL1234", True),
        ("QX418", False),
        ("Graz", False),
    ],
)
def test_an_identifier_is_looked_for_in_texts_and_calls(told: str, is_shown: bool) -> None:
    messages = [
        HumanMessage("Book Lyon on 2026-05-03T10:00Z", id="a"),
        AIMessage("", id="b", tool_calls=[call("book", "c", code="KL1234")]),
        ToolMessage("84.50 euros", tool_call_id="c", id="d"),
    ]

    assert shown_in("Reference QX417.", messages)(told) is is_shown
