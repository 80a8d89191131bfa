"""Decide what a run does when its message may have been sent before: clients send one until they have its answer.

Here a message is known by its id: one that has its answer is answered from the record, a turn that was cut off goes on,
and a question that was left without an answer, since somebody talked on, is asked anew at the end of the thread, with
all that its turn had done. The same words under another id are another message, and so are other words under a known
id, unless they edit the last question while it has no answer.

The exception is made by the reducer of the channel (`state.reducer`), also where there is no guard: while the last
question has no answer, its words sent once more without an id of the client's own (`graph.run` gives such a message a
random one) are that question again, and the same turn.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage, messages_from_dict
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp

from everthread.ledger.record import now
from everthread.nodes.tools import result_id
from everthread.state import Context, namespaces
from everthread.state.marks import is_answer, is_masked, is_recalled, marked, marked_only, marks, sequence
from everthread.state.messages import reduce_messages
from everthread.state.reducer import words_of
from everthread.storage.transcript import transcript
from everthread.window.masking import mask
from everthread.window.tokens import TokenCounter
from everthread.window.turns import opens_turn, question_of

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Arrival:
    """What a run does with its input, decided before anything runs."""

    inputs: tuple[Any, ...] = ()
    """Inputs of the graph, each a run of its own, in order; None continues the turn that was cut off."""
    answer: tuple[BaseMessage, ...] = ()
    """The messages up to the answer that exists already; the question is not asked again."""
    writes: tuple[PutOp, ...] = ()
    """Writes to the store that come first."""
    is_moved: bool = False
    """The first input removes the turn of an old question and writes it again, at the end of the thread."""

    @property
    def continues(self) -> bool:
        """Whether the turn that was cut off goes on."""
        return self.inputs[:1] == (None,)


def unanswered(thread_id: str) -> namespaces.Namespace:
    """Namespace of the questions whose turn was left without an answer, by message id."""
    return namespaces.thread(thread_id, "unanswered")


def arrival(
    run_input: dict[str, Any], values: Mapping[str, Any], store: BaseStore, thread_id: str, *, is_cut_off: bool
) -> Arrival:
    """Tell what to do with an input.

    Args:
        run_input: its `messages`, if any, are messages with ids; the last one is the question.
        is_cut_off: the last turn has a task without a checkpoint: it died, it failed, or it waits for an approval.
    """
    working_set: list[BaseMessage] = list(values.get("messages") or [])
    sent: list[BaseMessage] = list(run_input.get("messages") or [])
    if sent and opens_turn(sent[-1]):
        question = _Question(run_input, values, store, thread_id, is_cut_off=is_cut_off)
        if (another := question.another()) is not None:
            return arrival(another, values, store, thread_id, is_cut_off=is_cut_off)
        return question.answered() or question.open()
    if not is_cut_off:
        return Arrival((run_input,))
    ends_session = bool(run_input.get("end_session"))
    return Arrival((run_input,), writes=_leave_unanswered(working_set, sent, thread_id, ends_session=ends_session))


def for_add_messages(messages: Sequence[BaseMessage], writes: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return writes that move a turn to the end (`Arrival.is_moved`) for a channel with LangGraph's `add_messages`.

    That leaves a message in its place which one write removes and adds, so this writes all messages anew.

    Args:
        messages: of the state, oldest first; each one is written as it is.
        writes: as `arrival` returns them.
    """
    here = {message.id: message for message in messages}
    removed = {message.id for message in writes if isinstance(message, RemoveMessage)}
    added = [one for one in writes if not isinstance(one, RemoveMessage) and (one.id in removed or one.id not in here)]
    stays = [message for message in messages if message.id not in removed]
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *stays, *(here.get(message.id, message) for message in added)]


