"""An OpenAI-compatible chat server on loopback, as strict as the real one.

It refuses orphaned tool messages, unanswered tool calls, prompts over the window, wrong keys and unknown models, and
it can be told to fail in every way that a provider fails. Nothing is estimated: who sets a window passes the counter.

    with OpenAIServer() as server:
        server.reply("Hello.", [Call("search_hotels", {"city": "Paris"})], Refusal(429, "wait", times=2), Fault.DROP)
        ChatOpenAI(model=server.models[0], base_url=server.base_url, api_key=server.key)
"""

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call; `args` as text is sent as it stands, which makes a truncated call."""

    name: str
    args: dict[str, Any] | str
    id: str = ""


@dataclass(frozen=True)
class Answer:
    text: str = ""
    calls: Sequence[Call] = ()
    finish: str | None = None
    """Finish reason; None is `tool_calls` when there are calls, else `stop`."""


@dataclass(frozen=True)
class Refusal:
    """An error answer, given `times` times in a row; `in_stream` sends it as an event inside a stream."""

    status: int
    message: str = "The server had an error while processing your request."
    code: str | int | None = None
    type: str = "invalid_request_error"
    times: int = 1
    in_stream: bool = False
    body: Body | None = None
    """The whole body, for servers whose errors are shaped otherwise."""


class Fault(Enum):
    TIMEOUT = "no byte is sent until the server closes"
    STALL = "the stream begins and then hangs until the server closes"
    DROP = "the socket closes in the middle of the reply"
    EOF = "the stream ends cleanly, without a finish reason"
    GARBAGE = "the reply is not JSON"
    EMPTY = "the reply is complete and empty"
    NO_CHOICES = "the reply holds no choice"


Reply = str | Answer | Sequence[Call] | Refusal | Fault
Handler = Callable[[Body], Reply]


def _openai(window: int, prompt: int, reserve: int) -> Refusal:
    sizes = f"your messages resulted in {prompt} tokens"
    if reserve:
        sizes = f"you requested {prompt + reserve} tokens ({prompt} in the messages, {reserve} in the completion)"
    text = f"This model's maximum context length is {window} tokens. However, {sizes}. Please reduce the length."
    return Refusal(400, text, "context_length_exceeded")


def _openai_configured(window: int, prompt: int, _reserve: int) -> Refusal:
    text = f"Input tokens exceed the configured limit of {window} tokens. Your messages resulted in {prompt} tokens."
    return Refusal(400, text, "context_length_exceeded")


def _azure(window: int, prompt: int, _reserve: int) -> Refusal:
    inner = {"code": "context_length_exceeded", "limit": window, "prompt": prompt}
    error = {"code": "BadRequest", "message": "The request could not be processed.", "innererror": inner}
    return Refusal(400, body={"error": error})


def _vllm(window: int, prompt: int, reserve: int) -> Refusal:
    text = (
        f"This model's maximum context length is {window} tokens. However, you requested {prompt + reserve} tokens "
        f"({prompt} in the messages, {reserve} in the completion). Please reduce the length of the messages."
    )
    body = {"object": "error", "message": text, "type": "BadRequestError", "param": None, "code": 400}
    return Refusal(400, body=body)


def _ollama(_window: int, _prompt: int, _reserve: int) -> Refusal:
    return Refusal(400, "input length exceeds maximum context length", None, "api_error")


def _llamacpp(window: int, prompt: int, _reserve: int) -> Refusal:
    error = {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": prompt,
        "n_ctx": window,
    }
    return Refusal(400, body={"error": error})


def _lmstudio(window: int, prompt: int, _reserve: int) -> Refusal:
    text = (
        f"Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded with "
        f"context length of only {window} tokens, which is not enough."
    )
    return Refusal(400, text, in_stream=True)


WORDINGS: dict[str, Callable[[int, int, int], Refusal]] = {
    "openai": _openai,
    "openai-configured": _openai_configured,
    "azure": _azure,
    "vllm": _vllm,
    "ollama": _ollama,
    "llamacpp": _llamacpp,
    "lmstudio": _lmstudio,
}


class OpenAIServer:
    """The server; enter it to start, leave it to stop. Replies come from the queue, then from `handler`.

    Args:
        key: the only accepted key; None accepts every request.
        models: names that `/v1/models` lists; any other is 404.
        window: limit in tokens of prompt + reply reserve; needs `count`.
        count: tokens of a request body, also used for the reported usage.
        wording: whose error text an overflow has, a key of `WORDINGS`.
        handler: makes the reply when the queue is empty.
    """

    def __init__(
        self,
        *,
        key: str | None = "sk-test-0123456789abcdef",
        models: Sequence[str] = ("gpt-4.1-mini",),
        window: int | None = None,
        count: Callable[[Body], int] | None = None,
        wording: str = "openai",
        handler: Handler | None = None,
    ) -> None:
        if window is not None and count is None:
            raise ValueError("`window` needs `count`, an exact token counter")
        self.key = key
        self.models = list(models)
        self.window = window
        self.count = count
        self.wording = wording
        self.handler = handler
        self.requests: list[Body] = []
        self.surprises = 0
        self.closing = threading.Event()
        self._replies: deque[Reply] = deque()
        self._lock = threading.Lock()

    def reply(self, *replies: Reply) -> None:
        """Queue replies; a refusal counts `times` times."""
        for reply in replies:
            times = reply.times if isinstance(reply, Refusal) else 1
            self._replies.extend([reply] * times)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if kind is None and self.surprises:
            raise AssertionError(f"{self.surprises} requests came without a queued reply or a handler")

    def answer(self, key: str | None, body: Body) -> Reply:
        """Check a request as the real server does, then take the next reply."""
        with self._lock:
            self.requests.append(body)
            refusal = self._refusal(key, body)
            if refusal:
                return refusal
            if self._replies:
                return self._replies.popleft()
            if self.handler:
                return self.handler(body)
            self.surprises += 1
            return Refusal(400, "the test queued no reply for this request")

    def usage(self, body: Body, message: Body) -> Body | None:
        """Tokens of the call by the given counter; None without one."""
        if self.count is None:
            return None
        prompt, reply = self.count(body), self.count({"messages": [message]})
        return {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}

    def _refusal(self, key: str | None, body: Body) -> Refusal | None:
        if self.key is not None and key is None:
            return Refusal(401, "You didn't provide an API key.", "invalid_api_key")
        if self.key is not None and key != self.key:
            return Refusal(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        if body.get("model") not in self.models:
            text = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return Refusal(404, text, "model_not_found")
        problem = pairing_problem(body.get("messages", []))
        if problem:
            return Refusal(400, f"Invalid parameter: {problem}")
        return self._overflow(body)

    def _overflow(self, body: Body) -> Refusal | None:
        if self.window is None or self.count is None:
            return None
        prompt = self.count(body)
        reserve = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        if prompt + reserve <= self.window:
            return None
        return WORDINGS[self.wording](self.window, prompt, reserve)


def pairing_problem(messages: Sequence[Body]) -> str | None:
    """Name the first broken tool pair in the real server's words; None when every call is answered right after it."""
    if not messages:
        return "[] is too short - 'messages'"
    pending: set[str] = set()
    for message in [*messages, {"role": "end"}]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            pending.remove(message["tool_call_id"])
            continue
        if pending:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                + ", ".join(sorted(pending))
            )
        pending = {call["id"] for call in message.get("tool_calls") or ()}
    return None


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # leaving the server waits for every connection, so no socket outlives its test

    def __init__(self, owner: OpenAIServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.owner = owner


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: pytest shows the test's own output only."""

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            self._send_json(404, {"error": {"message": f"Unknown request URL: GET {self.path}"}})
            return
        models = [{"id": name, "object": "model", "owned_by": "test"} for name in self.server.owner.models]
        self._send_json(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/chat/completions":
            self._send_json(404, {"error": {"message": f"Unknown request URL: POST {self.path}"}})
            return
        key = (self.headers.get("authorization") or "").removeprefix("Bearer ") or None
        try:
            self._give(self.server.owner.answer(key, body), body)
        except ConnectionError:  # the client gave up first, which is what a test of its time-out wants
            self.close_connection = True

    def _give(self, reply: Reply, body: Body) -> None:
        owner = self.server.owner
        if reply is Fault.TIMEOUT:
            self.close_connection = True
            owner.closing.wait()
        elif isinstance(reply, Refusal):
            self._refuse(reply, bool(body.get("stream")))
        else:
            fault = reply if isinstance(reply, Fault) else None
            message, finish = _message(reply, len(owner.requests))
            if body.get("stream"):
                self._stream(message, finish, fault, body)
            else:
                self._complete(message, finish, fault, body)

    def _refuse(self, refusal: Refusal, stream: bool) -> None:
        error = {"message": refusal.message, "type": refusal.type, "param": None, "code": refusal.code}
        body = refusal.body or {"error": error}
        if refusal.in_stream and stream:
            self._start_stream()
            self._send_chunk(_event(body))
            self._end_stream()
            return
        self._send_json(refusal.status, body)

    def _complete(self, message: Body, finish: str | None, fault: Fault | None, body: Body) -> None:
        choice = {"index": 0, "message": message, "finish_reason": None if fault is Fault.EOF else finish}
        whole = _envelope("chat.completion", body) | {
            "choices": [] if fault is Fault.NO_CHOICES else [choice],
            "usage": self.server.owner.usage(body, message),
        }
        if fault is Fault.GARBAGE:
            self._send(200, b"<html>Welcome to the proxy</html>", "text/html")
        elif fault in (Fault.DROP, Fault.STALL):
            self._send(200, json.dumps(whole).encode(), cut=True, stall=fault is Fault.STALL)
        else:
            self._send_json(200, whole)

    def _stream(self, message: Body, finish: str | None, fault: Fault | None, body: Body) -> None:
        self._start_stream()
        if fault is Fault.GARBAGE:
            self._send_chunk(b"data: <html>Welcome to the proxy</html>\n\n")
            self._end_stream()
            return
        head = _envelope("chat.completion.chunk", body)
        if fault is not Fault.NO_CHOICES:
            for delta in _deltas(message):
                self._send_chunk(_event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
        if fault is Fault.STALL:
            self.server.owner.closing.wait()
        if fault in (Fault.DROP, Fault.STALL):
            return  # the last, empty chunk is missing, so the client sees a body that broke off
        if fault not in (Fault.EOF, Fault.NO_CHOICES):
            self._send_chunk(_event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
            if (body.get("stream_options") or {}).get("include_usage"):
                usage = self.server.owner.usage(body, message)
                self._send_chunk(_event(head | {"choices": [], "usage": usage}))
            self._send_chunk(b"data: [DONE]\n\n")
        self._end_stream()

    def _start_stream(self) -> None:
        self._headers(200, "text/event-stream", {"Transfer-Encoding": "chunked"})

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _send_json(self, status: int, body: Body) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(
        self, status: int, data: bytes, kind: str = "application/json", *, cut: bool = False, stall: bool = False
    ) -> None:
        self._headers(status, kind, {"Content-Length": str(len(data))})
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.wfile.flush()
        if stall:
            self.server.owner.closing.wait()

    def _headers(self, status: int, kind: str, more: dict[str, str]) -> None:
        # One request per connection: no idle socket is left in a client's pool when the test ends.
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Connection": "close", **more}.items():
            self.send_header(name, value)
        if status >= 400:
            self.send_header("retry-after-ms", "1")  # the client's own back-off would take seconds
        self.end_headers()
        self.close_connection = True


def _message(reply: Reply, number: int) -> tuple[Body, str | None]:
    if isinstance(reply, str):
        reply = Answer(reply)
    elif isinstance(reply, Fault):
        broken = reply in (Fault.DROP, Fault.EOF, Fault.STALL)
        reply = Answer("This reply breaks off" if broken else "")
    elif not isinstance(reply, Answer | Refusal):
        reply = Answer(calls=tuple(reply))
    assert isinstance(reply, Answer)
    message: Body = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = [_wire(call, f"call_{number}_{i}") for i, call in enumerate(reply.calls)]
    return message, reply.finish or ("tool_calls" if reply.calls else "stop")


def _wire(call: Call, default_id: str) -> Body:
    call = replace(call, id=call.id or default_id)
    arguments = call.args if isinstance(call.args, str) else json.dumps(call.args)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _deltas(message: Body) -> Iterator[Body]:
    yield {"role": "assistant", "content": ""}
    for piece in re.findall(r"\s*\S+\s*$|\s*\S+|\s+", message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        begin = call | {"index": index, "function": call["function"] | {"arguments": ""}}
        yield {"tool_calls": [begin]}
        for part in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _envelope(kind: str, body: Body) -> Body:
    return {"id": "chatcmpl-test", "object": kind, "created": 1_764_000_000, "model": body.get("model")}


def _event(data: Body) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"
