"""Carry the changes of the store over to the index: those noted by the triggers, and one's own as they are written."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from langgraph.store.base import PutOp

from everthread.memory.text.words import index_words
from everthread.storage.lexical.plans import Plan, Row, Statement
from everthread.storage.lexical.texts import Paths, TextFields, texts

Indexing = Mapping[tuple[str, str], Paths]
"""What `put` was told to index, by namespace text and key."""

OFTEN = "²"
"""Ends the word of an item that holds it twice or more; without positions the index cannot count."""

_CHUNK = 500

_CHANGED = f"""
    SELECT c.space, c.item, c.old, s.value, n.ns, d.doc, d.words, p.paths
    FROM lexical_changes c
    LEFT JOIN store s ON s.prefix = c.space AND s.key = c.item
    LEFT JOIN lexical_spaces n ON n.prefix = c.space
    LEFT JOIN lexical_docs d ON d.ns = n.ns AND d.key = c.item
    LEFT JOIN lexical_paths p ON p.id = d.paths
    LIMIT {_CHUNK}
"""

_NUMBERS = "SELECT value FROM lexical_meta WHERE name IN ('doc', 'ns') ORDER BY name"

# One row at a time: many in one VALUES clause go through a temporary table, since the table has triggers.
_PUT = (
    "INSERT OR REPLACE INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " VALUES (?, ?, ?, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, ?, ?)"
)

_STANDING = (
    "SELECT NULL, count(*) FROM lexical_changes UNION ALL"
    " SELECT prefix, ns FROM lexical_spaces WHERE prefix IN (SELECT space FROM lexical_changes)"
)

_INDEXED = """
    SELECT c.item, c.old, d.doc, d.words, p.paths
    FROM lexical_changes c
    JOIN lexical_docs d ON d.ns = ? AND d.key = c.item
    LEFT JOIN lexical_paths p ON p.id = d.paths
    WHERE c.space = ?
"""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def space_name(ns: int) -> str:
    """Return the number of a namespace as it ends the words of its items, in base 36."""
    name = ""
    while ns:
        ns, digit = divmod(ns, 36)
        name = _DIGITS[digit] + name
    return name


def catch_up(default: TextFields | None = None, told: Indexing | None = None) -> Plan[int]:
    """Bring the index up to date with one chunk of changes, inside the caller's transaction.

    Args:
        default: which text counts when `put` did not say.
        told: what `put` said. A change of somebody else keeps the paths that its item had.

    Returns:
        Number of changes carried over; 0 when there are none left.
    """
    rows = yield Statement(_CHANGED)
    if not rows:
        return 0
    work = _Work((yield Statement(_NUMBERS)))
    for row in rows:
        work.change(row, default, told or {})
    yield from work.write()
    if len(rows) < _CHUNK:  # that was all, and nobody else can write until this transaction ends
        yield Statement("DELETE FROM lexical_changes")
    else:
        done = [row[:2] for row in rows]
        yield Statement("DELETE FROM lexical_changes WHERE space = ? AND item = ?", done, is_many=True)
    return len(rows)


def put(ops: Sequence[PutOp], default: TextFields | None = None) -> Plan[None]:
    """Write items and carry them over to the index, inside the caller's transaction.

    What was written here is known here, so nothing of it is read back. Only items that the index holds
    already are looked up, and nothing at all is for those that are in no index.

    Args:
        ops: without embeddings. Of several for one key the last counts.
        default: see `catch_up`.
    """
    told = {(".".join(op.namespace), op.key): op for op in ops}
    values = {place: orjson.dumps(dict(op.value)) for place, op in told.items() if op.value is not None}
    gone = [place for place, op in told.items() if op.value is None]
    if gone:
        yield Statement("DELETE FROM store WHERE prefix = ? AND key = ?", gone, is_many=True)
    if values:
        rows = [(*place, value, *_expiry(told[place].ttl)) for place, value in values.items()]
        yield Statement(_PUT, rows, is_many=True)
    ((_, noted), *spaces) = yield Statement(_STANDING)
    if gone or noted != len(told):  # somebody else's changes are waiting too
        yield from catch_up_fully(default, {place: op.index for place, op in told.items()})
        return
    if spaces or not all(op.index is False for op in told.values()):
        yield from _index(values, {place: op.index for place, op in told.items()}, default, dict(spaces))
    yield Statement("DELETE FROM lexical_changes")


def _expiry(ttl_minutes: float | None) -> tuple[str | None, float | None]:
    """Return when an item expires and its lifetime, as LangGraph's store writes them."""
    if ttl_minutes is None:
        return None, None
    return (datetime.now(UTC) + timedelta(minutes=ttl_minutes)).isoformat(" "), ttl_minutes


