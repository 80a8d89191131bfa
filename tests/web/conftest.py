"""Workers on one database: SQLite in memory, or Postgres."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from everthread import open_storage
from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage
from everthread.web import JwtKeys, Limits, create_app
from small_agent import AGENT
from web_worker import SECRET, GatedModel, MakeWorker, Worker


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    url = request.getfixturevalue("postgres_tables") if request.param == "postgres" else "sqlite://"
    with open_storage(url, lock_timeout_seconds=0.05) as opened:
        yield opened


@pytest.fixture
async def worker(storage: Storage) -> AsyncIterator[MakeWorker]:
    made: list[Worker] = []

    def make(
        *replies: str | AIMessage | Exception,
        agents: Any = (AGENT,),
        gate: asyncio.Event | None = None,
        auth: Any = None,
        fixed: Any = None,
        storage: Storage = storage,
        **limits: Any,
    ) -> Worker:
        model = ScriptedModel(replies) if gate is None else GatedModel(replies, gate=gate)
        auth = auth or JwtKeys(secret=SECRET)
        app = create_app(storage, agents, auth=auth, model=model, fixed=fixed, limits=Limits(**limits))
        made.append(Worker(app, model, storage))
        return made[-1]

    yield make
    for one in made:
        await one.app.state.service.runs.close(0)
        for client in one.opened:
            await client.aclose()
