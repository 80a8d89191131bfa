"""What was spent: a record for each user, and for each thread, of a day and a currency, in the store.

A call is reserved at the most that it can cost before it is made, and settled with what it took when its reply is
here, each in one transaction under the user's key. Settling takes the reservation away, so that a call is counted once
whoever tries again. One whose process died stays reserved: what it took nobody knows, and it counts at its most.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchOp

from everthread.spend.prices import DEFAULT_CURRENCY
from everthread.spend.usage import KINDS, Usage
from everthread.state import namespaces

_MOST_DAYS = 10_000
_ROUNDING = 1e-9
"""Amounts are sums of fractions; two that differ by less are the same."""

Record = dict[str, Any]


def _today() -> str:
    """Return the day in UTC."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class Reservation:
    """A call that may be made."""

    id: str
    day: str
    purpose: str
    model: str


@dataclass(frozen=True)
class Over:
    """A limit that a call would pass."""

    limit: str
    """Its name."""
    size: float
    """As it was set."""
    allowed: float
    """With what was granted."""
    spent: float
    """Of it, by calls that were answered, and those that never were at their most."""
    under_way: float
    """Of it, reserved by calls that have no reply yet."""

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        amounts = {"allowed": self.allowed, "spent": self.spent, "under_way": self.under_way}
        return {"limit": self.limit, **{name: round(value, 9) for name, value in amounts.items()}}


@dataclass(frozen=True)
class Counters:
    """The counters of one user and one thread of theirs."""

    store: BaseStore
    user_id: str
    thread_id: str
    currency: str = DEFAULT_CURRENCY

    def reserve(
        self,
        limits: Mapping[str, float],
        most: float,
        *,
        purpose: str,
        model: str,
        ask: tuple[str, int, Callable[[Sequence[Over]], Record]] | None = None,
    ) -> Reservation | tuple[Sequence[Over], Record | None]:
        """Reserve a call unless it would pass a limit.

        Args:
            limits: amounts by name.
            purpose: what it is for, such as `reply`.
            ask: id of the task, how many of its questions are answered, and what makes the next one; it is kept, so
                that the task asks the same again when it is run again. None: nobody is asked.

        Returns:
            The reservation; or the limits that it would pass, with what is to be asked.
        """
        day, outcomes = _today(), list[Any]()
        task, answered, make_question = ask or ("", 0, None)
        place = namespaces.spend_asked(self.thread_id)

        def make(found: list[Any]) -> Sequence[PutOp]:
            user, unnamed, threads, before = found
            questions = before.value["asks"] if before is not None else []
            if len(questions) > answered:
                outcomes.append(((), questions[answered]))
                return ()
            records = {"user_day": self._own([user, unnamed]), "thread": self._own(threads)}
            over = [one for name, size in limits.items() if (one := _over(name, size, records[name], most))]
            if over:
                question = None if make_question is None else make_question(over)
                outcomes.append((over, question))
                if question is None:
                    return []
                return [_put(place, task, {**(before.value if before else {}), "asks": [*questions, question]})]
            made = Reservation(uuid4().hex, day, purpose, model)
            outcomes.append(made)
            mine = next((one.value for one in threads if one.key == self._key(day)), None)
            puts = self._puts(day, user.value if user else None, mine, lambda record: _opened(record, made, most))
            return [*puts, _put(place, task, None)] if before is not None else puts

        space = namespaces.spent_in(self.thread_id)
        # Older releases named a record by its day alone, whatever its currency.
        users = [self._reads(day)[0], GetOp(namespaces.spent_by(self.user_id), day)]
        self._change([*users, SearchOp(space, limit=_MOST_DAYS), GetOp(place, task)], make)
        # The last one: a transaction that failed may have been made again.
        return cast(Reservation, outcomes[-1])

    def settle(
        self,
        made: Reservation,
        usage: Usage,
        cost: float | None,
        *,
        model: str,
        operations: Iterable[PutOp] = (),
    ) -> None:
        """Count a reserved call; a second time does nothing.

        Args:
            cost: None when the model has no price.
            model: that has answered.
            operations: further writes of the same transaction.
        """
        self._end(made, lambda record: _settled(record, made, usage, cost, model or made.model), operations)

    def release(self, made: Reservation) -> None:
        """Take a reservation back: the provider has refused the call, and bills nothing."""
        self._end(made, lambda record: _closed(record, made.id))

    def _end(self, made: Reservation, change: Callable[[Record], Record], operations: Iterable[PutOp] = ()) -> None:
        """Change both records, which takes a reservation away; nothing when it was ended before."""

        def make(found: list[Any]) -> Sequence[PutOp]:
            user, thread = (None if one is None else one.value for one in found)
            if user is None or made.id not in user["open"]:
                return ()
            return [*self._puts(made.day, user, thread, change), *operations]

        self._change(self._reads(made.day), make)

    def grant(
        self,
        amounts: Mapping[str, float],
        name: str,
        *,
        asked: tuple[str, int] | None = None,
        operations: Iterable[PutOp] = (),
    ) -> bool:
        """Raise limits; the same grant twice counts once.

        Args:
            amounts: what is added, by limit.
            asked: id of the task and number of its question that this answers: a task that is run again, on another
                day too, answers its first questions again.
            operations: further writes of the same transaction.

        Returns:
            Whether it counted.
        """
        day, outcomes = _today(), list[bool]()
        task, number = asked or ("", 0)
        place = namespaces.spend_asked(self.thread_id)

        def make(found: list[Any]) -> Sequence[PutOp]:
            *values, before = [None if one is None else one.value for one in found]
            puts = []
            is_counted = before is not None and asked is not None and before.get("granted", 0) > number
            for limit, space, value in zip(("user_day", "thread"), self._places(), values, strict=True):
                record = self._record(value, is_thread=limit == "thread")
                if limit in amounts and not is_counted and name not in record["granted"]:
                    record["granted"] = {**record["granted"], name: amounts[limit]}
                    puts.append(_put(space, self._key(day), record))
            outcomes.append(bool(puts))
            if puts and before is not None:
                puts.append(_put(place, task, {**before, "granted": number + 1}))
            return [*puts, *operations] if puts else ()

        self._change([*self._reads(day), GetOp(place, task)], make)
        return outcomes[-1]

    def _puts(
        self, day: str, user: Record | None, thread: Record | None, change: Callable[[Record], Record]
    ) -> list[PutOp]:
        records = (self._record(user, is_thread=False), self._record(thread, is_thread=True))
        return [_put(space, self._key(day), change(one)) for space, one in zip(self._places(), records, strict=True)]

    def _own(self, items: Iterable[Item | None]) -> list[Record]:
        """Return the records in this currency, each once."""
        records = {item.key: item.value for item in items if item is not None}
        return [record for record in records.values() if record["currency"] == self.currency]

    def _record(self, value: Record | None, *, is_thread: bool) -> Record:
        if value is not None:
            return value
        name = {"thread_id": self.thread_id} if is_thread else {"user_id": self.user_id}
        return {**name, "currency": self.currency, "models": {}, "open": {}, "granted": {}}

    def _places(self) -> tuple[namespaces.Namespace, namespaces.Namespace]:
        return namespaces.spent_by(self.user_id), namespaces.spent_in(self.thread_id)

    def _reads(self, day: str) -> list[Op]:
        return [GetOp(space, self._key(day)) for space in self._places()]

    def _key(self, day: str) -> str:
        """Name the record of a day; a currency but the usual one stands behind it, since two cannot be added up."""
        return day if self.currency == DEFAULT_CURRENCY else f"{day} {self.currency}"

    def _change(self, reads: Sequence[Op], make: Callable[[list[Any]], Sequence[PutOp]]) -> None:
        change = getattr(self.store, "change", None)
        if change is not None:
            change(f"spend/{namespaces.label(self.user_id)}", reads, make)
            return
        # A store of somebody else, such as a LangGraph server's: exact within this process.
        with _in_process:
            if puts := make(self.store.batch(reads)):
                self.store.batch(puts)


