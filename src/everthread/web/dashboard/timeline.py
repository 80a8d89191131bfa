"""The calls of a thread as rows: a bar against the window, and what happened ahead of each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from everthread.ledger import Event
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
from everthread.ledger.why import NEEDS

__all__ = ["BAR", "PARTS", "Change", "Row", "Segment", "bar_of", "changes_of", "timeline"]

BAR = 1_000
"""Width of a bar in its own units; the page stretches it."""

PARTS = {
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
_UNUSED = ("free", "safety", "reply_reserve")


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
    message_ids: tuple[str, ...] = ()
    """What left, or became shorter."""


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

    @property
    def parts(self) -> list[Segment]:
        """Categories that are in the prompt."""
        return [one for one in self.segments if one.name not in _UNUSED]


def bar_of(event: PromptAssembled) -> Bar:
    """Lay the categories of a prompt out against its window."""
    tokens = {name: max(event.breakdown.get(name, 0), 0) for name in PARTS}
    scale = BAR / max(sum(tokens.values()), event.window, 1)
    segments, x = [], 0.0
    for name, label in PARTS.items():
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
        ids = tuple(one.message_id for one in group)
        yield Change("masked", f"{_count(group, 'message')} {verb}: {sizes} ({reason})", ids)


def _change(event: Event) -> Iterator[Change]:
    match event:
        case Evicted():
            what, sizes = _count(event.message_ids, "message"), _sizes(event.tokens_before, event.tokens_after)
            yield Change("evicted", f"{what} evicted: history {sizes} ({event.reason})", tuple(event.message_ids))
        case Compacted():
            what, sizes = _count(event.message_ids, "message"), _sizes(event.tokens_before, event.tokens_after)
            text = f"{what} compacted into summary {event.version} of {event.summary_tokens:,} tokens: history {sizes}"
            yield Change("compacted", f"{text} ({event.reason}, by {event.writer})", tuple(event.message_ids))
        case Recalled():
            yield Change("recalled", f"{_count(event.message_ids, 'message')} recalled, {event.tokens:,} tokens")
        case Refetch():
            what = f"{_count(event.message_ids, 'message')} missed after it was {event.left}"
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
            yield Change("pinned", f"{event.pins} pinned {'sentence' if event.pins == 1 else 'sentences'} put back")
        case Injected() if event.changed and event.tokens:
            yield Change("injected", f"profile and notes changed, {event.tokens:,} tokens")


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _sizes(before: int, after: int) -> str:
    return f"{before:,} → {after:,} tokens"
