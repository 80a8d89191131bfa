"""The suite `metrics`: what memory does, from the ledger and the notes at the end.

It reads the threads of a database (`.db`) as they are. A record is played through the real graph as one user's thread:
the rules make the notes (`distillation=turn`), and each recorded session is ended.

- `memory_write_rate`: session notes written per 100 turns of the user.
- `blocked_write_rate`: share of attempted writes that the guard refused.
- `memory_conflict_rate`: share of consolidated notes that replaced another one or contradict one.
- `time_to_personalization`: median number of turns until a note is in the prompt.
- `recency_correctness`: share of replacements in which the newer note won.
- `over_influence`: share of runs whose prompt had a note that was replaced, dropped or expired before. It tells whether
  stale memory is shown, not what a model makes of it.
- `deduplication`: share of active long-term notes that say what no other one says.
- `non_invention`: share of active long-term notes with a quote whose every content word is in the quotes.
- `token_efficiency`: share of the tokens of full history that was not sent (records only).
- `memory_share`: share of prompt tokens that is profile, notes, summary and recalled messages.

Baselines have no memory: without it nothing is written, replaced or personal; what they send is in the table.
"""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore

from everthread.errors import RecordError, SettingsError
from everthread.evals.baselines import BASELINES, play_baseline
from everthread.evals.parallel import spread
from everthread.evals.picking import playable
from everthread.evals.records import Record
from everthread.evals.replay import OURS, trace
from everthread.evals.suites import Options, Report, Table, Tick, refusals, share
from everthread.ledger import events
from everthread.memory.consolidate.duplicates import says_the_same
from everthread.memory.text.wording import wording
from everthread.state import Context, Note, namespaces
from everthread.state.records import items
from everthread.storage.to_read import storage_to_read
from everthread.window.tokens import counter_for

