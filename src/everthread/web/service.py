"""What the routes do, on any storage: the same functions as the command line's, for one user's own threads."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from anyio import to_thread
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import Item
from langgraph.types import Command, StateSnapshot
from langgraph.types import Interrupt as Asked

from everthread.errors import NotFoundError, SettingsError
from everthread.graph.ending import is_open
from everthread.graph.guard import GuardedGraph
from everthread.graph.note_changes import Change, change_note, forget_note
from everthread.graph.run import dials_type, is_own
from everthread.graph.turn_parts import STREAM_MODES, Part, TurnReader
from everthread.ledger.record import now
from everthread.ledger.why import Explanation, explain_closest
from everthread.nodes.thread_view import thread_messages
from everthread.state import Context, Note, namespaces
from everthread.state.marks import is_answer, is_synthetic, sequence
from everthread.state.reducer import words_of
from everthread.state.stored import StoredMessage
from everthread.storage.adoption import pending_interrupts, state_messages
from everthread.storage.history import NoteHistory, note_history, thread_history
from everthread.storage.open import Storage
from everthread.storage.owners import claimed
from everthread.storage.reading import ThreadView, one_note, read_thread, reader_of, record_of
from everthread.storage.recall import passage_of, search_of
from everthread.storage.unreadable import readable
from everthread.web.auth import Identity
from everthread.web.problems import Problem, other_message
from everthread.web.runs import LiveRun, Runs
from everthread.web.schemas import Answers, Interrupt, NewRun, Run, RunStatus, Thread, ThreadStatus, ThreadSummary
from everthread.window.turns import question_of

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what asks the database without blocking the event loop."""
    return await to_thread.run_sync(lambda: work(*args, **kwargs))


class OwnThread:
    """A thread that is the caller's, with the graph that runs it where this server has it."""

    def __init__(
        self, storage: Storage, graph: GuardedGraph | None, record: Mapping[str, Any], identity: Identity
    ) -> None:
        self.id = str(record["thread_id"])
        self.graph_here = graph
        self.record = record
        self.user_id = identity.user_id
        self.storage = storage
        # Our own graph takes the user from its context; in `configurable` they would be in every checkpoint.
        user = {} if graph is None or is_own(graph.graph) else {"user_id": self.user_id}
        self.config: RunnableConfig = {"configurable": {"thread_id": self.id, **user}}

    @property
    def graph(self) -> GuardedGraph:
        """Return the graph that runs it.

        Raises:
            Problem: 409, this server does not have its agent.
        """
        if self.graph_here is None:
            name = str(self.record.get("agent"))
            raise Problem(
                409,
                f"the thread is one of the agent {name!r}, which this server does not have; it can be read here, and "
                "goes on where its agent runs",
            )
        return self.graph_here

    def snapshot(self) -> StateSnapshot:
        """Read its newest checkpoint."""
        return self.graph.get_state(self.config)

    def state(self) -> tuple[Sequence[BaseMessage], list[Interrupt]]:
        """Return the messages of its newest checkpoint and what it asks, also where its agent is not here."""
        if self.graph_here is not None:
            snapshot = self.snapshot()
            return snapshot.values.get("messages") or [], _interrupts(snapshot.interrupts)
        saved = self.storage.checkpointer.lenient().get_tuple(self.config)
        asked = [] if saved is None else pending_interrupts(saved)
        return self.messages(), _interrupts(asked)

    def messages(self) -> list[BaseMessage]:
        """Return the messages of its state, each with its place in the thread."""
        found = state_messages(self.storage, self.id)
        is_ours = reader_of(self.storage).is_ours(self.id)
        return found if is_ours else thread_messages(self.storage.store, self.id, found)

    def view(self, *, whole: bool = True) -> ThreadView:
        """Read it; without what left the working set unless it is to be whole."""
        return read_thread(self.storage, self.id, whole=whole)

    def why(self, query: str) -> tuple[list[Explanation], bool]:
        """Explain something, or what is most like it; as `explain_closest`."""
        return explain_closest(thread_history(reader_of(self.storage), self.view(whole=False)), query)

    def archived(self, here: Sequence[BaseMessage], start: int, end: int) -> list[Item]:
        """Return the archived messages of places from `start` to before `end`, without those of other branches.

        Args:
            here: the messages of its state, with their places.
        """
        if not here:
            return []
        space, places = namespaces.transcript(self.id), {"seq": {"$gte": start, "$lt": end}}
        # Branches have messages at the same places.
        found = self.storage.store.search(space, filter=places, limit=10 * (end - start))
        search = search_of(self.storage.store, self.id, here, self.record.get("shared"))
        return [item for item in found if search.is_of_branch(passage_of(item))]

    def page(self, before: str | None, limit: int) -> tuple[ThreadView, int]:
        """Read the last messages ahead of one, or the newest.

        Returns:
            The thread with these messages alone, and the place of the first of them.

        Raises:
            Problem: 404, there is no such message.
        """
        here, view = [one for one in self.messages() if not is_synthetic(one)], self.view(whole=False)
        end = max(map(sequence, here), default=-1) + 1
        if before is not None:
            end = self._place(view, before)
        start = max(end - limit, 0)
        archived = readable(self.archived(here, start, end), lambda one: StoredMessage.of(one.value["message"]))
        kept = [one for one in view.messages if start <= sequence(one) < end]
        page = {str(one.id): one for one in [*archived, *kept]}
        return replace(view, messages=sorted(page.values(), key=sequence)), start

    def _place(self, view: ThreadView, message_id: str) -> int:
        here = next((one for one in view.messages if one.id == message_id), None)
        if here is not None:
            return sequence(here)
        item = reader_of(self.storage).get(namespaces.transcript(self.id), message_id)
        if item is None:
            raise Problem(404, "there is no such message of yours")
        return int(item.value.get("seq", 0))

    def context(self, dials: Mapping[str, Any]) -> Context | None:
        """Return the dials of a run.

        Raises:
            SettingsError: one of them is none, or fixed, or the agent takes none.
        """
        schema = dials_type(self.graph.graph)
        if schema is not None:
            return schema.from_mapping({**dials, "user_id": self.user_id})
        if dials:
            raise SettingsError(f"`context`: the agent {self.record['agent']!r} takes no dials")
        return None


