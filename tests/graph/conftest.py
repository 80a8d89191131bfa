"""What tests of the graph share."""

from collections.abc import Iterator

import pytest

from everthread import open_storage
from everthread.storage.open import Storage


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    """Open an empty database, of each kind."""
    with open_storage("sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres_url")) as opened:
        yield opened
