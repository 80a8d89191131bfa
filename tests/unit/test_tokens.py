"""What a prompt costs: messages, calls and results, tool schemas, images, and that counting again is cheap."""

import base64
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from everthread.window import tokens as tokens_module
from everthread.window.encoding import encoding
from everthread.window.images import image_tokens
from everthread.window.tokens import AUDIO, FILE, TokenCounter, _Cache, counter_for
from everthread.window.tool_schemas import render_tools

COUNTER = counter_for("gpt-4.1")
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60) | st.sampled_from(
    ["<|endoftext|>", "\ud800", "\udfff\ud800x", "\x00", ""]
)
MESSAGES = st.lists(
    st.builds(HumanMessage, ANY_TEXT)
    | st.builds(AIMessage, ANY_TEXT)
    | st.builds(lambda text: ToolMessage(text, tool_call_id="c"), ANY_TEXT),
    max_size=8,
)

# The two examples of OpenAI's cookbook, "How to count tokens with tiktoken", with what its API reported for them.
JARGON = [
    SystemMessage(
        "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."
    ),
    SystemMessage("New synergies will help drive top-line growth.", name="example_user"),
    SystemMessage("Things working well together will increase revenue.", name="example_assistant"),
    SystemMessage(
        "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        name="example_user",
    ),
    SystemMessage("Let's talk later when we're less busy about how to do better.", name="example_assistant"),
    HumanMessage("This late pivot means we don't have time to boil the ocean for the client deliverable."),
]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}


@tool
def lookup(order: str, limit: int = 3) -> str:
    """Look an order up."""
    return f"{order} {limit}"


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"call_{name}", "type": "tool_call"}


def of(*blocks: Any) -> int:
    """Tokens of a user message's blocks alone."""
    return COUNTER.message(HumanMessage(list(blocks))) - 4


def data_url(kind: str, head: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(head).decode()}"


@pytest.mark.parametrize(("model", "reported"), [("gpt-4", 129), ("gpt-4o", 124)])
def test_messages_with_names_cost_what_the_api_reported(model: str, reported: int) -> None:
    assert counter_for(model).messages(JARGON) == reported


@pytest.mark.parametrize(("model", "reported"), [("gpt-4", 105), ("gpt-4o", 101)])
def test_a_tool_costs_what_the_api_reported_within_a_token(model: str, reported: int) -> None:
    prompt = [
        SystemMessage("You are a helpful assistant that can answer to questions about the weather."),
        HumanMessage("What's the weather like in San Francisco?"),
    ]
    counter = counter_for(model)

    assert abs(counter.messages(prompt) + counter.tools([WEATHER]) - reported) <= 1


def test_a_call_and_its_result_cost_name_twice_arguments_result_and_thirteen() -> None:
    request = AIMessage("", tool_calls=[call("get_order", order="W17")])
    result = ToolMessage('{"status":"open"}', tool_call_id="call_get_order", name="get_order")

    parts = 2 * COUNTER.text("get_order") + COUNTER.text('{"order":"W17"}') + COUNTER.text('{"status":"open"}')
    assert COUNTER.message(request) + COUNTER.message(result) == parts + 13


def test_parallel_calls_share_one_wrapper() -> None:
    request = AIMessage("", tool_calls=[call("get_order", order=order) for order in ("W17", "W18", "W19")])
    results = [ToolMessage("open", tool_call_id=f"c{n}") for n in range(3)]

    each = COUNTER.text("get_order") + COUNTER.text('{"order":"W17"}') + COUNTER.text("open") + 7
    assert COUNTER.message(request) + sum(map(COUNTER.message, results)) == 27 + 3 * each


def test_a_result_costs_the_same_with_its_name_and_without() -> None:
    named, bare = (ToolMessage("open", tool_call_id="c", name=name) for name in ("get_order", None))

    assert COUNTER.message(named) == COUNTER.message(bare)


def test_text_next_to_a_call_is_counted() -> None:
    calls = [call("get_order", order="W17")]
    silent, spoken = AIMessage("", tool_calls=calls), AIMessage("Let me look.", tool_calls=calls)

    assert COUNTER.message(spoken) >= COUNTER.message(silent) + COUNTER.text("Let me look.")


def test_calls_that_could_not_be_parsed_are_counted() -> None:
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "get_order", "args": '{"order": "W1', "id": "c", "error": None}]
    )

    assert COUNTER.message(broken) == 9 + 2 * COUNTER.text("get_order") + COUNTER.text('{"order": "W1')


def test_calls_kept_raw_by_the_provider_are_counted() -> None:
    function = {"name": "get_order", "arguments": '{"order":"W17"}'}
    raw = AIMessage("")
    raw.additional_kwargs["tool_calls"] = [{"id": "c", "type": "function", "function": function}]

    assert COUNTER.message(raw) == COUNTER.message(AIMessage("", tool_calls=[call("get_order", order="W17")]))


