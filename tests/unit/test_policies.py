"""Eviction policies."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from conversation import conversation, tool_round
from everthread.state.marks import synthetic
from everthread.window.policies import head_tail, salience, sliding_window, token_budget
from everthread.window.turns import split


def ten_each(messages: list[BaseMessage]) -> int:
    return 10 * len(messages)


def test_sliding_window_keeps_from_the_nth_question_from_the_end() -> None:
    turns = split(
        [
            HumanMessage("1"),
            AIMessage("a"),
            *tool_round(["x"]),
            HumanMessage("2"),
            AIMessage("b"),
            HumanMessage("3"),
            AIMessage("c"),
        ]
    )

    assert sliding_window(turns, 2) == [0]


@pytest.mark.parametrize("keep", [3, 4])
def test_sliding_window_with_fewer_turns_keeps_all(keep: int) -> None:
    assert sliding_window(split(conversation(3)), keep) == []


def test_sliding_window_without_a_question_keeps_all() -> None:
    assert sliding_window(split([AIMessage("a"), AIMessage("b")]), 1) == []


def test_head_tail_moves_a_cut_inside_a_turn_forward() -> None:
    assert head_tail(split(conversation(4)), 3) == [0, 1, 2]


def test_head_tail_keeps_the_newest_turn_whatever_its_length() -> None:
    assert head_tail(split(conversation(2, tool_words=1)), 1) == [0]


def test_token_budget_keeps_the_longest_run_of_newest_turns() -> None:
    turns = split(conversation(5))

    assert token_budget(turns, 45, ten_each) == [0, 1, 2]


def test_token_budget_keeps_the_newest_turn_when_it_is_too_large() -> None:
    turns = split(conversation(3))

    assert token_budget(turns, 5, ten_each) == [0, 1]


def test_salience_keeps_the_turn_that_the_question_is_about() -> None:
    talk = [
        HumanMessage("the printer in Leeds jams"),
        AIMessage("noted"),
        HumanMessage("thanks"),
        AIMessage("fine"),
        HumanMessage("lunch"),
        AIMessage("soup"),
        HumanMessage("what about the printer in Leeds?"),
    ]

    turns = split(talk)

    assert salience(turns, 50, ten_each) == [1]


def test_a_suffix_never_begins_with_a_synthetic_message() -> None:
    turns = split([HumanMessage("1"), synthetic("recalled", "old"), AIMessage("a"), HumanMessage("2"), AIMessage("b")])

    assert token_budget(turns, 40, ten_each) == [0]
    assert sliding_window(turns, 1) == head_tail(turns, 4) == [0]


def test_a_system_message_takes_its_share_and_is_no_turn_of_its_own() -> None:
    turns = split([SystemMessage("s"), *conversation(3)])

    assert token_budget(turns, 50, ten_each) == [0, 1]
    assert sliding_window(turns, 2) == [0, 1]
    assert head_tail(turns, 4) == [0, 1]


def test_a_result_that_came_late_stays_with_its_call() -> None:
    asked, result = tool_round(["x"])
    turns = split([HumanMessage("1"), asked, HumanMessage("2"), result, AIMessage("b")])

    assert token_budget(turns, 30, ten_each) == [0]
