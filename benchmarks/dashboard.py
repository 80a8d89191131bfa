"""Measure the dashboard: pages of hostile and of long threads, and many watchers of threads that are being talked in.

    python benchmarks/dashboard.py [--turns 10000] [--watchers 200] [--threads 20] [--rounds 5] [--json FILE]

In the environment of `make test`. The server is a process of its own on loopback. Pages: one reader, 30 loads of each,
wall time until the last byte; with Chromium also the time to the first paint. Watchers: each has the live timeline of a
thread open; a turn is a tool call and a reply of 60 words, streamed. An event's delay is the time from the ledger's
entry of a prompt until a watcher has that prompt. CPU is the server's, per turn, with watchers against without.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from everthread import Agent, Context, build_graph, open_storage
from everthread.models.scripted import CannedModel, Tools
from everthread.web import LocalUser, create_app

PAGE_MARK_MS, PAINT_MARK_MS, EVENT_MARK_MS, CPU_MARK = 300, 1_000, 250, 1.1

HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=alert(1)> \x1b[31mred\x1b[0m \u202etfel ot thgir\u202c "
)
CONTEXT = {"window": 60_000}


@tool
def look(kind: str) -> str:
    """Look something up."""
    if kind == "large":
        return (HOSTILE + "a row of the table\n") * (5_000_000 // (len(HOSTILE) + 19))
    return HOSTILE + "\n".join(f"row {number} of the table" for number in range(12))


AGENT = Agent(name="bench", title="Bench", instructions="Be brief.", tools=[look])


class Talker(CannedModel):
    """Calls the tool once or as often as it is asked to, and then says sixty words."""

    @property
    def _llm_type(self) -> str:
        return "talker"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Return calls behind a question, words behind results."""
        if messages[-1].type != "human":
            return AIMessage(f"{HOSTILE}{'The table has it all. ' * 12}")
        asked = re.match(r"(\d+) (\w+)", str(messages[-1].text))
        count, kind = (int(asked[1]), asked[2]) if asked else (1, "small")
        calls = [{"name": "look", "args": {"kind": kind}, "id": f"c{len(messages)}-{n}"} for n in range(count)]
        return AIMessage("", tool_calls=calls)


def serve(url: str, port: int) -> None:
    """Run the server until it is ended."""
    with open_storage(url) as storage:
        app = create_app(storage, [AGENT], auth=LocalUser(), model=Talker())
        uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)).run()


