"""Ctrl-C comes at every line of guard, locks and storage, and wherever Python lets a signal in.

Python handles a signal when a function begins, when a function written in C has returned, and when a loop goes round.
The exception is kept while the next run goes on, as a notebook or an interactive session keeps the last one: what it
refers to is not cleaned up by chance.
"""

import contextlib
import linecache
import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import everthread
from attack.conftest import AttackRow
from attack.scale import PARTS, part_of, tries
from attack.talk import DURABILITIES, Talk, counted_fetches, idle_faults, left_behind
from everthread import open_storage
from everthread.storage.open import Storage

PACKAGE = Path(everthread.__file__).parent
GUARD = [PACKAGE / "graph" / name for name in ("guard.py", "holds.py", "run.py", "run_steps.py")]
ATTACKED = {contextlib.__file__, *map(str, [*GUARD, *PACKAGE.glob("storage/**/*.py")])}


class Interrupt:
    """Raises `KeyboardInterrupt` at the `at`-th moment of the attacked files; counts the moments.

    Args:
        at: the moment.
        lines: at the begin of a line, else where Python handles signals.
    """

    def __init__(self, at: int, *, lines: bool) -> None:
        self.at, self.lines, self.moments, self.where = at, lines, 0, ""

    def __enter__(self) -> "Interrupt":
        if self.lines:
            sys.settrace(self._trace)
        else:
            sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        sys.setprofile(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in ATTACKED:
            return None
        seen: set[int] = set()

        def lines(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line" and not _takes_no_signal(frame, is_back=frame.f_lineno in seen):
                self._moment(frame)
            seen.add(frame.f_lineno)
            return lines

        return lines

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename in ATTACKED:
            self._moment(frame)

    def _moment(self, frame: FrameType) -> None:
        self.moments += 1
        if self.moments == self.at:
            self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
            self.__exit__()
            raise KeyboardInterrupt


def _takes_no_signal(frame: FrameType, *, is_back: bool) -> bool:
    """Tell whether a line is a bare `try:`, or a `with` to which Python comes back on the way out.

    There it takes no signal, and what a trace function raises there is covered by no handler.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return line == "try:" or (is_back and line.startswith(("with ", "async with ")))


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=3) as opened, counted_fetches():
        yield opened


def run(talk: Talk, way: str, durability: str) -> None:
    options = talk.options(durability)
    if way == "invoke":
        talk.graph.invoke(talk.message, talk.config, **options)
    else:
        for _ in talk.graph.stream(talk.message, talk.config, **options):
            pass


def attack(talk: Talk, way: str, durability: str, interrupt: Interrupt) -> BaseException | None:
    """Interrupt a run; return the exception, which has to be kept."""
    try:
        with interrupt:
            run(talk, way, durability)
    except KeyboardInterrupt as error:
        return error
    return None


def moments_of(storage: Storage, *, lines: bool) -> int:
    talk, most = Talk(storage, 0), 0
    for _ in range(5):
        attack(talk, "invoke", "sync", interrupt := Interrupt(-1, lines=lines))
        most = max(most, interrupt.moments)
        assert talk.again() == []
    return most


both_ways = pytest.mark.parametrize("lines", [True, False], ids=["lines", "signals"])
# What is interrupted in a `__del__` is only printed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@both_ways
@pytest.mark.parametrize("part", PARTS)
def test_a_run_that_is_interrupted_at_any_moment_leaves_nothing_behind(
    part: int, lines: bool, storage: Storage, attack_row: AttackRow
) -> None:
    threads, chance, most = set(threading.enumerate()), random.Random(part), moments_of(storage, lines=lines)
    talk, numbers, wrong = Talk(storage, 1), part_of(range(tries(10, 1_000)), part), list[str]()
    for number in numbers:
        way, durability = chance.choice(["invoke", "stream"]), chance.choice(DURABILITIES)
        interrupt = Interrupt(1 + int(number * 0.618034 % 1 * most), lines=lines)
        kept = attack(talk, way, durability, interrupt)
        found = left_behind(storage)
        # A connection that is locked would never let the next run in.
        assert not any("locked" in fault for fault in found), interrupt.where
        found += talk.again()
        wrong += [f"{way}, {durability}, {interrupt.where}: {fault}" for fault in found]
        del kept
    wrong += idle_faults(storage, threads)
    attack_row("interrupted runs, 1 thread", len(numbers), len(wrong))
    assert wrong == []


@both_ways
def test_twenty_threads_whose_runs_are_interrupted_at_once_all_go_on(
    lines: bool, storage: Storage, attack_row: AttackRow
) -> None:
    threads, most, wrong = set(threading.enumerate()), moments_of(storage, lines=lines), list[str]()
    count = -(-tries(20, 1_000) // 20) * 20

    def talked(number: int) -> None:
        talk, chance = Talk(storage, number), random.Random(number)
        for _ in range(count // 20):
            way, durability = chance.choice(["invoke", "stream"]), chance.choice(DURABILITIES)
            interrupt = Interrupt(chance.randint(1, most), lines=lines)
            kept = attack(talk, way, durability, interrupt)
            wrong.extend(f"{way}, {durability}, {interrupt.where}: {fault}" for fault in talk.again())
            del kept

    with ThreadPoolExecutor(20) as pool:
        for done in [pool.submit(talked, number) for number in range(1, 21)]:
            done.result(600)
    wrong += idle_faults(storage, threads)
    attack_row("interrupted runs, 20 threads", count, len(wrong))
    assert wrong == []


def test_a_database_whose_opening_is_interrupted_opens(tmp_path: Path, attack_row: AttackRow) -> None:
    count, wrong, url = tries(5, 400), list[str](), f"sqlite:///{tmp_path}/a.db"
    with Interrupt(-1, lines=True) as whole:
        open_storage(url).close()
    threads = set(threading.enumerate())
    for number in range(count):
        path = tmp_path / f"{number}.db"
        with suppress(KeyboardInterrupt), Interrupt(1 + number % whole.moments, lines=True) as interrupt:
            open_storage(f"sqlite:///{path}").close()
        with open_storage(f"sqlite:///{path}") as storage:
            wrong += [f"{interrupt.where}: {fault}" for fault in idle_faults(storage, threads)]
    attack_row("interrupted openings", count, len(wrong))
    assert wrong == []
