"""Run any compiled graph on a shared database: one run at a time on a thread, and each by the thread's owner."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langchain_core.runnables.graph import Graph
from langgraph.channels import UntrackedValue
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.store.base import Item
from langgraph.types import Command, GraphOutput, StateSnapshot, StateUpdate
from pydantic import BaseModel

from everthread.errors import SettingsError, StepLimitError
from everthread.graph.resend import arrival
from everthread.graph.routing import AFTER_REPLY
from everthread.ledger.record import now
from everthread.nodes.nested import OWN_STORE
from everthread.nodes.thread_view import thread_messages
from everthread.state import Context, namespaces
from everthread.state.context import named_user, no_user, set_dials
from everthread.state.marks import is_answer, sequence
from everthread.state.messages import clean_content
from everthread.state.schemas import declared_types
from everthread.storage.adoption import refuse_foreign
from everthread.storage.kept_checkpoints import OURS, OWN_GRAPH
from everthread.storage.left_messages import left_messages
from everthread.storage.open import Storage
from everthread.storage.pruning import Pruner, dial_metadata, edit_metadata
from everthread.storage.unreadable import described, record_name
from everthread.storage.worker import RunScope
from everthread.tools import OWN_TOOLS
from everthread.window.turns import question_of

__all__ = ["GuardedGraph", "is_guarded"]


class _StepLimit(StepLimitError, GraphRecursionError):
    """For those who catch LangGraph's error too; `errors` does without LangGraph, which takes a second to load."""


class _RunHold:
    """The lock of a thread that a run holds, refused where the run would wait for itself.

    A `with` names it twice, see `Hold`: what Ctrl-C cuts off in one release is done in the other.
    """

    def __init__(self, storage: Storage, thread_id: str) -> None:
        self.thread_id = thread_id
        self._lock = storage.locks.hold(thread_id)

    def __enter__(self) -> None:
        try:
            self._refuse_itself()
            self._lock.__enter__()
            self._note()
        except BaseException:
            self._release()
            raise

    def __exit__(self, *_: object) -> None:
        self._release()

    async def __aenter__(self) -> None:
        self._refuse_itself()
        await self._lock.__aenter__()
        self._note()

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _refuse_itself(self) -> None:
        if any(one.thread_id == self.thread_id and one.is_held and one is not self for one in _held_threads.get()):
            raise SettingsError(
                f"thread {self.thread_id!r} is being run by the run or the unfinished stream that calls this one, "
                "which would wait for itself; leave `thread_id` out to run as part of it, finish the stream, or name "
                "another thread"
            )

    @property
    def is_held(self) -> bool:
        return self._lock.is_held

    def _note(self) -> None:
        _held_threads.set((*(one for one in _held_threads.get() if one.is_held and one is not self), self))

    def _release(self) -> None:
        self._lock.release()
        # Not by a token: streams that are read in turn end in any order, and an abandoned one in another context.
        _held_threads.set(tuple(one for one in _held_threads.get() if one is not self))


_held_threads: ContextVar[tuple[_RunHold, ...]] = ContextVar("held_threads", default=())
"""Of the current run and of the runs around it; one that is not held any more was left behind in another context."""


def is_guarded(thread_id: str) -> bool:
    """Tell whether a guarded run on a thread is under way here: its user was found to be the owner before it began."""
    return any(one.thread_id == thread_id and one.is_held for one in _held_threads.get())


@dataclass(frozen=True)
class _Run:
    """One call of a guarded graph."""

    input: Any
    config: RunnableConfig
    options: dict[str, Any]
    thread_id: str
    user_id: str | None
    keep_checkpoints: int | None
    ledger_turns: int | None

    @property
    def is_new(self) -> bool:
        """Whether it begins with an input, rather than resuming where the last run stopped."""
        return self.input is not None and not isinstance(self.input, Command)

    @property
    def latest(self) -> RunnableConfig:
        """The config without the checkpoint that it names: of the newest one."""
        configurable = {name: value for name, value in self.config["configurable"].items() if name != "checkpoint_id"}
        return {**self.config, "configurable": configurable}


