"""Workers in processes of their own, on a loopback port: killed, stopped, left by their clients."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from server import OpenAIServer
from web_process import WorkerProcess, start_worker
from web_worker import events_of

pytestmark = pytest.mark.slow


class Provider(OpenAIServer):
    """A model whose calls wait while `gate` is closed."""

    def __init__(self) -> None:
        super().__init__(key=None, handler=self._gated)
        self.gate = threading.Event()
        self.called = threading.Semaphore(0)

    def _gated(self, body: Any) -> str:
        self.called.release()
        self.gate.wait(30)
        return "Here I am."

    def __exit__(self, *args: Any) -> None:
        self.gate.set()
        super().__exit__(*args)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as opened:
        yield opened


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Any]:
    """Start workers on one database; it takes seconds, so those that nothing happens to are shared."""
    folder = tmp_path_factory.mktemp("workers")
    settings = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-test"}
    options = f"--agent travel --wait 5s --model openai:{provider.models[0]}".split()
    with ExitStack() as started:
        yield lambda *more: started.enter_context(start_worker(folder, *options, *more, **settings))


@pytest.fixture(scope="module")
def pair(start: Any) -> tuple[WorkerProcess, WorkerProcess]:
    """Two workers that go on."""
    with ThreadPoolExecutor() as threads:
        first, second = threads.map(lambda _: start(), range(2))
    return first, second


@pytest.fixture(autouse=True)
def _closed(provider: Provider) -> None:
    provider.gate.clear()
    while provider.called.acquire(blocking=False):
        pass


def in_background(work: Any, *args: Any, **kwargs: Any) -> threading.Thread:
    def quietly() -> None:
        with suppress(httpx.HTTPError):
            work(*args, **kwargs)

    thread = threading.Thread(target=quietly)
    thread.start()
    return thread


def test_a_turn_of_a_killed_worker_is_finished_by_another(start: Any, pair: Any, provider: Provider) -> None:
    one, other = start(), pair[0]
    thread = one.new_thread()
    request = in_background(one.say, thread)
    assert provider.called.acquire(timeout=30)

    one.process.kill()
    request.join()
    left = other.client.get(f"/threads/{thread}").json()
    provider.gate.set()
    finished = other.client.post(f"/threads/{thread}/resume").json()
    again = other.say(thread).json()

    assert (left["status"], left["run_id"]) == ("unfinished", "m-1")
    assert (finished["id"], finished["status"], finished["reply"]) == ("m-1", "done", "Here I am.")
    assert again == finished
    assert other.client.get(f"/threads/{thread}/messages").json()["total"] == 2


def test_a_stopped_worker_finishes_its_turn(start: Any, provider: Provider) -> None:
    one = start()
    thread, answers = one.new_thread(), []
    request = in_background(lambda: answers.append(one.say(thread).json()))
    assert provider.called.acquire(timeout=30)

    one.process.send_signal(signal.SIGTERM)
    _until_closed(one.port)
    provider.gate.set()
    request.join()

    assert answers[0]["reply"] == "Here I am."
    assert one.process.wait(timeout=30) == 0


def test_a_stopped_worker_hands_back_what_takes_too_long(start: Any, pair: Any, provider: Provider) -> None:
    one, other = start("--grace", "0s"), pair[0]
    thread, answers = one.new_thread(), []
    request = in_background(lambda: answers.append(one.say(thread, stream=True).text))
    assert provider.called.acquire(timeout=30)

    one.process.send_signal(signal.SIGTERM)
    request.join()
    code = one.process.wait(timeout=30)
    provider.gate.set()
    taken_up = other.client.post(f"/threads/{thread}/resume").json()

    assert (code, events_of(answers[0])[-1][1]) == (0, "error")
    assert events_of(answers[0])[-1][2]["status"] == 503
    assert taken_up["reply"] == "Here I am."


def test_a_client_that_leaves_its_stream_finds_the_answer(pair: Any, provider: Provider) -> None:
    one, other = pair
    thread = one.new_thread()
    body = {"message": "Hello.", "message_id": "m-1", "stream": True}
    with one.client.stream("POST", f"/threads/{thread}/runs", json=body) as stream:
        assert next(stream.iter_lines()).startswith("id: ")

    running = other.client.get(f"/threads/{thread}/runs/m-1").json()
    provider.gate.set()
    followed = events_of(other.client.get(f"/threads/{thread}/runs/m-1/stream").text)

    assert running["status"] == "running"
    assert (followed[-1][1], followed[-1][2]["reply"]) == ("done", "Here I am.")
    assert other.client.get(f"/threads/{thread}").json()["status"] == "idle"


def test_a_run_is_cancelled_from_another_worker(pair: Any, provider: Provider) -> None:
    one, other = pair
    thread, answers = one.new_thread(), []
    request = in_background(lambda: answers.append(one.say(thread)))
    assert provider.called.acquire(timeout=30)

    accepted = other.client.post(f"/threads/{thread}/runs/m-1/cancel")
    request.join()

    assert accepted.status_code == 202
    assert answers[0].status_code == 409
    assert other.client.get(f"/threads/{thread}").json()["status"] == "unfinished"


def test_two_workers_take_turns_on_a_thread(pair: Any, provider: Provider) -> None:
    provider.gate.set()
    workers = pair
    thread = workers[0].new_thread()

    def talk(place: int) -> None:
        for turn in range(5):
            assert workers[place].say(thread, f"m-{place}-{turn}", f"This is {place}, {turn}.").status_code == 200

    talking = [threading.Thread(target=talk, args=(place,)) for place in range(2)]
    for one in talking:
        one.start()
    for one in talking:
        one.join()

    messages = workers[0].client.get(f"/threads/{thread}/messages").json()["messages"]
    asked = [message["id"] for message in messages if message["role"] == "user"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 10
    for place in range(2):
        assert [name for name in asked if name.startswith(f"m-{place}")] == [f"m-{place}-{turn}" for turn in range(5)]


def _until_closed(port: int) -> None:
    """Wait until a worker takes no connections any more."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            return
    raise AssertionError("the worker still takes connections")
