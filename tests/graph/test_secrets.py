"""No key reaches the database, no crafted row runs code, and nobody but the owner reads the files."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.state.scrubbing import scrub
from everthread.storage.open import Storage
from openai_chat import chats
from server import OpenAIServer, Refusal

CONFIG: Any = {"configurable": {"thread_id": "t"}}
KEY = "sk-live-0123456789abcdef"


@tool
def connect(n: int) -> str:
    """Connect."""
    raise ConnectionError(f"postgresql://ada:{KEY}@host/db refused, Authorization: Bearer {KEY}")


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[connect])


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    before = os.umask(0o000)
    yield f"sqlite:///{tmp_path / 'a.db'}"
    os.umask(before)


def written(url: str) -> bytes:
    """Return every byte of the database, its log included."""
    path = Path(url.removeprefix("sqlite:///"))
    return b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())


def talk(storage: Storage, model: Any) -> None:
    graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
    graph.invoke({"messages": "Hi."}, CONFIG, context=Context())


@pytest.mark.parametrize("error", [ValueError, RuntimeError, KeyError, OSError])
def test_the_text_of_an_exception_is_saved_without_its_key(error: type[Exception], url: str) -> None:
    with open_storage(url) as storage:
        with pytest.raises(Exception, match=r"key|error"):
            talk(storage, ScriptedModel([error(f"api_key={KEY}")]))

        assert b"__error__" in written(url)
        assert KEY.encode() not in written(url)


async def test_the_async_saver_takes_the_key_out_too(url: str) -> None:
    async with open_storage(url) as storage:
        graph = build_graph(AGENT, model=ScriptedModel([KeyError(f"api_key={KEY}")]), storage=storage)
        with pytest.raises(KeyError):
            await graph.ainvoke({"messages": "Hi."}, CONFIG, context=Context())

        assert b"__error__" in written(url)
        assert KEY.encode() not in written(url)


def test_the_key_of_a_refused_call_is_nowhere(url: str) -> None:
    refused = Refusal(401, f"Incorrect API key provided: {KEY}.", "invalid_api_key")
    with open_storage(url) as storage, OpenAIServer(key=KEY) as server, chats(server) as make:
        server.reply("Hello.", refused)
        talk(storage, make())
        with pytest.raises(Exception, match="key"):
            talk(storage, make())

        assert KEY.encode() not in written(url)


def test_the_key_in_a_tools_exception_reaches_neither_the_model_nor_the_database(url: str) -> None:
    model = ScriptedModel([AIMessage("", tool_calls=[call("connect", "c1", n=1)]), "Sorry."])
    with open_storage(url) as storage:
        talk(storage, model)

        assert KEY.encode() not in written(url)
    assert "refused" in model.prompts[-1][-1].text
    assert KEY not in model.prompts[-1][-1].text


def test_the_database_and_its_log_are_for_the_owner_only(url: str, tmp_path: Path) -> None:
    with open_storage(url) as storage:
        talk(storage, ScriptedModel(["Hello."]))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600, "a.db-locks": 0o700}


def test_a_crafted_row_runs_no_code_though_langgraph_was_imported_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "ran"
    row = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", f"touch {target}"))))
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(), storage=storage)
        for saver in (storage.checkpointer, graph.checkpointer):
            saver.serde.loads_typed(("msgpack", row))

    assert "Blocked deserialization of os.system" in caplog.text
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    [KEY, f"Bearer {KEY}", f"https://h/v1?key={KEY}&x=1", f"postgresql://ada:{KEY}@h/d", f"'api_key': '{KEY}'"],
)
def test_what_looks_like_a_key_is_taken_out(text: str) -> None:
    assert KEY not in scrub(text)
