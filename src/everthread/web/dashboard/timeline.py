"""The calls of a thread as rows, some turns a page: a bar against the window, and what happened ahead of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any

from everthread.ledger import Event, events_of_turns
from everthread.ledger.events import (
    Compacted,
    Evicted,
    Injected,
    Masked,
    Offloaded,
    Overflow,
    PinRepaired,
    PromptAssembled,
    Recalled,
    Refetch,
    SpendGranted,
    SpendRefused,
)
from everthread.ledger.record import readable_events
from everthread.ledger.why import NEEDS
from everthread.plain import counted
from everthread.state import namespaces
from everthread.state.records import StoredItem
from everthread.storage.open import Storage
from everthread.storage.reading import reader_of

BAR = 1_000
"""Width of a bar in its own units; the page stretches it."""

_PARTS = {
    "system": "system",
    "profile": "profile",
    "notes": "notes",
    "tools": "tool schemas",
    "summary": "summary",
    "session_notes": "session notes",
    "recalled": "recalled",
    "history": "messages",
    "free": "free",
    "safety": "safety margin",
    "reply_reserve": "reply reserve",
}
"""Categories of a prompt in the order of the bar, and their labels."""

_LIMITS = {"thread": "this thread", "user_day": "this day"}

_FIXED = ("system", "profile", "notes", "tools")

_TURNS = 25
"""Turns of a page; each has a few calls."""

_MOST_ROWS = 200
_LAST = 2**31


@dataclass(frozen=True)
class Segment:
    """One category in a bar."""

    name: str
    label: str
    tokens: int
    x: float
    width: float


@dataclass(frozen=True)
class Change:
    """Something that was decided about the prompt, in a sentence."""

    kind: str
    text: str


@dataclass(frozen=True)
class Row:
    """A call, and what changed since the call before it."""

    event: PromptAssembled
    bar: "Bar"
    changes: list[Change] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the call, by which its prompt is found; empty when an older version made it."""
        return self.event.recipe["call"] if self.event.recipe else ""


@dataclass(frozen=True)
class Bar:
    """What a bar shows of a call."""

    segments: list[Segment]
    cacheable: float
    """Width of the share that a provider can have in its cache."""
    watermarks: list[float]
    """The lower and the upper one; empty when an older version made the call."""


def bar_of(event: PromptAssembled) -> Bar:
    """Lay the categories of a prompt out against its window."""
    tokens = {name: max(event.breakdown.get(name, 0), 0) for name in _PARTS}
    scale = BAR / max(sum(tokens.values()), event.window, 1)
    segments, x = [], 0.0
    for name, label in _PARTS.items():
        width = tokens[name] * scale
        if width:
            segments.append(Segment(name, label, tokens[name], round(x, 2), round(width, 2)))
        x += width
    fixed = sum(tokens[name] for name in _FIXED)
    marks = [round((fixed + one) * scale, 2) for one in event.watermarks or ()]
    return Bar(segments, round(event.cacheable_tokens * scale, 2), marks)


def timeline(events: Iterable[Event]) -> tuple[list[Row], list[Change]]:
    """Return the calls among events, oldest first, and what changed since the last one."""
    rows: list[Row] = []
    since: list[Event] = []
    for event in events:
        if isinstance(event, PromptAssembled):
            rows.append(Row(event, bar_of(event), changes_of(since)))
            since = []
        elif isinstance(event, PinRepaired) and rows:
            # It is told behind the prompt that it is about.
            rows[-1].changes.extend(changes_of([event]))
        else:
            since.append(event)
    return rows, changes_of(since)


def changes_of(events: Sequence[Event]) -> list[Change]:
    """Return what was decided about the prompt, with the numbers; shortened results are counted together."""
    return [*_shortened(events), *(change for event in events for change in _change(event))]


