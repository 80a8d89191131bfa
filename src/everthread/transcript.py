"""Transcript and recall alone: for a graph of one's own, or for no graph at all."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, get_args

from langchain_core.messages import BaseMessage, MessageLikeRepresentation, SystemMessage
from langgraph.store.base import BaseStore, GetOp, PutOp

from everthread.errors import SettingsError
from everthread.ledger.record import now
from everthread.memory.recall import Question
from everthread.state import namespaces
from everthread.state.context import RecallThreads
from everthread.state.marks import MARK, marked, sequence
from everthread.state.messages import as_messages, reduce_messages
from everthread.storage.recall import Search, other_threads, recall_passages
from everthread.storage.said import said_operations
from everthread.storage.transcript import append_operations, archived
from everthread.window.tokens import TokenCounter, counter_for
from everthread.window.turns import opens_turn

_LEAST_TOKENS = 64


@dataclass(frozen=True)
class Transcript:
    """Every message of one thread, in order and searchable, in a store.

    The thread gets a session record, so `everthread threads`, `export` and `forget` know it. Appending reads and
    writes, so of several processes only one at a time may append to a thread: `with storage.locks.hold(thread_id)`.

    Args:
        store: `storage.store`, or any other of LangGraph's; one without a text search counts words that are shared.
        thread_id: the thread; not one that an Everthread graph runs, since that one keeps its transcript itself.
        user_id: whose conversation it is.

    Raises:
        SettingsError: it is no store, or an id cannot be stored.
    """

    store: BaseStore
    thread_id: str
    user_id: str

    def __post_init__(self) -> None:
        if not isinstance(self.store, BaseStore):
            raise SettingsError(f"`store` must be a store, such as `storage.store`, got {type(self.store).__name__}")
        namespaces.checked("thread_id", self.thread_id)
        namespaces.checked("user_id", self.user_id)

    def append(self, messages: Iterable[MessageLikeRepresentation], *, at: str | None = None) -> list[BaseMessage]:
        """Append messages that the thread does not have yet, in one batch.

        Args:
            messages: oldest first. One with an id that is known is left out, so an append can be repeated; one
                without gets an id.
            at: when they were said, ISO 8601, in UTC unless it names a zone; None: now.

        Returns:
            The new messages as they are kept, with their ids.

        Raises:
            SettingsError: the thread is another user's, or one of an Everthread graph; or `messages` is no list, or
                `at` no time.
        """
        if isinstance(messages, str | Mapping | BaseMessage):
            raise SettingsError(f"`append` takes a list of messages, got one {type(messages).__name__}")
        session, at = self._session(), now() if at is None else _time(at)
        if session["turns"] and "tail" not in session:
            raise SettingsError(f"thread {self.thread_id!r} is run by Everthread, which keeps its transcript itself")
        given = as_messages(messages)
        namespace = namespaces.transcript(self.thread_id)
        last_id, last_place = session.get("tail") or (None, -1)
        reads = [GetOp(namespace, str(message.id)) for message in given if message.id is not None]
        items: list[Any] = self.store.batch([*reads, GetOp(namespace, last_id or "none")])
        tail = items.pop()
        known = {item.key for item in items if item is not None}
        before = SystemMessage("", id=last_id, additional_kwargs={MARK: {"seq": last_place}})
        fresh = [message for message in given if message.id not in known]
        kept = reduce_messages([before] if last_id else [], [fresh])
        new = [marked(message, at=at) for message in (kept[1:] if last_id else kept)]
        if not new:
            return []
        session |= {
            "last_activity": at,
            "turns": session["turns"] + sum(map(opens_turn, new)),
            "tail": [new[-1].id, sequence(new[-1])],
        }
        operations = append_operations(self.thread_id, self.user_id, new, why="appended", at=at)
        operations += said_operations(self.thread_id, self.user_id, new)
        operations.append(PutOp(namespaces.SESSIONS, self.thread_id, session, index=False))
        if tail is not None:
            operations.append(PutOp(namespace, str(last_id), {**tail.value, "next": new[0].id}))
        self.store.batch(operations)
        return new

    def messages(self) -> list[BaseMessage]:
        """Return all messages, oldest first.

        Raises:
            SettingsError: the thread is another user's.
        """
        self._session()
        return archived(self.store, self.thread_id)

    def recall(
        self,
        question: str,
        *,
        tokens: int = 1_000,
        threads: RecallThreads = "this",
        shown: Sequence[BaseMessage] = (),
        today: date | None = None,
        counter: TokenCounter | None = None,
    ) -> str:
        """Return what was said that a question needs, as one text for the prompt; no model is asked.

        Args:
            question: what the user asks.
            tokens: what the text may take as a message, at least 64.
            threads: `this` thread alone, or all threads of the user (`mine`).
            shown: messages that the prompt has already, with their ids.
            today: the day of the question, which "last week" depends on; None: today in UTC.
            counter: counts tokens, from `everthread.window.tokens.counter_for`; None: as OpenAI does.

        Returns:
            Passages by day, oldest first, inside `<recalled>`; empty when nothing was found.

        Raises:
            SettingsError: an argument is not usable, or the thread is another user's.
        """
        self._session()
        if not isinstance(question, str):
            raise SettingsError(f"`question` must be a text, got {question!r}")
        if threads not in get_args(RecallThreads):
            raise SettingsError(f"`threads` is {threads!r}; choose one of {', '.join(get_args(RecallThreads))}")
        if tokens < _LEAST_TOKENS:
            raise SettingsError(f"`tokens` must be at least {_LEAST_TOKENS}, got {tokens!r}")
        asked = Question.read(question, today or datetime.now(UTC).date())
        if not asked.query:
            return ""
        hidden = frozenset(str(message.id) for message in shown)
        searches = [Search(self.store, self.thread_id, hidden, before=sys.maxsize)]
        if threads == "mine":
            searches.append(other_threads(self.store, self.thread_id, self.user_id))
        return recall_passages(searches, asked, tokens, counter or counter_for("gpt-4o"))[0].text

    def _session(self) -> dict[str, Any]:
        """Return the session record of the thread, a new one when there is none.

        Raises:
            SettingsError: the thread is another user's.
        """
        item = self.store.get(namespaces.SESSIONS, self.thread_id)
        if item is None:
            return {"thread_id": self.thread_id, "user_id": self.user_id, "began": now(), "turns": 0}
        session = dict(item.value)
        if session.get("user_id") != self.user_id:
            raise SettingsError(
                f"thread {self.thread_id!r} belongs to another user than {self.user_id!r}; use a thread of their own"
            )
        return session


def _time(text: str) -> str:
    """Return a time with its zone."""
    try:
        then = datetime.fromisoformat(str(text))
    except ValueError:
        raise SettingsError(f"`at` must be a time such as '2026-01-31T10:00:00+00:00', got {text!r}") from None
    return (then if then.tzinfo else then.replace(tzinfo=UTC)).isoformat()
