"""What tests of the graph share."""

from collections.abc import Iterator

import pytest

from everthread import open_storage
from everthread.storage.open import Storage


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    """Open an empty database, of each kind."""
    url = request.getfixturevalue("postgres_tables") if request.param == "postgres" else "sqlite://"
    with open_storage(url) as opened:
        yield opened
