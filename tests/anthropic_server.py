"""Anthropic's Messages API on loopback, with its prompt cache, as strict about marks as the real one.

with AnthropicServer() as server:
    server.reply("Hello.", ToolUse("look", {"n": 1}))
    ChatAnthropic(model="claude-sonnet-5", base_url=server.base_url, api_key="none")
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]
Block = dict[str, Any]

LOOKED_BACK = 20
"""Blocks ahead of a mark in which the API looks for what it has cached."""


@dataclass(frozen=True)
class ToolUse:
    """A reply that calls a tool."""

    name: str
    input: dict[str, Any]


class AnthropicServer:
    """The server; enter it to start, leave it to stop.

    Args:
        count: tokens of the JSON of one block; the reported usage is made of it.
        overhead: tokens that the provider adds to every prompt.
    """

    def __init__(self, *, count: Callable[[str], int] = lambda text: len(text) // 4 + 1, overhead: int = 0) -> None:
        self.requests: list[Body] = []
        self.usage: list[dict[str, int]] = []
        self._count, self._overhead = count, overhead
        self._replies: deque[str | ToolUse] = deque()
        self._cached: set[str] = set()

    def reply(self, *replies: str | ToolUse) -> None:
        """Queue replies."""
        self._replies.extend(replies)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, body: Body) -> tuple[int, Body]:
        """Check a request, work out what of it was cached, and take the next reply."""
        self.requests.append(body)
        if problem := _problem(body):
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": problem}}
        self.usage.append(self._use_cache(blocks_of(body), is_whole="cache_control" in body))
        reply = self._replies.popleft()
        content: Block = {"type": "text", "text": reply}
        if isinstance(reply, ToolUse):
            name = f"toolu_{len(self.requests)}"
            content = {"type": "tool_use", "id": name, "name": reply.name, "input": reply.input}
        return 200, {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [content],
            "stop_reason": "tool_use" if isinstance(reply, ToolUse) else "end_turn",
            "stop_sequence": None,
            "usage": {**self.usage[-1], "output_tokens": self._count(json.dumps(content))},
        }

    def _use_cache(self, blocks: list[Block], *, is_whole: bool) -> dict[str, int]:
        texts = [_text(block) for block in blocks]
        sizes = [self._count(text) for text in texts]
        marks = [place for place, block in enumerate(blocks) if is_marked(block)]
        if is_whole and len(blocks) - 1 not in marks:
            marks.append(len(blocks) - 1)
        prefixes = ["\n".join(texts[: place + 1]) for place in range(len(texts))]
        read = written = 0
        for mark in marks:
            for place in range(mark, max(mark - LOOKED_BACK, -1), -1):
                if prefixes[place] in self._cached:
                    read = max(read, sum(sizes[: place + 1]))
                    break
        if marks:
            written = max(sum(sizes[: marks[-1] + 1]) - read, 0)
        self._cached |= {prefixes[mark] for mark in marks}
        return {
            "input_tokens": sum(sizes) - read - written + self._overhead,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }


def blocks_of(body: Body) -> list[Block]:
    """Return the blocks of a request in the order of the cache: tools, system, messages, each with its role."""
    system = body.get("system") or []
    blocks = [{"role": "tools", **tool} for tool in body.get("tools") or []]
    blocks += [{"role": "system", **block} for block in _as_blocks(system)]
    for message in body["messages"]:
        blocks += [{"role": message["role"], **block} for block in _as_blocks(message["content"])]
    return blocks


def is_marked(block: Block) -> bool:
    """Tell whether the cache ends at this block."""
    return "cache_control" in block


def _as_blocks(content: str | list[Block]) -> list[Block]:
    # A text is a short form of one block.
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(block: Block) -> str:
    plain = {name: value for name, value in block.items() if name != "cache_control"}
    if isinstance(plain.get("content"), list) and all(part["type"] == "text" for part in plain["content"]):
        plain["content"] = "".join(part["text"] for part in plain["content"])
    return json.dumps(plain, sort_keys=True)


def _problem(body: Body) -> str | None:
    marked = [block for block in blocks_of(body) if is_marked(block)]
    # A mark for the whole request stands on the last block, and takes a place even if that one is full.
    if len(marked) + ("cache_control" in body) > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    for block in marked:
        if block.get("type") == "text" and not block["text"]:
            return "cache_control cannot be set for empty text blocks"
        if block.get("type") in ("thinking", "redacted_thinking"):
            return "cache_control cannot be set for thinking blocks"
    return None


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # leaving the server waits for every connection, so no socket outlives its test

    def __init__(self, owner: AnthropicServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.owner = owner


class _Connection(BaseHTTPRequestHandler):
    timeout = 5
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: pytest shows the test's own output only."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, answer = self.server.owner.answer(body)
        is_stream = bool(body.get("stream")) and status == 200
        data = "".join(map(_event, _events(answer))) if is_stream else json.dumps(answer)
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data.encode())


def _event(event: Body) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _events(answer: Body) -> Iterator[Body]:
    block = answer["content"][0]
    yield {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}
    if block["type"] == "text":
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for word in block["text"].split(" "):
            delta = {"type": "text_delta", "text": word + " "}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": answer["usage"]}
    yield {"type": "message_stop"}
