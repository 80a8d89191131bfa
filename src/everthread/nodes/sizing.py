"""Size the working set against its budget."""

from everthread.memory.rendering import render_notes
from everthread.nodes.wiring import Wiring, parts_of
from everthread.state import Context, State
from everthread.state.marks import synthetic
from everthread.window.assembly import Parts, summary_pair
from everthread.window.tokens import TokenCounter
from everthread.window.turns import split


def reserved(parts: Parts, counter: TokenCounter) -> int:
    """Return the tokens of what stands beside the messages: summary, session notes, recalled passages.

    All session notes count, since an eviction brings them back.
    """
    notes = render_notes("Session notes", parts.session_notes)
    extra = [
        *(summary_pair(parts.summary) if parts.summary else []),
        *([synthetic("session_notes", notes)] if notes else []),
        *([synthetic("recalled", parts.recalled)] if parts.recalled else []),
    ]
    return sum(map(counter.message, extra))


def is_full(state: State, context: Context, wiring: Wiring) -> bool:
    """Tell whether the working set is over the high watermark, or has more turns than `context_limit`."""
    messages = state.get("messages", [])
    if context.policy != "summarize" or not messages:
        return False
    if context.context_limit is not None and len(split(messages)) > context.context_limit:
        return True
    counter = wiring.counter(context)
    room = wiring.budget(state, context, [*wiring.agent.tools, wiring.read_tool_output]).tokens
    used = sum(map(counter.message, messages)) + reserved(parts_of(state, wiring), counter)
    return used > room * context.high_watermark
