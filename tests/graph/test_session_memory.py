"""Notes and sessions, from end to end."""

import asyncio
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from conversation import call
from everthread import Context
from everthread.errors import SettingsError
from everthread.ledger import events
from everthread.state import Note, namespaces
from everthread.storage.open import Storage
from small_agent import CONFIG, ask, calls, graph_of, names


def test_a_note_is_saved_kept_after_the_session_and_known_in_the_next(storage: Storage) -> None:
    saved = calls(
        call("save_memory_note", "c", text="Is vegetarian", keywords=["Food"]),
        call("save_memory_note", "d", text="Wants a window seat", keywords=["seat"], scope="session"),
    )
    graph, model = graph_of(storage, saved, "noted", "you are vegetarian")
    ask(graph, "I am vegetarian; this time a window seat")
    ask(graph, None)

    other: Any = {"configurable": {"thread_id": "t2"}}
    graph.invoke({"messages": "what do you know?"}, other)

    system = model.prompts[2][0].text
    assert "Is vegetarian. [food]" in system
    assert "window seat" not in system.split("</memory_policy>")[1]
    assert storage.store.search(namespaces.session_notes("t")) == []


def test_the_session_can_end_with_its_last_message(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("save_memory_note", "c", text="Likes tea", keywords=[])), "noted")

    result = graph.invoke({"messages": "I like tea", "end_session": True}, CONFIG)

    assert result["messages"][-1].text == "noted"
    assert [item.value["text"] for item in storage.store.search(namespaces.notes("local"))] == ["Likes tea."]
    assert graph.get_state(CONFIG).values["end_session"] is False


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_end_of_a_session_leaves_an_approval_waiting(storage: Storage, asynchronous: bool) -> None:
    saved = calls(call("save_memory_note", "c", text="Likes tea", keywords=[]))
    graph, _ = graph_of(storage, saved, calls(call("approve", "d", what="tea")), "ordered")
    ask(graph, "I like tea; order some")
    (asked,) = graph.get_state(CONFIG).interrupts

    work: Any = graph.ainvoke if asynchronous else partial(asyncio.to_thread, graph.invoke)
    await work({"end_session": True}, CONFIG)

    assert [item.value["text"] for item in storage.store.search(namespaces.notes("local"))] == ["Likes tea."]
    assert graph.get_state(CONFIG).interrupts == (asked,)
    assert (await work(Command(resume="yes"), CONFIG))["messages"][-1].text == "ordered"


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("dials", "lasting", "waiting"),
    [
        ({"distillation": ("tool", "session")}, ["Avoids tea.", "Likes cake."], []),
        ({"guard": "model"}, [], ["Likes cake."]),
    ],
)
async def test_a_session_that_ends_beside_an_approval_ends_by_its_dials(
    storage: Storage, dials: Any, lasting: list[str], waiting: list[str], asynchronous: bool
) -> None:
    saved = calls(call("save_memory_note", "c", text="Likes cake", keywords=[]))
    graph, _ = graph_of(storage, saved, calls(call("approve", "d", what="cake")), summarizer="offline")
    ask(graph, "I like cake. I avoid tea. Order something.")

    work: Any = graph.ainvoke if asynchronous else partial(asyncio.to_thread, graph.invoke)
    await work({"end_session": True}, CONFIG, context=Context(**dials))

    long_term, session = namespaces.notes("local"), namespaces.session_notes("t")
    found = (sorted(item.value["text"] for item in storage.store.search(space)) for space in (long_term, session))
    assert [*found] == [lasting, waiting]


def test_the_guard_keeps_a_sensitive_note_out_of_store_and_ledger(storage: Storage) -> None:
    graph, model = graph_of(
        storage, calls(call("save_memory_note", "c", text="Her SSN is 078-05-1120", keywords=[])), "sorry"
    )

    ask(graph, "remember it")

    assert "never kept as a note" in model.prompts[1][-1].text
    assert "note_blocked" in names(storage)
    assert "078-05" not in str([event.model_dump() for event in events(storage.store, "t")])


def test_a_session_note_whose_source_is_in_view_is_not_repeated(storage: Storage) -> None:
    note = calls(call("save_memory_note", "c", text="Wants a window seat", keywords=[], scope="session"))
    graph, model = graph_of(storage, note, "noted", "b", "c")
    for text in ("this time a window seat", "3", "4"):
        ask(graph, text, context_limit=2, keep_last_turns=1)

    # The source is the anchor, which never leaves.
    assert not any("## Session notes" in message.text for message in model.prompts[-1])


def test_a_session_note_of_a_folded_turn_is_back_in_the_prompt(storage: Storage) -> None:
    note = calls(call("save_memory_note", "c", text="Wants a window seat", keywords=[], scope="session"))
    graph, model = graph_of(storage, "a", note, "noted", "b", "c", "d")

    for text in ("hello", "this time a window seat", "3", "4", "5"):
        ask(graph, text, context_limit=2, keep_last_turns=1)

    assert any("## Session notes" in message.text for message in model.prompts[-1])
    assert not any("## Session notes" in message.text for message in model.prompts[2])


