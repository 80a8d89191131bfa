"""What each choice of recall is worth: the same questions with one thing changed at a time.

    python benchmarks/recall.py FOLDER --budget 4096 [--only locomo] [--choice "no neighbours"]
    python benchmarks/recall.py --threads 200 --messages 100 [--database URL]

Every question is answered from the whole conversation, archived in a database. This calls the functions below the
nodes; `python -m benchmarks.suites retention` runs the real nodes, for the figures of the product itself.

The second form needs no data: it measures recall over many threads of a user beside recall over one thread with the
same messages, in a database that has as many of another user.
"""

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from longrun.workload import WORKLOADS, answer, city, question, reference
from suites.conversations import Conversation, read_conversations

from everthread.memory.recall import Question, Relevance
from everthread.memory.recall.relevance import Weights
from everthread.state.marks import marked
from everthread.state.messages import reduce_messages
from everthread.storage.open import open_storage
from everthread.storage.recall import HOPS, Search, other_threads, recall_passages
from everthread.storage.said import said_operations
from everthread.storage.transcript import append_operations
from everthread.window.tokens import counter_for

COUNTER = counter_for("gpt-4.1")
DEFAULT = Relevance.DEFAULT
_QUESTIONS = 300


@dataclass(frozen=True)
class Choice:
    """One way to recall."""

    name: str
    weights: Weights = DEFAULT
    hops: int = HOPS
    read: Callable[[Question], Question] = field(default=lambda question: question)


def _without_dates(question: Question) -> Question:
    days = [word for span in question.spans for word in span.words().split()]
    return replace(question, spans=(), words=(*question.words, *days))


class _Nameless(Question):
    def among(self, speakers: Any) -> Question:
        return self


def _nameless(question: Question) -> Question:
    return _Nameless(**{name: getattr(question, name) for name in Question.__dataclass_fields__})


CHOICES = (
    Choice("as shipped"),
    Choice("no neighbours", replace(DEFAULT, neighbour=0.0), hops=0),
    Choice("only the nearest neighbours", replace(DEFAULT, reach=1), hops=1),
    Choice("no sessions", replace(DEFAULT, session=0.0)),
    Choice("session 0.5", replace(DEFAULT, session=0.5)),
    Choice("names as words", read=_nameless),
    Choice("no bonus for speakers", replace(DEFAULT, speaker=0.0)),
    Choice("no first person", replace(DEFAULT, first_person=0.0)),
    Choice("relevance, not per token", replace(DEFAULT, floor=1e9)),
    Choice("no tastes", read=lambda question: replace(question, asks_advice=False)),
    Choice("dates as words", read=_without_dates),
    Choice("no openings", replace(DEFAULT, opening=0.0)),
    Choice("one hop", hops=1),
    Choice("two hops", hops=2),
)


def measure(conversations: Sequence[Conversation], choices: Sequence[Choice], budget: int) -> Iterator[dict[str, Any]]:
    scores: dict[tuple[str, str], list[tuple[float, bool, bool]]] = defaultdict(list)
    taken: dict[str, list[float]] = defaultdict(list)
    for conversation in conversations:
        print(conversation.id, file=sys.stderr, flush=True)
        with open_storage("sqlite://") as storage:
            storage.store.batch(append_operations("t", "u", conversation.messages, why="evicted", at=""))
            search = Search(storage.store, "t", frozenset(), before=len(conversation.messages))
            for asked in conversation.questions:
                for choice in choices:
                    began = time.process_time()
                    read = choice.read(Question.read(asked.question, date(2026, 1, 1)))
                    chosen, _ = recall_passages(
                        [search], read, budget, COUNTER, weights=choice.weights, hops=choice.hops
                    )
                    taken[choice.name].append(time.process_time() - began)
                    shown = {passage.id for passage in chosen.passages if not passage.is_cut}
                    found = len(shown.intersection(asked.evidence))
                    wanted = len(set(asked.evidence))
                    scores[choice.name, conversation.group].append((found / wanted, found == wanted, found > 0))
    for (name, group), rows in scores.items():
        fraction, whole, some = (round(sum(column) / len(rows), 3) for column in zip(*rows, strict=True))
        yield {"choice": name, "group": group, "fraction": fraction, "all": whole, "any": some, "questions": len(rows)}
    for name, seconds in taken.items():
        seconds.sort()
        p50, p95 = (round(1e3 * seconds[int(len(seconds) * share)], 1) for share in (0.5, 0.95))
        yield {"choice": name, "cpu_ms_p50": p50, "cpu_ms_p95": p95}


def measure_threads(url: str, threads: int, messages: int, tokens: int = 1_000) -> Iterator[dict[str, Any]]:
    """Yield the milliseconds of a question over one thread and over many."""
    turns = threads * messages // 2
    with open_storage(url) as storage:
        for user in ("ann", "ben"):
            last: BaseMessage | None = None
            for number in range(1, turns + 1):
                turn = [HumanMessage(question(WORKLOADS["a"], number)), AIMessage(answer(number))]
                one = reduce_messages([last] if last else [], [turn])[1 if last else 0 :]
                last = one[-1]
                kept = append_operations("one", user, one, why="evicted", at="") if user == "ann" else []
                thread, place = divmod(2 * (number - 1), messages)
                own = [marked(message, seq=place + step, at="") for step, message in enumerate(one)]
                storage.store.batch([*kept, *said_operations(f"{user}-{thread}", user, own)])
        searches = {
            "one thread": Search(storage.store, "one", frozenset(), before=sys.maxsize),
            f"{threads} threads": other_threads(storage.store, "new", "ann"),
        }
        asked = [random.Random(7 + place).randint(1, turns) for place in range(_QUESTIONS)]
        texts = [f"What did you find for {reference(one, 0, 0)} in {city(one)}, and was it quiet?" for one in asked]
        for name, search in searches.items():
            spent: list[tuple[float, float]] = []
            for text in texts:
                began, used = time.perf_counter(), time.process_time()
                recall_passages([search], Question.read(text, date(2026, 1, 1)), tokens, COUNTER)
                spent.append((1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - used)))
            wall, cpu = (sorted(column) for column in zip(*spent, strict=True))
            figures = {
                f"{kind}_ms_p{share}": round(series[len(series) * share // 100], 1)
                for kind, series in (("wall", wall), ("cpu", cpu))
                for share in (50, 95)
            }
            yield {"where": name, "messages": threads * messages, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--threads", type=int, default=200, help="threads of a user, without FOLDER")
    parser.add_argument("--messages", type=int, default=100, help="messages of each")
    parser.add_argument("--database", default="sqlite://", help="an empty one")
    parser.add_argument("--budget", type=int, default=4096)
    parser.add_argument("--only", default="", help="ids that hold this")
    parser.add_argument("--choice", default="", help="choices whose name holds this")
    options = parser.parse_args()
    if not options.paths:
        for row in measure_threads(options.database, options.threads, options.messages):
            print(json.dumps(row))
        return
    found = [one for one in read_conversations(options.paths).records if options.only in one.id]
    choices = [choice for choice in CHOICES if options.choice in choice.name]
    for row in measure(found, choices, options.budget):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
