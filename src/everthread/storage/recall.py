"""Search the transcript for what a question needs: the store's part of recall, for the node and for the tool."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore, GetOp, Item, SearchOp

from everthread.memory.recall import Chosen, Passage, Question, Relevance, choose
from everthread.memory.recall.question import TASTES
from everthread.memory.recall.relevance import Weights
from everthread.memory.text.words import content_words, stem, words
from everthread.state import namespaces
from everthread.state.marks import sequence, synthetic
from everthread.state.places import Link, link_of, own_branch
from everthread.state.stored import call_text
from everthread.storage.said import said_key
from everthread.storage.unreadable import readable
from everthread.window.tokens import TokenCounter

CANDIDATES = 200
"""Messages that the search may find at the most; the rest of the work does not grow with the thread."""

_FEWEST_CANDIDATES = 60

_TOKENS_EACH = 10
"""Tokens of the block for each message that is looked at: a small block holds few of them."""

_FEW = 3
"""Messages that are looked at to tell whether anything was said of a subject."""

_TASTES = 60
"""Statements of taste that the search may find for a question that asks for advice."""

_TASTE_SHARE = 0.3
"""What the best of them counts, against 1 for the best match of the question's own words."""

HOPS = 3
"""Messages on either side of a match that may come along."""

_LONGEST_WALK = 2_000
"""Messages of a fork that are followed back one by one; older ones of that branch are not recalled."""

_KEPT_LINKS = 50_000
"""Links of forks held in memory, across the threads of a store."""


@dataclass(frozen=True)
class Search:
    """Where and how to look."""

    store: BaseStore
    thread_id: str
    hidden: frozenset[str]
    """Ids that the prompt shows already."""
    before: int
    """Only messages ahead of this place."""
    shared: int | None = None
    """Last place that all branches of the thread share; None when there is only one."""
    own: frozenset[str] = frozenset()
    """Ids of this branch after that place."""
    first_day: str = ""
    """Only messages from this ISO day on; empty for any."""
    last_day: str = ""
    """Only messages up to this ISO day; empty for any."""
    of_user: str = ""
    """Look into the other threads of this user, and not into the transcript of this one; empty: into this one."""

    @property
    def namespace(self) -> namespaces.Namespace:
        """Where the messages are."""
        return namespaces.said(self.of_user) if self.of_user else namespaces.transcript(self.thread_id)

    @property
    def filter(self) -> dict[str, Any] | None:
        """What the store is to leave out."""
        wanted: dict[str, Any] = {"thread_id": {"$ne": self.thread_id}} if self.of_user else {}
        dates = {"$gte": self.first_day} if self.first_day else {}
        if self.last_day:
            # Later on the last day is still that day; "~" sorts behind every character of a timestamp.
            dates["$lte"] = self.last_day + "~"
        return wanted | ({"date": dates} if dates else {}) or None

    def beside(self, passage: Passage, hops: int) -> list[str]:
        """Return the keys of the messages beside one: of another thread all within the hops, of this one its links."""
        if self.of_user:
            # By their places: between a question and its reply may lie a round of tools, which nobody said.
            steps = (step for step in range(-hops, hops + 1) if step)
            return [said_key(passage.thread, passage.seq + step) for step in steps]
        return [link for link in (passage.previous, passage.next) if link]

    def allows(self, passage: Passage) -> bool:
        """Tell whether a message belongs to this branch and is not in the prompt yet, or is of another thread."""
        if passage.id in self.hidden or not 0 <= passage.seq < self.before or not passage.text.strip():
            return False
        if bool(passage.thread) != bool(self.of_user) or (self.of_user and passage.thread == self.thread_id):
            return False
        if (self.first_day and passage.day < self.first_day) or (self.last_day and passage.day > self.last_day):
            return False
        return self.is_of_branch(passage)

    def is_of_branch(self, passage: Passage) -> bool:
        """Tell whether a message of this thread belongs to this branch."""
        return self.shared is None or passage.seq <= self.shared or passage.id in self.own


def within_days(search: Search, first: str, last: str) -> Search:
    """Narrow a search to messages between two ISO days, both included; empty for no bound."""
    return replace(search, first_day=first, last_day=last)


def other_threads(store: BaseStore, thread_id: str, user_id: str, hidden: Iterable[str] = ()) -> Search:
    """Return the search in a user's other threads.

    Args:
        store: has what was said in them.
        thread_id: the current thread, which is left out; empty for none.
        user_id: whose threads; who asks has to be them.
        hidden: ids of passages that the prompt shows already.
    """
    return Search(store, thread_id, frozenset(hidden), before=sys.maxsize, of_user=user_id)


