"""Measure threads that run for years: one very long one, many at once, opening them, and recall over their archive.

    python benchmarks/threads.py [--turns 10000] [--threads 1000] [--messages 100000] [--json FILE]

The workload is `a` of `window.py`: a question, one tool call with a result of 2,000 characters, an answer. CPU and wall
are those of the process without the model; each part runs in a process of its own. The chart needs
`pip install '.[bench]'`.
"""

import argparse
import json
import multiprocessing
import os
import platform
import random
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from longrun.fakes import CURRENT, TOOLS, Clock, Conversation, FakeChat, FakeSummarizer, Script
from longrun.probe import Probe, new_counter
from longrun.thread import growth
from longrun.workload import INSTRUCTIONS, RULE, WORKLOADS, answer, city, question, reference, tool_result
from threads_report import TITLES, chart, markdown

from everthread import Agent, Context, build_graph, open_storage
from everthread.memory.recall import Question
from everthread.state import namespaces
from everthread.state.messages import reduce_messages
from everthread.storage.open import Storage
from everthread.storage.recall import Search, recall_passages
from everthread.storage.transcript import append_operations
from everthread.window.tokens import counter_for

RESULTS = Path(__file__).parent / "results"
WORKLOAD = WORKLOADS["a"]
WINDOW = 8_000
AGENT = Agent(name="bench", title="Benchmark", instructions=INSTRUCTIONS, tools=TOOLS)

TURNS_OF_EACH = 100
"""Turns of each of the many threads."""

_OPENINGS = 7
_QUERIES = 300
_BATCH = 500


@dataclass
class Talk:
    """A graph on an open database, and what its turns have cost."""

    storage: Storage
    durability: str
    clock: Clock = field(default_factory=Clock)
    costs: list[tuple[float, float]] = field(default_factory=list)
    """CPU and wall seconds of each turn, in the order they ran."""

    def __post_init__(self) -> None:
        self.conversation = Conversation("", Script(WORKLOAD), Probe(rule=RULE, window=WINDOW))
        profile: Any = {"max_input_tokens": WINDOW}
        self.graph = build_graph(
            AGENT,
            model=FakeChat(clock=self.clock, profile=profile),
            summarizer=FakeSummarizer(clock=self.clock, profile=profile),
            storage=self.storage,
        )

    def turn(self, thread_id: str, number: int) -> None:
        """Run one turn."""
        CURRENT.set(self.conversation)
        self.conversation.script.begin(number)
        asked: Any = {"messages": [{"role": "user", "content": question(WORKLOAD, number)}]}
        self.conversation.probe.question = asked["messages"][0]["content"]
        cpu, wall = self.clock.cpu, self.clock.wall
        self.graph.invoke(
            asked,
            config(thread_id),
            context=Context(user_id="bench", window=WINDOW),
            durability=self.durability,
        )
        self.costs.append((self.clock.cpu - cpu, self.clock.wall - wall))
        if len(self.costs) % 100 == 0:
            # The workload's own memory is nobody's memory of a thread.
            tool_result.cache_clear()
            self.clock.marks.clear()
            self.conversation.probe.counter = new_counter()


def config(thread_id: str) -> Any:
    """Return what names a thread."""
    return {"configurable": {"thread_id": thread_id}}


@contextmanager
def talking(path: Path, durability: str) -> Iterator[Talk]:
    """Open a database and a graph on it; imports and tables on first use are nobody's cost of a turn."""
    with tempfile.TemporaryDirectory() as name, open_storage(f"sqlite:///{name}/warm.db") as storage:
        warm = Talk(storage, durability)
        for number in (1, 2):
            warm.turn("warm", number)
    with open_storage(f"sqlite:///{path}") as storage:
        yield Talk(storage, durability)


