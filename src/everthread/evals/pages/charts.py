"""Charts as inline SVG: stacked bars and lines. Colours come from the page's style, so they follow light and dark."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "Line", "bars", "key", "lines"]

_WIDTH = 760
_LABEL = 205
_END = 95
_ROW = 28

Show = Callable[[float], str]


@dataclass(frozen=True)
class Bar:
    """A row of stacked parts."""

    label: str
    parts: tuple[tuple[str, float, str], ...]
    """Name, size and colour of each part."""
    end: str = ""
    """What stands behind the bar; empty shows the sum."""
    is_quiet: bool = False


@dataclass(frozen=True)
class Line:
    """A curve."""

    label: str
    points: tuple[tuple[float, float], ...]
    colour: str
    is_dashed: bool = False


def bars(title: str, rows: Sequence[Bar], show: Show) -> str:
    """Return stacked bars, one row each; every part tells its figure when it is pointed at."""
    most = max((sum(size for _, size, _ in row.parts) for row in rows), default=0) or 1
    room, height = _WIDTH - _LABEL - _END, _ROW * len(rows) + 6
    told = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">']
    for place, row in enumerate(rows):
        top, left = place * _ROW + 4, float(_LABEL)
        quiet = ' class="quiet"' if row.is_quiet else ""
        told.append(f'<text x="{_LABEL - 10}" y="{top + 15}" text-anchor="end"{quiet}>{escape(row.label)}</text>')
        for name, size, colour in row.parts:
            width = room * size / most
            if width > 0:
                hint = f"{row.label}: {name} {show(size)}"
                told.append(
                    f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW - 8}" fill="var({colour})"'
                    f"><title>{escape(hint)}</title></rect>"
                )
            left += width
        end = row.end or show(sum(size for _, size, _ in row.parts))
        told.append(f'<text x="{left + 8:.1f}" y="{top + 15}"{quiet}>{escape(end)}</text>')
    return "".join([*told, "</svg>"])


def lines(title: str, curves: Sequence[Line], *, across: str, up: str, limit: float | None = None) -> str:
    """Return curves over one pair of axes that begin at 0.

    Args:
        title: what a reader who cannot see it is told.
        curves: the curves.
        across: name of the horizontal axis.
        up: name of the vertical axis.
        limit: a level to mark, such as the window.
    """
    height, left, bottom, top, right = 300, 58, 36, 24, 12
    most_x = max((x for line in curves for x, _ in line.points), default=1) or 1
    most_y = max([y for line in curves for _, y in line.points] + [limit or 0]) * 1.05 or 1

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (_WIDTH - left - right) * x / most_x,
            height - bottom - (height - bottom - top) * y / most_y,
        )

    told = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">']
    for level in _ticks(most_y):
        _, y = at(0, level)
        told.append(f'<line class="grid" x1="{left}" x2="{_WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        told.append(f'<text class="quiet" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{level:,.0f}</text>')
    for step in _ticks(most_x):
        x, _ = at(step, 0)
        told.append(
            f'<text class="quiet" x="{x:.1f}" y="{height - bottom + 17}" text-anchor="middle">{step:,.0f}</text>'
        )
    told.append(f'<text class="quiet" x="{_WIDTH - right}" y="{height - 4}" text-anchor="end">{escape(across)}</text>')
    told.append(f'<text class="quiet" x="{left - 46}" y="13">{escape(up)}</text>')
    if limit is not None:
        _, y = at(0, limit)
        told.append(f'<line class="limit" x1="{left}" x2="{_WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for line in curves:
        path = " ".join(
            f"{'M' if not place else 'L'}{x:.1f} {y:.1f}"
            for place, (x, y) in enumerate(at(*point) for point in line.points)
        )
        dashes = ' stroke-dasharray="2 4"' if line.is_dashed else ""
        told.append(
            f'<path d="{path}" fill="none" stroke="var({line.colour})" stroke-width="2"{dashes}>'
            f"<title>{escape(line.label)}</title></path>"
        )
    return "".join([*told, "</svg>"])


def key(entries: Sequence[tuple[str, str]]) -> str:
    """Return what the colours mean: name and colour of each."""
    told = "".join(f'<span><i style="background:var({colour})"></i>{escape(name)}</span>' for name, colour in entries)
    return f'<div class="key">{told}</div>'


def _ticks(most: float) -> list[float]:
    """Return round levels up to a value, about five of them."""
    step = 10 ** math.floor(math.log10(most / 4)) if most > 0 else 1
    for factor in (1, 2, 5, 10):
        if most / (step * factor) <= 6:
            step *= factor
            break
    return [place * step for place in range(int(most / step) + 1)]
