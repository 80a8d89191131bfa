"""PrecisionMemBench: does a question bring the beliefs that it needs, and none besides?

It reads the files of the benchmark (github.com/tenurehq/precisionMemBench, MIT) from its folder `fixtures`:
`beliefs.seed.json`, `retrieval.cases.json` and, where it is there, `session-retrieval.cases.json`. As in its own runner
pinned beliefs, open questions and the persona are given, so that what is measured is which other beliefs a query
brings, up to the case's limit: a case passes when they are exactly those that it names, and all else that it asks for
holds. Precision is taken where something is returned or wanted, recall where something is wanted; an *active* pass is
one with a precision. A session's turn has a drift: what was returned without being wanted.

Four methods, on one store: `names`, its search over names and aliases (`put(index=…)`), `words`, over all that a belief
says, `notes`, what the product shows of long-term notes at its default of 600 tokens, and `everything` of the scope.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from everthread.errors import RecordError
from everthread.evals.suites import Options, Report, Table, Tick
from everthread.memory.selection import chosen
from everthread.state import Context, Note, namespaces
from everthread.storage.open import Storage, open_storage
from everthread.window.tokens import counter_for

__all__ = ["run"]

METHODS = ("names", "words", "notes", "everything")
_USER = "test-user"
_MOST = 20
_COUNT = counter_for("gpt-4.1").text

Cells = tuple[str | int | float, ...]


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Belief(_Row):
    """One belief of a user."""

    id: str = Field(alias="_id")
    user_id: str
    type: str
    canonical_name: str
    aliases: list[str] = []
    content: str
    why_it_matters: str = ""
    scope: list[str]
    pinned: bool = False
    superseded_by: str | None = None
    resolved_at: str | None = None
    participants: list[str] = []
    updated_at: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing took its place."""
        return self.superseded_by is None and self.resolved_at is None

    @property
    def names(self) -> str:
        """What it is called."""
        return " ".join([self.canonical_name.replace("_", " "), *self.aliases])


class Wanted(_Row):
    """What one part of the context has to hold; ids, but for the persona."""

    must_include: list[str] = Field(default=[], alias="mustInclude")
    must_exclude: list[str] = Field(default=[], alias="mustExclude")
    should_include: list[str] = Field(default=[], alias="shouldInclude")
    only: list[str] | None = Field(default=None, alias="shouldOnlyInclude")
    ordered: list[tuple[str, str]] = Field(default=[], alias="orderedBefore")
    most: int | None = Field(default=None, alias="maxCount")
    least: int | None = Field(default=None, alias="minCount")


class Noise(_Row):
    """Beliefs of other topics."""

    absent: list[str] = Field(default=[], alias="mustNotSurface")


class Expected(_Row):
    """What a case asks for."""

    pinned: Wanted = Field(default=Wanted(), alias="pinnedFacts")
    relevant: Wanted = Field(default=Wanted(), alias="relevantBeliefs")
    questions: Wanted = Field(default=Wanted(), alias="openQuestions")
    noise: Noise = Field(default=Noise(), alias="noiseCheck")


class Budget(_Row):
    """How much a context may hold."""

    beliefs: int = Field(default=_MOST, alias="maxBeliefs")


class Case(_Row):
    """One query."""

    category: str = "Session-level noise isolation"
    user_id: str = Field(default=_USER, alias="userId")
    scope: list[str]
    query: str
    budget: Budget = Budget()
    expect: Expected


class Update(_Row):
    """New names of a belief."""

    belief_id: str = Field(alias="beliefId")
    aliases: list[str] = Field(default=[], alias="addAliases")


class Turn(_Row):
    """One query of a session, and what is learnt behind it."""

    scope: list[str]
    query: str = Field(alias="userMessage")
    expect: Expected
    create: Belief | None = Field(default=None, alias="createBeliefAtTurn")
    update: Update | None = Field(default=None, alias="updateBeliefAtTurn")


class Session(_Row):
    """Queries that follow each other."""

    turns: list[Turn]


@dataclass(frozen=True)
class Result:
    """What became of one query."""

    category: str
    passed: bool
    precision: float | None
    recall: float | None
    drift: float
    ms: float