@dataclass(frozen=True)
class _Input:
    """A step of a guarded run: the graph has to run, with this input."""

    input: Any
    config: RunnableConfig
    is_silent: bool = False
    """It finishes an earlier turn: the caller shows nothing of it."""

    @classmethod
    def of(cls, input: Any, config: RunnableConfig, *, is_first: bool = True, is_silent: bool = False) -> "_Input":
        """Give each run of the graph a `run_id` of its own; the first may have the caller's.

        The id is in the metadata of its checkpoints. LangGraph takes a run with the `run_id` of the newest checkpoint
        for a continuation of that one.
        """
        configurable = config["configurable"]
        named = configurable.get("run_id") if is_first else None
        return cls(input, {**config, "configurable": {**configurable, "run_id": str(named or uuid4())}}, is_silent)


@dataclass(frozen=True)
class _Answer:
    """A step of a guarded run: nothing has to run, since the message has its answer already."""

    values: dict[str, Any]
    """The output, as the graph would return it."""


_Steps = Generator[_Input | _Answer, None, None]


class GuardedGraph(PregelProtocol[Any, Any, Any, Any]):
    """A compiled graph whose runs hold the lock of their thread.

    A run is refused unless it is the thread owner's. A message that is sent again gets the answer that it has, a turn
    that was cut off goes on, and old checkpoints are pruned afterwards. Inside another graph, where the parent owns
    thread and context, it runs as the plain graph.

    Args:
        graph: compiled with the checkpointer and the store of `storage`.
        storage: an open database.

    Raises:
        SettingsError: the graph has another checkpointer.
    """

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], storage: Storage) -> None:
        if not _is_on(graph.checkpointer, storage):
            raise SettingsError(
                "the graph to guard has another checkpointer: compile it with `checkpointer=storage.checkpointer` "
                "and `store=storage.store`"
            )
        # The graph's own types come back from a checkpoint as what they are.
        saved = (channel for channel in graph.channels.values() if not isinstance(channel, UntrackedValue))
        types = declared_types(getattr(channel, "ValueType", None) for channel in saved)
        self.graph = graph.copy({"checkpointer": storage.checkpointer.with_allowlist(types)}) if types else graph
        self.storage = storage
        self.name = graph.name
        self._pruner = Pruner(storage)

    def __getattr__(self, name: str) -> Any:
        # What is not asked of a run, such as `nodes`, `builder` and `channels`, is the graph's.
        if name in ("graph", "storage"):
            raise AttributeError(name)
        return getattr(self.graph, name)

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Stream a run while holding the thread's lock; arguments as in LangGraph.

        Raises:
            ThreadBusyError: another run kept the lock for longer than the timeout.
            SettingsError: no thread is named, its owner is another user, or the input cannot be read.
            StorageError: the database failed.
        """
        if _is_nested(config):
            yield from self.graph.stream(input, self._inside(config), **options)
            return
        run = self._run(input, config, options)
        with (hold := self._hold(run.thread_id)), hold:
            for step in self._steps(run):
                if isinstance(step, _Answer):
                    yield from _streamed(step, run.options)
                else:
                    with _step_limit(step.config):
                        for part in self.graph.stream(step.input, step.config, **run.options):
                            if not step.is_silent:
                                yield part

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run asynchronously while holding the thread's lock; see `stream`."""
        if _is_nested(config):
            async for part in self.graph.astream(input, self._inside(config), **options):
                yield part
            return
        run = self._run(input, config, options)
        async with self._ahold(run.thread_id) as scope, aclosing(scope.stream(self._parts(run))) as parts:
            async for part in parts:
                yield part

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the graph while holding the thread's lock; arguments and errors as in `stream`."""
        if _is_nested(config):
            return self.graph.invoke(input, self._inside(config), **options)
        run, result = self._run(input, config, options), None
        with (hold := self._hold(run.thread_id)), hold:
            for step in self._steps(run):
                if isinstance(step, _Answer):
                    result = _output(step, run.options)
                else:
                    with _step_limit(step.config):
                        result = self.graph.invoke(step.input, step.config, **run.options)
        return result

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the graph asynchronously while holding the thread's lock; see `invoke`."""
        if _is_nested(config):
            return await self.graph.ainvoke(input, self._inside(config), **options)
        run, result = self._run(input, config, options), None
        async with self._ahold(run.thread_id) as scope:
            with scope.current():
                steps = self._steps(run)
                while (step := await self.storage.worker.call(next, steps, None)) is not None:
                    if isinstance(step, _Answer):
                        result = _output(step, run.options)
                    else:
                        with _step_limit(step.config):
                            result = await self.graph.ainvoke(step.input, step.config, **run.options)
        return result

    def _inside(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run inside another graph, with our store for a parent that has none."""
        here = ensure_config(config)
        return {**here, "configurable": {**here["configurable"], OWN_STORE: self.storage.store}}

    async def _parts(self, run: _Run) -> AsyncGenerator[Any, None]:
        steps = self._steps(run)
        while (step := await self.storage.worker.call(next, steps, None)) is not None:
            if isinstance(step, _Answer):
                for part in _streamed(step, run.options):
                    yield part
            else:
                # Closed here, while the lock is held: left to the garbage collector it would go on.
                parts = cast(AsyncGenerator[Any, None], self.graph.astream(step.input, step.config, **run.options))
                with _step_limit(step.config):
                    async with aclosing(parts):
                        async for part in parts:
                            if not step.is_silent:
                                yield part

    # The protocol of a run, the same under `invoke` and `ainvoke`: what it asks of the database is synchronous, and
    # the async methods let the storage's worker thread take one step after the other.

    def _steps(self, run: _Run) -> _Steps:
        """Claim the thread, yield what the caller has to run one by one, and prune at the end.

        The caller runs each step before it asks for the next one.
        """
        session = self._session_of(run)
        snapshot = self.graph.get_state(run.config)
        self._check_graph(run.config, snapshot)
        self._claim(run, session)
        if self.storage.timers is not None and _begins(session):
            self.storage.timers.arm(run.thread_id)
        self._note_fork(run.config, snapshot, session)
        config = run.config
        if run.is_new and START in snapshot.next:
            # The last run died when its input was checkpointed but no node had consumed it, and a new input would
            # take its place. This puts it into the state; no node runs.
            for _ in self.graph.stream(None, config, **{**run.options, "interrupt_before": "*"}):
                pass
            config = run.latest
            snapshot = self.graph.get_state(config)
        if run.is_new and self._died_after_reply(snapshot) and "checkpoint_id" not in config["configurable"]:
            # The last run died behind its reply: notes of the turn and the summary are still to be made.
            yield _Input.of(None, config, is_first=False, is_silent=True)
            snapshot = self.graph.get_state(config)
        for index, step in enumerate(self._inputs(run, config, snapshot)):
            if index and isinstance(step, _Input) and self.graph.get_state(run.latest).tasks:
                # The turn is not over, as a rule because it waits for an approval.
                break
            yield step
        self._pruner.after_run(run.thread_id, run.keep_checkpoints, run.ledger_turns)

    def _inputs(self, run: _Run, config: RunnableConfig, snapshot: StateSnapshot) -> Iterator[_Input | _Answer]:
        """Yield the steps of a run: the input as it is, or for a graph of messages what `resend.arrival` makes of it.

        It writes too: what `arrival` asks for, and results of a turn that is given up.
        """
        if not run.is_new or not isinstance(run.input, dict) or "messages" not in self.graph.channels:
            yield _Input.of(run.input, config)
            return
        store = self.storage.store
        if self._is_own and not snapshot.tasks and _stopped_behind_tools(snapshot, run.input):
            # Ctrl-C between two steps, with durability `exit`: LangGraph saved the results and not what comes next.
            self.graph.update_state(config, None, as_node="tools")
            config = run.latest
            snapshot = self.graph.get_state(config)
        # By `tasks` and not by `next`, which leaves out a task whose writes are saved and in no checkpoint yet.
        come = arrival(run.input, self._values(snapshot, run), store, run.thread_id, is_cut_off=bool(snapshot.tasks))
        if come.continues and (self.graph.interrupt_before_nodes or self.graph.interrupt_after_nodes):
            # It may wait at a breakpoint, and a message that is sent again is nobody's leave to go on.
            yield _Answer(self._output_of(snapshot.values))
            return
        if come.writes:
            store.batch(list(come.writes))
        if come.answer:
            output = {**self._output_of(snapshot.values), "messages": list(come.answer)}
            if "structured_response" in output and come.answer[-1].id != snapshot.values["messages"][-1].id:
                # That is the answer of a later turn.
                output["structured_response"] = None
            yield _Answer(output)
        elif snapshot.tasks and not come.continues and "checkpoint_id" not in config["configurable"]:
            # The last turn does not go on. This ends it and saves the results of its finished tasks, such as the tools
            # beside a pending approval; a new input alone would drop them.
            self.graph.update_state(config, None, as_node=END)
        for index, graph_input in enumerate(come.inputs):
            is_first = index == 0
            if isinstance(graph_input, dict) and (sent := graph_input.get("messages")):
                # What is sent may take the place of what the state has, such as an edited question.
                ids = {message.id for message in sent}
                replaced = [message for message in snapshot.values.get("messages") or () if message.id in ids]
                if replaced:
                    self._keep_left(run.thread_id, replaced, sent, store.get(namespaces.SESSIONS, run.thread_id))
            yield _Input.of(graph_input, config if is_first and not come.answer else run.latest, is_first=is_first)

    def _values(self, snapshot: StateSnapshot, run: _Run) -> Mapping[str, Any]:
        """Return the state with the places of its messages, which only our own graph and reducer write into it."""
        messages = snapshot.values.get("messages")
        if not messages or self._is_own:
            return snapshot.values
        sent = run.input.get("messages")
        if sent and not snapshot.tasks and not self._knows(str(sent[-1].id), run.thread_id, messages):
            # A new question behind a finished turn: no place is asked for.
            return snapshot.values
        return {**snapshot.values, "messages": thread_messages(self.storage.store, run.thread_id, messages)}

    def _knows(self, message_id: str, thread_id: str, messages: Sequence[BaseMessage]) -> bool:
        is_here = any(message.id == message_id for message in messages)
        return is_here or self.storage.store.get(namespaces.transcript(thread_id), message_id) is not None

    def _died_after_reply(self, snapshot: StateSnapshot) -> bool:
        """Tell whether the last turn of our own graph was cut off after its reply.

        What other nodes do behind a reply may wait for somebody, so only our own are sure to go on.
        """
        messages = snapshot.values.get("messages") or []
        tasks = {task.name for task in snapshot.tasks}
        is_own = self._dials is not None and bool(tasks) and tasks <= AFTER_REPLY and bool(messages)
        return is_own and is_answer(messages[-1])

    def _output_of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        names = self.graph.output_channels
        return {name: values[name] for name in ([names] if isinstance(names, str) else names) if name in values}

    def _run(self, input: Any, config: RunnableConfig | None, options: dict[str, Any]) -> _Run:
        """Read the arguments of a call; nothing is claimed or saved before they are found to be in order."""
        merged = merge_configs(self.graph.config, ensure_config(config))
        configurable = merged.get("configurable", {})
        thread_id = configurable.get("thread_id")
        if not thread_id:
            raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
        thread_id = namespaces.checked("thread_id", str(thread_id))
        context = self._context(options.get("context"), configurable)
        # Dials of `EverthreadMiddleware`: found wrong in the middle of a run, its message would be saved already.
        set_dials(configurable)
        user_id = named_user(context, configurable)
        if user_id is None and self._dials is not None:
            user_id = Context.user_id
        if user_id is None and self.graph.store is not None and self._has_middleware:
            # Its first node would say so, with the message saved and the thread nobody's.
            raise no_user()
        keep = getattr(context, "keep_checkpoints", Context.keep_checkpoints)
        # Tools have side effects: each step is saved before the next one starts, unless the caller wants otherwise.
        durability = options.get("durability") or "sync"
        return _Run(
            self._readable(input),
            {
                **(config or {}),
                "configurable": {**configurable, "thread_id": thread_id},
                "metadata": {**merged.get("metadata", {}), **dial_metadata(keep, is_own=self._is_own)},
            },
            {**options, "context": context, "durability": durability},
            thread_id,
            None if user_id is None else namespaces.checked("user_id", user_id),
            keep,
            getattr(context, "ledger_turns", Context.ledger_turns),
        )

    def _context(self, context: Any, configurable: Mapping[str, Any]) -> Any:
        """Return the context of a run; our own graph takes its user from `configurable` when there is none."""
        if self._dials is None:
            return context
        if isinstance(context, Context):
            # The same, but for dials that the graph has fixed.
            return context if self._dials is Context else self._dials.from_mapping(vars(context))
        user = {"user_id": configurable["user_id"]} if configurable.get("user_id") else {}
        dials = {**user, **dict(context or {})}
        return self._dials.from_mapping(dials) if dials or self._dials is not Context else None

    @property
    def _dials(self) -> type[Context] | None:
        """The type of the dials of our own graph; None for another graph, whose context is its own."""
        schema: Any = self.graph.context_schema
        return schema if isinstance(schema, type) and issubclass(schema, Context) else None

    @property
    def _is_own(self) -> bool:
        """Whether it is the graph of `pipeline`, and not anybody's, whose context may have our dials too."""
        return "inject_memory" in self.graph.nodes

    @property
    def _has_middleware(self) -> bool:
        """Whether `EverthreadMiddleware` is in the agent, which brings its tools along and remembers by user."""
        found = (getattr(node.bound, "tools_by_name", {}) for node in getattr(self.graph, "nodes", {}).values())
        return any(set(OWN_TOOLS) <= set(tools) for tools in found)

    def _readable(self, input: Any) -> Any:
        """Return an input whose messages are messages with ids, which every channel can tell apart.

        Raises:
            SettingsError: a key is none of the graph's inputs, or the messages are nothing that LangChain reads as
                such; saved, they would stop every later run.
        """
        taken = self.graph.builder.schemas[self.graph.builder.input_schema]
        if not isinstance(input, dict) or "__root__" in taken:
            return input
        if unknown := input.keys() - taken.keys():
            # LangGraph would leave them out without a word.
            keys = " or ".join(f"`{name}`" for name in taken)
            raise SettingsError(f"the graph has no input {', '.join(map(repr, sorted(unknown)))}; send {keys}")
        if "messages" not in taken:
            return input
        if input.get("messages", []) == []:
            return input
        sent = input["messages"] if isinstance(input["messages"], list) else [input["messages"]]
        try:
            messages = convert_to_messages(sent)
        except (ValueError, TypeError, NotImplementedError) as error:
            raise SettingsError(
                f"`messages` cannot be read: {error}; send a text, {{'role': 'user', 'content': 'a text'}}, "
                "a message of LangChain, or a list of these"
            ) from error
        # A crashed run may have left its wish to end the session in the state.
        ends = {"end_session": False} if "end_session" in taken else {}
        return {**ends, **input, "messages": [_identified(message) for message in messages]}

    def _session_of(self, run: _Run) -> Item | None:
        """Return the session of the thread.

        Raises:
            SettingsError: it belongs to another user; nothing of theirs may enter it, and no approval either.
            UnreadableError: nobody knows whose it is.
        """
        session = self.storage.store.get(namespaces.SESSIONS, run.thread_id)
        if session is not None and "user_id" not in session.value:
            error = LookupError("it does not say whose the thread is")
            raise described(record_name(namespaces.SESSIONS, run.thread_id), error)
        owner = session.value.get("user_id") if session else None
        if owner is not None and owner != run.user_id:
            if not run.user_id:
                raise SettingsError(
                    f"thread {run.thread_id!r} belongs to a user, and this run names none; name the user by `user_id` "
                    "in the context or in `configurable`"
                )
            raise SettingsError(
                f"thread {run.thread_id!r} belongs to another user than {run.user_id!r}; use a thread of their own"
            )
        return session

    def _check_graph(self, config: RunnableConfig, snapshot: StateSnapshot) -> None:
        """Refuse to run our own graph on a thread of another one, whose state keys and approvals it would drop.

        Raises:
            SettingsError: the newest checkpoint is another graph's; nothing was changed.
        """
        if not self._is_own or snapshot.metadata is None:
            return
        if "checkpoint_id" in config["configurable"] or snapshot.metadata.get(OURS) != OWN_GRAPH:
            refuse_foreign(self.storage.checkpointer, _thread_of(config), self.graph.channels)

    def _claim(self, run: _Run, session: Item | None) -> None:
        """Make a new thread the user's, ahead of its first checkpoint."""
        if session is not None and session.value.get("user_id") == run.user_id:
            return
        at = now()
        value = session.value if session else {"agent": self.name, "began": at, "turns": 0, "consolidated_turns": 0}
        value = {"shared": None, "last_activity": at, **value, "thread_id": run.thread_id, "user_id": run.user_id}
        self.storage.store.put(namespaces.SESSIONS, run.thread_id, value, index=False)

    def _note_fork(self, config: RunnableConfig, snapshot: StateSnapshot, session: Item | None) -> None:
        """Save the last place that all branches share, when the thread goes on from an older checkpoint.

        `inject_memory` notices a fork by its new message (`shared_past`). A run that only answers an old question
        again has none, and neither has an edit.
        """
        named = config["configurable"].get("checkpoint_id")
        if not named or session is None:
            return
        latest = {name: value for name, value in config["configurable"].items() if name != "checkpoint_id"}
        newest = self.storage.checkpointer.get_tuple({"configurable": {"checkpoint_ns": "", **latest}})
        if newest is None or newest.config["configurable"].get("checkpoint_id") == named:
            return
        messages = snapshot.values.get("messages") or []
        left = self.graph.get_state({**config, "configurable": latest}).values.get("messages") or []
        self._keep_left(session.key, left, messages, session)
        here, earlier = sequence(messages[-1]) if messages else -1, session.value.get("shared")
        if earlier is None or earlier > here:
            value = {**session.value, "shared": here}
            self.storage.store.put(namespaces.SESSIONS, session.key, value, index=False)

    def _keep_left(self, thread_id: str, before: Any, after: Any, session: Item | None) -> None:
        """Keep the messages of a state that the next one does not have, for the prompts that showed them."""
        turn = int(session.value.get("turns") or 0) if session else 0
        old, new = ([one for one in messages if isinstance(one, BaseMessage)] for messages in (before, after))
        if writes := left_messages(thread_id, old, new, turn):
            self.storage.store.batch(writes)

    def _hold(self, thread_id: str) -> _RunHold:
        return _RunHold(self.storage, thread_id)

    @asynccontextmanager
    async def _ahold(self, thread_id: str) -> AsyncIterator[RunScope]:
        async with self._hold(thread_id):
            # LangGraph goes on saving after a cancellation. The lock is kept until the saves under way are done, and
            # later ones are refused. A tool that runs in a thread goes on: nothing can stop it.
            scope = RunScope()
            try:
                yield scope
            finally:
                scope.close()
                await scope.drain()

    # The state, and what a graph tells of itself.

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread; see LangGraph."""
        return self.graph.get_state(config, subgraphs=subgraphs)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread; see LangGraph."""
        return await self.graph.aget_state(config, subgraphs=subgraphs)

    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        """Return the states of a thread, newest first; see LangGraph."""
        return self.graph.get_state_history(config, **options)

    def aget_state_history(self, config: RunnableConfig, **options: Any) -> AsyncIterator[StateSnapshot]:
        """Return the states of a thread, newest first; see LangGraph."""
        return self.graph.aget_state_history(config, **options)

    def update_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(self, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        if _is_nested(config):
            return self.graph.bulk_update_state(config, updates)
        with (hold := self._hold(_thread_of(merge_configs(self.graph.config, config)))), hold:
            return self._edit(config, updates)

    async def abulk_update_state(
        self, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        if _is_nested(config):
            return await self.graph.abulk_update_state(config, updates)
        async with self._ahold(_thread_of(merge_configs(self.graph.config, config))) as scope:
            with scope.current():
                return await self.storage.worker.call(self._edit, config, updates)

    def _edit(self, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        snapshot = self.graph.get_state(config)
        self._check_graph(config, snapshot)
        if config["configurable"].get("checkpoint_id"):
            session = self.storage.store.get(namespaces.SESSIONS, _thread_of(config))
            self._note_fork(config, snapshot, session)
        metadata = {**config.get("metadata", {}), **edit_metadata(is_own=self._is_own)}
        edited = self.graph.bulk_update_state({**config, "metadata": metadata}, updates)
        thread_id = _thread_of(config)
        session = self.storage.store.get(namespaces.SESSIONS, thread_id)
        before, after = (one.values.get("messages") or [] for one in (snapshot, self.graph.get_state(edited)))
        self._keep_left(thread_id, before, after, session)
        return edited

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """Return the same guard around the graph with another config."""
        return type(self)(self.graph.with_config(config, **kwargs), self.storage)

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawable graph."""
        return self.graph.get_graph(config, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawable graph."""
        return await self.graph.aget_graph(config, xray=xray)

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """Return the graph's name."""
        return self.graph.get_name(suffix, name=name)

    @property
    def InputType(self) -> Any:  # noqa: N802 - the name is LangChain's
        """What a run takes."""
        return self.graph.InputType

    @property
    def OutputType(self) -> Any:  # noqa: N802 - the name is LangChain's
        """What a run returns."""
        return self.graph.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the input."""
        return self.graph.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the output."""
        return self.graph.get_output_schema(config)

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the input."""
        return self.graph.get_input_jsonschema(config)

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the output."""
        return self.graph.get_output_jsonschema(config)

    def config_schema(self, *, include: Sequence[str] | None = None) -> type[BaseModel]:
        """Return the schema of the config."""
        return self.graph.config_schema(include=include)


@contextmanager
def _step_limit(config: RunnableConfig) -> Iterator[None]:
    """Say in one sentence that a turn ran into `recursion_limit`, and which dial to set."""
    try:
        yield
    except StepLimitError:
        raise
    except GraphRecursionError as error:
        limit = f"{config['recursion_limit']:,} steps" if "recursion_limit" in config else "all steps that it may"
        raise _StepLimit(
            f"the turn took {limit} and was not done; it is kept: run the thread again to go on, and raise "
            "`recursion_limit` in the config if the turn needs more (each model call and each round of tools is a step)"
        ) from error


def _stopped_behind_tools(snapshot: StateSnapshot, sent: Mapping[str, Any]) -> bool:
    """Tell whether a question that is sent again has the results of its tools, all of them, and no reply to them."""
    messages = snapshot.values.get("messages") or []
    calls = next((message.tool_calls for message in reversed(messages) if isinstance(message, AIMessage)), [])
    results = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    question = question_of(messages)
    return (
        bool(messages and sent.get("messages"))
        and isinstance(messages[-1], ToolMessage)
        and all(call["id"] in results for call in calls)
        and question is not None
        and sent["messages"][-1].id == question.id
    )


def _begins(session: Item | None) -> bool:
    """Tell whether a run begins a session: all turns before it are consolidated."""
    return session is None or session.value.get("consolidated_turns", 0) >= session.value.get("turns", 0)


def _is_nested(config: RunnableConfig | None) -> bool:
    """Tell whether a call comes from a node of another graph, which owns the thread."""
    return bool(ensure_config(config).get("configurable", {}).get("checkpoint_ns"))


def _is_on(checkpointer: Any, storage: Storage) -> bool:
    """Tell whether a checkpointer is the storage's; with an allow-list of its own it is another object."""
    return isinstance(checkpointer, type(storage.checkpointer)) and checkpointer.database is storage.database


def _thread_of(config: RunnableConfig) -> str:
    thread_id = config.get("configurable", {}).get("thread_id")
    if not thread_id:
        raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
    return namespaces.checked("thread_id", str(thread_id))


def _identified(message: BaseMessage) -> BaseMessage:
    content = clean_content(message.content)
    if message.id is not None and content == message.content:
        return message
    return message.model_copy(update={"id": message.id or str(uuid4()), "content": content})


def _output(answer: _Answer, options: Mapping[str, Any]) -> Any:
    """Return an answer as `invoke` would."""
    return GraphOutput(value=answer.values) if options.get("version") == "v2" else answer.values


def _streamed(answer: _Answer, options: Mapping[str, Any]) -> Iterator[Any]:
    """Yield an answer as `stream` would yield the values of the last step."""
    modes = options.get("stream_mode")
    if options.get("version") == "v2":
        yield {"type": "values", "ns": (), "data": answer.values, "interrupts": ()}
    elif isinstance(modes, list | tuple) and "values" in modes:
        yield ((), "values", answer.values) if options.get("subgraphs") else ("values", answer.values)
    elif modes == "values":
        yield ((), answer.values) if options.get("subgraphs") else answer.values
