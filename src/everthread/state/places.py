"""Places of messages in a thread whose own state gives them none: that of somebody else's agent.

The middleware keeps them in the store, in a record for each model call; see `nodes.thread_view`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from everthread.state.marks import MARK, marks, sequence
from everthread.state.reducer import Message

__all__ = ["Places", "Record", "in_view", "newest_record", "placed", "places_of"]

M = TypeVar("M", bound=Message)

Places = Mapping[str, Sequence[Any]]
"""Place in the thread, id of the message ahead, and date of each message, by its id."""


Record = Mapping[str, Any]
"""What is known behind a model call; see `ThreadView.record`."""


def newest_record(records: Mapping[str, Record]) -> tuple[str | None, Record]:
    """Return the record that knows most of a thread, and the message that it was written behind.

    Args:
        records: by the id of that message, of the messages in the agent's state: a fork, or a step that was never
            saved, has no message of the branch that was left.
    """
    if not records:
        return None, {}
    name = max(records, key=lambda one: max((place[0] for place in records[one]["places"].values()), default=-1))
    return name, records[name]


def in_view(record: Record, name: str | None, sent: Sequence[M]) -> Sequence[M]:
    """Return the messages without those that left the prompt and stay in the agent's state."""
    if not record.get("stays"):
        return sent
    behind = next(place for place, message in enumerate(sent) if message.id == name)
    return [one for place, one in enumerate(sent) if place > behind or str(one.id) in record["places"]]


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
