"""What every test shares: loopback only, no settings of the developer's shell, the same examples each time."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import postgres_server

LOOPBACK = ["127.0.0.1", "::1", "localhost"]

# Read when LangChain is imported, so they have to go before the first test module is.
for _name in [name for name in os.environ if name.startswith(("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_"))]:
    del os.environ[_name]

# A test that passes here passes everywhere: no random examples, and no limit on the time of one on a busy machine.
settings.register_profile("everthread", max_examples=40, derandomize=True, deadline=None, database=None)
settings.load_profile("everthread")


ROOT = Path(__file__).parent

CORE = ("test_checkpointer", "test_prune", "test_postgres", "test_guard")
"""Modules whose tests `make test` runs on Postgres too; `.ci/run` runs all of them."""


def pytest_configure(config: pytest.Config) -> None:
    """Begin what the processes of a session share."""
    postgres_server.begin_session()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it in the process that began it, and not in a worker of `pytest-xdist`."""
    if not hasattr(config, "workerinput"):
        postgres_server.end_session()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Close sockets to every other machine, but for live tests; leave attacks and most of Postgres to `.ci/run`."""
    for item in items:
        is_attack = item.path.is_relative_to(ROOT / "attack")
        if is_attack or (item.get_closest_marker("postgres") and item.path.stem not in CORE):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("live") is None:
            item.add_marker(pytest.mark.allow_hosts(LOOPBACK))


def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers `-n auto` starts: a quarter of the time, a test waits for a process or a database."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Keep modules and tests out of garbage collection, which takes a tenth of the suite's time otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset what changes the default model or database; a live test keeps the key it needs."""
    if request.node.get_closest_marker("live") is None:
        for name in [name for name in os.environ if name.startswith(("EVERTHREAD_", "OPENAI_"))]:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgres() -> str:
    """Return the URL of a Postgres server of this session."""
    if postgres_server.binaries() is None:
        pytest.skip(postgres_server.MISSING)
    return postgres_server.server()


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """Give the URL of a Postgres database without any table, a schema of its own."""
    with postgres_server.database(postgres) as url:
        yield url


@pytest.fixture
def postgres_tables(postgres: str) -> Iterator[str]:
    """Give the URL of a Postgres database with all tables and no rows; `postgres_url` when a test changes tables."""
    with postgres_server.tables(postgres) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database, of each kind."""
    url: str = (
        request.getfixturevalue("postgres_tables") if request.param == "postgres" else f"sqlite:///{tmp_path}/a.db"
    )
    return url
