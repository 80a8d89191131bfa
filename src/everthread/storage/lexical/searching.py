"""Find and rank the items that hold the words of a query.

A word of the index ends with the number of its namespace, so a query reads only the entries of the
namespaces it may see. Words are read from the rarest on, up to a bound: in a namespace of a thousand items
all are read and the ranking is exactly BM25's. Beyond, words that a great part of the items hold are left
out, or read only as far as the page needs: their weight is small, and reading them would take most of the
time. Everything is read when a filter leaves too little.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from langgraph.store.base import SearchItem, SearchOp
from langgraph.store.sqlite.base import _validate_filter_key

from everthread.storage.lexical.indexing import OFTEN, space_name
from everthread.storage.lexical.plans import Plan, Row, Statement
from everthread.storage.lexical.ranking import bm25, inverse_frequency
from everthread.storage.lexical.words import query_words

PROBE = 128
"""Entries read of every word to learn how rare it is."""

READ = 20_000
"""Entries read of all words together; half of it saves a fifth of a search over 100,000 messages but finds less."""

RANKED = 1_000
"""Items that are ranked for having any of the rarest words; the others need to have two of the words read."""

SHARED = 2_000
"""Items that are ranked at most; those with the rarest words come first, then the newest."""

_MANY_SPACES = 24
"""From so many namespaces on a word is looked up in all of them at once and the strangers are left out."""

_NO_BOUND = 1 << 62

_KNOWN_AT_MOST = 100_000

Lengths = dict[int, int]
"""Words of an item by its number; it stays true for ever, since a changed item gets a new number."""

Condition = Callable[[str, str, Any], tuple[str, list[Any]]]
"""LangGraph's own builder of one filter condition: key, operator, value."""


@dataclass(frozen=True)
class Spaces:
    """The namespaces under a prefix."""

    numbers: tuple[int, ...]
    docs: int
    words: int
    first: int
    last: int
    """Numbers of their first and last item."""

    is_all: bool = False
    """Whether there are no others."""

    def match(self, words: Sequence[str]) -> str:
        """Return the FTS5 expression for items that hold any of the words."""
        if len(self.numbers) >= _MANY_SPACES:
            return "(" + " OR ".join(f'"{word}_" *' for word in words) + ")"
        names = [space_name(number) for number in self.numbers]
        return "(" + " OR ".join(f'"{word}_{name}"' for word in words for name in names) + ")"

    @property
    def query(self) -> str:
        """SQL that gives the newest items of an expression, as one JSON list: rows would take thrice the time."""
        source = "lexical_index i WHERE lexical_index MATCH ?"
        if len(self.numbers) >= _MANY_SPACES and not self.is_all:
            numbers = ",".join(map(str, self.numbers))
            source = f"lexical_index i CROSS JOIN lexical_docs d ON d.doc = i.rowid AND d.ns IN ({numbers})"
            source += " WHERE lexical_index MATCH ?"
        newest = f"SELECT i.rowid AS doc FROM {source} ORDER BY i.rowid DESC LIMIT ?"
        return f"SELECT json_group_array(doc) FROM ({newest})"

    def holders(self, newest: list[int], read: int) -> float:
        """Return how many items hold a word: its newest entries, `read` at most, tell how dense it is."""
        if len(newest) < read:
            return float(len(newest))
        share = len(newest) / max(self.last - newest[-1] + 1, len(newest))
        return min(max(share * (self.last - self.first + 1), len(newest)), self.docs)


@dataclass
class _Word:
    text: str
    items: set[int]
    holders: float
    """Items that hold it, estimated unless all were read."""

    is_whole: bool
    """Whether `items` are all that hold it."""

    often: set[int] = field(default_factory=set)


@dataclass
class _Found:
    words: list[_Word]
    items: set[int]
    """What is to be ranked."""

    is_whole: bool
    """Whether that is every item that holds any of the words."""


