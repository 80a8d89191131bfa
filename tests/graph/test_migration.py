"""A database copied to another one of whatever kind: everything is there, and every thread goes on."""

import json
import operator
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from everthread import Context, EverthreadMiddleware, open_storage
from everthread.cli import main
from everthread.errors import ModelError, SettingsError, StorageError, ThreadBusyError
from everthread.state.messages import reduce_messages
from everthread.storage.migration import Migration, migrate
from everthread.storage.open import Storage
from small_agent import calls, graph_of
from sql import is_sqlite, sql
from stock_app import APPROVAL, THREADS, app

POSTGRES = pytest.mark.postgres
KINDS = [
    ("sqlite", "sqlite"),
    pytest.param(("sqlite", "postgres"), marks=POSTGRES),
    pytest.param(("postgres", "sqlite"), marks=POSTGRES),
]
DIALS: Any = {"window": 4_000, "context_limit": 4, "keep_last_turns": 2, "keep_checkpoints": 3}
APPROVED = Command(resume={"decisions": [{"type": "approve"}]})


class Numbers(TypedDict):
    large: float
    small: float
    whole: float
    words: set[str]


from_every_kind = pytest.mark.parametrize("urls", KINDS, ids="-".join, indirect=True)
"""A test that also depends on how the source is read; the others copy a file, which is made much faster."""


