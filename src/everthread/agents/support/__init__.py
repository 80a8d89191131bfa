"""The IT support agent: several issues in one conversation, a knowledge base, diagnostics and tickets."""

from importlib.resources import files

from everthread.agents.support.profile import SupportProfile
from everthread.agents.support.tools import TOOLS
from everthread.state.agent import Agent
from everthread.tools.save_memory_note import save_memory_note

support = Agent(
    name="support",
    title="IT support",
    instructions=(files(__name__) / "instructions.md").read_text(encoding="utf-8").strip(),
    tools=(*TOOLS, save_memory_note),
    profile=SupportProfile,
    summary_sections=(
        "Product and environment",
        "Reported issue",
        "Steps tried and results",
        "Identifiers",
        "Timeline",
        "Tool performance",
        "Status and blockers",
        "Next step",
    ),
)
"""The agent as data; change it with `dataclasses.replace`."""

__all__ = ["SupportProfile", "support"]
