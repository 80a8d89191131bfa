"""Places of messages in a thread whose own state gives them none: that of somebody else's agent.

The middleware keeps them in the store, in a record for each model call; see `nodes.thread_view`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar

from everthread.state.marks import MARK, marks, sequence
from everthread.state.reducer import Message

M = TypeVar("M", bound=Message)


class Place(NamedTuple):
    """Where a message stands in its thread."""

    seq: int
    previous: str | None
    """Id of the message ahead of it."""
    at: str | None
    """When it came, ISO 8601."""


Places = Mapping[str, Place]
"""By message id."""

Link = tuple[int, str | None]
"""Where a message stands in its thread, and the id of the one ahead of it."""

Record = Mapping[str, Any]
"""What is known behind a model call; see `ThreadView.record`."""


def own_branch(
    working_set: Iterable[Message],
    link: Callable[[str], Link | None],
    shared: int,
    *,
    newest: str | None = None,
    most: float = inf,
) -> frozenset[str]:
    """Return the ids of this branch behind the last place that all branches of a thread share.

    Args:
        working_set: the messages in the state.
        link: returns the link of a message that is archived, or was removed; None when there is none.
        shared: that place.
        newest: id of the newest question, for a state without messages.
        most: archived messages to look at.
    """
    here = list(working_set)
    own = {str(one.id) for one in here}
    most += len(own)
    for name in [marks(message).get("previous") for message in here] or [newest]:
        while name and name not in own and len(own) < most and (found := link(name)) is not None and found[0] > shared:
            own.add(name)
            name = found[1]
    return frozenset(own)


def left_ids(
    messages: Iterable[Message],
    working_set: Iterable[Message],
    session: Record | None,
    removed: Callable[[], Mapping[str, Link]],
) -> frozenset[str]:
    """Return the ids of the messages on branches that a thread has left.

    Args:
        messages: all of the thread.
        working_set: those in the state.
        session: the record of the thread.
        removed: returns the links of messages that edits took out, by id.
    """
    shared = (session or {}).get("shared")
    if session is None or shared is None:
        return frozenset()
    links = {str(one.id): (sequence(one), marks(one).get("previous")) for one in messages}
    own = own_branch(working_set, {**removed(), **links}.get, shared, newest=session.get("question"))
    return frozenset(name for name, (place, _) in links.items() if place > shared and name not in own)


def link_of(value: Record) -> Link:
    """Return the link of a message by its record, archived or removed."""
    return int(value.get("seq", -1)), value.get("previous")


def newest_record(records: Mapping[str, Record]) -> tuple[str | None, Record]:
    """Return the record that knows most of a thread, and the message that it was written behind.

    Args:
        records: by the id of that message, of the messages in the agent's state: a fork, or a step that was never
            saved, has no message of the branch that was left.
    """
    if not records:
        return None, {}
    name = max(records, key=lambda one: max((seq for _, seq, *_ in records[one]["places"]), default=-1))
    return name, records[name]


def with_renamed_reply(
    records: Mapping[str, Record], sent: Sequence[Message], written_behind: Callable[[str], Iterable[Record]]
) -> Mapping[str, Record]:
    """Return the records with that of the newest reply, if another middleware has given the reply an id of its own.

    Such a record is known by the message that the call went on from. One of a call whose reply was never saved is not
    taken for it: messages that it left out would still be here.

    Args:
        records: by the ids of messages in the agent's state.
        sent: these messages.
        written_behind: returns the records of the calls that went on from a message, by its id.
    """
    for place in range(len(sent) - 1, 0, -1):
        name = str(sent[place].id)
        if name in records:
            break
        if sent[place].type != "ai":
            continue
        here = {str(message.id) for message in sent[:place]}
        found = [
            one for one in written_behind(str(sent[place - 1].id)) if one["stays"] or here <= places_in(one).keys()
        ]
        if found:
            newest = max(found, key=lambda one: str(one["places"][-1][2]))
            *rows, reply = newest["places"]
            return {**records, name: {**newest, "places": [*rows, [name, *reply[1:]]]}}
    return records


def in_view(record: Record, name: str | None, sent: Sequence[M]) -> Sequence[M]:
    """Return the messages without those that left the prompt and stay in the agent's state."""
    if not record.get("stays"):
        return sent
    behind = next(place for place, message in enumerate(sent) if message.id == name)
    known = places_in(record)
    return [one for place, one in enumerate(sent) if place > behind or str(one.id) in known]


def places_of(messages: Iterable[Message]) -> dict[str, Place]:
    """Return the places that messages have by their marks."""
    return {str(one.id): Place(sequence(one), marks(one).get("previous"), marks(one).get("at")) for one in messages}


def rows_of(messages: Iterable[Message]) -> list[list[Any]]:
    """Return the places of messages as a record has them: id, place and date, and who is ahead if the list has not."""
    rows: list[list[Any]] = []
    for name, place in places_of(messages).items():
        is_next = bool(rows) and rows[-1][0] == place.previous
        rows.append([name, place.seq, place.at] if is_next else [name, place.seq, place.at, place.previous])
    return rows


def places_in(record: Record) -> dict[str, Place]:
    """Return the places in a record; empty without one."""
    places: dict[str, Place] = {}
    ahead: str | None = None
    for name, seq, at, *previous in record.get("places", ()):
        places[name] = Place(seq, previous[0] if previous else ahead, at)
        ahead = name
    return places


def placed(messages: Sequence[M], places: Places, *, date: str | None = None) -> list[M]:
    """Give messages their places in the thread; those that are new come behind all others, with this date."""
    previous, last = max(places.items(), key=lambda item: item[1].seq, default=(None, Place(-1, None, None)))
    seq, given = last.seq, []
    for message in messages:
        name = str(message.id)
        place = places.get(name)
        if place is None:
            seq += 1
            # A result of a turn that failed is dated, and must not be taken for a new one: it would lose its handle.
            dated = marks(message).get("at") if message.type == "tool" else None
            place, previous = Place(seq, previous, dated or date), name
        ours = {key: value for key, value in marks(message).items() if key not in ("seq", "previous", "at")}
        ours |= {key: value for key, value in zip(("seq", "previous", "at"), place, strict=True) if value is not None}
        kwargs = {**message.additional_kwargs, MARK: ours}
        given.append(message.model_copy(update={"additional_kwargs": kwargs}))
    return given
