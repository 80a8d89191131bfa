"""What the nodes of a graph share."""

import pytest
from langchain_core.language_models import FakeListChatModel

from everthread.agents import travel
from everthread.agents.handles import read_tool_output
from everthread.models.offline import OfflineModel
from everthread.nodes.wiring import Wiring
from everthread.state import Context, State

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
