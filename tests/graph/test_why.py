"""`why`: a planted fact in each of its states, told from recorded ids."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.cli import main
from everthread.forks import fork
from everthread.graph.note_changes import change_note
from everthread.ledger.lineage import ThreadHistory
from everthread.ledger.why import Explanation, explain
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, Note, namespaces
from everthread.storage.erasure import erase
from everthread.storage.history import thread_history
from everthread.storage.open import Storage
from everthread.storage.reader import Reader
from everthread.storage.reading import read_thread, reader_of
from everthread.storage.thread_source import ThreadSource
from everthread.tools.save_memory_note import save_memory_note
from everthread.window.masking import handle_of

FILLER = "word " * 300


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of the table" for number in range(n))


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note, look])


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def talk(storage: Storage, *turns: tuple[str, Any], thread: str = "t", **dials: Any) -> None:
    """Run turns: the user's text and the model's replies to it."""
    replies = [reply for _, told in turns for reply in (told if isinstance(told, list) else [told])]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer="offline", storage=storage)
    for text, _ in turns:
        graph.invoke({"messages": text}, {"configurable": {"thread_id": thread}}, context=Context(**dials))


def end(storage: Storage, thread: str = "t") -> None:
    graph = build_graph(AGENT, model=ScriptedModel([]), summarizer="offline", storage=storage)
    graph.invoke({"end_session": True}, {"configurable": {"thread_id": thread}}, context=Context())


def saves(text: str, call_id: str = "c", scope: str = "durable") -> list[AIMessage]:
    wanted = call("save_memory_note", call_id, text=text, keywords=["planted"], scope=scope)
    return [AIMessage("", tool_calls=[wanted]), AIMessage("Noted.")]


def why(storage: Storage, asked: str, thread: str = "t") -> list[Explanation]:
    return explain(_history(storage, thread), asked)


def _history(storage: Storage, thread: str) -> ThreadHistory:
    return thread_history(reader_of(storage), read_thread(storage, thread, whole=False))


def fact(accounts: list[Explanation], state: str) -> str:
    told = [found.text for account in accounts for found in account.facts if found.state == state]
    assert told, f"nothing says {state}: {[found.state for account in accounts for found in account.facts]}"
    return told[0]


def states(account: Explanation) -> set[str]:
    return {found.state for found in account.facts}


def test_what_is_in_the_prompt_is_there_with_its_category(storage: Storage) -> None:
    talk(storage, ("My locker code is 4711.", "Fine."))

    (account,) = why(storage, "locker code")

    assert fact([account], "in_prompt") == "It is in the prompt word for word, in the category `history`."


@pytest.mark.parametrize("asked", ["vegetarian", "Is vegetarian"])
def test_what_the_user_said_comes_ahead_of_its_echoes(storage: Storage, asked: str) -> None:
    talk(storage, ("Hello.", "Are you vegetarian?"), ("I am vegetarian.", saves("Is vegetarian.")))

    told = why(storage, asked)

    assert told[0].title == "user: I am vegetarian."
    assert why(storage, next(one.id for one in told if one.kind == "note"))[0].kind == "note"


def test_what_was_evicted_names_the_turn_and_the_policy(storage: Storage) -> None:
    turns = [("hello", "Hi."), ("My locker code is 4711.", "Fine."), ("third", "c")]
    talk(storage, *turns, policy="sliding_window", keep_last_turns=1)

    told = why(storage, "my locker code")[0]

    assert "It was evicted in turn 3: policy `sliding_window`" in fact([told], "evicted")
    assert "in_prompt" not in states(told)


def test_what_is_in_the_summary_is_quoted_from_there(storage: Storage) -> None:
    talk(storage, ("My locker code is 4711.", "I wrote down code 4711."), *[(FILLER, FILLER)] * 4, window=4_000)

    accounts = why(storage, "I wrote down code")

    assert "4711" in fact([accounts[0]], "in_summary")
    assert any(account.kind == "entry" and account.has("in_prompt") for account in accounts)


def test_what_was_compacted_is_called_so(storage: Storage) -> None:
    talk(storage, ("Hello.", "Hi."), ("My locker code is 4711.", "Noted."), *[(FILLER, FILLER)] * 4, window=4_000)

    assert "It was compacted in turn" in fact(why(storage, "My locker code"), "compacted")


def test_what_is_masked_names_its_handle(storage: Storage) -> None:
    talk(storage, ("table", [AIMessage("", tool_calls=[call("look", "c", n=400)]), "done"]), tool_output_tokens=100)
    result = next(m for m in read_thread(storage, "t").messages if m.type == "tool")

    told = why(storage, "row 200 of the table")

    assert f"with handle {handle_of(str(result.id))}, since turn 1" in fact(told, "masked")
    assert why(storage, handle_of(str(result.id)))[0].id == result.id


def test_what_was_recalled_names_the_turn(storage: Storage) -> None:
    turns = [("hello", "Hi."), ("My locker code is 4711.", "Fine."), ("third", "c"), ("What was my locker code?", "d")]
    talk(storage, *turns, policy="sliding_window", keep_last_turns=1)

    told = why(storage, "My locker code is 4711")

    assert "It was recalled in turn 4; the newest prompt has it" in fact(told, "recalled")


def test_what_was_merged_names_the_note_that_it_became_part_of(storage: Storage) -> None:
    talk(storage, ("aisle seats please", saves("Prefers aisle seats.", "a")))
    end(storage)
    talk(storage, ("aisle seats again", saves("Prefers aisle seats.", "b")))
    end(storage)

    told = why(storage, "aisle seats please")

    assert "“Prefers aisle seats.”" in fact(told, "merged")
    assert any(account.kind == "note" and account.has("confirmed") for account in told)


def test_what_was_superseded_names_what_took_its_place(storage: Storage) -> None:
    talk(storage, ("aisle seats please", saves("Prefers aisle seats.", "a")))
    end(storage)
    (old,) = _history(storage, "t").notes.values()
    change_note(storage, "local", "edit", old.id, "Prefers window seats.")

    told = why(storage, "Prefers aisle seats.")

    assert "It was superseded by n-" in fact(told, "superseded")
    assert "“Prefers window seats.”" in fact(told, "superseded")


def test_what_expired_is_found_through_the_message_that_said_it(storage: Storage) -> None:
    talk(storage, ("a quiet room please", saves("Prefers quiet rooms.")))
    end(storage)
    (note,) = _history(storage, "t").notes.values()
    old = note.model_copy(update={"expires_at": "2020-01-01"})
    storage.store.put(namespaces.notes("local"), note.id, old.value())
    talk(storage, ("aisle seats please", saves("Prefers aisle seats.", "b")))
    end(storage)

    assert "It expired and was deleted, in turn 2" in fact(why(storage, "a quiet room"), "expired")


def test_what_was_blocked_says_why(storage: Storage) -> None:
    talk(storage, ("Remember my card 4111 1111 1111 1111", saves("Card number is 4111 1111 1111 1111.")))

    told = fact(why(storage, "Remember my card"), "blocked")

    assert told.startswith("A note from it was blocked in turn 1 because it looks like")
    assert "4111" not in told


def test_what_was_erased_is_told_to_the_threads_that_had_it(storage: Storage) -> None:
    talk(storage, ("aisle seats please", saves("Prefers aisle seats.")), thread="gone")
    end(storage, "gone")
    talk(storage, ("hello", "Hi."))
    (note,) = _history(storage, "t").notes
    erase(storage, thread_id="gone")

    (account,) = why(storage, note)

    assert "It was erased on 2" in fact([account], "erased")
    assert account.title == ""


def test_what_was_only_for_the_session_says_why_it_was_dropped(storage: Storage) -> None:
    talk(storage, ("a window seat this time", saves("Wants a window seat this time.", scope="session")))
    end(storage)

    assert "It was dropped at the end of the session" in fact(why(storage, "a window seat this time"), "dropped")


def test_an_injected_note_is_in_the_prompt_and_comes_from_its_message(storage: Storage) -> None:
    talk(storage, ("aisle seats please", saves("Prefers aisle seats.")))
    end(storage)
    talk(storage, ("hello", "Hi."))

    account = next(account for account in why(storage, "aisle seats please") if account.kind == "note")

    assert "in the category `notes`" in fact([account], "in_prompt")
    assert [thing.kind for thing in account.comes_from] == ["message"]


def test_a_retracted_note_flags_what_rests_on_the_same_message(storage: Storage) -> None:
    talk(storage, ("aisle and quiet please", saves("Prefers aisle seats.", "a")[:1] + saves("Prefers quiet.", "b")))
    first, second = _history(storage, "t").session_notes.values()
    change_note(storage, "local", "retract", first.id)

    assert f"to be looked at: {second.id}" in fact(why(storage, first.id), "changed")


def test_the_next_injection_after_a_correction_is_resolved_anew(storage: Storage) -> None:
    talk(storage, ("aisle seats please", saves("Prefers aisle seats.")))
    end(storage)
    talk(storage, ("hello", "Hi."))
    (note,) = _history(storage, "t").notes.values()
    change_note(storage, "local", "retract", note.id)
    talk(storage, ("again", "Hi."))

    last = _history(storage, "t").last_injection
    assert last is not None
    assert last.changed
    assert note.id not in last.note_ids
    assert "It was retracted on" in fact(why(storage, note.id), "retracted")


def test_without_an_event_it_says_that_it_does_not_know(storage: Storage) -> None:
    turns = [("hello", "Hi."), ("My locker code is 4711.", "Fine."), ("third", "c")]
    talk(storage, *turns, policy="sliding_window", keep_last_turns=1)
    for item in storage.store.search(namespaces.ledger("t"), limit=99):
        storage.store.delete(namespaces.ledger("t"), item.key)

    assert "when and why it left is not recorded any more" in fact(why(storage, "My locker code"), "evicted")


def test_an_id_may_be_cut_short(storage: Storage) -> None:
    graph = build_graph(AGENT, model=ScriptedModel(["Fine."]), storage=storage)
    graph.invoke({"messages": [HumanMessage("hi", id="message-77")]}, {"configurable": {"thread_id": "t"}})

    assert why(storage, "message-7")[0].id == "message-77"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return main(arguments), *capsys.readouterr()


def test_the_command_prints_one_json_document(storage: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    talk(storage, ("My locker code is 4711.", "Fine."))

    _, out, _ = run(capsys, "why", "locker code", "--thread", "t", "--json", "--database", storage.url)

    told = json.loads(out)
    assert told["accounts"][0]["facts"][1]["state"] == "in_prompt"


def test_a_text_that_nobody_said_is_an_error(storage: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    talk(storage, ("My locker code is 4711.", "Fine."))

    code, _, err = run(capsys, "why", "a yacht", "--thread", "t", "--database", storage.url)

    assert code != 0
    assert "nothing in thread 't' or in its user's notes has 'a yacht'" in err


def test_a_note_that_a_question_brought_is_told_apart_from_the_block(storage: Storage) -> None:
    for number in range(40):
        note = Note(id=f"n{number}", text=f"Prefers the window seat on trip {number} to Oslo", date="2026-03-02")
        storage.store.put(namespaces.notes("local"), note.id, note.value())
    old = Note(id="old", text="Likes jazz clubs " + "where somebody plays the bass " * 3, date="2025-01-01")
    storage.store.put(namespaces.notes("local"), old.id, old.value())
    talk(storage, ("Any jazz clubs tonight?", "Two."), notes_tokens=300)

    assert "ahead of the question that brought it" in fact(why(storage, "old"), "in_prompt")

    talk(storage, ("hello", "Hi."), notes_tokens=300)

    assert "not in this thread's newest prompt" in fact(why(storage, "old"), "not_in_prompt")


def test_turns_are_counted_on_the_branch_that_a_fork_began(storage: Storage) -> None:
    turns = (("What is first?", "One."), ("The boat is red.", "Two."), ("And then?", "Three."))
    talk(storage, *turns, policy="sliding_window", keep_last_turns=1)
    graph = build_graph(AGENT, model=ScriptedModel(["Two, otherwise."]), summarizer="offline", storage=storage)
    fork(graph, "t", 1)

    graph.invoke({"messages": "The boat is green."}, {"configurable": {"thread_id": "t"}}, context=Context())

    history = thread_history(reader_of(storage), read_thread(storage, "t", whole=False))
    said = [explain(history, text)[0].facts[0] for text in ("What is first?", "boat is green", "boat is red")]
    assert [fact.text for fact in said] == [
        "It was said in turn 1 of 2.",
        "It was said in turn 2 of 2.",
        "It was said on a branch that the thread has left.",
    ]


def test_a_branch_is_followed_without_a_read_for_each_message(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [(f"Question {number}?", f"Answer {number}.") for number in range(5)]
    talk(storage, *turns[:2], policy="sliding_window", keep_last_turns=1)
    fork(build_graph(AGENT, model="offline", storage=storage), "t", 1)
    talk(storage, *turns[2:], policy="sliding_window", keep_last_turns=1)
    messages = ThreadSource(reader_of(storage), read_thread(storage, "t", whole=False))
    said = messages.saying("Question 3", 1)[0]

    monkeypatch.setattr(Reader, "get", lambda *place: pytest.fail(f"{place} was read"))

    assert messages.turn(said) == 3
