"""The protocol of a guarded run: what happens to the thread before, between and after the runs of the graph."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import EmptyInputError
from langgraph.graph import END, START, add_messages
from langgraph.store.base import Item, PutOp
from langgraph.types import Command, Overwrite, StateSnapshot, StateUpdate

from everthread.errors import AnsweredError, SettingsError
from everthread.graph.inputs import (
    AnyGraph,
    answers_at_once,
    can_take_saved,
    check_values,
    has_messages,
    with_known_marks,
)
from everthread.graph.resend import arrival, for_add_messages
from everthread.graph.rest import ThreadsAtRest
from everthread.graph.routing import AFTER_REPLY
from everthread.graph.run import KnownAnswer, Run, RunInput, Steps, has_middleware, is_own, latest_of, thread_of
from everthread.graph.schema_changes import StateSchema
from everthread.ledger.events import FallbackUsed
from everthread.ledger.record import record
from everthread.nodes.call_ahead import node_alone
from everthread.nodes.inject_memory import turns_recorded
from everthread.nodes.thread_view import thread_messages
from everthread.state import namespaces
from everthread.state.marks import is_answer, sequence
from everthread.state.reducer import REMOVE_ALL
from everthread.storage.adoption import pending_interrupts, refuse_foreign
from everthread.storage.kept_checkpoints import OURS, OWN_GRAPH
from everthread.storage.left_messages import left_messages, removed_links_operations
from everthread.storage.open import Storage
from everthread.storage.owners import check_kept_by_us, check_owner, claimed
from everthread.storage.pruning import Pruner, edit_metadata
from everthread.storage.reading import turns_of
from everthread.storage.said import reworded_operations, said_operations
from everthread.window.turns import question_of

logger = logging.getLogger(__name__)


class _NothingToGoOn(SettingsError, EmptyInputError):
    """For those who catch LangGraph's error too."""


def _is_by_id(answers: Mapping[str, Any]) -> bool:
    """Tell whether LangGraph takes the keys of an answer for ids of interrupts, as it does when all have their form."""
    return bool(answers) and all(re.fullmatch("[0-9a-f]{32}", str(name)) for name in answers)