@pytest.fixture(params=KINDS[:2], ids="-".join)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """URLs of an empty source and an empty target."""
    found = [
        request.getfixturevalue("postgres_tables") if kind == "postgres" else f"sqlite:///{tmp_path}/{number}.db"
        for number, kind in enumerate(request.param)
    ]
    return found[0], found[1]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that was filled; tests change copies."""
    path = tmp_path_factory.mktemp("source") / "0.db"
    with open_storage(f"sqlite:///{path}") as storage:
        fill(storage)
    return path


@pytest.fixture
def sides(urls: tuple[str, str], template: Path, tmp_path: Path) -> Iterator[tuple[Storage, Storage]]:
    """Open a source that was filled, and an empty target."""
    is_file = urls[0].startswith("sqlite")
    if is_file:
        shutil.copy(template, tmp_path)
    with open_storage(urls[0], lock_timeout_seconds=0) as source, open_storage(urls[1]) as target:
        if not is_file:
            fill(source)
        yield source, target


def config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, "user_id": "ann"}}


def say(graph: Any, thread_id: str, sent: Any, **dials: Any) -> dict[str, Any]:
    if isinstance(sent, str):
        sent = {"messages": [HumanMessage(sent)]}
    context = Context(user_id="ann", **dials)
    return dict(graph.invoke(sent, {"configurable": {"thread_id": thread_id}}, context=context))


def fill(storage: Storage) -> None:
    """Leave threads of all sorts: of our own graph, and of an app that knows nothing of it."""
    rows = calls({"name": "look", "args": {"n": 150}, "id": "c1"})
    graph, _ = graph_of(storage, rows, "Many rows.", *[f"Answer {number}." for number in range(6)])
    say(graph, "long", "Look it up. Never book before I approve.", **DIALS, tool_output_tokens=64)
    for number in range(6):
        say(graph, "long", f"I prefer aisle seats. Question {number}?", **DIALS)
    say(graph_of(storage, calls({"name": "approve", "args": {"what": "a lamp"}, "id": "c2"}))[0], "waiting", "Buy it.")
    with pytest.raises(ModelError):
        say(graph_of(storage, ModelError("it is down"))[0], "unfinished", "Are you there?")
    stock = app(storage.checkpointer, THREADS[APPROVAL][1])
    for sent in THREADS[APPROVAL][0]:
        stock.invoke(sent, config(APPROVAL))
    storage.store.put(("apps", "shop"), "k\u00e9y", {"n": 1e20, "f": 0.1, "deep": {"b": [None, True], "a": "\x00"}})
    numbers = StateGraph(Numbers).add_node("count", lambda state: {}).add_edge(START, "count")
    whole = {"large": 1e300, "small": 0.1, "whole": 2.0, "words": {f"word {number}" for number in range(100)}}
    numbers.compile(checkpointer=storage.checkpointer).invoke(whole, config("numbers"))
    storage.store.put(("users", "ann", "profile"), "profile", {"seat": "aisle"})
    storage.store.put(("apps", "short"), "gone", {"n": 1}, ttl=90)


def copied(source: Storage, target: Storage, **options: Any) -> Migration:
    return migrate(source, target, lambda *_: None, **options)


def content(storage: Storage) -> list[Any]:
    """Return every row of the tables that a copy writes."""
    tables = ("checkpoints", "writes" if is_sqlite(storage.database) else "checkpoint_writes", "store", "everthread")
    read = storage.database.read
    return [sorted(map(repr, read(storage.database.rows, f"SELECT * FROM {table}"))) for table in tables]


@from_every_kind
def test_everything_is_there_and_the_way_back_has_the_same_digests(
    sides: tuple[Storage, Storage], tmp_path: Path
) -> None:

    there = copied(*sides)
    with open_storage(f"sqlite:///{tmp_path}/back.db") as third:
        back = copied(sides[1], third)

    assert not there.not_copied
    assert (there.threads, there.threads_copied, there.checkpoints) == (5, 5, there.checkpoints_copied)
    assert there.records == there.records_copied > 20
    assert set(there.digests) == {"threads", "users", "apps"}
    assert back == there


def test_a_second_run_changes_nothing(sides: tuple[Storage, Storage]) -> None:
    first = copied(*sides)
    before = [content(storage) for storage in sides]

    again = copied(*sides)

    assert (again.threads_copied, again.checkpoints_copied, again.records_copied) == (0, 0, 0)
    assert again.digests == first.digests
    assert [content(storage) for storage in sides] == before


def test_a_dry_run_writes_nothing(sides: tuple[Storage, Storage]) -> None:
    before = [content(storage) for storage in sides]

    told = copied(*sides, is_dry=True)

    assert [content(storage) for storage in sides] == before
    assert told == copied(*sides)


@pytest.mark.parametrize("after", [0, 9, 60])
def test_a_run_that_was_cut_off_goes_on(
    sides: tuple[Storage, Storage], after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = 0
    put = sides[1].checkpointer.rows.saver

    def failing(*arguments: Any) -> Any:
        nonlocal writes
        writes += 1
        if writes > after:
            raise KeyboardInterrupt
        return put(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(sides[1].checkpointer.rows, "saver", failing)
        with pytest.raises(KeyboardInterrupt):
            copied(*sides)
    result = copied(*sides)

    assert not result.not_copied
    assert result.digests == copied(*sides).digests
    assert (result.threads, result.checkpoints) == (5, copied(*sides).checkpoints)


@from_every_kind
def test_own_threads_go_on(sides: tuple[Storage, Storage]) -> None:
    copied(*sides)
    target = sides[1]
    graph, model = graph_of(target, "Nine.", "Bought.", "Yes.")
    state = graph.get_state(config("long"))

    said = say(graph, "long", "And now?", window=4_000)
    bought = say(graph, "waiting", Command(resume="yes"))
    answered = say(graph, "unfinished", None)

    assert said["messages"][:-2] == state.values["messages"]
    assert said["summary"]["covers"] > 0
    assert "Never book before I approve." in str(model.prompts[0])
    assert [message.text for message in bought["messages"]] == ["Buy it.", "", "approved: yes", "Bought."]
    assert [message.text for message in answered["messages"]] == ["Are you there?", "Yes."]
    assert target.store.search(("threads", "long", "transcript"), query="question 3")


async def test_a_thread_goes_on_async_and_is_pruned_there(sides: tuple[Storage, Storage]) -> None:
    copied(*sides)
    graph, _ = graph_of(sides[1], *"abcd")
    for number in range(4):
        sent: Any = {"messages": f"More {number}"}
        await graph.ainvoke(sent, config("long"), context=Context(user_id="ann", window=4_000, keep_checkpoints=100))
    before = (await graph.aget_state(config("long"))).values["messages"]

    pruned = sides[1].checkpointer.prune_turns("long", 1)

    assert pruned > 0
    assert (await graph.aget_state(config("long"))).values["messages"] == before


@from_every_kind
def test_time_travel_reaches_every_checkpoint_that_was_copied(sides: tuple[Storage, Storage]) -> None:
    copied(*sides)
    old, new = (graph_of(storage, "Other.")[0] for storage in sides)
    place = config("long")

    histories = [
        [(one.config["configurable"]["checkpoint_id"], one.values, one.next) for one in graph.get_state_history(place)]
        for graph in (old, new)
    ]
    back = next(one for one in new.get_state_history(place) if not one.next and one.metadata["step"] < 999)
    forked = new.invoke({"messages": "Else?"}, back.config, context=Context(user_id="ann", window=4_000))

    assert histories[0] == histories[1]
    assert [message.text for message in forked["messages"]][-2:] == ["Else?", "Other."]


@from_every_kind
@pytest.mark.parametrize("adopted", [False, True])
def test_an_apps_thread_goes_on_from_its_approval(sides: tuple[Storage, Storage], adopted: bool) -> None:
    copied(*sides)
    target = sides[1]
    middleware = [EverthreadMiddleware(window=2_000, max_output_tokens=100, summarizer="offline")] if adopted else []
    graph = app(target.checkpointer, ["It is yours."], middleware, **({"store": target.store} if adopted else {}))
    waiting = graph.get_state(config(APPROVAL))

    ended = (target.guard(graph) if adopted else graph).invoke(APPROVED, config(APPROVAL))

    assert len(waiting.interrupts) == 1
    assert (ended["budget"], ended["visited"]) == (100, ["door"])
    assert [message.text for message in ended["messages"]][-2:] == ["ordered: lamp", "It is yours."]


@from_every_kind
def test_what_changed_behind_is_copied_by_the_next_run(sides: tuple[Storage, Storage]) -> None:
    copied(*sides)
    say(graph_of(sides[0], "Bought.")[0], "waiting", Command(resume="yes"))
    sides[0].store.put(("apps", "shop"), "new", {"n": 2})
    sides[0].store.put(("apps", "shop"), "k\u00e9y", {"n": 3})

    result = copied(*sides)

    assert not result.not_copied
    assert (result.threads_copied, copied(*sides).records_copied) == (1, 0)
    state = graph_of(sides[1])[0].get_state(config("waiting"))
    assert state.values["messages"][-1].text == "Bought."


def test_a_thread_that_went_on_in_the_target_is_left_alone(sides: tuple[Storage, Storage]) -> None:
    copied(*sides)
    say(graph_of(sides[1], "Bought.")[0], "waiting", Command(resume="yes"))
    before = content(sides[1])

    result = copied(*sides)

    assert [one.name for one in result.not_copied] == ["waiting"]
    assert "has gone on there" in result.not_copied[0].reason
    assert content(sides[1]) == before


def test_a_target_with_other_records_of_the_same_names_is_refused(sides: tuple[Storage, Storage]) -> None:
    sides[1].store.put(("apps", "shop"), "k\u00e9y", {"n": "another"})
    before = content(sides[1])

    with pytest.raises(StorageError, match="with another content; nothing was copied"):
        copied(*sides)

    assert content(sides[1]) == before


def test_what_the_target_has_besides_stays(sides: tuple[Storage, Storage]) -> None:
    say(graph_of(sides[1], "Hello.")[0], "theirs", "Hi.")

    result = copied(*sides)

    assert not result.not_copied
    assert graph_of(sides[1])[0].get_state(config("theirs")).values["messages"][-1].text == "Hello."


@from_every_kind
def test_a_thread_in_use_stays_behind_and_the_others_are_copied(sides: tuple[Storage, Storage]) -> None:

    with sides[0].locks.hold("long"):
        result = copied(*sides)

    assert [one.name for one in result.not_copied] == ["long"]
    assert (result.threads_copied, copied(*sides).threads_copied) == (4, 1)
    with pytest.raises(ThreadBusyError), sides[0].locks.hold("long"):
        sides[0].locks.hold("long").__enter__()


def test_a_database_is_not_copied_to_itself(sides: tuple[Storage, Storage]) -> None:
    with pytest.raises(SettingsError, match="the same database"):
        copied(sides[0], sides[0])


class Delta(TypedDict, total=False):
    messages: Annotated[list[Any], DeltaChannel(reduce_messages, snapshot_frequency=2)]
    steps: Annotated[int, operator.add]


def delta_graph(storage: Storage) -> Any:
    """Compile another graph on a delta channel, with a step that writes no messages."""
    graph = StateGraph(Delta)
    graph.add_node("reply", lambda state: {"messages": [AIMessage(f"re: {state['messages'][-1].text}")]})
    graph.add_node("count", lambda state: {"steps": 1})
    graph.add_edge(START, "reply")
    graph.add_edge("reply", "count")
    return graph.compile(checkpointer=storage.checkpointer)


@from_every_kind
def test_a_delta_channel_reads_the_same_at_every_checkpoint(sides: tuple[Storage, Storage], tmp_path: Path) -> None:
    old = delta_graph(sides[0])
    for number in range(5):
        old.invoke({"messages": [HumanMessage(f"{number}", id=f"h{number}")]}, config("delta"))

    there = copied(*sides)
    with open_storage(f"sqlite:///{tmp_path}/back.db") as third:
        assert copied(sides[1], third) == there

    new = delta_graph(sides[1])
    histories = [[one.values for one in graph.get_state_history(config("delta"))] for graph in (old, new)]
    assert histories[0] == histories[1]
    assert len(histories[0]) == 20
    assert len(new.invoke({"messages": [HumanMessage("5")]}, config("delta"))["messages"]) == 12


@POSTGRES
@pytest.mark.parametrize(
    ("key", "value", "reason"), [("text", "a\x00b", "no NUL"), ("number", float("nan"), "no NaN")], ids=["nul", "nan"]
)
def test_what_postgres_cannot_hold_stays_behind_and_the_others_are_copied(
    template: Path, postgres_tables: str, tmp_path: Path, key: str, value: Any, reason: str
) -> None:
    path = shutil.copy(template, tmp_path)
    with open_storage(f"sqlite:///{path}") as source, open_storage(postgres_tables) as target:
        graph = StateGraph(Odd).add_node("odd", lambda state: {}).add_edge(START, "odd")
        graph.compile(checkpointer=source.checkpointer).invoke({key: value}, config("a"))
        result = copied(source, target)
        left = target.checkpointer.get_tuple(config("a"))

    assert [one.name for one in result.not_copied] == ["a"]
    assert result.not_copied[0].reason.startswith("thread 'a' was not copied: ")
    assert reason in result.not_copied[0].reason
    assert left is None
    assert result.threads_copied == 5


@POSTGRES
def test_a_record_that_postgres_cannot_index_stays_behind_and_the_others_are_copied(
    template: Path, postgres_tables: str, tmp_path: Path
) -> None:
    key, path = "".join(map(chr, range(0x4E00, 0x5200))), shutil.copy(template, tmp_path)
    with open_storage(f"sqlite:///{path}") as source, open_storage(postgres_tables) as target:
        for name in (key, "short"):
            source.store.put(("app", "carts"), name, {"items": 1})
        result, again = copied(source, target), copied(source, target)
        kept = target.store.search(("app", "carts"))

    assert [one.name for one in result.not_copied] == [f"app.carts.{key}"]
    assert "an id is longer than Postgres can index" in result.not_copied[0].reason
    assert ([one.key for one in kept], again.records, again.records_copied) == (["short"], result.records, 0)


class Odd(TypedDict, total=False):
    text: str
    number: float


@dataclass
class Customer:
    """A type of an app's own."""

    name: str


