"""What tests of the graph share."""

from collections.abc import Iterator

import pytest

from everthread import open_storage
from everthread.storage.open import Storage


@pytest.fixture
def storage() -> Iterator[Storage]:
    """Open a database in memory."""
    with open_storage("sqlite://") as opened:
        yield opened
