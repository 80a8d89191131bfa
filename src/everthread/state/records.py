"""What reading asks of a store: LangGraph's have it, and so has what opens a database without LangGraph."""

from collections.abc import Sequence
from typing import Any, Protocol

from everthread.state.namespaces import Namespace

__all__ = ["RecordReader", "StoredItem", "items"]

_PAGE = 10_000
"""A store sorts all of a namespace for each page, so that small pages of a long ledger take several times as long."""


class StoredItem(Protocol):
    """One item."""

    @property
    def namespace(self) -> Namespace:
        """Where it is."""

    @property
    def key(self) -> str:
        """Its name there."""

    @property
    def value(self) -> dict[str, Any]:
        """What it holds, as JSON."""


class RecordReader(Protocol):
    """A store, as far as it is read."""

    def get(self, namespace: Namespace, key: str, /) -> StoredItem | None:
        """Return one item."""

    def search(self, namespace: Namespace, /, *, limit: int, offset: int) -> Sequence[StoredItem]:
        """Return a page of a namespace's items."""


def items(store: RecordReader, namespace: Namespace) -> list[StoredItem]:
    """Return everything in a namespace."""
    collected: list[StoredItem] = []
    while page := store.search(namespace, limit=_PAGE, offset=len(collected)):
        collected += page
        if len(page) < _PAGE:
            break
    return collected
