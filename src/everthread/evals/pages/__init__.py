"""Reports as one HTML file each: no network, no script, charts as inline SVG, light and dark."""

from everthread.evals.pages.report import render_report
from everthread.evals.pages.simulation import render_simulation

__all__ = ["render_report", "render_simulation"]
