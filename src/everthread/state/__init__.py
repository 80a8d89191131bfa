"""Typed state, dials and notes: what is kept, and what can be set."""

from everthread.state.agent import Agent
from everthread.state.context import Context
from everthread.state.notes import Note, Source
from everthread.state.state import Input, Memory, Output, State, Update
from everthread.state.summary import Identifier, Summary, SummaryEntry

__all__ = [
    "Agent",
    "Context",
    "Identifier",
    "Input",
    "Memory",
    "Note",
    "Output",
    "Source",
    "State",
    "Summary",
    "SummaryEntry",
    "Update",
]