class Shop(TypedDict):
    customer: Customer


def test_a_thread_with_unknown_types_names_the_option_that_copies_it(
    sides: tuple[Storage, Storage], urls: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    graph = StateGraph(Shop).add_node("shop", lambda state: {}).add_edge(START, "shop")
    graph.compile(checkpointer=sides[0].checkpointer).invoke({"customer": Customer("Ann")}, config("typed"))

    assert main(["migrate", *urls]) == 1
    refused = capsys.readouterr().err
    assert main(["migrate", *urls, "--allow-type", f"{__name__}:Customer", "--json"]) == 0

    assert f"`--allow-type {__name__}:Customer`" in refused
    assert json.loads(capsys.readouterr().out)["threads_copied"] == 1
    with open_storage(urls[1], allowed_types=[Customer]) as target:
        assert graph.compile(checkpointer=target.checkpointer).get_state(config("typed")).values == {
            "customer": Customer("Ann")
        }


def test_the_command_says_what_it_did(
    sides: tuple[Storage, Storage], urls: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", *urls, "--dry-run"]) == 0
    dry = capsys.readouterr().out
    assert "5 threads of 5 to copy" in dry
    assert "Nothing was copied" in dry
    assert main(["migrate", *urls]) == 0
    copied = capsys.readouterr().out
    assert "5 threads of 5 copied" in copied
    assert "SHA-256" in copied
    assert main(["migrate", *urls, "--json"]) == 0

    told = json.loads(capsys.readouterr().out)

    assert (told["threads"], told["threads_copied"], told["not_copied"]) == (5, 0, [])


def test_a_dry_run_makes_no_file(template: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", f"sqlite:///{template}", f"sqlite:///{tmp_path}/new.db", "--dry-run"]) == 0

    out, err = capsys.readouterr()
    assert "yet, so everything would be copied" in err
    assert "compared" not in out
    assert not (tmp_path / "new.db").exists()


def test_a_database_in_memory_is_no_target(template: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", f"sqlite:///{template}", "sqlite://"]) == 2

    assert "a database in memory keeps nothing" in capsys.readouterr().err


def test_what_cannot_be_read_stays_behind(template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(template, tmp_path))
    with open_storage(f"sqlite:///{path}") as source, open_storage(f"sqlite:///{tmp_path}/new.db") as target:
        sql(source.database, "UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = 'waiting'")
        sql(source.database, "UPDATE store SET value = '{' WHERE prefix = 'apps.short'")
        result = copied(source, target)

    assert [one.name for one in result.not_copied] == ["waiting", "apps.short.gone"]
    assert all("cannot be read" in one.reason for one in result.not_copied)
    assert result.threads_copied == 4
