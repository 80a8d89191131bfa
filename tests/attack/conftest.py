"""The table of `make attack`: a row for each attack, red when anything was wrong."""

import os
import time
from collections.abc import Callable

import pytest

AttackRow = Callable[[str, int, int], None]
"""Takes an attack, how often it was tried, and how often something was wrong."""

_ROW = "attack"


@pytest.fixture
def attack_row(request: pytest.FixtureRequest) -> AttackRow:
    """Record a row of the table; rows of one attack are added up."""

    def add(attack: str, tries: int, failures: int) -> None:
        request.node.user_properties.append((_ROW, (attack, tries, failures)))

    return add


class _Table:
    """Collects the rows of every process that runs tests."""

    def __init__(self, *, tells: bool) -> None:
        self.rows: dict[str, tuple[int, int]] = {}
        self._broken: set[str] = set()
        self._tells, self._began = tells, time.monotonic()
        self._reporter: pytest.TerminalReporter | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._reporter = session.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._broken.add(report.nodeid)
        if report.when != "teardown":
            return
        rows = [tuple(value) for name, value in report.user_properties if name == _ROW]
        if report.nodeid in self._broken and not any(failures for *_, failures in rows):
            # It broke off before it could count.
            rows.append((report.nodeid.split("::", 1)[-1], 1, 1))
        for attack, tries, failures in rows:
            before = self.rows.get(attack, (0, 0))
            self.rows[attack] = (before[0] + tries, before[1] + failures)
            self._tell(attack)

    def _tell(self, attack: str) -> None:
        """Print how far the long form is."""
        if self._reporter is None or not self._tells:
            return
        minutes, seconds = divmod(round(time.monotonic() - self._began), 60)
        tries, failures = self.rows[attack]
        line = f"{minutes:3}:{seconds:02} {attack}: {tries:,} tries, {failures:,} failures"
        self._reporter.ensure_newline()
        self._reporter.line(line, red=bool(failures))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if any(failures for _, failures in self.rows.values()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.rows:
            return
        terminalreporter.section("attacks")
        width = max(map(len, self.rows))
        terminalreporter.line(f"{'attack':<{width}}  {'tries':>9}  {'failures':>9}")
        for attack, (tries, failures) in sorted(self.rows.items()):
            line = f"{attack:<{width}}  {tries:>9,}  {failures:>9,}"
            terminalreporter.line(line, red=bool(failures), green=not failures)


def pytest_configure(config: pytest.Config) -> None:
    is_long = float(os.environ.get("EVERTHREAD_ATTACK", "1")) > 1
    config.pluginmanager.register(_Table(tells=is_long), "attack-table")
