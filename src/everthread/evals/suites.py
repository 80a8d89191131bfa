"""The evaluation suites by name, and what every one of them reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from everthread.errors import SettingsError

__all__ = ["SUITES", "Options", "Report", "Suite", "Table", "refusals", "suite"]

Tick = Callable[[int, int, str], None]
"""Called after each case with: cases done, cases in all, what was just done."""

SUITES: Mapping[str, str] = {
    "compare": "comparing",
    "consolidation": "consolidation",
    "constraints": "constraints",
    "distillation": "distillation",
    "guard": "guard",
    "injection": "injection",
    "metrics": "metrics",
    "replay": "violations",
    "retention": "retention",
}
"""Names of the suites, each with its module in `everthread.evals`, which has `run`."""


@dataclass(frozen=True)
class Options:
    """What a person may set for a run of a suite."""

    budget: int | None = None
    """Tokens that the suite may fill; None takes the suite's own default."""
    limit: int | None = None
    """Only the first so many records."""
    jobs: int = 1
    """Processes to use, by suites that replay conversations."""
    a: str = ""
    """Dials of the first configuration, such as `policy=salience,recall_tokens=0`; `compare` only."""
    b: str = ""
    """Dials of the second one."""
    judge: str | None = None
    """`provider:name` of a model that grades; `compare` only."""
    judge_output: Path | None = None
    """File for what the judge answered, word for word."""
    seed: int = 7
    """Of resampling and of the order in which a judge sees two prompts."""


@dataclass(frozen=True)
class Table:
    """Figures side by side, the baselines among them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


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


def refusals(stopped: Sequence[str]) -> str:
    """Say how many conversations could not be played, and why the first one could not."""
    several = "conversation" if len(stopped) == 1 else "conversations"
    return f"No figure has {len(stopped):,} {several} that could not be played; the first: {stopped[0]}"


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
        SettingsError: there is none of that name.
    """
    if name not in SUITES:
        raise SettingsError(f"there is no suite {name!r}; choose one of {', '.join(SUITES)}")
    return cast(Suite, import_module(f"everthread.evals.{SUITES[name]}"))
