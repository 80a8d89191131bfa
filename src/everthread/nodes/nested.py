"""Our graph inside another one: as a node that shares the parent's messages, as a subgraph, or behind a tool.

The parent owns the thread and its state, so nothing of either is changed: the prompt is made from a working set of our
own, and the shared messages only get what is new. With the parent's thread and a store the run takes part in that
thread, with transcript, notes and events. Without them, and inside a tool, where the question is the words of another
model, it is a run of its own: it knows what the store knows of the user, and leaves nothing behind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore, GetOp, Op, Result, SearchOp

from everthread.models.calls import ModelCalls, amake_calls, make_calls
from everthread.nodes.deps import NodeDeps, context_of, is_nested, store_of, thread_of
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import checked_session
from everthread.nodes.thread_view import ThreadView
from everthread.state import Context, State, Update, namespaces
from everthread.state.marks import is_synthetic
from everthread.state.messages import reduce_messages
from everthread.state.state import state_after
from everthread.window.turns import question_of

OWN_STORE = "__everthread_store"
"""Key of `configurable` under which a guard hands its store to a run whose parent has none."""

_TOOLS = "tools"
"""Node that runs tools, in our graph as in `create_agent`."""

Node = Callable[[State, Runtime[Context], NodeDeps], Update]
CallingNode = Callable[[State, Runtime[Context], NodeDeps], ModelCalls[Update]]


class NotesOnly(BaseStore):
    """A store that knows what another one knows of users, and keeps nothing."""

    def __init__(self, behind: BaseStore | None) -> None:
        self._behind = behind

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Read what is known of users; everything else is empty, and a write is forgotten."""
        return [self._answer(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does; nodes read synchronously, in a thread."""
        return self.batch(ops)

    def _answer(self, op: Op) -> Result:
        space = op.namespace if isinstance(op, GetOp) else op.namespace_prefix if isinstance(op, SearchOp) else ()
        if self._behind is not None and space[:1] == namespaces.user("")[:1]:
            return self._behind.batch([op])[0]
        return [] if isinstance(op, SearchOp) else None


def run_joined(node: Node, deps: NodeDeps) -> Any:
    """Return a node of our graph for both cases: alone it runs as it is, inside another graph on an `_Inside`."""

    def run(state: State, runtime: Runtime[Context]) -> Update:
        runtime = deps.with_fixed_dials(runtime)
        if not is_nested(runtime):
            return node(state, runtime, deps)
        inside = _Inside.of(state, runtime)
        return inside.update(_begun(inside, deps) or node(inside.state, inside.runtime, deps))

    return run


class ModelNode(Runnable[State, Update]):
    """A node of our graph that calls models, for both cases; see `run_joined`."""

    def __init__(self, node: CallingNode, deps: NodeDeps) -> None:
        self._node = node
        self._deps = deps

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the node, waiting for each call."""
        self._deps.check_sync()
        return make_calls(self._calls(input, get_runtime(Context)), config or {})

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the node, awaiting each call."""
        return await amake_calls(self._calls(input, get_runtime(Context)), config or {})

    def _calls(self, state: State, runtime: Runtime[Context]) -> ModelCalls[Update]:
        runtime = self._deps.with_fixed_dials(runtime)
        if not is_nested(runtime):
            return (yield from self._node(state, runtime, self._deps))
        inside = _Inside.of(state, runtime)
        update = yield from self._node(inside.state, inside.runtime, self._deps)
        return inside.update(update, records=True)


def own_state(state: State) -> State:
    """Return a state with our own working set in the place of the messages that a parent shares."""
    saved = state.get("working_set")
    if saved is None:
        return state
    return cast(State, {**state, "messages": _joined(saved, state.get("messages", []))})


def own_store(runtime: Any) -> BaseStore | None:
    """Return the store of the parent, or else that of our graph's own guard."""
    if runtime.store is not None:
        return cast(BaseStore, runtime.store)
    return cast("BaseStore | None", ensure_config().get("configurable", {}).get(OWN_STORE))


def runtime_inside(runtime: Any) -> tuple[Any, bool]:
    """Return a runtime with a store, and whether the run takes part in its parent's thread.

    Args:
        runtime: LangGraph's, of a node or of a tool.
    """
    info, store = runtime.execution_info, own_store(runtime)
    is_tools = any(part.startswith(f"{_TOOLS}:") for part in info.checkpoint_ns.split("|")[:-1])
    has_thread = namespaces.is_named(info.thread_id)
    if store is not None and has_thread and not is_tools:
        return replace(runtime, store=store), True
    context = context_of(runtime)
    if store is not None and has_thread:
        checked_session(store, str(info.thread_id), context)
    aside = replace(
        runtime,
        # Nothing is distilled, for the words may be another model's, and nothing is left out of the state.
        context=replace(context, distillation=()),
        store=NotesOnly(store),
        execution_info=info.patch(thread_id="none"),
        stream_writer=lambda chunk: None,
    )
    return aside, False


def _begun(inside: "_Inside", deps: NodeDeps) -> Update | None:
    """Return the plan alone for a question that was answered already, as when the parent comes back to the node."""
    if inside.is_new_question:
        return None
    run = NodeRun.of(inside.state, inside.runtime, deps)
    return run.plan_update(run.plan())


@dataclass(frozen=True)
class _Inside:
    """A run inside another graph, at one of its nodes."""

    state: State
    """As our own graph would have it."""
    runtime: Runtime[Context]
    sent: Sequence[BaseMessage]
    """The messages that the parent shares, and what this run has added."""
    takes_part: bool
    """The run takes part in the parent's thread."""
    is_new_question: bool = True
    began: Mapping[str, Any] = field(default_factory=dict)
    """Keys of our state as the last run of the thread left them, at the first node of this one."""

    @classmethod
    def of(cls, state: State, runtime: Runtime[Context]) -> "_Inside":
        inside, takes_part = runtime_inside(runtime)
        sent, saved = state.get("messages", []), state.get("working_set")
        if saved is not None:
            return cls(own_state(state), inside, sent, takes_part)
        if not takes_part:
            return cls(state, inside, sent, takes_part)
        view = ThreadView.load(store_of(inside), thread_of(inside), sent)
        joined = cast(State, {**state, **view.state})
        began = {name: value for name, value in view.state.items() if name != "messages"}
        return cls(joined, inside, sent, takes_part, view.is_new_question, began)

    def update(self, update: Update, *, records: bool = False) -> Update:
        """Return what a node's update means for the channels; `records` what the next run has to know."""
        after = state_after(self.state, update)
        messages = after["messages"]
        sent = {message.id for message in self.sent}
        new = [one for one in messages if one.id not in sent and not is_synthetic(one)]
        if records and self.takes_part and question_of(messages) is not None:
            view = ThreadView(self.state, self.is_new_question, self.sent)
            store_of(self.runtime).batch(list(view.record(after, thread_of(self.runtime), stays=True)))
        last = [*self.sent, *new][-1:]
        saved = {
            "messages": messages,
            "last": last[0].id if last else None,
            "takes_part": self.takes_part,
        }
        channels = {**self.began, **update, "messages": new, "working_set": saved}
        return cast(Update, channels)


def _joined(saved: Mapping[str, Any], sent: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return our working set with what the other nodes have added to the shared messages since."""
    places = {message.id: place for place, message in enumerate(sent)}
    behind = sent[places.get(saved["last"], -1) + 1 :]
    return reduce_messages(saved["messages"], [list(behind)])
