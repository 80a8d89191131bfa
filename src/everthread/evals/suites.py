"""The evaluation suites by name, and what every one of them reports."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from everthread.errors import SettingsError

Tick = Callable[[int, int, str], None]
"""Called after each case with: cases done, cases in all, name of the case."""

SUITES: Mapping[str, str] = {"compare": "compare", "metrics": "metrics", "replay": "violations"}
"""Names of the suites, each with its module in `everthread.evals`, which has `run`."""

MOVED = ("consolidation", "constraints", "distillation", "guard", "injection", "retention")
"""Suites that need a public data set: they are part of the repository and not of the package."""


@dataclass(frozen=True)
class Options:
    """What a person may set for a run of a suite."""

    budget: int | None = None
    """Tokens that the suite may fill; None takes the suite's own default."""
    limit: int | None = None
    """Only the first so many records."""
    jobs: int = 1
    """Processes to use, by suites that replay conversations."""
    database: str | None = None
    """URL of a Postgres database for what a suite keeps, in schemas of its own; None keeps it in memory."""
    a: str = ""
    """Dials of the first configuration, such as `policy=salience,recall_tokens=0`; `compare` only."""
    b: str = ""
    """Dials of the second one."""
    judge: str | None = None
    """`provider:name` of a model that grades; `compare` only."""
    judge_output: Path | None = None
    """File for the judge's answers, word for word."""
    seed: int = 7
    """Of resampling and of the order in which a judge sees two prompts."""


Cell = str | int | float


@dataclass(frozen=True)
class Table:
    """Figures side by side, the baselines among them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Report:
    """What a suite measured."""

    suite: str
    figures: dict[str, float]
    """Flat names such as `locomo.fraction`, which `--require` can name."""
    tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences on what was left out and why."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the figures depend on, such as the budget in tokens."""

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        tables = [
            {"title": table.title, "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}
            for table in self.tables
        ]
        return {
            "suite": self.suite,
            "settings": self.settings,
            "figures": self.figures,
            "tables": tables,
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class Requirement:
    """A bound on a figure of a report."""

    name: str
    value: float
    is_maximum: bool

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read `NAME=VALUE`, at least, or `NAME<=VALUE`, at most.

        Raises:
            SettingsError: the text has another form.
        """
        name, sign, value = text.partition("=")
        try:
            if not sign:
                raise ValueError
            return cls(name.rstrip("<>").strip(), float(value), name.endswith("<"))
        except ValueError:
            raise SettingsError(f"`--require` takes NAME=VALUE or NAME<=VALUE, got {text!r}") from None

    def failure(self, report: Report) -> str | None:
        """Say how a report misses this bound, or return None.

        Raises:
            SettingsError: the report has no such figure.
        """
        if self.name not in report.figures:
            near = difflib.get_close_matches(self.name, report.figures, n=5, cutoff=0.4) or sorted(report.figures)
            raise SettingsError(f"there is no figure {self.name!r}, but {', '.join(near)}; `--json` prints all of them")
        figure = report.figures[self.name]
        if figure <= self.value if self.is_maximum else figure >= self.value:
            return None
        return f"{self.name} is {figure:g}, and must be at {'most' if self.is_maximum else 'least'} {self.value:g}"


def share(part: float, of: float, *, empty: float = 0.0) -> float:
    """Return a part as a share; `empty` when it is a share of nothing."""
    return part / of if of else empty


def shown(value: object) -> str:
    """Return a figure as people read it."""
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def refusals(reasons: Sequence[str]) -> str:
    """Say how many conversations could not be played, and why the first one could not."""
    several = "conversation" if len(reasons) == 1 else "conversations"
    return f"No figure has {len(reasons):,} {several} that could not be played; the first: {reasons[0]}"


class Suite(Protocol):
    """A module with this function is a suite."""

    def run(self, paths: Sequence[Path], options: Options, tick: Tick) -> Report:
        """Measure on files or folders of records.

        Raises:
            RecordError: a file cannot be read, or holds nothing that this suite can use.
        """
        ...


def suite(name: str) -> Suite:
    """Return a suite by its name.

    Raises:
        SettingsError: there is none of that name, or it has moved.
    """
    if name in MOVED:
        raise SettingsError(
            f"the suite {name!r} needs a public data set and has moved to the repository: "
            f"`python -m benchmarks.suites {name} FILE…` in a checkout"
        )
    if name not in SUITES:
        raise SettingsError(f"there is no suite {name!r}; choose one of {', '.join(SUITES)}")
    return cast(Suite, import_module(f"everthread.evals.{SUITES[name]}"))
