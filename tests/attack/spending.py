"""Calls in four processes that are killed, against a provider that writes down what it answered.

A process of its own, since it forks: `PYTHONPATH=src:tests python tests/attack/spending.py --database URL --folder F`.
It prints one JSON object with what was wrong.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langgraph.types import Command

from everthread import Context, Spend, build_graph, open_storage
from everthread.errors import EverthreadError, ModelError
from everthread.ledger import events
from everthread.ledger.events import ModelCalled
from everthread.models.scripted import CannedModel, ScriptedModel, Tools
from everthread.spend.counters import KINDS
from everthread.spend.prices import PriceList, read_price_list
from everthread.spend.usage import reported_usage
from everthread.state import namespaces
from everthread.state.records import items, matching
from everthread.storage.open import Storage
from everthread.window.tokens import counter_for
from small_agent import AGENT, calls

PRICES = """
date: 2026-01-02
models:
  offline: { input: 10, cached_input: 1, cache_write: 12.5, output: 40, reasoning: 40 }
"""
WORKERS, USERS, THREADS = 4, 5, 20
CALL = 0.01
"""What a call costs, about."""
REPLY = 200
"""Tokens that a reply may have."""
DIALS: dict[str, Any] = {
    "window": 6_000,
    "max_output_tokens": REPLY,
    "context_limit": 3,
    "keep_last_turns": 1,
    "distillation": "turn",
    "distiller": "model",
}
COUNTER = counter_for("offline")


class Provider(CannedModel):
    """Answers, fails, or calls a tool, and writes down each answer before anybody has it."""

    log: str
    dice: Any
    worker: int
    """Its seed: the system gives a dead process's number to another one."""
    answered: int = 0

    @property
    def _llm_type(self) -> str:
        return "provider"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        chance = self.dice.random()
        if chance < 0.04:
            raise ModelError("the provider is busy", kind=self.dice.choice(["rate_limit", "server"]))
        self.answered += 1
        name = f"r-{self.worker}-{self.answered}"
        total, output = COUNTER.messages(messages) + COUNTER.tools(tools), self.dice.randint(1, REPLY)
        cached, write = self.dice.randint(0, total // 2), self.dice.randint(0, total // 2)
        usage = UsageMetadata(
            input_tokens=total,
            output_tokens=output,
            total_tokens=total + output,
            input_token_details=InputTokenDetails(cache_read=cached, cache_creation=write),
            output_token_details=OutputTokenDetails(reasoning=self.dice.randint(0, output)),
        )
        line = json.dumps({"id": name, "usage": usage}).encode() + b"\n"
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, line)
        os.close(handle)
        if tools and chance < 0.2:
            reply = calls({"name": "look", "args": {"n": self.dice.randint(1, 40)}, "id": f"c-{name}"})
            return reply.model_copy(update={"id": name, "usage_metadata": usage})
        return AIMessage("## Goal\n- A trip to Rome [1].", id=name, usage_metadata=usage)


