"""One user's words never reach another user's prompt, search, export or ledger, whatever the ids look like."""

import hashlib
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from attack.conftest import AttackRow
from attack.scale import tries
from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.ledger import events
from everthread.ledger.events import EVENTS
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, Note, Source, namespaces
from everthread.storage.erasure import erase
from everthread.storage.export import document
from everthread.storage.open import Storage
from everthread.storage.reading import read_thread
from everthread.tools.save_memory_note import save_memory_note

AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note])
NAMED = [
    "1", "10", "1x", "1.x", "1%", "%", "_", "*", "1*", "?", "[1]", ".", "..", "users", "users.1.notes", "~", "-", " ",
    "1 ", "\n", "1\n", "\t", "é", "e\u0301", "ﬁ", "fi", "Ａ", "A", "a", "а", "\u200b1", "ß", "ss", "x" * 5000,
    "x" * 5001, "'; DROP TABLE store; --", "' OR 1=1 --", '"', 'NEAR("a" "b")', "a OR b", "text:*", "\\", "/", "null",
    "None", "0", "😀", "../1", "../../etc/passwd", "..\\1", "%2e%2e%2f1", "a.db-locks/1", "\u202e1", "\x1b[31m1",
    "--yes",
    "~" + hashlib.sha256("é".encode()).hexdigest(), '{"$gt": ""}', "$(touch x)", "x" * 100_000,
]  # fmt: skip
"""Ids that mean something to SQL, globs, FTS5, paths, shells or Unicode, and pairs where one begins with the other."""

NEAR_ADA = [
    "ada", "аda", "Ada", "ADA ", "../ada", "%2e%2e%2fada", "ada/../ada", "users", "x" * 5_000,
    "' OR user_id = 'ada' --", "ada* OR text:ada", "ada\u200b", "*", '{"$ne": null}',
]  # fmt: skip
"""A user, and thirteen who would like to be taken for her."""

REFUSED: list[Any] = ["", "a\x00b", "\x00", "a\ud800b", "\udfff", "1\x00"]
"""Ids that no store can hold, or that one store would take for another."""
SPACES = (namespaces.profile, namespaces.notes, namespaces.session_notes, namespaces.transcript)
IDS = st.one_of(
    st.sampled_from(NAMED),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12),
)
PAIRS = st.tuples(IDS, IDS).filter(lambda pair: pair[0] != pair[1])


@dataclass(frozen=True)
class Person:
    """A user whose own word is in everything that is theirs, on a thread with the same id."""

    id: str
    canary: str

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.id}}

    def known(self, storage: Storage) -> None:
        storage.store.put(namespaces.profile(self.id), "profile", {"name": self.canary}, index=False)
        storage.store.put(namespaces.notes(self.id), "n-1", self.note().value(), index=None)

    def note(self) -> Note:
        return Note(id="n-1", text=f"Likes {self.canary}.", date="2026-01-01", sources=(Source(thread_id="old"),))

    def talk(self, storage: Storage) -> list[str]:
        """Have three turns with the same message ids as anybody, and return what the model was sent."""
        save = call("save_memory_note", "c1", text=f"Wants {self.canary} tea.", keywords=["tea"])
        look = call("recall_history", "c2", query="pass the word on, alpha bravo tea")
        replies = [AIMessage("", tool_calls=[save]), "Noted.", "Yes.", AIMessage("", tool_calls=[look]), "Done."]
        model = ScriptedModel(replies)
        graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
        dials = Context(user_id=self.id, policy="sliding_window", keep_last_turns=1)
        said = [f"Pass the word on: I want {self.canary} tea.", f"And {self.canary} cake.", "Which word did I pass on?"]
        for number, text in enumerate(said):
            graph.invoke({"messages": [HumanMessage(text, id=f"m{number}")]}, self.config, context=dials)
        return [message.text for prompt in model.prompts for message in prompt]

    def say_in(self, storage: Storage, thread_id: str, text: str, *, looks: bool = False) -> str:
        """Send a message in a thread that recalls the user's others, and return all that the model was sent."""
        look = AIMessage("", tool_calls=[call("recall_history", "c1", query="pass word", threads="mine")])
        model = ScriptedModel([look, "Done."] if looks else ["Noted."])
        graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
        context = Context(user_id=self.id, recall_threads="mine")
        graph.invoke({"messages": text}, {"configurable": {"thread_id": thread_id}}, context=context)
        return "\n".join(message.text for prompt in model.prompts for message in prompt)

    def end(self, storage: Storage) -> None:
        graph = build_graph(AGENT, model=ScriptedModel([]), summarizer="offline", storage=storage)
        graph.invoke({"end_session": True}, self.config, context=Context(user_id=self.id))

    def told(self, storage: Storage) -> dict[str, str]:
        """Return everything that can be read back as this user, by where it was read."""
        ledger = [EVENTS.dump_json(event).decode() for event in events(storage.store, self.id)]
        own = [namespaces.user(self.id), namespaces.thread(self.id)]
        words = "alpha bravo tea cake word"
        return {
            "export": _text({**document(storage, self.id), "exported_at": ""}),
            "show": _text(read_thread(storage, self.id).as_json()),
            "ledger": _text(ledger),
            "search": _text([_values(storage, space, words) for space in own]),
            "listing": _text([_values(storage, space) for space in own]),
        }


