"""Is what a question needs still in the prompt, after the whole conversation was evicted?

Every conversation is archived as a thread's transcript. Each of its questions is then the current message of the user,
and the real nodes resolve memory, recall, trim and assemble the prompt. The budget, in exact tokens with message
overhead, counts everything that comes from the conversation: recent turns and recalled messages with their dates
and speakers. It does not count instructions, tool schemas and the question itself.

An evidence message is in the prompt when it is one of the messages that recall chose, or still in the working set, and
its whole text stands in the prompt; one that was cut does not count. `fraction` is the share of a question's evidence,
`all` and `any` are the shares of questions with all of it and with some. Two baselines get the same budget: `recency`,
the newest messages that fit, and `bm25`, the best of the store's search for the question as it is, in the same format.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.base import SearchOp

from everthread.evals.parallel import spread
from everthread.evals.suites import Options, Report, Table, Tick
from everthread.graph.agent import node_deps
from everthread.memory.recall import Passage, render_recalled
from everthread.memory.recall.rendering import passage_line, session_line
from everthread.memory.rendering import escape
from everthread.models.calls import make_calls
from everthread.models.replay import ReplayModel
from everthread.nodes.inject_memory import inject_memory
from everthread.nodes.model import model
from everthread.nodes.sizes import PromptSize, needs_trim
from everthread.nodes.trim import trim
from everthread.state import Agent, Context, State, namespaces
from everthread.state.marks import marked, sequence, synthetic
from everthread.state.messages import reduce_messages
from everthread.storage.open import Storage, open_storage
from everthread.storage.recall import passage_of
from everthread.storage.transcript import append_operations, message_text
from everthread.window.tokens import counter_for

from .annotations import Question
from .conversations import Conversation, read_conversations

__all__ = ["run"]

BUDGET = 4096
OTHER_BUDGETS = (1000, 2000, 8000)
METHODS = ("everthread", "bm25", "recency")
THREAD = "retention"
_USER = Context.user_id
_WINDOW = 128_000
_COUNTER = counter_for("gpt-4.1")
_SEARCHED = 200

Shown = dict[str, str]
"""What a prompt shows of the conversation: text by message id."""


@dataclass(frozen=True)
class Score:
    """One question: how much of its evidence the prompt shows."""

    shown: int
    wanted: int

    @property
    def parts(self) -> tuple[float, float, float]:
        """Fraction, all and any."""
        return self.shown / self.wanted, float(self.shown == self.wanted), float(self.shown > 0)


Scores = dict[tuple[str, int, str], list[Score]]
"""By method, budget and name of the figure."""


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure recall and the baselines on every question, at the budget and at the usual others.

    Raises:
        RecordError: a file cannot be read, or there is no conversation with questions.
    """
    return measured("retention", OneThread, paths, options, tick)


