"""The full-text index of the store in Postgres: a `tsvector` with a GIN index finds candidates.

| table | holds |
|---|---|
| `everthread_spaces` | namespaces that have indexed items: number, text, items, words, first and last item |
| `everthread_docs` | indexed items: number, namespace, key, words as a `tsvector`, their count, paths |
| `everthread_changes` | what others changed in `store` and is not yet in the index |

The lexemes are our own stems (`memory.text.words`), not those of a configuration of the server, so that a search finds
the same on every database. Each ends with the number of its namespace, so it reads nothing of other users and threads.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import orjson

from everthread.errors import StorageError
from everthread.memory.text.words import index_words
from everthread.storage.candidates import MANY_SPACES, Groups, Probe, Read, Spaces, entries, entry, probes, search
from everthread.storage.postgres.database import PostgresDatabase
from everthread.storage.postgres.texts import read_json, text_in
from everthread.storage.texts import Paths, text_fields, texts

_CHUNK = 500
"""Changes carried over in one transaction."""

_LARGEST_VECTOR = 500_000
"""Bytes of the words of one item; Postgres refuses a `tsvector` over a megabyte."""

_SAMPLE = "³"
"""Ends the word of an item that is in the sample, beside the word itself."""

_SAMPLED = 32
"""One item in so many is in the sample."""

_LARGE = 5_000
"""Items from which on the sample tells how rare a word is: GIN reads all of a word's entries, however few are wanted.
With 100,000 items eight words took 20 ms of the server's CPU."""

_ENTRIES = (
    "SELECT s.prefix, d.key, d.doc, d.ns, d.length, d.paths FROM everthread_docs d JOIN everthread_spaces s USING (ns)"
    " JOIN unnest(%s::text[], %s::text[]) AS o (prefix, key) ON o.prefix = s.prefix AND o.key = d.key"
)
_SPACES = (
    "INSERT INTO everthread_spaces (prefix) SELECT unnest(%s::text[]) ON CONFLICT (prefix) DO UPDATE SET docs ="
    " everthread_spaces.docs RETURNING prefix, ns"
)
_ADD = (
    "INSERT INTO everthread_docs (ns, key, length, paths, words) SELECT ns, key, length, paths,"
    " array_to_tsvector(string_to_array(words, ' ')) FROM unnest(%s::int[], %s::text[], %s::int[], %s::text[],"
    " %s::text[]) WITH ORDINALITY AS n (ns, key, length, paths, words, place) ORDER BY place RETURNING ns, doc"
)
_COUNT = (
    "UPDATE everthread_spaces s SET docs = s.docs + n.docs, words = s.words + n.words,"
    " first = CASE WHEN s.first = 0 THEN n.last - n.docs + 1 ELSE s.first END, last = greatest(s.last, n.last)"
    " FROM unnest(%s::int[], %s::bigint[], %s::bigint[], %s::bigint[]) AS n (ns, docs, words, last) WHERE s.ns = n.ns"
)
_ITEMS = (
    "SELECT coalesce((SELECT array_agg(f.doc) FROM (SELECT doc FROM everthread_docs WHERE words @@ q.query::tsquery"
    "{within} LIMIT %s) f), '{{}}') FROM unnest(%s::text[]) WITH ORDINALITY AS q (query, place) ORDER BY place"
)
# Not by the numbers' own index, in which the newest items are everybody's.
_NEWEST = (
    "SELECT coalesce((SELECT array_agg(f.doc) FROM (SELECT doc FROM everthread_docs WHERE words @@ q.query::tsquery"
    "{within} ORDER BY doc + 0 DESC LIMIT %s) f), '{{}}') FROM unnest(%s::text[]) WITH ORDINALITY AS q (query, place)"
    " ORDER BY place"
)


