"""The page beside LangGraph Studio: what `http.app` of `langgraph.json` names.

It shows the threads of the server, whose checkpointer and store are therefore those of `graph.server_storage`. Like
that server it asks nobody to sign in, so it answers this machine alone.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from everthread.graph.agent import ready_agents
from everthread.graph.server import fixed_dials
from everthread.storage.open import open_storage
from everthread.web.app import create_app, stop_runs
from everthread.web.auth import LocalUser
from everthread.web.dashboard import PREFIX

_DATABASE = "sqlite:///everthread.db"

_Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Page:
    """The page alone, without the API of `serve`: the server has one of its own under the same paths."""

    page: _Answer | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.page is not None
        await self.page(scope, receive, send)


_PAGE = _Page()


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    fixed: dict[str, Any] = fixed_dials(os.environ.get("EVERTHREAD_FIXED", ""))
    async with open_storage(os.environ.get("EVERTHREAD_DATABASE", _DATABASE)) as storage:
        page = create_app(
            storage, [*ready_agents().values()], auth=LocalUser(os.environ.get("EVERTHREAD_USER", "local")), fixed=fixed
        )
        _PAGE.page = page
        try:
            yield
        finally:
            await stop_runs(page)


app = Starlette(routes=[Route(PREFIX, _PAGE), Route(f"{PREFIX}/{{rest:path}}", _PAGE)], lifespan=_lifespan)