def recall_passages(
    searches: Sequence[Search],
    question: Question,
    limit: int,
    counter: TokenCounter,
    *,
    weights: Weights = Relevance.DEFAULT,
    hops: int = HOPS,
) -> tuple[Chosen, int]:
    """Search, look at the messages around what was found, and choose what fits.

    Args:
        searches: where to look: this thread, the user's other threads, or both.
        question: what is asked.
        limit: tokens of the block as a message.
        weights: what each clue counts; another value than the default is for measuring.
        hops: messages on either side of a match that may come along.

    Returns:
        What was chosen, and how many messages the search found.
    """
    most = max(_FEWEST_CANDIDATES, min(CANDIDATES, limit // _TOKENS_EACH))
    by_search: list[tuple[Search, dict[str, Passage]]] = []
    for search in searches:
        found, question = candidates(search, question, most)
        by_search.append((search, found))
    every = [passage for _, found in by_search for passage in found.values()]
    if not every:
        return Chosen(""), 0
    relevance = Relevance(every, question, weights)
    # Few messages fit a small block, so fewer have to be looked around.
    near = max(12, min(100, (limit - 600) // 34))
    around = [one for search, found in by_search for one in _neighbours(search, found, relevance, most=near, hops=hops)]
    chosen = choose(
        around,
        relevance,
        question,
        limit=limit,
        weigh=lambda text: counter.message(synthetic("recalled", text)),
        count=counter.text,
    )
    return chosen, len(every)


def search_said(store: BaseStore, user_id: str, text: str, limit: int) -> list[Passage]:
    """Return what was said in any thread of a user and has words of a text, the best first."""
    found = _found(other_threads(store, "", user_id), text, limit) if text.strip() else {}
    return sorted(found.values(), key=lambda one: (-one.score, one.date, one.id))


def mentioned(search: Search, words: Sequence[str]) -> bool:
    """Tell whether an archived message of this branch has one of the words."""
    return bool(_found(search, " ".join(words), _FEW))


def candidates(search: Search, question: Question, most: int = CANDIDATES) -> tuple[dict[str, Passage], Question]:
    """Return the messages that match, at most so many, by id, and the question with the speakers it names."""
    found = _found(search, question.query, most)
    with_speakers = question.among({passage.speaker for passage in found.values() if passage.role != "tool"})
    if with_speakers != question:
        question = with_speakers
        found = _found(search, question.query, most)
    if question.asks_advice:
        top = max((passage.score for passage in found.values()), default=1.0)
        tastes = _found(search, TASTES, _TASTES)
        best = max((passage.score for passage in tastes.values()), default=0.0) or 1.0
        for key, passage in tastes.items():
            found.setdefault(key, passage._replace(score=passage.score / best * top * _TASTE_SHARE))
    return found, question


def _found(search: Search, query: str, limit: int) -> dict[str, Passage]:
    operation = SearchOp(search.namespace, query=query, limit=limit, filter=search.filter)
    items: Any = search.store.batch([operation])[0]
    passages = readable(items, lambda item: passage_of(item, _score(item, query)))
    return {passage.id: passage for passage in passages if passage.score > 0 and search.allows(passage)}


def _score(item: Any, query: str) -> float:
    if item.score is not None:
        return float(item.score)
    # A store without a text search gives any items, and no scores: count the words that they share.
    asked = {stem(word) for word in content_words(query)}
    return float(len(asked.intersection(map(stem, words(passage_of(item).text)))))


def _neighbours(
    search: Search, found: Mapping[str, Passage], relevance: Relevance, *, most: int, hops: int
) -> list[Passage]:
    """Return the candidates and the messages around the best of them."""
    passages = dict(found)
    edge = [passage for passage, _ in relevance.ranked(found.values())[:most]]
    for _ in range(min(hops, 1) if search.of_user else hops):
        links = (link for passage in edge for link in search.beside(passage, hops))
        wanted = dict.fromkeys(link for link in links if link not in passages)
        edge = [passage for passage in _read(search, wanted) if search.allows(passage)]
        passages.update((passage.id, passage) for passage in edge)
        if not edge:
            break
    return list(passages.values())


def _read(search: Search, ids: Iterable[str]) -> list[Passage]:
    operations = [GetOp(search.namespace, message_id) for message_id in ids if message_id not in search.hidden]
    items = search.store.batch(operations) if operations else []
    return list(readable([item for item in items if isinstance(item, Item)], passage_of))


_SPEAKERS = {"human": "user", "ai": "assistant"}


def passage_of(item: Item, score: float | None = None) -> Passage:
    """Read a record of the transcript, or of `said`; building LangChain's message would take ten times as long."""
    value = item.value
    data = value.get("message") or value
    data = data.get("data", data)
    role = str(value.get("role", ""))
    return Passage(
        id=item.key,
        seq=int(value.get("seq", -1)),
        role=role,
        speaker=str(data.get("name") or _SPEAKERS.get(role, role)),
        text=str(value["text"]) if "text" in value else _text(data),
        date=str(value.get("date") or ""),
        score=score or 0.0,
        previous=value.get("previous"),
        next=value.get("next"),
        thread=str(value.get("thread_id") or ""),
    )


def _text(data: Mapping[str, Any]) -> str:
    content, calls = data.get("content") or "", data.get("tool_calls")
    if not calls and isinstance(content, str):
        return content
    blocks = [content] if isinstance(content, str) else content
    texts = [block if isinstance(block, str) else str(block.get("text") or "") for block in blocks]
    return "\n".join(filter(None, [*texts, *map(call_text, calls or ())]))


def search_of(store: BaseStore, thread_id: str, messages: Sequence[BaseMessage], shared: int | None) -> Search:
    """Return the search for what this branch of a thread has evicted.

    Args:
        messages: the working set, oldest first.
        shared: last place that all branches share; None when there is only one branch.
    """
    hidden = frozenset(str(message.id) for message in messages)
    search = Search(store, thread_id, hidden, before=sequence(messages[-1]), shared=shared)
    if shared is None:
        return search
    return replace(search, own=own_branch(messages, partial(_link, search), shared, most=_LONGEST_WALK))


_Links = dict[tuple[str, str], Link]
_links: WeakKeyDictionary[BaseStore, _Links] = WeakKeyDictionary()
"""Links of messages that left the state by thread and id, which never change: a branch is read only once."""


def _link(search: Search, message_id: str) -> Link | None:
    links = _links.setdefault(search.store, {})
    key = (search.thread_id, message_id)
    if key not in links:
        spaces = (search.namespace, namespaces.removed(search.thread_id))
        items = search.store.batch([GetOp(space, message_id) for space in spaces])
        found = [item for item in items if isinstance(item, Item)]
        if not found:
            return None
        if len(links) >= _KEPT_LINKS:
            links.clear()
        links[key] = link_of(found[0].value)
    return links[key]