def long_thread(path: Path, turns: int, durability: str) -> dict[str, Any]:
    """Run one thread of so many turns, and look at it on the way."""
    samples: list[dict[str, float]] = []
    every = max(turns // 100, 1)
    with talking(path, durability) as talk:
        for number in range(1, turns + 1):
            talk.turn("long", number)
            if number % every == 0 or number == turns:
                samples.append({"turn": number, **sizes(path), "rss": resident_bytes(), **_recent(talk.costs, every)})
    # The first samples are those of a process that is still loading.
    settled = [sample["rss"] for sample in samples[len(samples) // 10 :]]
    return {
        "turns": turns,
        "durability": durability,
        **costs(talk.costs),
        **bytes_a_turn(path, turns),
        "rss_growth": settled[-1] / settled[0],
        "rss_bytes": settled[-1],
        "samples": samples,
    }


def many_threads(path: Path, threads: int, turns: int, durability: str) -> dict[str, Any]:
    """Run many threads in one file, a turn of each after the other, as a server would."""
    with talking(path, durability) as talk:
        for number in range(1, turns + 1):
            for thread in range(threads):
                talk.turn(f"thread-{thread}", number)
    cpu, wall = ([cost[place] * 1e3 for cost in talk.costs] for place in (0, 1))
    last = cpu[-len(cpu) // 10 :]
    return {
        "threads": threads,
        "turns_of_each": turns,
        "cpu_ms": fmean(cpu),
        "wall_ms": fmean(wall),
        "cpu_ms_at_end": fmean(last),
        **bytes_a_turn(path, threads * turns),
        "rss_bytes": resident_bytes(),
    }


def opening(path: Path, thread_id: str) -> dict[str, Any]:
    """Open a database again and again, as a new process does, and read the state of a thread."""
    opened: list[float] = []
    read: list[float] = []
    for _ in range(_OPENINGS):
        began = time.perf_counter()
        with open_storage(f"sqlite:///{path}", create=False) as storage:
            graph = build_graph(AGENT, model="offline", storage=storage)
            built = time.perf_counter()
            messages = graph.get_state(config(thread_id)).values["messages"]
            read.append(time.perf_counter() - built)
            opened.append(time.perf_counter() - began)
    return {"open_and_read_ms": median(opened) * 1e3, "get_state_ms": median(read) * 1e3, "messages": len(messages)}


def recall(path: Path, messages: int) -> dict[str, Any]:
    """Search the archive of one thread of so many messages, and recall from it, with questions about its turns."""
    with open_storage(f"sqlite:///{path}") as storage:
        store, namespace = storage.store, namespaces.transcript("archive")
        began, batch, last, stored = time.perf_counter(), [], None, 0
        for number in range(1, messages // 4 + 1):
            # Each turn follows the one before it, so that places in the thread go on.
            turn = reduce_messages([last] if last else [], [archived_turn(number)])[1 if last else 0 :]
            last = turn[-1]
            batch += append_operations("archive", "bench", turn, why="evicted", at=datetime.now(UTC).isoformat())
            if len(batch) >= _BATCH or number == messages // 4:
                store.batch(batch)
                stored, batch = stored + len(batch), []
                tool_result.cache_clear()
        filled = time.perf_counter() - began
        # The index catches up with what was written at the first search.
        began = time.perf_counter()
        store.search(namespace, query="Lyon", limit=10)
        caught_up = time.perf_counter() - began
        asked = [random.Random(7 + place).randint(1, max(messages // 4, 1)) for place in range(_QUERIES)]
        searched = timed(asked, lambda text: store.search(namespace, query=text, limit=10))
        search = Search(store, "archive", frozenset(), before=messages)
        counter, today = counter_for("gpt-4.1"), datetime.now(UTC).date()
        tokens = Context().recall_tokens
        told = timed(
            asked, lambda text: recall_passages([search], Question.read(text, today), tokens, counter)[0].passages
        )
    return {
        "messages": stored,
        "write_us": filled / max(stored, 1) * 1e6,
        "first_search_ms": caught_up * 1e3,
        **{f"search_{name}": value for name, value in searched.items()},
        "recall_tokens": tokens,
        **{f"recall_{name}": value for name, value in told.items()},
        "bytes_a_message": path.stat().st_size / max(stored, 1),
    }


def timed(asked: Sequence[int], answer: Callable[[str], Sequence[Any]]) -> dict[str, float]:
    """Ask about turns: milliseconds of the clock and of the CPU, and how often the turn is among what is found."""
    wall, cpu, hits = [], [], 0
    for number in asked:
        text = f"What did you find for {reference(number, 0, 0)} in {city(number)}, and was it quiet?"
        began, used = time.perf_counter(), time.process_time()
        found = answer(text)
        cpu.append((time.process_time() - used) * 1e3)
        wall.append((time.perf_counter() - began) * 1e3)
        hits += any(reference(number, 0, 0) in str(one) for one in found)
    told = {f"{name}_{cut}": value for name, spent in (("ms", wall), ("cpu_ms", cpu)) for cut, value in cuts(spent)}
    return told | {"found": hits / len(asked)}


def cuts(spent: Sequence[float]) -> list[tuple[str, float]]:
    """Return the median and the 95th percentile."""
    return [("median", median(spent)), ("p95", quantiles(spent, n=20)[-1])]


def archived_turn(number: int) -> list[BaseMessage]:
    """Return the four messages of a turn as a thread has them."""
    wanted = reference(number, 0, 0)
    call = {"name": "search_options", "args": {"reference": wanted, "city": city(number)}, "id": f"call_{wanted}"}
    return [
        HumanMessage(question(WORKLOAD, number)),
        AIMessage("", tool_calls=[{**call, "type": "tool_call"}]),
        ToolMessage(tool_result(wanted), tool_call_id=f"call_{wanted}"),
        AIMessage(answer(number)),
    ]


def sizes(path: Path) -> dict[str, float]:
    """Return the bytes of the file without its log, and those of them that are in use."""
    with closing(sqlite3.connect(path)) as database:
        page, pages, free = (
            int(database.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_size", "page_count", "freelist_count")
        )
    return {"file_bytes": page * pages, "useful_bytes": page * (pages - free)}


def bytes_a_turn(path: Path, turns: int) -> dict[str, float]:
    """Return the sizes for each turn, once the log is folded into the file."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {f"{name}_a_turn": size / turns for name, size in sizes(path).items()}


def costs(spent: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return CPU and wall milliseconds of a turn: all, those around turn 100, and the last 100."""
    told: dict[str, Any] = {}
    for name, series in zip(("cpu", "wall"), zip(*spent, strict=True), strict=True):
        ends = growth(series)
        told |= {
            f"{name}_ms": fmean(series) * 1e3,
            f"{name}_ms_at_100": ends["cpu_ms_at_100"],
            f"{name}_ms_at_end": ends["cpu_ms_at_end"],
            f"{name}_growth": ends["growth"],
        }
    return told


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM now."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        # Not Linux: ps counts in kilobytes.
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
        return int(shown.stdout) * 1024


def _recent(spent: Sequence[tuple[float, float]], count: int) -> dict[str, float]:
    cpu, wall = zip(*spent[-count:], strict=True)
    return {"cpu_ms": fmean(cpu) * 1e3, "wall_ms": fmean(wall) * 1e3}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that the arguments ask for, print the tables, and write them down."""
    options = _parser().parse_args(arguments)
    given = sys.argv[1:] if arguments is None else list(arguments)
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/threads.py", *given]),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, everthread {version('everthread')}",
        "parts": {},
    }
    with tempfile.TemporaryDirectory(prefix="everthread-bench-") as name:
        folder = Path(name)
        for part, run, values in _parts(options, folder):
            print(f"{TITLES[part]} …", file=sys.stderr, flush=True)
            results["parts"][part] = _apart(run, values)
            _write(options.json, results)
    print(markdown(results))
    drawn = "long" in results["parts"] and chart(results, options.json.with_suffix(".svg"))
    if not drawn:
        print("no chart: it needs the long thread and `pip install '.[bench]'`", file=sys.stderr)
    print(f"written to {options.json}, .md{' and .svg' if drawn else ''}", file=sys.stderr)
    return 0


def _parts(options: argparse.Namespace, folder: Path) -> list[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    long, parts = folder / "long.db", []
    if options.turns:
        parts.append(("long", long_thread, (long, options.turns, options.durability)))
        parts.append(("opening", opening, (long, "long")))
    if options.threads:
        parts.append(("many", many_threads, (folder / "many.db", options.threads, TURNS_OF_EACH, options.durability)))
    if options.messages:
        parts.append(("recall", recall, (folder / "recall.db", options.messages)))
    return parts


def _apart(run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Run a part in a fresh process: the memory of one is not that of another."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, values)


def _write(path: Path, results: dict[str, Any]) -> None:
    """Write after each part, so that an interrupted run leaves what it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(results), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=10_000, help="length of the long thread; 0 leaves it out")
    parser.add_argument("--threads", type=int, default=1_000, help=f"threads of {TURNS_OF_EACH} turns; 0: none")
    parser.add_argument("--messages", type=int, default=100_000, help="archived messages to search; 0: none")
    parser.add_argument("--durability", choices=["sync", "async", "exit"], default="sync", help="default: sync")
    parser.add_argument("--json", type=Path, default=RESULTS / "threads.json", help="where the results go")
    return parser


if __name__ == "__main__":
    sys.exit(main())