def has_words(op: SearchOp) -> bool:
    """Tell whether an operation asks for words; a blank query asks for nothing."""
    return bool(op.query) and bool(query_words(op.query or ""))


def find(op: SearchOp, condition: Condition, loader: Any, known: Lengths) -> Plan[list[SearchItem]]:
    """Answer a search by BM25, best first.

    Args:
        op: with a query that has words.
        condition: builds the SQL of a filter condition.
        loader: reads a value, None for JSON.
        known: lengths of items that were read before, added to.
    """
    spaces = yield from _spaces(op.namespace_prefix)
    words = query_words(op.query or "")
    if not spaces.numbers or op.limit <= 0:
        return []
    rows: list[tuple[Row, float]] = []
    for read in (READ, _NO_BOUND):
        found = yield from _find(spaces, words, op.limit + op.offset, read)
        scores = yield from _score(found, spaces, known)
        rows = yield from _page(op, scores, condition)
        if found.is_whole or len(rows) == op.limit:
            break
    load = loader or orjson.loads
    names = {row[1]: tuple(row[1].split(".")) for row, _ in rows}
    return [SearchItem(names[row[1]], row[2], load(row[3]), row[4], row[5], score) for row, score in rows]


def _spaces(prefix: tuple[str, ...]) -> Plan[Spaces]:
    columns = "SELECT ns, docs, words, first, last FROM lexical_spaces"
    if prefix:
        text = ".".join(prefix)
        # "/" is the character after ".": exactly the namespaces below, by whole labels and by the index.
        where = " WHERE prefix = ? OR (prefix >= ? AND prefix < ?)"
        rows = yield Statement(columns + where, (text, text + ".", text + "/"))
    else:
        rows = yield Statement(columns)
    if not rows:
        return Spaces((), 0, 0, 0, 0)
    numbers, docs, words, first, last = zip(*rows, strict=True)
    return Spaces(numbers, sum(docs), sum(words), min(first), max(last), not prefix)


def _find(spaces: Spaces, texts: list[str], wanted: int, read: int) -> Plan[_Found]:
    """Read the entries of the words, the rarest first.

    Args:
        spaces: where to look.
        texts: the words.
        wanted: items that the caller asks for.
        read: entries to read at most, of all words together.
    """
    words: list[_Word] = []
    for text in texts:
        newest = yield from _items(spaces, spaces.match([text]), PROBE)
        if newest:
            words.append(_Word(text, set(newest), spaces.holders(newest, PROBE), len(newest) < PROBE))
    words.sort(key=lambda word: (word.holders, word.text))
    left = read
    for word in words:
        if not word.is_whole and word.holders <= left:
            yield from _read(spaces, word, left)
        if not word.is_whole:
            break
        left -= len(word.items)
        word.often.update((yield from _items(spaces, spaces.match([word.text + OFTEN]), len(word.items))))
    known, frequent = ([word for word in words if word.is_whole is whole] for whole in (True, False))
    if frequent and len(set().union(*(word.items for word in known))) < wanted:
        # The rare words do not fill the page, or there are none.
        yield from _read_shared(spaces, frequent, max(wanted, RANKED))
        known = words
    is_whole = not frequent
    items = set().union(*(word.items for word in known)) if read >= _NO_BOUND else _worth(known, wanted)
    return _Found(known, items, is_whole and len(items) == len(set().union(*(word.items for word in known))))


def _read(spaces: Spaces, word: _Word, most: int) -> Plan[None]:
    items = yield from _items(spaces, spaces.match([word.text]), most + 1)
    word.is_whole = len(items) <= most
    if word.is_whole:
        word.items, word.holders = set(items), float(len(items))


def _read_shared(spaces: Spaces, words: list[_Word], most: int) -> Plan[None]:
    """Read the newest items that hold the rarest of words too frequent to be read, and that share three of them."""
    items = yield from _items(spaces, spaces.match([words[0].text]), most)
    words[0].items = set(items)
    together = words[:3]
    if len(together) == 1:
        return
    items = yield from _items(spaces, " AND ".join(spaces.match([one.text]) for one in together), most)
    for one in together:
        one.items.update(items)


