"""One run of a node: the state it reads, whose run it is, and where it keeps what it decides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import StreamWriter

from everthread.ledger.events import Event
from everthread.ledger.record import record
from everthread.nodes.deps import NodeDeps, context_of, store_of, thread_of
from everthread.nodes.prompt_plan import make_plan, read_memory
from everthread.nodes.sizes import PromptSize
from everthread.state import Context, PromptPlan, State, Update


@dataclass(frozen=True)
class NodeRun:
    """What a node and its helpers work with."""

    state: State
    context: Context
    store: BaseStore
    thread_id: str
    write: StreamWriter
    deps: NodeDeps

    @classmethod
    def of(cls, state: State, runtime: Runtime[Context], deps: NodeDeps) -> "NodeRun":
        """Return the run of a node.

        Raises:
            SettingsError: it has no store, no thread, or another user than the one who signed in.
        """
        return cls(state, context_of(runtime), store_of(runtime), thread_of(runtime), runtime.stream_writer, deps)

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """The working set, oldest first."""
        return self.state.get("messages", [])

    @property
    def turn(self) -> int:
        """User turns so far."""
        return self.state.get("turns", 0)

    def plan(self) -> PromptPlan:
        """Return the plan of the turn; made again in a run that resumes, where the channel is empty.

        Raises:
            SettingsError: the thread belongs to another user; whoever resumes it has not passed `inject_memory`.
        """
        plan = self.state.get("plan")
        if plan is not None:
            return plan
        memory = read_memory(self.store, self.thread_id, self.context, self.state.get("summary_id"))
        return make_plan(memory, self.messages, self.store, self.thread_id, self.context, self.deps)

    def plan_update(self, plan: PromptPlan) -> Update:
        """Return the update that gives the turn's other nodes and edges a plan; empty when the state has it already."""
        if self.state.get("plan") is plan:
            return {}
        return {"plan": plan, "summary": plan.summary.model_dump(mode="json") if plan.summary else None}

    def size(self, plan: PromptPlan, *, reads_back: bool = True) -> PromptSize:
        """Measure the prompt; see `PromptSize.of`."""
        return PromptSize.of(self.state, plan, self.deps.model_for(self.context), reads_back=reads_back)

    def record(self, events: Iterable[Event], operations: Iterable[PutOp] = ()) -> None:
        """Write events of this turn with the writes that they are about; see `ledger.record`."""
        record(self.store, self.thread_id, events, write=self.write, turn=self.turn, operations=operations)
