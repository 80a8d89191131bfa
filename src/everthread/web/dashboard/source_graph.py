"""What a fact comes from and what came from it as a graph: sources on the left, what rests on them on the right."""

from collections.abc import Sequence
from dataclasses import dataclass

from everthread.ledger.why import Explanation

_WIDTH, _HEIGHT = 210, 46
"""Of a box, in the units of the picture."""

_ACROSS, _DOWN = 64, 14
"""Between boxes."""

_TITLE = 30
"""Characters of a title in a box."""

_Key = tuple[str, str]


@dataclass(frozen=True)
class Box:
    """A message, note or entry of the summary."""

    place: int
    """Of its account on the page."""
    kind: str
    title: str
    is_in_prompt: bool
    x: int
    y: int


@dataclass(frozen=True)
class SourceGraph:
    """A picture, in its own units."""

    boxes: list[Box]
    lines: list[str]
    """Paths from a source to what came from it."""
    width: int
    height: int


def source_graph(accounts: Sequence[Explanation]) -> SourceGraph | None:
    """Lay accounts out; None when nothing is linked with anything."""
    by_key = {(one.kind, one.id): place for place, one in enumerate(accounts)}
    links: dict[tuple[_Key, _Key], None] = {}
    for one in accounts:
        here = (one.kind, one.id)
        links |= dict.fromkeys(((item.kind, item.id), here) for item in one.comes_from)
        links |= dict.fromkeys((here, (item.kind, item.id)) for item in one.leads_to)
    shown = [(source, target) for source, target in links if source in by_key and target in by_key and source != target]
    if not shown:
        return None
    linked = {key for link in shown for key in link}
    column = dict.fromkeys((key for key in by_key if key in linked), 0)
    # As many rounds as there are boxes at the most, also where corrections go round in a circle.
    for _ in range(min(len(column), 8)):
        for source, target in shown:
            column[target] = max(column[target], min(column[source] + 1, 8))
    boxes: dict[_Key, Box] = {}
    rows: dict[int, int] = {}
    for key, across in column.items():
        row = rows[across] = rows.get(across, -1) + 1
        account = accounts[by_key[key]]
        title = account.title or account.id
        boxes[key] = Box(
            place=by_key[key],
            kind=account.kind,
            title=title if len(title) <= _TITLE else title[: _TITLE - 1].rstrip() + "…",
            is_in_prompt=account.has("in_prompt"),
            x=1 + across * (_WIDTH + _ACROSS),
            y=1 + row * (_HEIGHT + _DOWN),
        )
    return SourceGraph(
        boxes=list(boxes.values()),
        lines=[_line(boxes[source], boxes[target]) for source, target in shown],
        width=2 + max(one.x for one in boxes.values()) + _WIDTH,
        height=2 + max(one.y for one in boxes.values()) + _HEIGHT,
    )


def _line(source: Box, target: Box) -> str:
    x, y = source.x + _WIDTH, source.y + _HEIGHT // 2
    end_x, end_y = target.x, target.y + _HEIGHT // 2
    bend = max((end_x - x) // 2, 24)
    return f"M{x} {y}C{x + bend} {y} {end_x - bend} {end_y} {end_x} {end_y}"
