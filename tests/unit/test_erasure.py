"""Erasing a user or a thread."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint

from conversation import call
from everthread import Context, build_graph, open_storage, prompt_at
from everthread.agents.support.tickets import Tickets
from everthread.agents.support.tools import TOOLS
from everthread.errors import NotFoundError, SettingsError, StorageError, ThreadBusyError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.state.namespaces import user_key
from everthread.state.notes import Note, Source
from everthread.storage.erasure import erase, held
from everthread.storage.export import document
from everthread.storage.open import Storage
from everthread.storage.sqlite import erasing

SECRET = "the zebra sings at 0415"
AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=TOOLS)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as opened:
        yield opened


def talk(storage: Storage, *replies: Any, thread_id: str = "t", user_id: str = "ada", says: str = SECRET) -> None:
    graph = build_graph(AGENT, model=ScriptedModel(list(replies)), summarizer="offline", storage=storage)
    config: Any = {"configurable": {"thread_id": thread_id}}
    graph.invoke({"messages": says}, config, context=Context(user_id=user_id, distillation=("turn",)))


def count(folder: Path, text: str = SECRET) -> int:
    """Count a text in the bytes of every file of the database."""
    return sum(file.read_bytes().count(text.encode()) for file in folder.rglob("*") if file.is_file())


def note(*threads: str, text: str = SECRET) -> Note:
    sources = tuple(Source(thread_id=thread, message_ids=("m",), quote=f"quote in {thread} 77") for thread in threads)
    return Note(id="n-1", text=text, date="2027-01-01", sources=sources)


def put(storage: Storage, found: Note, user_id: str = "ada") -> None:
    storage.store.put(namespaces.notes(user_id), found.id, found.value())


def everywhere(storage: Storage) -> None:
    """Let a user say the secret wherever it can go."""
    ticket = call("open_ticket", "c1", title=SECRET, description=f"It is {SECRET}.")
    talk(storage, AIMessage("", tool_calls=[ticket]), "I see.", says=f"I always want {SECRET}.")
    storage.store.put(namespaces.profile("ada"), "profile", {"name": SECRET})
    storage.store.put(namespaces.user("ada", "trips"), "b", {"type": "booking", "note": SECRET, "thread_id": "t"})
    storage.store.put(namespaces.session_notes("t"), "n-2", note("t").value())
    put(storage, note("t"))


def test_nothing_of_a_forgotten_user_is_left_in_any_byte(storage: Storage, tmp_path: Path) -> None:
    everywhere(storage)
    assert count(tmp_path) > 10

    done = erase(storage, user_id="ada")

    assert (count(tmp_path), done.left, done.is_verified) == (0, (), True)
    kinds = {"profile", "notes", "session notes", "bookings", "tickets", "ledger", "sessions", "checkpoints", "writes"}
    assert kinds <= set(done.erased)


def test_nothing_of_a_forgotten_thread_is_left_in_any_byte(storage: Storage, tmp_path: Path) -> None:
    everywhere(storage)
    storage.store.put(namespaces.profile("ada"), "profile", {"name": "Ada"})

    done = erase(storage, thread_id="t")

    assert (count(tmp_path), done.is_verified) == (0, True)
    assert storage.store.get(namespaces.profile("ada"), "profile") is not None


def test_what_was_pruned_long_ago_leaves_the_free_space_too(storage: Storage, tmp_path: Path) -> None:
    talk(storage, "hello", says="hi")
    for number in range(200):
        storage.store.put(("threads", "t", "transcript"), str(number), {"text": SECRET * 5})
    for number in range(200):
        storage.store.delete(("threads", "t", "transcript"), str(number))
    assert count(tmp_path) > 100

    erase(storage, user_id="ada")

    assert count(tmp_path) == 0


def test_words_that_stay_in_the_index_are_reported(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(storage, note("t"))
    for name in ("settle", "build_index"):
        monkeypatch.setattr(storage.store, name, lambda: None)

    done = erase(storage, user_id="ada")

    assert any(place.startswith("the full-text index") for place in done.left)


def test_a_search_finds_nothing_of_who_was_forgotten(storage: Storage) -> None:
    put(storage, note("t"))
    put(storage, note("t-2", text="Likes zebra stripes."), user_id="bob")

    done = erase(storage, user_id="ada")

    found = storage.store.search(("users",), query="zebra")
    assert ([item.namespace[1] for item in found], done.is_verified) == (["bob"], True)


def test_other_users_keep_everything(storage: Storage, tmp_path: Path) -> None:
    talk(storage, "hello", thread_id="t-10", user_id="ad", says="I always want an aisle seat.")
    put(storage, note("t-10", text="Likes tea."), user_id="ad")
    before = held(storage, user_id="ad")
    everywhere(storage)

    done = erase(storage, user_id="ada")

    assert held(storage, user_id="ad") == before
    assert done.is_verified


def test_a_text_that_another_user_said_too_stays_theirs(storage: Storage) -> None:
    for thread, user in (("t", "ada"), ("t-2", "bob")):
        talk(storage, "hello", thread_id=thread, user_id=user)

    done = erase(storage, user_id="ada")

    assert (done.is_verified, done.shared) == (True, 1)


def test_ids_of_messages_that_an_edit_removed_are_no_texts(storage: Storage) -> None:
    for user in ("ada", "bob"):
        link = {"seq": 1, "previous": "the first question"}
        storage.store.put(namespaces.removed(user), "the second question", link, index=False)
        talk(storage, "hello", thread_id=user, user_id=user, says=f"{user} sings at 0415")

    done = erase(storage, user_id="ada")

    assert (done.is_verified, done.shared) == (True, 0)


def test_a_text_in_a_place_nobody_knows_is_reported(storage: Storage, tmp_path: Path) -> None:
    talk(storage, "hello")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database, database:
        database.execute("CREATE TABLE copies (text)")
        database.execute("INSERT INTO copies VALUES (?)", (f"once more: {SECRET}",))

    done = erase(storage, user_id="ada")

    assert (done.is_verified, done.left) == (False, ("copies",))


def test_a_text_in_a_thread_of_which_nobody_knows_whose_it_is_is_reported(storage: Storage) -> None:
    for thread in ("t", "t-2"):
        talk(storage, "hello", thread_id=thread)
    storage.database.connection.execute("UPDATE store SET value = '{' WHERE prefix = 'sessions' AND key = 't-2'")

    done = erase(storage, user_id="ada")

    assert (done.strangers, done.is_verified) == (("t-2",), False)
    assert "checkpoints t-2" in done.left


def test_a_note_that_was_said_elsewhere_too_loses_only_its_sources_in_a_forgotten_thread(storage: Storage) -> None:
    for thread in ("t", "t-2"):
        talk(storage, "hello", thread_id=thread, says=f"hi from {thread}")
    put(storage, note("t", "t-2", text="Likes tea."))

    done = erase(storage, thread_id="t")

    item = storage.store.get(namespaces.notes("ada"), "n-1")
    assert item is not None
    assert [source["thread_id"] for source in item.value["sources"]] == ["t-2"]
    assert (done.erased["sources of kept notes"], done.is_verified) == (1, True)


def test_prompts_of_other_threads_lose_a_note_that_goes(storage: Storage, tmp_path: Path) -> None:
    put(storage, note("a"))
    for thread_id in ("a", "b"):
        talk(storage, "fine", thread_id=thread_id, says="hello there")
    assert SECRET in prompt_at(storage, "b").messages[0].text

    receipt = erase(storage, thread_id="a")

    assert (receipt.is_verified, count(tmp_path)) == (True, 0)
    sent = prompt_at(storage, "b")
    assert [part.missing[:6] for part in sent.parts or ()] == ["erased", ""]
    assert [message.text for message in sent.messages] == ["hello there"]


def test_an_export_has_the_texts_of_prompts(storage: Storage) -> None:
    talk(storage, "fine")

    (thread,) = document(storage, "ada")["threads"]

    assert any(
        "Be brief." in str(text["message"]["data"]["content"]) for text in thread["prompts"] if "message" in text
    )


def test_a_ticket_of_another_thread_stays_with_its_thread(storage: Storage) -> None:
    talk(storage, "hello", says="hi")
    Tickets(storage.store, "ada", "t-2").open("c", title="Other", description="Of another thread")

    erase(storage, thread_id="t")

    assert [ticket.title for ticket in Tickets(storage.store, "ada", "t-2").find()] == ["Other"]


def test_a_job_that_names_the_thread_goes_with_it(storage: Storage) -> None:
    talk(storage, "hello")
    checkpoint = {**empty_checkpoint(), "channel_values": {"ended": ["t"]}}
    config: Any = {"configurable": {"thread_id": "job", "checkpoint_ns": ""}}
    storage.checkpointer.put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {})  # type: ignore[arg-type]

    erase(storage, user_id="ada")

    assert storage.checkpointer.get_tuple(config) is None


def test_a_thread_without_a_record_can_be_forgotten(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="away"):
        talk(storage, RuntimeError("away"))
    storage.store.delete(namespaces.SESSIONS, "t")

    assert erase(storage, thread_id="t").is_verified
    assert count(tmp_path) == 0


@pytest.mark.parametrize("who", [{"user_id": "bob"}, {"thread_id": "t-9"}, {"user_id": "ad"}])
def test_who_is_not_there_is_refused(storage: Storage, who: dict[str, str]) -> None:
    talk(storage, "hello")

    with pytest.raises(NotFoundError, match="there is no"):
        erase(storage, **who)


@pytest.mark.parametrize("who", [{}, {"user_id": "ada", "thread_id": "t"}])
def test_one_of_both_must_be_named(storage: Storage, who: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="either `user_id` or `thread_id`"):
        erase(storage, **who)


def test_an_interrupted_erasure_is_finished_by_a_second_one(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(storage, "hello")
    with monkeypatch.context() as patched:
        patched.setattr(storage.store, "settle", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            erase(storage, user_id="ada")

    done = erase(storage, user_id="ada")

    assert (count(tmp_path), done.is_verified) == (0, True)
    with pytest.raises(NotFoundError):
        erase(storage, user_id="ada")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_thread_in_use_is_not_erased(storage: Storage, tmp_path: Path) -> None:
    talk(storage, "hello")

    with open_storage(storage.url) as other, other.locks.hold("t"), pytest.raises(ThreadBusyError, match="busy"):
        erase(storage, user_id="ada")

    assert held(storage, user_id="ada")["sessions"] == 1


def test_notes_that_are_being_consolidated_are_not_erased(storage: Storage) -> None:
    talk(storage, "hello")

    with (
        open_storage(storage.url) as other,
        other.locks.hold(user_key("ada")),
        pytest.raises(ThreadBusyError, match="busy"),
    ):
        erase(storage, user_id="ada")


def test_a_reader_that_keeps_the_log_is_named_and_a_second_try_works(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(storage, "hello")
    monkeypatch.setattr(erasing, "_ATTEMPTS", 1)
    storage.database.connection.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM store").fetchone()
        with pytest.raises(StorageError, match="run the same command again"):
            erase(storage, user_id="ada")

    assert erase(storage, user_id="ada").is_verified
    assert count(tmp_path) == 0


def test_an_open_graph_does_not_bring_an_erased_thread_back(storage: Storage, tmp_path: Path) -> None:
    model = ScriptedModel(["hello", "hello again"])
    graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": SECRET}, config, context=Context(user_id="ada"))

    with open_storage(storage.url) as other:
        erase(other, user_id="ada")
    graph.invoke({"messages": "hi"}, config, context=Context(user_id="ada"))

    assert SECRET not in str(model.prompts[-1])
    assert count(tmp_path) == 0


@pytest.mark.parametrize("thread_id", ["t", "nobody"])
def test_runs_after_an_erasure_write_no_zeros(thread_id: str, storage: Storage) -> None:
    talk(storage, AIMessage("Noted."))

    with suppress(NotFoundError):
        erase(storage, thread_id=thread_id)

    assert storage.database.connection.execute("PRAGMA secure_delete").fetchone() == (2,)


def test_an_erasure_that_fails_leaves_the_connection_as_it_was(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    talk(storage, AIMessage("Noted."))
    monkeypatch.setattr(storage.store, "settle", full)
    with pytest.raises(StorageError):
        erase(storage, thread_id="t")

    assert storage.database.connection.execute("PRAGMA secure_delete").fetchone() == (2,)


def test_a_database_that_is_in_use_is_said_to_be(storage: Storage, tmp_path: Path) -> None:
    talk(storage, "hello")
    storage.database.connection.execute("PRAGMA busy_timeout = 0")

    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="another process kept it locked"):
            erase(storage, user_id="ada")

    assert erase(storage, user_id="ada").is_verified
