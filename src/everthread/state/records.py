"""What reading asks of a store: LangGraph's have it, and so has what opens a database without LangGraph."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from everthread.state.namespaces import Namespace

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, SearchItem

AnyItem = TypeVar("AnyItem")

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
    return _pages(lambda offset: store.search(namespace, limit=_PAGE, offset=offset))


def matching(store: "BaseStore", namespace: Namespace, wanted: Mapping[str, Any]) -> "list[SearchItem]":
    """Return all in a namespace and below it that a filter lets through, which the database picks."""
    return _pages(lambda offset: store.search(namespace, filter=dict(wanted), limit=_PAGE, offset=offset))


def _pages(page_from: Callable[[int], Sequence[AnyItem]]) -> list[AnyItem]:
    collected: list[AnyItem] = []
    while page := page_from(len(collected)):
        collected += page
        if len(page) < _PAGE:
            break
    return collected
