"""What the window promises: pins, prices, the reference for the kept suffix."""

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, trim_messages

from conversation import conversation, tool_round
from everthread.state import Note
from everthread.window.assembly import Parts, assemble
from everthread.window.budget import Budget
from everthread.window.policies import token_budget
from everthread.window.pricing import pays
from everthread.window.tokens import counter_for
from everthread.window.turns import split
from everthread.window.verification import verify

COUNTER = counter_for("gpt-4o")
BUDGET = Budget(window=8_000, reply_reserve=500, fixed={"system": 10})


def test_a_pin_that_is_nowhere_in_the_prompt_is_reported() -> None:
    assert verify([HumanMessage("never fly, please")], ["never fly", "only trains"]) == ["only trains"]


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
    parts = Parts(SystemMessage("s"), conversation(2), summary="So far.", session_notes=[note], recalled="Old.")

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


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=10), st.integers(1, 600))
def test_the_kept_suffix_is_that_of_trim_messages(shape: list[tuple[int, int]], budget: int) -> None:
    messages: list[BaseMessage] = []
    for number, (words, calls) in enumerate(shape):
        messages.append(HumanMessage("word " * words, id=f"h{number}"))
        messages += tool_round([f"{number}-{n}" for n in range(calls)], "row") if calls else []
        messages.append(AIMessage("done", id=f"b{number}"))
    turns = split(messages)
    sizes = [turn.tokens(COUNTER.message) for turn in turns]

    gone = token_budget(turns, sizes, budget)

    reference = trim_messages(
        [SystemMessage("s"), *messages],
        strategy="last",
        start_on="human",
        include_system=True,
        max_tokens=budget,
        token_counter=lambda kept: (
            sum(map(COUNTER.message, kept)) - sum(COUNTER.message(m) for m in kept if m.type == "system")
        ),
    )[1:]
    kept = [message.id for index, turn in enumerate(turns) if index not in gone for message in turn.messages]
    # The newest turn stays whatever its size, where `trim_messages` gives nothing back.
    assert kept == ([message.id for message in reference] or [message.id for message in turns[-1].messages])
