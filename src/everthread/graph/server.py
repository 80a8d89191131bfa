"""What a LangGraph server serves; `langgraph.json` names these graphs.

They are bare, because the server brings checkpointer and store and refuses graphs with their own. They
are made once, at import: a factory would be called again, on the event loop, for every request.

A client of the server names its own user and sets the dials of its runs, `model` included, unless
`EVERTHREAD_FIXED` fixes them, such as `model,window=16000`: docs/security.md.
"""

import json
import os
from typing import Any

from everthread.agents import support as support_agent
from everthread.agents import travel as travel_agent
from everthread.errors import SettingsError
from everthread.graph.agent import build_graph
from everthread.graph.consolidation import build_consolidation
from everthread.state import Context
from everthread.state.context import fixed_context


def fixed_dials(text: str) -> dict[str, Any]:
    """Read dials that clients may not set: names, or `name=value` with JSON or a word, separated by commas.

    Raises:
        SettingsError: one of them is no dial, or has no such value.
    """
    fixed: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = map(str.strip, part.partition("="))
        fixed[name] = _value(value) if equals else getattr(Context, name, None)
    try:
        fixed_context(fixed)
    except SettingsError as error:
        raise SettingsError(f"`EVERTHREAD_FIXED`: {error}") from error
    return fixed


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


_FIXED = fixed_dials(os.environ.get("EVERTHREAD_FIXED", ""))

travel = build_graph(travel_agent, fixed=_FIXED)
"""The travel concierge."""

support = build_graph(support_agent, fixed=_FIXED)
"""IT support."""

consolidation = build_consolidation()
"""The job that ends the sessions of one user, on a thread of its own."""