class RunSteps:
    """The protocol, the same under `invoke` and `ainvoke`.

    All of it is synchronous; the async methods of the guard let the storage's worker thread take one step after the
    other.
    """

    def __init__(self, graph: AnyGraph, storage: Storage) -> None:
        self.graph, self.storage = graph, storage
        self._is_own = is_own(graph)
        self._remembers = self._is_own or has_middleware(graph)
        self._pruner = Pruner(storage)
        self._schema = StateSchema(graph) if self._is_own else None
        self._marks = self._schema.metadata if self._schema else {}
        self._at_rest = ThreadsAtRest(graph, storage.checkpointer)
        self._replaces_in_place = getattr(graph.channels.get("messages"), "operator", None) is add_messages

    def steps(self, run: Run) -> Steps:
        """Claim the thread, yield what the caller has to run one by one, and prune at the end.

        The caller runs each step before it asks for the next one.
        """
        run = replace(run, config={**run.config, "metadata": {**run.config["metadata"], **self._marks}})
        session = self.storage.store.get(namespaces.SESSIONS, run.thread_id)
        check_owner(session.value if session else None, run.thread_id, run.user_id)
        if self._remembers:
            check_kept_by_us(session.value if session else {}, run.thread_id)
        if session is not None and self._at_rest.includes(run):
            self._claim(run, session)
            first = self._first_input(run, with_known_marks(run.input, {}), run.config)
            steps: Steps = iter([first])
        else:
            steps = self._steps_by_state(run, session)
        step = None
        for step in steps:
            yield step
        self._pruner.after_run(run.thread_id, run.keep_checkpoints, run.ledger_turns)
        self._at_rest.note(run, step)

    def edit(self, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Edit the state, and keep the messages that leave it for the prompts that showed them."""
        snapshot, thread_id = self._migrated_state(config), thread_of(config)
        session = self.storage.store.get(namespaces.SESSIONS, thread_id)
        if config["configurable"].get("checkpoint_id"):
            self._note_fork(config, snapshot, session)
        metadata = {**config.get("metadata", {}), **edit_metadata(is_own=self._is_own), **self._marks}
        edited = self.graph.bulk_update_state({**config, "metadata": metadata}, updates)
        before, after = map(self._messages, (snapshot, self.graph.get_state(edited)))
        self._note_edit(thread_id, session.value.get("user_id") if session else None, before, after)
        return edited

    def _steps_by_state(self, run: Run, session: Item | None) -> Steps:
        """Read the state, claim the thread, and yield the steps that the input and the state ask for."""
        snapshot = self._migrated_state(run.config)
        self._check_answer(run, snapshot)
        if session is None and snapshot.metadata is None and self._is_nothing_to_do(run):
            yield KnownAnswer(self._output_of({"messages": []}, run))
            return
        run = replace(run, input=with_known_marks(run.input, snapshot.values))
        # The last run died when its input was checkpointed but no node had consumed it.
        is_behind_saved_input = run.is_new and START in snapshot.next
        if not is_behind_saved_input:
            check_values(self.graph, run.input, snapshot.values)
        self._claim(run, session)
        self._note_fork(run.config, snapshot, session)
        config = run.config
        is_without_checkpoints = self._is_own and run.is_new and snapshot.metadata is None
        known: Mapping[str, Any] = session.value if session else {}
        if is_without_checkpoints and (turns := turns_recorded(known, run.input.get("messages") or [])):
            # An app has deleted the checkpoints. Without its turns, a run would count as a fork from the beginning.
            self.graph.update_state(config, {"turns": turns}, as_node="consolidate")
            self.graph.update_state(config, None, as_node=END)
            snapshot = self.graph.get_state(config)
        if not can_take_saved(self.graph, snapshot):
            self._drop_input(config)
            config = run.latest
            snapshot = self.graph.get_state(config)
        elif is_behind_saved_input:
            # The new input would take its place. This puts it into the state; no node runs.
            for _ in self.graph.stream(None, config, **{**run.options, "interrupt_before": "*"}):
                pass
            config = run.latest
            snapshot = self.graph.get_state(config)
        if is_behind_saved_input:
            # Only now is the saved input in the state that the new one is added to.
            check_values(self.graph, run.input, snapshot.values)
        if run.is_new and self._died_after_reply(snapshot) and "checkpoint_id" not in config["configurable"]:
            # The last run died behind its reply: notes of the turn and the summary are still to be made.
            yield RunInput.of(None, config, is_silent=True)
            snapshot = self.graph.get_state(config)
        for index, step in enumerate(self._carry_out(run, config, snapshot)):
            if index and isinstance(step, RunInput) and self.graph.get_state(run.latest).tasks:
                # The turn is not over, as a rule because it waits for an approval.
                break
            yield step

    def _migrated_state(self, config: RunnableConfig) -> StateSnapshot:
        """Bring the state that a run or an edit goes on from to the keys that this graph has, and return it.

        Raises:
            SettingsError: it is another graph's or a newer agent's, a migration failed, or the config names a
                checkpoint that the thread does not have; nothing was changed.
        """
        snapshot = self.graph.get_state(config)
        if (named := config["configurable"].get("checkpoint_id")) and snapshot.metadata is None:
            # LangGraph would go on from an empty state, and the next run from there.
            raise SettingsError(
                f"thread {thread_of(config)!r} has no checkpoint {named!r}: it is another thread's, or was pruned "
                "(`keep_checkpoints`); `get_state_history` lists those that are left"
            )
        if self._schema is None or snapshot.metadata is None:
            return snapshot
        if "checkpoint_id" in config["configurable"] or snapshot.metadata.get(OURS) != OWN_GRAPH:
            # Our own graph would drop the state keys and approvals of another one.
            refuse_foreign(self.storage.checkpointer, thread_of(config), self.graph.channels)
        is_changed = self._schema.apply(self.storage, config, snapshot.metadata)
        return self.graph.get_state(config) if is_changed else snapshot

    def _check_answer(self, run: Run, snapshot: StateSnapshot) -> None:
        """Refuse an answer that no step waits for, which LangGraph would drop without a word, or one to several steps.

        Raises:
            AnsweredError: nothing waits for it; nothing was changed.
            SettingsError: several steps wait, or one that the graph no longer has; nothing was changed.
        """
        if not isinstance(run.input, Command) or run.input.resume is None:
            return
        if snapshot.tasks:
            # At a checkpoint that the config names, those that were answered since are among them.
            waiting = [] if run.config["configurable"].get("checkpoint_id") else [one.id for one in snapshot.interrupts]
            answers = run.input.resume if isinstance(run.input.resume, dict) else {}
            is_for_waiting = any(name in answers for name in waiting)
            if waiting and not is_for_waiting and _is_by_id(answers):
                raise AnsweredError(
                    f"nothing waits for this answer in thread {run.thread_id!r}, and it may have one already: "
                    "`get_state(…).interrupts` has what it waits for"
                )
            if len(waiting) > 1 and not is_for_waiting:
                raise SettingsError(
                    f"{len(waiting):,} steps of thread {run.thread_id!r} wait for an answer each: answer by id, "
                    "Command(resume={interrupt.id: answer, …}), with the ids of `get_state(…).interrupts`"
                )
            return
        saved = self.storage.checkpointer.lenient().get_tuple(run.config)
        if saved is not None and pending_interrupts(saved):
            raise SettingsError(
                f"thread {run.thread_id!r} waits for an answer in a step that this graph no longer has; it was left as "
                "it is: answer it with the version that asked, or send a message, which gives the question up"
            )
        if saved is not None and not run.input.goto:
            raise AnsweredError(
                f"nothing waits for an answer in thread {run.thread_id!r}: its last turn is over; send a message"
            )

    def _is_nothing_to_do(self, run: Run) -> bool:
        """Tell whether a run of a thread that nobody has used only ends its session, of which there is none.

        Raises:
            SettingsError: the run brings nothing to begin the thread with; nothing was saved.
        """
        begins = run.input
        if isinstance(begins, Command) and self._is_own:
            begins = begins.update
        if begins is None:
            raise _NothingToGoOn(f"thread {run.thread_id!r} has no turn to go on with: begin it with an input")
        if not isinstance(begins, dict) or not self._is_own or not answers_at_once(self.graph):
            return False
        if not begins.get("messages") and not begins.get("end_session"):
            raise SettingsError(f"thread {run.thread_id!r} has nothing to answer: begin it with a message of the user")
        return not begins.get("messages")

    def _claim(self, run: Run, session: Item | None) -> None:
        """Make a new thread the user's, ahead of its first checkpoint, and have its session end when it stays idle."""
        known: Mapping[str, Any] = session.value if session else {}
        if session is None or known.get("user_id") != run.user_id:
            value = claimed(known, self.graph.name, run.thread_id, run.user_id)
            self.storage.store.put(namespaces.SESSIONS, run.thread_id, value, index=False)
        # A session begins when all turns before it are consolidated.
        if self.storage.timers is not None and known.get("consolidated_turns", 0) >= known.get("turns", 0):
            self.storage.timers.arm(run.thread_id)

    def _note_fork(self, config: RunnableConfig, snapshot: StateSnapshot, session: Item | None) -> None:
        """Save the last place that all branches share, when the thread goes on from an older checkpoint.

        `inject_memory` notices a fork by its new message (`shared_past`). A run that only answers an old question
        again has none, and neither has an edit.
        """
        named = config["configurable"].get("checkpoint_id")
        if not named or session is None:
            return
        latest = latest_of(config)
        newest = self.storage.checkpointer.get_tuple({"configurable": {"checkpoint_ns": "", **latest["configurable"]}})
        if newest is None or newest.config["configurable"].get("checkpoint_id") == named:
            return
        messages, left = map(self._messages, (snapshot, self.graph.get_state(latest)))
        self._keep_left(session.key, left, messages)
        self.storage.store.batch(self._back_operations(session, left, messages))
        here, earlier = sequence(messages[-1]) if messages else -1, session.value.get("shared")
        if earlier is None or earlier > here:
            value = {**session.value, "shared": here}
            self.storage.store.put(namespaces.SESSIONS, session.key, value, index=False)

    def _back_operations(
        self, session: Item, left: Sequence[BaseMessage], messages: Sequence[BaseMessage]
    ) -> list[PutOp]:
        """Prepare the writes after which other threads find what an edit on the branch that is left took from them."""
        there = {(one.id, str(one.text)) for one in left}
        gone = {one.id for one in messages if (one.id, str(one.text)) not in there}
        if not gone or not self._remembers:
            return []
        placed = messages if self._is_own else thread_messages(self.storage.store, session.key, messages)
        back = [one for one in placed if one.id in gone]
        return said_operations(session.key, session.value.get("user_id", ""), back)

    def _drop_input(self, config: RunnableConfig) -> None:
        """Give up an input that was saved and that the graph cannot take; it would stop every run of its thread."""
        thread_id = thread_of(config)
        logger.warning("left out: the input that thread %r was left with is none that its graph can take", thread_id)
        self.graph.update_state(config, None, as_node=END)
        reason = "the saved input is none that the graph can take"
        event = FallbackUsed(step="input", reason=reason, used="the thread without it")
        record(self.storage.store, thread_id, [event], turn=turns_of(self.storage.store, thread_id))

    def _died_after_reply(self, snapshot: StateSnapshot) -> bool:
        """Tell whether the last turn of our own graph was cut off after its reply.

        What other nodes do behind a reply may wait for somebody, so only our own are sure to go on.
        """
        messages = snapshot.values.get("messages") or []
        tasks = {task.name for task in snapshot.tasks}
        if not self._is_own or not messages or not tasks:
            return False
        return tasks <= AFTER_REPLY and is_answer(messages[-1])

    def _carry_out(self, run: Run, config: RunnableConfig, snapshot: StateSnapshot) -> Steps:
        """Do what the input means by `resend.arrival`: write what that asks for, and yield the steps that are left.

        It edits the state too, to save the results of a turn that is given up. An input without messages is the only
        step, as it is.
        """
        if not run.is_new or not isinstance(run.input, dict) or not has_messages(self.graph):
            yield self._first_input(run, run.input, config)
            return
        store = self.storage.store
        if self._is_own and snapshot.interrupts and _only_ends_session(run.input):
            # A run of the graph would give the question up; its node alone leaves the thread as it is.
            alone = node_alone(self.graph.builder, "consolidate", store)
            # Reduced once more, messages would get other places.
            state = {**snapshot.values, "messages": Overwrite(self._messages(snapshot))}
            yield RunInput(state, run.config, is_silent=True, beside=alone)
            yield KnownAnswer(self._output_of(snapshot.values, run))
            return
        if self._is_own and not snapshot.tasks and _stopped_behind_tools(snapshot, run.input):
            # Ctrl-C between two steps, with durability `exit`: LangGraph saved the results and not what comes next.
            self.graph.update_state(config, None, as_node="tools")
            config = run.latest
            snapshot = self.graph.get_state(config)
        # By `tasks` and not by `next`, which leaves out a task whose writes are saved and in no checkpoint yet.
        values, is_cut_off = self._with_places(snapshot, run), bool(snapshot.tasks)
        decision = arrival(run.input, values, store, run.thread_id, is_cut_off=is_cut_off)
        if decision.continues and self._may_wait(run, snapshot):
            # A message that is sent again is nobody's leave to pass a breakpoint.
            yield KnownAnswer(self._output_of(snapshot.values, run))
            return
        if decision.writes:
            store.batch(list(decision.writes))
        if decision.answer:
            values = {**snapshot.values, "messages": list(decision.answer)}
            if "structured_response" in values and decision.answer[-1].id != snapshot.values["messages"][-1].id:
                # That is the answer of a later turn.
                values["structured_response"] = None
            yield KnownAnswer(self._output_of(values, run))
        elif is_cut_off and not decision.continues and "checkpoint_id" not in config["configurable"]:
            # The last turn does not go on. This ends it and saves the results of its finished tasks, such as the tools
            # beside a pending approval; a new input alone would drop them.
            self.graph.update_state(config, None, as_node=END)
        for index, graph_input in enumerate(decision.inputs):
            if isinstance(graph_input, dict) and (sent := graph_input.get("messages")):
                # What is sent may take the place of what the state has, such as an edited question.
                ids, here = {message.id for message in sent}, self._messages(snapshot)
                replaced = here if REMOVE_ALL in ids else [message for message in here if message.id in ids]
                if replaced:
                    stays = [message for message in sent if message.type != "remove"]
                    self._note_edit(run.thread_id, run.user_id, replaced, stays)
            start = run.latest if index or decision.answer else config
            if decision.is_moved and not index and self._replaces_in_place:
                messages = self.graph.get_state(start).values["messages"]
                graph_input = {**graph_input, "messages": for_add_messages(messages, graph_input["messages"])}
            yield RunInput.of(graph_input, start) if index else self._first_input(run, graph_input, start)

    def _with_places(self, snapshot: StateSnapshot, run: Run) -> Mapping[str, Any]:
        """Return the state with the places of its messages, which only our own graph and reducer write into it."""
        messages = snapshot.values.get("messages")
        if not messages or self._is_own:
            return snapshot.values
        store, sent = self.storage.store, run.input.get("messages")
        if sent and not snapshot.tasks:
            name = str(sent[-1].id)
            is_here = any(message.id == name for message in messages)
            if not is_here and store.get(namespaces.transcript(run.thread_id), name) is None:
                # A new question behind a finished turn: no place is asked for.
                return snapshot.values
        return {**snapshot.values, "messages": thread_messages(store, run.thread_id, messages)}

    def _may_wait(self, run: Run, snapshot: StateSnapshot) -> bool:
        """Tell whether a turn may have stopped at a breakpoint, of the graph or of this run."""
        of_run = [run.options.get(name) or () for name in ("interrupt_before", "interrupt_after")]
        before, after = zip(of_run, (self.graph.interrupt_before_nodes, self.graph.interrupt_after_nodes), strict=True)
        if "*" in before or any(not set(nodes).isdisjoint(snapshot.next) for nodes in before):
            return True
        # Behind which node it stands, a state does not say; that the next one failed, it does.
        return any(after) and not any(task.error for task in snapshot.tasks)

    def _output_of(self, values: Mapping[str, Any], run: Run) -> Any:
        """Return what a run would return of a state: the keys that it asks for, or one key's value."""
        names = run.options.get("output_keys")
        names = self.graph.output_channels if names is None else names
        return values.get(names) if isinstance(names, str) else {name: values[name] for name in names if name in values}

    def _first_input(self, run: Run, graph_input: Any, config: RunnableConfig) -> RunInput:
        """Give the first run of the graph the `run_id` that the caller names; each other one has its own.

        It is in the metadata of checkpoints. LangGraph takes a run with the one of the checkpoint that it begins at for
        a continuation, and drops its input; such a run has its own, too.
        """
        run_id = run.run_id
        if run_id is not None and run.is_new and graph_input is not None:
            before = self.graph.get_state(config).metadata or {}
            run_id = None if before.get("run_id") == run_id else run_id
        return RunInput.of(graph_input, config, run_id)

    def _messages(self, snapshot: StateSnapshot) -> list[BaseMessage]:
        """Return the messages of a state; none where the graph calls other things so."""
        messages = (snapshot.values.get("messages") or []) if has_messages(self.graph) else []
        return [one for one in messages if isinstance(one, BaseMessage)]

    def _note_edit(self, thread_id: str, user_id: str | None, before: Any, after: Any) -> None:
        """Keep the messages that an edit changes or removes, and have other threads find them as they read now."""
        self._keep_left(thread_id, before, after)
        writes = removed_links_operations(thread_id, before, after)
        if user_id:
            writes += reworded_operations(self.storage.store, thread_id, user_id, before, after)
        self.storage.store.batch(writes)

    def _keep_left(self, thread_id: str, before: Any, after: Any) -> None:
        """Keep the messages of a state that the next one does not have, for the prompts that showed them."""
        old, new = ([one for one in messages if isinstance(one, BaseMessage)] for messages in (before, after))
        if writes := left_messages(thread_id, old, new, turns_of(self.storage.store, thread_id)):
            self.storage.store.batch(writes)


def _only_ends_session(sent: Mapping[str, Any]) -> bool:
    """Tell whether an input brings nothing but the wish to end the session."""
    return bool(sent.get("end_session")) and not any(value for name, value in sent.items() if name != "end_session")


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
