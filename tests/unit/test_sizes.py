"""What the next prompt takes and may take."""

from dataclasses import replace

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from everthread.agents import travel
from everthread.agents.offline import OfflineModel
from everthread.graph.agent import node_deps
from everthread.nodes.sizes import PromptSize, needs_trim
from everthread.state import Context, PromptPlan, State

MODEL = node_deps(travel, OfflineModel()).model
PLAN = PromptPlan(context=Context(window=8_000), today="2026-05-01", system=SystemMessage("Be brief."))


def tokens(state: State | None = None, plan: PromptPlan = PLAN, *, reads_back: bool = False) -> int:
    return PromptSize.of(state or {}, plan, MODEL, reads_back=reads_back).budget.tokens


@pytest.mark.parametrize(
    "state",
    [{"ceiling": 100}, {"calibration": {"model": "offline", "exact": True, "anchors": [[1_000, 1_400]]}}],
    ids=lambda state: next(iter(state)),
)
def test_a_budget_follows_refusals_and_reports(state: State) -> None:
    assert tokens(state) < tokens()


def test_reports_about_another_model_change_nothing() -> None:
    assert tokens({"calibration": {"model": "gpt-4.1", "exact": True, "anchors": [[1_000, 1_400]]}}) == tokens()


def test_a_budget_follows_the_head_and_the_dials() -> None:
    assert tokens() - tokens(plan=replace(PLAN, sizes={"notes": 50})) == pytest.approx(50 * 0.95, abs=1)
    assert tokens(plan=replace(PLAN, context=Context(window=7_000))) < tokens()


def test_the_readers_of_handles_take_their_tokens() -> None:
    assert tokens(reads_back=True) < tokens()


def test_the_summary_takes_its_room_from_the_messages() -> None:
    size, beside = (PromptSize.of({}, plan, MODEL) for plan in (PLAN, replace(PLAN, summary_text="word " * 100)))

    assert 0 < size.room - beside.room < 150


def test_trim_is_left_out_only_while_the_messages_surely_fit() -> None:
    short, long = ({"messages": [HumanMessage("word " * words, id="h")]} for words in (100, 7_000))

    assert not needs_trim(PromptSize.of(short, PLAN, MODEL), PLAN.context)  # type: ignore[arg-type]
    assert needs_trim(PromptSize.of(long, PLAN, MODEL), PLAN.context)  # type: ignore[arg-type]
    assert needs_trim(PromptSize.of(short, PLAN, MODEL), Context(policy="head_tail"))  # type: ignore[arg-type]


def test_tools_are_bound_only_when_the_model_is_called() -> None:
    agent = replace(travel, tools=())

    deps = node_deps(agent, FakeListChatModel(responses=["hello"]))

    assert deps.model.bound(reads_back=False).chat.invoke("hi").text == "hello"
