"""What every test shares: loopback only, no settings of the developer's shell, the same examples each time."""

import gc
import os

import pytest
from hypothesis import settings

LOOPBACK = ["127.0.0.1", "::1", "localhost"]

# Read when LangChain is imported, so they have to go before the first test module is.
for _name in [name for name in os.environ if name.startswith(("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_"))]:
    del os.environ[_name]

# A test that passes here passes everywhere: no random examples, and no limit on the time of one on a busy machine.
settings.register_profile("everthread", derandomize=True, deadline=None, database=None)
settings.load_profile("everthread")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Close sockets to every other machine; only live tests may leave this one."""
    for item in items:
        if item.get_closest_marker("live") is None:
            item.add_marker(pytest.mark.allow_hosts(LOOPBACK))


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