class Worker:
    """Takes turns on threads of its own choice until it is killed, or told that it is enough."""

    def __init__(self, storage: Storage, folder: Path, seed: int, limits: dict[str, float]) -> None:
        self.dice = random.Random(seed)
        self.is_async = bool(seed % 2)
        self.folder = folder
        self.model = Provider(log=str(folder / "provider"), dice=self.dice, worker=seed)
        spend = Spend(**limits, grant=limits["thread"] / 2, prices=folder / "prices.yaml")
        self.graph = build_graph(AGENT, model=self.model, storage=storage, spend=spend)

    def turn(self) -> None:
        """Take one turn: a message, one that is sent again, a fork, or an end of the session."""
        number = self.dice.randrange(THREADS)
        config: Any = {"configurable": {"thread_id": f"t-{number}"}}
        context = Context(user_id=f"u-{number % USERS}", **DIALS)
        kind = self.dice.random()
        given: Any = {"messages": [{"role": "user", "content": f"I like trains to Rome, says {number}."}]}
        if kind < 0.1:
            given["messages"][0]["id"] = f"m-{self.dice.randrange(5)}"
        elif kind < 0.2:
            past = list(self.graph.get_state_history(config, limit=12))
            if past and (chosen := self.dice.choice(past)).next:
                given, config = None, chosen.config
        elif kind < 0.23:
            given = {"end_session": True}
        # Counted ahead of each run: another worker may answer as soon as the question is there, and fail afterwards.
        granted = self.granted(number)
        result = self.run(given, config, context)
        for _ in range(4):
            if not isinstance(result, dict) or not (asked := result.get("__interrupt__")):
                return
            answer = self.dice.choice([True, 0.2, "0.10", False])
            latest = {"configurable": {"thread_id": f"t-{number}"}}
            before, earlier, granted = self.model.answered, result, granted + (answer is not False)
            result = self.run(Command(resume={one.id: answer for one in asked}), latest, context)
            # Another worker may have come first, with a message or an answer, and been stopped: that turn goes on.
            is_same = question(earlier) == question(result) and self.granted(number) == granted
            if answer is False and is_same:
                self.write("refusals", f"t-{number}")
                if self.model.answered != before:
                    self.write("faults", f"{self.model.answered - before} calls after a refusal in t-{number}")

    def granted(self, number: int) -> int:
        """Count how often somebody raised a limit of a thread."""
        ledger = namespaces.ledger(f"t-{number}")
        return sum(1 for _ in matching(self.graph.storage.store, ledger, {"event": "spend_granted"}))

    def run(self, given: Any, config: Any, context: Context) -> Any:
        """Run the graph, as everybody does; a failing provider is no fault."""
        with suppress(EverthreadError):
            if self.is_async:
                return asyncio.run(self.graph.ainvoke(given, config, context=context))
            return self.graph.invoke(given, config, context=context)
        return None

    def write(self, name: str, line: str) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def question(result: Any) -> Any:
    """Return the id of the user's newest message."""
    messages = result["messages"] if isinstance(result, dict) else ()
    return next((one.id for one in reversed(messages) if one.type == "human"), None)


def work(url: str, folder: Path, seed: int, limits: dict[str, float]) -> None:
    """Be a worker."""
    code = 0
    try:
        with open_storage(url, lock_timeout_seconds=30) as storage:
            worker = Worker(storage, folder, seed, limits)
            while not (folder / "enough").exists():
                worker.turn()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the attack has to tell
        with (folder / "faults").open("a", encoding="utf-8") as file:
            file.write(f"a worker died of {type(error).__name__}: {error}\n")
        code = 1
    finally:
        os._exit(code)


def warm_up() -> None:
    """Load here what a turn needs, so that each worker begins with it: a fork copies this process."""
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["Hello."] * 9), storage=storage)
        given: Any = {"messages": "I like trains to Rome."}
        graph.invoke(given, {"configurable": {"thread_id": "t"}}, context=Context(user_id="u", **DIALS))


def attacked(url: str, folder: Path, wanted: int, kills: int, seed: int) -> dict[str, Any]:
    """Let workers take turns until the provider has answered so often; kill them on the way."""
    dice, began = random.Random(seed), time.monotonic()
    log = folder / "provider"
    log.touch()
    (folder / "prices.yaml").write_text(PRICES, encoding="utf-8")
    with open_storage(url):
        pass
    warm_up()
    # Half of what is wanted fits, and the rest has to be granted.
    limits = {"user_day": wanted * CALL / USERS / 2, "thread": wanted * CALL / THREADS / 2}
    workers: list[int] = []
    started = killed = answered = 0
    while answered < wanted:
        while len(workers) < WORKERS:
            started += 1
            if (pid := os.fork()) == 0:
                work(url, folder, seed * 1_000 + started, limits)
            workers.append(pid)
        time.sleep(0.02)
        answered = log.read_bytes().count(b"\n")
        # The kills are spread over the calls.
        if killed < kills and answered * (kills + 1) >= wanted * (killed + 1):
            victim = workers.pop(dice.randrange(len(workers)))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            killed += 1
    (folder / "enough").touch()
    for pid in workers:
        os.waitpid(pid, 0)
    with open_storage(url) as storage:
        return {
            "kills": killed,
            "seconds": round(time.monotonic() - began, 1),
            **compared(storage, folder, killed, limits),
        }