def test_an_unusual_role_costs_its_own_tokens() -> None:
    role = "quartermaster-general"

    assert COUNTER.message(ChatMessage(content="hi", role=role)) == 3 + COUNTER.text(role) + COUNTER.text("hi")


@given(ANY_TEXT)
def test_any_text_is_countable(text: str) -> None:
    assert COUNTER.text(text) == TokenCounter("o200k_base", exact=True).text(text) >= bool(text)


@given(MESSAGES)
def test_a_prompt_costs_its_messages_and_three(messages: list[BaseMessage]) -> None:
    assert COUNTER.messages(messages) == sum(map(COUNTER.message, messages)) + 3


@given(MESSAGES)
def test_counting_again_gives_the_same(messages: list[BaseMessage]) -> None:
    fresh = TokenCounter("o200k_base", exact=True)

    assert [fresh.message(one) for one in messages * 2] == [COUNTER.message(one) for one in messages * 2]


def test_a_known_working_set_is_not_tokenised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TokenCounter("o200k_base", exact=True)
    working_set = [HumanMessage("hello"), AIMessage("", tool_calls=[call("f", a=1)]), HumanMessage(["block"])]
    before = (counter.messages(working_set), counter.tools([lookup, WEATHER]))
    monkeypatch.setattr(tokens_module, "encoding", lambda name: pytest.fail(f"encoded again with {name}"))

    copies = [message.model_copy(deep=True) for message in working_set]
    assert (counter.messages(copies), counter.tools([lookup, WEATHER])) == before


def test_the_cache_follows_content_not_identity() -> None:
    message = AIMessage("", tool_calls=[call("f", flag=True)])
    one = COUNTER.message(message)
    message.tool_calls[0]["args"]["flag"] = "a much longer value than before"

    assert COUNTER.message(message) > one


def test_the_cache_forgets_what_it_has_had_for_longest() -> None:
    cache = _Cache(characters=650)
    for letter in "abc":
        cache.put(letter * 200, 1)

    assert [cache.get(letter * 200) for letter in "abc"] == [None, 1, 1]


def test_a_text_larger_than_the_cache_drives_nothing_out() -> None:
    cache = _Cache(characters=500)
    cache.put("small", 2)

    assert cache.put("x" * 10_000, 7) == 7
    assert [cache.get("small"), cache.get("x" * 10_000)] == [2, None]


def test_threads_share_a_counter() -> None:
    texts = [f"message number {n % 50}" for n in range(400)]
    counter = TokenCounter("o200k_base", True, _cache=_Cache(characters=2_000))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(counter.text, texts)) == [COUNTER.text(text) for text in texts]


def test_accuracy_says_whose_tokeniser_counted() -> None:
    assert [counter_for("gpt-5").accuracy, counter_for("claude-opus-4-6").accuracy] == ["exact", "estimated"]


def test_no_tools_cost_nothing() -> None:
    assert COUNTER.tools([]) == 0


def test_tools_are_shown_as_typescript() -> None:
    assert render_tools([WEATHER]).splitlines()[6:] == [
        "// Get the current weather in a given location",
        "type get_current_weather = (_: {",
        "// The city and state, e.g. San Francisco, CA",
        "location: string,",
        "// The unit of temperature to return",
        'unit?: "celsius" | "fahrenheit",',
        "}) => any;",
        "",
        "} // namespace functions",
    ]


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "integer", "default": 12}, "x?: number, // default: 12"),
        ({"type": "array", "items": {"type": "string"}}, "x?: string[],"),
        ({"type": ["string", "null"]}, "x?: string | null,"),
        ({"anyOf": [{"type": "boolean"}, {"const": 3}]}, "x?: boolean | 3,"),
        ({"$ref": "#/$defs/Seat"}, "x?: {\n  row: number,\n},"),
        ({"$ref": "#/$defs/Missing"}, "x?: any,"),
        ({"type": "object"}, "x?: object,"),
        (True, "x?: any,"),
    ],
)
def test_each_kind_of_schema_has_its_type(schema: Any, shown: str) -> None:
    seat = {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]}
    parameters = {"properties": {"x": schema}, "$defs": {"Seat": seat}}

    assert f"(_: {{\n{shown}\n}}) => any;" in render_tools([{"name": "f", "parameters": parameters}])


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    node = {"properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    parameters = {"properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}

    assert "children?: any[]," in render_tools([{"name": "f", "parameters": parameters}])


def test_langchain_tools_cost_what_their_schemas_cost() -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    assert COUNTER.tools([lookup]) == COUNTER.tools([convert_to_openai_tool(lookup)]) > 0


def test_other_families_are_counted_as_json() -> None:
    estimated = counter_for("claude-sonnet-4-5")

    assert estimated.tools([WEATHER]) > COUNTER.tools([WEATHER])


@pytest.mark.parametrize("counter", [COUNTER, counter_for(None)], ids=["exact", "estimated"])
def test_tools_of_the_provider_itself_are_counted(counter: TokenCounter) -> None:
    assert counter.tools([{"type": "web_search"}]) > 0
    assert counter.tools([{"googleSearch": {}}]) > 0


