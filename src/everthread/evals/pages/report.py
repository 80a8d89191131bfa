"""The page of an evaluation suite."""

from html import escape

from everthread.evals.pages.layout import frame, table
from everthread.evals.suites import Report

__all__ = ["render_report"]


def render_report(report: Report) -> str:
    """Return a suite's report as one HTML file."""
    body = []
    for one in report.tables:
        body.append(f"<h2>{escape(one.title[:1].upper() + one.title[1:])}</h2>")
        body.append(table(one.columns, one.rows))
    body += [f'<p class="note">{escape(remark)}</p>' for remark in report.remarks]
    figures = [(name, float(value)) for name, value in report.figures.items()]
    told = table(("figure", "value"), figures)
    body.append(f"<details><summary>Every figure, by the name that --require takes</summary>{told}</details>")
    settings = ", ".join(f"{name} {value}" for name, value in report.settings.items())
    return frame(f"Evaluation: {report.suite}", settings or "No settings.", body)
