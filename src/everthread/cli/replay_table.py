"""Tables of figures, of which none is ever cut: whole in a pipe, in several parts on a narrow terminal."""

from collections.abc import Collection, Iterator, Sequence

from everthread.cli.output import out, plain, say

__all__ = ["print_table"]

_GAP = "  "

Row = Sequence[str]


def print_table(columns: Row, rows: Sequence[Row], *, words: Collection[str] = (), dim: Collection[int] = ()) -> None:
    """Print a table on stdout.

    Args:
        columns: headings; the first column has names, which every part repeats.
        rows: cells, as many as there are columns.
        words: headings of columns that stand on the left like the names.
        dim: places of rows that step back.
    """
    told = [tuple(map(plain, row)) for row in (columns, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*told, strict=True)]
    left = {0, *(place for place, column in enumerate(columns) if column in words)}
    console = out()
    for part, chosen in enumerate(_parts(widths, console.width if console.is_terminal else None)):
        if part:
            say()
        for place, row in enumerate(told):
            cells = [f"{row[one]:<{widths[one]}}" if one in left else f"{row[one]:>{widths[one]}}" for one in chosen]
            say(_GAP.join(cells).rstrip(), "bold" if not place else "dim" if place - 1 in dim else "")


def _parts(widths: Sequence[int], room: int | None) -> Iterator[list[int]]:
    """Yield the columns of each part: the names, and as many figures as there is room for, at least one."""
    chosen, used = [0], widths[0]
    for place, width in enumerate(widths[1:], start=1):
        if room is not None and used + len(_GAP) + width > room and len(chosen) > 1:
            yield chosen
            chosen, used = [0], widths[0]
        chosen.append(place)
        used += len(_GAP) + width
    yield chosen
