"""Let worker processes serve the same threads on one Postgres, beside plain LangGraph on `AsyncPostgresSaver`.

    python benchmarks/scale.py [--workers 1 2 4] [--threads 12 200] [--turns 40] [--before 0] [--model-ms 40]
        [--pgbouncer] [--url URL] [--only everthread langgraph] [--json FILE]

Each thread sends one message after the other, each to another worker; all threads do at once. The model waits for
`--model-ms` and answers. `--before` turns of each thread come ahead, without waiting and without being measured.
Without `--url` a private Postgres is started in a temporary folder, with its own settings for durability.

What is measured, for the turns behind `--before`: turns a second, latency from sending to the answer, CPU of the
workers, time that Postgres worked (`pg_stat_database.active_time`), and bytes of all tables after `VACUUM`, over all
turns. At the end every message of every thread must be there once, in order.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from psycopg_pool import AsyncConnectionPool
from scale_server import plain_url, pooled, schema_of, server_at

from everthread import Agent, Context, Transcript, build_graph, open_storage
from everthread.models.scripted import CannedModel, Tools
from everthread.state.marks import sequence

# Traces would be sent to a server.
os.environ.setdefault("LANGSMITH_TRACING", "false")

AGENT = Agent(name="shop", title="Shop assistant", instructions="You help customers with their orders.")
CONTENDERS = ("everthread", "langgraph")
_POOL = 8
"""Connections of a worker."""

_WORDS = ("order", "refund", "invoice", "size", "colour", "address", "parcel", "voucher", "late", "shoes", "jacket")


class SlowModel(CannedModel):
    """Answers with the user's words after a while; `seconds` is set by the worker."""

    seconds: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "slow"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Answer in some sixty tokens."""
        return AIMessage(f"re: {messages[-1].text} " + "We look into it and write to you by tomorrow evening. " * 4)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(self.seconds)
        return ChatResult(generations=[ChatGeneration(message=self.next_reply(messages, []))])


@dataclass
class Outcome:
    """What one trial showed."""

    contender: str
    workers: int
    threads: int
    turns: int
    before: int
    pgbouncer: bool
    turns_per_second: float = 0.0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    cpu_ms: float = 0.0
    """Of the workers, a turn."""
    database_ms: float = 0.0
    """In which Postgres worked, a turn."""
    bytes_per_turn: float = 0.0
    kept: int = 0
    """Messages of the user that are there once and in their place."""
    faults: list[str] = field(default_factory=list)


# The worker: lines of JSON in, lines of JSON out.


async def work(contender: str, url: str) -> None:
    """Answer messages from standard input until it ends."""
    async with AsyncExitStack() as stack:
        model = SlowModel()
        ask = await stack.enter_async_context(_CONTENDERS[contender](url, model))
        reader = asyncio.StreamReader(limit=1 << 22)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        print("ready", flush=True)

        async def answer(line: bytes) -> None:
            request = json.loads(line)
            if "model_ms" in request:
                model.seconds = request["model_ms"] / 1_000
                print(json.dumps({"id": request["id"], "cpu": time.process_time()}), flush=True)
                return
            try:
                await ask(request["thread"], request["text"])
                fault = ""
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a result
                fault = f"{type(error).__name__}: {error}"
            print(json.dumps({"id": request["id"], "fault": fault}), flush=True)

        async with asyncio.TaskGroup() as group:
            while line := await reader.readline():
                group.create_task(answer(line))


@asynccontextmanager
async def _everthread(url: str, model: SlowModel) -> AsyncIterator[Any]:
    async with open_storage(url) as storage:
        graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
        context = Context(user_id="u-1", window=8_000)

        async def ask(thread: str, text: str) -> None:
            await graph.ainvoke({"messages": text}, {"configurable": {"thread_id": thread}}, context=context)

        yield ask


@asynccontextmanager
async def _langgraph(url: str, model: SlowModel) -> AsyncIterator[Any]:
    """A graph with one node, as in LangGraph's documentation; nothing keeps two runs on a thread apart."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.graph import START, MessagesState, StateGraph
    from psycopg.rows import dict_row

    settings = {"autocommit": True, "row_factory": dict_row}
    if "pgbouncer=1" in url:
        settings["prepare_threshold"] = None  # type: ignore[assignment]
    async with AsyncConnectionPool(plain_url(url), max_size=_POOL, kwargs=settings) as pool:
        saver = AsyncPostgresSaver(pool)  # type: ignore[arg-type]
        await saver.setup()

        async def call(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState).add_node("model", call).add_edge(START, "model")
        app = graph.compile(checkpointer=saver)

        async def ask(thread: str, text: str) -> None:
            await app.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}})

        yield ask


