"""The offline model: a deterministic stand-in for a first run without a key, by patterns and not an LLM."""

from everthread.agents.offline.model import OfflineModel

__all__ = ["OfflineModel"]
