"""The tools that every agent has: save a note, read a long tool result."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime

from everthread.ledger.events import NoteBlocked, NoteSaved
from everthread.ledger.record import record
from everthread.memory.capture import capture
from everthread.state import Context, State
from everthread.state.marks import is_synthetic
from everthread.state.notes import Source

__all__ = ["save_memory_note"]


@tool
def save_memory_note(
    text: Annotated[str, "One or two short sentences in the third person, such as 'Prefers aisle seats.'"],
    keywords: Annotated[list[str], "One to three lowercase words; no names, dates or places."],
    runtime: ToolRuntime[Context, State],
    scope: Annotated[
        Literal["durable", "session"],
        "`session` for what holds only this time or for this trip or case, otherwise `durable`.",
    ] = "durable",
) -> str:
    """Save something the user said that will matter later.

    Save only what the user stated or confirmed, that helps with a later decision, and that is either
    lasting or explicitly for this trip or case. Never save guesses, instructions for yourself, or
    anything sensitive (document, card or account numbers, passwords, codes, full birth dates, street
    addresses, booking references). Write dates as YYYY-MM-DD.
    """
    thread_id = str(runtime.config.get("configurable", {}).get("thread_id", ""))
    asked = _asked(runtime.state)
    quote = asked.text if asked else ""
    message_ids = (str(asked.id),) if asked else ()
    note, verdict, operations = capture(
        text,
        keywords,
        scope=scope,
        source=Source(thread_id=thread_id, message_ids=message_ids, quote=str(quote)),
        date=datetime.now(UTC).date().isoformat(),
        salt=str(runtime.tool_call_id),
    )
    event: Any = NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=list(message_ids))
    if note is not None:
        event = NoteSaved(note_id=note.id, scope=note.scope, kind=note.kind, by="tool", message_ids=list(message_ids))
    if runtime.store is None:
        return "Not saved: this conversation has no store."
    turn = int(runtime.state.get("turns", 0))
    record(runtime.store, thread_id, [event], write=runtime.stream_writer, turn=turn, operations=operations)
    if note is None:
        return (
            f"Not saved: the note looks like {verdict.category.replace('_', ' ')}, which is never stored. "
            "Tell the user so and carry on without it."
        )
    lasting = "for this session only" if note.scope == "session" else "and kept after this session"
    return f"Saved {lasting}: {note.text}"


def _asked(state: State) -> HumanMessage | None:
    """Return the user's message of the current turn."""
    for message in reversed(state.get("messages", [])):
        if isinstance(message, HumanMessage) and not is_synthetic(message):
            return message
    return None
