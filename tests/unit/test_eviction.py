"""What leaves the working set."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from conversation import call, conversation, tool_round
from everthread.errors import BudgetError
from everthread.state import Context
from everthread.state.context import POLICIES
from everthread.state.marks import synthetic
from everthread.state.messages import reduce_messages
from everthread.window.draft import EvictionPlan
from everthread.window.eviction import plan_trim
from everthread.window.tokens import counter_for
from everthread.window.turns import legal

COUNTER = counter_for("gpt-4o")


def planned(messages: list[BaseMessage], budget: int, **dials: object) -> EvictionPlan:
    return plan_trim(messages, room=budget, context=Context(**dials), counter=COUNTER)  # type: ignore[arg-type]


def applied(messages: list[BaseMessage], plan: EvictionPlan) -> list[BaseMessage]:
    gone = {message.id for message in plan.evicted}
    return [plan.masked.get(str(message.id), message) for message in messages if message.id not in gone]


def size(messages: list[BaseMessage]) -> int:
    return sum(map(COUNTER.message, legal(messages)))


def test_a_working_set_within_the_budget_is_left_alone() -> None:
    plan = planned(conversation(5), 10_000)

    assert not plan.evicted
    assert not plan.masked


def test_eviction_goes_down_to_the_low_watermark() -> None:
    messages = conversation(20)

    left = applied(messages, planned(messages, size(messages) - 1, low_watermark=0.5))

    assert size(left) <= size(messages) * 0.5
    assert size(left) > size(messages) * 0.4


def test_the_anchor_and_the_current_turn_stay() -> None:
    messages = conversation(20)

    left = applied(messages, planned(messages, 200))

    assert [left[0].id, left[-1].id, left[-2].id] == ["h0", "b19", "h19"]


def test_old_tool_results_are_masked_before_any_turn_leaves() -> None:
    messages = conversation(6, tool_words=600)

    plan = planned(messages, size(messages) - 500, low_watermark=0.6)

    assert plan.masked
    assert not plan.evicted


def test_one_turn_over_the_budget_loses_its_older_rounds_and_keeps_question_and_newest() -> None:
    rounds = [message for number in range(40) for message in tool_round([f"c{number}"], "data " * 50)]
    messages = reduce_messages([], [[HumanMessage("find the fault", id="q"), *rounds]])

    left = applied(messages, planned(messages, 1_000))

    assert left[0].id == "q"
    assert [message.id for message in left[-2:]] == ["a-c39", "t-c39"]
    assert size(left) <= 1_000


def test_the_current_question_stays_when_its_older_rounds_leave() -> None:
    rounds = [message for number in range(40) for message in tool_round([f"c{number}"], "data " * 50)]
    messages = reduce_messages([], [[*conversation(2), HumanMessage("find the fault", id="q"), *rounds]])

    left = applied(messages, planned(messages, 1_000))

    assert [message.id for message in left[:2]] == ["h0", "q"]


def test_a_newest_result_over_the_budget_is_masked() -> None:
    messages = reduce_messages([], [[HumanMessage("read it", id="q"), *tool_round(["1", "2"], "data " * 9_000)]])

    left = applied(messages, planned(messages, 1_000))

    assert size(left) <= 1_000
    assert len(left) == 4


def test_a_question_over_the_budget_is_refused_with_the_numbers() -> None:
    with pytest.raises(BudgetError, match=r"needs [\d,]+ tokens but the budget for the conversation is 100"):
        planned([HumanMessage("word " * 500, id="q")], 100)


def test_pins_that_leave_no_room_are_named() -> None:
    with pytest.raises(BudgetError, match="pinned sentences and notes of the session need 40 tokens more"):
        planned([HumanMessage("hello", id="q")], -40)


def test_an_oversized_anchor_never_costs_the_recent_turns() -> None:
    messages = reduce_messages([], [[HumanMessage("task " * 3_000, id="big"), *conversation(2)]])

    left = applied(messages, planned(messages, 600))

    assert left[0].id == "big"
    assert size(left[:1]) < 150
    assert {"h1", "b1"} <= {message.id for message in left}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), st.integers(0, 400)), min_size=1, max_size=12),
    st.integers(300, 3_000),
    st.sampled_from(POLICIES),
)
def test_trimming_keeps_the_invariants(shape: list[tuple[int, int, int]], budget: int, policy: str) -> None:
    messages: list[BaseMessage] = []
    for number, (words, calls, tool_words) in enumerate(shape):
        messages.append(HumanMessage("word " * words, id=f"h{number}"))
        if calls:
            messages += tool_round([f"{number}-{n}" for n in range(calls)], "data " * tool_words)
            messages.append(AIMessage("done", id=f"b{number}"))
    messages = reduce_messages([], [messages])

    plan = planned(messages, budget, policy=policy)
    left = applied(messages, plan)

    assert size(left) <= budget
    assert messages[-1].id == left[-1].id
    assert left[0].id == "h0"
    assert f"h{len(shape) - 1}" in {message.id for message in left}
    answered = {m.tool_call_id for m in left if isinstance(m, ToolMessage)}
    assert answered == {c["id"] for m in left if isinstance(m, AIMessage) for c in m.tool_calls}
    again = planned(left, budget, policy=policy)
    assert not again.evicted
    assert not again.masked


def test_nothing_that_leaves_was_masked_before() -> None:
    messages = conversation(40, tool_words=400)

    plan = planned(messages, 3_000, low_watermark=0.7)

    assert plan.masked.keys() <= {str(message.id) for message in applied(messages, plan)}
    assert len(plan.evicted) > 60


def test_a_system_message_at_the_head_stays() -> None:
    messages = [SystemMessage("Be brief.", id="s"), *conversation(20)]

    assert [message.id for message in applied(messages, planned(messages, 300))][:2] == ["s", "h0"]


def test_a_turn_that_a_synthetic_message_follows_leaves_with_it() -> None:
    messages = conversation(6)
    messages.insert(1, synthetic("recalled", "old " * 20).model_copy(update={"id": "r0"}))

    left = applied(messages, planned(messages, size(messages) - 1, low_watermark=0.3))

    assert "r0" not in {message.id for message in left}


def test_a_call_without_a_result_counts_with_the_answer_that_is_sent_for_it() -> None:
    cut_off = tool_round(["c"])[:1]
    messages = [*conversation(2), HumanMessage("and?", id="q"), *cut_off]

    assert planned(messages, 10_000).tokens_before == size(messages)


ONE_MESSAGE = st.one_of(
    st.just(HumanMessage("why?")),
    st.just(HumanMessage("word " * 90)),
    st.just(synthetic("recalled", "old " * 30)),
    st.just(SystemMessage("Be brief.")),
    st.builds(lambda words: AIMessage("word " * words), st.integers(0, 90)),
    st.builds(
        lambda ids: AIMessage("", tool_calls=[call("look", one) for one in ids]), st.lists(st.sampled_from("123"))
    ),
    st.builds(
        lambda one, words: ToolMessage("data " * words, tool_call_id=one), st.sampled_from("123"), st.integers(0, 500)
    ),
)


@settings(deadline=None)
@given(st.lists(ONE_MESSAGE, max_size=25), st.integers(50, 2_000), st.sampled_from(POLICIES))
def test_a_plan_measures_what_a_provider_gets_and_trims_once(
    shape: list[BaseMessage], budget: int, policy: str
) -> None:
    messages = [one.model_copy(update={"id": f"m{place}"}) for place, one in enumerate(shape)]
    messages.append(HumanMessage("and now?", id="question"))

    try:
        plan = planned(messages, budget, policy=policy)
    except BudgetError:
        return
    left = applied(messages, plan)

    assert plan.tokens_before == size(messages)
    assert plan.tokens_after == size(left) <= budget
    assert left[-1].id == "question"
    again = planned(left, budget, policy=policy)
    assert not again.evicted
    assert not again.masked
