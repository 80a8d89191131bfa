"""Typed state, dials and notes: what is kept, and what can be set."""

from everthread.state.agent import Agent
from everthread.state.context import Context
from everthread.state.notes import Note, Source
from everthread.state.plan import PromptPlan
from everthread.state.state import Input, Output, State, Update, state_after
from everthread.state.summary import Identifier, Summary, SummaryEntry

__all__ = [
    "Agent",
    "Context",
    "Identifier",
    "Input",
    "Note",
    "Output",
    "PromptPlan",
    "Source",
    "State",
    "Summary",
    "SummaryEntry",
    "Update",
    "state_after",
]
