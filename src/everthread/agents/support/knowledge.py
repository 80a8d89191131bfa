"""The bundled knowledge base: Markdown articles, searched lexically with SQLite FTS5."""

import re
import sqlite3
import threading
import unicodedata
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from everthread.errors import RecordError, StorageError

SECTIONS = ("Symptoms", "Cause", "Steps", "Verify", "Escalate when")
"""Headings of every article, in order."""

NO_FTS5 = (
    "the knowledge base cannot be searched: the SQLite of this Python was built without FTS5; "
    "install a Python whose SQLite has it (python.org, Debian, Homebrew and conda builds do)"
)

# Columns of the index with their weight in BM25: a word of the title says more than one of the body.
# `compounds` repeats hyphenated words in one piece, so that "wifi" finds "Wi-Fi".
_COLUMNS = {"id": 10, "title": 8, "tags": 8, "products": 4, "symptoms": 3, "compounds": 2, "body": 1}
_TOKENIZER = "porter unicode61 remove_diacritics 2"
_TERMS = 48
_QUERY_CHARACTERS = 2000

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_STEP = re.compile(r"^\d+\.\s+", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")

_STOP_WORDS = frozenset(
    word
    for words in yaml.safe_load((files(__package__) / "stop_words.yaml").read_text(encoding="utf-8")).values()
    for word in words.split()
)
"""Words of a question that say nothing about its topic."""

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Article(BaseModel):
    """One article of the knowledge base."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^KB-\d{4}$")]
    title: Text
    products: Annotated[tuple[Text, ...], Field(min_length=1)]
    tags: Annotated[tuple[Text, ...], Field(min_length=1)]
    updated: date
    symptoms: Text
    cause: Text
    steps: Annotated[tuple[Text, ...], Field(min_length=1)]
    verify: Text
    escalate_when: Text


@dataclass(frozen=True)
class Hit:
    """An article that matches a query."""

    article: Article
    snippet: str
    """The part of the symptoms that matches best."""
    score: float
    """BM25 with column weights; higher is better, comparable within one query only."""


def read_article(text: str, source: str) -> Article:
    """Parse an article: YAML front matter, then the sections of `SECTIONS`, steps as a numbered list.

    Args:
        text: the Markdown file.
        source: what to call the file in an error.

    Raises:
        RecordError: front matter, sections or steps are not as described.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise RecordError(f"{source}: an article starts with YAML front matter between two `---` lines")
    _, *parts = _HEADING.split(match[2])
    headings, bodies = tuple(parts[::2]), [body.strip() for body in parts[1::2]]
    if headings != SECTIONS:
        raise RecordError(f"{source}: sections are {headings!r}; expected {SECTIONS!r}, in this order")
    symptoms, cause, steps, verify, escalate_when = (" ".join(body.split()) if body else "" for body in bodies)
    lead, *numbered = _STEP.split(bodies[2])
    if lead.strip() or not numbered:
        raise RecordError(f"{source}: `Steps` must be a numbered list, got {steps[:60]!r}")
    try:
        return Article(
            **_front_matter(match[1]),
            symptoms=symptoms,
            cause=cause,
            steps=tuple(" ".join(step.split()) for step in numbered),
            verify=verify,
            escalate_when=escalate_when,
        )
    except (ValidationError, yaml.YAMLError, TypeError) as error:
        raise RecordError(f"{source}: {error}") from error


def _front_matter(text: str) -> dict[str, Any]:
    # Every scalar stays text: YAML would read the tags 0x80070057 and 407 as numbers and `on` as true.
    values = yaml.load(text, Loader=yaml.BaseLoader)
    if not isinstance(values, dict):
        raise TypeError(f"front matter must be a mapping, got {values!r}")
    return values


@cache
def bundled_articles() -> tuple[Article, ...]:
    """Read the articles that ship with the package, by id."""
    folder = files("everthread.agents.support") / "articles"
    read = [
        read_article(entry.read_text(encoding="utf-8"), entry.name)
        for entry in folder.iterdir()
        if entry.name.endswith(".md")
    ]
    return tuple(sorted(read, key=lambda article: article.id))


@cache
def bundled_knowledge() -> "KnowledgeBase":
    """Open the knowledge base over the bundled articles, once per process."""
    return KnowledgeBase(bundled_articles())


class KnowledgeBase:
    """Articles in an in-memory FTS5 table; one instance may serve many threads.

    Args:
        articles: what can be found; ids must be unique.

    Raises:
        StorageError: this SQLite has no FTS5.
        RecordError: two articles share an id.
    """

    def __init__(self, articles: Iterable[Article]) -> None:
        self._articles: dict[str, Article] = {}
        for article in articles:
            if article.id in self._articles:
                raise RecordError(f"two articles have the id {article.id!r}; give one of them another")
            self._articles[article.id] = article
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        # Python 3.13 warns about a connection that nobody closed; the finalizer also runs at exit.
        self.close = weakref.finalize(self, self._connection.close)
        """Close the connection; safe to call more than once."""
        self._index()

    def search(self, query: str, limit: int = 3) -> list[Hit]:
        """Find articles about a question, a code or an article id, best first.

        Any text is a legal query: it is cut into words, never read as an FTS5 expression. Words are
        compared by stem, without case and diacritics. A query without a telling word finds nothing.

        Args:
            query: what to look for; only its first 2,000 characters count.
            limit: at most this many hits, at least 1.
        """
        terms = _terms(query)
        if not terms:
            return []
        weights = ", ".join(str(weight) for weight in _COLUMNS.values())
        symptoms = list(_COLUMNS).index("symptoms")
        statement = (
            f"SELECT id, snippet(articles, {symptoms}, '', '', '…', 40), bm25(articles, {weights}) AS distance "
            # Of articles that match as well, the one with the lowest number is the most general.
            "FROM articles WHERE articles MATCH ? ORDER BY round(distance, 1), id LIMIT ?"
        )
        with self._lock:
            rows = self._connection.execute(statement, (_expression(terms), max(1, limit))).fetchall()
        return [Hit(self._articles[name], snippet, round(-distance, 3)) for name, snippet, distance in rows]

    def _index(self) -> None:
        columns = ", ".join(_COLUMNS)
        try:
            self._connection.execute(f"CREATE VIRTUAL TABLE articles USING fts5({columns}, tokenize = '{_TOKENIZER}')")
        except sqlite3.OperationalError as error:
            self.close()
            raise StorageError(f"{NO_FTS5} ({error})") from error
        marks = ", ".join("?" for _ in _COLUMNS)
        rows = [_row(article) for article in self._articles.values()]
        self._connection.executemany(f"INSERT INTO articles({columns}) VALUES ({marks})", rows)


def _row(article: Article) -> tuple[str, ...]:
    tags, products = " ".join(article.tags), " ".join(article.products)
    body = "\n".join((article.cause, *article.steps, article.verify, article.escalate_when))
    everything = "\n".join((article.title, tags, products, article.symptoms, body))
    compounds = ["".join(_WORD.findall(chunk)) for chunk in everything.split() if "-" in chunk]
    return article.id, article.title, tags, products, article.symptoms, " ".join(compounds), body


def _terms(query: str) -> list[str]:
    """Cut a query into quoted FTS5 strings: words, and as phrases what was written in one piece.

    "550 5.1.1" asks for the phrase `5 1 1`, which means something, and not for the digits, which do not.
    """
    terms: dict[str, None] = {}
    for chunk in unicodedata.normalize("NFKC", query[:_QUERY_CHARACTERS]).casefold().split():
        words = _WORD.findall(chunk)
        if len(words) > 1:
            # An apostrophe makes no compound: "can't" and "won't" are not topics.
            if "'" not in chunk and "’" not in chunk:
                terms[" ".join(words)] = None
            if "-" in chunk:
                terms["".join(words)] = None
        terms.update(
            (word, None) for word in words if word not in _STOP_WORDS and (len(word) > 1 or not word.isascii())
        )
    return [f'"{term}"' for term in list(terms)[:_TERMS]]


def _expression(terms: list[str]) -> str:
    """Ask for any term, and once more in title and tags: a word such as `vpn` is in many bodies and in few titles."""
    anywhere = " OR ".join(terms)
    return f"({anywhere}) OR {{title tags}} : ({anywhere})"


def render(query: str, hits: list[Hit]) -> str:
    """Write the hits for the model: what each article is about, what to do, when to escalate."""
    if not hits:
        return (
            f"No article matches {query[:200]!r}. Search again with the product and the exact error text, "
            "or go on without an article and say so."
        )
    return "\n\n".join(_render_hit(hit) for hit in hits)


def _render_hit(hit: Hit) -> str:
    article = hit.article
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(article.steps, start=1))
    return (
        f"{article.id} · {article.title} (score {hit.score:.1f})\n"
        f"Symptoms: {hit.snippet}\n"
        f"Steps:\n{steps}\n"
        f"Verify: {article.verify}\n"
        f"Escalate when: {article.escalate_when}"
    )
