"""What is kept for how long: idle threads, old messages and old events go, and nothing else does."""

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import PutOp
from starlette.testclient import TestClient

from conversation import call
from everthread import Agent, Context, Retained, Retention, Transcript, aretain, build_graph, open_storage, retain
from everthread.cli import main
from everthread.errors import SettingsError, StorageError, ThreadBusyError
from everthread.graph import retaining
from everthread.models.scripted import ScriptedModel
from everthread.state import Note, Source, namespaces
from everthread.storage.erasure import erase
from everthread.storage.export import document
from everthread.storage.migration import migrate
from everthread.storage.open import Storage
from everthread.storage.reading import exists, long_term_notes, read_thread
from everthread.web import LocalUser, create_app
from small_agent import AGENT

LATER = datetime.now(UTC) + timedelta(days=40)
POLICY = Retention(idle_days=30)


@pytest.fixture
def storage(database_url: str) -> Iterator[Storage]:
    with open_storage(database_url, lock_timeout_seconds=0, retention=POLICY) as opened:
        yield opened


def talk(
    storage: Storage, *replies: Any, thread_id: str = "t", user_id: str = "ada", says: str = "hello", **dials: Any
) -> None:
    graph = build_graph(AGENT, model=ScriptedModel(list(replies or ["fine"])), summarizer="offline", storage=storage)
    config: Any = {"configurable": {"thread_id": thread_id}}
    graph.invoke({"messages": says}, config, context=Context(user_id=user_id, **dials))


def talk_long(storage: Storage, thread_id: str = "t", turns: int = 7, word: str = "zebra") -> None:
    """Talk for so many turns that messages leave the working set."""
    dials: Any = {"window": 2_000, "max_output_tokens": 200, "policy": "sliding_window", "keep_checkpoints": 1}
    for turn in range(turns):
        talk(storage, thread_id=thread_id, says=f"{word}{turn:02}x " + "word " * 400, **dials)


def talk_long_ago(storage: Storage) -> None:
    talk(storage)
    (record,) = storage.store.search(namespaces.SESSIONS, limit=10)
    storage.store.put(namespaces.SESSIONS, "t", {**record.value, "last_activity": "2020-01-01T00:00:00+00:00"})


def foreign_graph(storage: Storage) -> Any:
    """Return an app's own graph."""
    graph = StateGraph(MessagesState)
    graph.add_node("reply", lambda state: {"messages": [AIMessage("fine")]})
    graph.add_edge(START, "reply")
    graph.add_edge("reply", END)
    return graph.compile(checkpointer=storage.checkpointer, store=storage.store)


def ids(storage: Storage) -> list[str]:
    return [item.key for item in storage.store.search(namespaces.transcript("t"), limit=1_000)]


def receipts(storage: Storage, user_id: str = "ada") -> list[Mapping[str, Any]]:
    return [item.value for item in storage.store.search(namespaces.user(user_id, "receipts"), limit=100)]


def test_an_idle_thread_goes_as_a_whole(storage: Storage) -> None:
    talk(storage)

    done = retain(storage, at=LATER)

    assert [(one.thread_id, one.is_whole) for one in done.deletions] == [("t", True)]
    assert not exists(storage, "t")
    assert not storage.store.search(namespaces.thread("t"), limit=10)
    assert not storage.store.search(namespaces.said("ada"), limit=10)
    assert done.left == ()


def test_of_a_thread_that_stays_what_was_said_stays_in_reach_of_the_others(storage: Storage) -> None:
    talk(storage)
    talk(storage, thread_id="new")
    (session,) = storage.store.search(namespaces.SESSIONS, filter={"thread_id": "new"})
    record = {**session.value, "last_activity": LATER.isoformat()}
    storage.store.put(namespaces.SESSIONS, "new", record, index=False)

    retain(storage, at=LATER)

    assert {item.value["thread_id"] for item in storage.store.search(namespaces.said("ada"))} == {"new"}


