"""What the nodes of a graph share."""

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from everthread.agents import travel
from everthread.agents.offline import OfflineModel
from everthread.models.scripted import ScriptedModel
from everthread.nodes.wiring import Bound, Wiring
from everthread.state import Context, State
from everthread.tools.read_tool_output import read_tool_output
from small_agent import look

CONTEXT = Context(window=8_000)
MEMORY = {"today": "2026-05-01", "profile": "", "notes": ""}


@pytest.fixture
def wiring() -> Wiring:
    model = OfflineModel()
    return Wiring(
        agent=travel,
        model=model,
        summarizer=model,
        resolve=lambda name: FakeListChatModel(responses=[name]),
        name_of=lambda model: "gpt-4.1",
        read_tool_output=read_tool_output,
    )


def tokens(wiring: Wiring, state: State, context: Context = CONTEXT, *, reads_back: bool = False) -> int:
    return wiring.budget(state, context, reads_back=reads_back).tokens


def test_a_budget_is_made_once_for_the_same_memory(wiring: Wiring) -> None:
    state: State = {"memory": MEMORY}  # type: ignore[typeddict-item]

    assert wiring.budget(state, CONTEXT, reads_back=False) is wiring.budget(state, CONTEXT, reads_back=False)


@pytest.mark.parametrize(
    "change",
    [
        {"ceiling": 100},
        {"memory": {**MEMORY, "notes": "A longer block of notes than there was."}},
        {"calibration": {"model": "gpt-4.1", "exact": True, "anchors": [[1_000, 1_400]]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_budget_follows_what_it_is_made_from(wiring: Wiring, change: State) -> None:
    state: State = {"memory": MEMORY}  # type: ignore[typeddict-item]
    before = tokens(wiring, state)

    assert tokens(wiring, {**state, **change}) < before


def test_a_budget_follows_the_dials_of_the_run(wiring: Wiring) -> None:
    state: State = {"memory": MEMORY}  # type: ignore[typeddict-item]
    before = tokens(wiring, state)

    assert tokens(wiring, state, Context(window=7_000)) < before


def test_the_readers_of_handles_take_their_tokens(wiring: Wiring) -> None:
    state: State = {"memory": MEMORY}  # type: ignore[typeddict-item]
    before = tokens(wiring, state)

    assert tokens(wiring, state, reads_back=True) < before


def test_a_model_with_tools_is_called_with_all_that_was_bound() -> None:
    model = ScriptedModel(["hello"])
    bound = Bound.of(model.bind_tools([look]).bind(max_tokens=5))

    reply = bound.invoke([HumanMessage("hi")], {})

    assert reply.text == "hello"
    assert bound.model is model
    assert bound.kwargs["max_tokens"] == 5
    assert [tool["function"]["name"] for tool in bound.kwargs["tools"]] == ["look"]


def test_a_model_with_a_config_of_its_own_keeps_it() -> None:
    configured = ScriptedModel(["hello"]).with_config(tags=["mine"])

    assert Bound.of(configured) == Bound(configured)