WINDOW = 16_000
_MEMORY = ("profile", "notes", "session_notes", "summary", "recalled")
_THIRD_PERSON = frozenset({"they're", "they've", "they'll", "they'd", "themselves"})
"""What "I'm", "I've", "I'll", "I'd" and "myself" become in a note."""
_DATABASES = (".db", ".sqlite", ".sqlite3")
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Measured:
    """Counts of one thread."""

    counts: Counter[str]
    first_personal_turn: int | None = None
    """The first turn whose prompt had a note."""
    sent: Counter[str] = field(default_factory=Counter)
    """Prompt tokens by method, ours and the baselines; empty for a thread of a database."""


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure memory.

    Raises:
        SettingsError: a path is the URL of a database and not its file.
        RecordError: a file cannot be read, or holds neither threads nor conversations.
    """
    databases = [path for path in paths if _is_database(path)]
    files = [path for path in paths if path not in databases]
    threads = [thread for path in databases for thread in _database(path)]
    remarks: list[str] = []
    if files:
        picked = playable(files, options.limit)
        work = partial(played, window=options.budget or WINDOW)
        results = spread(work, picked.records, options.jobs, tick)
        threads += [result for result in results if isinstance(result, Measured)]
        stopped = [result for result in results if isinstance(result, str)]
        if not threads:
            raise RecordError(f"no thread to measure in {', '.join(map(str, paths))}: {stopped[0]}")
        remarks += [*picked.remarks, *([refusals(stopped)] if stopped else [])]
    if databases:
        remarks.append("Of a database's thread, `everthread simulate --thread THREAD` plays the baselines.")
    if not threads:
        raise RecordError(f"no thread to measure in {', '.join(map(str, paths)) or 'nothing'}")
    return _report(threads, remarks)


def _is_database(path: Path) -> bool:
    """Tell a database by its name or, whatever it is called, by how every SQLite file begins."""
    if str(path).startswith("sqlite:"):
        raise SettingsError("`metrics` takes the file of a database, such as `everthread.db`, and not its URL")
    if path.suffix in _DATABASES:
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def played(record: Record, window: int) -> Measured | str:
    """Play one conversation; a text says why it could not be."""
    context = Context(window=window, distillation=("turn",))
    run = trace(record, context, at_end=partial(_notes, user_id=context.user_id))
    if run.result.outcome != "replayed":
        return f"{record.id}: {run.result.error}"
    sent: Counter[str] = Counter(everthread=run.result.prompt_tokens)
    for name in BASELINES:
        sent[name] = play_baseline(record, name, window=window, counter=counter_for(OURS)).result.prompt_tokens
    return replace(measure(run.events, run.at_end, turns=run.result.turns), sent=sent)


def _database(path: Path) -> Iterator[Measured]:
    """Measure every thread of a database, and the long-term notes of every user once."""
    users: set[str] = set()
    with storage_to_read(f"sqlite:///{path}") as storage:
        for thread in items(storage.store, namespaces.SESSIONS):
            user_id = str(thread.value.get("user_id", ""))
            log = [event.model_dump(mode="json") for event in events(storage.store, thread.key)]
            notes = [] if user_id in users else _notes(storage.store, user_id=user_id)
            users.add(user_id)
            yield measure(log, notes, turns=int(thread.value.get("turns", 0)))


def _notes(store: BaseStore, *, user_id: str) -> list[Note]:
    return [Note.model_validate(item.value) for item in items(store, namespaces.notes(user_id))]


def measure(log: Sequence[Mapping[str, Any]], notes: Sequence[Note], *, turns: int) -> Measured:
    """Count what the figures need.

    Args:
        log: a thread's events as JSON, in order.
        notes: the user's long-term notes at the end, history included.
    """
    counts: Counter[str] = Counter(turns=turns)
    gone: set[str] = set()
    first: int | None = None
    for event in log:
        kind = event["event"]
        counts[kind] += 1
        if kind == "note_saved":
            gone.discard(event["note_id"])  # it was said again
        elif kind in ("note_superseded", "note_expired"):
            gone.add(event["note_id"])
        elif kind == "consolidated":
            gone |= set(event["dropped"]) | set(event["expired"])
            counts["consolidated_notes"] += sum(len(event[name]) for name in ("added", "merged", "dropped"))
            counts["conflicts"] += len(event["superseded"]) + len(event["marked"])
        elif kind == "injected":
            shown = {*event["note_ids"], *event.get("asked_note_ids", ()), *event["session_note_ids"]}
            counts["stale_runs"] += bool(shown & gone)
            if shown and first is None:
                first = int(event.get("turn", 0))
        elif kind == "prompt_assembled":
            counts["prompt_tokens"] += event["tokens"]
            counts["memory_tokens"] += sum(event["breakdown"].get(name, 0) for name in _MEMORY)
    return Measured(counts + _of_notes(notes), first)


def _of_notes(notes: Sequence[Note]) -> "Counter[str]":
    """Count what the notes themselves show."""
    counts: Counter[str] = Counter()
    by_id = {note.id: note for note in notes}
    for note in notes:
        winner = by_id.get(note.superseded_by or "")
        if note.status == "superseded" and winner is not None:
            counts["replaced"] += 1
            counts["newer_won"] += (winner.valid_from or winner.date) >= (note.valid_from or note.date)
    active = [note for note in notes if note.status == "active"]
    for place, note in enumerate(active):
        counts["active"] += 1
        counts["unique"] += not any(says_the_same(note.text, other.text) for other in active[:place])
        quoted = frozenset(word for source in note.sources for word in wording(source.quote).words)
        if quoted:  # a note that names its messages only cannot be judged by its words
            counts["quoted"] += 1
            counts["grounded"] += wording(note.text).words - _THIRD_PERSON <= quoted
    return counts


def _report(threads: Sequence[Measured], remarks: Sequence[str]) -> Report:
    total: Counter[str] = sum((thread.counts for thread in threads), Counter())
    sent: Counter[str] = sum((thread.sent for thread in threads), Counter())
    firsts = [thread.first_personal_turn for thread in threads if thread.first_personal_turn is not None]
    attempts = total["note_saved"] + total["note_blocked"]
    figures = {
        "memory_write_rate": 100 * share(total["note_saved"], total["turns"]),
        "blocked_write_rate": share(total["note_blocked"], attempts),
        "memory_conflict_rate": share(total["conflicts"], total["consolidated_notes"]),
        "time_to_personalization": float(statistics.median(firsts)) if firsts else 0.0,
        "personalized": share(len(firsts), len(threads)),
        "recency_correctness": share(total["newer_won"], total["replaced"], empty=1.0),
        "over_influence": share(total["stale_runs"], total["injected"]),
        "deduplication": share(total["unique"], total["active"], empty=1.0),
        "non_invention": share(total["grounded"], total["quoted"], empty=1.0),
        "memory_share": share(total["memory_tokens"], total["prompt_tokens"]),
    }
    tables = [Table("memory", ("figure", "value"), tuple(figures.items()))]
    if sent:
        full = sent[BASELINES[0]]
        figures["token_efficiency"] = 1 - share(sent["everthread"], full)
        rows = tuple((name, sent[name], share(sent[name], full)) for name in ("everthread", *BASELINES))
        tables.append(Table("prompt tokens beside the baselines", ("method", "tokens", "of full history"), rows))
    counted = (
        *("turns", "note_saved", "note_blocked", "consolidated_notes", "conflicts"),
        *("replaced", "active", "quoted", "injected"),
    )
    tables.append(Table("counts", ("of", "number"), tuple((name, total[name]) for name in counted)))
    return Report(
        suite="metrics",
        figures=figures,
        tables=tuple(tables),
        remarks=(*remarks, "A figure without cases is 0, or 1 where the best is 1; the counts tell which."),
        settings={"threads": len(threads)},
    )
