"""The scripted and the replayed model: what they say, what they keep, and when they refuse."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import tool

from everthread.errors import ScriptError
from everthread.models.replay import ReplayModel
from everthread.models.scripted import ScriptedModel, Tools


@tool
def search_hotels(city: str) -> str:
    """Find hotels."""
    return city


def hotel_call(city: str = "Paris") -> AIMessage:
    return AIMessage("Looking.", tool_calls=[ToolCall(name="search_hotels", args={"city": city}, id="c1")])


def count(messages: Sequence[BaseMessage], tools: Tools) -> int:
    return sum(len(message.text) for message in messages) + 1000 * len(tools)


def added_up(chunks: Sequence[AIMessageChunk]) -> AIMessageChunk:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def test_replies_come_in_order_and_prompts_are_kept() -> None:
    model = ScriptedModel(["one", AIMessage("two")])

    said = [model.invoke("a").text, model.invoke([HumanMessage("b"), HumanMessage("c")]).text]

    assert said == ["one", "two"]
    assert [[message.text for message in prompt] for prompt in model.prompts] == [["a"], ["b", "c"]]
    assert model.left == 0


def test_an_exception_in_the_script_is_raised_and_its_prompt_kept() -> None:
    model = ScriptedModel([TimeoutError("late"), "then"])

    with pytest.raises(TimeoutError, match="late"):
        model.invoke("a")

    assert model.invoke("b").text == "then"
    assert len(model.prompts) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_script_that_runs_out_fails_and_names_the_prompt(stream: bool) -> None:
    model = ScriptedModel(["only"])
    model.invoke("first")

    with pytest.raises(ScriptError, match=r"call 2 found no reply: the script holds 1; .* ends in 'second'"):
        list(model.stream("second")) if stream else model.invoke("second")


def test_bound_tools_are_kept_as_the_schemas_that_are_sent() -> None:
    model = ScriptedModel(["a", "b"])

    model.bind_tools([search_hotels]).invoke("x")
    model.invoke("y")

    assert [[schema["function"]["name"] for schema in tools] for tools in model.tools] == [["search_hotels"], []]


def test_a_kept_prompt_does_not_change_with_the_message_it_saw() -> None:
    model, message = ScriptedModel(["a"]), HumanMessage("before")
    model.invoke([message])

    message.content = "after"

    assert model.prompts[0][0].text == "before"


def test_a_scripted_message_is_not_changed_by_being_said() -> None:
    reply = AIMessage("hello")

    ScriptedModel([reply], count=count).invoke("hi")

    assert (reply.id, reply.usage_metadata) == (None, None)


def test_a_stream_comes_word_by_word_with_arguments_in_parts() -> None:
    chunks = list(ScriptedModel([hotel_call()]).stream("hi"))

    whole = added_up(chunks)

    assert whole.tool_calls == hotel_call().tool_calls
    assert len([part for chunk in chunks for part in chunk.tool_call_chunks if part["args"]]) == 2


@settings(max_examples=30)
@given(st.text(), st.lists(st.text(max_size=8), max_size=3))
def test_the_chunks_of_a_stream_add_up_to_the_reply(text: str, cities: list[str]) -> None:
    calls = [ToolCall(name="search_hotels", args={"city": city}, id=f"c{i}") for i, city in enumerate(cities)]
    reply = AIMessage(text, tool_calls=calls, response_metadata={"finish_reason": "stop"})

    whole = added_up(list(ScriptedModel([reply]).stream("hi")))

    assert whole.content == text
    assert [(call["name"], call["args"], call["id"]) for call in whole.tool_calls] == [
        (call["name"], call["args"], call["id"]) for call in calls
    ]
    assert whole.response_metadata["finish_reason"] == "stop"


async def test_async_calls_give_the_same_as_sync_ones() -> None:
    model = ScriptedModel([hotel_call(), hotel_call()], count=count)

    whole = added_up([chunk async for chunk in model.astream("hi")])
    at_once = await model.ainvoke("hi")

    assert whole.tool_calls == at_once.tool_calls
    assert whole.usage_metadata == at_once.usage_metadata


def test_usage_is_what_the_counter_says_of_prompt_tools_and_reply() -> None:
    model = ScriptedModel(["four"], count=count).bind_tools([search_hotels])

    reply = model.invoke("twelve chars")

    assert reply.usage_metadata == {"input_tokens": 1012, "output_tokens": 4, "total_tokens": 1016}


def test_without_a_counter_no_usage_is_made_up() -> None:
    assert ScriptedModel(["a"]).invoke("x").usage_metadata is None


def test_a_replay_says_what_was_recorded_turn_by_turn() -> None:
    model = ReplayModel()
    model.load([hotel_call(), AIMessage("Three found.")])

    said = [model.invoke("a"), model.invoke("b")]
    model.load([AIMessage("Bye.")])

    assert said[0].tool_calls == hotel_call().tool_calls
    assert [said[1].text, model.invoke("c").text, model.left, model.calls] == ["Three found.", "Bye.", 0, 3]


def test_a_replay_shows_every_prompt_and_its_tools_before_it_replies() -> None:
    seen: list[tuple[str, int]] = []
    model = ReplayModel(lambda messages, tools: seen.append((messages[-1].text, len(tools))))
    model.load([AIMessage("yes"), AIMessage("no")])

    list(model.bind_tools([search_hotels]).stream("with"))
    model.invoke("without")

    assert seen == [("with", 1), ("without", 0)]


def test_what_the_prompt_check_raises_ends_the_call_and_keeps_the_reply() -> None:
    def refuse(messages: list[BaseMessage], tools: Tools) -> None:
        raise AssertionError("over the window")

    model = ReplayModel(refuse)
    model.load([AIMessage("yes")])

    with pytest.raises(AssertionError, match="over the window"):
        model.invoke("x")
    assert model.left == 1


def test_an_empty_replay_fails_and_names_the_prompt() -> None:
    with pytest.raises(ScriptError, match=r"call 1 found no recorded reply; .* ends in 'hello'"):
        ReplayModel().invoke("hello")


def test_a_replay_streams_a_text_in_one_piece() -> None:
    model = ReplayModel()
    model.load([AIMessage("a long recorded reply")])

    assert [chunk.content for chunk in model.stream("x") if chunk.content] == ["a long recorded reply"]