def _worth(words: list[_Word], wanted: int) -> set[int]:
    """Return the items to rank: all with a rare word, and those with two of the others."""
    items: set[int] = set()
    seen: set[int] = set()
    for word in words:
        is_few = len(items) + len(word.items) <= RANKED
        more = word.items if is_few else word.items & seen
        # Two words that most items hold say little together: the newest of those are enough.
        room = max(SHARED - len(items), 0)
        items |= more if len(more) <= room else set(sorted(more, reverse=True)[:room])
        if len(items) < wanted:
            items |= set(sorted(word.items, reverse=True)[:wanted])
        seen |= word.items
    return items


def _items(spaces: Spaces, expression: str, limit: int) -> Plan[list[int]]:
    rows = yield Statement(spaces.query, (expression, min(limit, _NO_BOUND)))
    items: list[int] = orjson.loads(rows[0][0])
    return items


def _score(found: _Found, spaces: Spaces, known: Lengths) -> Plan[list[tuple[int, float]]]:
    """Return items with their scores, best first; of equals the newest first."""
    if missing := found.items.difference(known):
        rows = yield Statement(
            "SELECT doc, words FROM lexical_docs WHERE doc IN (SELECT j.value FROM json_each(?) j)",
            (orjson.dumps(sorted(missing)).decode(),),
        )
        if len(known) > _KNOWN_AT_MOST:
            known.clear()
        known.update(rows)
    scores = bm25(
        {word.text: word.items & found.items for word in found.words},
        {word.text: word.often for word in found.words},
        {word.text: inverse_frequency(spaces.docs, word.holders) for word in found.words},
        {item: known[item] for item in found.items if item in known},
        spaces.words / max(spaces.docs, 1),
    )
    return [(item, score) for score, item in sorted(zip(scores.values(), scores, strict=True), reverse=True)]


def _page(op: SearchOp, scores: list[tuple[int, float]], condition: Condition) -> Plan[list[tuple[Row, float]]]:
    """Read the rows of a page; a filter counts before the limit, so it may need to look further down."""
    sql, parameters = _filter(op.filter or {}, condition)
    wanted = op.offset + op.limit
    start, size = (0, 2 * wanted) if sql else (op.offset, op.limit)
    rows: list[tuple[Row, float]] = []
    while start < len(scores) and (not rows or sql) and len(rows) < wanted:
        part = scores[start : start + size]
        read = yield Statement(_ROWS + sql, (orjson.dumps([doc for doc, _ in part]).decode(), *parameters))
        by_doc = {row[0]: row for row in read}
        rows += [(by_doc[doc], score) for doc, score in part if doc in by_doc]
        start, size = start + size, min(size * 4, 20_000)
    return rows[op.offset : wanted] if sql else rows


_ROWS = """
    SELECT d.doc, s.prefix, s.key, s.value, s.created_at, s.updated_at
    FROM lexical_docs d
    JOIN lexical_spaces n ON n.ns = d.ns
    JOIN store s ON s.prefix = n.prefix AND s.key = d.key
    WHERE d.doc IN (SELECT j.value FROM json_each(?) j)
"""


def _filter(wanted: dict[str, Any], condition: Condition) -> tuple[str, list[Any]]:
    sql = ""
    parameters: list[Any] = []
    for key, value in wanted.items():
        _validate_filter_key(key)
        for operator, operand in value.items() if isinstance(value, dict) else [("$eq", value)]:
            one, more = condition(key, operator, operand)
            sql += " AND " + one
            # Bytes would never equal the text that SQLite takes out of the JSON.
            parameters += [each.decode() if isinstance(each, bytes) else each for each in more]
    return sql, parameters
