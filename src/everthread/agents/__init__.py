"""The ready agents, and how to find one by name."""

from everthread.agents.support import support
from everthread.agents.travel import travel
from everthread.errors import SettingsError
from everthread.state.agent import Agent

__all__ = ["AGENTS", "Agent", "agent_named", "support", "travel"]

AGENTS: dict[str, Agent] = {agent.name: agent for agent in (travel, support)}
"""The ready agents by name."""


def agent_named(name: str) -> Agent:
    """Find a ready agent.

    Raises:
        SettingsError: there is no such agent.
    """
    try:
        return AGENTS[name]
    except KeyError:
        known = ", ".join(sorted(AGENTS))
        raise SettingsError(
            f"unknown agent {name!r}; choose one of {known}, or name your own as `module:attribute`"
        ) from None
