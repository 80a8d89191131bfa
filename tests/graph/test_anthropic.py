"""Claude through its real client: where the cache is marked on the wire, and what its usage teaches our counts."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

from anthropic_server import AnthropicServer, ToolUse, blocks_of, is_marked
from everthread import Context, EverthreadMiddleware, build_graph, open_storage
from everthread.ledger import events
from everthread.ledger.events import PromptAssembled
from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage
from everthread.window.calibration import Calibration
from everthread.window.tokens import counter_for
from small_agent import AGENT, CONFIG, ask, look


@pytest.fixture
def storage() -> Iterator[Storage]:
    """Open a database in memory: which one it is makes no difference to what is sent."""
    with open_storage("sqlite://") as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with AnthropicServer() as running:
        yield running


def claude(server: AnthropicServer, **settings: Any) -> ChatAnthropic:
    return ChatAnthropic(model="claude-sonnet-5", base_url=server.base_url, api_key="none", max_retries=0, **settings)


def claude_graph(server: AnthropicServer, storage: Storage) -> Any:
    return build_graph(AGENT, model=claude(server), summarizer=ScriptedModel([]), storage=storage)


def talk(server: AnthropicServer, storage: Storage, turns: int, **dials: Any) -> None:
    """Say something in each turn; the assistant looks up a table in every third one."""
    graph = claude_graph(server, storage)
    for turn in range(turns):
        server.reply(*[ToolUse("look", {"n": 8})] * (turn % 3 == 1), f"answer {turn} " + "word " * 40)
        ask(graph, f"question {turn} " + "more " * 40, **dials)


def marks(server: AnthropicServer, request: int = -1) -> list[str]:
    return [_said(block) for block in blocks_of(server.requests[request]) if is_marked(block)]


def _said(block: dict[str, Any]) -> str:
    content = block.get("text") or block.get("content") or block["name"]
    text = content if isinstance(content, str) else content[0]["text"]
    return f"{block['role']}: {' '.join(text.split()[:2])}"


def head_of(body: dict[str, Any]) -> list[Any]:
    """Return a request up to its second mark: tools, system, anchor, summary and notes."""
    blocks = blocks_of(body)
    end = [place for place, block in enumerate(blocks) if is_marked(block)][1]
    return [{**block, "cache_control": None} for block in blocks[: end + 1]]


def head_events(storage: Storage) -> list[PromptAssembled]:
    return [event for event in events(storage.store, "t") if isinstance(event, PromptAssembled)]


def test_the_marks_stand_at_system_head_last_turn_and_end(server: AnthropicServer, storage: Storage) -> None:
    talk(server, storage, 3)

    assert marks(server) == ["system: Be brief.", "user: question 0", "assistant: answer 1", "user: question 2"]


def test_inside_a_turn_the_last_mark_is_on_the_tool_result(server: AnthropicServer, storage: Storage) -> None:
    talk(server, storage, 2)

    assert marks(server) == ["system: Be brief.", "user: question 0", "assistant: answer 0", "user: row 0"]


async def test_ainvoke_marks_the_same_places(server: AnthropicServer) -> None:
    server.reply("one", "two")
    async with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=claude(server), storage=storage)
        for text in ("question 0", "question 1"):
            await graph.ainvoke({"messages": text}, CONFIG, context=Context())

    assert marks(server) == ["system: Be brief.", "user: question 0", "assistant: one", "user: question 1"]


def test_a_streamed_reply_is_marked_and_counted_too(server: AnthropicServer, storage: Storage) -> None:
    graph = build_graph(AGENT, model=claude(server), storage=storage)
    server.reply("one two three")

    parts = list(graph.stream({"messages": "question 0"}, CONFIG, context=Context(), stream_mode="messages"))

    assert "".join(message.text for message, _ in parts).strip() == "one two three"
    assert marks(server) == ["system: Be brief.", "user: question 0"]
    assert graph.get_state(CONFIG).values["calibration"]["anchors"]


def test_while_the_head_stands_still_all_of_the_last_prompt_is_read_from_the_cache(
    server: AnthropicServer, storage: Storage
) -> None:
    talk(server, storage, 9)

    assert not any(event.head_moved for event in head_events(storage))
    written = 0
    for usage in server.usage:
        assert usage["cache_read_input_tokens"] == written
        written = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        assert usage["input_tokens"] == 0


@dataclass(frozen=True)
class Talk:
    """What a thread has sent, what was counted for it, and what was told of its prompts."""

    requests: list[dict[str, Any]]
    usage: list[dict[str, int]]
    heads: list[PromptAssembled]


@pytest.fixture(scope="module")
def long_talk() -> Talk:
    """Talk once until the head has moved a few times."""
    with AnthropicServer() as server, open_storage("sqlite://") as storage:
        talk(server, storage, 18, window=3_000)
        return Talk(server.requests, server.usage, head_events(storage))


def test_the_mark_of_the_head_stands_still_while_the_head_does(long_talk: Talk) -> None:
    heads = [head_of(body) for body in long_talk.requests[1:]]
    moved = [bool(event.head_moved) for event in long_talk.heads[1:]]
    assert 0 < sum(moved) < len(moved) / 3
    for number in range(1, len(heads)):
        assert moved[number] or heads[number] == heads[number - 1]


def test_after_a_compaction_tools_and_system_are_still_read(long_talk: Talk) -> None:
    moved = [number for number, event in enumerate(long_talk.heads) if event.head_moved == "compacted"]
    assert moved
    assert all(long_talk.usage[number]["cache_read_input_tokens"] > 0 for number in moved)


@pytest.mark.slow
def test_the_input_of_a_long_thread_costs_a_sixth(server: AnthropicServer, storage: Storage) -> None:
    talk(server, storage, 60, window=8_000)

    read, written, plain = (sum(column) for column in zip(*(_columns(usage) for usage in server.usage), strict=True))
    assert 0.1 * read + 1.25 * written + plain < 0.17 * (read + written + plain)


def _columns(usage: dict[str, int]) -> tuple[int, int, int]:
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]


def test_more_results_than_the_api_looks_back_are_still_read_in_the_next_turn(
    server: AnthropicServer, storage: Storage
) -> None:
    graph = build_graph(AGENT, model=claude(server), storage=storage)
    server.reply("hello", *[ToolUse("look", {"n": 1})] * 15, "done", "bye")

    for number in range(3):
        ask(graph, f"question {number}")

    assert server.usage[-1]["cache_read_input_tokens"] >= server.usage[-2]["cache_read_input_tokens"]


@pytest.fixture(params=["invoke", "ainvoke"])
def say(request: pytest.FixtureRequest) -> Any:
    def send(agent: Any, text: str) -> None:
        config = {"configurable": {"thread_id": "t", "user_id": "ann"}}
        if request.param == "ainvoke":
            asyncio.run(agent.ainvoke({"messages": text}, config))
        else:
            agent.invoke({"messages": text}, config)

    return send


def test_somebody_elses_agent_is_marked_at_the_system_message_and_the_end(
    server: AnthropicServer, storage: Storage, say: Any
) -> None:
    agent = storage.guard(
        create_agent(
            claude(server),
            [look],
            system_prompt="Be brief.",
            middleware=[EverthreadMiddleware(window=8_000)],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
    )
    server.reply(ToolUse("look", {"n": 2}), "answer 0", "answer 1")

    say(agent, "question 0")
    say(agent, "question 1")

    ends = [marks(server, number) for number in range(3)]
    assert [found[-1] for found in ends] == ["user: question 0", "user: row 0", "user: question 1"]
    assert all(len(found) == 2 and found[0].startswith("system:") for found in ends)
    assert all(usage["cache_read_input_tokens"] > 0 for usage in server.usage[1:])


def test_langchains_own_caching_behind_ours_stays_within_four_marks(
    server: AnthropicServer, storage: Storage, say: Any
) -> None:
    agent = create_agent(
        claude(server),
        [look],
        system_prompt="Be brief.",
        middleware=[EverthreadMiddleware(window=8_000), AnthropicPromptCachingMiddleware()],
        checkpointer=storage.checkpointer,
        store=storage.store,
    )
    server.reply("answer 0", "answer 1")

    say(agent, "question 0")
    say(agent, "question 1")

    assert "cache_control" in server.requests[-1]
    assert len(marks(server)) == 3


def test_the_dial_turns_it_off(server: AnthropicServer, storage: Storage) -> None:
    talk(server, storage, 2, prompt_cache=False)

    assert marks(server) == []


def test_a_wrapped_claude_is_marked_and_one_with_another_fallback_is_not(
    server: AnthropicServer, storage: Storage
) -> None:
    for model in (claude(server).with_retry(), claude(server).with_fallbacks([ScriptedModel()])):
        server.reply("hello")
        ask(build_graph(AGENT, model=model, storage=storage), "hi")

    assert [len(marks(server, number)) for number in (0, 1)] == [4 - 2, 0]


def test_another_provider_gets_no_mark_unless_it_is_asked_for(storage: Storage) -> None:
    model = ScriptedModel(["one", "two"])
    graph = build_graph(AGENT, model=model, storage=storage)

    ask(graph, "hi")
    ask(graph, "hi again", prompt_cache=True)

    assert [isinstance(prompt[-1].content, str) for prompt in model.prompts] == [True, False]


def test_marks_are_not_kept_in_the_thread(server: AnthropicServer, storage: Storage) -> None:
    talk(server, storage, 2)

    state = build_graph(AGENT, model="offline", storage=storage).get_state(CONFIG)
    assert "cache_control" not in str(state.values["messages"])


def test_the_counts_settle_on_the_usage_that_is_reported(storage: Storage) -> None:
    count = counter_for(None).text
    with AnthropicServer(count=lambda text: int(count(text) * 1.35) + 4, overhead=340) as server:
        talk(server, storage, 8)
        learned = Calibration.from_json(claude_graph(server, storage).get_state(CONFIG).values["calibration"])
        server.reply("bye")
        ask(claude_graph(server, storage), "one more question")

    prompt = head_events(storage)[-1]
    assert prompt.accuracy == "anchored"
    assert learned.apply(prompt.tokens) == pytest.approx(sum(server.usage[-1].values()), rel=0.01)