class _Question:
    """The question of an input, and what its thread knows of a message with its id."""

    def __init__(
        self,
        run_input: dict[str, Any],
        values: Mapping[str, Any],
        store: BaseStore,
        thread_id: str,
        *,
        is_cut_off: bool,
    ) -> None:
        self.run_input, self.values, self.store, self.thread_id = run_input, values, store, thread_id
        self.is_cut_off = is_cut_off
        self.working_set: list[BaseMessage] = list(values.get("messages") or [])
        self.sent: list[BaseMessage] = list(run_input["messages"])
        self.message = self.sent[-1]
        self.session_end: tuple[dict[str, Any], ...] = ({"end_session": True},) if run_input.get("end_session") else ()
        """The further input that ends the session, if the input asks for that."""
        places = (index for index, message in enumerate(self.working_set) if message.id == self.message.id)
        self.index = next(places, None)
        self.here = None if self.index is None else self.working_set[self.index]
        """As the working set has it, perhaps in other words; None when it is not there."""
        self.is_edited = self.here is not None and words_of(self.here.content) != words_of(self.message.content)
        pending = _pending(self.working_set)
        self.is_pending = pending is not None and pending.id == self.message.id
        """It is the question of the last turn, which has no answer."""
        spaces, name = (namespaces.transcript(thread_id), unanswered(thread_id)), str(self.message.id)
        items = store.batch([GetOp(space, name) for space in spaces])
        self.archived, self.left = (item.value if isinstance(item, Item) else None for item in items)
        """Its records in the transcript, and among the questions without an answer; None without one."""
        self.seq: int | None = None
        if self.here is not None:
            self.seq = sequence(self.here)
        elif self.archived is not None:
            self.seq = int(self.archived["seq"])
        self.was_left = self.left is not None and self.seq is not None and self.left.get("seq") == self.seq
        """It was left without an answer, at the place where the thread has it now."""

    def another(self) -> dict[str, Any] | None:
        """Return the input under an id of its own, when it is not the message that the thread knows by its id."""
        if self.seq is None:
            return None
        new: list[BaseMessage] = []
        if self.here is not None:
            if not self.is_edited or self.is_pending:
                # Only the question that waits for its answer may be edited.
                return None
            known = {message.id for message in self.working_set}
            new = [message for message in self.sent[:-1] if message.id not in known]
        elif self.archived is not None:
            places = {sequence(message) for message in self.working_set}
            is_on_this_branch = self.seq not in places and self.seq <= max(places, default=-1)
            if is_on_this_branch and words_of(_message(self.archived).content) == words_of(self.message.content):
                return None
        return {**self.run_input, "messages": [*new, _renamed(self.message, self.seq)]}

    def answered(self) -> Arrival | None:
        """Tell what to do with a question that has its answer; None when it has none."""
        if self.index is None:
            if self.archived is None or self.was_left:
                return None
            return Arrival(answer=self._archived_answer(), inputs=self.session_end)
        if self.is_edited:
            return None
        end = _end_of_turn(self.working_set, self.index)
        if any(map(is_answer, self.working_set[self.index : end])):
            if self.is_cut_off and end == len(self.working_set):
                # What comes after the reply, such as its notes, is still to be done.
                return self._continued()
            return Arrival(answer=tuple(self.working_set[:end]), inputs=self.session_end)
        is_over = end < len(self.working_set) or not self.is_cut_off
        if is_over and not self.was_left:
            # The task anchor stays when the rest of its turn leaves; of questions that were sent together, the last
            # one has the answer; and the results of tools may be the reply.
            answer = self._archived_answer()
            if isinstance(answer[-1], ToolMessage) or is_answer(answer[-1]):
                return Arrival(answer=answer, inputs=self.session_end)
        return None

    def open(self) -> Arrival:
        """Tell what to do with a question without an answer: new, of the last turn, or left for another one."""
        moved, closing = self._moved_to_end() if self.was_left else (None, ())
        overflowed = self.values.get("overflows")
        if self.is_cut_off and moved is None and not overflowed and _can_continue(self.working_set, self.sent):
            return self._continued()
        if self.is_pending:
            # The last turn begins again, as a rule because it got no reply.
            forgets = PutOp(unanswered(self.thread_id), str(self.message.id), None)
            inputs = (_asking(self.run_input, self.sent), *self.session_end)
            return Arrival(inputs, writes=(forgets,) if self.left else ())
        leaves: tuple[PutOp, ...] = ()
        if self.is_cut_off:
            sent = moved or self.sent
            leaves = _leave_unanswered(self.working_set, sent, self.thread_id, ends_session=bool(self.session_end))
        if moved is None:
            return Arrival((self.run_input,), writes=leaves)
        inputs = (_asking(self.run_input, moved), *self.session_end)
        return Arrival(inputs, writes=(*leaves, *closing), is_moved=True)

    def _continued(self) -> Arrival:
        """Let the turn go on; one whose own input ends the session does so then."""
        return Arrival((None, *(() if self.values.get("end_session") else self.session_end)))

    def _archived_answer(self) -> tuple[BaseMessage, ...]:
        """Return the turn of an archived question, up to its answer."""
        messages = transcript(self.store, self.thread_id, self.working_set)
        index = next(index for index, message in enumerate(messages) if message.id == self.message.id)
        end = _end_of_turn(messages, index)
        # Questions that were sent together have one answer, behind the last of them.
        while end < len(messages) and opens_turn(messages[end - 1]):
            end = _end_of_turn(messages, end)
        return tuple(messages[index:end])

    def _moved_to_end(self) -> tuple[list[BaseMessage], tuple[PutOp, ...]]:
        """Return the writes that put the question at the end of its thread, with what its turn had done.

        Returns:
            Writes to the channel, and writes to the store.
        """
        working_set, store, thread_id = self.working_set, self.store, self.thread_id
        here = {message.id: message for message in working_set}
        # Of its turn, some messages may be here and some in the transcript alone.
        sent_ids = {message.id for message in self.sent}
        messages = _turn_of(str(self.message.id), sent_ids, transcript(store, thread_id, working_set))
        turn = [here.get(message.id, message) for message in _as_shown(messages, here, store, thread_id)]
        previous, last = marks(turn[0]).get("previous"), str(turn[-1].id)
        behind = next((message for message in working_set if marks(message).get("previous") == last), None)
        writes: list[BaseMessage] = [RemoveMessage(id=str(message.id)) for message in turn if message.id in here]
        writes += [marked(behind, previous=previous)] if behind is not None else []
        # Asked now: without a date a question would be new and count as one more turn.
        writes += [marked_only(one, {"at": now()}) if opens_turn(one) else one for one in turn]
        after = {message.id: marks(message) for message in reduce_messages(working_set, [writes])}
        masked = [str(message.id) for message in turn if is_masked(message)]
        places = {name: {mark: after[name].get(mark) for mark in ("seq", "previous")} for name in masked}
        following = None if behind is None else str(behind.id)
        return writes, _closing_gap(store, thread_id, previous, last, following, places)


