"""Measure what it costs to keep each prompt so that it can be made again: bytes of a call, and CPU of a turn.

    python benchmarks/recipes.py [--turns 1000] [--rounds 300] [--repeat 3] [--json FILE]

The workloads are `a` and `c1` of `window.py`. The same thread runs with recipes and without, each in a database of its
own in one process, a turn of one and then the same turn of the other; of `c1`, which is one turn, the whole thread.
*Without* means that no recipe is made and no text of a prompt is stored. A figure of CPU is the sum over the turns of
the least that a turn took in any repetition, since other work on the machine only adds. At the end every prompt of the
thread is made again and must be exact.
"""

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from longrun.fakes import CURRENT, TOOLS, Clock, Conversation, FakeChat, FakeSummarizer, Script
from longrun.probe import Probe
from longrun.workload import INSTRUCTIONS, RULE, WORKLOADS, Workload, question
from threads import RESULTS

from everthread import Agent, Context, build_graph, open_storage
from everthread.calls import sent_prompts
from everthread.ledger import events
from everthread.ledger.recipes import calls_of
from everthread.nodes import model as node
from everthread.state import namespaces
from everthread.storage.open import Storage

AGENT = Agent(name="bench", title="Benchmark", instructions=INSTRUCTIONS, tools=TOOLS)
THREAD = "measured"
WINDOW = 8_000
BYTES_MARK = 250
CPU_MARK = 0.03


class Thread:
    """A thread of one workload in a database of its own."""

    def __init__(self, storage: Storage, workload: Workload) -> None:
        self.storage, self.workload, self.clock = storage, workload, Clock()
        self.conversation = Conversation("", Script(workload), Probe(rule=RULE, window=WINDOW))
        profile: Any = {"max_input_tokens": WINDOW}
        model = FakeChat(clock=self.clock, profile=profile)
        summarizer = FakeSummarizer(clock=self.clock, profile=profile)
        self.graph = build_graph(AGENT, model=model, summarizer=summarizer, storage=storage)

    def turn(self, number: int) -> float:
        """Run one turn, and return its seconds of CPU."""
        CURRENT.set(self.conversation)
        self.conversation.script.begin(number)
        text = question(self.workload, number)
        self.conversation.probe.question = text
        config: Any = {"configurable": {"thread_id": THREAD}, "recursion_limit": 10_000}
        began = self.clock.cpu
        self.graph.invoke({"messages": text}, config, context=Context(user_id="bench", window=WINDOW))
        return self.clock.cpu - began


def without(kept: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for the making of recipes: nothing is made, nothing is stored."""
    return lambda *given, **named: ({"call": ""}, [])


def in_lock_step(workload: Workload, turns: int, repeat: int) -> dict[str, Any]:
    """Run both sides turn by turn, and compare the least that each turn took."""
    costs: dict[bool, list[list[float]]] = {True: [], False: []}
    kept = node.kept_recipe
    found: dict[str, Any] = {}
    for number in range(repeat):
        print(f"{workload.name}: {number + 1} of {repeat} …", file=sys.stderr, flush=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everthread-recipes-")))
            opened = {one: stack.enter_context(open_storage(f"sqlite:///{folder}/{one}.db")) for one in (True, False)}
            threads = {one: Thread(storage, workload) for one, storage in opened.items()}
            spent: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(1, turns + 1):
                # Whoever runs second finds a warmer machine, so each is second in its turn.
                for has_recipes in (True, False) if turn % 2 == number % 2 else (False, True):
                    node.kept_recipe = kept if has_recipes else without(kept)
                    try:
                        spent[has_recipes].append(threads[has_recipes].turn(turn))
                    finally:
                        node.kept_recipe = kept
            for one, values in spent.items():
                costs[one].append(values)
            if number == repeat - 1:
                found = sizes(opened[True])
    with_them, bare = ([min(values) for values in zip(*costs[one], strict=True)] for one in (True, False))
    calls = found["calls"] / turns
    return {
        "turns": turns,
        "calls_a_turn": calls,
        **found,
        "cpu_ms_a_turn_with": sum(with_them) / turns * 1e3,
        "cpu_ms_a_turn_without": sum(bare) / turns * 1e3,
        "cpu_share": sum(with_them) / sum(bare) - 1,
        "cpu_median_share": median(a / b for a, b in zip(with_them, bare, strict=True)) - 1,
    }


def sizes(storage: Storage) -> dict[str, Any]:
    """Return the bytes of the recipes and texts of a thread, and whether all its prompts can be made again."""
    calls = calls_of(events(storage.store, THREAD))
    recipes = [len(json.dumps(call.event.recipe, separators=(",", ":"))) for call in calls]
    texts = []
    while page := storage.store.search(namespaces.prompts(THREAD), limit=500, offset=len(texts)):
        texts += [len(json.dumps(item.value)) for item in page]
    prompts = sent_prompts(storage, THREAD)
    return {
        "calls": len(calls),
        "whole": sum("shows" in (call.event.recipe or {}) for call in calls),
        "recipe_bytes_median": median(recipes),
        "recipe_bytes_p95": quantiles(recipes, n=20)[-1],
        "recipe_bytes_mean": fmean(recipes),
        "texts": len(texts),
        "text_bytes_a_call": sum(texts) / len(calls),
        "exact": sum(prompt.is_exact for prompt in prompts),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures and write them down; 1 when a mark is missed or a prompt is not exact."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=1_000, help="turns of workload a")
    parser.add_argument("--rounds", type=int, default=300, help="tool rounds of workload c1")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "recipes.json", help="where the results go")
    options = parser.parse_args(arguments)
    in_a, of_c1 = WORKLOADS["a"], WORKLOADS["c1"]
    in_lock_step(in_a, 3, 1)  # imports and first uses are nobody's cost of a turn
    one_turn = Workload(of_c1.name, of_c1.title, of_c1.parallel, rounds=options.rounds, single_turn=True)
    results = {
        "command": shlex.join(["python", "benchmarks/recipes.py", *(sys.argv[1:] if arguments is None else arguments)]),
        "a": in_lock_step(in_a, options.turns, options.repeat),
        "c1": in_lock_step(one_turn, 1, options.repeat),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))
    found = [results["a"], results["c1"]]
    is_met = all(
        one["recipe_bytes_median"] <= BYTES_MARK and one["cpu_share"] <= CPU_MARK and one["exact"] == one["calls"]
        for one in found
        if isinstance(one, dict)
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
