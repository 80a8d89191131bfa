"""Search the transcript for what a question needs: the store's part of recall, for the node and for the tool."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore, GetOp, Item, SearchOp

from everthread.memory.recall import Chosen, Passage, Question, Relevance, choose
from everthread.memory.recall.question import TASTES
from everthread.memory.recall.relevance import Weights
from everthread.memory.text.words import content_words, stem, words
from everthread.state import namespaces
from everthread.state.marks import marks, sequence, synthetic
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

    def allows(self, passage: Passage) -> bool:
        """Tell whether a message belongs to this branch and is not in the prompt yet."""
        if passage.id in self.hidden or not 0 <= passage.seq < self.before or not passage.text.strip():
            return False
        if (self.first_day and passage.day < self.first_day) or (self.last_day and passage.day > self.last_day):
            return False
        return self.shared is None or passage.seq <= self.shared or passage.id in self.own


def within_days(search: Search, first: str, last: str) -> Search:
    """Narrow a search to messages between two ISO days, both included; empty for no bound."""
    return replace(search, first_day=first, last_day=last)


def recall_passages(
    search: Search,
    question: Question,
    limit: int,
    counter: TokenCounter,
    *,
    weights: Weights = Relevance.DEFAULT,
    hops: int = HOPS,
) -> tuple[Chosen, int]:
    """Search, look at the messages around what was found, and choose what fits.

    Args:
        search: where to look.
        question: what is asked.
        limit: tokens of the block as a message.
        counter: counts tokens.
        weights: what each clue counts; another value than the default is for measuring.
        hops: messages on either side of a match that may come along.

    Returns:
        What was chosen, and how many messages the search found.
    """
    found, question = candidates(search, question, max(_FEWEST_CANDIDATES, min(CANDIDATES, limit // _TOKENS_EACH)))
    if not found:
        return Chosen(""), 0
    relevance = Relevance(list(found.values()), question, weights)
    # Few messages fit a small block, so fewer have to be looked around.
    around = _neighbours(search, found, relevance, most=max(12, min(100, (limit - 600) // 34)), hops=hops)
    chosen = choose(
        around,
        relevance,
        question,
        limit=limit,
        weigh=lambda text: counter.message(synthetic("recalled", text)),
        count=counter.text,
    )
    return chosen, len(found)


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
    dates = {"$gte": search.first_day} if search.first_day else {}
    if search.last_day:
        # Later on the last day is still that day; "~" sorts behind every character of a timestamp.
        dates["$lte"] = search.last_day + "~"
    wanted = {"date": dates} if dates else None
    operation = SearchOp(namespaces.transcript(search.thread_id), query=query, limit=limit, filter=wanted)
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
    for _ in range(hops):
        wanted = dict.fromkeys(
            link for passage in edge for link in (passage.previous, passage.next) if link and link not in passages
        )
        edge = [passage for passage in _read(search, wanted) if search.allows(passage)]
        passages.update((passage.id, passage) for passage in edge)
        if not edge:
            break
    return list(passages.values())


def _read(search: Search, ids: Iterable[str]) -> list[Passage]:
    namespace = namespaces.transcript(search.thread_id)
    operations = [GetOp(namespace, message_id) for message_id in ids if message_id not in search.hidden]
    items = search.store.batch(operations) if operations else []
    return list(readable([item for item in items if isinstance(item, Item)], passage_of))


_SPEAKERS = {"human": "user", "ai": "assistant"}


def passage_of(item: Item, score: float | None = None) -> Passage:
    """Read a record of the transcript; building LangChain's message from it would take ten times as long."""
    value = item.value
    data = value.get("message") or {}
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
    )


def _text(data: Mapping[str, Any]) -> str:
    content, calls = data.get("content") or "", data.get("tool_calls")
    if not calls and isinstance(content, str):
        return content
    blocks = [content] if isinstance(content, str) else content
    texts = [block if isinstance(block, str) else str(block.get("text") or "") for block in blocks]
    for call in calls or ():
        texts.append(f"{call['name']}({', '.join(f'{name}={value!r}' for name, value in call['args'].items())})")
    return "\n".join(text for text in texts if text)


def search_of(store: BaseStore, thread_id: str, messages: Sequence[BaseMessage], shared: int | None) -> Search:
    """Return the search for what this branch of a thread has evicted.

    Args:
        store: holds the transcript.
        thread_id: whose transcript.
        messages: the working set, oldest first.
        shared: last place that all branches share; None when there is only one branch.
    """
    hidden = frozenset(str(message.id) for message in messages)
    search = Search(store, thread_id, hidden, before=sequence(messages[-1]), shared=shared)
    return search if shared is None else replace(search, own=_own(search, messages, shared))


def _own(search: Search, messages: Sequence[BaseMessage], shared: int) -> frozenset[str]:
    """Follow this branch back to what all branches share."""
    ids: set[str] = set()
    here = {message.id for message in messages}
    for message in messages:
        link = marks(message).get("previous")
        while link and link not in here and link not in ids and len(ids) < _LONGEST_WALK:
            seq, previous = _link(search, link)
            if seq <= shared:
                break
            ids.add(link)
            link = previous
    return frozenset(ids)


_Links = dict[tuple[str, str], tuple[int, str | None]]
_links: WeakKeyDictionary[BaseStore, _Links] = WeakKeyDictionary()
"""Place and predecessor of archived messages by thread and id, which never change: a branch is read only once."""


def _link(search: Search, message_id: str) -> tuple[int, str | None]:
    links = _links.setdefault(search.store, {})
    key = (search.thread_id, message_id)
    if key not in links:
        passages = _read(search, [message_id])
        if not passages:
            return -1, None
        if len(links) >= _KEPT_LINKS:
            links.clear()
        links[key] = passages[0].seq, passages[0].previous
    return links[key]
