"""The tool that saves a note, and the search for whose words a note is made of."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore, PutOp, SearchOp

from everthread.ledger.events import Event, NoteBlocked, NoteSaved
from everthread.ledger.record import now, record
from everthread.memory.capture import capture
from everthread.memory.distill.statements import asks_to_forget
from everthread.memory.guard import Verdict, phrase
from everthread.memory.guard.opinion import unanswered
from everthread.memory.provenance import Said, Shown, own_keywords, shown_by, tool_behind
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.said_instead import said_instead
from everthread.memory.text.consent import agrees
from everthread.memory.text.own_words import is_typed
from everthread.models.calls import ModelCalls, amake_calls, make_calls
from everthread.state import namespaces
from everthread.state.notes import Note, NoteOrigin, Source
from everthread.storage.recall import passage_of
from everthread.storage.refetches import restated_blocked
from everthread.tools.runtime import thread_of
from everthread.window.turns import opens_turn, question_of

_REPEATING = ("save_memory_note", "recall_history")
"""Tools whose results only repeat notes and messages, which are searched anyway."""

_STATED = 8
"""Newest messages of the user that are looked at for what they did say, when a note is not in their words."""

_UNWANTED = "not-to-be-remembered"
"""Rule in the event of a note that the user asked not to keep."""

_SEARCHED = 20
"""Evicted messages that are looked at for the author of a note."""


Judge = Callable[[Note, ToolRuntime[Any, Any]], ModelCalls[Verdict | None]]
"""Gives a verdict on a note that the rules allow, None when nobody is to be asked; see `nodes.second_opinion`."""


def _functions(rules: Rules, judge: Judge | None) -> tuple[Callable[..., str], Callable[..., Awaitable[str]]]:
    """Return the tool's function and coroutine."""

    def save_memory_note(
        text: Annotated[str, "One or two short sentences in the third person, such as 'Prefers aisle seats.'"],
        keywords: Annotated[list[str], "One to three lowercase words; no names, dates or places."],
        runtime: ToolRuntime[Any, Any],
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
        return make_calls(_saving(text, keywords, scope, runtime, rules, judge), runtime.config)

    async def asave_memory_note(
        text: str, keywords: list[str], runtime: ToolRuntime[Any, Any], scope: Literal["durable", "session"]
    ) -> str:
        return await amake_calls(_saving(text, keywords, scope, runtime, rules, judge), runtime.config)

    return save_memory_note, asave_memory_note


save_memory_note = StructuredTool.from_function(*_functions(BUILT_IN, None))


def memory_tool(rules: Rules = BUILT_IN, judge: Judge | None = None) -> BaseTool:
    """Return the tool that saves notes.

    Args:
        rules: decide what is kept and as what.
        judge: is asked after the rules, where the dial `guard` says so; without one nothing is kept there.
    """
    # Not made anew: each graph would pay for a schema, and Python 3.11 cannot make several at once in threads.
    func, coroutine = _functions(rules, judge)
    return save_memory_note.model_copy(update={"func": func, "coroutine": coroutine})


def _saving(
    text: str,
    keywords: Sequence[str],
    scope: Literal["durable", "session"],
    runtime: ToolRuntime[Any, Any],
    rules: Rules,
    judge: Judge | None,
) -> ModelCalls[str]:
    """Draft a note, have it judged and save it."""
    if runtime.store is None:
        return "Not saved: this conversation has no store."
    draft = _drafted(text, keywords, scope, runtime, rules)
    opinion = None
    if draft.note is not None:
        opinion = _unasked(runtime) if judge is None else (yield from judge(draft.note, runtime))
    return _saved(draft, opinion, runtime, runtime.store)


@dataclass(frozen=True)
class _Draft:
    """A note as the rules would keep it."""

    note: Note | None
    """None when they refuse it."""
    verdict: Verdict
    operations: Sequence[PutOp]
    message_ids: Sequence[str]


def _drafted(
    text: str,
    keywords: Sequence[str],
    scope: Literal["durable", "session"],
    runtime: ToolRuntime[Any, Any],
    rules: Rules,
) -> _Draft:
    """Find out whose words a note is made of, and let the rules decide on it; nothing is written."""
    thread_id = thread_of(runtime)
    messages = runtime.state.get("messages", [])
    origin, said, is_lasting = _author(text, messages, runtime.store, thread_id)
    message_ids = (said.id,) if said else ()
    # A quote is the user's own words; what a tool said stays where it is.
    quote = said.text if said and origin == "user" else ""
    keep = partial(capture, date=now(), salt=str(runtime.tool_call_id), rules=rules)
    note, verdict, operations = keep(
        text,
        own_keywords(keywords, text, quote),
        scope=scope if is_lasting else "session",
        source=Source(thread_id=thread_id, message_ids=message_ids, quote=quote),
        origin=origin,
        is_own=origin == "user" and is_typed(quote),
    )
    own = None
    if note is None or note.is_waiting:
        is_others = origin == "tool" or _has_results(messages)
        own = said_instead(text, _own(messages)[:_STATED], rules, is_others=is_others)
    elif scope == "durable" and not is_lasting and said is not None:
        # Half of it is an errand; what the message says for good is not to go with it.
        lasting = said_instead(text, [said], rules, is_others=_has_results(messages))
        own = lasting if lasting is not None and lasting[1].scope == "durable" else None
    if own is not None:
        stated, candidate = own
        in_own_words = keep(
            candidate.text,
            own_keywords(keywords, candidate.quote),
            scope=candidate.scope if scope == "durable" else "session",
            source=Source(thread_id=thread_id, message_ids=(stated.id,), quote=candidate.quote),
            kind=candidate.kind,
            subject=candidate.subject,
            confidence=candidate.confidence,
            origin="user",
            is_own=is_typed(stated.text),
        )
        if in_own_words[0] is not None:
            note, verdict, operations = in_own_words
            message_ids = (stated.id,)
    if note is not None and note.origin == "assistant" and said is not None and asks_to_forget(said.text):
        # Nobody said it but the model, which may say what the user wants forgotten in words of its own.
        return _Draft(None, Verdict("block", rule=_UNWANTED), (), message_ids)
    return _Draft(note, verdict, operations, message_ids)


def _saved(draft: _Draft, opinion: Verdict | None, runtime: ToolRuntime[Any, Any], store: BaseStore) -> str:
    """Write a note that all have allowed, and say what became of it.

    Args:
        opinion: what a model says; None when none was asked.
    """
    guard: Literal["rules", "model"] = "rules" if opinion is None else "model"
    verdict, ids = opinion or draft.verdict, list(draft.message_ids)
    note = draft.note if verdict.allowed else None
    events: list[Event] = []
    if note is None:
        events.append(NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=ids, guard=guard))
    else:
        saved = NoteSaved(note_id=note.id, scope=note.scope, kind=note.kind, by="tool", message_ids=ids, guard=guard)
        events.append(saved)
    thread_id, messages = thread_of(runtime), runtime.state.get("messages", [])
    if note is None and (asked := question_of(messages)) is not None:
        events += filter(None, [restated_blocked(store, thread_id, asked, messages)])
    turn, operations = int(runtime.state.get("turns", 0)), draft.operations if note else ()
    record(store, thread_id, events, write=runtime.stream_writer, turn=turn, operations=operations)
    if note is None and verdict.category == "unreadable" and opinion is not None:
        return (
            f"Not saved: whether the note may be kept could not be checked ({verdict.rule}). "
            "Tell the user so and carry on without it."
        )
    if note is None and verdict.rule == _UNWANTED:
        return "Not saved: the user asked not to remember it. Carry on without it."
    if note is None:
        return (
            f"Not saved: the note looks like {phrase(verdict.category)}, which is never kept as a note. "
            "Tell the user so and carry on without it."
        )
    if note.is_waiting:
        return (
            f"Kept for this session only, because the user did not say it in these words: {note.text} "
            "Ask the user in one question, with these words, whether you shall remember it; once they have said "
            "yes, save it again."
        )
    lasting = "for this session only" if note.scope == "session" else "and kept after this session"
    return f"Saved {lasting}: {note.text}"