def _index(
    values: Mapping[tuple[str, str], bytes], told: Indexing, default: TextFields | None, spaces: Mapping[str, int]
) -> Plan[None]:
    """Index what was just written and is noted in `lexical_changes`.

    Args:
        values: JSON by namespace text and key.
        told: what `put` said.
        default: see `catch_up`.
        spaces: numbers of the namespaces that hold items already.
    """
    contents: dict[tuple[str, str], Any] = {}
    if default is not None:
        contents = {place: orjson.loads(values[place]) for place, index in told.items() if index is None}
        told = {
            place: default(tuple(place[0].split(".")), contents[place]) if index is None else index
            for place, index in told.items()
        }
        if not spaces and all(index is False for index in told.values()):
            return
    known: dict[tuple[str, str], Row] = {}
    for prefix, ns in spaces.items():
        rows = yield Statement(_INDEXED, (ns, prefix))
        known |= {(prefix, row[0]): row[1:] for row in rows}
    work = _Work((yield Statement(_NUMBERS)))
    for (prefix, key), value in values.items():
        old, *rest = known.get((prefix, key), (None, None, None, None))
        row = (prefix, key, old, value, spaces.get(prefix), *rest)
        work.change(row, None, told, contents.get((prefix, key)))
    yield from work.write()


def has_changes() -> Plan[bool]:
    """Tell whether the store has changes that the index has not."""
    rows = yield Statement("SELECT EXISTS (SELECT 1 FROM lexical_changes)")
    return bool(rows[0][0])


def catch_up_fully(default: TextFields | None = None, told: Indexing | None = None) -> Plan[None]:
    """Bring the index up to date inside the caller's transaction; see `catch_up`."""
    while (yield from catch_up(default, told)) == _CHUNK:
        pass


