"""The tool that searches what the conversation no longer shows."""

from datetime import UTC, date, datetime
from typing import Annotated, Any

from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore

from everthread.ledger.events import Event, Recalled, Refetch
from everthread.ledger.record import record
from everthread.memory.recall import Passage, Question, in_order, passage_line, session_line
from everthread.memory.recall.trimming import trimmed
from everthread.memory.rendering import escape
from everthread.state import namespaces
from everthread.state.context import RecallThreads
from everthread.storage.recall import candidates, other_threads, search_of, within_days
from everthread.tools.runtime import dials_of, thread_of
from everthread.window.encoding import encoding

_MOST = 50
_MARGIN = 100
"""Tokens kept free for what the result says beside the messages."""


@tool
def recall_history(
    query: Annotated[str, "Words, names or a date, such as 'refund order 42' or 'March 4'."],
    runtime: ToolRuntime[Any, Any],
    limit: Annotated[int, "Most messages to return."] = 8,
    after: Annotated[str, "Only from this day on, as YYYY-MM-DD."] = "",
    before: Annotated[str, "Only up to this day, as YYYY-MM-DD."] = "",
    threads: Annotated[RecallThreads, "`mine`: also what was said in the user's other conversations."] = "this",
) -> str:
    """Search earlier messages of this conversation that are no longer shown."""
    if runtime.store is None:
        raise ToolException("this conversation has no store, so nothing can be searched")
    first, last = _day("after", after), _day("before", before)
    thread_id = thread_of(runtime)
    item = runtime.store.get(namespaces.SESSIONS, thread_id)
    session = item.value if item else {}
    messages = (runtime.state or {}).get("messages", [])
    searches = [search_of(runtime.store, thread_id, messages, session.get("shared"))]
    # Of the thread's owner, whoever the run names.
    if threads == "mine" and (owner := session.get("user_id")):
        searches.append(other_threads(runtime.store, thread_id, owner))
    question = Question.read(query, datetime.now(UTC).date())
    found: list[Passage] = []
    for search in searches if question.query else ():
        passages, question = candidates(within_days(search, first, last), question)
        found += passages.values()
    best = sorted(found, key=lambda one: (-one.score, -one.seq))[: max(1, min(limit, _MOST))]
    text, shown = _block(best, question, dials_of(runtime).tool_output_tokens - _MARGIN)
    if shown:
        _record(runtime, runtime.store, shown, len(found), text)
    return text


def _record(runtime: ToolRuntime[Any, Any], store: BaseStore, shown: list[Passage], searched: int, text: str) -> None:
    """Record what was brought back; that the model had to ask is a sign that it should have stayed."""
    ids = [passage.id for passage in shown]
    own = [passage.id for passage in shown if not passage.thread]
    others = sorted({passage.thread for passage in shown if passage.thread})
    tokens = len(encoding("o200k_base").encode_ordinary(text))
    events: list[Event] = [
        Recalled(by="tool", message_ids=ids, threads=others, tokens=tokens, searched=searched),
    ]
    if own:
        events.append(Refetch(why="recall", message_ids=own, left="evicted", by=str(runtime.tool_call_id)))
    turn = int((runtime.state or {}).get("turns", 0))
    record(store, thread_of(runtime), events, write=runtime.stream_writer, turn=turn)


def _day(name: str, text: str) -> str:
    if not text.strip():
        return ""
    try:
        return date.fromisoformat(text.strip()[:10]).isoformat()
    except ValueError:
        raise ToolException(f"`{name}` must be a day such as 2025-03-04, got {text!r}") from None


def _block(best: list[Passage], question: Question, room: int) -> tuple[str, list[Passage]]:
    """Render the messages oldest first, only the best of them when not all fit; return those that are shown too."""
    count = encoding("o200k_base").encode_ordinary
    lines: dict[Passage, str] = {}
    for passage in best:
        line = f"[{escape(passage.id)}] {passage_line(trimmed(passage, question, max(room // 2, 16)))}"
        cost = len(count(f"{session_line(passage)}\n{line}\n"))
        if cost <= room:
            lines[passage] = line
            room -= cost
    if not lines:
        return "Nothing was found. Try other words, or leave out `after` and `before`.", []
    block: list[str] = ["<recalled>"]
    session = None
    shown = in_order(lines)
    for passage in shown:
        if passage.session != session:
            session = passage.session
            block.append(session_line(passage))
        block.append(lines[passage])
    left = len(best) - len(lines)
    more = [f"{left} more did not fit; lower `limit`."] if left else []
    return "\n".join([*block, "</recalled>", *more]), shown