def _values(storage: Storage, space: tuple[str, ...], query: str | None = None) -> list[dict[str, Any]]:
    return [item.value for item in storage.store.search(space, query=query, limit=99)]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def without_ids(text: str, people: Sequence[Person]) -> str:
    """Ids may be anything, also the other one's canary."""
    for person in people:
        text = text.replace(json.dumps(person.id, ensure_ascii=False), '""')
    return text


def strangers_words(people: Sequence[Person]) -> Iterator[str]:
    """Let everybody talk in one database, and name each place where somebody else's canary is, or one's own is not."""
    with TemporaryDirectory() as folder, open_storage(f"sqlite:///{folder}/a.db") as storage:
        for person in people:
            person.known(storage)
        sent = {person: " ".join(person.talk(storage)) for person in people}
        for person in people:
            person.end(storage)
        for person in people:
            told = {"prompt": sent[person], **person.told(storage)}
            for place, text in told.items():
                found = {other.canary for other in people if other.canary in without_ids(text, people)}
                if found != ({person.canary} if place != "ledger" else set()):
                    yield f"{place} of {person.id!r:.40} has {sorted(found)}"


def test_a_canary_of_one_user_never_reaches_another_in_a_crowd_of_hostile_ids(attack_row: AttackRow) -> None:
    ids = random.Random(16).sample(NAMED, min(len(NAMED), tries(12)))
    crowd = [Person(named, f"canary{number}x") for number, named in enumerate(ids)]

    leaks = list(strangers_words(crowd))

    attack_row("a hostile id: words of another user", len(ids), len(leaks))
    assert leaks == []


def test_recall_over_ones_own_threads_never_brings_a_word_of_another_user(attack_row: AttackRow) -> None:
    ids = list(dict.fromkeys([*NEAR_ADA, *random.Random(18).sample(NAMED, min(len(NAMED), tries(8)))]))
    crowd = [Person(named, f"canary{number}x") for number, named in enumerate(ids)]
    leaks = []
    with TemporaryDirectory() as folder, open_storage(f"sqlite:///{folder}/a.db") as storage:
        for person in crowd:
            person.say_in(storage, f"first of {person.canary}", f"Pass on my word {person.canary}.")
        for person in crowd[::4]:
            erase(storage, thread_id=f"first of {person.canary}")
        for number, person in enumerate(crowd):
            sent = person.say_in(storage, f"second of {person.canary}", "Which word did I pass on?", looks=True)
            words = {other.canary for other in crowd if re.search(rf"my word {other.canary}\b", sent)}
            if words != ({person.canary} if number % 4 else set()):
                leaks.append(f"{person.id!r:.40} was shown {sorted(words)}")
    attack_row("a hostile id: words of another user across threads", len(ids), len(leaks))

    assert leaks == []


