"""A worker of `serve` in this process, and callers who sign in with tokens."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt
from langchain_core.outputs import ChatGenerationChunk

from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage

SECRET = "a secret of at least 32 bytes, for tests"


def token(user_id: Any, **claims: Any) -> str:
    return jwt.encode({"sub": user_id, "exp": time.time() + 600, **claims}, SECRET)


class GatedModel(ScriptedModel):
    """Sends the first word of a reply, and the rest once `gate` is set."""

    gate: Any

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        first = True
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk
            if first and not self.gate.is_set():
                first = False
                await self.gate.wait()


def events_of(text: str) -> list[tuple[str, str, Any]]:
    """Return id, kind and data of each server-sent event."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if lines:
            found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


@dataclass
class Worker:
    """One app, and clients of it."""

    app: Any
    model: Any
    storage: Storage
    opened: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, user_id: Any = "ada", **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {token(user_id)}", **headers}
        client = httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers)
        self.opened.append(client)
        return client

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():  # noqa: ASYNC110 - what is waited for knows nothing of tests
                await asyncio.sleep(0.001)


MakeWorker = Callable[..., Worker]


async def new_thread(client: httpx.AsyncClient) -> str:
    made = await client.post("/threads")
    assert made.status_code == 201
    return str(made.json()["id"])


async def say(client: httpx.AsyncClient, thread: str, text: str = "Hello.", **more: Any) -> httpx.Response:
    return await client.post(f"/threads/{thread}/runs", json={"message": text, **more})
