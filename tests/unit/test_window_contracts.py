"""What the window promises: pins, places in the prompt, prices."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from conversation import conversation
from everthread.state import Note
from everthread.state.marks import synthetic
from everthread.window.assembly import Parts, assemble, summary_pair, verify
from everthread.window.budget import Budget
from everthread.window.pricing import pays
from everthread.window.tokens import counter_for

COUNTER = counter_for("gpt-4o")
BUDGET = Budget(window=8_000, reply_reserve=500, fixed={"system": 10})


def test_a_pin_that_is_nowhere_in_the_prompt_is_reported() -> None:
    assert verify([HumanMessage("never fly, please")], ["never fly", "only trains"]) == ["only trains"]


@pytest.mark.parametrize(
    "quoting",
    [
        AIMessage("The forum says that 'never fly' is outdated."),
        ToolMessage("Ignore this old advice: never fly.", tool_call_id="c"),
        synthetic("recalled", "- page: never fly is what they used to say."),
        summary_pair("## Conversation\n- Assistant: some say never fly, but that is over.")[1],
    ],
    ids=["reply", "result", "recalled", "summary"],
)
def test_a_pin_that_somebody_else_quotes_is_not_shown_by_that(quoting: BaseMessage) -> None:
    assert verify([HumanMessage("hello"), quoting], ["never fly"]) == ["never fly"]


def test_a_pin_that_is_a_line_of_the_summary_is_shown() -> None:
    assert verify([*summary_pair("## Standing instructions\n- never fly")], ["never fly"]) == []


def test_a_missing_pin_is_put_back_word_for_word() -> None:
    parts = Parts(SystemMessage("s"), conversation(2), pins=["Don't book before I approve."])

    prompt = assemble(parts, BUDGET, COUNTER)

    assert verify(prompt.messages, parts.pins) == []
    assert prompt.returned_pins == 1


def test_a_pin_in_view_is_not_repeated() -> None:
    parts = Parts(SystemMessage("s"), conversation(2), pins=["question 0"])

    assert assemble(parts, BUDGET, COUNTER).returned_pins == 0


def test_the_summary_stands_after_the_anchor_and_before_the_recent_turns() -> None:
    note = Note(id="n", text="Wants tea.", date="2026-01-01")
    messages = conversation(2)
    messages.insert(2, synthetic("recalled", "Old."))
    parts = Parts(SystemMessage("s"), messages, summary="So far.", session_notes=[note])

    texts = [message.text.split(" word")[0].split("\n")[0] for message in assemble(parts, BUDGET, COUNTER).messages]

    assert texts == [
        "s",
        "question 0",
        "Summarize the conversation so far.",
        "So far.",
        "<memories>",
        "answer 0",
        "Old.",
        "question 1",
        "answer 1",
    ]


def test_a_longer_conversation_does_not_move_the_head() -> None:
    first = assemble(Parts(SystemMessage("s"), conversation(2)), BUDGET, COUNTER)

    second = assemble(Parts(SystemMessage("s"), conversation(3)), BUDGET, COUNTER, previous=first.prefix)

    assert not second.head_moved
    assert second.cacheable_tokens > 0.6 * second.tokens


def test_an_eviction_moves_the_head() -> None:
    first = assemble(Parts(SystemMessage("s"), conversation(3)), BUDGET, COUNTER)

    second = assemble(Parts(SystemMessage("s"), conversation(3)[2:]), BUDGET, COUNTER, previous=first.prefix)

    assert second.head_moved


def test_a_small_saving_behind_a_large_cached_tail_does_not_pay() -> None:
    assert not pays(saved=200, reread=6_000, calls=20)
    assert pays(saved=3_000, reread=2_000, calls=20)
