"""The ASGI app of one worker."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.errors import EverthreadError, SettingsError
from everthread.graph.agent import build_graph
from everthread.graph.guard import GuardedGraph
from everthread.graph.retaining import has_policy
from everthread.models.wrapped import ChatModel
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.web.auth import LOOPBACK, Authenticator
from everthread.web.dashboard import PREFIX, page_routes
from everthread.web.dashboard.live_timeline import LiveTimelines
from everthread.web.dashboard.routes import PUBLIC
from everthread.web.dashboard.session import Sessions
from everthread.web.dashboard.views import place, refused
from everthread.web.limits import Limits, RateLimit
from everthread.web.openapi import openapi
from everthread.web.problems import Problem, answer
from everthread.web.routes import OPERATIONS
from everthread.web.service import Service
from everthread.web.sweeping import retain_daily, sweep_every

logger = logging.getLogger(__name__)

_PUBLIC = PUBLIC | frozenset({"/openapi.json", *(one.path for one in OPERATIONS if one.is_public)})
_SIGN_INS = 30
"""Tries a minute to sign in, from one address."""

_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


def create_app(
    storage: Storage,
    agents: Sequence[Agent | GuardedGraph],
    *,
    auth: Authenticator,
    model: ChatModel | str | None = None,
    fixed: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """Make the app of one worker; any number of them can share a database, and any answers any thread.

    Args:
        storage: an open database; who opened it closes it, after the app's shutdown.
        agents: who can be talked with, each under a name of its own; the first is that of new threads. An agent gets
            its graph here; a graph of your own is one that `storage.guard` returned.
        auth: finds out who calls.
        model: of the agents' graphs, as in `build_graph`.
        fixed: dials that no request may set. `model` is always one of them: the server's key pays for it.
        limits: of this worker.
        routes: more of them, behind the same sign-in; `request.state.identity` says who calls. Without any, `/` leads
            to the dashboard.

    Raises:
        SettingsError: no agent, or two of one name; or as in `build_graph`.
    """
    limits = limits or Limits()
    dials = {"model": None, **(fixed or {})}
    graphs: dict[str, GuardedGraph] = {}
    for one in agents:
        graph = one if isinstance(one, GuardedGraph) else build_graph(one, model=model, storage=storage, fixed=dials)
        name = str(graph.name)
        if name in graphs:
            raise SettingsError(f"two agents have the name {name!r}")
        graphs[name] = graph
    if not graphs:
        raise SettingsError("which agent? `agents` is empty")
    document = openapi(OPERATIONS)
    sessions = Sessions(storage.store)

    async def described(_: Request) -> Response:
        return JSONResponse(document)

    async def home(request: Request) -> Response:
        return RedirectResponse(place(request))

    # Routes of somebody else's may have a page of their own there, behind the sign-in.
    homes = [] if routes else [Route("/", home)]
    app = Starlette(
        routes=[
            *(Route(one.path, one.handle, methods=[one.method], name=one.name) for one in OPERATIONS),
            Route("/openapi.json", described),
            *page_routes(),
            *homes,
            *routes,
        ],
        middleware=[
            Middleware(
                _Gate,
                auth=auth,
                sessions=sessions,
                rate=RateLimit(limits.requests_per_minute),
                public=_PUBLIC.union(one.path for one in homes),
            )
        ],
        exception_handlers={Problem: answer, EverthreadError: answer, HTTPException: _refusal, Exception: answer},
        lifespan=_lifespan,
    )
    app.state.service = Service(storage, graphs, most_runs=limits.runs)
    app.state.timelines = LiveTimelines(app.state.service)
    app.state.limits = limits
    app.state.agents = {one.name: one for one in agents if isinstance(one, Agent)}
    app.state.auth = auth
    app.state.sessions = sessions
    app.state.sign_ins = RateLimit(_SIGN_INS)
    return app


async def stop_runs(app: Starlette) -> None:
    """Take no new runs, and end those that go on within the grace of the limits; safe to call again."""
    await app.state.service.runs.close(app.state.limits.grace_seconds)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    idle_seconds, service = app.state.limits.sweep_idle_seconds, app.state.service
    storage, agents = service.storage, app.state.agents
    timers = []
    if idle_seconds is not None:
        timers.append(asyncio.create_task(sweep_every(storage, agents, idle_seconds)))
    # With jobs, it is one of them.
    if storage.timers is None and has_policy(storage, agents.values()):
        timers.append(asyncio.create_task(retain_daily(storage, agents.values())))
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
            with suppress(asyncio.CancelledError):
                await timer
        await stop_runs(app)


async def _refusal(_: Request, error: Exception) -> Response:
    """Answer what the router refuses: no such path, or another method."""
    assert isinstance(error, HTTPException)
    detail = {404: "there is no such page", 405: "this path has another method"}.get(error.status_code, error.detail)
    problem = Problem(error.status_code, detail)
    problem.headers.update(error.headers or {})
    return problem.response()


class _Gate:
    """Lets in who is known, and not too often; ahead of the routes, so that no route can forget it.

    The API reads credentials from headers alone, which no page of another site can set, so no request can be forged.
    The pages under `/dashboard` take them from a cookie too, and their forms carry a token. A request that shows none,
    to a server without sign-in, must come from no other site's page.
    """

    def __init__(
        self, app: ASGIApp, auth: Authenticator, sessions: Sessions, rate: RateLimit, public: Collection[str]
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._auth = auth
        self._rate = rate
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": _path_of(scope)}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Without the query, which may have a user's words.
                logger.info("%s %s %d", scope["method"], scope["path"], message["status"])
                names = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [pair for pair in _HEADERS if pair[0] not in names]
            await send(message)

        try:
            if _route_path(scope) not in self._public:
                await self._let_in(Request(scope))
        except Problem as problem:
            response = refused(problem, Request(scope)) if _is_page(scope) else problem.response()
            await response(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    async def _let_in(self, request: Request) -> None:
        try:
            headers = await self._sessions.headers(request) if _is_page(request.scope) else request.headers
            identity = await self._auth.identify(headers)
        except EverthreadError as error:
            logger.error("nobody can sign in: %s", error)
            raise Problem(503, "the server cannot tell who you are; its log says why") from error
        if identity is None:
            raise Problem(401, "sign in with `Authorization: Bearer` and your key or token", WWW_Authenticate="Bearer")
        if identity.method == "local" and not _is_from_here(request):
            raise Problem(403, "a server without sign-in answers programs and pages of this machine alone")
        if seconds := self._rate.wait_seconds(identity.credential):
            raise Problem(429, "too many requests; wait a little", Retry_After=str(int(seconds) + 1))
        request.state.identity = identity


def _path_of(scope: Scope) -> str:
    """Return a path in which `/` and `%` of an id stay encoded, so that it is one part; `Call.path` decodes them."""
    # Some servers leave the query behind it.
    raw = (scope.get("raw_path") or b"").partition(b"?")[0].decode("latin-1")
    if unquote(raw) != scope["path"]:
        # There is none, or the path was changed on the way here.
        return str(scope["path"]).replace("%", "%25")
    kept = re.split("(%2[Ff]|%25)", raw)
    return "".join(part if number % 2 else unquote(part) for number, part in enumerate(kept))


def _route_path(scope: Scope) -> str:
    """Return the path below that of an app which this one is mounted into."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _is_page(scope: Scope) -> bool:
    path = _route_path(scope)
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def _is_from_here(request: Request) -> bool:
    """Tell whether a request is for a name of this machine, and from no page of another site."""
    host = request.headers.get("host", "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    origin = request.headers.get("origin", "")
    is_own = not origin or origin.lower() in (f"http://{host}", f"https://{host}")
    return (
        name.strip("[]") in LOOPBACK
        and is_own
        and request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    )
