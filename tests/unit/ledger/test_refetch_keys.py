"""Names of what left, and refetch_counts of what was needed again."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from conversation import call
from everthread.ledger.events import Evicted, Masked, Recalled, Refetch
from everthread.ledger.refetches import call_key, refetch_counts, results_by_call, statement_key


def test_a_call_has_one_name_whatever_the_order_of_its_arguments() -> None:
    assert call_key("look", {"a": 1, "b": [2]}) == call_key("look", {"b": [2], "a": 1})


@pytest.mark.parametrize(("name", "arguments"), [("look", {"a": 2}), ("see", {"a": 1}), ("look", {"a": "1"})])
def test_another_call_has_another_name(name: str, arguments: dict[str, object]) -> None:
    assert call_key(name, arguments) != call_key("look", {"a": 1})


def test_a_statement_has_one_name_in_other_words_of_no_subject() -> None:
    said = "My budget for the hotel in Lyon is 900 euros."

    assert statement_key(said) == statement_key("the hotel in Lyon: my budget is 900 Euros!")
    assert statement_key(said) != statement_key("My budget for the hotel in Lyon is 800 euros.")


@pytest.mark.parametrize("text", ["yes please", "The second one.", "", "long word list " * 300])
def test_a_short_answer_and_a_pasted_document_restate_nothing(text: str) -> None:
    assert statement_key(text) == ""


def test_a_result_is_named_by_the_call_that_it_answers() -> None:
    messages = [AIMessage("", tool_calls=[call("look", "c1", n=1), call("look", "c2", n=2)])]
    results = [ToolMessage("ok", tool_call_id="c2", id="r2")]

    assert results_by_call(results, messages) == {call_key("look", {"n": 2}): "r2"}


def test_refetches_are_counted_beside_what_left() -> None:
    told = [
        Evicted(policy="p", reason="r", message_ids=["a", "b"], tokens_before=2, tokens_after=1, budget=1),
        Masked(reason="r", message_id="c", handle="h", tokens_before=2, tokens_after=1),
        Masked(reason="again", message_id="c", handle="h", tokens_before=2, tokens_after=1),
        Recalled(message_ids=["a"], tokens=1, searched=1),
        Refetch(why="repeated_call", message_ids=["c"], left="masked", left_turn=1),
    ]

    found = refetch_counts(told)

    assert (found["left"], found["refetches"], found["recalled"]) == (3, 1, 1)
    evicted = told[0].model_copy(update={"message_ids": ["c"]})
    assert refetch_counts([*told, evicted])["left"] == 3  # the one that was masked before
    assert found["by_reason"]["repeated_call"] == 1
