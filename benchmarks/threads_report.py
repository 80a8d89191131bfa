"""The tables and the chart of `threads.py`."""

from pathlib import Path
from typing import Any

__all__ = ["TITLES", "chart", "markdown"]


def markdown(results: dict[str, Any]) -> str:
    """Return the figures as tables."""
    parts = [f"# Long-lived threads\n\n`{results['command']}` · {results['machine']} · {results['at']}\n"]
    for name, part in results["parts"].items():
        rows = [f"| {key} | {_shown(value)} |" for key, value in part.items() if not isinstance(value, list)]
        parts.append("\n".join([f"## {TITLES[name]}\n", "| | |", "| --- | ---: |", *rows]) + "\n")
    return "\n".join(parts)


TITLES = {
    "long": "One long thread",
    "opening": "Opening it in a new process",
    "many": "Many threads in one file",
    "recall": "Search and recall over an archive",
}


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def chart(results: dict[str, Any], path: Path) -> bool:
    """Draw the long thread; False when matplotlib is not installed."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return False
    samples = results["parts"]["long"]["samples"]
    turns = [sample["turn"] for sample in samples]
    with rc_context(
        {"svg.hashsalt": "everthread", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(9, 2.8), layout="constrained")
        cost, size, memory = figure.subplots(1, 3)
        cost.plot(turns, [sample["cpu_ms"] for sample in samples], label="CPU")
        cost.plot(turns, [sample["wall_ms"] for sample in samples], label="wall", alpha=0.6)
        cost.set_title("milliseconds a turn, without the model")
        size.plot(turns, [sample["file_bytes"] / sample["turn"] / 1e3 for sample in samples], label="file")
        size.plot(
            turns, [sample["useful_bytes"] / sample["turn"] / 1e3 for sample in samples], label="in use", alpha=0.6
        )
        size.set_title("kilobytes a turn in the database")
        memory.plot(turns, [sample["rss"] / 1e6 for sample in samples])
        memory.set_title("megabytes of memory")
        for axes in (cost, size, memory):
            axes.set_ylim(bottom=0)
            axes.set_xlabel("turn of the thread")
        # The first turns share the bytes of the empty tables among few.
        size.set_ylim(0, 3 * samples[-1]["file_bytes"] / samples[-1]["turn"] / 1e3)
        cost.legend(frameon=False)
        size.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
    return True
