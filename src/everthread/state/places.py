"""Places of messages in a thread whose own state gives them none: that of somebody else's agent.

The middleware keeps them in the store, in a record for each question; see `nodes.thread_view`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from everthread.state.marks import MARK, marks, sequence
from everthread.state.reducer import Message

__all__ = ["Places", "Record", "holds", "in_view", "placed", "places_of"]

M = TypeVar("M", bound=Message)

Places = Mapping[str, Sequence[Any]]
"""Place in the thread, id of the message ahead, and date of each message, by its id."""


Record = Mapping[str, Any]
"""What is known at a question; see `ThreadView.record`."""


def holds(record: Record, question: str, sent: Sequence[Message]) -> bool:
    """Tell whether a record is of this branch, and of a step that was saved.

    Otherwise what it says to have left is still ahead of its question. Behind it, a client has sent it once more.
    """
    order = {str(message.id): place for place, message in enumerate(sent)}
    return bool(record["stays"]) or order.get(record["gone"], len(order)) > order[question]


def in_view(record: Record, question: str | None, sent: Sequence[M]) -> Sequence[M]:
    """Return the messages without those that left the prompt and stay in the agent's state."""
    if not record.get("stays"):
        return sent
    asked = next(place for place, message in enumerate(sent) if message.id == question)
    return [one for place, one in enumerate(sent) if place > asked or str(one.id) in record["places"]]


def places_of(messages: Iterable[Message]) -> Places:
    """Return the places that messages have by their marks."""
    return {str(one.id): [sequence(one), marks(one).get("previous"), marks(one).get("at")] for one in messages}


def placed(messages: Sequence[M], places: Places, *, date: str | None = None) -> list[M]:
    """Give messages their places in the thread; those that are new come behind all others, with this date."""
    previous, (seq, *_) = max(places.items(), key=lambda item: item[1][0], default=(None, [-1]))
    given = []
    for message in messages:
        name = str(message.id)
        if name not in places:
            seq += 1
            place, previous = [seq, previous, date], name
        else:
            place = list(places[name])
        ours = {key: value for key, value in marks(message).items() if key not in ("seq", "previous", "at")}
        ours |= {key: value for key, value in zip(("seq", "previous", "at"), place, strict=True) if value is not None}
        kwargs = {**message.additional_kwargs, MARK: ours}
        given.append(message.model_copy(update={"additional_kwargs": kwargs}))
    return given