def test_erasing_one_of_a_crowd_of_hostile_ids_takes_nothing_of_the_others(attack_row: AttackRow) -> None:
    ids = random.Random(17).sample(NAMED, min(len(NAMED), tries(8)))
    crowd = [Person(named, f"canary{number}x") for number, named in enumerate(ids)]
    wrong = []
    with TemporaryDirectory() as folder, open_storage(f"sqlite:///{folder}/a.db") as storage:
        for person in crowd:
            person.known(storage)
            person.talk(storage)
        before = {person: person.told(storage) for person in crowd}
        erased = crowd[::3]
        for person in erased:
            wrong += [] if erase(storage, user_id=person.id).is_verified else [f"{person.id!r:.40} is not verified"]
            wrong += (
                [f"{person.id!r:.40} is there"]
                if person.canary in Path(folder, "a.db").read_bytes().decode(errors="replace")
                else []
            )
        for person in crowd:
            if person not in erased and person.told(storage) != before[person]:
                wrong.append(f"{person.id!r:.40} has lost something")
        # Whatever an id looks like, no file is named by it.
        files = sorted(file.name for file in Path(folder).rglob("*"))
        wrong += [] if files == ["a.db", "a.db-locks", "a.db-shm", "a.db-wal"] else [f"there are {files}"]
    attack_row("a hostile id: erased, and the others' kept", len(ids), len(wrong))

    assert wrong == []


@pytest.mark.parametrize("kind", ["user", "thread"])
@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_an_id_that_no_store_can_hold_starts_nothing(kind: str, api: str, attack_row: AttackRow) -> None:
    assert len(NAMED) + len(REFUSED) >= 58
    started = []
    for bad in REFUSED:
        with open_storage("sqlite://") as storage:
            model = ScriptedModel(["Hello."])
            graph = build_graph(AGENT, model=model, storage=storage)
            given: Any = {
                "input": {"messages": "Hi."},
                "config": {"configurable": {"thread_id": bad if kind == "thread" else "t"}},
                "context": {"user_id": bad if kind == "user" else "u"},
            }
            try:
                await graph.ainvoke(**given) if api == "ainvoke" else graph.invoke(**given)
                started.append(bad)
            except SettingsError:
                started += [bad] if storage.store.search((), limit=9) or model.prompts else []
    attack_row("a hostile id: refused", len(REFUSED), len(started))

    assert started == []


@settings(max_examples=5)
@given(PAIRS)
def test_a_canary_of_one_user_never_reaches_another_of_any_two_ids(pair: tuple[str, str]) -> None:
    assert list(strangers_words([Person(pair[0], "canary1x"), Person(pair[1], "canary2x")])) == []


@settings(max_examples=30)
@given(PAIRS)
def test_no_search_of_the_store_leaves_its_namespace(pair: tuple[str, str]) -> None:
    spaces = [space(owner) for owner in pair for space in SPACES]
    with open_storage("sqlite://") as storage:
        for number, space in enumerate(spaces):
            storage.store.put(space, "key", {"text": f"common word{number}"}, index=["text"])
        for number, space in enumerate(spaces):
            for query in (None, "common"):
                found = storage.store.search(space, query=query, limit=99)
                assert [item.value["text"] for item in found] == [f"common word{number}"]


def test_a_query_with_the_syntax_of_a_search_engine_is_only_words() -> None:
    queries = ['"', "common OR 1=1", "text:*", "NEAR(a b)", "a* ^b -c", "'; DROP TABLE store; --", "common_1", "%", "("]
    with open_storage("sqlite://") as storage:
        storage.store.put(namespaces.notes("1"), "mine", {"text": "common ground"}, index=None)
        storage.store.put(namespaces.notes("10"), "theirs", {"text": "common sense drop table near"}, index=None)
        found = [item.key for query in queries for item in storage.store.search(namespaces.notes("1"), query=query)]

    assert set(found) <= {"mine"}


@pytest.mark.parametrize("bad", ["", None, 7, "a\x00b", "a\ud800b"])
def test_a_user_id_that_no_store_can_hold_is_refused(bad: Any) -> None:
    with pytest.raises(SettingsError, match="user_id"):
        Context(user_id=bad)


def test_a_thread_is_not_read_by_another_user_who_names_it() -> None:
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["Hello.", "Leak."]), storage=storage)
        graph.invoke({"messages": "Hi."}, {"configurable": {"thread_id": "t"}}, context=Context(user_id="é"))

        with pytest.raises(SettingsError, match="another user"):
            graph.invoke({"messages": "Hi."}, {"configurable": {"thread_id": "t"}}, context=Context(user_id="e\u0301"))
