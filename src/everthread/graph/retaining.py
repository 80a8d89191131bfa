"""Delete what a database keeps no longer, and look whether it is gone."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from everthread.errors import SettingsError, StorageError, ThreadBusyError
from everthread.graph.ending import end_in_store, has_open_session
from everthread.state import Agent
from everthread.state.retention import Retention
from everthread.storage.erasing import RETENTION
from everthread.storage.erasure import texts
from everthread.storage.open import Storage
from everthread.storage.reading import record_of, records
from everthread.storage.residue import samples
from everthread.storage.retaining import Deletion, Kept, due, may_be_due

_TEXTS_OF_EACH = 32
"""Texts of each thread that are searched for afterwards."""

_LOCK = "\x00retention"
"""No id of a thread can be the same."""

Progress = Callable[[str, int, int], None]
"""Hears a step, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Retained:
    """What went, or in a dry run would go."""

    at: str
    is_dry: bool
    deletions: tuple[Deletion, ...]
    """One for each thread of which something goes, the latest activity first."""
    kept: Mapping[Kept, tuple[str, ...]]
    """Threads that are idle for long enough and stay, by the reason."""
    left: tuple[str, ...] | None = None
    """Where a deleted text was still found; None when nobody looked."""

    @property
    def totals(self) -> dict[str, int]:
        """Whole threads and their turns; messages of the others, and turns whose events go; bytes in all."""
        whole = [one for one in self.deletions if one.is_whole]
        parts = [one for one in self.deletions if not one.is_whole]
        return {
            "threads": len(whole),
            "turns": sum(one.turns for one in whole),
            "messages": sum(one.erased.get("transcript", 0) for one in parts),
            "ledger_turns": sum(one.turns for one in parts),
            "bytes": sum(one.size for one in self.deletions),
        }

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object; it holds ids and counts, and no text."""
        return {
            "at": self.at,
            "dry_run": self.is_dry,
            "totals": self.totals,
            "deletions": [one.as_json() for one in self.deletions],
            "kept": {reason: list(threads) for reason, threads in self.kept.items()},
            "verified": None if self.left is None else not self.left,
            "left": list(self.left or ()),
        }


def has_policy(storage: Storage, agents: Iterable[Agent] = ()) -> bool:
    """Tell whether anything is to go at all, by the policy of a storage or of an agent."""
    return any(one not in (None, Retention()) for one in (storage.retention, *(agent.retention for agent in agents)))


def retain(
    storage: Storage,
    agents: Iterable[Agent] = (),
    *,
    is_dry: bool = False,
    adopted: bool = False,
    at: datetime | None = None,
    verify: bool = True,
    progress: Progress = lambda step, done, total: None,
) -> Retained:
    """Delete what the policies of a storage and of its agents keep no longer.

    A thread goes as a whole under its lock: first its session ends, so that what lasts of it becomes long-term notes,
    which stay like all that is the user's own. Each deletion leaves a receipt in the same transaction. A thread that is
    being run, or waits for an approval, stays; threads that Everthread has never run are not looked at.

    Args:
        storage: opened with `retention=…`, unless the agents have a policy of their own.
        agents: whose policies count for their threads, by their names. For the threads of others counts what their
            agent said when it last ran.
        is_dry: only find out what would go.
        adopted: also threads that another graph wrote, under a guard or with our middleware.
        at: counts as now; None: now.
        verify: search the database afterwards for texts of what went.

    Raises:
        SettingsError: there is no policy, `agents` has something that is no `Agent`, or `at` has no time zone.
        ThreadBusyError: another process is deleting what is old.
        StorageError: rows are gone, but their bytes may be not; the next call finishes it.
    """
    by_name = _by_name(agents)
    if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
        raise SettingsError(f"`at` must be a time with its zone, such as `datetime.now(UTC)`, got {at!r}")
    if storage.retention is None and all(one.retention is None for one in by_name.values()):
        raise SettingsError(
            "nothing says what is kept for how long: `open_storage(url, retention=Retention(idle_days=90))`, or an "
            "agent with a `retention` of its own"
        )
    round_ = _Round(storage, by_name, at or datetime.now(UTC), adopted=adopted, is_dry=is_dry, verify=verify)
    every = records(storage.store)
    with nullcontext() if is_dry else _alone(storage):
        for place, record in enumerate(every):
            progress("looking for what is old" if is_dry else "deleting", place, len(every))
            policy = _policy_of(record, by_name, storage.retention)
            if policy is not None and may_be_due(record, policy, round_.at):
                round_.look_at(str(record["thread_id"]), policy)
        left = None if is_dry else round_.finish(progress)
    stamp = round_.at.isoformat(timespec="milliseconds")
    kept: dict[Kept, tuple[str, ...]] = {reason: tuple(threads) for reason, threads in round_.kept.items()}
    return Retained(stamp, is_dry, tuple(round_.deletions), kept, left)


async def aretain(storage: Storage, agents: Iterable[Agent] = (), **options: Any) -> Retained:
    """Do what `retain` does without blocking the event loop; a cancelled call goes on in its thread."""
    return await asyncio.to_thread(lambda: retain(storage, agents, **options))


def _by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    given = list(agents) if isinstance(agents, Iterable) else [agents]
    for one in given:
        if not isinstance(one, Agent):
            raise SettingsError(f"`agents` is a list of `Agent`; of a graph pass what it was built of, got {one!r}")
    return {one.name: one for one in given}


def _policy_of(record: Mapping[str, Any], agents: Mapping[str, Agent], common: Retention | None) -> Retention | None:
    """Return the policy of a thread: its agent's, as given or else as its last run left it, or else the common one."""
    agent = agents.get(str(record.get("agent")))
    if agent is not None:
        return agent.retention or common
    if "retention" not in record:
        return common
    try:
        return Retention(**record["retention"])
    except (TypeError, SettingsError):
        return None


