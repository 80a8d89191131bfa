"""A model that fails, lies or breaks off in the middle of its stream: the thread goes on, and nothing of it is lost."""

import json
import random
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from attack.conftest import AttackRow
from attack.scale import tries
from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.reading import read_thread
from server import pairing_problem
from small_agent import AGENT

APIS = ("invoke", "stream", "ainvoke", "astream")
CONFIG: Any = {"configurable": {"thread_id": "t"}}
ANN = Context(user_id="ann")
_REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")


def _status(kind: Any, status: int, body: Any = None) -> Exception:
    return kind("refused by the provider", response=httpx.Response(status, request=_REQUEST), body=body)


EXCEPTIONS: dict[str, Callable[[], Exception]] = {
    "401": lambda: _status(openai.AuthenticationError, 401),
    "403": lambda: _status(openai.PermissionDeniedError, 403),
    "404": lambda: _status(openai.NotFoundError, 404),
    "400": lambda: _status(openai.BadRequestError, 400),
    "400, a body that is a list": lambda: _status(openai.BadRequestError, 400, [1, None]),
    "422": lambda: _status(openai.UnprocessableEntityError, 422),
    "429": lambda: _status(openai.RateLimitError, 429),
    "500": lambda: _status(openai.InternalServerError, 500),
    "503": lambda: _status(openai.InternalServerError, 503),
    "time-out": lambda: openai.APITimeoutError(_REQUEST),
    "connection": lambda: openai.APIConnectionError(request=_REQUEST),
    "httpx read": lambda: httpx.ReadError("gone", request=_REQUEST),
    "httpx protocol": lambda: httpx.RemoteProtocolError("peer closed", request=_REQUEST),
    "httpx status": lambda: httpx.HTTPStatusError("502", request=_REQUEST, response=httpx.Response(502)),
    "TLS": lambda: ssl.SSLError("certificate verify failed"),
    "reset": lambda: ConnectionResetError(104, "Connection reset by peer"),
    "time-out of Python": lambda: TimeoutError(),
    "JSON": lambda: json.JSONDecodeError("Expecting value", "<html>", 0),
    "UTF-8": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "a bug": lambda: KeyError("choices"),
    "a bug in a generator": lambda: StopIteration("no more"),
    "recursion": lambda: RecursionError("maximum recursion depth exceeded"),
    "memory": lambda: MemoryError(),
    "an empty message": lambda: RuntimeError(""),
    "a long message": lambda: RuntimeError("x" * 100_000),
}

REPLIES: dict[str, Callable[[], AIMessage]] = {
    "empty": lambda: AIMessage(""),
    "blank": lambda: AIMessage(" \n"),
    "no blocks": lambda: AIMessage([]),
    "a block of an unknown type": lambda: AIMessage([{"type": "weather", "x": [1, None]}]),
    "NUL and half a surrogate": lambda: AIMessage("a\x00b\ud800c"),
    "a million characters": lambda: AIMessage("word " * 200_000),
    "an unknown tool": lambda: AIMessage("", tool_calls=[call("launch_missiles", "c1")]),
    "a tool without a name": lambda: AIMessage("", tool_calls=[call("", "c1")]),
    "arguments of another tool": lambda: AIMessage("", tool_calls=[call("look", "c1", query="x")]),
    "arguments of another type": lambda: AIMessage("", tool_calls=[call("look", "c1", n=[{"x": None}])]),
    "calls of one id": lambda: AIMessage("", tool_calls=[call("look", "c1", n=1), call("look", "c1", n=2)]),
    "the id of an earlier call": lambda: AIMessage("", tool_calls=[call("look", "c0", n=1)]),
    "the id of an earlier message": lambda: AIMessage("Again.", id="m0"),
    "a call without an id": lambda: AIMessage("", tool_calls=[{**call("look", "", n=1), "id": None}]),
    "a call with an empty id": lambda: AIMessage("", tool_calls=[call("look", "", n=1)]),
    "sixty calls": lambda: AIMessage("", tool_calls=[call("look", f"c{one}", n=1) for one in range(1, 61)]),
    "a call that is no JSON": lambda: AIMessage(
        "",
        invalid_tool_calls=[{"name": "look", "args": '{"n": ', "id": "c1", "error": None, "type": "invalid_tool_call"}],
    ),
    "an integer of thirty digits": lambda: AIMessage("", tool_calls=[call("fail", "c1", x=10**30, y=[-(2**63) - 1])]),
    "arguments that are no UTF-8": lambda: AIMessage("", tool_calls=[call("fail", "c1", **{"\ud800": "\udfff\x00"})]),
    "a tool that fails": lambda: AIMessage("", tool_calls=[call("fail", "c1")]),
    "cut off": lambda: AIMessage("The flight is at", response_metadata={"finish_reason": "length"}),
    "usage that is nonsense": lambda: AIMessage(
        "Yes.", usage_metadata={"input_tokens": 10**12, "output_tokens": -5, "total_tokens": 0}
    ),
}


