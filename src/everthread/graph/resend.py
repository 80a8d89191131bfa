"""A message that the thread may know already: clients send one until they have its answer.

A message whose answer exists is answered from the record. A turn that was cut off goes on. A question that was left
without an answer, since somebody talked on, is asked anew at the end of the thread, with all that its turn had done.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, messages_from_dict
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp

from everthread.ledger.record import now
from everthread.state import namespaces
from everthread.state.marks import MARK, is_masked, marked, marks, sequence
from everthread.state.messages import clean_content, reduce_messages
from everthread.storage.transcript import transcript
from everthread.window.turns import opens_turn, question_of

__all__ = ["Arrival", "arrival", "unanswered"]

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Arrival:
    """What a run does with the message that it got."""

    inputs: tuple[Any, ...] = ()
    """Inputs of the graph, one after the other; None continues the turn that was cut off."""
    answer: tuple[BaseMessage, ...] = ()
    """The messages up to the answer, when there is one; then nothing runs."""
    writes: tuple[PutOp, ...] = ()
    """Writes to the store that come first."""

    @property
    def continues(self) -> bool:
        """Whether the turn that was cut off goes on."""
        return self.inputs[:1] == (None,)


def unanswered(thread_id: str) -> namespaces.Namespace:
    """Namespace of the questions whose turn was left without an answer, by message id."""
    return namespaces.thread(thread_id, "unanswered")


def arrival(
    given: dict[str, Any], values: Mapping[str, Any], store: BaseStore, thread_id: str, *, is_cut_off: bool
) -> Arrival:
    """Tell what to do with an input.

    Args:
        given: the input; its `messages`, if any, are messages with ids.
        values: the thread's state.
        store: has the transcript.
        thread_id: the thread.
        is_cut_off: a task of the last turn is still to run.
    """
    here: list[BaseMessage] = list(values.get("messages") or [])
    sent: list[BaseMessage] = list(given.get("messages") or [])
    newest = None if not here or _is_answer(here[-1]) else question_of(here)
    ends = bool(given.get("end_session"))
    if not sent or not opens_turn(sent[-1]):
        return Arrival((given,), writes=_leaving(here, sent, newest, thread_id, ends=ends) if is_cut_off else ())
    question = sent[-1]
    archived, left = _records(store, thread_id, str(question.id))
    place = next((place for place, message in enumerate(here) if message.id == question.id), None)
    end = None if place is None else _end_of_turn(here, place)
    if place is not None and end is not None and any(map(_is_answer, here[place:end])):
        if here[place].content == clean_content(question.content):
            return Arrival(answer=tuple(here[:end]), inputs=({"end_session": True},) if ends else ())
    elif place is None and archived is not None:
        places = {sequence(message) for message in here}
        seq = int(archived["seq"])
        if seq in places or seq > max(places, default=-1) or not _says(archived, question):
            # Another message has this id: with other words, or on a branch that was left.
            return Arrival((_asking(given, [_renamed(question, seq)]), *_ending(ends)))
        if left is None or left.get("seq") != seq:
            answered = _archived_answer(store, thread_id, here, str(question.id))
            return Arrival(answer=answered, inputs=_ending(ends))
    moved, closing = _asked_anew(here, sent, place, end, archived, left, store, thread_id)
    if is_cut_off and moved is None and not values.get("overflows") and _goes_on(here, sent):
        return Arrival((None, *_ending(ends and not values.get("end_session"))))
    if newest is not None and question.id == newest.id:
        done = (PutOp(unanswered(thread_id), str(newest.id), None),) if left else ()
        return Arrival((_asking(given, sent), *_ending(ends)), writes=done)
    leaves = _leaving(here, moved or sent, newest, thread_id, ends=ends) if is_cut_off else ()
    if moved is None:
        return Arrival((given,), writes=leaves)
    return Arrival((_asking(given, moved), *_ending(ends)), writes=(*leaves, *closing))


def _ending(ends: bool) -> tuple[dict[str, Any], ...]:
    return ({"end_session": True},) if ends else ()


def _asking(given: Mapping[str, Any], messages: list[BaseMessage]) -> dict[str, Any]:
    """Return an input whose session ends in a run of its own: nothing of it may be new to the graph."""
    return {**given, "messages": messages, **({"end_session": False} if "end_session" in given else {})}


def _records(store: BaseStore, thread_id: str, message_id: str) -> tuple[Record | None, Record | None]:
    """Return what the transcript has under an id, and where that message was left without an answer."""
    spaces = (namespaces.transcript(thread_id), unanswered(thread_id))
    items = store.batch([GetOp(space, message_id) for space in spaces])
    archived, left = (item.value if isinstance(item, Item) else None for item in items)
    return archived, left


def _end_of_turn(messages: Sequence[BaseMessage], place: int) -> int:
    following = (at for at in range(place + 1, len(messages)) if opens_turn(messages[at]))
    return next(following, len(messages))


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls


def _goes_on(here: list[BaseMessage], sent: list[BaseMessage]) -> bool:
    """Tell whether an input is the question of a turn that was cut off after its first reply.

    Asked anew, a call that was cut off would never get its result. A turn without a reply begins anew instead, with
    the dials and the memory of this run.
    """
    if not here or isinstance(here[-1], HumanMessage):
        return False
    after = reduce_messages(here, [sent])
    return [(message.id, message.content) for message in after] == [(one.id, one.content) for one in here]


def _leaving(
    here: list[BaseMessage], sent: list[BaseMessage], newest: BaseMessage | None, thread_id: str, *, ends: bool
) -> tuple[PutOp, ...]:
    """Note that an input leaves the newest question without an answer, and where it stands."""
    asked = question_of(reduce_messages(here, [sent]))
    if newest is None or (not ends and asked is not None and asked.id == newest.id):
        return ()
    return (PutOp(unanswered(thread_id), str(newest.id), {"seq": sequence(newest)}, index=False),)


def _archived_answer(
    store: BaseStore, thread_id: str, here: Sequence[BaseMessage], message_id: str
) -> tuple[BaseMessage, ...]:
    """Return the turn of an archived question, up to its answer."""
    messages = transcript(store, thread_id, here)
    place = next(place for place, message in enumerate(messages) if message.id == message_id)
    end = _end_of_turn(messages, place)
    # Questions that were sent together have one answer, behind the last of them.
    while end < len(messages) and not any(map(_is_answer, messages[place:end])):
        end = _end_of_turn(messages, end)
    return tuple(messages[place:end])


def _asked_anew(
    here: list[BaseMessage],
    sent: list[BaseMessage],
    place: int | None,
    end: int | None,
    archived: Record | None,
    left: Record | None,
    store: BaseStore,
    thread_id: str,
) -> tuple[list[BaseMessage] | None, tuple[PutOp, ...]]:
    """Return the writes that put a question without an answer at the end of its thread; None when it is new."""
    if left is None:
        return None, ()
    if place is not None and end is not None:
        if sequence(here[place]) != left.get("seq"):
            return None, ()
        return _moved(here, place, end, {message.id for message in sent}, store, thread_id)
    if archived is None:
        return None, ()
    gap = _Gap.of(here, archived.get("previous"), str(sent[-1].id))
    return [*gap.closed(here), _dated(sent[-1])], gap.writes(store, thread_id, {})


def _moved(
    here: list[BaseMessage], place: int, end: int, sent_ids: set[str | None], store: BaseStore, thread_id: str
) -> tuple[list[BaseMessage], tuple[PutOp, ...]]:
    """Return the writes that put a turn behind all others: its question, and what it has done so far."""
    first = place
    while first and opens_turn(here[first - 1]) and here[first - 1].id in sent_ids:
        first -= 1
    turn = here[first:end]
    gap = _Gap.of(here, marks(turn[0]).get("previous"), str(turn[-1].id))
    writes: list[BaseMessage] = [RemoveMessage(id=str(message.id)) for message in turn]
    writes += gap.closed(here)
    writes += [_dated(message) if opens_turn(message) else message for message in turn]
    after = {message.id: marks(message) for message in reduce_messages(here, [writes])}
    masked = [str(message.id) for message in turn if is_masked(message)]
    places = {name: {mark: after[name].get(mark) for mark in ("seq", "previous")} for name in masked}
    return writes, gap.writes(store, thread_id, places)


@dataclass(frozen=True)
class _Gap:
    """Where a turn was that moves to the end of its thread."""

    previous: str | None
    """Id of the message ahead of it."""
    last: str
    """Id of its last message, which the message behind it names."""
    following: str | None
    """Id of the message behind it; None when the working set does not have that one."""

    @classmethod
    def of(cls, here: Sequence[BaseMessage], previous: str | None, last: str) -> "_Gap":
        following = (str(message.id) for message in here if marks(message).get("previous") == last)
        return cls(previous, last, next(following, None))

    def closed(self, here: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the write by which the message behind the gap follows the one ahead of it."""
        return [marked(message, previous=self.previous) for message in here if message.id == self.following]

    def writes(self, store: BaseStore, thread_id: str, places: Mapping[str, Record]) -> tuple[PutOp, ...]:
        """Return the writes that close the gap in the transcript.

        Args:
            store: has the transcript.
            thread_id: the thread.
            places: new place and predecessor, by id, of messages of the turn that only the transcript has whole.
        """
        namespace = namespaces.transcript(thread_id)
        names = [*places, *([self.previous] if self.previous else [])]
        items = [item for item in store.batch([GetOp(namespace, name) for name in names]) if isinstance(item, Item)]
        following = self.following
        if following is None:
            behind: Any = store.batch([SearchOp(namespace, filter={"previous": self.last}, limit=1)])[0]
            items += [item for item in behind if item.key not in names]
            following = next((item.key for item in behind), None)
        return tuple(
            PutOp(namespace, item.key, _placed(item.value, self._change(item, following, places))) for item in items
        )

    def _change(self, item: Item, following: str | None, places: Mapping[str, Record]) -> Record:
        if item.value.get("previous") == self.last:
            return {"previous": self.previous}
        return {"next": following} if item.key == self.previous else places[item.key]


def _placed(record: Record, change: Record) -> dict[str, Any]:
    """Return a record of the transcript with another place, predecessor or successor."""
    message = marked(_message(record), **{name: value for name, value in change.items() if name != "next"})
    data = {**record["message"]["data"], "additional_kwargs": message.additional_kwargs}
    value = {**record, **change, "message": {**record["message"], "data": data}}
    return {name: kept for name, kept in value.items() if kept is not None}


def _dated(message: BaseMessage) -> BaseMessage:
    """Return a message as asked now; without its date it would count as one more turn."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MARK: {"at": now()}}})


def _renamed(message: BaseMessage, seq: int) -> BaseMessage:
    """Give a message an id of its own."""
    spelled = f"{message.id}\x00{message.content!r}\x00{seq}"
    digest = hashlib.sha256(spelled.encode("utf-8", "replace")).hexdigest()[:12]
    return message.model_copy(update={"id": f"{message.id}-{digest}"})


def _says(archived: Record, message: BaseMessage) -> bool:
    return bool(_message(archived).content == clean_content(message.content))


def _message(archived: Record) -> BaseMessage:
    return messages_from_dict([archived["message"]])[0]
