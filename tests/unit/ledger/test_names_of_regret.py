"""Names of what left, and counts of what was needed again."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from conversation import call
from everthread.ledger.events import Evicted, Masked, Recalled, Regret
from everthread.ledger.regrets import call_name, calls_behind, counts, said_name


def test_a_call_has_one_name_whatever_the_order_of_its_arguments() -> None:
    assert call_name("look", {"a": 1, "b": [2]}) == call_name("look", {"b": [2], "a": 1})


@pytest.mark.parametrize(("name", "arguments"), [("look", {"a": 2}), ("see", {"a": 1}), ("look", {"a": "1"})])
def test_another_call_has_another_name(name: str, arguments: dict[str, object]) -> None:
    assert call_name(name, arguments) != call_name("look", {"a": 1})


def test_a_statement_has_one_name_in_other_words_of_no_subject() -> None:
    said = "My budget for the hotel in Lyon is 900 euros."

    assert said_name(said) == said_name("the hotel in Lyon: my budget is 900 Euros!")
    assert said_name(said) != said_name("My budget for the hotel in Lyon is 800 euros.")


@pytest.mark.parametrize("text", ["yes please", "The second one.", "", "long word list " * 300])
def test_a_short_answer_and_a_pasted_document_restate_nothing(text: str) -> None:
    assert said_name(text) == ""


def test_a_result_is_named_by_the_call_that_it_answers() -> None:
    messages = [AIMessage("", tool_calls=[call("look", "c1", n=1), call("look", "c2", n=2)])]
    results = [ToolMessage("ok", tool_call_id="c2", id="r2")]

    assert calls_behind(results, messages) == {call_name("look", {"n": 2}): "r2"}


def test_regrets_are_counted_beside_what_left() -> None:
    told = [
        Evicted(policy="p", reason="r", message_ids=["a", "b"], tokens_before=2, tokens_after=1, budget=1),
        Masked(reason="r", message_id="c", handle="h", tokens_before=2, tokens_after=1),
        Masked(reason="again", message_id="c", handle="h", tokens_before=2, tokens_after=1),
        Recalled(message_ids=["a"], tokens=1, searched=1),
        Regret(why="repeated_call", message_ids=["c"], left="masked", left_turn=1),
    ]

    found = counts(told)

    assert (found["left"], found["regrets"], found["recalled"]) == (3, 1, 1)
    evicted = told[0].model_copy(update={"message_ids": ["c"]})
    assert counts([*told, evicted])["left"] == 3  # the one that was masked before
    assert found["by_reason"]["repeated_call"] == 1
