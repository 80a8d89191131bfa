"""The parts of a page: frame, table, cards."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

__all__ = ["cards", "frame", "number", "table"]

Cell = str | int | float


def frame(title: str, lead: str, body: Sequence[str]) -> str:
    """Return a whole page that opens from a file, without a network.

    Args:
        title: a text.
        lead: one sentence below the title, a text.
        body: sections as HTML.
    """
    style = files("everthread.evals.pages").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # The page holds names from files; nothing in it may load or run anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n'
        + "\n".join(body)
        + "\n<footer>Made by <code>everthread</code>.</footer>\n</main>\n</body>\n</html>\n"
    )


def cards(facts: Sequence[tuple[str, str]]) -> str:
    """Return figures that are read first: each a value and what it is."""
    told = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in facts
    )
    return f'<div class="cards">{told}</div>'


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    ours: Sequence[bool] = (),
    marks: dict[tuple[int, int], str] | None = None,
) -> str:
    """Return a table.

    Args:
        columns: headings.
        rows: cells; the first of each names the row.
        ours: which rows to set off.
        marks: class of a cell, by row and column, such as `best` or `bad`.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = ""
    for place, row in enumerate(rows):
        kind = ' class="ours"' if place < len(ours) and ours[place] else ""
        cells = ""
        for column, cell in enumerate(row):
            mark = (marks or {}).get((place, column))
            cells += f'<td class="{mark}">' if mark else "<td>"
            cells += f"{escape(number(cell))}</td>"
        body += f"<tr{kind}>{cells}</tr>\n"
    return f'<div class="box"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def number(cell: Cell) -> str:
    """Return a cell as people read it."""
    if isinstance(cell, float):
        return f"{cell:,.3f}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