class StreamingModel(ScriptedModel):
    """A scripted model whose second reply may be a stream as it comes over the wire."""

    streaming: bool = False

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Iterator[Any]:
        wire = (self.metadata or {}).get("wire")
        if wire is None or len(self.prompts) != 1:
            yield from super()._stream(messages, stop, run_manager, **options)
            return
        self.prompts.append(messages)
        assert self.metadata is not None
        self.metadata["sent"] = True
        for part in wire():
            yield ChatGenerationChunk(message=part)


def _chunk(content: Any = "", **fields: Any) -> AIMessageChunk:
    return AIMessageChunk(content=content, id="run-1", **fields)


def _called(args: str, index: int | None = 0, name: str | None = None, call_id: str | None = None) -> AIMessageChunk:
    return _chunk(tool_call_chunks=[ToolCallChunk(name=name, args=args, id=call_id, index=index)])


def _fails(*parts: AIMessageChunk) -> Iterator[AIMessageChunk]:
    yield from parts
    raise httpx.RemoteProtocolError("peer closed connection without sending complete message body", request=_REQUEST)


_LAST = _chunk(chunk_position="last")
STREAMS: dict[str, Callable[[], Iterator[AIMessageChunk]]] = {
    "nothing": lambda: iter(()),
    "only an end": lambda: iter([_LAST]),
    "no end": lambda: iter([_chunk("It is"), _chunk(" at")]),
    "broken before the first word": lambda: _fails(),
    "broken in a sentence": lambda: _fails(_chunk("It is"), _chunk(" at")),
    "broken in a call": lambda: _fails(_called('{"n"', name="look", call_id="c1")),
    "broken between calls": lambda: _fails(
        _called('{"n": 1}', name="look", call_id="c1"), _called("", 1, name="look", call_id="c2")
    ),
    "a chunk twice": lambda: iter([_chunk("It is"), _chunk("It is"), _chunk(" at"), _LAST]),
    "an end twice": lambda: iter([_chunk("Yes."), _LAST, _LAST]),
    "words behind the end": lambda: iter([_chunk("Yes."), _LAST, _chunk(" No.")]),
    "a call whose arguments are no JSON": lambda: iter([_called('{"n": ', name="look", call_id="c1"), _LAST]),
    "a call whose arguments are a list": lambda: iter([_called("[1]", name="look", call_id="c1"), _LAST]),
    "a call without a name": lambda: iter([_called('{"n": 1}', call_id="c1"), _LAST]),
    "a call without an id": lambda: iter([_called('{"n": 1}', name="look"), _LAST]),
    "a call sent twice": lambda: iter([*[_called('{"n": 1}', name="look", call_id="c1")] * 2, _LAST]),
    "arguments of two calls mixed": lambda: iter(
        [
            _called('{"n"', 0, "look", "c1"),
            _called('{"n"', 1, "look", "c2"),
            _called(": 2}", 1),
            _called(": 1}", 0),
            _LAST,
        ]
    ),
    "arguments ahead of their name": lambda: iter([_called('{"n": 1}'), _called("", name="look", call_id="c1"), _LAST]),
    "blocks and text mixed": lambda: iter([_chunk("a"), _chunk([{"type": "text", "text": "b"}]), _chunk("c"), _LAST]),
    "ids that change": lambda: iter([_chunk("a"), AIMessageChunk(content="b", id="run-2", chunk_position="last")]),
    "a thousand empty chunks": lambda: iter([*[_chunk()] * 1_000, _LAST]),
}