class _Work:
    """What one chunk of changes writes."""

    def __init__(self, numbers: list[Row]) -> None:
        self.next_doc, self.next_ns = (int(row[0]) for row in numbers)
        self.spaces: dict[str, int] = {}
        self.grown: Counter[int] = Counter()
        self.longer: Counter[int] = Counter()
        self.last: dict[int, int] = {}
        self.gone: list[tuple[int]] = []
        self.gone_entries: list[tuple[int, str]] = []
        self.docs: list[tuple[int, int, str, int, str | None]] = []
        self.entries: list[tuple[int, str]] = []
        self.new_spaces: list[tuple[int, str, int]] = []

    def change(self, row: Row, default: TextFields | None, told: Indexing, content: Any = None) -> None:
        prefix, key, old, value, ns, doc, length, known = row
        paths: Paths = False
        if value is not None:
            paths = told.get((prefix, key))
            if doc is not None and (prefix, key) not in told:
                paths = json.loads(known) if known else None
            elif paths is None and default is not None:
                content = _loads(value)
                paths = default(tuple(prefix.split(".")), content)
        if doc is not None:
            if old == value and paths is not False and _noted(paths) == known:
                return  # written again as it was
            self._remove(doc, ns, length, old, known)
        if paths is not False:
            content = _loads(value) if content is None else content
            self._add(prefix, key, ns, Counter(index_words(texts(content, paths))), paths)

    def _remove(self, doc: int, ns: int, length: int, old: Any, paths: str | None) -> None:
        self.gone.append((doc,))
        self.grown[ns] -= 1
        self.longer[ns] -= length
        if old is not None:  # None: the entry went with its table
            words = Counter(index_words(texts(_loads(old), json.loads(paths) if paths else None)))
            self.gone_entries.append((doc, _entry(words, ns)))

    def _add(self, prefix: str, key: str, ns: int | None, words: dict[str, int], paths: Sequence[str] | None) -> None:
        if not words:
            return
        length = sum(words.values())
        ns = ns if ns is not None else self.spaces.get(prefix)
        if ns is None:
            ns = self.spaces[prefix] = self.next_ns
            self.new_spaces.append((ns, prefix, self.next_doc))
            self.next_ns += 1
        # A number is never used again, so an entry that was left behind can never name another item.
        self.entries.append((self.next_doc, _entry(words, ns)))
        self.docs.append((self.next_doc, ns, key, length, _noted(paths)))
        self.last[ns] = self.next_doc
        self.next_doc += 1
        self.grown[ns] += 1
        self.longer[ns] += length

    def write(self) -> Plan[None]:
        ids: dict[str | None, int | None] = {None: None}
        for paths in sorted({row[4] for row in self.docs if row[4] is not None}):
            if not (rows := (yield Statement(_PATHS, (paths,)))):
                yield Statement("INSERT INTO lexical_paths (paths) VALUES (?)", (paths,))
                rows = yield Statement(_PATHS, (paths,))
            ids[paths] = rows[0][0]
        docs = [(*row[:4], ids[row[4]]) for row in self.docs]
        for sql, rows in (
            ("INSERT INTO lexical_index (lexical_index, rowid, words) VALUES ('delete', ?, ?)", self.gone_entries),
            ("DELETE FROM lexical_docs WHERE doc = ?", self.gone),
            ("INSERT INTO lexical_spaces VALUES (?, ?, 0, 0, ?, 0)", self.new_spaces),
            ("INSERT INTO lexical_docs VALUES (?, ?, ?, ?, ?)", docs),
            ("INSERT INTO lexical_index (rowid, words) VALUES (?, ?)", self.entries),
            (_COUNT, [(self.grown[ns], self.longer[ns], self.last.get(ns, 0), ns) for ns in self.grown]),
            # An erased user's id must not stay behind in the name of an empty namespace.
            (
                "DELETE FROM lexical_spaces WHERE ns = ? AND docs <= 0",
                [(ns,) for ns, more in self.grown.items() if more < 0],
            ),
            (_NEXT, [(self.next_doc, "doc"), (self.next_ns, "ns")] if self.docs else []),
        ):
            if rows:
                yield Statement(sql, rows, is_many=True)


_PATHS = "SELECT id FROM lexical_paths WHERE paths = ?"
_COUNT = "UPDATE lexical_spaces SET docs = docs + ?, words = words + ?, last = max(last, ?) WHERE ns = ?"
_NEXT = "UPDATE lexical_meta SET value = ? WHERE name = ?"


def _loads(value: Any) -> Any:
    """Read the JSON of a row; one that another program wrote and that is no JSON has no text."""
    try:
        return orjson.loads(value)
    except ValueError:
        return {}


def _noted(paths: Sequence[str] | None) -> str | None:
    return None if paths is None else _as_json(tuple(paths))


@lru_cache(maxsize=1024)
def _as_json(paths: tuple[str, ...]) -> str:
    return json.dumps(paths)


def _entry(words: dict[str, int], ns: int) -> str:
    """Return the words as the index holds them: each with its namespace, so that a query reads no other."""
    end = f"_{space_name(ns)}"
    entry = f"{end} ".join(words) + end
    often = [word for word, count in words.items() if count > 1]
    return f"{entry} " + f"{OFTEN}{end} ".join(often) + OFTEN + end if often else entry
