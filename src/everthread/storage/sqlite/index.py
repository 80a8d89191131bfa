"""The full-text index of the store: FTS5 finds candidates, `ranking.bm25` orders them.

| table | holds |
|---|---|
| `lexical_meta` | version of the index, next free numbers |
| `lexical_spaces` | namespaces that have indexed items: number, text, items, words, first and last item |
| `lexical_docs` | indexed items: number, namespace, key, words, paths |
| `lexical_paths` | the lists of paths that items were indexed by |
| `lexical_changes` | what changed in `store` and is not yet in the index, with the value that is |
| `lexical_index` | FTS5: from a word of a namespace to item numbers |

The triggers are plain SQL and only take notes, so that a connection which knows nothing of the index (LangGraph's own
`SqliteStore`, another language) can write to the same file.

What is not plain FTS5, and why (`benchmarks/stores.py`, 100,000 messages in one namespace):
- Each word ends with the number of its namespace, so a search reads nothing of other users and threads.
- The table keeps no text and no positions (`content=''`, `detail=none`): 0.2 to 0.3 of the text instead of 1.4. FTS5's
  own `bm25()` is always 0 then, and on a table with text it reads every entry of a frequent word. SQLite before 3.43
  removes an entry from such a table only when given its words again: hence the old value in `lexical_changes`.
- The ranking takes lists of item numbers. Reading and cutting the text of 250 candidates instead took 32 ms (p95 37).
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from everthread.errors import StorageError
from everthread.memory.text.words import index_words
from everthread.storage.candidates import MANY_SPACES, Groups, Probe, Read, Spaces, entries, entry, probes, search
from everthread.storage.sqlite.formats import INDEX_VERSION as VERSION
from everthread.storage.texts import Paths, text_fields, texts

__all__ = ["VERSION", "DamagedIndexError", "Index", "below"]

_CHUNK = 500
"""Changes carried over in one transaction."""

_FTS5 = (
    "CREATE VIRTUAL TABLE lexical_index USING fts5("
    "words, content='', detail=none, columnsize=0, tokenize=\"ascii tokenchars '_'\")"
)
# An INSERT OR REPLACE fires no delete trigger, so the insert looks for the row that it is going to replace. NOT EXISTS,
# since OR IGNORE inside a trigger gives way to the outer statement's OR REPLACE.
_NOTE = (
    "INSERT INTO lexical_changes SELECT {row}.prefix, {row}.key, {old}"
    " WHERE NOT EXISTS (SELECT 1 FROM lexical_changes WHERE space = {row}.prefix AND item = {row}.key);"
)
_REPLACED = "(SELECT value FROM store WHERE prefix = new.prefix AND key = new.key)"
_TABLES = (
    "CREATE TABLE lexical_spaces (ns INTEGER PRIMARY KEY, prefix TEXT NOT NULL UNIQUE, docs INTEGER, words INTEGER,"
    " first INTEGER, last INTEGER)",
    "CREATE TABLE lexical_docs (doc INTEGER PRIMARY KEY, ns INTEGER NOT NULL, key TEXT NOT NULL, words INTEGER,"
    " paths INTEGER, UNIQUE (ns, key))",
    "CREATE TABLE lexical_paths (id INTEGER PRIMARY KEY, paths TEXT NOT NULL UNIQUE)",
    "CREATE TABLE lexical_changes (space TEXT NOT NULL, item TEXT NOT NULL, old BLOB, PRIMARY KEY (space, item))"
    " WITHOUT ROWID",
    _FTS5,
    "CREATE TRIGGER lexical_insert BEFORE INSERT ON store BEGIN " + _NOTE.format(row="new", old=_REPLACED) + " END",
    "CREATE TRIGGER lexical_update BEFORE UPDATE OF prefix, key, value ON store BEGIN "
    + _NOTE.format(row="old", old="old.value")
    + _NOTE.format(row="new", old=_REPLACED)
    + " END",
    "CREATE TRIGGER lexical_delete AFTER DELETE ON store BEGIN " + _NOTE.format(row="old", old="old.value") + " END",
    "INSERT INTO lexical_changes SELECT prefix, key, NULL FROM store",
    "INSERT INTO lexical_meta VALUES ('doc', 1), ('ns', 1)",
)
_AGAIN = (
    "DROP TABLE lexical_index",
    _FTS5,
    "INSERT INTO lexical_changes SELECT s.prefix, d.key, NULL FROM lexical_docs d JOIN lexical_spaces s USING (ns)"
    " WHERE NOT EXISTS (SELECT 1 FROM lexical_changes c WHERE c.space = s.prefix AND c.item = d.key)",
    # The old entries went with the table: nothing is left to take out of it.
    "UPDATE lexical_changes SET old = NULL",
)
_GONE = (
    *(f"DROP TRIGGER IF EXISTS lexical_{event}" for event in ("insert", "update", "delete")),
    *(f"DROP TABLE IF EXISTS lexical_{table}" for table in ("index", "spaces", "docs", "paths", "changes", "meta")),
)
# As numbers, whatever somebody wrote there: a wrong one makes a worse ranking and no error.
_SPACE = ", ".join(["ns", *(f"ifnull(CAST({name} AS INTEGER), 0)" for name in ("docs", "words", "first", "last"))])
_CHANGED = f"""
    SELECT c.space, c.item, CAST(c.old AS BLOB), CAST(s.value AS BLOB), d.doc, d.ns, d.words, CAST(p.paths AS BLOB)
    FROM lexical_changes c
    LEFT JOIN store s ON s.prefix = c.space AND s.key = c.item
    LEFT JOIN lexical_spaces n ON n.prefix = c.space
    LEFT JOIN lexical_docs d ON d.ns = n.ns AND d.key = c.item
    LEFT JOIN lexical_paths p ON p.id = d.paths
    LIMIT {_CHUNK}
