"""LangGraph agents whose threads never run out of context and never lose what matters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everthread.calls import (
        PromptChange,
        PromptPart,
        SentPrompt,
        aprompt_at,
        asent_prompts,
        prompt_at,
        prompt_changes,
        sent_prompts,
    )
    from everthread.compactions import Preview, acompact_now, apreview, compact_now, preview
    from everthread.fitting import fit
    from everthread.graph.agent import build_graph, pipeline
    from everthread.graph.retaining import Retained, aretain, retain
    from everthread.graph.thread_checks import ThreadChecks, acheck_threads, check_threads
    from everthread.middleware import EverthreadMiddleware, EverthreadState
    from everthread.profiles import aget_profile, aset_profile, get_profile, set_profile
    from everthread.state import Agent, Context, Spend
    from everthread.state.retention import Retention
    from everthread.storage.open import Storage, open_storage
    from everthread.transcript import Transcript

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Context",
    "EverthreadMiddleware",
    "EverthreadState",
    "Preview",
    "PromptChange",
    "PromptPart",
    "Retained",
    "Retention",
    "SentPrompt",
    "Spend",
    "Storage",
    "ThreadChecks",
    "Transcript",
    "__version__",
    "acheck_threads",
    "acompact_now",
    "aget_profile",
    "apreview",
    "aprompt_at",
    "aretain",
    "asent_prompts",
    "aset_profile",
    "build_graph",
    "check_threads",
    "compact_now",
    "fit",
    "get_profile",
    "open_storage",
    "pipeline",
    "preview",
    "prompt_at",
    "prompt_changes",
    "retain",
    "sent_prompts",
    "set_profile",
]

# Resolved on first use: importing the package stays cheap and has no effect.
_MODULES = {
    "calls": "PromptChange PromptPart SentPrompt aprompt_at asent_prompts prompt_at prompt_changes sent_prompts",
    "compactions": "Preview acompact_now apreview compact_now preview",
    "fitting": "fit",
    "graph.agent": "build_graph pipeline",
    "graph.retaining": "Retained aretain retain",
    "graph.thread_checks": "ThreadChecks acheck_threads check_threads",
    "middleware": "EverthreadMiddleware EverthreadState",
    "profiles": "aget_profile aset_profile get_profile set_profile",
    "state": "Agent Context Spend",
    "state.retention": "Retention",
    "storage.open": "Storage open_storage",
    "transcript": "Transcript",
}
_HOMES = {name: f"everthread.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