@pytest.mark.parametrize(
    ("size", "tokens"), [((1024, 1024), 765), ((2048, 4096), 1105), ((512, 512), 255), ((1, 9000), 765)]
)
def test_images_cost_their_tiles(size: tuple[int, int], tokens: int) -> None:
    assert image_tokens({"type": "image", "width": size[0], "height": size[1]}) == tokens


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 300, 1500)),
        ("gif", b"GIF89a" + struct.pack("<HH", 300, 1500)),
        ("jpeg", b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 1500, 300) + b"\x03"),
    ],
)
def test_the_size_of_an_image_is_read_from_its_own_bytes(kind: str, head: bytes) -> None:
    block = {"type": "image_url", "image_url": {"url": data_url(kind, head + b"\x00" * 9000)}}

    assert of(block) == 85 + 170 * 3


@pytest.mark.parametrize(
    "url", ["https://example.com/a.png", "data:image/png;base64,not base64!", "data:image/webp;base64,UklGRg=="]
)
def test_an_image_of_unknown_size_costs_a_common_one(url: str) -> None:
    assert of({"type": "image_url", "image_url": {"url": url}}) == 765


def test_an_image_in_low_detail_costs_a_flat_rate() -> None:
    assert of({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}) == 85


def test_media_are_not_counted_as_text() -> None:
    data = "A" * 400_000

    assert of({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}) == AUDIO
    assert of({"type": "file", "base64": data, "mime_type": "application/pdf"}) == FILE


def test_text_blocks_cost_their_text() -> None:
    assert of("Hello ", {"type": "text", "text": "there"}) == COUNTER.text("Hello ") + COUNTER.text("there")


def test_reasoning_is_not_sent_again() -> None:
    blocks: list[str | dict[Any, Any]] = [{"type": "reasoning", "reasoning": "long " * 500}, "Yes."]

    assert COUNTER.message(AIMessage(blocks)) == COUNTER.message(AIMessage("Yes."))


def test_calls_repeated_in_the_content_are_counted_once() -> None:
    block: dict[Any, Any] = {"type": "tool_use", "id": "call_f", "name": "f", "input": {"a": 1}}

    both, one = (AIMessage(list(blocks), tool_calls=[call("f", a=1)]) for blocks in ([block], []))
    assert COUNTER.message(both) - COUNTER.message(one) <= 4


def test_an_unknown_block_costs_its_json() -> None:
    assert of({"type": "weather_card", "city": "Paris"}) == COUNTER.text('{"type":"weather_card","city":"Paris"}')


@pytest.mark.parametrize("text", ["\ud800" * 500, "\ud83d\ude00" * 500])
def test_a_head_of_halves_of_characters_is_no_longer_than_asked(text: str) -> None:
    assert COUNTER.text(text[: COUNTER.head(text, 20)]) <= 21
    assert COUNTER.text(text[len(text) - COUNTER.tail(text, 20) :]) <= 23


@given(text=st.text(), tokens=st.integers(-1, 20))
def test_a_head_and_a_tail_are_parts_of_about_so_many_tokens(text: str, tokens: int) -> None:
    counter = counter_for("gpt-4o")

    head, tail = counter.head(text, tokens), counter.tail(text, tokens)

    assert counter.text(text[:head]) <= max(tokens, 0) + 3
    assert counter.text(text[len(text) - tail :]) <= max(tokens, 0) + 3
    assert counter.text(text) > tokens or head == tail == len(text)


def test_a_head_ends_with_a_token() -> None:
    assert counter_for("gpt-4o").head("Zürich is " + "far " * 50, 5) == len("Zürich is far")


@pytest.mark.parametrize(
    ("name", "fraction"),
    [
        ("claude-opus-4-7", 0.60),
        ("anthropic/claude-sonnet-5", 0.60),
        ("us.anthropic.claude-haiku-5-5-v1:0", 0.60),
        ("claude-sonnet-4-20250514", 0.80),
        ("claude-3-5-sonnet-latest", 0.80),
        ("claude-opus-4-5", 0.80),
        ("gemini-2.5-pro", 0.80),
        ("llama3.2:3b", 0.75),
        ("mistralai/mixtral-8x7b", 0.75),
        (None, 0.80),
    ],
)
def test_an_estimate_leaves_room_for_what_its_family_counts(name: str | None, fraction: float) -> None:
    counter = counter_for(name)

    assert (counter.accuracy, counter.first_fraction) == ("estimated", fraction)


def test_a_text_that_no_window_holds_is_estimated_and_not_below_its_count() -> None:
    text = "".join(f"order {number}: paid, packed and sent to 漢字 street {number % 97}\n" for number in range(110_000))
    counter = counter_for("gpt-5")

    exact = len(encoding("o200k_base").encode_ordinary(text))

    assert exact <= counter.text(text) < 1.2 * exact
