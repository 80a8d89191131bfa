"""The budget."""

import pytest

from everthread.errors import BudgetError
from everthread.window.budget import Budget, reply_reserve, stepped_down


def test_the_budget_is_what_the_window_leaves_times_the_safety_fraction() -> None:
    budget = Budget(272_000, 16_000, {"system": 1_000, "tools": 3_000}, safety_fraction=0.8)

    assert budget.tokens == 201_600


def test_the_breakdown_adds_up_to_the_window() -> None:
    budget = Budget(8_000, 1_000, {"system": 500, "tools": 250}, safety_fraction=0.9)

    assert sum(budget.breakdown({"summary": 10, "history": 300}).values()) == 8_000


def test_a_window_that_cannot_hold_the_system_prompt_is_refused_with_the_numbers() -> None:
    with pytest.raises(BudgetError, match=r"`window` is 1,000 tokens .* system 900, tools 200, reply reserve 125"):
        Budget(1_000, 125, {"system": 900, "notes": 0, "tools": 200}).check()


@pytest.mark.parametrize(("window", "reserve"), [(8_000, 1_000), (400_000, 4_096)])
def test_the_default_reply_reserve_is_an_eighth_of_the_window_at_most_4096(window: int, reserve: int) -> None:
    assert reply_reserve(window, None) == reserve


def test_a_reply_reserve_above_the_models_window_is_refused() -> None:
    with pytest.raises(BudgetError, match="max_output_tokens"):
        reply_reserve(4_000, 5_000)


def test_a_refusal_takes_a_tenth_off_what_was_sent() -> None:
    assert stepped_down(10_000, 8_000) == 7_200


def test_a_refusal_that_names_its_sizes_takes_off_what_is_needed() -> None:
    assert stepped_down(10_000, 8_000, reported=(8_000, 4_000)) == 3_600
