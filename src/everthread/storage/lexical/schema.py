"""Tables of the index, and the triggers that tell it of every change.

| table | holds |
|---|---|
| `lexical_meta` | version of the word rules, next free numbers |
| `lexical_spaces` | namespaces that have indexed items: number, text, items, words |
| `lexical_docs` | indexed items: number, namespace, key, words, paths |
| `lexical_paths` | the lists of paths that items were indexed by |
| `lexical_changes` | what changed in `store` and is not yet in the index, with the value that is |
| `lexical_index` | FTS5: from a word of a namespace to item numbers |

The triggers are plain SQL and only take notes, so that a connection which knows nothing of the index (a
stock `SqliteStore`, another language, an SQLite without FTS5) can write to the same file. The full-text
table keeps no text (`content=''`), and SQLite before 3.43 removes an entry from such a table only when
given its words again: hence the old value in the notes. `detail=none` keeps no positions.
"""

from langgraph.store.sqlite.base import MIGRATIONS

from everthread.errors import StorageError
from everthread.memory.text.words import VERSION
from everthread.storage.lexical.plans import Plan, Statement

_INDEX = (
    "CREATE VIRTUAL TABLE lexical_index USING fts5("
    "words, content='', detail=none, columnsize=0, tokenize=\"ascii tokenchars '_'\")"
)

# An INSERT OR REPLACE fires no delete trigger, so the insert looks for the row that it is going to
# replace. NOT EXISTS, since OR IGNORE inside a trigger gives way to the outer statement's OR REPLACE.
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
    _INDEX,
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
    _INDEX,
    "INSERT INTO lexical_changes SELECT s.prefix, d.key, NULL FROM lexical_docs d JOIN lexical_spaces s USING (ns)"
    " WHERE NOT EXISTS (SELECT 1 FROM lexical_changes c WHERE c.space = s.prefix AND c.item = d.key)",
    # The old entries went with the table: nothing is left to take out of it.
    "UPDATE lexical_changes SET old = NULL",
)


def has_fts5() -> Plan[bool]:
    """Tell whether this SQLite can hold the index."""
    rows = yield Statement("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'")
    return bool(rows)


def prepare_schema() -> Plan[None]:
    """Make LangGraph's tables and ours; in one transaction, since two processes may open a new file at once.

    An index by other word rules is emptied here and filled again by `catch_up`.

    Raises:
        StorageError: a newer version of this library made the index.
    """
    yield Statement("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
    rows = yield Statement("SELECT max(v) FROM store_migrations")
    done = -1 if rows[0][0] is None else int(rows[0][0])
    for version, sql in enumerate(MIGRATIONS[done + 1 :], start=done + 1):
        yield Statement(sql)
        yield Statement("INSERT INTO store_migrations (v) VALUES (?)", (version,))
    yield Statement("CREATE TABLE IF NOT EXISTS lexical_meta (name TEXT PRIMARY KEY, value INTEGER)")
    rows = yield Statement("SELECT value FROM lexical_meta WHERE name = 'version'")
    found = int(rows[0][0]) if rows else None
    if found == VERSION:
        return
    if found is not None and found > VERSION:
        raise StorageError(
            f"the full-text index has version {found} but this library knows {VERSION}; upgrade everthread"
        )
    for sql in _TABLES if found is None else _AGAIN:
        yield Statement(sql)
    yield Statement("INSERT OR REPLACE INTO lexical_meta VALUES ('version', ?)", (VERSION,))