def measured(suite: str, archive: type["OneThread"], paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure recall on conversations that are kept in some way, such as in one thread each; see `run`."""
    budget = options.budget or BUDGET
    picked = read_conversations(paths, options.limit)
    conversations = picked.records
    budgets = [budget, *(other for other in OTHER_BUDGETS if other != budget)]
    score = partial(scored, budgets=budgets, archive=archive, database=options.database)
    results = spread(score, conversations, options.jobs, tick)
    scores: Scores = defaultdict(list)
    for parts, _ in results:
        for key, values in parts.items():
            scores[key] += values
    most = max(used for _, used in results)
    ours = {name: _means(values) for (by, limit, name), values in scores.items() if (by, limit) == (METHODS[0], budget)}
    figures = {f"{name}.{part}": value for name, parts in ours.items() for part, value in parts.items()}
    left_out = sum(one.left_out for one in conversations)
    return Report(
        suite=suite,
        figures={**figures, "questions": sum(len(one.questions) for one in conversations), "most_tokens": most},
        tables=tuple(_tables(scores, budgets, conversations)),
        remarks=(
            *picked.remarks,
            f"Questions left out, without evidence or with evidence that lacks the answer: {left_out:,}.",
            "`…/agreed` leaves out the questions on which a second annotation disagrees with the first.",
        ),
        settings={"budget": budget, "budgets": sorted(budgets)},
    )


def scored(
    conversation: Conversation, budgets: Sequence[int], archive: type["OneThread"], database: str | None
) -> tuple[Scores, int]:
    """Return the scores of one conversation, and the most tokens that a prompt took of the first budget."""
    scores: Scores = defaultdict(list)
    most = 0
    with empty_storage(database) as storage:
        thread = archive(conversation, storage)
        for question in conversation.questions:
            for limit in budgets:
                for method in METHODS:
                    shown, used = thread.shown(method, question.question, limit)
                    most = max(most, used if limit == budgets[0] else 0)
                    for name in _names(conversation, question):
                        scores[method, limit, name].append(thread.score(question, shown))
    return scores, most


def _names(conversation: Conversation, question: Question) -> Iterator[str]:
    yield conversation.group
    yield f"{conversation.group}/{question.category}"
    if conversation.is_audited and question.audit is None:
        yield f"{conversation.group}/agreed"


def _means(scores: Sequence[Score]) -> dict[str, float]:
    columns = zip(*(score.parts for score in scores), strict=True)
    return {name: sum(column) / len(scores) for name, column in zip(("fraction", "all", "any"), columns, strict=True)}


def _tables(scores: Scores, budgets: Sequence[int], conversations: Sequence[Conversation]) -> Iterator[Table]:
    groups = list(dict.fromkeys(conversation.group for conversation in conversations))
    for limit in sorted(budgets):
        cells = [(group, method) for group in groups for method in METHODS]
        rows = [_row(f"{group}, {method}", scores[method, limit, group]) for group, method in cells]
        yield Table(f"{limit:,} tokens", ("conversations", "fraction", "all", "any", "questions"), tuple(rows))
    first = budgets[0]
    parts = sorted(name for method, limit, name in scores if "/" in name and (method, limit) == (METHODS[0], first))
    rows = [_row(name, scores[METHODS[0], first, name]) for name in parts]
    yield Table(f"by category, {first:,} tokens", ("category", "fraction", "all", "any", "questions"), tuple(rows))


def _row(name: str, scores: Sequence[Score]) -> tuple[str | int | float, ...]:
    return (name, *_means(scores).values(), len(scores))


@contextmanager
def empty_storage(database: str | None) -> Iterator[Storage]:
    """Open an empty storage that goes when it is closed: in memory, or as a schema of its own in Postgres."""
    if database is None:
        with open_storage("sqlite://") as storage:
            yield storage
        return
    import psycopg  # Of the extra `postgres`, which the other databases do without.
    from psycopg.sql import SQL, Identifier

    schema = f"suite_{uuid4().hex[:12]}"
    try:
        with open_storage(f"{database}{'&' if '?' in database else '?'}schema={schema}") as storage:
            yield storage
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))


class OneThread:
    """One conversation in a database of its own, all of it evicted."""

    dials: ClassVar[Mapping[str, Any]] = {}
    """Of the run that answers a question."""
    others: ClassVar[dict[str, Any] | None] = None
    """Keeps a search from finding the questions."""

    def __init__(self, conversation: Conversation, storage: Storage) -> None:
        self._conversation = conversation
        self.storage = storage
        self._texts = {str(message.id): _plain(message_text(message)) for message in conversation.messages}
        self._turns = sum(isinstance(message, HumanMessage) for message in conversation.messages)
        self._prompts: list[list[BaseMessage]] = []
        self._model = ReplayModel(lambda messages, tools: self._prompts.append(messages))
        agent = Agent(name="retention", title="Retention", instructions="Answer from the conversation.")
        self._deps = node_deps(agent, self._model)
        self.keep(conversation.messages)

    def keep(self, messages: Sequence[BaseMessage]) -> None:
        """Write the conversation into the database."""
        self.storage.store.batch(append_operations(THREAD, _USER, messages, why="evicted", at=""))

    @property
    def namespace(self) -> namespaces.Namespace:
        """Where the messages can be searched."""
        return namespaces.transcript(THREAD)

    def message_id(self, key: str) -> str:
        """Return the id of the message that is kept under a key."""
        return key

    def ahead(self, question: str) -> HumanMessage:
        """Return the question as the newest message of its thread."""
        last = self._conversation.messages[-1]
        return marked(HumanMessage(question, id="question"), seq=sequence(last) + 1, previous=last.id)

    def shown(self, method: str, question: str, limit: int) -> tuple[Shown, int]:
        """Return what a method shows of the conversation within a budget, and the tokens it took."""
        show: dict[str, Callable[[str, int], tuple[Shown, int]]] = {
            "everthread": self._recalled,
            "bm25": self._searched,
            "recency": self._recent,
        }
        return show[method](question, limit)

    def score(self, question: Question, shown: Shown) -> Score:
        """Count the evidence whose whole text is shown."""
        count = sum(self._texts[key] in shown.get(key, "") for key in question.evidence if key in shown)
        return Score(count, len(question.evidence))

    def _recalled(self, question: str, limit: int) -> tuple[Shown, int]:
        """Run the real nodes up to the model's prompt."""
        current = self.ahead(question)
        context = Context(window=_WINDOW, recall_tokens=limit, **self.dials)
        events: list[dict[str, Any]] = []
        runtime = Runtime(
            context=context,
            store=self.storage.store,
            stream_writer=events.append,
            execution_info=ExecutionInfo("", "", "", thread_id=THREAD),
        )
        # Every question is a turn of its own; a turn that was there before would be a fork.
        self._turns += 1
        state: State = {"messages": [current], "turns": self._turns}
        state = _merged(state, inject_memory(state, runtime, self._deps))
        if needs_trim(PromptSize.of(state, state["plan"], self._deps.model), context):
            state = _merged(state, trim(state, runtime, self._deps))
        self._model.load([AIMessage("Noted.")])
        self._prompts.clear()
        make_calls(model(state, runtime, self._deps), {})
        chosen: list[str] = next((event["message_ids"] for event in events if event["event"] == "recalled"), [])
        prompt = self._prompts[0]
        used = next(event["breakdown"] for event in events if event["event"] == "prompt_assembled")
        text = "\n".join(_plain(str(message.text)) for message in prompt)
        taken = used["summary"] + used["recalled"] + used["history"] - _COUNTER.message(current)
        return dict.fromkeys(map(self.message_id, chosen), text), taken

    def _searched(self, question: str, limit: int) -> tuple[Shown, int]:
        operation = SearchOp(self.namespace, query=question, limit=_SEARCHED, filter=self.others)
        items: Any = self.storage.store.batch([operation])[0]
        shown, used = _filled((passage_of(item) for item in items), limit)
        return {self.message_id(key): text for key, text in shown.items()}, used

    def _recent(self, question: str, limit: int) -> tuple[Shown, int]:
        shown: Shown = {}
        used = 0
        for message in reversed(self._conversation.messages):
            used += _COUNTER.message(message)
            if used > limit:
                return shown, used - _COUNTER.message(message)
            shown[str(message.id)] = self._texts[str(message.id)]
        return shown, used


def _filled(passages: Iterator[Passage], limit: int) -> tuple[Shown, int]:
    """Take passages in their order as long as they fit, in the format of recall."""
    taken: list[Passage] = []
    room, sessions = limit - _weight([]) - 60, set[tuple[str, str]]()
    for passage in passages:
        cost = _COUNTER.text(passage_line(passage)) + 1
        cost += 0 if passage.session in sessions else _COUNTER.text(session_line(passage)) + 1
        if cost <= room:
            room -= cost
            sessions.add(passage.session)
            taken.append(passage)
    while _weight(taken) > limit:
        taken.pop()
    return {passage.id: _plain(passage.text) for passage in taken}, _weight(taken)


def _weight(passages: Sequence[Passage]) -> int:
    return _COUNTER.message(synthetic("recalled", render_recalled(passages))) if passages else 0


def _merged(state: State, update: Any) -> State:
    merged: State = {**state, **update}
    merged["messages"] = reduce_messages(state["messages"], [update.get("messages", [])])  # type: ignore[typeddict-item]
    return merged


def _plain(text: str) -> str:
    """Return a text as the recalled block shows it."""
    return escape(text)