_CONTENDERS = {"everthread": _everthread, "langgraph": _langgraph}


# The driver.


class Worker:
    """A worker process, asked and answered by lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def started(cls, contender: str, url: str) -> "Worker":
        """Start a process and wait until it can answer."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, "--work", contender, "--url", url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert (await process.stdout.readline()).strip() == b"ready", "a worker could not start"
        worker = cls(process)
        worker._reading = asyncio.create_task(worker._read())
        return worker

    async def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return its answer."""
        assert self._process.stdin is not None
        name = uuid4().hex
        self._waiting[name] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"id": name, **request}).encode() + b"\n")
        return await self._waiting[name]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).set_result(answer)

    async def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def trial(contender: str, url: str, server: str, options: argparse.Namespace, shape: tuple[int, int]) -> Outcome:
    """Run one contender with so many workers and threads.

    Args:
        contender: whose turns they are.
        url: of an empty schema, perhaps through a pooler.
        server: of Postgres itself.
        options: of the command line.
        shape: workers and threads.
    """
    workers, threads = shape
    outcome = Outcome(contender, workers, threads, options.turns, options.before, options.pgbouncer)
    # One after the other: plain LangGraph's `setup` cannot be run twice at once.
    running = [await Worker.started(contender, url) for _ in range(workers)]
    latencies: list[float] = []

    async def talk(thread: int, turns: range) -> None:
        for turn in turns:
            begun = time.perf_counter()
            answer = await running[(thread + turn) % workers].ask(thread=f"t-{thread}", text=_question(thread, turn))
            latencies.append(time.perf_counter() - begun)
            if answer["fault"]:
                outcome.faults.append(f"t-{thread}, turn {turn}: {answer['fault']}")

    async def everybody(turns: range, model_ms: float) -> float:
        """Return the CPU of the workers so far, after these turns."""
        for worker in running:
            await worker.ask(model_ms=model_ms)
        latencies.clear()
        async with asyncio.TaskGroup() as group:
            for thread in range(threads):
                group.create_task(talk(thread, turns))
        return sum([(await worker.ask(model_ms=model_ms))["cpu"] for worker in running])

    cpu = await everybody(range(options.before), 0)
    worked, begun = _active_ms(server), time.perf_counter()
    cpu = await everybody(range(options.before, options.before + options.turns), options.model_ms) - cpu
    seconds = time.perf_counter() - begun
    for worker in running:
        await worker.stop()
    count = threads * options.turns
    outcome.turns_per_second = count / seconds
    outcome.p50_ms, outcome.p95_ms = (1_000 * _quantile(latencies, share) for share in (0.5, 0.95))
    outcome.cpu_ms = 1_000 * cpu / count
    outcome.database_ms = (_active_ms(server) - worked) / count
    outcome.bytes_per_turn = _bytes(server, url) / (threads * (options.before + options.turns))
    await _check(outcome, url, server)
    return outcome


async def _check(outcome: Outcome, url: str, server: str) -> None:
    """Count the user's messages that are there, once and in order."""
    direct = f"{server}?schema={schema_of(url)}"
    async with AsyncExitStack() as stack:
        if outcome.contender == "everthread":
            storage = stack.enter_context(open_storage(direct))

            graph = build_graph(AGENT, model=SlowModel(), summarizer="offline", storage=storage)

            def messages(thread: str) -> list[BaseMessage]:
                left = Transcript(storage.store, thread, "u-1").messages()
                here = graph.get_state({"configurable": {"thread_id": thread}}).values["messages"]
                return sorted({one.id: one for one in (*left, *here)}.values(), key=sequence)

        else:
            from langgraph.checkpoint.postgres import PostgresSaver

            saver = stack.enter_context(PostgresSaver.from_conn_string(plain_url(direct)))

            def messages(thread: str) -> list[BaseMessage]:
                saved = saver.get({"configurable": {"thread_id": thread}})
                return [] if saved is None else saved["channel_values"]["messages"]

        for thread in range(outcome.threads):
            expected = [_question(thread, turn) for turn in range(outcome.before + outcome.turns)]
            found = [message.text for message in messages(f"t-{thread}") if message.type == "human"]
            outcome.kept += sum(one == other for one, other in zip(expected, found, strict=False))
            if found != expected:
                outcome.faults.append(f"t-{thread} has {len(found)} of {len(expected)} messages, or another order")


