"""What a message means that is sent again: a client sends one until it hears the answer.

Its turn may have been cut off and goes on. Or somebody has talked on since and left it without an
answer: then it is asked anew, at the end of the thread. What has its answer is never asked twice.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
    messages_from_dict,
)
from langgraph.store.base import GetOp, Item, PutOp, SearchOp

from everthread.ledger.record import now
from everthread.state import namespaces
from everthread.state.marks import MARK, is_masked, marked, marks, sequence
from everthread.state.messages import clean_content, reduce_messages
from everthread.storage.newest import Record, Standing, unanswered
from everthread.window.turns import opens_turn, question_of

__all__ = ["Start", "message_id", "start"]


@dataclass(frozen=True)
class Gap:
    """Where a turn was that gets a new place."""

    previous: str | None
    """Id of the message ahead of it."""
    last: str
    """Id of its last message, which the message behind it names."""
    following: str | None
    """Id of the message behind it; None when the working set does not have that one."""
    places: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """New place and predecessor by id, of messages of the turn that only the transcript has whole."""

    def reads(self, thread_id: str) -> list[GetOp | SearchOp]:
        """Return the reads of the records that have to change."""
        namespace = namespaces.transcript(thread_id)
        known = [*self.places, *([self.previous] if self.previous else [])]
        behind = [] if self.following else [SearchOp(namespace, filter={"previous": self.last}, limit=1)]
        return [*(GetOp(namespace, key) for key in known), *behind]

    def writes(self, found: Sequence[Any]) -> list[PutOp]:
        """Return the writes that close the gap in the transcript, given what was read."""
        items = [item for one in found for item in (one if isinstance(one, list) else [one]) if item is not None]
        following = self.following or next((item.key for item in items if self._is_behind(item)), None)
        changes: list[PutOp] = []
        for item in items:
            new = {"next": following} if item.key == self.previous else self.places.get(item.key, {})
            new = {"previous": self.previous} if self._is_behind(item) else new
            changes.append(PutOp(item.namespace, item.key, _changed(item.value, new)))
        return changes

    def _is_behind(self, item: Item) -> bool:
        return bool(item.value.get("previous") == self.last)


@dataclass(frozen=True)
class Start:
    """How a run starts."""

    input: Any
    """None goes on where the last run stopped."""
    ends_session: bool = False
    """The session ends with a run of its own, once this one is done."""
    operations: tuple[PutOp, ...] = ()
    """Writes to the store that come first."""
    gap: Gap | None = None
    """Where the turn was that is asked anew."""


def message_id(given: Any) -> str | None:
    """Return the id that the client gave the last message of an input; None when there is none."""
    messages = given.get("messages") if isinstance(given, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else messages
    found = last.get("id") if isinstance(last, dict) else getattr(last, "id", None)
    return found if isinstance(found, str) and found else None


def start(given: Any, values: Mapping[str, Any], standing: Standing, thread_id: str) -> Start:
    """Tell how a run starts whose thread was cut off, or whose message is known.

    Args:
        given: the new input.
        values: the thread's state.
        standing: how the thread stands.
        thread_id: the thread.
    """
    if not isinstance(given, dict):
        return Start(given)
    here, sent, ends = list(values.get("messages", [])), _sent(given), bool(given.get("end_session"))
    is_cut_off = standing.ending != "done"
    asked, gap = _asked(here, sent, standing) if sent else (None, None)
    is_known = asked == [] or (asked is None and bool(sent) and not values.get("overflows") and _goes_on(here, sent))
    if is_cut_off and is_known:
        return Start(None, ends and not values.get("end_session"))
    newest = None if not here or _is_answer(here[-1]) else question_of(here)
    if newest is not None and sent and sent[-1].id == newest.id:
        known = (PutOp(unanswered(thread_id), str(newest.id), None),) if standing.unanswered else ()
        # Nothing of it is new to the graph, which would end the session ahead of the answer.
        return Start({**given, "end_session": False}, ends, known)
    left: tuple[PutOp, ...] = ()
    if is_cut_off and newest is not None:
        left = _left(here, sent if asked is None else asked, newest, thread_id, ends=ends)
    if asked is None:
        return Start(given, operations=left)
    return Start({**given, "messages": asked, "end_session": False}, ends, left, gap)


def _sent(given: Mapping[str, Any]) -> list[BaseMessage]:
    messages = given.get("messages") or []
    return convert_to_messages(messages if isinstance(messages, list) else [messages])


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls


def _goes_on(here: list[BaseMessage], sent: list[BaseMessage]) -> bool:
    """Tell whether an input is the question of a turn that was cut off after its first reply: that turn goes on.

    Answered anew, a call that was cut off would stay without its result for good. A turn without a reply
    starts anew, with the dials and the memory of this run, and so does one whose prompt was refused.
    """
    if not here or isinstance(here[-1], HumanMessage):
        return False
    after = reduce_messages(here, [sent])
    return [(message.id, message.content) for message in after] == [(one.id, one.content) for one in here]


def _left(
    here: list[BaseMessage], sent: list[BaseMessage], newest: BaseMessage, thread_id: str, *, ends: bool
) -> tuple[PutOp, ...]:
    """Note that an input leaves the newest question without an answer, and where: asked anew it has another place."""
    asked = question_of(reduce_messages(here, [sent]))
    if not ends and asked is not None and asked.id == newest.id:
        return ()
    return (PutOp(unanswered(thread_id), str(newest.id), {"seq": sequence(newest)}, index=False),)


def _asked(
    here: list[BaseMessage], sent: list[BaseMessage], standing: Standing
) -> tuple[list[BaseMessage] | None, Gap | None]:
    """Return what to send for a message that the thread knows, and the gap that its turn leaves.

    Returns:
        Writes that ask it anew; none when it has its answer and left the working set; None when it may be
        sent as it is, because it is new or its answer is in view.
    """
    left_at = (standing.unanswered or {}).get("seq")
    place = next((place for place, message in enumerate(here) if message.id == sent[-1].id), None)
    if place is not None:
        end = next((at for at in range(place + 1, len(here)) if opens_turn(here[at])), len(here))
        is_left = sequence(here[place]) == left_at and not any(map(_is_answer, here[place:end]))
        return _moved(here, place, end, {message.id for message in sent}) if is_left else (None, None)
    if standing.archived is None:
        return None, None
    places = {sequence(message) for message in here}
    seq = int(standing.archived["seq"])
    if seq in places or seq > max(places, default=-1) or not _has_words(standing.archived, sent[-1]):
        return [_renamed(sent[-1], seq)], None
    if seq != left_at:
        return [], None
    gap = _gap(here, standing.archived.get("previous"), str(sent[-1].id))
    return [*_closed(here, gap), _dated(sent[-1])], gap


def _moved(here: list[BaseMessage], place: int, end: int, sent_ids: set[str | None]) -> tuple[list[BaseMessage], Gap]:
    """Return the writes that put a turn behind all others: its question, and what it has done so far."""
    first = place
    while first and opens_turn(here[first - 1]) and here[first - 1].id in sent_ids:
        first -= 1
    turn = here[first:end]
    gap = _gap(here, marks(turn[0]).get("previous"), str(turn[-1].id))
    writes: list[BaseMessage] = [RemoveMessage(id=str(message.id)) for message in turn]
    writes += _closed(here, gap)
    writes += [_dated(message) if opens_turn(message) else message for message in turn]
    after = {message.id: marks(message) for message in reduce_messages(here, [writes])}
    masked = [str(message.id) for message in turn if is_masked(message)]
    places = {known: {name: after[known].get(name) for name in ("seq", "previous")} for known in masked}
    return writes, replace(gap, places=places)


def _gap(here: list[BaseMessage], previous: str | None, last: str) -> Gap:
    return Gap(previous, last, next((str(one.id) for one in here if marks(one).get("previous") == last), None))


def _closed(here: list[BaseMessage], gap: Gap) -> list[BaseMessage]:
    """Return the write by which the message behind a gap follows the one ahead of it."""
    return [marked(message, previous=gap.previous) for message in here if message.id == gap.following]


def _changed(record: Record, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of the transcript with another place, predecessor or successor."""
    whole = marked(_message(record), **{name: value for name, value in new.items() if name != "next"})
    data = {**record["message"]["data"], "additional_kwargs": whole.additional_kwargs}
    value = {**record, **new, "message": {**record["message"], "data": data}}
    return {name: kept for name, kept in value.items() if kept is not None}


def _dated(message: BaseMessage) -> BaseMessage:
    """Return a message as asked now; without its date it would count as one more turn."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MARK: {"at": now()}}})


def _renamed(message: BaseMessage, seq: int) -> BaseMessage:
    """Give an id of its own to a message whose id another one has: with other words, or on a branch that was left."""
    told = f"{message.id}\x00{message.content!r}\x00{seq}"
    digest = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:12]
    return message.model_copy(update={"id": f"{message.id}-{digest}"})


def _has_words(archived: Record, message: BaseMessage) -> bool:
    return bool(_message(archived).content == clean_content(message.content))


def _message(archived: Record) -> BaseMessage:
    return messages_from_dict([archived["message"]])[0]