def test_a_thread_that_goes_on_stays(storage: Storage) -> None:
    talk(storage)

    assert retain(storage, at=LATER - timedelta(days=20)).deletions == ()
    assert exists(storage, "t")


@pytest.mark.parametrize("dial", ["idle_days", "transcript_days"])
def test_more_days_than_a_calendar_has_keep_all(dial: str, database_url: str) -> None:
    with open_storage(database_url, retention=Retention.read(f"{dial}=1e12")) as storage:
        talk(storage)

        assert retain(storage, at=LATER).deletions == ()


async def test_async_callers_delete_the_same(storage: Storage) -> None:
    talk(storage)

    done = await aretain(storage, at=LATER)

    assert done.totals["threads"] == 1


def test_each_deletion_leaves_a_receipt_without_words(storage: Storage) -> None:
    talk(storage, says="the zebra sings")

    (deleted,) = retain(storage, at=LATER).deletions

    (receipt,) = receipts(storage)
    assert receipt["at"] == LATER.isoformat(timespec="milliseconds")
    assert {**receipt, "at": None} == {"at": None, **deleted.as_json()}
    assert "zebra" not in json.dumps(receipt)


def test_receipts_are_exported_and_forgotten_with_their_user(storage: Storage) -> None:
    talk(storage)
    retain(storage, at=LATER)

    exported = document(storage, "ada")
    erase(storage, user_id="ada")

    assert [one["thread_id"] for one in exported["receipts"]] == ["t"]
    assert not receipts(storage)


def test_what_was_said_to_last_becomes_a_long_term_note_before_its_thread_goes(storage: Storage) -> None:
    talk(storage, says="Remember that I am vegetarian.", distillation="turn")

    retain(storage, at=LATER)

    assert ["vegetarian" in note.text for note in long_term_notes(storage.store, "ada")] == [True]


def test_notes_bookings_and_the_profile_of_the_user_stay(storage: Storage) -> None:
    talk(storage)
    source = Source(thread_id="t", message_ids=("m",), quote="I like tea.")
    note = Note(id="n-1", text="Likes tea.", date="2026-01-01", sources=(source,))
    own = {
        (namespaces.notes("ada"), "n-1"): note.value(),
        (namespaces.profile("ada"), "profile"): {"name": "Ada"},
        (namespaces.user("ada", "trips"), "b"): {"type": "booking", "thread_id": "t"},
    }
    for (namespace, key), value in own.items():
        storage.store.put(namespace, key, value)

    retain(storage, at=LATER)

    assert {place: item.value for place in own if (item := storage.store.get(*place))} == own