def _pending(working_set: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the question of the last turn, while it has no answer."""
    return None if not working_set or is_answer(working_set[-1]) else question_of(working_set)


def _asking(run_input: Mapping[str, Any], messages: list[BaseMessage]) -> dict[str, Any]:
    """Return an input with these messages, whose session ends by a further input if at all.

    With both in one input the graph would end the session at once, since it may find none of the messages new.
    """
    return {**run_input, "messages": messages, **({"end_session": False} if "end_session" in run_input else {})}


def _end_of_turn(messages: Sequence[BaseMessage], index: int) -> int:
    """Return the index behind the turn that the message at an index belongs to."""
    end = next((later for later in range(index + 1, len(messages)) if opens_turn(messages[later])), len(messages))
    # What was recalled for the next question stands ahead of it.
    while is_recalled(messages[end - 1]):
        end -= 1
    return end


def _can_continue(working_set: list[BaseMessage], sent: list[BaseMessage]) -> bool:
    """Tell whether an input is the question of a turn that was cut off after the model's first reply.

    Such a turn goes on, since begun again its open tool calls would never get a result. A turn without a reply begins
    again instead, with the dials and the memory of this run.
    """
    if not working_set or isinstance(working_set[-1], HumanMessage):
        return False
    after = reduce_messages(working_set, [sent])
    return [(message.id, message.content) for message in after] == [(one.id, one.content) for one in working_set]


def _leave_unanswered(
    working_set: list[BaseMessage], sent: list[BaseMessage], thread_id: str, *, ends_session: bool
) -> tuple[PutOp, ...]:
    """Return the write that records a pending question, and its place, when an input leaves it without an answer."""
    pending = _pending(working_set)
    asked = question_of(reduce_messages(working_set, [sent]))
    if pending is None or (not ends_session and asked is not None and asked.id == pending.id):
        return ()
    return (PutOp(unanswered(thread_id), str(pending.id), {"seq": sequence(pending)}, index=False),)


def _turn_of(question_id: str, sent_ids: set[str | None], messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a question, those that were sent with it, and what followed it; by predecessor and not by place.

    Places of results may have moved before a crash, and of parallel results an earlier one may be missing.
    """
    index = first = next(index for index, message in enumerate(messages) if message.id == question_id)
    while first and opens_turn(messages[first - 1]) and messages[first - 1].id in sent_ids:
        first -= 1
    turn, predecessors = list(messages[first : index + 1]), {str(messages[index].id)}
    for message in messages[index + 1 :]:
        if marks(message).get("previous") in predecessors and not opens_turn(message):
            turn.append(message)
            predecessors.add(str(message.id))
            if isinstance(message, AIMessage):
                predecessors.update(result_id(message, str(call["id"])) for call in message.tool_calls)
    return turn


def _as_shown(
    turn: Sequence[BaseMessage], here: Mapping[str | None, BaseMessage], store: BaseStore, thread_id: str
) -> list[BaseMessage]:
    """Return a turn with stand-ins for the long results that the transcript alone has."""
    namespace = namespaces.transcript(thread_id)
    items = store.batch([GetOp(namespace, str(message.id)) for message in turn if message.id not in here])
    long = {item.key for item in items if isinstance(item, Item) and item.value.get("why") == "offloaded"}
    counter = TokenCounter()
    return [mask(one, Context.tool_output_tokens, counter) if one.id in long else one for one in turn]


def _closing_gap(
    store: BaseStore,
    thread_id: str,
    previous: str | None,
    last: str,
    following: str | None,
    places: Mapping[str, Record],
) -> tuple[PutOp, ...]:
    """Return the writes that close the gap in the transcript where a turn was that moves to the end of its thread.

    Args:
        previous: id of the message ahead of the turn.
        last: id of the turn's last message, which the message behind it names.
        following: id of the message behind the turn; None when the working set does not have that one.
        places: new place and predecessor, by id, of messages of the turn that only the transcript has whole.
    """
    namespace = namespaces.transcript(thread_id)
    names = [*places, *([previous] if previous else [])]
    items = [item for item in store.batch([GetOp(namespace, name) for name in names]) if isinstance(item, Item)]
    if following is None:
        behind: Any = store.batch([SearchOp(namespace, filter={"previous": last}, limit=1)])[0]
        items += [item for item in behind if item.key not in names]
        following = next((item.key for item in behind), None)

    def change(item: Item) -> Record:
        if item.value.get("previous") == last:
            return {"previous": previous}
        return {"next": following} if item.key == previous else places[item.key]

    return tuple(PutOp(namespace, item.key, _relinked(item.value, change(item))) for item in items)


def _relinked(record: Record, change: Record) -> dict[str, Any]:
    """Return a record of the transcript with another `seq`, `previous` or `next`, also inside its message."""
    message = marked(_message(record), **{name: value for name, value in change.items() if name != "next"})
    data = {**record["message"]["data"], "additional_kwargs": message.additional_kwargs}
    value = {**record, **change, "message": {**record["message"], "data": data}}
    return {name: kept for name, kept in value.items() if kept is not None}


def _renamed(message: BaseMessage, seq: int) -> BaseMessage:
    """Give a message an id of its own."""
    spelled = f"{message.id}\x00{message.content!r}\x00{seq}"
    digest = hashlib.sha256(spelled.encode("utf-8", "replace")).hexdigest()[:12]
    return message.model_copy(update={"id": f"{message.id}-{digest}"})


def _message(archived: Record) -> BaseMessage:
    return messages_from_dict([archived["message"]])[0]