def _question(thread: int, turn: int) -> str:
    """Return a message that no other is like, in words that come again."""
    first = (thread * 7 + turn * 3) % len(_WORDS)
    words = [_WORDS[(first + step * 5) % len(_WORDS)] for step in range(8)]
    return f"Question {turn} of customer {thread}: {' '.join(words)}; what about number W{thread:03}{turn:05}?"


def _quantile(values: Sequence[float], share: float) -> float:
    return statistics.quantiles(values, n=100)[round(share * 100) - 1] if len(values) > 1 else values[0]


def _active_ms(server: str) -> float:
    """Return how long Postgres has worked for this database; its counters are a second late at most."""
    time.sleep(1.1)
    with psycopg.connect(server) as connection:
        row = connection.execute("SELECT sum(active_time) FROM pg_stat_database").fetchone()
    return float(row[0]) if row and row[0] else 0.0


def _bytes(server: str, url: str) -> float:
    """Return the bytes of all tables of a schema, with their indexes."""
    sql = (
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind IN ('r', 'p')"
    )
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("VACUUM")
        row = connection.execute(sql, (schema_of(url),)).fetchone()
    return float(row[0]) if row else 0.0


def main() -> None:
    """Run all trials, and print a table."""
    options = _parser().parse_args()
    if options.work:
        asyncio.run(work(options.work, options.url))
        return
    outcomes = []
    shapes = [(workers, threads) for workers in options.workers for threads in options.threads]
    with server_at(options.url) as server:
        for shape in shapes:
            for contender in options.only:
                schema = f"scale_{uuid4().hex[:8]}"
                with psycopg.connect(server, autocommit=True) as connection:
                    connection.execute(f"CREATE SCHEMA {schema}".encode())
                print(f"{contender}, {shape[0]} workers, {shape[1]} threads ...", file=sys.stderr, flush=True)
                if options.pgbouncer:
                    with pooled(server, schema) as url:
                        outcomes.append(asyncio.run(trial(contender, url, server, options, shape)))
                else:
                    url = f"{server}?schema={schema}&pool_size={_POOL}"
                    outcomes.append(asyncio.run(trial(contender, url, server, options, shape)))
                with psycopg.connect(server, autocommit=True) as connection:
                    connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
                _print(outcomes[-1])
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=2) + "\n")
    raise SystemExit(any(one.faults for one in outcomes if one.contender == "everthread"))


def _print(one: Outcome) -> None:
    total = one.threads * (one.before + one.turns)
    print(
        f"| {one.contender} | {one.workers} | {one.threads} | {one.before + one.turns} | {one.turns_per_second:.1f} |"
        f" {one.p50_ms:.0f} | {one.p95_ms:.0f} | {one.cpu_ms:.1f} | {one.database_ms:.1f} |"
        f" {one.bytes_per_turn / 1_000:.1f} | {one.kept:,} of {total:,} |",
        flush=True,
    )
    for fault in one.faults[:5]:
        print(f"  {fault}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[12, 200])
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--before", type=int, default=0)
    parser.add_argument("--model-ms", type=float, default=40.0)
    parser.add_argument("--pgbouncer", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", choices=CONTENDERS, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
