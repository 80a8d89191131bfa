"""The window that leaves a conversation a given room."""

from everthread.evals.records import Record
from everthread.evals.tape import recorded_agent
from everthread.nodes.wiring import system_message
from everthread.state import Context
from everthread.tools.read_tool_output import read_tool_output
from everthread.tools.recall_history import recall_history
from everthread.window.tokens import TokenCounter

__all__ = ["RESERVE", "roomy"]

RESERVE = 200
"""Tokens for the reply, small so that the history decides."""

_SOME_DAY = "2026-01-01"


def roomy(record: Record, history: int, counter: TokenCounter) -> Context:
    """Return dials under which a record's fixed parts fit and its conversation has `history` tokens."""
    agent = recorded_agent(record)
    system = counter.messages([system_message(agent, {"today": _SOME_DAY})])
    tools = counter.tools([*agent.tools, read_tool_output, recall_history])
    return Context(
        window=max(system + tools + history + RESERVE + 1, 256), max_output_tokens=RESERVE, safety_fraction=1.0
    )
