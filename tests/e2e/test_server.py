"""`langgraph dev` serves the graphs of `langgraph.json`: a real server on loopback, driven through `langgraph_sdk`."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from everthread import open_storage
from everthread.storage.reading import read_thread

ROOT = Path(__file__).parents[2]
START_SECONDS = 120.0
"""How long a busy machine may take to start the server."""
MISSING = [name for name in ("langgraph_cli", "langgraph_api") if find_spec(name) is None]

pytestmark = [
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"the extra `studio` is not installed: no {' and no '.join(MISSING)}"),
]


ITS_OWN: dict[str, Any] = {"checkpointer": None, "store": None, "http": None}
"""Leaves out what `langgraph.json` names of ours: the server has a checkpointer and a store of its own."""


@dataclass(frozen=True)
class Server:
    url: str
    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(tmp_path_factory.mktemp("server"), ITS_OWN) as opened:
        yield opened


@contextmanager
def started(folder: Path, more: dict[str, Any] | None = None, **settings: str) -> Iterator[Server]:
    """Start a server with our `langgraph.json`, and more in it."""
    # The server keeps its data in `.langgraph_api` of the working directory, so it gets one of its own.
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    (folder / "langgraph.json").write_text(json.dumps({**config, **(more or {})}))
    (folder / "src").symlink_to(ROOT / "src")
    port, log = _free_port(), folder / "log.txt"
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    # As `make studio`: a lock is taken on the event loop.
    command += ["--allow-blocking", "--port", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**_offline(), "EVERTHREAD_DATABASE": f"sqlite:///{folder}/own.db", **settings},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _await_start(process, f"http://127.0.0.1:{port}/ok", log, deadline=time.monotonic() + START_SECONDS)
        yield Server(f"http://127.0.0.1:{port}", log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def client(server: Server) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=server.url) as made:
        yield made


@pytest.fixture
def user() -> str:
    return f"u-{uuid.uuid4().hex[:8]}"


def said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def say(client: SyncLangGraphClient, thread: str, text: str, user: str, agent: str = "travel") -> Any:
    return client.runs.wait(thread, agent, input=said(text), context={"user_id": user})


def approve(client: SyncLangGraphClient, thread: str, user: str) -> Any:
    return client.runs.wait(thread, "travel", command={"resume": {"approved": True}}, context={"user_id": user})


def run_job(client: SyncLangGraphClient, thread: str, **given: Any) -> Any:
    return client.runs.wait(thread, "consolidation", input=given)


def new_thread(client: SyncLangGraphClient) -> str:
    return client.threads.create()["thread_id"]


def state(client: SyncLangGraphClient, thread: str) -> Any:
    return client.threads.get_state(thread)


def notes(client: SyncLangGraphClient, user: str) -> list[str]:
    return [item["value"]["text"] for item in client.store.search_items(("users", user, "notes"))["items"]]


def assistant(client: SyncLangGraphClient, graph: str) -> str:
    return client.assistants.search(graph_id=graph)[0]["assistant_id"]


def test_the_server_starts_offline(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/ok", timeout=60) as answer:
        assert answer.status == 200


def test_the_server_has_an_assistant_for_each_graph(client: SyncLangGraphClient) -> None:
    found = client.assistants.search()

    assert sorted(one["graph_id"] for one in found) == ["consolidation", "support", "travel"]
    assert all(one["description"] for one in found)


@pytest.mark.parametrize("graph", ["travel", "support", "consolidation"])
@pytest.mark.parametrize("part", ["input_schema", "output_schema", "context_schema"])
def test_every_field_that_studio_shows_is_explained(client: SyncLangGraphClient, graph: str, part: str) -> None:
    schema: Any = client.assistants.get_schemas(assistant(client, graph))[part]  # type: ignore[literal-required]
    if graph == "consolidation" and part == "context_schema":
        assert schema is None  # the job has no dials
        return

    assert schema["title"]
    assert schema["description"]
    bare = {name: {"title", "description", "default"} - set(field) for name, field in schema["properties"].items()}
    assert {name: lacking for name, lacking in bare.items() if lacking} == {}


def test_a_run_streams_messages_updates_and_events(client: SyncLangGraphClient, user: str) -> None:
    parts = list(
        client.runs.stream(
            new_thread(client),
            "travel",
            input=said("Remember that I am vegetarian."),
            context={"user_id": user},
            stream_mode=["messages", "updates", "custom"],
        )
    )

    nodes = [node for part in parts if part.event == "updates" for node in part.data]
    events = [part.data["event"] for part in parts if part.event == "custom"]
    words = [part.data[0]["content"] for part in parts if part.event == "messages/partial"]
    assert {"inject_memory", "model", "tools"} <= set(nodes)
    assert {"injected", "prompt_assembled", "note_saved"} <= set(events)
    assert len(set(words)) > 2  # the reply grows word by word


def test_the_second_run_continues_the_thread(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Remember that I am vegetarian.", user)

    say(client, thread, "What do you know about me?", user)

    values = state(client, thread)["values"]
    asked = [message["content"] for message in values["messages"] if message["type"] == "human"]
    assert asked == ["Remember that I am vegetarian.", "What do you know about me?"]
    assert values["turns"] == 2


def test_the_history_has_every_checkpoint_of_the_thread(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Hello!", user, agent="support")

    history: Any = client.threads.get_history(thread, limit=100)

    assert history[0]["values"]["messages"][-1]["type"] == "ai"
    assert history[0]["checkpoint"] == state(client, thread)["checkpoint"]
    assert ["model"] in [list(one["next"]) for one in history]


def test_a_booking_waits_for_approval_and_a_resumed_run_books(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Find me a flight from San Francisco to Paris on 2027-03-10.", user)

    asked = say(client, thread, "Book the first one for Ada Lovelace.", user)["__interrupt__"][0]["value"]
    told = approve(client, thread, user)

    assert asked["details"]["travellers"] == ["Ada Lovelace"]
    assert told["messages"][-1]["type"] == "ai"
    trips = client.store.search_items(("users", user, "trips"))["items"]
    assert [trip["value"]["option_id"] for trip in trips] == [asked["details"]["option_id"]]


def test_the_end_of_a_session_makes_its_notes_long_term(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Remember that I am vegetarian.", user)
    before = notes(client, user)

    client.runs.wait(thread, "travel", input={"end_session": True}, context={"user_id": user})

    assert before == []
    assert any("vegetarian" in note.lower() for note in notes(client, user))


def test_the_job_ends_a_session_without_touching_its_thread(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Remember that I am vegetarian.", user)
    before = state(client, thread)

    done = run_job(client, new_thread(client), thread_id=thread, user_id=user)

    assert done == {"ended": [thread], "kept": []}
    assert any("vegetarian" in note.lower() for note in notes(client, user))
    assert state(client, thread)["checkpoint"] == before["checkpoint"]


def test_the_job_without_a_thread_ends_idle_sessions_once(client: SyncLangGraphClient, user: str) -> None:
    thread, job = new_thread(client), new_thread(client)
    say(client, thread, "Remember that I am vegetarian.", user)

    active = run_job(client, job, user_id=user)
    idle = run_job(client, job, user_id=user, idle_minutes=0)
    again = run_job(client, job, user_id=user, idle_minutes=0)

    assert [active["ended"], idle["ended"], again["ended"]] == [[], [thread], []]


def test_the_job_refuses_to_run_on_a_conversation(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Hello!", user)

    with pytest.raises(Exception, match="which is a conversation"):
        run_job(client, thread, user_id=user)

    say(client, thread, "Still there?", user)
    assert state(client, thread)["values"]["turns"] == 2


def test_a_failed_run_tells_the_client_why(client: SyncLangGraphClient) -> None:
    with pytest.raises(Exception, match="user 'ann' has no session on thread 'nowhere'"):
        run_job(client, new_thread(client), thread_id="nowhere", user_id="ann")


def test_the_job_of_nobody_ends_nothing(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)
    say(client, thread, "Remember that I am vegetarian.", user)

    for given in ({}, {"idle_minutes": 0}, {"thread_id": thread}, {"thread_id": thread, "user_id": "somebody"}):
        with pytest.raises(Exception, match=r"whose sessions|user 'somebody' has no session on thread"):
            run_job(client, new_thread(client), **given)

    assert notes(client, user) == []


def test_a_client_cannot_set_a_fixed_dial(client: SyncLangGraphClient, user: str) -> None:
    thread = new_thread(client)

    with pytest.raises(Exception, match="`model` is fixed by this deployment"):
        client.runs.wait(thread, "travel", input=said("Hi!"), context={"user_id": user, "model": "openai:gpt-5"})

    assert not state(client, thread)["values"]


def test_no_node_blocks_the_event_loop(client: SyncLangGraphClient, server: Server, user: str) -> None:
    for agent, text in (("travel", "Find me a hotel in Rome."), ("support", "My VPN does not connect.")):
        say(client, new_thread(client), text, user, agent=agent)

    assert "Background run succeeded" in server.said()
    assert "synchronous blocking call" not in server.said()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _offline() -> dict[str, str]:
    """Return the environment of `make studio`; whatever still calls out meets a closed door at once."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVERTHREAD_", "OPENAI_"))}
    return kept | {
        "EVERTHREAD_FIXED": "model",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _await_start(process: subprocess.Popen[bytes], url: str, log: Path, *, deadline: float) -> None:
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the server stopped with code {process.returncode}:\n{log.read_text()[-4000:]}")
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except OSError:
            time.sleep(0.05)
    process.kill()
    pytest.fail(f"the server did not answer {url} within {START_SECONDS:g} s:\n{log.read_text()[-4000:]}")


@pytest.mark.slow
def test_the_page_shows_what_was_said_to_the_server(tmp_path: Path) -> None:
    with started(tmp_path) as opened, get_sync_client(url=opened.url) as client:
        thread = new_thread(client)
        say(client, thread, "Remember that I am vegetarian.", "local")
        again = say(client, thread, "What do you know about me?", "local")
        pages = {path: _page(opened, f"/threads/{thread}{path}") for path in ("", "/chat", "/messages", "/compaction")}
        notes = _page(opened, "/notes")

    assert "vegetarian" in again["messages"][-1]["content"]
    assert "the newest prompt, turn 2" in pages[""]
    assert "What do you know about me?" in pages["/chat"]
    assert "Remember that I am vegetarian." in pages["/messages"]
    assert "Nothing can leave the prompt yet" in pages["/compaction"]
    assert "Is vegetarian." in notes
    with open_storage(f"sqlite:///{tmp_path}/own.db", create=False) as storage:
        assert read_thread(storage, thread).messages[0].text == "Remember that I am vegetarian."


def _page(server: Server, path: str) -> str:
    with urllib.request.urlopen(f"{server.url}/dashboard{path}", timeout=30) as answer:
        return str(answer.read().decode())
