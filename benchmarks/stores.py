"""Measure the lexical store beside LangGraph's own: writing, size, and BM25 search over many items.

    python benchmarks/stores.py [--items 100000] [--json]

The text is synthetic and seeded: words by Zipf's law over a vocabulary of 50,000, about 120 a message. Queries
take words from one message, rare and frequent ones as they come, as a question does.
"""

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any
from unittest.mock import patch

from langgraph.store.base import BaseStore, PutOp
from langgraph.store.sqlite import SqliteStore

from everthread.storage import candidates
from everthread.storage.open import open_storage

VOCABULARY = 50_000
BATCH = 100
SYLLABLES = [c + v + e for c in "bcdfghjklmnprstvwz" for v in "aeiou" for e in ("", "n", "r", "s", "t", "l")]
_FREQUENT = "the of and to a in is you that it for on was with as i be at this have from or what can we not"
FREQUENT = _FREQUENT.split()


class Texts:
    """Seeded messages."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        words = list(FREQUENT)
        while len(words) < VOCABULARY:
            words.append("".join(self.random.choice(SYLLABLES) for _ in range(self.random.randint(1, 4))))
        self.words = words
        self.weights = list(accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))

    def message(self) -> str:
        count = max(5, int(self.random.lognormvariate(4.6, 0.6)))
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=count))

    def query(self, message: str) -> str:
        words = message.split()
        return " ".join(self.random.sample(words, min(8, len(words))))


def records(count: int, threads: int, texts: Texts) -> Iterator[PutOp]:
    """Yield messages as everthread's transcript holds them, one day after another over some years."""
    start = datetime(2022, 1, 1, tzinfo=UTC)
    for number in range(count):
        value = {"seq": number, "role": "human", "text": texts.message()}
        value["date"] = (start + timedelta(minutes=20 * number)).isoformat(timespec="seconds")
        namespace = ("threads", f"t-{number % threads}", "transcript")
        yield PutOp(namespace, f"message-{number:010d}-{texts.random.getrandbits(64):016x}", value, index=None)


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def fill(store: BaseStore, operations: list[PutOp], batch: int = BATCH) -> float:
    """Write in batches; return the seconds."""
    started = time.perf_counter()
    for first in range(0, len(operations), batch):
        store.batch(operations[first : first + batch])
    return time.perf_counter() - started


def timed(store: BaseStore, namespace: tuple[str, ...], queries: list[str], **more: Any) -> dict[str, float]:
    """Search once per query; milliseconds, of the clock and of this process's CPU."""
    store.search(namespace, query=queries[0], limit=50)
    clock, cpu = [], []
    for query in queries:
        started, used = time.perf_counter(), time.process_time()
        store.search(namespace, query=query, limit=50, **more)
        cpu.append((time.process_time() - used) * 1000)
        clock.append((time.perf_counter() - started) * 1000)
    cuts = statistics.quantiles(clock, n=20)
    return {
        "median_ms": round(cuts[9], 2),
        "p95_ms": round(cuts[18], 2),
        "median_cpu_ms": round(statistics.median(cpu), 2),
        "p95_cpu_ms": round(statistics.quantiles(cpu, n=20)[18], 2),
    }


def index_bytes(connection: sqlite3.Connection) -> dict[str, int]:
    """Bytes of the pages of each table of the index."""
    rows = connection.execute(
        "SELECT name, sum(pgsize) FROM dbstat WHERE name LIKE '%lexical%' GROUP BY name ORDER BY 2 DESC"
    )
    return {str(name): int(size) for name, size in rows}


def writing(folder: Path, texts: Texts, count: int) -> dict[str, Any]:
    operations = list(records(count, 1, texts))
    result: dict[str, Any] = {"messages": count}
    for batch in (BATCH, 4):
        with closing(connect(folder / f"stock-{batch}.db")) as connection:
            stock = SqliteStore(connection)
            stock.setup()
            result[f"stock_batch_{batch}_us"] = round(fill(stock, operations, batch) / count * 1e6)
        with open_storage(f"sqlite:///{folder}/lexical-{batch}.db") as storage:
            result[f"lexical_batch_{batch}_us"] = round(fill(storage.store, operations, batch) / count * 1e6)
    return result


