"""The table of `make attack`: a row for each attack, red when anything was wrong."""

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

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, int]] = {}
        self._broken: set[str] = set()

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
    config.pluginmanager.register(_Table(), "attack-table")
