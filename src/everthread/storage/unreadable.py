"""Rows that cannot be read, damaged or planted: each is named in one sentence, and the rest is read."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pydantic import ValidationError

from everthread.errors import UnreadableError
from everthread.state.records import StoredItem

logger = logging.getLogger(__name__)

T = TypeVar("T")
AnyItem = TypeVar("AnyItem", bound=StoredItem)

FAULTS = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, RecursionError, OverflowError)
"""What decoders and validators raise on bytes and values that are none of ours."""


def record_name(namespace: Sequence[str] | str, key: object) -> str:
    """Name a row of the store."""
    where = namespace if isinstance(namespace, str) else ".".join(namespace)
    return f"the record {key!r} of `{where}`"


def described(name: str, error: BaseException) -> UnreadableError:
    """Return the error for a row that is needed."""
    reason = _reason(error) or type(error).__name__
    return UnreadableError(f"{name} cannot be read ({reason}); `everthread doctor` lists all such rows")


def _reason(error: BaseException) -> str:
    """Return what is wrong in a few words; pydantic's own would quote what the row holds."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['type']}" for one in error.errors())[:120]
    return " ".join(str(error).split())[:120]


def leave_out(name: str, error: BaseException) -> None:
    """Say that a row was left out."""
    logger.warning("left out: %s", error if isinstance(error, UnreadableError) else described(name, error))


def readable(items: Iterable[AnyItem], read: Callable[[AnyItem], T]) -> Iterator[T]:
    """Yield what can be read of records; the others are named in a warning."""
    for item in items:
        try:
            value = read(item)
        except FAULTS as error:
            leave_out(record_name(item.namespace, item.key), error)
        else:
            yield value