@dataclass
class Memory:
    """Beliefs in a store, and one way to search them."""

    storage: Storage
    method: str
    beliefs: dict[str, Belief] = field(default_factory=dict)

    def put(self, belief: Belief) -> None:
        """Keep a belief, or what it has become."""
        self.beliefs[belief.id] = belief
        text = f"{belief.names} {belief.content} {belief.why_it_matters}"
        value = {"names": belief.names, "text": text, "holds": belief.holds and belief.type != "open_question"}
        index = ["names" if self.method == "names" else "text"]
        for scope in belief.scope:
            self.storage.store.put(_space(belief.user_id, scope), belief.id, value, index=index)

    def answer(self, case: Case) -> tuple[list[str], list[str], list[str], float]:
        """Return the ids of pinned beliefs, of relevant ones and of open questions, and milliseconds."""
        own = [one for one in self.beliefs.values() if one.user_id == case.user_id and set(one.scope) & set(case.scope)]
        pinned = [one.id for one in own if one.pinned and one.holds and one.type != "open_question"]
        questions = [one.id for one in own if one.pinned and one.resolved_at is None and one.type == "open_question"]
        began, most = time.perf_counter(), case.budget.beliefs
        found: list[str] = []
        if case.query.strip() and most > 0:
            # Of several scopes in turn, as the benchmark does with those that search one at a time.
            each = [self._search(case, scope, most) for scope in case.scope]
            found = list(dict.fromkeys(one for row in zip_longest(*each) for one in row if one and one not in pinned))
        found += self._participants(found[:most], case, pinned)
        spent = (time.perf_counter() - began) * 1e3
        return pinned[:most], found[: max(most - len(pinned[:most]), 0)], questions, spent

    def _search(self, case: Case, scope: str, most: int) -> list[str]:
        if self.method in ("names", "words"):
            store, space = self.storage.store, _space(case.user_id, scope)
            return [item.key for item in store.search(space, query=case.query, filter={"holds": True}, limit=most)]
        here = [one for one in self.beliefs.values() if one.user_id == case.user_id and scope in one.scope]
        here = [one for one in here if one.holds and one.type != "open_question"]
        if self.method == "everything":
            return [one.id for one in here][:most]
        notes = [Note(id=one.id, text=one.content, keywords=(one.names,), date=one.updated_at[:10]) for one in here]
        block, asked = chosen(notes, case.query, Context().notes_tokens, _COUNT)
        return [note.id for note in (*asked, *block)][:most]

    def _participants(self, found: Iterable[str], case: Case, pinned: Sequence[str]) -> list[str]:
        """Return what relations among the found ones relate."""
        named = dict.fromkeys(name for one in found for name in self.beliefs[one].participants)
        others = [self.beliefs[name] for name in named if name in self.beliefs and name not in {*found, *pinned}]
        return [
            one.id
            for one in others
            if one.type != "open_question" and one.user_id == case.user_id and set(one.scope) & set(case.scope)
        ]


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure four methods on the cases of a folder.

    Raises:
        RecordError: the folder lacks the files, or they have another form.
    """
    if len(paths) != 1 or not paths[0].is_dir():
        raise RecordError("name one folder, the benchmark's `fixtures`, with `beliefs.seed.json` in it")
    folder = paths[0]
    beliefs = _read(folder / "beliefs.seed.json", TypeAdapter(list[Belief]))
    cases = _read(folder / "retrieval.cases.json", TypeAdapter(list[Case]))[: options.limit]
    path = folder / "session-retrieval.cases.json"
    sessions = _read(path, TypeAdapter(list[Session])) if path.exists() else []
    results: dict[str, list[Result]] = {}
    turns: dict[str, list[Result]] = {}
    for done, method in enumerate(METHODS, start=1):
        with open_storage("sqlite://") as storage:
            memory = Memory(storage, method)
            for belief in beliefs:
                memory.put(belief)
            results[method] = [_scored(memory, case) for case in cases]
            turns[method] = [one for session in sessions for one in _played(memory, session)]
        tick(done, len(METHODS), method)
    figures = {f"{method}.{name}": value for method, rows in results.items() for name, value in _summary(rows).items()}
    figures |= {f"{method}.drift": fmean(one.drift for one in rows) for method, rows in turns.items() if rows}
    remarks = () if sessions else (f"Sessions were left out: there is no `{path.name}`.",)
    return Report("precision", figures, tuple(_tables(results, turns)), remarks, {"cases": len(cases)})


def _read(path: Path, kind: TypeAdapter[list[Any]]) -> list[Any]:
    try:
        return kind.validate_json(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RecordError(f"{path} is no file of PrecisionMemBench: {place}: {first['msg']}") from error


def _space(user_id: str, scope: str) -> namespaces.Namespace:
    return namespaces.user(user_id, "beliefs", namespaces.label(scope))


def _played(memory: Memory, session: Session) -> Iterator[Result]:
    """Ask what each turn of a session asks, and learn behind it what it teaches."""
    for turn in session.turns:
        yield _scored(memory, Case(scope=turn.scope, query=turn.query, expect=turn.expect))
        if turn.create is not None:
            memory.put(turn.create)
        if turn.update is not None and (known := memory.beliefs.get(turn.update.belief_id)):
            memory.put(known.model_copy(update={"aliases": [*known.aliases, *turn.update.aliases]}))


def _scored(memory: Memory, case: Case) -> Result:
    pinned, relevant, questions, ms = memory.answer(case)
    wanted, expect = case.expect.relevant, case.expect
    shown = {*pinned, *relevant}
    passed = (
        shown.issuperset([*wanted.must_include, *wanted.should_include])
        and shown.isdisjoint([*wanted.must_exclude, *expect.noise.absent])
        and (wanted.only is None or set(wanted.only) == set(relevant))
        and (wanted.most is None or len(relevant) <= wanted.most)
        and (wanted.least is None or len(relevant) >= wanted.least)
        and all(one in relevant and two in relevant[relevant.index(one) :] for one, two in wanted.ordered)
        and all(_holds(part, ids) for part, ids in ((expect.pinned, pinned), (expect.questions, questions)))
    )
    gold = set(wanted.must_include) - set(pinned) if wanted.only is None else set(wanted.only)
    hits = len(gold & set(relevant))
    precision = hits / len(relevant) if relevant else 0.0 if gold else None
    drift = 1 - precision if relevant and precision is not None else 0.0
    return Result(case.category, passed, precision, hits / len(gold) if gold else None, drift, ms)


def _holds(wanted: Wanted, ids: Sequence[str]) -> bool:
    return set(ids).issuperset(wanted.must_include) and set(ids).isdisjoint(wanted.must_exclude)


def _summary(rows: Sequence[Result]) -> dict[str, float]:
    precision = [one.precision for one in rows if one.precision is not None]
    recall = [one.recall for one in rows if one.recall is not None]
    return {
        "passed": sum(one.passed for one in rows),
        "active": sum(one.passed and one.precision is not None for one in rows),
        "precision": fmean(precision) if precision else 0.0,
        "recall": fmean(recall) if recall else 0.0,
        "ms_p50": sorted(one.ms for one in rows)[len(rows) // 2],
    }


def _tables(results: Mapping[str, Sequence[Result]], turns: Mapping[str, Sequence[Result]]) -> Iterator[Table]:
    columns = ("passed", "active", "precision", "recall", "ms_p50")
    for title, parts in (("cases", results), ("turns of sessions", turns)):
        rows: list[Cells] = []
        for name, part in parts.items():
            rows += [(name, *(_summary(part)[one] for one in columns))] if part else []
        if rows:
            yield Table(title, ("method", *columns), tuple(rows))
    by_category: dict[str, list[int]] = defaultdict(list)
    for part in results.values():
        for category in dict.fromkeys(one.category for one in part):
            by_category[category].append(sum(one.passed for one in part if one.category == category))
    counts = Counter(one.category for one in results[METHODS[0]])
    passes: list[Cells] = [(name, counts[name], *passed) for name, passed in by_category.items()]
    yield Table("passed by category", ("category", "cases", *METHODS), tuple(passes))
