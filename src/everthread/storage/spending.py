"""What was spent, added up as somebody asks: by user, day, model, thread or purpose."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from everthread.errors import EverthreadError, SettingsError
from everthread.spend.prices import PriceList
from everthread.spend.usage import KINDS, reported_usage
from everthread.state import namespaces
from everthread.state.marks import marks
from everthread.state.records import RecordReader, StoredItem, items
from everthread.state.stored import StoredMessage
from everthread.storage.reader import Reader
from everthread.storage.reading import read_thread, records
from everthread.storage.unreadable import readable
from everthread.storage.user_data import kind_of

GROUPS = ("user", "day", "model", "thread", "purpose")
"""What rows can be told apart by."""

UNKNOWN = "unknown"


@dataclass
class SpendRow:
    """A sum of calls."""

    group: dict[str, str]
    """What the calls have in common, by the names that were asked for."""
    currency: str
    calls: int = 0
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float = 0.0
    counted: int = 0
    """Calls whose tokens are our own count."""
    unpriced: int = 0
    """Calls of models without a price."""
    unanswered: int = 0
    """Calls that are under way or never were answered; none of the sums above has them."""
    unanswered_most: float = 0.0
    """What these cost at the most."""
    from_replies: int = 0
    """Calls of threads without counters, which replies tell of that were kept."""

    def add(self, values: Mapping[str, Any]) -> None:
        """Add figures by their names."""
        for name, value in values.items():
            setattr(self, name, getattr(self, name) + value)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        values = asdict(self)
        return {**values.pop("group"), **values, "cost": round(self.cost, 9)}


@dataclass(frozen=True)
class Entry:
    """Figures of calls that have all of this in common."""

    group: Mapping[str, str]
    currency: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def spend_rows(
    reader: Reader,
    by: Sequence[str],
    prices: PriceList,
    *,
    user_id: str | None = None,
    thread_id: str | None = None,
    since: str = "",
) -> list[SpendRow]:
    """Add up what was spent; rows are in the order of their groups.

    Threads without counters, as those of runs without `Spend`, are told by the replies that were kept.

    Args:
        by: some of `GROUPS`.
        prices: what such replies cost.
        since: only from this day on.

    Raises:
        SettingsError: one of `by` is no group.
    """
    if wrong := [name for name in by if name not in GROUPS]:
        raise SettingsError(f"`--by` takes {', '.join(GROUPS)}, got {wrong[0]!r}")
    sessions = [one for one in records(reader, user_id) if thread_id in (None, one.get("thread_id"))]
    counted: list[Entry] = []
    uncounted: list[Entry] = []
    for session in sessions:
        user, thread = str(session.get("user_id")), str(session["thread_id"])
        own = list(thread_spend(reader, thread, user))
        counted += own
        uncounted += () if own else _of_replies(reader, thread, user, prices)
    if thread_id is None and "thread" not in by:
        # These have what was spent in threads that are erased since.
        counted = list(_of_users(reader, user_id))
    return rows_of((one for one in (*counted, *uncounted) if one.group["day"] >= since), by)


def replies_without_usage(reader: Reader, user_id: str | None, thread_id: str | None, since: str) -> int:
    """Count the kept replies that reported no usage.

    Args:
        since: only from this day on.
    """
    threads = [str(one["thread_id"]) for one in records(reader, user_id) if thread_id in (None, one["thread_id"])]
    return sum(
        message.type == "ai" and reported_usage(message.usage_metadata) is None and _day_of(message) >= since
        for thread in threads
        for message in _messages(reader, thread)
    )


def erased_calls(reader: Reader, user_id: str | None, since: str) -> int:
    """Count the calls that only the counters of their users still have, since their threads are erased.

    Args:
        since: only from this day on.
    """
    sessions = records(reader, user_id)
    here = (one for session in sessions for one in thread_spend(reader, session["thread_id"], str(session["user_id"])))
    return max(_calls(_of_users(reader, user_id), since) - _calls(here, since), 0)


def _calls(entries: Iterable[Entry], since: str) -> int:
    return sum(one.figures.get("calls", 0) for one in entries if one.group["day"] >= since)


def rows_of(entries: Iterable[Entry], by: Sequence[str]) -> list[SpendRow]:
    """Add up entries that have the same groups, and the same currency."""
    rows: dict[tuple[str, ...], SpendRow] = {}
    for entry in entries:
        group = {name: entry.group[name] for name in by}
        rows.setdefault((*group.values(), entry.currency), SpendRow(group, entry.currency)).add(entry.figures)
    return [rows[key] for key in sorted(rows)]


def user_spend(store: RecordReader, user_id: str) -> Iterator[Entry]:
    """Yield what the counters of a user say."""
    return _entries(items(store, namespaces.spent_by(user_id)), user_id)


def thread_spend(store: RecordReader, thread_id: str, user_id: str) -> Iterator[Entry]:
    """Yield what the counters of a thread say."""
    return _entries(items(store, namespaces.spent_in(thread_id)), user_id, thread_id)


def _of_users(reader: Reader, user_id: str | None) -> Iterator[Entry]:
    if user_id is not None:
        yield from user_spend(reader, user_id)
        return
    # A user whose threads are all erased has no session, so the names are those of the records.
    names = {prefix for prefix, _, _ in reader.tables.below(namespaces.user("")[0]) if kind_of(prefix) == "spend"}
    for name in sorted(names):
        yield from _entries(items(reader, tuple(name.split("."))))


def _entries(counters: Iterable[StoredItem], user_id: str | None = None, thread_id: str = "") -> Iterator[Entry]:
    """Yield what counters say, each of a day; without an id of a user they say whose they are."""

    def read(item: StoredItem) -> list[Entry]:
        user = user_id or str(item.value.get("user_id"))
        day = item.key.partition(" ")[0]  # a currency may stand behind it
        about, currency = {"user": user, "day": day, "thread": thread_id}, str(item.value.get("currency"))
        entries = [
            Entry({**about, "model": model, "purpose": purpose}, currency, sums)
            for model, purposes in item.value["models"].items()
            for purpose, sums in purposes.items()
        ]
        for call in item.value["open"].values():
            figures = {"unanswered": 1, "unanswered_most": call["most"]}
            entries.append(Entry({**about, "model": call["model"], "purpose": call["purpose"]}, currency, figures))
        # What cannot be added up is found here.
        rows_of(entries, ())
        return entries

    for entries in readable(counters, read):
        yield from entries


def _of_replies(reader: Reader, thread_id: str, user_id: str, prices: PriceList) -> Iterator[Entry]:
    for message in _messages(reader, thread_id):
        if (usage := reported_usage(message.usage_metadata)) is not None:
            model, provider = _model_of(message)
            cost = prices.cost(provider, model, usage)
            about = {"user": user_id, "day": _day_of(message), "thread": thread_id}
            figures = {kind: getattr(usage, kind) for kind in KINDS}
            figures |= {"calls": 1, "from_replies": 1, "unpriced": int(cost is None), "cost": cost or 0.0}
            yield Entry({**about, "model": model, "purpose": "reply"}, prices.currency, figures)


def _messages(reader: Reader, thread_id: str) -> Sequence[StoredMessage]:
    try:
        return read_thread(reader, thread_id).messages
    except EverthreadError:
        return ()


def _day_of(message: StoredMessage) -> str:
    return str(marks(message).get("at") or UNKNOWN)[:10]


def _model_of(message: StoredMessage) -> tuple[str, str]:
    """Return model and provider of a reply, as LangChain's clients name them."""
    metadata = message.response_metadata
    name = metadata.get("model_name") or metadata.get("model") or UNKNOWN
    return str(name), str(metadata.get("model_provider") or "")
