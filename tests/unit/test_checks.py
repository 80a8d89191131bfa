from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from conversation import call, tool_round
from everthread.evals.checks import PromptChecker, broken_pairs, compare
from everthread.state.marks import synthetic
from everthread.window.masking import mask
from everthread.window.tokens import counter_for

COUNTER = counter_for("replay")
SYSTEM = SystemMessage("Be brief.\n\n<memory_policy>…</memory_policy>")
QUESTION = HumanMessage("Where is my order?", id="q")
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}


def checker(window: int = 1_000, reserve: int = 100) -> PromptChecker:
    made = PromptChecker(window=window, reserve=reserve, counter=COUNTER, instructions="Be brief.")
    made.expect([QUESTION])
    return made


def found(*messages: BaseMessage) -> list[str]:
    made = checker()
    made.check(list(messages), [])
    return [violation.what for violation in made.violations]


def test_a_legal_prompt_violates_nothing() -> None:
    assert found(SYSTEM, QUESTION, *tool_round(["c1", "c2"])) == []


def test_a_prompt_may_fill_the_window_up_to_the_reply_reserve_and_not_one_token_more() -> None:
    prompt: list[BaseMessage] = [SYSTEM, QUESTION]
    size = COUNTER.messages(prompt) + COUNTER.tools([TOOL])
    fitting, over = checker(size + 100), checker(size + 99)

    fitting.check(prompt, [TOOL])
    over.check(prompt, [TOOL])

    assert fitting.violations == []
    (violation,) = over.violations
    assert (violation.what, violation.call, violation.tokens) == ("overrun", 1, size)
    assert "it is 1 over the window" in str(violation)


def test_a_result_without_its_call_is_an_orphan() -> None:
    assert found(SYSTEM, QUESTION, ToolMessage("ok", tool_call_id="c1")) == ["orphan_tool_message"]


def test_a_result_that_does_not_follow_its_call_is_an_orphan_and_leaves_the_call_unanswered() -> None:
    asked, answered = tool_round(["c1"])

    orphans, unanswered = broken_pairs([asked, QUESTION, answered])

    assert (orphans, unanswered) == (["c1"], ["c1"])


def test_a_second_result_for_one_call_is_an_orphan() -> None:
    asked, answered = tool_round(["c1"])

    assert broken_pairs([asked, answered, answered]) == (["c1"], [])


def test_each_call_without_a_result_is_counted_also_at_the_end() -> None:
    asked = AIMessage("", tool_calls=[call("look", "c1"), call("look", "c2")])

    assert broken_pairs([QUESTION, asked, ToolMessage("ok", tool_call_id="c2")]) == ([], ["c1"])


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([QUESTION], ["misplaced_system"]),
        ([SystemMessage("Other."), QUESTION], ["misplaced_system"]),
        ([SYSTEM, QUESTION, SYSTEM], ["misplaced_system"]),
        ([SYSTEM], ["missing_question", "missing_anchor"]),
        ([SYSTEM, HumanMessage("Where is my", id="q")], ["missing_question", "missing_anchor"]),
        ([SYSTEM, QUESTION, HumanMessage("Older", id="p")], ["missing_question"]),
        ([SYSTEM, QUESTION, synthetic("recalled", "<recalled>…</recalled>")], []),
    ],
)
def test_head_and_question_are_in_every_prompt(messages: list[BaseMessage], said: list[str]) -> None:
    assert found(*messages) == said


def test_an_anchor_may_be_shortened_but_not_left_out() -> None:
    anchor = HumanMessage("Plan a long trip. " * 200, id="a")
    made = PromptChecker(window=10_000, reserve=100, counter=COUNTER, instructions="")
    made.expect([anchor, QUESTION])

    made.check([SYSTEM, mask(anchor, 50, COUNTER), QUESTION], [])
    made.check([SYSTEM, QUESTION], [])

    assert [(violation.what, violation.call) for violation in made.violations] == [("missing_anchor", 2)]


def test_the_cacheable_prefix_is_what_opens_two_prompts_one_after_the_other() -> None:
    made, answer = checker(), AIMessage("On its way.")

    made.check([SYSTEM, QUESTION], [TOOL])
    made.check([SYSTEM, QUESTION, answer, QUESTION], [TOOL])

    assert made.cacheable_prefix_tokens == COUNTER.tools([TOOL]) + COUNTER.message(SYSTEM) + COUNTER.message(QUESTION)


def test_another_tool_leaves_only_the_schemas_before_it_cacheable() -> None:
    made = checker()
    other = {**TOOL, "function": {**TOOL["function"], "name": "other"}}

    made.check([SYSTEM, QUESTION], [TOOL])
    made.check([SYSTEM, QUESTION], [TOOL, other])

    assert made.cacheable_prefix_tokens == COUNTER.tools([TOOL])


def test_the_largest_prompt_and_their_sum_are_counted() -> None:
    made = checker()
    small, large = [SYSTEM, QUESTION], [SYSTEM, QUESTION, *tool_round(["c1"])]

    for prompt in (large, small):
        made.check(list(prompt), [])

    sizes = COUNTER.messages(large), COUNTER.messages(small)
    assert (made.max_prompt_tokens, made.prompt_tokens, made.calls) == (sizes[0], sum(sizes), 2)


def test_what_is_kept_may_differ_from_what_was_sent_in_nothing_but_the_ids_of_results() -> None:
    sent = [QUESTION, *tool_round(["c1"], "ok")]
    kept = [*sent[:2], sent[2].model_copy(update={"id": "r-1"})]

    assert compare(sent, kept) == []


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ([], ["lost_message"]),
        ([QUESTION, QUESTION], ["repeated_message"]),
        ([QUESTION.model_copy(update={"content": "Where?"})], ["lost_message", "repeated_message"]),
    ],
)
def test_a_lost_a_repeated_and_a_changed_message_are_told(kept: list[BaseMessage], said: list[str]) -> None:
    assert [violation.what for violation in compare([QUESTION], kept)] == said


def test_messages_in_another_order_are_told() -> None:
    answer = AIMessage("Here.", id="a")

    (violation,) = compare([QUESTION, answer], [answer, QUESTION])

    assert str(violation) == "disordered messages: from human message 'q' on"
