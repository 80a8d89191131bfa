"""The rows of a database as they are stored: for those who look at it, export it or erase from it.

LangChain and LangGraph are not imported here, which takes longer than most commands.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from everthread.state import namespaces
from everthread.state.namespaces import Namespace

Execute = Callable[[str, Sequence[Any]], Iterable[Any]]
"""Executes one statement and returns its rows."""

UNANSWERED = (
    "NOT (w.channel = '__interrupt__' AND EXISTS (SELECT 1 FROM {} o WHERE o.thread_id = w.thread_id"
    " AND o.checkpoint_ns = w.checkpoint_ns AND o.checkpoint_id = w.checkpoint_id AND o.task_id = w.task_id"
    " AND o.channel NOT IN ('__interrupt__', '__resume__', '__error__')))"
)
"""Leaves out, of the writes `w` in a table, questions that were answered while another one is open.

The same rule as `adoption.pending_interrupts`, which has rows that LangGraph has read.
"""


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


class Tables(ABC):
    """The rows of LangGraph's tables in one database, whoever wrote them. A table that is not there has no rows.

    A subclass has the statements, each with its parameters in the order in which they are named here.

    Args:
        execute: the database.
    """

    _SAVED_IN: ClassVar[Mapping[str, tuple[str, str]]]
    """What the rows of LangGraph's tables of checkpoints are called; the table, and the bytes of a row of it."""
    _TABLES: ClassVar[str]  # names of the tables that are there
    _PLACEHOLDER: ClassVar[str]
    _LAST_WRITER: ClassVar[str]  # thread
    _BYTES_BELOW: ClassVar[str]  # lowest prefix, first one behind
    _ITEM: ClassVar[str]  # prefix; conditions may follow
    _PAGE: ClassVar[str]  # prefix, keys to skip, limit, offset
    _HAS_WORD: ClassVar[str]  # pattern
    _OF_KINDS: ClassVar[str]  # kinds of events
    _BY_KEY: ClassVar[str]
    _LAST_PLACES: ClassVar[str]  # limit, offset
    _PLACES: ClassVar[str]  # prefix, role
    _BELOW: ClassVar[str]  # prefix, lowest one below it, first one behind
    _NAMED: ClassVar[str]  # prefix, text

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._tables = {str(name) for (name,) in execute(self._TABLES, ())}

    @abstractmethod
    def checkpoint(self, thread_id: str, checkpoint_id: str | None = None) -> StoredCheckpoint | None:
        """Return a checkpoint, the newest unless one is named."""

    @abstractmethod
    def writes(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, bytes, bytes]]:
        """Return what tasks wrote after a checkpoint, in order: channel, kind and bytes of the value.

        A question is not among it once its task has its result.
        """

    @abstractmethod
    def stored_values(self, thread_id: str) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what the checkpoints of a thread hold and what its tasks wrote, oldest first: channel, kind, bytes.

        A whole checkpoint, as SQLite has it, comes with an empty channel.
        """

    @abstractmethod
    def newest_inputs(self, thread_id: str, most: int) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what was last said in a thread: the newest writes of messages, and the newest checkpoint's."""

    @abstractmethod
    def unreadable(self, thread_id: str | None = None) -> Iterator[str]:
        """Yield the names of checkpoints and writes that cannot be read; of one thread, or of all."""

    @abstractmethod
    def unreadable_items(self) -> Iterator[tuple[bytes, bytes, bytes, list[Any]]]:
        """Yield every item as it is stored, to be looked at: namespace text, key, value and both times."""

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread, see `kept_checkpoints`; None: no guarded one."""
        rows = self._rows("checkpoints", self._LAST_WRITER, thread_id)
        return rows[0][0] if rows and isinstance(rows[0][0], int) else None

    def thread_sizes(self) -> dict[str, tuple[int, int]]:
        """Return checkpoints of each thread, and bytes of all its rows, by its id."""
        sizes = Counter[str]()
        for table, size in self._SAVED_IN.values():
            rows = self._rows(table, f"SELECT thread_id, sum({size}) FROM {table} GROUP BY thread_id")
            sizes.update({thread_id: int(total or 0) for thread_id, total in rows})
        counts = self._rows("checkpoints", "SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id")
        return {str(thread_id): (count, sizes[thread_id]) for thread_id, count in counts}

    def bytes_of(self, threads: Sequence[str]) -> dict[str, int]:
        """Return the bytes of all rows of some threads, records of the store included, by their ids."""
        sizes = dict.fromkeys(threads, 0)
        for thread_id in threads:
            prefix = ".".join(namespaces.thread(thread_id))
            rows = self._rows("store", self._BYTES_BELOW, prefix + ".", prefix + "/")
            for table, size in self._SAVED_IN.values():
                rows += self._of_thread(table, f"sum({size})", thread_id)
            sizes[thread_id] = sum(int(size or 0) for (size,) in rows)
        return sizes

    def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""
        return [str(row[0]) for row in self._rows("checkpoints", "SELECT DISTINCT thread_id FROM checkpoints")]

    def row_counts(self, threads: Iterable[str]) -> dict[str, int]:
        """Count the rows of threads by what they are called."""
        counts = Counter[str]()
        for thread_id in threads:
            for name, (table, _) in self._SAVED_IN.items():
                counts[name] += sum(count for (count,) in self._of_thread(table, "count(*)", thread_id))
        return counts

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
        if key is not None:
            return self._items(f"{self._ITEM} AND key = {self._PLACEHOLDER}", namespace, self._text(key))
        sql = self._PAGE.format(order="DESC" if is_last_first else "ASC")
        return self._items(sql, namespace, self._list(skip), limit, offset)

    def keys(self, namespace: Namespace) -> list[str]:
        """Return the keys of exactly one namespace, in no order."""
        sql = f"SELECT key FROM store WHERE prefix = {self._PLACEHOLDER}"
        return [str(self._read_text(key)) for (key,) in self._rows("store", sql, self._text(".".join(namespace)))]

    def holding(
        self, namespace: Namespace, words: Sequence[str], *, limit: int | None = None, offset: int = 0
    ) -> list[tuple[str, bytes]]:
        """Return the items of exactly one namespace whose values hold all of some words.

        Args:
            words: ASCII letters and digits, or others without upper and lower case; in any case, also inside of words.
            limit: most messages of a transcript, those of the last places first; None: all items, in no order.
            offset: messages to leave out ahead of them.
        """
        page, order = ((), "") if limit is None else ((limit, offset), self._LAST_PLACES)
        sql = f"{self._ITEM}{self._HAS_WORD * len(words)}{order}"
        return self._items(sql, namespace, *(f"%{word}%" for word in words), *page)

    def events(self, namespace: Namespace, kinds: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return the events of a ledger of some kinds, or of all when none is named, oldest first."""
        if not kinds:
            return self._items(f"{self._ITEM}{self._BY_KEY}", namespace)
        # Most events are of these kinds.
        without = self._without("event", [one for one in ("prompt_assembled", "injected") if one not in kinds])
        return self._items(f"{self._ITEM}{without}{self._OF_KINDS}{self._BY_KEY}", namespace, self._list(kinds))

    def places(self, namespace: Namespace, role: str) -> list[tuple[str, int]]:
        """Return key and place of every record of a transcript that is of a role, in no order."""
        without = self._without("role", [one for one in ("human", "ai", "tool") if one != role])
        rows = self._rows("store", self._PLACES.format(without=without), self._text(".".join(namespace)), role)
        return [(str(self._read_text(key)), seq) for key, seq in rows if isinstance(seq, int)]

    def below(self, prefix: str) -> list[tuple[str, str, bytes]]:
        """Return the items of a namespace and of all below it, in order: namespace text, key, value."""
        # "/" is the character after ".", so this is every prefix that begins with "prefix.".
        rows = self._rows("store", self._BELOW, prefix, prefix + ".", prefix + "/")
        return [(self._read_text(found), self._read_text(key), self._value(value)) for found, key, value in rows]

    def names(self, namespace: Namespace, text: str) -> bool:
        """Tell whether a value in a namespace holds a text."""
        return bool(self._rows("store", self._NAMED, ".".join(namespace), text))

    def _items(self, sql: str, namespace: Namespace, *values: Any) -> list[tuple[str, bytes]]:
        rows = self._rows("store", sql, self._text(".".join(namespace)), *values)
        return [(self._read_text(key), self._value(value)) for key, value in rows]

    def _of_thread(self, table: str, what: str, thread_id: str) -> list[Any]:
        return self._rows(table, f"SELECT {what} FROM {table} WHERE thread_id = {self._PLACEHOLDER}", thread_id)

    def _rows(self, table: str, sql: str, *values: Any) -> list[Any]:
        return [*self._each(table, sql, *values)]

    def _each(self, table: str, sql: str, *values: Any) -> Iterable[Any]:
        return self._execute(sql, values) if table in self._tables else ()

    @abstractmethod
    def _list(self, texts: Sequence[str]) -> Any:
        """Return some texts as one parameter."""

    def _without(self, field: str, values: Iterable[str]) -> str:
        """Return a condition that leaves out most items with one of some values, where that is less work."""
        return ""

    def _text(self, text: str) -> str:
        """Return a text as the store has it."""
        return text

    def _read_text(self, text: str) -> str:
        """Return a text of the store as it was."""
        return text

    def _value(self, value: Any) -> bytes:
        """Return a value of the store as any database would give it."""
        return value or b""
