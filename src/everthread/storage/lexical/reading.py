"""Read items by name: any number of items and of whole namespaces with one statement."""

from collections.abc import Sequence
from typing import Any

import orjson
from langgraph.store.base import GetOp, Item, SearchItem, SearchOp

from everthread.state.namespaces import Namespace
from everthread.storage.lexical.plans import Plan, Row, Statement

MOST_PARTS = 100
"""Namespaces and searches in one statement; SQLite takes 500."""

MOST_KEYS = 10_000
"""Items in one statement; SQLite takes 32,766 parameters."""

_COLUMNS = "prefix, key, value, created_at, updated_at"


def read(ops: Sequence[GetOp | SearchOp], loader: Any) -> Plan[list[Any]]:
    """Answer reads in their order: an item or None for each `GetOp`, a list for each `SearchOp`.

    Args:
        ops: of at most `MOST_PARTS` namespaces; searches have neither a query nor a filter.
        loader: reads values; None for JSON.
    """
    load = loader or orjson.loads
    keys: dict[Namespace, list[str]] = {}
    for op in ops:
        if isinstance(op, GetOp):
            keys.setdefault(op.namespace, []).append(op.key)
    parts: list[str] = []
    values: list[Any] = []
    for namespace, wanted in keys.items():
        marks = ", ".join("?" * len(wanted))
        parts.append(f"SELECT -1, {_COLUMNS} FROM store WHERE prefix = ? AND key IN ({marks})")
        values += [".".join(namespace), *wanted]
    for place, op in enumerate(ops):
        if isinstance(op, SearchOp):
            condition, bound = _under(op.namespace_prefix)
            newest = f"SELECT {_COLUMNS} FROM store WHERE {condition} ORDER BY updated_at DESC LIMIT ? OFFSET ?"
            parts.append(f"SELECT {place}, * FROM ({newest})")
            values += [*bound, op.limit, op.offset]
    items: dict[tuple[str, str], Row] = {}
    lists: dict[int, list[Row]] = {}
    for place, *row in (yield Statement(" UNION ALL ".join(parts), values)):
        if place < 0:
            items[row[0], row[1]] = tuple(row)
        else:
            lists.setdefault(place, []).append(tuple(row))
    return [
        _item(op, items.get((".".join(op.namespace), op.key)), load)
        if isinstance(op, GetOp)
        else _found(lists.get(place, ()), load)
        for place, op in enumerate(ops)
    ]


def _under(prefix: Namespace) -> tuple[str, tuple[str, ...]]:
    """Return the condition for a namespace and those below it.

    A range instead of LangGraph's GLOB: SQLite plans a statement with a pattern anew each time that it is run.
    """
    if not prefix:
        return "TRUE", ()
    path = ".".join(prefix)
    # The slash is the character behind the period.
    return "(prefix = ? OR (prefix > ? AND prefix < ?))", (path, f"{path}.", f"{path}/")


def _item(op: GetOp, row: Row | None, load: Any) -> Item | None:
    if row is None:
        return None
    _, key, value, created, updated = row
    return Item(value=load(value), key=key, namespace=op.namespace, created_at=created, updated_at=updated)


def _found(rows: Sequence[Row], load: Any) -> list[SearchItem]:
    # A compound statement promises no order across its parts.
    newest_first = sorted(rows, key=lambda row: row[4], reverse=True)
    return [
        SearchItem(tuple(prefix.split(".")), key, load(value), created, updated)
        for prefix, key, value, created, updated in newest_first
    ]
