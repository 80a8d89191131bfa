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
_HOMES = {
    "Agent": "everthread.state",
    "Context": "everthread.state",
    "EverthreadMiddleware": "everthread.middleware",
    "EverthreadState": "everthread.middleware",
    "Retention": "everthread.state.retention",
    "Spend": "everthread.state",
    "Storage": "everthread.storage.open",
    "Transcript": "everthread.transcript",
    **dict.fromkeys(("aget_profile", "aset_profile", "get_profile", "set_profile"), "everthread.profiles"),
    **dict.fromkeys(
        (
            *("PromptChange", "PromptPart", "SentPrompt", "aprompt_at", "asent_prompts", "prompt_at", "prompt_changes"),
            "sent_prompts",
        ),
        "everthread.calls",
    ),
    **dict.fromkeys(("Preview", "acompact_now", "apreview", "compact_now", "preview"), "everthread.compactions"),
    **dict.fromkeys(("Retained", "aretain", "retain"), "everthread.graph.retaining"),
    **dict.fromkeys(("ThreadChecks", "acheck_threads", "check_threads"), "everthread.graph.thread_checks"),
    "build_graph": "everthread.graph.agent",
    "fit": "everthread.fitting",
    "open_storage": "everthread.storage.open",
    "pipeline": "everthread.graph.agent",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
