"""One call that fits messages into a window."""

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from conversation import call, conversation, tool_round
from everthread import fit
from everthread.errors import BudgetError, SettingsError
from everthread.models.scripted import ScriptedModel
from everthread.window.tokens import counter_for
from everthread.window.turns import split

MODEL = "gpt-4.1"
COUNTER = counter_for(MODEL)
SYSTEM = SystemMessage("Be brief.")
RULE = "Never book before I approve."


def texts(messages: list[BaseMessage]) -> str:
    return "\n".join(str(message.text) for message in messages)


def test_what_fits_comes_back_as_the_same_messages() -> None:
    messages = [SYSTEM, *conversation(3)]

    fitted = fit(messages, window=8_000, model=MODEL)

    assert all(after is before for after, before in zip(fitted, messages, strict=True))


def test_a_long_conversation_fits_with_system_first_and_newest_message() -> None:
    messages = [SYSTEM, *conversation(100), HumanMessage("and now?")]

    fitted = fit(messages, window=2_000, model=MODEL, max_output_tokens=200)

    assert fitted[0] is SYSTEM
    assert [fitted[1].text, fitted[-1].text] == [messages[1].text, "and now?"]
    assert COUNTER.messages(fitted) + 200 <= 2_000


def test_old_tool_results_are_masked_and_name_no_tool_to_read_them() -> None:
    messages = [*conversation(4, tool_words=800), HumanMessage("and now?")]

    fitted = fit(messages, window=3_500, model=MODEL)

    assert len(fitted) == len(messages)
    assert "tokens left out …]" in texts(fitted)
    assert "read_tool_output" not in texts(fitted)


def test_a_pin_comes_back_when_its_message_has_left() -> None:
    messages = [HumanMessage("hello"), AIMessage("hi"), HumanMessage(RULE), AIMessage("noted"), *conversation(60)]
    messages.append(HumanMessage("and now?"))

    fitted = fit(messages, window=1_500, model=MODEL, pins=[RULE])

    assert texts(fitted).count(RULE) == 1
    assert RULE in str(fitted[1].text)


def test_a_pin_that_is_in_view_needs_no_second_place() -> None:
    messages: list[BaseMessage] = [HumanMessage(RULE)]

    assert fit(messages, window=1_000, model=MODEL, pins=[RULE]) == messages


def test_the_schemas_of_tools_take_room() -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "word " * 900, "parameters": {}}}
    messages = [*conversation(30), HumanMessage("and now?")]

    with_tools = fit(messages, window=2_500, model=MODEL, tools=[tool])

    assert COUNTER.messages(with_tools) + COUNTER.tools([tool]) <= 2_500
    assert len(with_tools) < len(fit(messages, window=2_500, model=MODEL))


def test_a_call_without_a_result_is_answered() -> None:
    messages = [HumanMessage("look"), AIMessage("", tool_calls=[call("look", "c")]), HumanMessage("well?")]

    assert [message.type for message in fit(messages, window=1_000)] == ["human", "ai", "tool", "human"]


def test_messages_may_be_pairs_or_dictionaries() -> None:
    fitted = fit([("system", "Be brief."), {"role": "user", "content": "hello"}], window=1_000)

    assert [(message.type, message.text) for message in fitted] == [("system", "Be brief."), ("human", "hello")]


@pytest.mark.parametrize(("policy", "kept"), [("sliding_window", 1 + 2 * 2), ("head_tail", 1 + 6)])
def test_a_policy_that_counts_keeps_what_it_says(policy: Any, kept: int) -> None:
    messages = conversation(20)[:-1]

    assert len(fit(messages, window=8_000, policy=policy, keep_last_turns=2, keep_last_messages=6)) <= kept + 1


def test_a_model_gives_its_window_and_its_tokens() -> None:
    model = ChatOpenAI(model="gpt-4o", api_key=SecretStr("none")).with_retry()
    messages = [*conversation(5, words=30_000), HumanMessage("and now?")]

    fitted = fit(messages, model=model)

    assert COUNTER.messages(fitted) <= 128_000
    assert len(fitted) < len(messages)


def test_the_head_moves_seldom_while_a_conversation_grows() -> None:
    messages = [SYSTEM, *conversation(60, tool_words=30)]
    calls = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage | ToolMessage)]

    prompts = [fit(messages[: place + 1], window=2_500, model=MODEL) for place in calls]

    moved = sum(after[: len(before)] != before for before, after in pairwise(prompts))
    assert 0 < moved < len(prompts) / 5