async def _turn(graph: Any, api: str, number: int) -> list[BaseMessage]:
    given: Any = {"messages": [HumanMessage(f"question {number}", id=f"m{number}")]}
    if api == "invoke":
        return graph.invoke(given, CONFIG, context=ANN)["messages"]
    if api == "ainvoke":
        return (await graph.ainvoke(given, CONFIG, context=ANN))["messages"]
    options: Any = {"context": ANN, "stream_mode": "values"}
    if api == "stream":
        return list(graph.stream(given, CONFIG, **options))[-1]["messages"]
    return [part async for part in graph.astream(given, CONFIG, **options)][-1]["messages"]


def _wire(message: BaseMessage) -> dict[str, Any]:
    role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    calls = [{"id": one["id"]} for one in getattr(message, "tool_calls", ())]
    return {"role": role, "tool_call_id": getattr(message, "tool_call_id", None), "tool_calls": calls}


async def _faults(api: str, path: Path, model: StreamingModel) -> list[str]:
    """Have a good turn, the faulty one, and two good ones; name what is wrong afterwards."""
    with open_storage(f"sqlite:///{path}") as storage:
        graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
        wrong = []
        for number in range(4):
            try:
                messages = await _turn(graph, api, number)
            except Exception as error:  # noqa: BLE001 - the fault itself, as the caller gets it
                wrong += [f"turn {number} failed: {error!r:.150}"] if number != 1 else []
            else:
                wrong += [f"turn {number} has no answer"] if number != 1 and messages[-1].text != "Good." else []
        said = [one.text for one in read_thread(storage, "t").messages if one.type == "human"]
        wrong += [f"the thread has {said}"] if said != [f"question {number}" for number in range(4)] else []
    wrong += ["its stream was not asked for"] if model.streaming and "sent" not in (model.metadata or {}) else []
    torn = [problem for prompt in model.prompts if (problem := pairing_problem([*map(_wire, prompt)]))]
    return wrong + torn[:1]


CASES: dict[str, Callable[[], StreamingModel]] = {
    **{
        f"raises {name}": lambda make=make: StreamingModel(["Good.", make(), *["Good."] * 9])
        for name, make in EXCEPTIONS.items()
    },
    **{
        f"replies {name}": lambda make=make: StreamingModel(["Good.", make(), *["Good."] * 9])
        for name, make in REPLIES.items()
    },
    **{
        f"streams {name}": lambda wire=wire: StreamingModel(["Good."] * 9, streaming=True, metadata={"wire": wire})
        for name, wire in STREAMS.items()
    },
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("kind", ["raises", "replies", "streams"])
async def test_a_thread_survives_what_its_model_does(
    kind: str, api: str, tmp_path: Path, attack_row: AttackRow
) -> None:
    every = [name for name in CASES if name.startswith(kind)]
    cases = random.Random(f"{kind} {api}").sample(every, min(len(every), tries(4)))
    wrong = []
    for number, name in enumerate(cases):
        wrong += [f"{name}: {one}" for one in await _faults(api, tmp_path / f"{number}.db", CASES[name]())]
    attack_row(f"a model that {kind} what it must not", len(cases), len(wrong))

    assert wrong == []


@tool
def halve(n: int) -> str:
    """Halve a number."""
    return str(n // 2)


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_an_integer_that_no_checkpoint_holds_reaches_its_tool(api: str) -> None:
    agent = Agent(name="test", title="Test", instructions="Be brief.", tools=[halve])
    numbers = [2 * 10**40, 2**64, 2**64 - 2, -(2**63), -(2**63) - 2]
    calls = [call("halve", f"c{place}", n=number) for place, number in enumerate(numbers)]
    with open_storage("sqlite://") as storage:
        graph = build_graph(agent, model=ScriptedModel([AIMessage("", tool_calls=calls), "Done."]), storage=storage)
        given: Any = {"input": {"messages": "halve them"}, "config": CONFIG, "context": ANN}
        done = await graph.ainvoke(**given) if api == "ainvoke" else graph.invoke(**given)

    assert [one.text for one in done["messages"] if one.type == "tool"] == [str(number // 2) for number in numbers]
