"""Ask a model about notes that the rules allow, where the dial `guard` says so; a model that fails allows nothing."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from langgraph.prebuilt import ToolRuntime

from everthread.memory.guard import Verdict
from everthread.memory.guard.opinion import Opinions, lines, read_opinions, unanswered
from everthread.models.calls import ModelCalls
from everthread.nodes.deps import NodeDeps, context_of
from everthread.nodes.spending import metered
from everthread.nodes.structured_output import asked
from everthread.prompts import render
from everthread.state import Context, Note, State

MOST_NOTES = 40
"""Notes in one request; a turn has fewer, a long session may have more."""


def second_opinion(notes: Sequence[Note], context: Context, deps: NodeDeps) -> ModelCalls[list[Verdict]]:
    """Ask the model that writes summaries which notes may be kept; no notes ask nothing.

    Args:
        context: `opinion_seconds` is how long one request may take.

    Returns:
        A verdict for each note. After a request that failed the rest is not asked about, and not allowed.
    """
    if not deps.writes_summaries:
        return [unanswered("no language model to ask")] * len(notes)
    verdicts: list[Verdict] = []
    reason = ""
    for start in range(0, len(notes), MOST_NOTES):
        part = notes[start : start + MOST_NOTES]
        request, read = render("guard", notes=lines(part)), partial(read_opinions, notes=part)
        judged, reason = yield from asked(deps.summarizer, Opinions, request, read, seconds=context.opinion_seconds)
        if judged is None:
            # A guard that fails must fail closed, whatever the reason.
            break
        verdicts += judged
    return [*verdicts, *[unanswered(reason)] * (len(notes) - len(verdicts))]


def judge(note: Note, runtime: ToolRuntime[Context, State], deps: NodeDeps) -> ModelCalls[Verdict | None]:
    """Return the model's verdict on a note that a tool is to save; None where the dial `guard` asks no model."""
    if context_of(runtime).guard != "model":
        return None
    return (yield from guard_note(runtime.state, runtime, deps, note=note))


@metered
def guard_note(state: State, runtime: Any, deps: NodeDeps, *, note: Note) -> ModelCalls[Verdict]:
    """Ask about one note; its name is what the call is counted as."""
    return (yield from second_opinion([note], context_of(runtime), deps))[0]