def _unasked(runtime: ToolRuntime[Any, Any]) -> Verdict | None:
    """Return the verdict where the dial wants a model and this tool has none to ask."""
    return unanswered("no model to ask") if getattr(runtime.context, "guard", "rules") == "model" else None


def _author(
    text: str, messages: Sequence[BaseMessage], store: BaseStore | None, thread_id: str
) -> tuple[NoteOrigin, Said | None, bool]:
    """Tell whose words a note is made of, which message has them, and whether they are about more than one request.

    Only what can be shown is the user's. A tool's words stay a tool's through any number of summaries, since the
    transcript keeps the result itself; what nobody is found to have said is the assistant's.
    """
    own = _own(messages)
    shown: Shown | None = shown_by(text, own)
    archived: list[tuple[str, Said]] = []
    if shown is None and store is not None:
        archived = _archived(text, store, thread_id)
        own += [said for role, said in archived if role == "human"]
        shown = shown_by(text, own)
    if shown is not None:
        return "user", shown.said, shown.is_lasting
    results = [_said(message) for message in messages if message.type == "tool" and message.name not in _REPEATING]
    results += [said for role, said in archived if role == "tool"]
    behind = tool_behind(text, results, own)
    # A note comes back to the prompt when its source has left it: the turn in which it was saved.
    return ("tool", behind, True) if behind is not None else ("assistant", own[0] if own else None, True)


def _has_results(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether a tool has returned something in the current turn."""
    turn = takewhile(lambda message: not opens_turn(message), reversed(messages))
    return any(message.type == "tool" and message.name not in _REPEATING for message in turn)


def _own(messages: Sequence[BaseMessage]) -> list[Said]:
    """Return what the user said, newest first; an answer that only agrees says what the assistant asked."""
    said: list[Said] = []
    asked = ""
    for message in messages:
        if isinstance(message, AIMessage):
            asked = "" if message.tool_calls else str(message.text)
        elif opens_turn(message):
            text = str(message.text)
            said.append(Said(str(message.id), text, asked if agrees(text, asked) else ""))
            asked = ""
    return said[::-1]


def _archived(text: str, store: BaseStore, thread_id: str) -> list[tuple[str, Said]]:
    """Return the evicted messages that have words of a note, with their roles."""
    found: Any = store.batch([SearchOp(namespaces.transcript(thread_id), query=text, limit=_SEARCHED)])[0]
    passages = [passage_of(item) for item in found]
    return [(one.role, Said(one.id, one.text)) for one in passages if one.speaker not in _REPEATING]


def _said(message: BaseMessage) -> Said:
    """Return a tool's result; of content that is no text, all that it says."""
    return Said(str(message.id), message.content if isinstance(message.content, str) else str(message.content))