class Service:
    """One worker.

    Args:
        graphs: guarded graphs by the name of their agent; the first is that of new threads.
        most_runs: runs at a time.
    """

    def __init__(self, storage: Storage, graphs: Mapping[str, GuardedGraph], *, most_runs: int) -> None:
        self.storage = storage
        self.graphs = graphs
        self.runs = Runs(self._is_cancelled, most=most_runs)

    # Threads.

    async def record(self, identity: Identity, thread_id: str) -> Mapping[str, Any]:
        """Return the record of a thread of the caller.

        Raises:
            Problem: 404, there is none, or it is another user's.
        """
        try:
            record = await in_thread(record_of, self.storage.store, namespaces.checked("thread_id", thread_id))
        except SettingsError:
            record = None
        if record is None or record.get("user_id") != identity.user_id:
            raise Problem(404, "there is no such thread of yours")
        return record

    async def own(self, identity: Identity, thread_id: str) -> OwnThread:
        """Return a thread of the caller, with the graph that runs it where this server has it.

        Raises:
            Problem: 404, there is none, or it is another user's.
        """
        record = await self.record(identity, thread_id)
        return OwnThread(self.storage, self.graphs.get(str(record.get("agent"))), record, identity)

    async def create(self, identity: Identity, agent: str | None) -> ThreadSummary:
        """Create a thread with an id that nobody can guess."""
        name = agent or next(iter(self.graphs))
        if name not in self.graphs:
            raise Problem(422, f"`agent`: there is no {name!r} here; choose one of {', '.join(self.graphs)}")
        thread_id = f"t-{uuid4().hex}"
        record = claimed({}, name, thread_id, identity.user_id)
        await self.storage.store.aput(namespaces.SESSIONS, thread_id, record, index=False)
        return ThreadSummary(**summary_of(record), status="idle")

    async def thread(self, own: OwnThread) -> Thread:
        """Return a thread and its state."""
        messages, interrupts = await in_thread(own.state)
        question = question_of(messages)
        statuses = await in_thread(self.statuses, [own.id])
        return Thread(
            **summary_of(own.record),
            status=statuses[own.id],
            run_id=None if question is None else str(question.id),
            interrupts=interrupts,
        )

    def statuses(self, thread_ids: Sequence[str]) -> dict[str, ThreadStatus]:
        """Return what each of some threads does."""
        held, reader = self.storage.locks.holders(thread_ids), reader_of(self.storage)
        return {one: "running" if one in held or self.runs.is_live(one) else reader.turn(one) for one in thread_ids}

    async def is_busy(self, thread_id: str) -> bool:
        """Tell whether a run holds a thread, here or elsewhere."""
        # Not by taking the lock: of two who try, one would take the other one for a run.
        return self.runs.is_live(thread_id) or bool(await in_thread(self.storage.locks.holders, [thread_id]))

    def _own_note(self, identity: Identity, note_id: str) -> tuple[Note, str | None]:
        """Return the note, and the thread of a session note."""
        try:
            note, thread_id = one_note(self.storage.store, identity.user_id, note_id)
        except (NotFoundError, SettingsError):
            note, thread_id = None, None
        if note is None or note.id != note_id:
            raise Problem(404, "there is no such note of yours")
        return note, thread_id

    def note_history(self, identity: Identity, note_id: str) -> NoteHistory:
        """Return where the caller's note of exactly this id comes from, and what became of it.

        Raises:
            Problem: 404.
        """
        return note_history(reader_of(self.storage), identity.user_id, *self._own_note(identity, note_id))

    def change_note(self, identity: Identity, note_id: str, action: str, text: str) -> Change:
        """Edit, confirm, retract or forget the caller's note of exactly this id.

        Raises:
            Problem: 404.
        """
        note, _ = self._own_note(identity, note_id)
        if action == "forget":
            return forget_note(self.storage, identity.user_id, note.id)
        return change_note(self.storage, identity.user_id, action, note.id, text)

    # Runs.

    async def start(self, own: OwnThread, body: NewRun) -> LiveRun:
        """Begin to answer a message."""
        context = own.context(body.context)
        run_id = body.message_id or str(uuid4())
        if body.message_id is not None and self.runs.find(own.id, run_id) is None:
            await in_thread(_check_same, own, run_id, body.message)
        message = {"role": "user", "content": body.message, "id": run_id}
        return self._begin(own, run_id, {"messages": [message]}, context, body.message, None)

    async def resume(self, own: OwnThread, body: Answers) -> LiveRun:
        """Go on with a turn that waits for answers or was cut off."""
        context = own.context(body.context)
        snapshot = await in_thread(own.snapshot)
        question = question_of(snapshot.values.get("messages") or [])
        # Behind the reading: of two answers at once, the second would be taken for the first one sent again.
        if (live := self.runs.on_thread(own.id)) is not None:
            if live.answers == body.answers:
                return live
            raise Problem(409, "a run goes on; follow it, or try again when it is over", Retry_After="1")
        if question is None or not is_open(snapshot):
            raise Problem(409, "nothing waits: every message has its answer")
        asked = [one.id for one in snapshot.interrupts]
        if unknown := [name for name in body.answers if name not in asked]:
            raise Problem(409, f"nothing with the id {unknown[0]!r} waits for an answer; it may have one already")
        if asked and not body.answers:
            raise Problem(422, f"`answers`: the run waits for {', '.join(asked)}")
        command: Command[Any] | None = Command(resume=body.answers) if body.answers else None
        return self._begin(own, str(question.id), command, context, question.content, body.answers)

    def _begin(
        self, own: OwnThread, run_id: str, payload: Any, context: Context | None, message: Any, answers: Any
    ) -> LiveRun:
        async def parts() -> AsyncIterator[Part]:
            reader = TurnReader()
            # A task is told of when it begins: the thread is locked by then, and the input saved.
            modes = [*STREAM_MODES, "tasks"]
            stream: Any = own.graph.astream(payload, own.config, context=context, stream_mode=modes)
            async with aclosing(stream):
                async for mode, part in stream:
                    live.take()
                    for one in reader.read(mode, part):
                        yield one

        live = LiveRun(run_id, own.id, words_of(message), answers)
        return self.runs.begin(live, parts, lambda: in_thread(_run, own, run_id, False))

    async def run(self, own: OwnThread, run_id: str) -> Run:
        """Read what became of a run, whichever worker it was on."""
        return await in_thread(_run, own, run_id, await self.is_busy(own.id))

    async def cancel(self, own: OwnThread, run_id: str) -> tuple[Run, bool]:
        """Cancel a run, here or on another worker.

        Returns:
            The run, and whether it is over: another worker looks every second.
        """
        if (live := self.runs.find(own.id, run_id)) is not None:
            live.cancel()
            await live.over()
            return await self.run(own, run_id), True
        run = await self.run(own, run_id)
        if run.status != "running":
            return run, True
        await self.storage.store.aput(_cancels(own.id), run_id, {"at": now()}, index=False)
        return run, False

    async def _is_cancelled(self, live: LiveRun) -> bool:
        asked = await self.storage.store.aget(_cancels(live.thread_id), live.run_id)
        if asked is None:
            return False
        await self.storage.store.adelete(_cancels(live.thread_id), live.run_id)
        # One that was asked for before this run began was for another worker, which died.
        return str(asked.value.get("at", "")) >= live.began


