"""What the rest of the package asks of an open database, whichever it is."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Database(Protocol):
    """One open database; threads share it."""

    def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on one connection.

        Raises:
            StorageError: the database failed, or it is not open in this process.
        """

    def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in one transaction: all that it writes is saved when it returns, or else nothing.

        The function uses `rows`, and neither `read` nor `write`.

        Raises:
            StorageError: the database failed, it is not open in this process, or the run that writes is over.
        """

    def write_one(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that executes one statement, or some of which a part may stay when the process dies.

        Otherwise as `write`; Postgres needs two commands less.
        """

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Execute one statement of this database's own SQL inside of `read` or `write`; return its rows as tuples."""

    def close(self) -> None:
        """Close every connection."""
