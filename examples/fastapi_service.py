"""A FastAPI service: each user has threads of their own, and replies are streamed.

    python examples/fastapi_service.py                  # plays two users against it in this process
    uvicorn --app-dir examples fastapi_service:app      # serves it on port 8000, for:
    curl -N -H 'x-user: ann' -d 'My VPN does not connect.' localhost:8000/threads/t-1

The header `x-user` stands for the login of a real service: whoever sets it is that user.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig

from everthread import Context, build_graph, open_storage
from everthread.agents import support
from everthread.errors import EverthreadError, SettingsError

try:
    from fastapi import FastAPI, Header, HTTPException, Request
    from fastapi.responses import StreamingResponse
except ModuleNotFoundError as error:
    sys.exit(f"{error.name!r} is not installed: pip install fastapi uvicorn")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep one storage open for all requests."""
    async with open_storage(os.environ.get("EVERTHREAD_DATABASE", "sqlite:///:memory:")) as storage:
        app.state.graph = build_graph(support, model=os.environ.get("EVERTHREAD_MODEL", "offline"), storage=storage)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/threads/{thread_id}")
async def say(thread_id: str, request: Request, x_user: Annotated[str, Header()]) -> StreamingResponse:
    """Run a turn and stream the reply as it is written."""
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    message = (await request.body()).decode()
    graph: Any = request.app.state.graph
    parts = graph.astream({"messages": message}, thread, context=Context(user_id=x_user), stream_mode="messages")
    try:
        # The first part is awaited here: a refusal has to become a status before the stream begins.
        first = await anext(parts, None)
    except SettingsError as error:
        raise HTTPException(404, "no such thread") from error
    except EverthreadError as error:
        raise HTTPException(503, str(error)) from error

    async def texts() -> AsyncIterator[str]:
        if first is not None:
            yield _text(first)
        async for part in parts:
            yield _text(part)

    return StreamingResponse(texts(), media_type="text/plain")


def _text(part: tuple[Any, dict[str, Any]]) -> str:
    message, metadata = part
    is_reply = isinstance(message, AIMessageChunk) and metadata.get("langgraph_node") == "model"
    return str(message.text) if is_reply else ""


async def main() -> None:
    """Play two users: each has an answer, and neither gets into the other's thread."""
    transport = httpx.ASGITransport(app)
    async with lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for user, thread in (("ann", "a-1"), ("bob", "b-1"), ("bob", "a-1")):
            headers = {"x-user": user}
            reply = await client.post(f"/threads/{thread}", content="My VPN does not connect.", headers=headers)
            print(f"{user} on {thread}: {reply.status_code} {reply.text.strip()[:60]}")


if __name__ == "__main__":
    asyncio.run(main())
