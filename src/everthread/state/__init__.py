"""Typed state, dials and notes: what is kept, and what can be set."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everthread.state.agent import Agent
from everthread.state.context import Context
from everthread.state.notes import Note, Source
from everthread.state.spend import Spend
from everthread.state.summary import Identifier, Summary, SummaryEntry

if TYPE_CHECKING:
    from everthread.state.plan import PromptPlan
    from everthread.state.state import Conversation, Input, Output, State, Update, state_after

__all__ = [
    "Agent",
    "Context",
    "Conversation",
    "Identifier",
    "Input",
    "Note",
    "Output",
    "PromptPlan",
    "Source",
    "Spend",
    "State",
    "Summary",
    "SummaryEntry",
    "Update",
    "state_after",
]

# These import LangChain, which nobody waits for who only looks at a database.
_HOMES = {
    "PromptPlan": "plan",
    **dict.fromkeys(("Conversation", "Input", "Output", "State", "Update", "state_after"), "state"),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"everthread.state.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