def compared(storage: Storage, folder: Path, kills: int, limits: dict[str, float]) -> dict[str, Any]:
    """Compare the counters with the provider's records."""
    faults = written(folder / "faults")
    prices = read_price_list(folder / "prices.yaml")
    lines = [json.loads(line) for line in (folder / "provider").read_text(encoding="utf-8").splitlines()]
    provider = {one["id"]: one["usage"] for one in lines}
    told = [one for number in range(THREADS) for one in events(storage.store, f"t-{number}")]
    settled = [one for one in told if isinstance(one, ModelCalled)]
    ids = [one.response for one in settled]
    lost = provider.keys() - set(ids)
    users = {f"u-{number}": records(storage, namespaces.spent_by(f"u-{number}")) for number in range(USERS)}
    threads = {f"t-{number}": records(storage, namespaces.spent_in(f"t-{number}")) for number in range(THREADS)}
    waiting = {name for of_user in users.values() for record in of_user for name in record["open"]}
    expected = summed(reported_usage(usage) for name, usage in provider.items() if name not in lost)
    expected["calls"] = len(provider) - len(lost)
    for what, every in (("users", users), ("threads", threads)):
        counters: Counter[str] = Counter()
        for record in (record for of_one in every.values() for record in of_one):
            for sums in (sums for purposes in record["models"].values() for sums in purposes.values()):
                counters.update({name: sums[name] for name in ("calls", *KINDS)})
        if counters != expected:
            faults.append(f"counters of {what} have {dict(counters)}, the provider {dict(expected)}")
    if len(ids) != len(set(ids)) or not set(ids) <= provider.keys():
        faults.append(f"{len(ids)} events, {len(set(ids))} replies, {len(set(ids) - provider.keys())} unknown")
    if len(lost) > len(waiting) or len(waiting) > kills:
        faults.append(f"{len(lost)} answers were lost, {len(waiting)} calls wait, {kills} kills")
    passed = max((passed_by(every, size) for every, size in limited(users, threads, limits)), default=0.0)
    dearest = max(price_of(prices, usage) for usage in provider.values())
    if passed > 1e-9:
        faults.append(f"a limit was passed by {passed:.6f}; the dearest call cost {dearest:.6f}")
    return {
        "calls": len(provider),
        "settled": len(ids),
        "lost": len(lost),
        "waiting": len(waiting),
        "purposes": dict(Counter(one.purpose for one in settled)),
        "refusals": len(written(folder / "refusals")),
        "asked": sum(one.event in ("spend_refused", "spend_granted") for one in told),
        "refused": sum(one.event == "spend_refused" for one in told),
        "passed_by": round(passed, 9),
        "faults": faults,
    }


def written(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def records(storage: Storage, space: namespaces.Namespace) -> list[dict[str, Any]]:
    return [dict(item.value) for item in items(storage.store, space)]


def summed(usages: Iterable[Any]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for usage in usages:
        sums.update({kind: getattr(usage, kind) for kind in KINDS})
    return sums


def price_of(prices: PriceList, usage: UsageMetadata) -> float:
    found = reported_usage(dict(usage))
    return 0.0 if found is None else prices.cost("", "offline", found) or 0.0


def limited(users: Any, threads: Any, limits: dict[str, float]) -> Iterable[tuple[list[dict[str, Any]], float]]:
    """Yield the records that a limit is for, with its size: each day of a user, and all days of a thread."""
    yield from (([record], limits["user_day"]) for of_user in users.values() for record in of_user)
    yield from ((of_thread, limits["thread"]) for of_thread in threads.values())


def passed_by(every: list[dict[str, Any]], size: float) -> float:
    """Return by how much a limit was passed, with what was granted and what waits at its most."""
    allowed = size + sum(sum(record["granted"].values()) for record in every)
    sums = [sums for record in every for purposes in record["models"].values() for sums in purposes.values()]
    spent = sum(one["cost"] for one in sums) + sum(one["most"] for record in every for one in record["open"].values())
    return max(spent - allowed, 0.0)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--database", required=True)
    arguments.add_argument("--folder", type=Path, required=True)
    arguments.add_argument("--calls", type=int, default=10_000)
    arguments.add_argument("--kills", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    json.dump(attacked(given.database, given.folder, given.calls, given.kills, given.seed), sys.stdout)
