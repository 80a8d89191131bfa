"""Find and rank the items that hold the words of a query.

A word of the index ends with the number of its namespace, so a query reads only the entries of the
namespaces it may see. The rarest words are read whole, up to a bound: in a namespace of a thousand items
that is all of them, and the ranking is exactly BM25's. Words that more items hold are read only where they
meet the rarest ones, which tells the same of the items that can win, for a fraction of the time: what a
search costs hardly grows with the namespace. Everything is read when a filter leaves too little.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from langgraph.store.base import SearchItem, SearchOp
from langgraph.store.sqlite.base import _validate_filter_key

from everthread.memory.text.words import query_words
from everthread.storage.lexical.indexing import OFTEN, space_name
from everthread.storage.lexical.plans import Plan, Row, Statement
from everthread.storage.lexical.ranking import bm25, inverse_frequency

PROBE = 128
"""Entries read of every word to learn how rare it is."""

READ = 500
"""Entries read of all words together that are read whole."""

READ_MORE = 20_000
"""The same where there are no more than `SURE` items, and over many namespaces, where frequent words are not met."""

MET = 10_000
"""Entries of more frequent words, all together, that are looked through for items of the words read."""

TOGETHER = 8_000
"""Entries up to which a word is looked through for items that hold two other frequent ones too."""

SURE = 1_500
"""Items up to which all are ranked."""

RANKED = 500
"""Of more, those that are ranked for having any of the rarest words; the others need to have two of the words."""

SHARED = 1_000
"""Items that are then ranked at most; those with the rarest words come first, then the newest."""

_MANY_SPACES = 24
"""From so many namespaces on a word is looked up in all of them at once and the strangers are left out."""

_NO_BOUND = 1 << 62

_SKIPPED = 60
"""Entries of a long list that take as long as to skip to one item of it."""

_AMONG = 24
"""Words that items are looked for among; each has to be found again in every namespace, for every frequent word."""

_MOST_LENGTHS = 20_000
_MOST_FREQUENT = 4_096


Frequent = dict[tuple[int, str, int], tuple[int, int]]


@dataclass
class Known:
    """What a store remembers of its index from one search to the next."""

    lengths: dict[int, int] = field(default_factory=dict)
    """Words of an item by its number; it stays true for ever, since a changed item gets a new number."""
    frequent: Frequent = field(default_factory=dict)
    """By namespace, word and a number of entries, for words with more: the item behind these, and how many items
    the namespace had then. It stays true while the namespace does not shrink, since new items get higher numbers.
    """


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
    def _entries(self) -> str:
        source = "lexical_index i WHERE lexical_index MATCH ?"
        if len(self.numbers) >= _MANY_SPACES and not self.is_all:
            numbers = ",".join(map(str, self.numbers))
            source = f"lexical_index i CROSS JOIN lexical_docs d ON d.doc = i.rowid AND d.ns IN ({numbers})"
            source += " WHERE lexical_index MATCH ?"
        return f"SELECT i.rowid AS doc FROM {source} ORDER BY i.rowid"

    @property
    def oldest(self) -> str:
        """SQL that gives the oldest items of an expression, as one JSON list: rows would take thrice the time."""
        return f"SELECT json_group_array(doc) FROM ({self._entries} LIMIT ?)"

    @property
    def newest(self) -> str:
        """SQL that gives the newest ones; to find where a list ends takes five times as long as where it begins."""
        return f"SELECT json_group_array(doc) FROM ({self._entries} DESC LIMIT ?)"

    @property
    def next_one(self) -> str:
        """SQL that gives the item behind so many of an expression, if there are so many."""
        return f"{self._entries} LIMIT 1 OFFSET ?"

    @property
    def counted(self) -> str:
        """SQL that gives the number of items of an expression."""
        return f"SELECT count(*) FROM ({self._entries} LIMIT ?)"

    def holders(self, read: int, last: int) -> float:
        """Estimate how many items hold a word, of which `read` are up to the item `last`."""
        return min(read * (self.last - self.first + 1) / max(last - self.first + 1, read), self.docs)


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


def find(op: SearchOp, condition: Condition, loader: Any, known: Known) -> Plan[list[SearchItem]]:
    """Answer a search by BM25, best first.

    Args:
        op: with a query that has words.
        condition: builds the SQL of a filter condition.
        loader: reads a value, None for JSON.
        known: what earlier searches found out, added to.
    """
    spaces = yield from _spaces(op.namespace_prefix)
    words = query_words(op.query or "")
    if not spaces.numbers or op.limit <= 0:
        return []
    rows: list[tuple[Row, float]] = []
    is_large = spaces.docs > SURE and len(spaces.numbers) < _MANY_SPACES
    for read in (READ if is_large else READ_MORE, _NO_BOUND):
        found = yield from _find(spaces, words, op.limit + op.offset, read, known)
        scores = yield from _score(found, spaces, known.lengths)
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


def _find(spaces: Spaces, texts: list[str], wanted: int, read: int, memory: Known) -> Plan[_Found]:
    """Read the entries of the words, the rarest first.

    Args:
        spaces: where to look.
        texts: the words.
        wanted: items that the caller asks for.
        read: entries to read at most, of all words together.
        memory: what earlier searches found out, added to.
    """
    words: list[_Word] = []
    for text in texts:
        word = yield from _look(spaces, text, read, memory.frequent)
        if word.holders:
            words.append(word)
    words.sort(key=lambda word: (word.holders, word.text))
    left = read
    for word in words:
        if not word.is_whole and word.holders <= left:
            word.items, word.is_whole = set((yield from _items(spaces.oldest, spaces.match([word.text])))), True
        if not word.is_whole:
            break
        left -= len(word.items)
        word.often = set((yield from _items(spaces.oldest, spaces.match([word.text + OFTEN]))))
    known, frequent = ([word for word in words if word.is_whole is whole] for whole in (True, False))
    if frequent and known:
        yield from _meet(spaces, known, frequent)
    if frequent and len(set().union(*(word.items for word in known))) < wanted:
        # The rare words do not fill the page, or there are none.
        yield from _read_shared(spaces, frequent, max(wanted, RANKED))
    items = _worth(words, _NO_BOUND if read >= _NO_BOUND else wanted)
    is_whole = not frequent and len(items) == len(set().union(*(word.items for word in words)))
    return _Found(words, items, is_whole)


def _look(spaces: Spaces, text: str, read: int, known: Frequent) -> Plan[_Word]:
    """Tell how rare a word is, exactly as long as it can be read whole."""
    place = (spaces.numbers[0], text, read)
    behind, docs = known.get(place, (0, 0))
    if behind and docs <= spaces.docs and len(spaces.numbers) == 1:
        return _Word(text, set(), spaces.holders(read, behind), is_whole=False)
    expression = spaces.match([text])
    items = yield from _items(spaces.oldest, expression, PROBE)
    if len(items) < PROBE:
        return _Word(text, set(items), float(len(items)), is_whole=True)
    if rows := (yield Statement(spaces.next_one, (expression, read))):
        behind = int(rows[0][0])
        if len(spaces.numbers) == 1:
            if len(known) >= _MOST_FREQUENT:
                known.clear()
            known[place] = behind, spaces.docs
        return _Word(text, set(), spaces.holders(read, behind), is_whole=False)
    rows = yield Statement(spaces.counted, (expression, _NO_BOUND))
    return _Word(text, set(), float(rows[0][0]), is_whole=False)


def _meet(spaces: Spaces, known: list[_Word], frequent: list[_Word]) -> Plan[None]:
    """Find which items of the words that were read hold the frequent ones too."""
    known = known[: _AMONG // len(spaces.numbers)]
    if not known:
        return
    left, items = MET, sum(len(word.items) for word in known)
    among = spaces.match([word.text for word in known])
    for word in frequent:
        # FTS5 skips along the longer list, so few items are found in a long one as fast as in a short one.
        left -= min(int(word.holders), _SKIPPED * items)
        if left < 0:
            break
        # How often they hold it would take as long again and changes little.
        word.items = set((yield from _items(spaces.oldest, f"{spaces.match([word.text])} AND {among}")))


def _read_shared(spaces: Spaces, words: list[_Word], most: int) -> Plan[None]:
    """Read the newest items that hold the rarest of words too frequent to be read, and that share three of them."""
    rarest, together = words[0], words[:3]
    rarest.items.update((yield from _items(spaces.newest, spaces.match([rarest.text]), most)))
    if len(together) > 1 and rarest.holders <= TOGETHER:
        expression = " AND ".join(spaces.match([one.text]) for one in together)
        items = yield from _items(spaces.newest, expression, most)
        for one in together:
            one.items.update(items)


def _worth(words: list[_Word], wanted: int) -> set[int]:
    """Return the items to rank: all with a rare word, and those with two of the others."""
    everything: set[int] = set().union(*(word.items for word in words))
    if len(everything) <= max(SURE, wanted):
        return everything
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


def _items(sql: str, expression: str, limit: int = _NO_BOUND) -> Plan[list[int]]:
    rows = yield Statement(sql, (expression, limit))
    items: list[int] = orjson.loads(rows[0][0])
    return items


def _score(found: _Found, spaces: Spaces, known: dict[int, int]) -> Plan[list[tuple[int, float]]]:
    """Return items with their scores, best first; of equals the newest first."""
    lengths = {item: known[item] for item in found.items if item in known}
    if missing := found.items.difference(lengths):
        rows = yield Statement(
            "SELECT doc, words FROM lexical_docs WHERE doc IN (SELECT j.value FROM json_each(?) j)",
            (orjson.dumps(sorted(missing)).decode(),),
        )
        lengths.update(rows)
        if len(known) > _MOST_LENGTHS:
            known.clear()
        known.update(rows)
    scores = bm25(
        {word.text: word.items & found.items for word in found.words},
        {word.text: word.often for word in found.words},
        {word.text: inverse_frequency(spaces.docs, word.holders) for word in found.words},
        lengths,
        spaces.words / max(spaces.docs, 1),
    )
    # Two sorts by numbers take half the time of one by pairs.
    ranked = sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
    return [(item, scores[item]) for item in ranked]


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
