"""Our checkpointer and store for a LangGraph server, which `langgraph.json` can name in place of its own.

`EVERTHREAD_DATABASE` says which database they open. See docs/deploy.md for what the server then does with each.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from everthread.errors import SettingsError
from everthread.storage.open import Storage, open_storage


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpointer, as `"checkpointer": {"path": "everthread.graph.server_storage.checkpointer"}`."""
    async with _opened() as storage:
        yield storage.checkpointer


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """Open the store, as `"store": {"path": "everthread.graph.server_storage.store"}`."""
    async with _opened() as storage:
        yield storage.store


def _opened() -> Storage:
    url = os.environ.get("EVERTHREAD_DATABASE")
    if not url:
        raise SettingsError("which database? set EVERTHREAD_DATABASE for the server")
    return open_storage(url)
