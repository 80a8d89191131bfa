"""The rows of a database as they are stored: for those who look at it, export it or erase from it.

LangChain and LangGraph are not imported here, which takes longer than most commands.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from everthread.state.namespaces import Namespace

__all__ = ["StoredCheckpoint", "Tables", "Undecoded"]


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint of a thread's own namespace."""

    id: str
    parent: str | None
    values: Callable[[], dict[str, Any]]
    """Decodes its channels; raises one of the `FAULTS` when they cannot be."""
    saved_at: Callable[[], str]
    """Returns when it was saved, ISO 8601; empty when it does not say so."""


class Undecoded(bytes):
    """A value that cannot be decoded, as it is stored."""


class Tables(Protocol):
    """The rows of LangGraph's tables in one database, whoever wrote them. A table that is not there has no rows."""

    @property
    def has_checkpoints(self) -> bool:
        """Whether the database has tables of checkpoints."""

    def checkpoint(self, thread_id: str, checkpoint_id: str | None = None) -> StoredCheckpoint | None:
        """Return a checkpoint, the newest unless one is named."""

    def writes(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, bytes, bytes]]:
        """Return what tasks wrote after a checkpoint, in order: channel, kind and bytes of the value."""

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread, see `kept_checkpoints`; None: no guarded one."""

    def thread_sizes(self) -> dict[str, tuple[int, int]]:
        """Return checkpoints of each thread, and bytes of all its rows, by its id."""

    def bytes_of(self, threads: Sequence[str]) -> dict[str, int]:
        """Return the bytes of all rows of some threads, records of the store included, by their ids."""

    def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""

    def row_counts(self, threads: Iterable[str]) -> dict[str, int]:
        """Count the rows of threads by table."""

    def stored_values(self, thread_id: str) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what the checkpoints of a thread hold and what its tasks wrote, oldest first: channel, kind, bytes.

        A whole checkpoint, as SQLite has it, comes with an empty channel.
        """

    def newest_inputs(self, thread_id: str, most: int) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what was last said in a thread: the newest writes of messages, and the newest checkpoint's."""

    def page(
        self,
        namespace: Namespace,
        *,
        key: str | None = None,
        skip: Sequence[str] = (),
        limit: int = 1,
        offset: int = 0,
        is_last_first: bool = False,
    ) -> list[tuple[str, bytes]]:
        """Return items of exactly one namespace by key, as key and value, without the keys to skip."""

    def keys(self, namespace: Namespace) -> list[str]:
        """Return the keys of exactly one namespace, in no order."""

    def holding(
        self, namespace: Namespace, words: Sequence[str], *, limit: int | None = None, offset: int = 0
    ) -> list[tuple[str, bytes]]:
        """Return the items of exactly one namespace whose values hold all of some words.

        Args:
            namespace: where they are.
            words: ASCII letters and digits, or others without upper and lower case; in any case, also inside of words.
            limit: most messages of a transcript, those of the last places first; None: all items, in no order.
            offset: messages to leave out ahead of them.
        """

    def events(self, namespace: Namespace, kinds: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return the events of a ledger of some kinds, or of all when none is named, oldest first."""

    def places(self, namespace: Namespace, role: str) -> list[tuple[str, int]]:
        """Return key and place of every record of a transcript that is of a role, in no order."""

    def below(self, prefix: str) -> list[tuple[str, str, bytes]]:
        """Return the items of a namespace and of all below it, in order: namespace text, key, value."""

    def names(self, namespace: Namespace, text: str) -> bool:
        """Tell whether a value in a namespace holds a text."""

    def unreadable(self, thread_id: str | None = None) -> Iterator[str]:
        """Yield the names of checkpoints and writes that cannot be read; of one thread, or of all."""

    def unreadable_items(self) -> Iterator[tuple[bytes, bytes, bytes, list[Any]]]:
        """Yield every item as it is stored, to be looked at: namespace text, key, value and both times."""