"""

PathsByItem = Mapping[tuple[str, str], Paths]
"""What `put` asked to index, by namespace text and key."""


class DamagedIndexError(StorageError):
    """The index holds what it cannot have written; `clear` or `make_again` mends it."""


class Index:
    """The index; `search` and `has_changes` only read, all others need a transaction of the caller."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def prepare(self) -> None:
        """Make the tables; an index of an older version is emptied, and filled again by `catch_up`.

        Raises:
            StorageError: a newer version made the index.
        """
        self._rows("CREATE TABLE IF NOT EXISTS lexical_meta (name TEXT PRIMARY KEY, value INTEGER)")
        number = "CASE WHEN typeof(value) = 'integer' THEN value END"
        rows = self._rows(f"SELECT {number} FROM lexical_meta WHERE name = 'version'")
        version = rows[0][0] if rows else None
        if version == VERSION:
            return
        if rows and not isinstance(version, int):
            self.make_again()
            return
        if version is not None and version > VERSION:
            raise StorageError(
                f"the full-text index has version {version} but this library knows {VERSION}; upgrade everthread"
            )
        for sql in _TABLES if version is None else _AGAIN:
            self._rows(sql)
        self._rows("INSERT OR REPLACE INTO lexical_meta VALUES ('version', ?)", (VERSION,))

    def clear(self) -> None:
        """Forget the words of all items, but not the paths by which they are indexed; `catch_up` fills it again."""
        for sql in _AGAIN:
            self._rows(sql)

    def make_again(self) -> None:
        """Make all tables anew; the paths that `put` was asked for are forgotten."""
        # A number is never used again, not even then.
        numbers = [self._most("lexical_docs", "doc"), self._most("lexical_spaces", "ns")]
        self._empty_words()
        for sql in _GONE:
            self._rows(sql)
        self.prepare()
        self._connection.executemany(
            "UPDATE lexical_meta SET value = ? WHERE name = ?",
            [(number + 1, name) for number, name in zip(numbers, ("doc", "ns"), strict=True)],
        )

    def _empty_words(self) -> None:
        """Put the records of an empty table in place of those that FTS5 keeps, or it refuses even to drop the table."""
        self._rows(_FTS5.replace("lexical_index", "lexical_fresh"))
        for part in ("data", "idx", "config"):
            self._rows(f"DELETE FROM lexical_index_{part}")
            self._rows(f"INSERT INTO lexical_index_{part} SELECT * FROM lexical_fresh_{part}")
        self._rows("DROP TABLE lexical_fresh")

    def settle(self) -> None:
        """Bring the index up to date, and drop what it still knows of deleted items."""
        self.catch_up_fully()
        self._rows("INSERT INTO lexical_index (lexical_index) VALUES ('optimize')")

    def has_changes(self) -> bool:
        """Tell whether the store has changes that the index has not."""
        return bool(self._rows("SELECT EXISTS (SELECT 1 FROM lexical_changes)")[0][0])

    def catch_up(self, asked: PathsByItem | None = None) -> int:
        """Bring the index up to date with one chunk of changes.

        Args:
            asked: what `put` said. A change of somebody else keeps the paths that its item had.

        Returns:
            Changes carried over; less than a chunk when that was all.
        """
        rows = self._rows(_CHANGED)
        for space, key, old, value, doc, ns, length, known in rows:
            if doc is not None:
                self._remove(doc, ns, length, old, known)
            if value is None:
                continue
            content = _loads(value)
            paths = asked[space, key] if asked is not None and (space, key) in asked else _paths(known)
            if paths is None:
                paths = text_fields(tuple(space.split(".")), content)
            if paths is not False:
                self._add(space, key, Counter(index_words(texts(content, paths))), paths)
        if len(rows) < _CHUNK:
            self._rows("DELETE FROM lexical_changes")
        else:
            self._connection.executemany(
                "DELETE FROM lexical_changes WHERE space = ? AND item = ?", [row[:2] for row in rows]
            )
        return len(rows)

    def catch_up_fully(self, asked: PathsByItem | None = None) -> None:
        """Bring the index up to date."""
        while self.catch_up(asked) == _CHUNK:
            pass

    def search(self, prefix: str, words: Sequence[str], wanted: int, read: Read) -> list[tuple[Any, float]]:
        """Return the rows at and below a namespace that hold any of the words; see `candidates.search`."""
        condition, values = below(prefix)
        spaces = self._rows(f"SELECT {_SPACE} FROM lexical_spaces WHERE {condition}", values)
        return search(self, spaces, words, wanted, read)

    def probe(self, spaces: Spaces, words: Sequence[str]) -> Sequence[Probe]:
        """Return how rare each word is; see `WordIndex`."""
        return probes(self, spaces, words)

    def items(
        self, spaces: Spaces, asked: Sequence[Groups], limit: int, *, newest: bool = False
    ) -> Sequence[Sequence[int]]:
        """Return for each expression its items; see `WordIndex`."""
        return [self._items(spaces, groups, limit, newest=newest) for groups in asked]

    def lengths(self, items: Sequence[int]) -> Mapping[int, int]:
        """Return how many words each item has."""
        sql = "SELECT doc, CAST(words AS INTEGER) FROM lexical_docs WHERE doc IN (SELECT value FROM json_each(?))"
        return dict(self._rows(sql, (json.dumps([*items]),)))

    def _items(self, spaces: Spaces, groups: Groups, limit: int, *, newest: bool) -> list[int]:
        source = "lexical_index i WHERE lexical_index MATCH ?"
        if len(spaces.numbers) >= MANY_SPACES:
            numbers = ",".join(map(str, spaces.numbers))
            source = f"lexical_index i CROSS JOIN lexical_docs d ON d.doc = i.rowid AND d.ns IN ({numbers})"
            source += " WHERE lexical_index MATCH ?"
            forms = [[f'"{word}_" *' for word in group] for group in groups]
        else:
            forms = [[f'"{entry(word, ns)}"' for word in group for ns in spaces.numbers] for group in groups]
        expression = " AND ".join(f"({' OR '.join(form)})" for form in forms)
        order = "DESC" if newest else ""
        sql = f"SELECT i.rowid AS doc FROM {source} ORDER BY i.rowid {order} LIMIT ?"
        # One JSON list: rows would take thrice the time.
        rows = self._rows(f"SELECT json_group_array(doc) FROM ({sql})", (expression, limit))
        items: list[int] = orjson.loads(rows[0][0])
        return items

    def _add(self, space: str, key: str, words: Mapping[str, int], paths: Sequence[str] | None) -> None:
        if not words:
            return
        length = sum(words.values())
        rows = self._rows("SELECT ns FROM lexical_spaces WHERE prefix = ?", (space,))
        # A number is never used again, so an entry that was left behind can never name another item.
        doc = self._next("doc")
        ns = int(rows[0][0]) if rows else self._next("ns")
        if not rows:
            self._rows("INSERT INTO lexical_spaces VALUES (?, ?, 0, 0, ?, 0)", (ns, space, doc))
        self._rows("INSERT INTO lexical_docs VALUES (?, ?, ?, ?, ?)", (doc, ns, key, length, self._paths_id(paths)))
        self._rows("INSERT INTO lexical_index (rowid, words) VALUES (?, ?)", (doc, " ".join(entries(words, ns))))
        self._rows(
            "UPDATE lexical_spaces SET docs = docs + 1, words = words + ?, last = max(last, ?) WHERE ns = ?",
            (length, doc, ns),
        )

    def _remove(self, doc: int, ns: int, length: int, old: Any, paths: bytes | None) -> None:
        self._rows("DELETE FROM lexical_docs WHERE doc = ?", (doc,))
        self._rows("UPDATE lexical_spaces SET docs = docs - 1, words = words - ? WHERE ns = ?", (length, ns))
        # An erased user's id must not stay behind in the name of an empty namespace.
        self._rows("DELETE FROM lexical_spaces WHERE ns = ? AND docs <= 0", (ns,))
        if old is not None:  # None: the entry went with its table
            words = Counter(index_words(texts(_loads(old), _paths(paths))))
            self._rows(
                "INSERT INTO lexical_index (lexical_index, rowid, words) VALUES ('delete', ?, ?)",
                (doc, " ".join(entries(words, ns))),
            )

    def _next(self, name: str) -> int:
        sql = "UPDATE lexical_meta SET value = value + 1 WHERE name = ? RETURNING value - 1"
        rows = self._rows(sql, (name,))
        if not rows or not isinstance(rows[0][0], int):
            raise DamagedIndexError(f"the full-text index is damaged: it has no next number `{name}`")
        return rows[0][0]

    def _most(self, table: str, column: str) -> int:
        try:
            return int(self._rows(f"SELECT ifnull(max({column}), 0) FROM {table}")[0][0])
        except (StorageError, sqlite3.Error, ValueError):
            return 0

    def _paths_id(self, paths: Sequence[str] | None) -> int | None:
        if paths is None:
            return None
        text = json.dumps(list(paths))
        self._rows("INSERT OR IGNORE INTO lexical_paths (paths) VALUES (?)", (text,))
        return int(self._rows("SELECT id FROM lexical_paths WHERE paths = ?", (text,))[0][0])

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            # A constraint that fails: a number was given twice. No table: somebody dropped it.
            name, text = getattr(error, "sqlite_errorname", "") or "", str(error)
            is_ours = isinstance(error, sqlite3.IntegrityError) or "fts5" in text or "no such table: lexical" in text
            if name == "SQLITE_CORRUPT_VTAB" or is_ours:
                raise DamagedIndexError(f"the full-text index is damaged: {text}") from error
            raise


def below(prefix: str, column: str = "prefix") -> tuple[str, tuple[str, ...]]:
    """Return the condition for a namespace and those below it; an empty prefix has all of them below it."""
    if not prefix:
        return "TRUE", ()
    # The slash is the character after the period: whole labels, and by the table's own index.
    return f"({column} = ? OR ({column} > ? AND {column} < ?))", (prefix, f"{prefix}.", f"{prefix}/")


def _loads(value: Any) -> Any:
    """Read the JSON of a row; one that cannot be read has no text."""
    try:
        read = orjson.loads(value)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _paths(text: bytes | None) -> list[str] | None:
    """Read a list of paths; None, the default, for none and for one that cannot be read."""
    try:
        read = orjson.loads(text) if text else None
    except ValueError:
        return None
    return read if isinstance(read, list) and all(isinstance(path, str) for path in read) else None
