"""Claude with prompt caching: where Everthread marks the cache, and what a stand-in for the API reads from it.

    python examples/claude_caching.py [DATABASE]

With `ANTHROPIC_API_KEY` set it talks to Claude. Without, to a small server in this process that keeps what stands
ahead of each `cache_control` mark, as the API does; it answers every message alike. In a clone of Everthread
it needs `pip install '.[anthropic]'`.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import SecretStr

from everthread import Agent, Context, build_graph, open_storage
from everthread.errors import installing

try:
    from langchain_anthropic import ChatAnthropic
except ModuleNotFoundError as error:
    sys.exit(f"{error.name!r} is not installed: {installing('anthropic')}")

MODEL = "claude-sonnet-5"
TURNS = 6


def prompt_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a request in the order of the cache: tools, system, messages."""
    parts = [body.get("system") or [], *(message["content"] for message in body["messages"])]
    texts = [[{"type": "text", "text": part}] if isinstance(part, str) else part for part in parts]
    return [*(body.get("tools") or []), *(block for blocks in texts for block in blocks)]


class StandIn(ThreadingHTTPServer):
    """Anthropic's Messages API on loopback, as far as this example needs it."""

    cached: set[str]

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a reply, with a usage that tells what of the prompt was cached."""
        blocks = prompt_of(body)
        texts = [json.dumps({**block, "cache_control": None}, sort_keys=True) for block in blocks]
        marks = [place + 1 for place, block in enumerate(blocks) if "cache_control" in block]
        read = max((place for place in range(len(texts) + 1) if "".join(texts[:place]) in self.cached), default=0)
        self.cached |= {"".join(texts[:place]) for place in marks}
        tokens = [len(text) // 4 for text in texts]
        usage = {
            "cache_read_input_tokens": sum(tokens[:read]),
            "cache_creation_input_tokens": sum(tokens[read : max(marks, default=read)]),
            "input_tokens": sum(tokens[max(marks, default=read) :]),
            "output_tokens": 8,
        }
        reply = {"type": "text", "text": "That is a good question. " * 20}
        head = {"id": f"msg_{len(self.cached)}", "type": "message", "role": "assistant", "model": body["model"]}
        return {**head, "content": [reply], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}


class Handler(BaseHTTPRequestHandler):
    """Hands requests to the stand-in."""

    def do_POST(self) -> None:
        """Answer one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert isinstance(self.server, StandIn)
        reply = json.dumps(self.server.answer(body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def claude() -> Iterator[ChatAnthropic]:
    """Give Claude, or its stand-in where there is no key."""
    if key := os.environ.get("ANTHROPIC_API_KEY"):
        yield ChatAnthropic(model_name=MODEL, api_key=SecretStr(key), timeout=None, stop=None)
        return
    server = StandIn(("127.0.0.1", 0), Handler)
    server.cached = set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield ChatAnthropic(model_name=MODEL, base_url=url, api_key=SecretStr("none"), timeout=None, stop=None)
    finally:
        server.shutdown()
        server.server_close()


def main(url: str) -> None:
    """Ask some questions and print how much of each prompt came from the cache."""
    agent = Agent(name="guide", title="Guide", instructions="You answer questions about old towns. " * 40)
    with claude() as model, open_storage(url) as storage:
        graph = build_graph(agent, model=model, summarizer="offline", storage=storage)
        thread: RunnableConfig = {"configurable": {"thread_id": "towns"}}
        for turn in range(TURNS):
            question = f"What should I know about old town number {turn}?"
            values = graph.invoke({"messages": question}, thread, context=Context(user_id="ann"))
            usage = values["messages"][-1].usage_metadata
            read = usage["input_token_details"].get("cache_read", 0)
            print(f"turn {turn}: {usage['input_tokens']:,} tokens, {read / usage['input_tokens']:.0%} from the cache")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///:memory:")