def summary_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `ThreadSummary`."""
    turns = int(record.get("turns", 0))
    return {
        "id": record["thread_id"],
        "agent": str(record.get("agent", "")),
        "turns": turns,
        "first_message": str(record.get("first_message", "")),
        "began": str(record.get("began", "")),
        "last_activity": str(record.get("last_activity", "")),
        "session": "ended" if turns and int(record.get("consolidated_turns", 0)) >= turns else "open",
    }


def _is_question(message: Any) -> bool:
    return bool(message.type == "human") and not is_synthetic(message)


def _interrupts(asked: Iterable[Asked]) -> list[Interrupt]:
    return [Interrupt(id=one.id, value=one.value) for one in asked]


def _turn(messages: Sequence[Any], run_id: str) -> Sequence[Any] | None:
    """Return the messages of a turn, from its question on; None when the question is not among them.

    Questions that were sent together have one answer, behind the last of them.
    """
    index = next((place for place, one in enumerate(messages) if one.id == run_id and _is_question(one)), None)
    if index is None:
        return None
    end = index + 1
    while end < len(messages) and _is_question(messages[end]):
        end += 1
    while end < len(messages) and not _is_question(messages[end]):
        end += 1
    return messages[index:end]


def _run(own: OwnThread, run_id: str, is_busy: bool) -> Run:
    """Read what became of a run from its thread.

    Raises:
        Problem: 404, the thread has no such message.
    """
    messages, interrupts = own.state()
    turn = _turn(messages, run_id)
    if turn is None or not (is_answer(turn[-1]) or turn[-1] is messages[-1]):
        # The question may stand alone here, as the task's anchor.
        turn = _turn(own.view().messages, run_id)
    if not turn:
        raise Problem(404, "there is no such run of yours")
    reply = next((one for one in reversed(turn) if is_answer(one)), None)
    newest = question_of(messages)
    is_last = newest is not None and any(one.id == newest.id for one in turn)
    status: RunStatus = "done" if reply is not None else "unfinished"
    if is_last and interrupts:
        status = "interrupted"
    if is_last and is_busy and reply is None:
        status = "running"
    return Run(
        id=run_id,
        thread_id=own.id,
        status=status,
        reply=None if reply is None else str(reply.text),
        reply_id=None if reply is None else str(reply.id),
        interrupts=interrupts if status == "interrupted" else [],
    )


def _check_same(own: OwnThread, run_id: str, content: str | list[dict[str, Any]]) -> None:
    """Refuse the id of another message that has its answer.

    Raises:
        Problem: 409.
    """
    turn = _turn(own.snapshot().values.get("messages") or [], run_id) or _turn(own.view().messages, run_id)
    if turn and is_answer(turn[-1]) and words_of(content) != words_of(turn[0].content):
        raise other_message()


def _cancels(thread_id: str) -> namespaces.Namespace:
    """Namespace of the runs that another worker was asked to cancel."""
    return namespaces.thread(thread_id, "cancels")
