"""Ollama through its real client: its context length, its limit of a reply, and what its usage teaches."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_ollama import ChatOllama

from everthread import Context, EverthreadMiddleware, build_graph, open_storage
from everthread.ledger import events
from everthread.models.identity import describe
from everthread.models.provider import resolve
from everthread.models.wrapped import OLLAMA_CONTEXT, input_limit
from everthread.storage.open import Storage
from everthread.window.budget import UNKNOWN_WINDOW
from small_agent import AGENT, CONFIG, ask, look


class OllamaServer(ThreadingHTTPServer):
    """Ollama's chat API on loopback; it counts a token for every four characters and cuts nothing."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.requests: list[dict[str, Any]] = []
        self.replies: deque[dict[str, Any]] = deque()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def reply(self, text: str, *calls: tuple[str, dict[str, Any]]) -> None:
        tool_calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
        self.replies.append({"role": "assistant", "content": text, "tool_calls": tool_calls})


class _Connection(BaseHTTPRequestHandler):
    timeout = 5
    server: OllamaServer

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: pytest shows the test's own output only."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        size = len(json.dumps([body["messages"], body.get("tools")])) // 4
        answer = {
            "model": body["model"],
            "created_at": "2026-01-01T00:00:00Z",
            "message": self.server.replies.popleft(),
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": size,
            "eval_count": 5,
        }
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode() + b"\n")


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def llama(server: OllamaServer, **settings: Any) -> ChatOllama:
    return ChatOllama(model="llama3.2", base_url=server.base_url, **settings)


def test_its_context_length_is_its_window(server: OllamaServer) -> None:
    assert input_limit(llama(server, num_ctx=16_384)) == 16_384
    assert input_limit(llama(server).with_retry()) == OLLAMA_CONTEXT


def test_by_name_it_is_asked_for_the_window_that_is_assumed() -> None:
    model = resolve("ollama:llama3.2")

    assert describe(model) == "ollama:llama3.2"
    assert input_limit(model) == UNKNOWN_WINDOW


def test_it_calls_tools_and_its_reports_are_the_anchor(server: OllamaServer, storage: Storage) -> None:
    server.reply("", ("look", {"n": 1}))
    server.reply("one row")

    messages = ask(build_graph(AGENT, model=llama(server, num_ctx=16_384), storage=storage), "look it up")["messages"]

    prompts = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"]
    assert messages[-1].text == "one row"
    assert [(prompt.window, prompt.accuracy) for prompt in prompts] == [(16_384, "estimated"), (16_384, "anchored")]


@pytest.mark.parametrize("wrap", [False, True])
def test_the_limit_of_a_reply_has_its_own_name(wrap: bool, server: OllamaServer, storage: Storage) -> None:
    model = llama(server, num_ctx=16_384)
    graph = build_graph(AGENT, model=model.with_retry() if wrap else model, storage=storage)
    server.reply("hello")

    ask(graph, "hi", max_output_tokens=77)

    assert server.requests[0]["options"] == {"num_ctx": 16_384, "num_predict": 77}
    assert server.requests[0]["tools"]


async def test_ainvoke_does_the_same(server: OllamaServer) -> None:
    server.reply("hello")
    async with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=llama(server, num_ctx=16_384), storage=storage)
        await graph.ainvoke({"messages": "hi"}, CONFIG, context=Context(max_output_tokens=77))

    assert server.requests[0]["options"]["num_predict"] == 77


def test_the_middleware_limits_a_reply_too(server: OllamaServer, storage: Storage) -> None:
    agent = create_agent(
        llama(server, num_ctx=16_384),
        [look],
        middleware=[EverthreadMiddleware(max_output_tokens=77)],
        checkpointer=storage.checkpointer,
        store=storage.store,
    )
    server.reply("hello")

    agent.invoke({"messages": "hi"}, {"configurable": {"thread_id": "t", "user_id": "ann"}})

    assert server.requests[0]["options"]["num_predict"] == 77