def test_a_correction_on_another_thread_is_effective_at_once(storage: Storage) -> None:
    graph, model = graph_of(storage, "a", "b")
    ask(graph, "1")
    storage.store.put(namespaces.profile("local"), "profile", {"name": "Ada"})

    ask(graph, "2")

    assert "name: Ada" in model.prompts[1][0].text


def test_a_question_brings_a_note_that_did_not_fit_the_block(storage: Storage) -> None:
    told = [
        "Likes jazz clubs where somebody plays the bass and nobody talks loudly over the music",
        *(f"Prefers the window seat on trip {number} to Oslo" for number in range(40)),
    ]
    for day, text in enumerate(told):
        note = Note(id=f"n{day}", text=text, keywords=(), date=f"2026-03-{day % 28 + 1:02d}" if day else "2025-01-01")
        storage.store.put(namespaces.notes("local"), note.id, note.value())
    graph, model = graph_of(storage, "a", "b")

    ask(graph, "Hello.", notes_tokens=300)
    ask(graph, "Any jazz clubs tonight?", notes_tokens=300)

    assert "Likes jazz clubs" not in "".join(message.text for message in model.prompts[0])
    head, *_, brought, question = model.prompts[1]
    assert head.text == model.prompts[0][0].text
    assert "Likes jazz clubs" in brought.text
    assert question.text == "Any jazz clubs tonight?"


def test_one_unreadable_note_does_not_cost_the_user_a_turn(storage: Storage) -> None:
    storage.store.put(namespaces.notes("local"), "broken", {"text": "no other field"})
    graph, _ = graph_of(storage, "hello")

    assert ask(graph, "hi")["messages"][-1].text == "hello"


def test_users_do_not_share_notes(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("save_memory_note", "c", text="Likes tea", keywords=[])), "ok", "no")
    graph.invoke({"messages": "tea", "end_session": True}, CONFIG, context=Context(user_id="1"))

    graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": "x"}}, context=Context(user_id="10"))

    assert "tea" not in model.prompts[2][0].text


@pytest.mark.parametrize("given", [{"messages": "what do you know?"}, {"end_session": True}])
def test_a_thread_refuses_another_user(storage: Storage, given: dict[str, Any]) -> None:
    note = calls(call("save_memory_note", "c", text="Likes jazz", keywords=[]))
    graph, _ = graph_of(storage, note, "noted")
    ask(graph, "I like jazz", user_id="ann")

    with pytest.raises(SettingsError, match="belongs to another user"):
        graph.invoke(given, CONFIG, context=Context(user_id="eve"))

    assert storage.store.search(namespaces.notes("eve")) == []


def test_a_fork_from_before_the_end_of_a_session_opens_it_again(storage: Storage) -> None:
    graph, _ = graph_of(storage, "a", "b", "c")
    ask(graph, "1")
    first = graph.get_state(CONFIG).config
    ask(graph, "2")
    ask(graph, None)

    graph.invoke({"messages": "other"}, first)

    session = storage.store.get(namespaces.SESSIONS, "t")
    assert session is not None
    assert (session.value["turns"], session.value["consolidated_turns"]) == (2, 1)


def test_a_session_that_could_not_be_consolidated_keeps_its_notes_and_stays_open(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")
    ask(graph, "hi")
    storage.store.put(namespaces.session_notes("t"), "broken", {"text": "no other field"})

    ask(graph, None)

    session = storage.store.get(namespaces.SESSIONS, "t")
    assert session is not None
    assert session.value["consolidated_turns"] == 0
    assert storage.store.get(namespaces.session_notes("t"), "broken") is not None
    assert "fallback_used" in names(storage)


def test_an_unreadable_long_term_note_does_not_stop_consolidation(storage: Storage) -> None:
    storage.store.put(namespaces.notes("local"), "broken", {"text": "no other field"})
    graph, _ = graph_of(storage, calls(call("save_memory_note", "c", text="Likes tea", keywords=[])), "ok")
    ask(graph, "I like tea")
    ask(graph, None)

    assert len(storage.store.search(namespaces.notes("local"))) == 2


def test_a_fork_does_not_see_the_notes_of_the_branch_it_left(storage: Storage) -> None:
    note = calls(call("save_memory_note", "c", text="Wants a window seat", keywords=[], scope="session"))
    graph, model = graph_of(storage, "a", note, "noted", "b", "c", "d")
    ask(graph, "hello")
    before = graph.get_state(CONFIG).config
    ask(graph, "this time a window seat")

    for text in ("other", "and", "more"):
        graph.invoke({"messages": text}, before if text == "other" else CONFIG, context=Context(pins=()))

    assert not any("window seat" in message.text for prompt in model.prompts[3:] for message in prompt)


def test_a_wish_to_end_that_died_is_not_taken_for_the_next_question(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello", "still here")
    ask(graph, "hi")
    question = {"messages": [HumanMessage("are you there?", id="q")]}
    for given in ({"end_session": True}, question, None):  # each is cut off after its next step
        list(graph.stream(given, CONFIG, interrupt_before="*"))

    result = graph.invoke(question, CONFIG)

    assert [message.text for message in result["messages"]][-2:] == ["are you there?", "still here"]
