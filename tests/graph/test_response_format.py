"""Answers as data: `response_format`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents.structured_output import (
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage
from pydantic import BaseModel
from typing_extensions import TypedDict

from conversation import call
from everthread import build_graph, open_storage
from everthread.errors import SettingsError
from everthread.models.scripted import ScriptedModel
from everthread.nodes.deps import ModelWithTools
from everthread.nodes.response_format import ResponseFormat
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.window.tokens import counter_for
from openai_chat import chats
from server import OpenAIServer
from small_agent import AGENT, CONFIG, calls


class Weather(BaseModel):
    """The weather of a place."""

    city: str
    degrees: int


@dataclass
class WeatherData:
    city: str
    degrees: int


class WeatherDict(TypedDict):
    city: str
    degrees: int


WEATHER_JSON = {**Weather.model_json_schema(), "title": "WeatherJson"}
BONN = {"city": "Bonn", "degrees": 21}


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        yield opened


def graph_with(
    storage: Storage, response_format: Any, *replies: Any, native: bool = False
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies, profile={"structured_output": native})
    return build_graph(
        AGENT, model=model, summarizer="offline", response_format=response_format, storage=storage
    ), model


def ask(graph: Any, text: str = "how warm?", **options: Any) -> dict[str, Any]:
    result = graph.invoke({"messages": text}, CONFIG, **options)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize(
    ("schema", "name", "answer"),
    [
        (Weather, "Weather", Weather(**BONN)),
        (WeatherData, "WeatherData", WeatherData(**BONN)),
        (WeatherDict, "WeatherDict", BONN),
        (WEATHER_JSON, "WeatherJson", BONN),
        (Weather | WeatherData, "WeatherData", WeatherData(**BONN)),
    ],
)
def test_the_call_of_the_schema_is_the_answer(storage: Storage, schema: Any, name: str, answer: Any) -> None:
    graph, model = graph_with(storage, schema, calls(call(name, "c", **BONN)))

    done = ask(graph)

    assert done["structured_response"] == answer
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool"]
    assert name in [tool["function"]["name"] for tool in model.tools[0]]


async def test_the_same_under_ainvoke(storage: Storage) -> None:
    graph, _ = graph_with(storage, Weather, calls(call("Weather", "c", **BONN)))

    done = await graph.ainvoke({"messages": "how warm?"}, CONFIG)

    assert done["structured_response"] == Weather(**BONN)


def test_a_model_with_structured_output_answers_in_json(storage: Storage) -> None:
    graph, model = graph_with(storage, Weather, '{"city": "Bonn", "degrees": 21}', native=True)

    done = ask(graph)

    assert done["structured_response"] == Weather(**BONN)
    assert [message.type for message in done["messages"]] == ["human", "ai"]
    assert "Weather" not in [tool["function"]["name"] for tool in model.tools[0]]


def test_a_model_with_structured_output_calls_tools_first(storage: Storage) -> None:
    graph, _ = graph_with(
        storage, Weather, calls(call("look", "c", n=1)), '{"city": "Bonn", "degrees": 21}', native=True
    )

    assert ask(graph)["structured_response"] == Weather(**BONN)


@pytest.mark.parametrize(
    "wrong",
    [
        calls(call("Weather", "c", city="Bonn")),
        calls(call("Weather", "c", **BONN), call("Weather", "d", **BONN)),
        AIMessage("", invalid_tool_calls=[{"name": "Weather", "args": "{", "id": "c", "error": None}]),
    ],
    ids=["missing field", "two answers", "malformed"],
)
def test_a_wrong_answer_goes_back_to_the_model(storage: Storage, wrong: AIMessage) -> None:
    graph, model = graph_with(storage, Weather, wrong, calls(call("Weather", "e", **BONN)))

    done = ask(graph)

    assert done["structured_response"] == Weather(**BONN)
    assert "Please fix your mistakes" in model.prompts[1][-1].text


def test_an_answer_beside_another_call_ends_the_turn_when_both_have_run(storage: Storage) -> None:
    graph, _ = graph_with(storage, Weather, calls(call("look", "c", n=1), call("Weather", "d", **BONN)))

    done = ask(graph)

    assert [message.text for message in done["messages"][2:]] == [
        "row 0 of the table",
        "Returning structured response: city='Bonn' degrees=21",
    ]
    assert done["structured_response"] == Weather(**BONN)


def test_errors_that_the_strategy_does_not_handle_are_raised(storage: Storage) -> None:
    schema = ToolStrategy(Weather, handle_errors=False)
    graph, _ = graph_with(storage, schema, calls(call("Weather", "c")), calls(call("Weather", "d", **BONN)))

    with pytest.raises(StructuredOutputValidationError, match="degrees"):
        ask(graph)

    assert ask(graph)["structured_response"] == Weather(**BONN)


@pytest.mark.parametrize(
    ("handling", "told"), [("Once more.", "Once more."), (lambda error: f"no: {type(error).__name__}", "no: Struct")]
)
def test_a_strategy_says_what_the_model_is_told(storage: Storage, handling: Any, told: str) -> None:
    schema = ToolStrategy(Weather, handle_errors=handling, tool_message_content="Thanks.")
    graph, model = graph_with(storage, schema, calls(call("Weather", "c")), calls(call("Weather", "d", **BONN)))

    done = ask(graph)

    assert model.prompts[1][-1].text.startswith(told)
    assert done["messages"][-1].text == "Thanks."


def test_json_that_does_not_fit_the_schema_is_raised(storage: Storage) -> None:
    graph, _ = graph_with(storage, ProviderStrategy(Weather), '{"city": "Bonn"}')

    with pytest.raises(StructuredOutputValidationError, match="degrees"):
        ask(graph)


def test_the_answer_of_an_earlier_turn_does_not_stay(storage: Storage) -> None:
    graph, _ = graph_with(storage, Weather, calls(call("Weather", "c", **BONN)), "Just words.")
    ask(graph)

    assert ask(graph, "and now?")["structured_response"] is None


def test_an_earlier_message_sent_again_gets_no_answer_of_a_later_turn_as_the_only_output(storage: Storage) -> None:
    answers = [calls(call("Weather", name, city="Bonn", degrees=degrees)) for name, degrees in (("c", 21), ("d", 9))]
    graph, _ = graph_with(storage, Weather, *answers)
    questions = [{"messages": [{"role": "user", "content": "how warm?", "id": name}]} for name in "pq"]
    first, last = (graph.invoke(question, CONFIG, output_keys="structured_response") for question in questions)

    again = [graph.invoke(question, CONFIG, output_keys="structured_response") for question in questions]

    assert (first.degrees, last.degrees) == (21, 9)
    assert again == [None, last]


def test_the_answer_is_in_the_checkpoint_as_what_it_is(storage: Storage) -> None:
    graph, _ = graph_with(storage, Weather, calls(call("Weather", "c", **BONN)))
    ask(graph)

    again, _ = graph_with(storage, Weather)

    assert again.get_state(CONFIG).values["structured_response"] == Weather(**BONN)


def test_a_message_that_is_sent_again_gets_its_answer(storage: Storage) -> None:
    graph, model = graph_with(storage, Weather, calls(call("Weather", "c", **BONN)))
    question = {"messages": [{"role": "user", "content": "how warm?", "id": "q"}]}
    graph.invoke(question, CONFIG)

    done = graph.invoke(question, CONFIG)

    assert done["structured_response"] == Weather(**BONN)
    assert len(model.prompts) == 1


def test_the_same_words_are_a_new_question_after_an_answer(storage: Storage) -> None:
    replies = [calls(call("Weather", name, **BONN)) for name in "cd"]
    graph, model = graph_with(storage, Weather, *replies)

    ask(graph)
    done = ask(graph)

    assert len(model.prompts) == 2
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool"] * 2


@pytest.mark.parametrize("native", [True, False])
def test_the_schema_counts_in_the_budget(native: bool) -> None:
    def tokens(response: ResponseFormat | None) -> int:
        chat = ScriptedModel(profile={"structured_output": native})
        counter = counter_for("gpt-5-mini")
        model = ModelWithTools(chat, AGENT.tools, (), "gpt-5-mini", "openai", counter, response=response)
        return model.bound(reads_back=False).tool_tokens

    assert 20 < tokens(ResponseFormat(Weather)) - tokens(None) < 200


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(SettingsError, match="`response_format` must be a Pydantic model"):
        build_graph(AGENT, model=ScriptedModel(), response_format=5)


def test_a_schema_with_the_name_of_a_tool_is_refused() -> None:
    class look(BaseModel):  # noqa: N801
        city: str

    with pytest.raises(SettingsError, match="has the name of the tool 'look'"):
        build_graph(AGENT, model=ScriptedModel(), response_format=look)


@pytest.mark.parametrize("streamed", [True, False])
def test_openai_gets_the_schema_and_no_empty_list_of_tools(storage: Storage, streamed: bool) -> None:
    with OpenAIServer(models=("gpt-5-mini",)) as server, chats(server, streaming=streamed) as chat:
        server.reply('{"city": "Bonn", "degrees": 21}')
        bare = Agent(name="bare", title="Bare", instructions="Be brief.")
        graph = build_graph(bare, model=chat(), response_format=Weather, storage=storage)

        done = ask(graph)

    assert done["structured_response"] == Weather(**BONN)
    assert server.requests[0]["response_format"]["json_schema"]["name"] == "Weather"
    assert "tools" not in server.requests[0]
