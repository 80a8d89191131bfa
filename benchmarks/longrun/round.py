"""Run the threads of all contenders side by side: a few turns of each at a time, so that noise hits all alike."""

import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from longrun.thread import Job, serve

_SLICE = 10
"""Turns that a contender runs before the next one has its go."""

_GRACE_SECONDS = 60.0
"""What a process may take beyond its own limit for a start and a report."""


def run(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Run jobs in processes of their own, taking turns.

    Returns:
        A report for each job, in order.
    """
    sides = [_Side(job) for job in jobs]
    try:
        while waiting := [side for side in sides if side.report is None]:
            for side in waiting:
                side.step()
    finally:
        for side in sides:
            side.end()
    return [{**asdict(side.job), **(side.report or {})} for side in sides]


class _Side:
    """This end of one contender's process."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.report: dict[str, Any] | None = None
        context = multiprocessing.get_context("spawn")
        self._pipe: Connection
        self._pipe, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=serve, args=(job, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._shown = 0.0

    def step(self) -> None:
        """Let the contender run some turns; take its report when there are none left."""
        self._send(_SLICE)
        told = self._receive()
        if told.get("is_done") and "status" not in told:
            told = self._receive()
        if "status" in told:
            self.report = {name: value for name, value in told.items() if name != "is_done"}
            self._show(str(told.get("error") or told["status"]))
        elif time.monotonic() - self._shown > 5:
            self._show(f"{told['turns']} of {self.job.turns} turns")

    def end(self) -> None:
        """Stop the process, which has nothing left to do."""
        self._pipe.close()
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()

    def _send(self, turns: int) -> None:
        try:
            self._pipe.send(turns)
        except OSError:  # it has failed already; its report is in the pipe
            return

    def _receive(self) -> dict[str, Any]:
        if not self._pipe.poll(self.job.seconds + _GRACE_SECONDS):
            return {"status": "stopped", "error": "one turn took longer than the limit"}
        try:
            told: dict[str, Any] = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            return {"status": "error", "error": f"the process died with code {self._process.exitcode}"}
        return told

    def _show(self, state: str) -> None:
        self._shown = time.monotonic()
        name = f"{self.job.workload} · {self.job.turns:>5} · {self.job.mode:<7} · {self.job.contender:<34}"
        print(f"{name} {state}", file=sys.stderr, flush=True)
