"""What erasing and compacting ask of a database: to delete rows for good, to search what is left, to reclaim space."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from everthread.storage.database import Database
from everthread.storage.locks import Locks
from everthread.storage.residue import Hit
from everthread.storage.user_data import UserData

RETENTION = "retention"
"""Mark of what `retain` deletes; all other marks are digests of whom is erased."""


@dataclass(frozen=True)
class Doomed:
    """The rows that an erasure deletes or changes, in all tables."""

    where: UserData
    """What goes, and the notes that get another value."""
    shown: tuple[tuple[str, str, bytes], ...] = ()
    """Records of a prefix that hold a text, and what they get in its place: prefix, text, JSON."""
    added: tuple[tuple[str, str, bytes], ...] = ()
    """Records that are new: prefix, key, JSON."""


@dataclass(frozen=True)
class Found:
    """What a search for erased texts found."""

    hits: list[Hit]
    rows: int
    """Rows that were searched."""
    files: dict[str, int]
    """Bytes of each file that was searched; a server's files are out of reach."""
    left: list[str]
    """Other places that still hold something."""


class Eraser(ABC):
    """Erases from one database, and gives its free space back."""

    reclaiming: ClassVar[str]
    """What `rewrite` and `reclaim` do, in the words of a progress line."""

    _HAS_MARKS: ClassVar[str]  # whether the table of the marks is there
    _MARKED: ClassVar[str]  # mark
    _UNMARK: ClassVar[str]  # mark
    _database: Database

    @property
    @abstractmethod
    def place(self) -> str:
        """What the database is called in a receipt."""

    def hold(self) -> AbstractContextManager[None]:
        """Keep other calls of this storage out where they share a connection."""
        return nullcontext()

    def alone(self) -> AbstractContextManager[None]:
        """Hold it, and keep other erasures of the database out too."""
        return self.hold()

    def is_interrupted(self, mark: str) -> bool:
        """Tell whether an erasure began and was not finished."""
        return bool(self._read(self._HAS_MARKS)[0][0] and self._read(self._MARKED, mark))

    @abstractmethod
    def delete(self, doomed: Doomed, mark: str, began: str) -> list[Any]:
        """Delete all rows in one transaction and leave a mark; return what `rewrite` and `search` need to know."""

    @abstractmethod
    def rewrite(self, spaces: list[Any]) -> None:
        """Let go of the space of deleted rows.

        Raises:
            StorageError: the rows are gone, their bytes may be not.
        """

    @abstractmethod
    def finish(self) -> None:
        """Let go of what is written elsewhere, such as a log."""

    @abstractmethod
    def search(self, sought: list[bytes], spaces: list[Any]) -> Found:
        """Search everything for texts."""

    def unmark(self, mark: str) -> None:
        """Note that an erasure is finished."""
        self._database.write(self._database.rows, self._UNMARK, (mark,))
        self.finish()

    @abstractmethod
    def size(self) -> int:
        """Return the bytes of the database.

        Raises:
            SettingsError: it is in memory.
        """

    @abstractmethod
    def check_idle(self, locks: Locks) -> None:
        """Refuse what no run may be in the way of.

        Raises:
            ThreadBusyError: a run holds a thread.
        """

    @abstractmethod
    def reclaim(self) -> None:
        """Give free space back, and mend the index of words.

        Raises:
            StorageError: it could not be; nothing is lost.
        """

    def _read(self, sql: str, *values: Any) -> list[Any]:
        return self._database.read(self._database.rows, sql, values)
