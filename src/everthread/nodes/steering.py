"""Do with a question what a person asked for since the one before: messages brought back, tool results masked."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.store.base import GetOp, Item, PutOp

from everthread.ledger.events import Event, Masked, Recalled
from everthread.memory.recall import Passage, render_recalled
from everthread.nodes.node_run import NodeRun
from everthread.nodes.sizes import PromptSize
from everthread.nodes.trim import handle_operation, leaving
from everthread.state import PromptPlan, namespaces
from everthread.state.marks import handle_of, is_masked, marked, marks, synthetic
from everthread.state.steering import Steering
from everthread.storage.recall import passage_of, search_of
from everthread.storage.transcript import archived_by_id
from everthread.storage.unreadable import readable
from everthread.window.draft import as_text
from everthread.window.masking import LONGEST_STUB, masked_text, stub
from everthread.window.turns import question_of

_SHARE = 0.5
"""Share of the budget that messages brought back may take together; longer ones are cut, with a handle."""

_LEAST_TOKENS = 64
"""Of one of them."""

_HEADING = "Messages that the user asked to bring back:"


@dataclass
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


def steer(run: NodeRun, plan: PromptPlan, steering: Sequence[Steering], shared: int | None) -> Steered:
    """Do what waits for the question; a run that begins the same question again does it again.

    Args:
        run: has the working set, which ends with the question.
        shared: last place that all branches of the thread share, see `shared_past`.
    """
    done, question = Steered(), question_of(run.messages)
    waiting = [one for one in steering if one.action != "pin"]
    if question is None or not waiting:
        return done
    space = namespaces.steering(run.thread_id)
    due = [one for one in waiting if one.question in ("", question.id)]
    for one in waiting:
        value = replace(one, question=str(question.id)).value() if one in due else None
        done.operations.append(PutOp(space, one.id, value, index=False))
    if not due:
        return done
    size = run.size(plan)
    here = {str(message.id): message for message in run.messages}
    back = [one for one in due if one.action == "bring_back"]
    for one in due:
        if one.action == "mask" and isinstance(result := here.get(one.message_id), ToolMessage):
            _mask(result, one.actor, size, done)
    if done.changed:
        done.operations += leaving(run, [], {str(one.id) for one in done.changed})
    masked = [one.message_id for one in back if one.message_id in here and is_masked(here[one.message_id])]
    # Masked last from now on.
    whole = [marked(message, kept=True) for message in archived_by_id(run.store, run.thread_id, masked)]
    done.moved = "masked" if done.changed else "brought back" if whole else ""
    done.changed += whole
    if gone := [one for one in back if one.message_id not in here]:
        _bring_back(run, gone, size, shared, done)
    return done


def _mask(result: ToolMessage, actor: str, size: PromptSize, done: Steered) -> None:
    """Mask a result as a trim does."""
    if is_masked(result) or size.counter.message(result) <= LONGEST_STUB:
        return
    done.changed.append(stand_in := stub(as_text(result), size.counter))
    done.events.append(
        Masked(
            reason="asked for by hand",
            message_id=str(result.id),
            handle=str(marks(stand_in)["handle"]),
            tokens_before=size.counter.message(result),
            tokens_after=size.counter.message(stand_in),
            budget=size.budget.tokens,
            actor=actor,
        )
    )


def _bring_back(run: NodeRun, gone: Sequence[Steering], size: PromptSize, shared: int | None, done: Steered) -> None:
    """Show messages that had left as a block for the prompt; none that another branch said."""
    search = search_of(run.store, run.thread_id, run.messages, shared)
    space = namespaces.transcript(run.thread_id)
    found = run.store.batch([GetOp(space, one.message_id) for one in gone])
    items = [item for item in found if isinstance(item, Item)]
    passages = [passage for passage in readable(items, passage_of) if search.allows(passage)]
    if not passages:
        return
    limit = max(int(size.budget.tokens * _SHARE) // len(passages), _LEAST_TOKENS)
    shown = [_cut(passage, limit, size, done, run.thread_id) for passage in passages]
    done.block, done.shown_ids = render_recalled(shown, _HEADING), [passage.id for passage in passages]
    done.events.append(
        Recalled(
            by="hand",
            message_ids=done.shown_ids,
            tokens=size.counter.message(synthetic("recalled", done.block)),
            searched=len(gone),
            actor=gone[0].actor,
        )
    )


def _cut(passage: Passage, limit: int, size: PromptSize, done: Steered, thread_id: str) -> Passage:
    full = size.counter.text(passage.text)
    if full <= limit:
        return passage
    done.operations.append(handle_operation(thread_id, passage.id))
    text = masked_text(passage.text, limit, size.counter, handle=handle_of(passage.id), full_tokens=full)
    return passage._replace(text=text, is_cut=True)
