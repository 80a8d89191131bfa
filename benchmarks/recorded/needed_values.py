"""Share of the values that a recorded agent used later which are still in the prompt when it used them.

    python benchmarks/recorded/needed_values.py tool_transcripts.jsonl --history 2000

Each record runs through the real graph (`everthread replay`); its window holds its system prompt, its tools with
those that read back what left, and `--history` tokens of conversation. `gold.needed_values` has rows of [message,
argument, value, …]: the call of that message used the value, and an earlier message had it. A value counts when its
text is anywhere in the prompt; what could be read back by a handle does not count.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from everthread.evals.recording import recorded_agent
from everthread.evals.records import Record, read_records
from everthread.evals.replay import trace
from everthread.nodes.prompt_plan import system_message
from everthread.state import Context
from everthread.tools.read_tool_output import read_tool_output
from everthread.tools.recall_history import recall_history
from everthread.window.tokens import counter_for

COUNTER = counter_for("gpt-4.1")
RESERVE = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--history", type=int, default=2000, help="tokens for the conversation")
    parser.add_argument("--policy", default="summarize")
    options = parser.parse_args()
    gold = {row["id"]: row["gold"].get("needed_values") or [] for row in map(json.loads, options.file.open())}
    kept = total = 0
    for record in read_records(options.file):
        if gold[record.id]:
            hits = kept_values(record, gold[record.id], options.history, options.policy)
            kept, total = kept + sum(hits), total + len(hits)
    print(
        json.dumps(
            {"values": total, "in_prompt": kept, "share": round(kept / max(total, 1), 4), **vars(options)}, default=str
        )
    )


def kept_values(record: Record, rows: Sequence[Sequence[Any]], history: int, policy: str) -> list[bool]:
    """Replay one record and say of each value whether the prompt of its call has it."""
    wanted = defaultdict(list)
    for at, _, value, *_ in rows:
        wanted[at].append(str(value))
    agent = recorded_agent(record)
    system = COUNTER.messages([system_message(agent, "2026-01-01")])
    tools = COUNTER.tools([*agent.tools, read_tool_output, recall_history])
    window = system + tools + history + RESERVE + 1
    context = Context(window=window, max_output_tokens=RESERVE, safety_fraction=1.0, policy=policy)  # type: ignore[arg-type]
    hits: list[bool] = []

    def look(reply: AIMessage, messages: list[BaseMessage], _: object) -> None:
        values = wanted.get(str(reply.id), [])
        text = "\n".join(f"{m.content}{getattr(m, 'tool_calls', '')}" for m in messages) if values else ""
        hits.extend(value in text for value in values)

    trace(record, context, watch=look)
    return hits


if __name__ == "__main__":
    main()
