"""Search by words, the same for every database: a `WordIndex` gives lists of item numbers, `ranking.bm25` orders them.

Of a frequent word only a part is read, so a search takes about as long in a long thread as in a short one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from everthread.storage.ranking import bm25, inverse_frequency

OFTEN = "²"
"""Ends the word of an item that holds it twice or more; without positions an index cannot count."""

PROBE = 300
"""Entries read of every word to learn how rare it is; 100,000 items on SQLite: median 3 ms of CPU for eight words."""

READ = 5_000
"""Entries read of all words together, the rarest first. With 2,000 a fifth of the best fifty items were others."""

MOST_RANKED = 1_000
"""Items that are ranked at most."""

_MOST_MET = 8
"""Frequent words that are looked for among the items of the rare ones."""

ALL = 1 << 62

MANY_SPACES = 24
"""From so many namespaces on a word is looked up in all of them at once and the strangers are left out."""

Groups = Sequence[Sequence[str]]
"""Words: an item must hold one of each group."""

Read = Callable[[Sequence[int]], Mapping[int, Any]]
"""Reads the rows of items by their numbers; those that a filter leaves out are not in the answer."""


class Spaces(NamedTuple):
    """The namespaces that a search may see; each has a number, which ends the words of its items in the index."""

    numbers: tuple[int, ...]
    docs: int
    """Items in all of them."""
    words: int
    """Words of all items."""
    first: int
    """Number of the first item."""
    last: int


class Probe(NamedTuple):
    """How rare a word is."""

    holders: float
    """How many items hold it; an estimate when `items` are not known."""
    items: Sequence[int] | None
    """All of them, when they are few."""


class WordIndex(Protocol):
    """What a store and a search ask of a full-text index; items are numbered in the order in which they came."""

    def has_changes(self) -> bool:
        """Tell whether the store has changes that the index has not."""

    def catch_up(self) -> object:
        """Bring the index up to date with one chunk of changes, in a transaction of the caller."""

    def search(self, prefix: str, words: Sequence[str], wanted: int, read: Read) -> list[tuple[Any, float]]:
        """Return the rows at and below a namespace that hold any of the words; see `candidates.search`."""

    def probe(self, spaces: Spaces, words: Sequence[str]) -> Sequence[Probe]:
        """Return how rare each word is, at less work than to read its items."""

    def items(
        self, spaces: Spaces, asked: Sequence[Groups], limit: int, *, newest: bool = False
    ) -> Sequence[Sequence[int]]:
        """Return for each of the expressions its items, the oldest first unless asked for the newest."""

    def lengths(self, items: Sequence[int]) -> Mapping[int, int]:
        """Return how many words each item has; one that is gone is left out."""


def search(
    index: WordIndex, namespaces: Sequence[Any], words: Sequence[str], wanted: int, read: Read
) -> list[tuple[Any, float]]:
    """Return the rows that hold any of the words, best first, with their scores.

    Args:
        index: the words.
        namespaces: where to look: of each its number, items, words, first and last item.
        wanted: rows at most.
        read: see `Read`.
    """
    if not namespaces:
        return []
    numbers, docs, count, first, last = zip(*namespaces, strict=True)
    spaces = Spaces(numbers, sum(docs), sum(count), min(first), max(last))
    rows: list[tuple[Any, float]] = []
    for budget in (READ, ALL):
        hits = _hits(index, spaces, words, wanted, budget)
        scores = _scores(index, spaces, hits, MOST_RANKED if budget == READ else ALL)
        rows, start, size = [], 0, wanted
        while start < len(scores):
            part = scores[start : start + size]
            by_item = read([item for item, _ in part])
            rows += [(by_item[item], score) for item, score in part if item in by_item]
            if len(rows) >= wanted:
                return rows[:wanted]
            # A filter leaves some out: more and more at once.
            start, size = start + size, 2 * size
        if hits.is_whole and len(scores) < MOST_RANKED:
            break
    return rows


class _Hits(NamedTuple):
    """What was read of the index for a search."""

    items: dict[str, set[int]]
    """Items by word."""
    holders: dict[str, float]
    """How many items hold a word, at least by estimate."""
    rare: list[str]
    """Words that few items hold, in which a frequent one was looked for."""
    whole: set[str]
    """Words of which every entry was read."""
    is_whole: bool
    """Whether that is so of all."""


def _hits(index: WordIndex, spaces: Spaces, words: Sequence[str], wanted: int, budget: int) -> _Hits:
    """Read the entries of the rarest words; of the others only as many as fill the page."""
    holders: dict[str, float] = {}
    hits: dict[str, set[int]] = {}
    unread: list[str] = []
    frequent: list[str] = []
    probed = zip(words, index.probe(spaces, words), strict=True)
    for word, one in sorted(probed, key=lambda probe: (probe[1].holders, probe[0])):
        holders[word] = one.holders
        if one.items is not None:
            hits[word] = set(one.items)
        elif one.holders > budget:
            frequent.append(word)
            continue
        else:
            unread.append(word)
        budget -= int(one.holders)
    for word, items in zip(unread, index.items(spaces, [[[word]] for word in unread], ALL), strict=True):
        hits[word], holders[word] = set(items), len(items)
    hits = {word: items for word, items in hits.items() if items}
    whole = set(hits)
    size = max(2 * wanted, 100)
    met = frequent[:_MOST_MET]
    rare = [word for word in hits if len(hits[word]) <= PROBE]
    if met and rare:
        # A frequent word tells the items of a rare one apart; here it costs nothing but the rare one's length.
        both = index.items(spaces, [[rare, [word]] for word in met], ALL)
        hits |= {word: set(items) for word, items in zip(met, both, strict=True)}
    if frequent and len(set().union(*hits.values())) < wanted:
        # The newest items that hold the two rarest of them, or else the rarest.
        (items,) = index.items(spaces, [[[word] for word in frequent[:2]]], size, newest=True)
        more = index.items(spaces, [[frequent[:1]]], size, newest=True)[0] if len(items) < wanted else []
        for place, word in enumerate(frequent[:2]):
            hits[word] = hits.get(word, set()).union(items, more if place == 0 else ())
    return _Hits(hits, holders, rare, whole, is_whole=not frequent)


def _scores(index: WordIndex, spaces: Spaces, hits: _Hits, most: int) -> list[tuple[int, float]]:
    """Rank items, best first; of equals the newest first."""
    weights = {word: inverse_frequency(spaces.docs, hits.holders[word]) for word in hits.items}
    items = set().union(*hits.items.values())
    if len(items) > most:
        sums = dict.fromkeys(items, 0.0)
        for word, found in hits.items.items():
            weight = weights[word]
            for item in found:
                sums[item] += weight
        items = set(best_first(sums)[:most])
    # Of a frequent word only where it was looked for: to read all items that hold it twice takes longer than the rest.
    counted = [word for word in hits.items if word in hits.whole or hits.rare]
    asked = [[[word + OFTEN]] if word in hits.whole else [hits.rare, [word + OFTEN]] for word in counted]
    repeated = index.items(spaces, asked, ALL)
    often = {word: set(found) for word, found in zip(counted, repeated, strict=True)}
    near = {word: found & items for word, found in hits.items.items()}
    scores = bm25(near, often, weights, index.lengths(sorted(items)), spaces.words / max(spaces.docs, 1))
    return [(item, scores[item]) for item in best_first(scores)]


def probes(index: WordIndex, spaces: Spaces, words: Sequence[str], part: int = 1) -> list[Probe]:
    """Estimate how many items hold each word by the oldest of them.

    Args:
        index: where to look.
        spaces: where to look in it.
        words: looked up as they are.
        part: of so many items one at most has the word in this form.
    """
    return [_probe(spaces, items, part) for items in index.items(spaces, [[[word]] for word in words], PROBE)]


def _probe(spaces: Spaces, items: Sequence[int], part: int) -> Probe:
    """Estimate by the older half: Postgres may put a few young items into the gaps between old ones."""
    if len(items) < PROBE:
        return Probe(len(items) * part, items if part == 1 else None)
    half = len(items) // 2
    passed = max(items[half - 1] - spaces.first + 1, half)
    return Probe(min(part * half * (spaces.last - spaces.first + 1) / passed, spaces.docs), None)


def best_first(scores: Mapping[int, float]) -> list[int]:
    """Return items by score, of equals the newest first; two sorts by numbers take half the time of one by pairs."""
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


def entry(word: str, ns: int) -> str:
    """Return a word of a namespace as the index holds it."""
    return f"{word}_{space_name(ns)}"


def entries(words: Mapping[str, int], ns: int) -> list[str]:
    """Return the words of an item as the index holds them: each with its namespace."""
    often = [word + OFTEN for word, count in words.items() if count > 1]
    end = "_" + space_name(ns)
    return [word + end for word in (*words, *often)]


def space_name(ns: int) -> str:
    """Return the number of a namespace as it ends the words of its items, in base 36."""
    name = ""
    while ns:
        ns, digit = divmod(ns, 36)
        name = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + name
    return name
