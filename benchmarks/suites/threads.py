"""The same as `retention`, with each session of a conversation as a thread of its own.

The question opens a new thread of the same user, whose run searches the others (`recall_threads="mine"`). The figures
and baselines are those of `retention`; a message of a tool is in no other thread's reach, so as evidence it is missed.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage, HumanMessage

from everthread.evals.suites import Options, Report, Tick
from everthread.state import Context, namespaces
from everthread.state.marks import marked, marks
from everthread.storage.said import said_key, said_operations

from .retention import THREAD, OneThread, measured

__all__ = ["run"]


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure recall over threads and the baselines on every question.

    Raises:
        RecordError: a file cannot be read, or there is no conversation with questions.
    """
    return measured("threads", ManyThreads, paths, options, tick)


class ManyThreads(OneThread):
    """One conversation in a database of its own, a thread for each session."""

    dials: ClassVar[Mapping[str, Any]] = {"recall_threads": "mine"}
    others: ClassVar[dict[str, Any] | None] = {"thread_id": {"$ne": THREAD}}

    def keep(self, messages: Sequence[BaseMessage]) -> None:
        """Write each session into the database, as the nodes do when a message comes and when it is answered."""
        self._ids: dict[str, str] = {}
        for number, (_, group) in enumerate(groupby(messages, lambda message: marks(message)["at"])):
            session = [marked(message, seq=place) for place, message in enumerate(group)]
            self._ids |= {said_key(_name(number), place): str(one.id) for place, one in enumerate(session)}
            self.storage.store.batch(said_operations(_name(number), Context.user_id, session))

    @property
    def namespace(self) -> namespaces.Namespace:
        """Where the messages can be searched."""
        return namespaces.said(Context.user_id)

    def message_id(self, key: str) -> str:
        """Return the id of the message that is kept under a key."""
        return self._ids[key]

    def ahead(self, question: str) -> HumanMessage:
        """Return the question as the first message of its thread."""
        return marked(HumanMessage(question, id="question"), seq=0, previous=None)


def _name(number: int) -> str:
    # As long as what applications name their threads by.
    return f"00000000-0000-4000-8000-{number:012d}"