@pytest.mark.parametrize("tool_words", [30, 200], ids=["short results", "masked results"])
def test_the_whole_history_and_the_last_result_lead_to_the_same_prompt(tool_words: int) -> None:
    messages = [SYSTEM, *conversation(40, tool_words=tool_words)]
    kept: list[BaseMessage] = []
    for place, message in enumerate(messages):
        kept.append(message)
        if isinstance(message, HumanMessage | ToolMessage):
            kept = fit(kept, window=2_500, model=MODEL, pins=[RULE])
            assert kept == fit(messages[: place + 1], window=2_500, model=MODEL, pins=[RULE])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "say how many tokens"),
        ({"model": ScriptedModel([])}, "say how many tokens"),
        ({"window": 100}, "`window` must be a whole number of at least 256"),
        ({"window": 1_000, "policy": "summarize"}, "`policy` is 'summarize'; choose one of token_budget"),
        ({"window": 1_000, "max_output_tokens": 1_000}, "`max_output_tokens`"),
        ({"window": 1_000, "low_watermark": 1.0}, "`low_watermark`"),
        ({"window": 1_000, "safety_fraction": 2}, "`safety_fraction`"),
        ({"window": 1_000, "low_watermark": "0.4"}, "`low_watermark`"),
        ({"window": 1_000, "pins": [" "]}, "`pins`"),
        ({"window": 1_000, "pins": None}, "`pins` takes a list of texts"),
        ({"window": 1_000, "tools": [3]}, "`tools` cannot be read"),
        ({"window": 1_000, "model": 7}, "`model` must be a chat model"),
        ({"window": 1_000, "counter": len}, "`counter` must be one of"),
    ],
)
def test_an_argument_that_cannot_be_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        fit([HumanMessage("hello")], **arguments)


@pytest.mark.parametrize("messages", [{"messages": [HumanMessage("hello")]}, "hello", HumanMessage("hello")])
def test_what_is_no_list_of_messages_is_refused(messages: Any) -> None:
    with pytest.raises(SettingsError, match="`fit` takes a list of messages"):
        fit(messages, window=1_000)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "wizard", "content": "x"}, "Unexpected message type: 'wizard'"),
        ({"role": "tool", "content": "x"}, "it has no 'tool_call_id'"),
    ],
)
def test_what_is_no_message_is_refused_in_one_sentence_without_a_link(message: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as refused:
        fit([message], window=4_000)

    assert "http" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_conversation_without_a_user_is_refused() -> None:
    with pytest.raises(SettingsError, match="no message of a user"):
        fit([SYSTEM, AIMessage("hello")], window=1_000)


def test_a_message_larger_than_the_window_is_refused_with_the_numbers() -> None:
    with pytest.raises(BudgetError, match=r"raise `window` by \d+"):
        fit([HumanMessage("word " * 2_000)], window=1_000, model=MODEL)


ROUNDS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400)), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[BaseMessage]:
    messages: list[BaseMessage] = [SYSTEM] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 8))):
        messages.append(HumanMessage(f"question {turn} " + "word " * draw(st.integers(0, 60))))
        for number, (calls, words) in enumerate(draw(ROUNDS)):
            messages += tool_round([f"{turn}-{number}-{one}" for one in range(calls)], "data " * words)
        messages.append(AIMessage("answer " + "word " * draw(st.integers(0, 60))))
    return [*messages, HumanMessage("the newest")]


@settings(max_examples=60)
@given(conversations(), st.sampled_from(["token_budget", "sliding_window", "head_tail", "salience"]))
def test_whatever_is_said_it_fits_whole_and_twice_is_once(messages: list[BaseMessage], policy: Any) -> None:
    before = copy.deepcopy(messages)

    fitted = fit(messages, window=1_200, model=MODEL, policy=policy, pins=[RULE])

    assert messages == before
    assert COUNTER.messages(fitted) + 150 <= 1_200
    assert fitted[-1].text == "the newest"
    assert RULE in texts(fitted)
    assert not any(group.is_orphan or group.missing for turn in split(fitted) for group in turn.groups)
    assert fit(fitted, window=1_200, model=MODEL, policy=policy, pins=[RULE]) == fitted
