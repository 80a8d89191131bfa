"""Measure the storage on Postgres: recall over many messages, and one long thread.

    python benchmarks/postgres.py URL [--items 100000] [--turns 1000] [--json]

URL names an empty database or schema, such as `postgresql://postgres@127.0.0.1:5432/postgres?schema=bench`. The text
that is searched is that of `stores.py`; the long thread is that of `threads.py`, and its bytes are those after pruning
and vacuum.
"""

import argparse
import json
import statistics
import time
from typing import Any

from stores import Texts, records
from threads import Talk, config, costs

from everthread import open_storage
from everthread.storage.open import Storage

SPACE = ("threads", "t-0", "transcript")


def milliseconds(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50_ms": round(statistics.median(ordered) * 1e3, 1),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1e3, 1),
    }


def timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def recall(storage: Storage, items: int) -> dict[str, Any]:
    texts = Texts()
    operations = list(records(items, 1, texts))
    start = time.perf_counter()
    for place in range(0, items, 500):
        storage.store.batch(operations[place : place + 500])
    filled = time.perf_counter() - start
    storage.eraser.reclaim()
    chosen = [texts.random.choice(operations) for _ in range(200)]
    queries = [texts.query(one.value["text"]) for one in chosen if one.value]
    times = [timed(lambda query=query: storage.store.search(SPACE, query=query, limit=200)) for query in queries]
    return {"items": items, "fill_seconds": round(filled, 1), "search": milliseconds(times)}


def long_thread(storage: Storage, turns: int) -> dict[str, Any]:
    before = storage.eraser.size()
    talk = Talk(storage, "sync")
    for number in range(1, turns + 1):
        talk.turn("long", number)
    storage.checkpointer.prune_turns("long", 3)
    storage.eraser.reclaim()
    opened = [timed(lambda: talk.graph.get_state(config("long"))) for _ in range(20)]
    return {
        "turns": turns,
        **costs(talk.costs),
        "bytes_a_turn": round((storage.eraser.size() - before) / turns),
        "open": milliseconds(opened),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with open_storage(arguments.url) as storage:
        result = {
            **({"long_thread": long_thread(storage, arguments.turns)} if arguments.turns else {}),
            **({"recall": recall(storage, arguments.items)} if arguments.items else {}),
        }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