@contextmanager
def _alone(storage: Storage) -> Iterator[None]:
    """Let one process at a time delete what is old: another one could take its mark of what is unfinished."""
    with ExitStack() as stack:
        try:
            stack.enter_context(storage.locks.hold(_LOCK, timeout_seconds=0))
        except ThreadBusyError as error:
            raise ThreadBusyError(
                "another process is deleting what is old; there is nothing to do meanwhile"
            ) from error
        yield


@dataclass
class _Round:
    """One look at all threads."""

    storage: Storage
    agents: Mapping[str, Agent]
    at: datetime
    adopted: bool
    is_dry: bool
    verify: bool
    deletions: list[Deletion] = field(default_factory=list)
    kept: dict[Kept, list[str]] = field(default_factory=lambda: defaultdict(list))
    texts: list[str] = field(default_factory=list)
    """Of what went, to be searched for."""
    spaces: list[Any] = field(default_factory=list)
    """What the eraser needs to know of the rows that went."""

    def __post_init__(self) -> None:
        with self.storage.eraser.hold():
            self._sizes = self.storage.tables.thread_sizes()

    def look_at(self, thread_id: str, policy: Retention) -> None:
        """Delete what is due of a thread, unless it is in use."""
        try:
            with self.storage.locks.hold(thread_id, timeout_seconds=0):
                reason = self._settle(thread_id, policy)
        except ThreadBusyError:
            reason = "busy"
        if reason is not None:
            self.kept[reason].append(thread_id)

    def _settle(self, thread_id: str, policy: Retention) -> Kept | None:
        """Delete what is due of a thread whose lock is held; return why it stays though it is idle for long enough."""
        storage, size = self.storage, self._sizes.get(thread_id, (0, 0))[1]
        try:
            # As it is now: a run may have come in between.
            record = record_of(storage.store, thread_id)
            if record is None:
                return None
            with storage.eraser.hold():
                deletion, reason = due(storage, record, policy, self.at, size=size, adopted=self.adopted)
        except StorageError:
            return "unreadable"
        if deletion is None:
            return reason
        if not self.is_dry:
            if deletion.is_whole and self._end(record, thread_id):
                return "failed"
            self._delete(deletion)
        self.deletions.append(deletion)
        return reason

    def _end(self, record: Mapping[str, Any], thread_id: str) -> str:
        """End the session of a thread that goes; return why that failed."""
        user_id = record.get("user_id")
        if user_id is None or not has_open_session(self.storage, record, thread_id):
            return ""
        agent = self.agents.get(str(record.get("agent")))
        return end_in_store(self.storage.store, thread_id, str(user_id), agent).failure

    def _delete(self, deletion: Deletion) -> None:
        eraser = self.storage.eraser
        with eraser.alone():
            if self.verify:
                self.texts += islice(texts(self.storage, deletion.where), _TEXTS_OF_EACH)
            self.spaces += eraser.delete(deletion.doomed(self.at), RETENTION, self.at.isoformat(timespec="seconds"))

    def finish(self, progress: Progress) -> tuple[str, ...] | None:
        """Rewrite what rows have left, and return where a text of them is found; None when nobody looked."""
        eraser = self.storage.eraser
        with eraser.alone():
            if not self.deletions and not eraser.is_interrupted(RETENTION):
                return () if self.verify else None
            progress(eraser.reclaiming, 0, 1)
            eraser.rewrite(self.spaces)
        with eraser.alone():
            eraser.finish()
            left = self._left(progress) if self.verify else None
            eraser.unmark(RETENTION)
        return left

    def _left(self, progress: Progress) -> tuple[str, ...]:
        progress("searching for what is left", 0, 1)
        found = self.storage.eraser.search(samples(self.texts), self.spaces)
        # What a row that stays says too, such as a note, is its own.
        elsewhere = {hit.text for hit in found.hits if hit.row}
        unnamed = {hit.table for hit in found.hits if not hit.row and hit.text not in elsewhere}
        return (*sorted(unnamed), *found.left)
