"""Eviction policies."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conversation import conversation, tool_round
from everthread.window.policies import head_tail, salience, sliding_window, token_budget
from everthread.window.turns import Turn, split


def sizes(turns: list[Turn]) -> list[int]:
    return [10 * len(turn.messages) for turn in turns]


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

    assert token_budget(turns, sizes(turns), 45) == [0, 1, 2]


def test_token_budget_keeps_the_newest_turn_when_it_is_too_large() -> None:
    turns = split(conversation(3))

    assert token_budget(turns, sizes(turns), 5) == [0, 1]


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

    assert salience(turns, sizes(turns), 50) == [1]
