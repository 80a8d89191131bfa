"""Which records of a file a suite can play, and the window that leaves a conversation a given room."""

import json
from collections.abc import Sequence
from pathlib import Path

from everthread.agents.handles import read_tool_output
from everthread.agents.recall import recall_history
from everthread.errors import RecordError
from everthread.evals.records import Record, read_records
from everthread.evals.replay import exchanges, recorded_agent
from everthread.evals.suites import jsonl_files
from everthread.nodes.wiring import system_message
from everthread.state import Context
from everthread.window.tokens import TokenCounter

__all__ = ["RESERVE", "playable", "roomy"]

RESERVE = 200
"""Tokens for the reply, small so that the history decides."""

_SOME_DAY = "2026-01-01"


def playable(paths: Sequence[Path], limit: int | None = None) -> list[Record]:
    """Return the conversations of files, or of the `.jsonl` files of folders, that have something to replay.

    In a folder, files of other things are passed over; a file that is named is read or refused.

    Raises:
        RecordError: a file is malformed, or nothing can be replayed.
    """
    named = {path for path in paths if not path.is_dir()}
    files = [file for file in jsonl_files(paths) if file in named or _has_messages(file)]
    found = [record for file in files for record in read_records(file) if exchanges(record.messages)[0]]
    if not found:
        raise RecordError(f"no conversation to replay in {', '.join(map(str, paths)) or 'nothing'}")
    return found[:limit]


def _has_messages(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace") as lines:
        first = next((line for line in lines if line.strip()), "")
    try:
        value = json.loads(first)
    except ValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def roomy(record: Record, history: int, counter: TokenCounter) -> Context:
    """Return dials under which a record's fixed parts fit and its conversation has `history` tokens."""
    agent = recorded_agent(record)
    system = counter.messages([system_message(agent, {"today": _SOME_DAY})])
    tools = counter.tools([*agent.tools, read_tool_output, recall_history])
    return Context(
        window=max(system + tools + history + RESERVE + 1, 256), max_output_tokens=RESERVE, safety_fraction=1.0
    )
