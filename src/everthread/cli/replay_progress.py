"""The bar of long work on recorded conversations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from everthread.cli.output import err, shortened

if TYPE_CHECKING:
    from everthread.evals.suites import Tick

__all__ = ["progress"]


@contextmanager
def progress(*, hidden: bool) -> Iterator[Tick]:
    """Show a bar on stderr, when that is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[name]}", markup=False),
    )
    with Progress(*columns, console=err(), disable=hidden or not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("", total=None, name="")
        yield lambda done, total, name: bar.update(task, completed=done, total=total, name=shortened(name, 50))
