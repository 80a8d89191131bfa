"""What a route is: method and path, what it takes and returns; app and OpenAPI document are made from it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from everthread.errors import SettingsError
from everthread.web.auth import Identity
from everthread.web.problems import Problem, invalid
from everthread.web.service import OwnThread, Service

PING = b": still there\n\n"
PING_SECONDS = 15.0
"""Proxies cut a stream off that is silent for a minute."""


@dataclass(frozen=True)
class Call:
    """One request, read and checked."""

    service: Service
    identity: Identity
    request: Request
    body: Any
    """Of the operation's type, or the fields of a page's form; None when it takes none."""
    query: Any
    """Of the operation's type, or the parameters of a page's address."""

    @property
    def path(self) -> Mapping[str, str]:
        """Return the parts of the path by their names."""
        return {name: unquote(value) for name, value in self.request.path_params.items()}

    async def own_thread(self) -> OwnThread:
        """Return the caller's thread that the path names.

        Raises:
            Problem: 404, there is none, or it is another user's.
        """
        return await self.service.own(self.identity, self.path["thread_id"])


@dataclass(frozen=True)
class Answer:
    """What an endpoint returns when it is more than a value with the operation's own status."""

    value: Any
    status: int
    headers: dict[str, str]


_NOBODY = Identity("nobody", "public", "public")


@dataclass(frozen=True)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    endpoint: Callable[[Any], Awaitable[Any]]
    """Takes a `Call`; its docstring is the description."""

    @property
    def name(self) -> str:
        """Its name among the routes, and its id in the OpenAPI document."""
        return self.endpoint.__name__

    @property
    def parameters(self) -> list[str]:
        """Names in its path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


@dataclass(frozen=True)
class Operation(Endpoint):
    """An endpoint of the API."""

    returns: Any
    """Type of the JSON that it returns."""
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    status: int = 200
    problems: Sequence[int] = ()
    """Statuses beside those that the kind of route brings with it."""
    streams: bool = False
    """It may answer with server-sent events."""
    is_public: bool = False
    """Nobody has to sign in."""

    async def handle(self, request: Request) -> Response:
        """Read a request, call the endpoint and return its answer."""
        state = request.app.state
        call = Call(
            service=state.service,
            identity=_NOBODY if self.is_public else request.state.identity,
            request=request,
            body=await _body(self.body, request, state.limits.body_bytes) if self.body else None,
            query=validated(self.query, dict(request.query_params)) if self.query else None,
        )
        answer = await self.endpoint(call)
        if isinstance(answer, Response):
            return answer
        if not isinstance(answer, Answer):
            answer = Answer(answer, self.status, {})
        content = TypeAdapter(Any).dump_json(answer.value, fallback=str)
        return Response(content, answer.status, answer.headers, media_type="application/json")


def root_of(request: Request) -> str:
    """Return the address of the app, without a `/` at its end; it may be mounted into another one."""
    return quote(request.scope.get("root_path", ""))


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return server-sent events as a response that no proxy holds back."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def read_body(request: Request, most: int, media_type: str) -> bytes:
    """Read the body of a request.

    Args:
        request: not read yet.
        most: bytes that it may have.
        media_type: what it has to be, unless it is empty.

    Raises:
        Problem: 400, 413 or 415.
    """
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > most:
                raise Problem(413, f"the body may have {most:,} bytes")
    except ClientDisconnect as error:
        raise Problem(400, "the body broke off") from error
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if data and kind != media_type:
        raise Problem(415, f"send the body as `Content-Type: {media_type}`")
    return bytes(data)


async def _body(schema: type[BaseModel], request: Request, most: int) -> Any:
    """Read and check a body.

    Raises:
        Problem: 413, 415 or 422.
    """
    # A form of another site could send any other type without asking.
    data = await read_body(request, most, "application/json")
    try:
        return schema.model_validate_json(data or b"{}")
    except ValidationError as error:
        raise invalid(error) from error
    except SettingsError as error:
        raise Problem(422, str(error)) from error


def validated(schema: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """Return values as a schema has them.

    Raises:
        Problem: 422.
    """
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise invalid(error) from error