def test_a_thread_whose_notes_cannot_be_consolidated_stays(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("no plan")

    talk(storage, says="Remember that I am vegetarian.", distillation="turn")
    monkeypatch.setattr("everthread.nodes.consolidate.plan", fails)

    assert retain(storage, at=LATER).kept == {"failed": ("t",)}
    assert exists(storage, "t")


def test_a_thread_that_waits_for_an_approval_stays(storage: Storage) -> None:
    asks = AIMessage("", tool_calls=[call("approve", "c1", what="a flight")])
    talk(storage, asks)

    done = retain(storage, at=LATER)

    assert (done.deletions, done.kept) == ((), {"waiting": ("t",)})
    assert read_thread(storage, "t").asked


def test_a_turn_that_was_cut_off_waits_for_nobody(storage: Storage) -> None:
    with suppress(Exception):
        talk(storage, RuntimeError("away"))
    assert read_thread(storage, "t").unfinished

    assert retain(storage, at=LATER).totals["threads"] == 1


@pytest.mark.parametrize("is_dry", [True, False])
def test_a_thread_in_use_stays(is_dry: bool, storage: Storage) -> None:
    talk(storage)

    with open_storage(storage.url, lock_timeout_seconds=0) as other, other.locks.hold("t"):
        done = retain(storage, at=LATER, is_dry=is_dry)

    assert (done.deletions, done.kept) == ((), {"busy": ("t",)})
    assert exists(storage, "t")


def test_a_thread_that_nobody_of_ours_has_run_is_not_looked_at(storage: Storage) -> None:
    graph = foreign_graph(storage)
    config: Any = {"configurable": {"thread_id": "app"}}
    graph.invoke({"messages": "hello"}, config)

    done = retain(storage, at=LATER, adopted=True)

    assert (done.deletions, done.kept) == ((), {})
    assert len(graph.get_state(config).values["messages"]) == 2


@pytest.mark.parametrize(("adopted", "goes"), [(False, 0), (True, 1)])
def test_a_thread_that_an_app_began_itself_goes_only_when_asked_for(adopted: bool, goes: int, storage: Storage) -> None:
    graph = foreign_graph(storage)
    config: Any = {"configurable": {"thread_id": "app", "user_id": "ada"}}
    graph.invoke({"messages": "hello"}, config)
    storage.guard(graph).invoke({"messages": "hello again"}, config)

    done = retain(storage, at=LATER, adopted=adopted)

    assert (done.totals["threads"], done.kept) == (goes, {} if goes else {"foreign": ("app",)})


def test_a_thread_of_a_guarded_graph_goes_like_ours(storage: Storage) -> None:
    config: Any = {"configurable": {"thread_id": "app", "user_id": "ada"}}
    storage.guard(foreign_graph(storage)).invoke({"messages": "hello"}, config)

    assert retain(storage, at=LATER).totals["threads"] == 1


def test_a_transcript_without_a_graph_goes_by_the_date_of_its_last_message(storage: Storage) -> None:
    Transcript(storage.store, "t", "ada").append(["hello"], at="2020-01-01T00:00:00+00:00")

    assert (retain(storage).totals["turns"], ids(storage)) == (1, [])


def test_old_messages_go_once_no_checkpoint_has_them(storage: Storage) -> None:
    storage.retention = Retention(transcript_days=30)
    talk_long(storage)
    before = ids(storage)

    (deleted,) = retain(storage, at=LATER).deletions

    view = read_thread(storage, "t")
    assert 0 < deleted.erased["transcript"] == len(before) - len(ids(storage))
    # The newest reply is written with the next question.
    assert {one.value["message_id"] for one in storage.store.search(namespaces.said("ada"), limit=99)} == {
        str(message.id) for message in view.messages[:-1]
    }
    assert not deleted.is_whole
    assert view.working_set.keys() <= {str(message.id) for message in view.messages}
    talk(storage, says="and now?")


def test_messages_that_are_young_stay(storage: Storage) -> None:
    storage.retention = Retention(transcript_days=30)
    talk_long(storage)

    assert retain(storage, at=LATER - timedelta(days=20)).deletions == ()


def test_a_message_that_a_session_note_rests_on_stays(storage: Storage) -> None:
    storage.retention = Retention(transcript_days=30)
    talk_long(storage)
    first = min(ids(storage), key=lambda name: storage.store.get(namespaces.transcript("t"), name).value["seq"])  # type: ignore[union-attr]
    source = Source(thread_id="t", message_ids=(first,), quote="zebra00x")
    note = Note(id="n-1", text="Likes zebras.", date="2026-01-01", sources=(source,))
    storage.store.put(namespaces.session_notes("t"), "n-1", note.value())

    retain(storage, at=LATER)

    assert first in ids(storage)


def test_events_of_old_turns_go(storage: Storage) -> None:
    storage.retention = Retention(ledger_turns=2)
    for _ in range(5):
        talk(storage)

    (deleted,) = retain(storage).deletions

    kept = {item.value["turn"] for item in storage.store.search(namespaces.ledger("t"), limit=1_000)}
    assert (deleted.turns, kept) == (3, {4, 5})


def test_an_agent_with_a_policy_of_its_own_has_it_instead_of_the_storages(storage: Storage) -> None:
    talk(storage)
    keeps = Agent(name="test", title="T", instructions="Be brief.", retention=Retention())
    deletes = Agent(name="test", title="T", instructions="Be brief.", retention=Retention(idle_days=1))

    assert retain(storage, [keeps], at=LATER, is_dry=True).deletions == ()
    assert retain(storage, [deletes], at=LATER - timedelta(days=30), is_dry=True).totals["threads"] == 1


def test_an_agent_that_is_not_given_has_the_policy_of_its_last_run(storage: Storage) -> None:
    keeps = replace(AGENT, retention=Retention())
    graph = build_graph(keeps, model=ScriptedModel(["fine"]), summarizer="offline", storage=storage)
    graph.invoke({"messages": "hello"}, {"configurable": {"thread_id": "t"}}, context=Context(user_id="ada"))

    assert retain(storage, at=LATER).deletions == ()
    assert retain(storage, [AGENT], at=LATER).totals["threads"] == 1


def test_without_a_policy_it_says_how_to_give_one(database_url: str) -> None:
    with open_storage(database_url) as storage, pytest.raises(SettingsError, match=r"Retention\(idle_days=90\)"):
        retain(storage)


def test_a_graph_in_the_place_of_its_agent_is_named(storage: Storage) -> None:
    graph: Any = build_graph(AGENT, model="offline", storage=storage)

    with pytest.raises(SettingsError, match="`agents` is a list of `Agent`"):
        retain(storage, [graph])


def test_a_time_without_a_zone_is_refused(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="`at` must be a time with its zone"):
        retain(storage, at=LATER.replace(tzinfo=None))


def test_an_idle_thread_of_a_database_in_memory_goes() -> None:
    with open_storage("sqlite://", retention=POLICY) as storage:
        talk(storage)

        assert retain(storage, at=LATER).left == ()
        assert ids(storage) == []


@pytest.mark.parametrize(
    "values",
    [{"idle_days": 0}, {"transcript_days": -1}, {"ledger_turns": 0}, {"ledger_turns": 1.5}, {"idle_days": ""}],
)
def test_a_policy_out_of_range_is_refused(values: Any) -> None:
    with pytest.raises(SettingsError, match=f"`{next(iter(values))}` must be"):
        Retention(**values)


def test_a_policy_is_read_from_a_text() -> None:
    read = Retention.read("idle_days=90, ledger_turns=500")

    assert read == Retention(idle_days=90, ledger_turns=500)
    with pytest.raises(SettingsError, match="'idle=3' is no retention"):
        Retention.read("idle=3")


def test_what_was_interrupted_is_finished_by_the_next_call(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(storage)
    with monkeypatch.context() as patched:
        patched.setattr(storage.store, "settle", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            retain(storage, at=LATER)
    assert storage.eraser.is_interrupted(retaining.RETENTION)

    assert retain(storage, at=LATER).left == ()
    assert not storage.eraser.is_interrupted(retaining.RETENTION)


def test_one_process_at_a_time_deletes_what_is_old(storage: Storage) -> None:
    talk(storage)

    with (
        open_storage(storage.url, lock_timeout_seconds=0) as other,
        other.locks.hold(retaining._LOCK),
        pytest.raises(ThreadBusyError, match="another process is deleting what is old"),
    ):
        retain(storage, at=LATER)

    assert exists(storage, "t")


def test_a_thread_that_cannot_be_deleted_is_none_that_cannot_be_read(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    talk_long_ago(storage)
    monkeypatch.setattr(storage.eraser, "delete", fail)

    with pytest.raises(StorageError, match="the disk is full"):
        retain(storage)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_ends_of_idle_sessions_come_with_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///everthread.db"
    with open_storage(url) as storage:
        talk_long_ago(storage)

    assert main(["sweep", "--idle", "0s", "--retention", "idle_days=30", "--json"]) == 0

    swept = json.loads(capsys.readouterr().out)
    assert [one["thread_id"] for one in swept["ended"]] == ["t"]
    assert swept["retained"]["totals"]["threads"] == 1


def test_a_server_deletes_by_itself(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db", retention=POLICY) as storage:
        talk_long_ago(storage)
        with TestClient(create_app(storage, [AGENT], auth=LocalUser("ada"))):
            _wait_until(lambda: not exists(storage, "t"))


def _wait_until(is_done: Callable[[], bool]) -> None:
    until = datetime.now(UTC) + timedelta(seconds=20)
    while not is_done():
        assert datetime.now(UTC) < until


# On the command line.


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    with open_storage("sqlite:///everthread.db") as storage:
        talk_long_ago(storage)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["retain", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


OLD = ("--retention", "idle_days=30")


def test_a_dry_run_deletes_nothing_and_says_what_would_go(run: Any) -> None:
    before = Path("everthread.db").read_bytes()

    code, out, _ = run(*OLD, "--dry-run")

    assert (code, "1 idle thread with 1 turn would go" in out) == (0, True)
    assert Path("everthread.db").read_bytes() == before


def test_what_went_is_said_as_data(run: Any) -> None:
    _, dry, _ = run(*OLD, "--dry-run", "--json")
    code, out, _ = run(*OLD, "--yes", "--json")

    done = json.loads(out)
    assert (code, done["verified"], done["dry_run"]) == (0, True, False)
    assert done["deletions"] == json.loads(dry)["deletions"]


def test_it_asks_before_it_deletes(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.confirm", _refuse)

    code, _, err = run(*OLD)

    assert (code, "1 idle thread with 1 turn would go" in err) == (1, True)
    with open_storage("sqlite:///everthread.db") as storage:
        assert exists(storage, "t")


def test_it_asks_nothing_when_nothing_goes(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.confirm", _refuse)

    code, out, _ = run("--retention", "idle_days=1000000")

    assert (code, out) == (0, "Nothing is old enough to go.\n")


def _refuse(*_: Any, **__: Any) -> None:
    raise typer.Abort


def test_receipts_can_be_read(run: Any) -> None:
    assert run("--receipts", "--json")[1] == "[]\n"
    run(*OLD, "--yes")

    (receipt,) = json.loads(run("--receipts", "--json")[1])
    assert (receipt["thread_id"], receipt["whole"]) == ("t", True)
    assert "t       ada   all of it" in run("--receipts")[1]


@pytest.mark.parametrize("command", ["why quay --thread t", "show t", "ledger t"])
def test_a_command_about_a_thread_that_went_says_so(run: Any, capsys: pytest.CaptureFixture[str], command: str) -> None:
    run(*OLD, "--yes")

    code = main(command.split())
    _, err = capsys.readouterr()

    assert code == 1
    assert err.startswith("error: there is no thread 't' any more: retention deleted it at 20")
    assert main(["show", "never"]) == 1
    assert "any more" not in capsys.readouterr().err


@pytest.mark.parametrize("value", ["{", "{}", "[]"])
def test_a_damaged_receipt_hides_no_other_one(run: Any, capsys: pytest.CaptureFixture[str], value: str) -> None:
    run(*OLD, "--yes")
    receipts = run("--receipts")[1]
    with closing(sqlite3.connect("everthread.db")) as database, database:
        database.execute("INSERT INTO store (prefix, key, value) VALUES ('users.eve.receipts', 'r', ?)", (value,))

    code = main(["show", "t"])

    assert (code, "retention deleted it at" in capsys.readouterr().err) == (1, True)
    assert run("--receipts")[:2] == (0, receipts)


def test_a_command_without_a_policy_says_which_option(run: Any) -> None:
    code, _, err = run("--dry-run")

    assert (code, "`--retention idle_days=90`" in err) == (2, True)


# A dry run equals what then goes.

Rows = dict[tuple[str, ...], bytes]
THREADS = ("a-1", "a-2", "a-wait", "b-cut", "b-tools", "guarded", "begun", "app", "alone")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a database with threads of every kind; each message has a word of its own."""
    path = tmp_path_factory.mktemp("retention") / "a.db"
    with open_storage(f"sqlite:///{path}") as storage:
        talk_long(storage, "a-1", turns=18, word="quokka")
        for turn in range(3):
            talk(storage, thread_id="a-2", says=f"Remember that I like axolotl{turn}x.", distillation="turn")
        talk(storage, AIMessage("", tool_calls=[call("approve", "c1", what="okapi")]), thread_id="a-wait")
        with suppress(Exception):
            talk(storage, RuntimeError("away"), thread_id="b-cut", user_id="bob", says="narwhal00x")
        table = AIMessage("", tool_calls=[call("look", "c2", n=900)])
        for turn in range(4):
            talk(storage, table, "seen", thread_id="b-tools", user_id="bob", says=f"pangolin{turn}x", window=9_000)
        graph = foreign_graph(storage)
        for thread_id, first in (("guarded", storage.guard(graph)), ("begun", graph), ("app", graph)):
            config: Any = {"configurable": {"thread_id": thread_id, "user_id": "bob"}}
            first.invoke({"messages": f"dugong-{thread_id}"}, config)
            if thread_id != "app":
                storage.guard(graph).invoke({"messages": f"tapir-{thread_id}"}, config)
        for turn in range(6):
            Transcript(storage.store, "alone", "cy").append([f"wombat{turn}x", {"role": "assistant", "content": "ok"}])
        shared = [Source(thread_id=name, message_ids=("m",), quote="quokka00x") for name in ("a-1", "a-2")]
        note = Note(id="n-1", text="Likes quokkas.", date="2026-01-01", sources=tuple(shared))
        storage.store.put(namespaces.notes("ada"), "n-1", note.value())
    return path


def rows_of(path: Path) -> Rows:
    """Return every row that somebody wrote."""
    rows: Rows = {}
    with closing(sqlite3.connect(path)) as database:
        for table, names in {
            "store": "prefix, key",
            "checkpoints": "thread_id, checkpoint_ns, checkpoint_id",
            "writes": "thread_id, checkpoint_ns, checkpoint_id, task_id, idx",
        }.items():
            whole = "value" if table == "store" else ("checkpoint" if table == "checkpoints" else "value")
            for *name, value in database.execute(f"SELECT {names}, CAST({whole} AS BLOB) FROM {table}"):
                rows[(table, *map(str, name))] = bytes(value or b"")
    return rows


def scatter(storage: Storage, chance: random.Random) -> datetime:
    """Let each thread and each message have happened at another time, and return what counts as now."""
    now = datetime.now(UTC) + timedelta(days=chance.choice([1, 60, 400]))

    def some_time_ago() -> str:
        return (now - timedelta(days=chance.choice([0, 5, 29, 31, 89, 91, 365]))).isoformat(timespec="milliseconds")

    changes = []
    for item in storage.store.search(namespaces.SESSIONS, limit=100):
        record = {**item.value, "last_activity": some_time_ago()}
        changes.append(PutOp(item.namespace, item.key, None if chance.random() < 0.2 else record, index=False))
        for message in storage.store.search(namespaces.transcript(item.key), limit=1_000):
            changes.append(PutOp(message.namespace, message.key, {**message.value, "date": some_time_ago()}))
    storage.store.batch(changes)
    return now


def some_policy(chance: random.Random) -> Retention:
    days: list[Any] = [None, 1, 30, 90]
    return Retention(
        idle_days=chance.choice(days), transcript_days=chance.choice(days), ledger_turns=chance.choice([None, 1, 3, 20])
    )


def is_doomed(row: tuple[str, ...], planned: Retained) -> bool:
    table, *name = row
    for one in planned.deletions:
        if table == "store":
            if (name[0], name[1]) in one.where.records or any(
                f"{name[0]}.".startswith(f"{prefix}.") for prefix in one.where.prefixes
            ):
                return True
        elif name[0] in one.where.threads:
            return True
    return False


def words(values: Any) -> set[bytes]:
    """Return the words that tell one message from all others."""
    return {word for value in values for word in re.findall(rb"[a-z]{5,8}\d+x|[a-z]{5,6}-[a-z]{3,7}", value)}


def check_round(path: Path, seed: int) -> int:
    """Delete what a policy says from a random database, and return how many rows went."""
    chance = random.Random(seed)
    own = [Agent(name="test", title="T", instructions="Be.", retention=some_policy(chance))] if seed % 3 == 0 else []
    adopted = chance.random() < 0.3
    with open_storage(f"sqlite:///{path}", lock_timeout_seconds=0, retention=some_policy(chance)) as storage:
        now = scatter(storage, chance)
        before = rows_of(path)
        planned = retain(storage, own, at=now, adopted=adopted, is_dry=True)
        assert rows_of(path) == before
        done = retain(storage, own, at=now, adopted=adopted)
    after = rows_of(path)
    gone = {row: value for row, value in before.items() if row not in after}

    # What goes is what the dry run said, row by row, and its counts and bytes.
    assert done.as_json()["deletions"] == planned.as_json()["deletions"]
    assert (done.kept, done.totals) == (planned.kept, planned.totals)
    assert set(gone) == {row for row in before if is_doomed(row, planned)}
    assert sum(sum(one.erased.values()) for one in planned.deletions) == len(gone)
    # Nothing else is another one, but for the notes that the end of a session makes.
    changed = {row for row, value in before.items() if row in after and after[row] != value}
    assert all(row[1].startswith("users.") and row[1].endswith((".notes", ".profile")) for row in changed)
    new = {row[1].rpartition(".")[2] for row in after.keys() - before.keys()}
    assert new <= {"receipts", "notes", "profile", "provenance"}
    assert sum(row[1].endswith("receipts") for row in after if row[0] == "store") == len(planned.deletions)
    # No byte of it is left that a row which stays does not say too.
    assert done.left == ()
    file = b"".join(one.read_bytes() for one in path.parent.glob(f"{path.name}*") if one.is_file())
    assert not [word for word in words(gone.values()) - words(after.values()) if word in file]
    return len(gone)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 20, 10))
def test_a_dry_run_equals_what_then_goes(first: int, template: Path, tmp_path: Path) -> None:
    went = []
    for seed in range(first, first + 10):
        path = tmp_path / f"{seed}.db"
        shutil.copy(template, path)
        went.append(check_round(path, seed))
        path.unlink()

    assert sum(map(bool, went)) > 5


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(2))
def test_a_dry_run_equals_what_then_goes_on_postgres(seed: int, template: Path, postgres_tables: str) -> None:
    with (
        open_storage(f"sqlite:///{template}") as source,
        open_storage(postgres_tables, retention=Retention(idle_days=30, transcript_days=30, ledger_turns=3)) as storage,
    ):
        migrate(source, storage, lambda step, done=0, total=None: None)
        now = scatter(storage, random.Random(seed))
        before = stored(storage)
        planned = retain(storage, at=now, is_dry=True)
        assert stored(storage) == before
        done = retain(storage, at=now)
        after = stored(storage)

    assert done.as_json()["deletions"] == planned.as_json()["deletions"]
    assert done.left == ()
    assert {row for row in before if row not in after} == {row for row in before if is_doomed(row, planned)}


def stored(storage: Storage) -> dict[tuple[str, ...], Any]:
    """Return every record, and how much each thread has."""
    rows = storage.database.read(storage.store.stored, limit=10_000)
    records = {("store", row.prefix, row.key): row.value for row in rows}
    sizes = {("checkpoints", thread_id): size for thread_id, size in storage.tables.thread_sizes().items()}
    return {**records, **sizes}