def _shortened(events: Sequence[Event]) -> Iterator[Change]:
    groups: dict[tuple[str, str], list[Any]] = {}
    for event in events:
        if isinstance(event, Masked | Offloaded):
            groups.setdefault((event.event, event.reason), []).append(event)
    for (kind, reason), group in groups.items():
        sizes = _sizes(sum(one.tokens_before for one in group), sum(one.tokens_after for one in group))
        verb = "masked" if kind == "masked" else "shortened on arrival"
        yield Change("masked", f"{counted(len(group), 'message')} {verb}: {sizes} ({reason})")


def _change(event: Event) -> Iterator[Change]:
    match event:
        case Evicted():
            what, sizes = counted(len(event.message_ids), "message"), _sizes(event.tokens_before, event.tokens_after)
            yield Change("evicted", f"{what} evicted: history {sizes} ({event.reason})")
        case Compacted():
            what, sizes = counted(len(event.message_ids), "message"), _sizes(event.tokens_before, event.tokens_after)
            text = f"{what} compacted into summary {event.version} of {event.summary_tokens:,} tokens: history {sizes}"
            rules = f"; {counted(event.rules_left_out, 'rule')} without room" if event.rules_left_out else ""
            yield Change("compacted", f"{text} ({event.reason}, by {event.writer}){rules}")
        case Recalled():
            yield Change("recalled", f"{counted(len(event.message_ids), 'message')} recalled, {event.tokens:,} tokens")
        case Refetch():
            what = f"{counted(len(event.message_ids), 'message')} missed after it was {event.left}"
            yield Change("refetched", f"{what}: {NEEDS[event.why]}")
        case Overflow():
            yield Change("overflow", f"the provider refused {event.tokens:,} tokens as too long")
        case SpendRefused():
            yield Change("refused", f"a call to {event.purpose.replace('_', ' ')} was not made: {event.reason}")
        case SpendGranted():
            sums = " and ".join(
                f"{amount:,.2f} {event.currency} for {_LIMITS[n]}" for n, amount in event.amounts.items()
            )
            yield Change("granted", f"more may be spent: {sums}")
        case PinRepaired():
            yield Change("pinned", f"{counted(event.pins, 'pinned sentence')} put back")
        case Injected() if event.changed and event.tokens:
            yield Change("injected", f"profile and notes changed, {event.tokens:,} tokens")


def _sizes(before: int, after: int) -> str:
    return f"{before:,} → {after:,} tokens"


def timeline_values(storage: Storage, record: Mapping[str, Any], before: int = 0) -> dict[str, Any]:
    """Return the rows of a page.

    Args:
        before: the page ends ahead of this turn; 0 for the newest.
    """
    thread_id, turns = str(record["thread_id"]), int(record.get("turns", 0))
    first = max((before or turns + 1) - _TURNS, 0)
    rows, since = timeline(events_of_turns(storage.store, thread_id, first, before - 1 if before else _LAST))
    newest = rows[-1].event.turn if rows and not before else None
    # Behind a fork, the branch that was left has calls of the same turn too.
    current = [*takewhile(lambda row: row.event.turn == newest, reversed(rows))]
    past = rows[: len(rows) - len(current)][::-1]
    return {
        "current": current,
        "past": past[:_MOST_ROWS],
        "hidden": max(len(past) - _MOST_ROWS, 0),
        "since": since,
        "newest": rows[-1] if rows and not before else None,
        "earlier": first if first > 1 else None,
        "later": before or None,
    }


def newest_events(storage: Storage, thread_id: str, since: str) -> Sequence[Event]:
    """Return the events since a time, ISO 8601 in UTC; those of the thread's newest turn for an empty one."""
    rows = reader_of(storage).newest(namespaces.ledger(thread_id))
    newest = next(rows, None)
    if newest is None:
        return []

    def is_wanted(row: StoredItem) -> bool:
        value = row.value
        return str(value.get("at", "")) >= since if since else value.get("turn") == newest.value.get("turn")

    return readable_events(storage.store, thread_id, takewhile(is_wanted, chain([newest], rows)))