_in_process = threading.Lock()


def _put(space: namespaces.Namespace, key: str, value: Record | None) -> PutOp:
    return PutOp(space, key, value, index=False)


def _over(name: str, size: float, records: Sequence[Record], most: float) -> Over | None:
    """Return a limit that a call would pass, with what is spent of it."""
    allowed = size + sum(sum(record["granted"].values()) for record in records)
    models = [purposes for record in records for purposes in record["models"].values()]
    spent = sum(one["cost"] for purposes in models for one in purposes.values())
    under_way = sum(one["most"] for record in records for one in record["open"].values())
    if most == 0 or spent + under_way + most <= allowed + _ROUNDING:
        return None
    return Over(name, size, allowed, spent, under_way)


def _opened(record: Record, made: Reservation, most: float) -> Record:
    call = {"model": made.model, "purpose": made.purpose, "most": most}
    return {**record, "open": {**record["open"], made.id: call}}


def _closed(record: Record, name: str) -> Record:
    return {**record, "open": {one: call for one, call in record["open"].items() if one != name}}


def _settled(record: Record, made: Reservation, usage: Usage, cost: float | None, model: str) -> Record:
    purposes = record["models"].get(model, {})
    before = purposes.get(made.purpose) or dict.fromkeys(("calls", *KINDS, "counted", "unpriced"), 0) | {"cost": 0.0}
    added = {"calls": 1, "counted": int(usage.is_counted), "unpriced": int(cost is None), "cost": cost or 0.0}
    added |= {kind: getattr(usage, kind) for kind in KINDS}
    sums = {name: value + added[name] for name, value in before.items()}
    models = {**record["models"], model: {**purposes, made.purpose: sums}}
    return {**_closed(record, made.id), "models": models}