def quality(store: BaseStore, namespace: tuple[str, ...], asked: list[tuple[str, str]]) -> dict[str, float]:
    """Compare with the exact ranking, for which every entry of every word is read.

    Args:
        store: filled.
        namespace: where to look.
        asked: key of the message that a query was taken from, and the query.
    """
    shares: dict[str, list[float]] = {
        name: [] for name in ("agreement_50", "found_10", "exact_found_10", "found_50", "exact_found_50")
    }
    for key, query in asked:
        found = [item.key for item in store.search(namespace, query=query, limit=50)]
        with patch.multiple(candidates, PROBE=1 << 40, READ=1 << 40, MOST_RANKED=1 << 40):
            exact = [item.key for item in store.search(namespace, query=query, limit=50)]
        shares["agreement_50"].append(len(set(found) & set(exact)) / max(1, len(exact)))
        for depth in (10, 50):
            shares[f"found_{depth}"].append(key in found[:depth])
            shares[f"exact_found_{depth}"].append(key in exact[:depth])
    return {name: round(statistics.mean(share), 3) for name, share in shares.items()}


def searches(folder: Path, texts: Texts, items: int, threads: int) -> dict[str, Any]:
    operations = list(records(items, threads, texts))
    text = sum(len(operation.value["text"].encode()) for operation in operations if operation.value)
    with open_storage(f"sqlite:///{folder}/search-{threads}.db") as storage:
        store, connection = storage.store, storage.database.connection
        seconds = fill(store, operations)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sizes = index_bytes(connection)
        namespace = ("threads", "t-0", "transcript")
        chosen = [texts.random.choice(operations[::threads]) for _ in range(200)]
        asked = [(one.key, texts.query(one.value["text"])) for one in chosen if one.value]
        queries = [query for _, query in asked]
        frequent = [" ".join(texts.random.sample(FREQUENT, 5)) for _ in range(40)]
        result = {
            "items": items,
            "threads": threads,
            "fill_seconds": round(seconds, 1),
            "text_bytes": text,
            "index_bytes": sum(sizes.values()),
            "index_share": round(sum(sizes.values()) / text, 3),
            "tables": sizes,
            "question": timed(store, namespace, queries),
            "filtered": timed(store, namespace, queries[:50], filter={"role": "human"}),
            "frequent_words": timed(store, namespace, frequent),
            "all_threads": timed(store, (), queries[:50]),
            "quality": quality(store, namespace, asked[:60]),
        }
        connection.execute("INSERT INTO lexical_index (lexical_index) VALUES ('optimize')")
        result["optimized_index_bytes"] = sum(index_bytes(connection).values())
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    texts = Texts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report = {
            "sqlite": sqlite3.sqlite_version,
            "writing": writing(folder, texts, min(10_000, arguments.items)),
            "searches": [searches(folder, texts, arguments.items, threads) for threads in (1, 100)],
        }
    print(json.dumps(report) if arguments.json else table(report))


def table(report: dict[str, Any]) -> str:
    written = report["writing"]
    lines = [f"SQLite {report['sqlite']}", f"{'put, microseconds a message':<34}{'stock':>10}{'lexical':>10}"]
    for batch in (BATCH, 4):
        lines.append(
            f"{f'  in batches of {batch}':<34}"
            f"{written[f'stock_batch_{batch}_us']:>10}{written[f'lexical_batch_{batch}_us']:>10}"
        )
    for run in report["searches"]:
        lines.append(
            f"\n{run['items']:,} items in {run['threads']} namespaces, {run['text_bytes'] / 1e6:.1f} MB of text"
        )
        optimized = run["optimized_index_bytes"] / run["text_bytes"]
        lines.append(f"  index / text {run['index_share']:.2f}, optimized {optimized:.2f}")
        lines.append("  " + ", ".join(f"{name} {share}" for name, share in run["quality"].items()))
        lines.append(f"  {'search, limit 50':<32}{'median':>10}{'p95':>10}{'CPU':>10}{'p95':>10}  ms")
        for name in ("question", "filtered", "frequent_words", "all_threads"):
            spent = run[name]
            lines.append(
                f"    {name:<30}{spent['median_ms']:>10}{spent['p95_ms']:>10}"
                f"{spent['median_cpu_ms']:>10}{spent['p95_cpu_ms']:>10}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
