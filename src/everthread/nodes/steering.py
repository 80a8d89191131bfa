"""Do with a question what a person asked for since the one before: messages brought back, tool results masked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Item, PutOp

from everthread.ledger.events import Event, Masked, Recalled
from everthread.memory.recall import Passage, render_recalled
from everthread.nodes.deps import NodeDeps, context_of, store_of, thread_of
from everthread.nodes.sizes import PromptSize
from everthread.nodes.trim import handle_operation, leaving
from everthread.state import Context, PromptPlan, State, namespaces
from everthread.state.marks import handle_of, is_masked, marked, marks, synthetic
from everthread.state.steering import Steering
from everthread.storage.recall import passage_of, search_of
from everthread.storage.transcript import archived_by_id
from everthread.storage.unreadable import readable
from everthread.window.draft import as_text
from everthread.window.masking import LONGEST_STUB, masked_text, stub
from everthread.window.turns import question_of

__all__ = ["Steered", "steer"]

_SHARE = 0.5
"""Share of the budget that messages brought back may take together; longer ones are cut, with a handle."""

_LEAST_TOKENS = 64
"""Of one of them."""

_HEADING = "Messages that the user asked to bring back:"


@dataclass(frozen=True)
class Steered:
    """What was done."""

    changed: list[BaseMessage] = field(default_factory=list)
    """Messages of the working set with another text: masked, or in full again."""
    block: str = ""
    """Messages that had left, for the prompt."""
    shown_ids: list[str] = field(default_factory=list)
    """Ids of these."""
    moved: str = ""
    """Why the head of the prompt is not as it was; empty when it is."""
    events: list[Event] = field(default_factory=list)
    operations: list[PutOp] = field(default_factory=list)


def steer(
    steering: Sequence[Steering],
    state: State,
    plan: PromptPlan,
    runtime: Runtime[Context],
    deps: NodeDeps,
    shared: int | None,
) -> Steered:
    """Do what waits for the question; a run that begins the same question again does it again.

    Args:
        state: the working set, which ends with the question.
        shared: last place that all branches of the thread share, see `shared_past`.
    """
    question = question_of(state.get("messages", []))
    waiting = [one for one in steering if one.action != "pin"]
    if question is None or not waiting:
        return Steered()
    space, done = namespaces.steering(thread_of(runtime)), Steered()
    due = [one for one in waiting if one.question in ("", question.id)]
    done.operations.extend(PutOp(space, one.id, None) for one in waiting if one not in due)
    done.operations.extend(
        PutOp(space, one.id, replace(one, question=str(question.id)).value(), index=False) for one in due
    )
    if not due:
        return done
    size = PromptSize.of(state, plan, deps.model_for(context_of(runtime)))
    here = {str(message.id): message for message in state.get("messages", [])}
    back = [one for one in due if one.action == "bring_back"]
    stubs = _masked([one for one in due if one.action == "mask"], here, size, state, runtime, done)
    whole = _restored(back, here, runtime)
    block, ids = _brought_back(back, here, size, state, runtime, shared, done)
    moved = "masked" if stubs else "brought back" if whole else ""
    return replace(done, changed=[*stubs, *whole], block=block, shown_ids=ids, moved=moved)


def _masked(
    asked: Sequence[Steering],
    here: Mapping[str, BaseMessage],
    size: PromptSize,
    state: State,
    runtime: Runtime[Context],
    done: Steered,
) -> list[BaseMessage]:
    """Mask results as a trim does."""
    stubs: list[BaseMessage] = []
    for one in asked:
        result = here.get(one.message_id)
        if not isinstance(result, ToolMessage) or is_masked(result) or size.counter.message(result) <= LONGEST_STUB:
            continue
        stubs.append(stand_in := stub(as_text(result), size.counter))
        done.events.append(
            Masked(
                reason="asked for by hand",
                message_id=one.message_id,
                handle=str(marks(stand_in)["handle"]),
                tokens_before=size.counter.message(result),
                tokens_after=size.counter.message(stand_in),
                budget=size.budget.tokens,
                actor=one.actor,
            )
        )
    if stubs:
        ids = {str(one.id) for one in stubs}
        done.operations.extend(leaving([], ids, state, thread_of(runtime), context_of(runtime)))
    return stubs


def _restored(
    asked: Sequence[Steering], here: Mapping[str, BaseMessage], runtime: Runtime[Context]
) -> list[BaseMessage]:
    """Return masked messages in full; they are masked last from now on."""
    ids = [one.message_id for one in asked if one.message_id in here and is_masked(here[one.message_id])]
    return [marked(message, kept=True) for message in archived_by_id(store_of(runtime), thread_of(runtime), ids)]


def _brought_back(
    asked: Sequence[Steering],
    here: Mapping[str, BaseMessage],
    size: PromptSize,
    state: State,
    runtime: Runtime[Context],
    shared: int | None,
    done: Steered,
) -> tuple[str, list[str]]:
    """Return messages that had left as a block for the prompt, and their ids; none that another branch said."""
    gone = [one for one in asked if one.message_id not in here]
    if not gone:
        return "", []
    store, thread_id = store_of(runtime), thread_of(runtime)
    search = search_of(store, thread_id, state.get("messages", []), shared)
    space = namespaces.transcript(thread_id)
    found = store.batch([GetOp(space, one.message_id) for one in gone])
    items = [item for item in found if isinstance(item, Item)]
    passages = [passage for passage in readable(items, passage_of) if search.allows(passage)]
    if not passages:
        return "", []
    limit = max(int(size.budget.tokens * _SHARE) // len(passages), _LEAST_TOKENS)
    shown = [_cut(passage, limit, size, done, thread_id) for passage in passages]
    block = render_recalled(shown, _HEADING)
    ids = [passage.id for passage in passages]
    tokens = size.counter.message(synthetic("recalled", block))
    done.events.append(Recalled(by="hand", message_ids=ids, tokens=tokens, searched=len(gone), actor=gone[0].actor))
    return block, ids


def _cut(passage: Passage, limit: int, size: PromptSize, done: Steered, thread_id: str) -> Passage:
    full = size.counter.text(passage.text)
    if full <= limit:
        return passage
    done.operations.append(handle_operation(thread_id, passage.id))
    text = masked_text(passage.text, limit, size.counter, handle=handle_of(passage.id), full_tokens=full)
    return passage._replace(text=text, is_cut=True)
