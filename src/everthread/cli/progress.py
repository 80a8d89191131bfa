"""Show how far a long command is: a bar on a terminal, a line at its start and its end elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from everthread.cli.output import err, note

__all__ = ["Progress"]


class Progress:
    """Tells of a command from its first step on; one that is refused at once stays silent.

    Args:
        what: what the command does, such as `erasing thread 't-1'`.
    """

    def __init__(self, what: str) -> None:
        from rich.progress import Progress as Bar

        console = err()
        self._what = what
        self._bar = Bar(console=console, transient=True) if console.is_terminal else None
        self._task = None if self._bar is None else self._bar.add_task("", total=None)
        self._began: float | None = None

    def __enter__(self) -> Progress:
        return self

    def at(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Show a step, and how much of it is done."""
        if self._began is None:
            self._began = time.monotonic()
            if self._bar is None:
                note(f"{self._what} …")
            else:
                self._bar.start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=step, completed=done, total=total)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._began is not None and kind is None:
            note(f"{self._what}: done after {time.monotonic() - self._began:.1f} s")