class PostgresIndex:
    """The index; every method is called inside of the database's `read` or `write`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._rows = database.rows

    def has_changes(self) -> bool:
        """Tell whether others have written what the index has not."""
        return bool(self._rows("SELECT EXISTS (SELECT 1 FROM everthread_changes)")[0][0])

    def catch_up(self) -> None:
        """Bring the index up to date with one chunk of what others wrote."""
        rows = self._rows(
            "DELETE FROM everthread_changes WHERE (prefix, key) IN (SELECT prefix, key FROM everthread_changes"
            " LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING prefix, key",
            (_CHUNK,),
        )
        places = sorted((str(prefix), str(key)) for prefix, key in rows)
        values = self._rows(
            "SELECT s.prefix, s.key, s.value::text FROM store s JOIN unnest(%s::text[], %s::text[]) AS o (prefix, key)"
            " ON o.prefix = s.prefix AND o.key = s.key",
            columns(places, 2),
        )
        found = {(prefix, key): read_json(value) for prefix, key, value in values}
        self.update({place: found.get(place) for place in places})

    def clear(self) -> None:
        """Forget the words of all items; `catch_up` fills the index again."""
        self._rows("TRUNCATE everthread_docs, everthread_spaces, everthread_changes")
        self._rows("INSERT INTO everthread_changes SELECT prefix, key FROM store")

    def update(
        self, values: Mapping[tuple[str, str], Any], asked: Mapping[tuple[str, str], Paths] | None = None
    ) -> None:
        """Index items anew.

        Args:
            values: by namespace text and key; None for one that is gone.
            asked: what `put` said. A change of somebody else keeps the paths that its item had.
        """
        counts: dict[int, list[int]] = {}
        known = {}
        for prefix, key, doc, ns, length, paths in self._rows(_ENTRIES, columns(sorted(values), 2)):
            known[prefix, key] = doc, paths
            count = counts.setdefault(ns, [0, 0, 0])
            count[0] -= 1
            count[1] -= length
        if known:
            docs = [doc for doc, _ in known.values()]
            self._rows("DELETE FROM everthread_docs WHERE doc = ANY(%s)", (docs,))
        fresh: list[tuple[str, str, int, str | None, Counter[str]]] = []
        for (prefix, key), value in sorted(values.items(), key=lambda one: one[0]):
            paths = asked[prefix, key] if asked is not None else _paths(known.get((prefix, key), (0, None))[1])
            if value is None or paths is False:
                continue
            if paths is None and (paths := text_fields(tuple(prefix.split(".")), value)) is False:
                continue
            if words := Counter(index_words(texts(value, paths))):
                stored = None if paths is None else orjson.dumps([*paths]).decode()
                fresh.append((prefix, key, sum(words.values()), stored, words))
        if fresh:
            self._add(fresh, counts)
        if counts:
            rows = [(ns, *counts[ns]) for ns in sorted(counts)]
            self._rows(_COUNT, columns(rows, 4))
        if known:
            # An erased user's id must not stay behind in the name of an empty namespace.
            self._rows("DELETE FROM everthread_spaces WHERE ns = ANY(%s) AND docs <= 0", (sorted(counts),))

    def search(self, prefix: str, words: Sequence[str], wanted: int, read: Read) -> list[tuple[Any, float]]:
        """Return the rows at and below a namespace that hold any of the words; see `candidates.search`."""
        under, values = below(text_in(prefix))
        spaces = self._rows(f"SELECT ns, docs, words, first, last FROM everthread_spaces WHERE {under}", values)
        if not spaces:
            return []
        with self._database.connection.transaction():
            # A sequential scan begins anywhere in a large table, and how rare a word is would be guessed from items
            # that are not the oldest; it reads the other namespaces, too.
            self._rows("SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)")
            return search(self, spaces, words, wanted, read)

    def probe(self, spaces: Spaces, words: Sequence[str]) -> Sequence[Probe]:
        """Return how rare each word is; see `WordIndex`."""
        mark, part = (_SAMPLE, _SAMPLED) if spaces.docs > _LARGE else ("", 1)
        return probes(self, spaces, [word + mark for word in words], part)

    def items(
        self, spaces: Spaces, asked: Sequence[Groups], limit: int, *, newest: bool = False
    ) -> Sequence[Sequence[int]]:
        """Return for each expression its items; see `WordIndex`.

        Without `newest` they come as they lie in the table, which is in the order of their numbers unless space of
        deleted ones was used again: only a part of a frequent word's depends on it.
        """
        if not asked:
            return []
        is_many = len(spaces.numbers) >= MANY_SPACES
        queries = [_query(groups, () if is_many else spaces.numbers) for groups in asked]
        within = " AND ns = ANY(%s)" if is_many else ""
        values = (*([list(spaces.numbers)] if is_many else []), limit, queries)
        rows = self._rows((_NEWEST if newest else _ITEMS).format(within=within), values)
        return [sorted(found, reverse=newest) for (found,) in rows]

    def lengths(self, items: Sequence[int]) -> Mapping[int, int]:
        """Return how many words each item has."""
        return dict(self._rows("SELECT doc, length FROM everthread_docs WHERE doc = ANY(%s)", ([*items],)))

    def _add(
        self, fresh: Sequence[tuple[str, str, int, str | None, Counter[str]]], counts: dict[int, list[int]]
    ) -> None:
        numbers = dict(self._rows(_SPACES, (sorted({prefix for prefix, *_ in fresh}),)))
        rows = [
            (numbers[prefix], key, length, paths, " ".join(_bounded(entries(_sampled(key, words), numbers[prefix]))))
            for prefix, key, length, paths, words in fresh
        ]
        added = self._rows(_ADD, columns(rows, 5))
        if len(added) != len(rows):
            raise StorageError("the full-text index is damaged; `everthread compact` builds it again")
        for ns, doc in added:
            count = counts.setdefault(ns, [0, 0, 0])
            count[0] += 1
            count[2] = max(count[2], doc)
        for prefix, _, length, *_ in fresh:
            counts[numbers[prefix]][1] += length


def below(prefix: str, column: str = "prefix") -> tuple[str, tuple[str, ...]]:
    """Return the condition for a namespace and those below it; an empty prefix has all of them below it."""
    if not prefix:
        return "TRUE", ()
    # The slash is the character after the period. Byte by byte, whatever the collation, and by LangGraph's own index.
    return f"({column} = %s OR ({column} ~>~ %s AND {column} ~<~ %s))", (prefix, f"{prefix}.", f"{prefix}/")


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Return rows as columns, each an array for `unnest`."""
    return [[row[place] for row in rows] for place in range(width)]


def _query(groups: Groups, numbers: Sequence[int]) -> str:
    """Return an expression as text of a `tsquery`; without numbers, over all namespaces."""
    forms = [
        [_quoted(entry(word, ns)) for word in group for ns in numbers]
        if numbers
        else [f"{_quoted(word + '_')}:*" for word in group]
        for group in groups
    ]
    return " & ".join(f"({' | '.join(form)})" for form in forms)


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _sampled(key: str, words: Counter[str]) -> Counter[str]:
    """Return the words of an item, once more with a mark when its key puts it into the sample."""
    return words if crc32(key.encode()) % _SAMPLED else words + Counter({word + _SAMPLE: 1 for word in words})


def _bounded(words: Sequence[str]) -> Sequence[str]:
    """Return as many words as one `tsvector` holds."""
    size = 0
    for place, word in enumerate(words):
        size += len(word.encode()) + 8
        if size > _LARGEST_VECTOR:
            return words[:place]
    return words


def _paths(text: str | None) -> list[str] | None:
    return None if text is None else orjson.loads(text)