class Server:
    """A server on a database, as a process."""

    def __init__(self, url: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        command = [sys.executable, __file__, "--serve", url, "--port", str(self.port)]
        self.process = subprocess.Popen(command)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Server":
        for _ in range(300):
            try:
                httpx.get(f"{self.url}/healthz")
                return self
            except httpx.TransportError:
                time.sleep(0.1)
        raise SystemExit("the server does not answer")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def cpu(self) -> float:
        """Return the seconds of CPU so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def build(url: str, turns: int) -> None:
    """Fill a database with a long thread and a hostile one."""
    with open_storage(url) as storage:
        graph = build_graph(AGENT, model=Talker(), summarizer="offline", storage=storage)

        def say(thread: str, text: str, **dials: Any) -> None:
            context = Context(user_id="local", **{"ledger_turns": None, **dials})
            graph.invoke({"messages": text}, {"configurable": {"thread_id": thread}}, context=context)

        for number in range(turns):
            say("long", f"1 small, question {number}", window=6_000)
        say("hostile", HOSTILE)
        say("hostile", "1 large", window=60_000)
        say("hostile", "300 small", window=200_000)
        say("hostile", HOSTILE * 40, window=200_000)


def pages(url: str, loads: int) -> dict[str, dict[str, float]]:
    """Return the times of each page in ms."""
    figures: dict[str, dict[str, float]] = {}
    with Server(url) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        paths = {"threads": ""}
        for thread in ("hostile", "long"):
            at = f"/threads/{thread}"
            calls = re.findall(rf"{at}/calls/([^\"]+)", client.get(f"/dashboard{at}").text)
            views = {
                "timeline": at,
                "chat": f"{at}/chat",
                "messages": f"{at}/messages",
                "call": f"{at}/calls/{calls[0]}",
            }
            if thread == "long":
                views["timeline, page in the middle"] = f"{at}?before=5000"
                views["messages, page in the middle"] = f"{at}/messages?before=20000"
            views |= {
                "compaction": f"{at}/compaction",
                "why": f"{at}/why?q=question 17" if thread == "long" else f"{at}/why?q=red",
            }
            paths |= {f"{thread}: {name}": path for name, path in views.items()}
        for name, path in paths.items():
            times = []
            for _ in range(loads):
                began = time.perf_counter()
                answer = client.get(f"/dashboard{path}")
                times.append((time.perf_counter() - began) * 1e3)
                assert answer.status_code == 200, (name, answer.text)
                for one in ("<script>document", "\x1b", "\u202e"):
                    assert one not in answer.text, name
            figures[name] = {"p50": statistics.median(times), "p95": sorted(times)[max(int(len(times) * 0.95) - 1, 0)]}
            figures[name]["kB"] = len(answer.content) / 1e3
        paint = asyncio.run(first_paint(f"{server.url}/dashboard/threads/long"))
        if paint is not None:
            figures["long: timeline, first paint in Chromium"] = {"p50": paint, "p95": paint}
    return figures


async def first_paint(url: str) -> float | None:
    """Return the time to the first contentful paint of a page in ms; None without Chromium."""
    chromium = shutil.which("chromium")
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    async with async_playwright() as started:
        browser = await started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(url)
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
        # Not by `wait_for_function`: the page's policy lets nobody evaluate a text again and again.
        while (found := float(await page.evaluate(paint))) < 0:
            await page.wait_for_timeout(10)
        await browser.close()
    return found


async def talking(server: Server, threads: Sequence[str], rounds: int, watchers: int) -> tuple[float, list[float]]:
    """Talk in all threads at once while somebody watches; return CPU seconds a turn and the delays in ms."""
    seen: dict[tuple[str, int, int], float] = {}
    faults: list[str] = []
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:
        is_open: list[asyncio.Event] = [asyncio.Event() for _ in range(watchers)]

        async def watch(number: int) -> None:
            thread = threads[number % len(threads)]
            try:
                async with client.stream("GET", f"/dashboard/threads/{thread}/live", timeout=None) as stream:
                    async for line in stream.aiter_lines():
                        is_open[number].set()
                        if found := re.search(r"the newest prompt, turn ([\d,]+)", line):
                            seen.setdefault((thread, number, int(found[1].replace(",", ""))), time.time())
            except httpx.HTTPError as error:
                faults.append(repr(error))

        async def talk(thread: str) -> None:
            # As people do: not all at once, and with a pause to read.
            pauses = random.Random(thread)
            await asyncio.sleep(pauses.uniform(0, 2))
            for turn in range(rounds):
                body = {"message": f"1 small, round {turn}", "context": CONTEXT}
                answer = await client.post(f"/threads/{thread}/runs", json=body)
                if answer.status_code != 200:
                    faults.append(answer.text)
                await asyncio.sleep(pauses.uniform(1, 3))

        watching = [asyncio.create_task(watch(number)) for number in range(watchers)]
        for opened in is_open:
            await asyncio.wait_for(opened.wait(), 60)
        known = {thread: (await turns_of(client, thread)) for thread in threads}
        before = server.cpu()
        await asyncio.gather(*map(talk, threads))
        spent = server.cpu() - before
        await asyncio.sleep(0.5)
        delays = []
        for thread in threads if watchers else ():
            at = {}
            page = (await client.get(f"/threads/{thread}/ledger?kind=prompt_assembled&limit=200")).json()["events"]
            for event in page:
                at.setdefault(event["turn"], datetime.fromisoformat(event["at"]).timestamp())
            for number in range(watchers):
                if threads[number % len(threads)] == thread:
                    for turn in (one for one in at if one > known[thread]):
                        if (thread, number, turn) in seen:
                            delays.append((seen[thread, number, turn] - at[turn]) * 1e3)
                        else:
                            faults.append(f"watcher {number} never saw turn {turn}")
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    if faults:
        raise SystemExit(f"{len(faults)} errors, such as {faults[0]}")
    return spent / (len(threads) * rounds), delays


async def turns_of(client: httpx.AsyncClient, thread: str) -> int:
    """Return the turns of a thread."""
    return int((await client.get(f"/threads/{thread}")).json()["turns"])


async def watched(url: str, count: int, watchers: int, rounds: int) -> dict[str, float]:
    """Compare a run with watchers with two without, one before and one after it."""
    with Server(url) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            threads = [(await client.post("/threads", json={})).json()["id"] for _ in range(count)]
        await talking(server, threads, 3, 0)
        first, _ = await talking(server, threads, rounds, 0)
        spent, delays = await talking(server, threads, rounds, watchers)
        last, _ = await talking(server, threads, rounds, 0)
    alone = (first + last) / 2
    delays.sort()
    return {
        "CPU ms a turn without": alone * 1e3,
        "CPU ms a turn with": spent * 1e3,
        "ratio": spent / alone,
        "event p50 ms": delays[len(delays) // 2],
        "event p95 ms": delays[int(len(delays) * 0.95)],
        "events": float(len(delays)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and exit with 1 when a mark is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loads", type=int, default=30)
    parser.add_argument("--database", help="a file that an earlier run left; kept")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve, options.port)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(options.database or f"{folder}/pages.db")
        if not file.exists():
            build(f"sqlite:///{file}", options.turns)
        figures = pages(f"sqlite:///{file}", options.loads)
        print(f"{'page':42} {'p50 ms':>8} {'p95 ms':>8} {'kB':>7}")
        for name, one in figures.items():
            print(f"{name:42} {one['p50']:8.0f} {one['p95']:8.0f} {one.get('kB', 0):7.0f}")
        watch = {}
        if options.watchers:
            url = f"sqlite:///{folder}/watched.db"
            watch = asyncio.run(watched(url, options.threads, options.watchers, options.rounds))
        for name, value in watch.items():
            print(f"{name:42} {value:8.2f}")
    if options.json:
        options.json.write_text(json.dumps({"pages": figures, "watchers": watch}, indent=1) + "\n")
    slow = [name for name, one in figures.items() if one["p95"] > (PAINT_MARK_MS if "paint" in name else PAGE_MARK_MS)]
    is_late = bool(watch) and (watch["ratio"] > CPU_MARK or watch["event p95 ms"] > EVENT_MARK_MS)
    return bool(slow) or is_late


if __name__ == "__main__":
    sys.exit(main())
