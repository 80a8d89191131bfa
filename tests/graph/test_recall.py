"""Automatic recall and its tool, in the graph, with a scripted model and a real database."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.store.base import SearchOp
from langgraph.types import Command, interrupt

from conversation import call
from everthread import Context, build_graph
from everthread.ledger import events
from everthread.ledger.lineage import is_about
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, Note, namespaces
from everthread.state.marks import marked, marks
from everthread.storage import recall
from everthread.storage.open import Storage
from everthread.storage.transcript import append_operations, transcript
from sql import is_sqlite

CONFIG: Any = {"configurable": {"thread_id": "t"}}
CITIES = ["Aarhus", "Bergen", "Ghent", "Graz", "Leipzig", "Lyon", "Porto", "Seville", "Split", "Turin"]
FILLER = "We spoke of the weather for a while. " + "The weather. " * 150
DIALS: dict[str, Any] = {"window": 2400, "max_output_tokens": 100, "policy": "token_budget", "recall_tokens": 300}


@tool
def approve(what: str) -> str:
    """Ask the user."""
    return f"approved: {interrupt({'what': what})}"


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[approve])


def graph_of(storage: Storage, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return build_graph(AGENT, model=model, storage=storage), model


def ask(graph: Any, text: str, config: Any = CONFIG, **dials: Any) -> None:
    graph.invoke({"messages": text}, config, context=Context(**{**DIALS, **dials}))


def long_thread(storage: Storage, *more: Any) -> tuple[Any, ScriptedModel]:
    """Return a graph whose thread has evicted that the locker code is 4711."""
    graph, model = graph_of(storage, "Hello.", "Noted.", *["Yes."] * 4, *more)
    for text in ("Hi!", "My locker code is 4711.", *[FILLER] * 4):
        ask(graph, text)
    return graph, model


def blocks(model: ScriptedModel) -> list[str]:
    """Return the recalled block of the last prompt, if there is one."""
    return [message.text for message in model.prompts[-1] if marks(message).get("kind") == "recalled"]


def test_an_evicted_message_comes_back_just_before_the_question_that_needs_it(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.")

    ask(graph, "What was my locker code?")

    assert marks(model.prompts[-1][-2])["kind"] == "recalled"
    assert "user: My locker code is 4711." in model.prompts[-1][-2].text
    assert model.prompts[-1][-1].text == "What was my locker code?"


def test_an_event_names_the_messages_and_the_tokens(storage: Storage) -> None:
    graph, _ = long_thread(storage, "4711.")

    ask(graph, "What was my locker code?")

    event = next(event for event in reversed(events(storage.store, "t")) if event.event == "recalled")
    found = [item for item in storage.store.search(namespaces.transcript("t"), limit=99) if is_about(event, item.key)]
    texts = [item.value["message"]["data"]["content"] for item in found]
    assert "My locker code is 4711." in texts
    assert len(event.scores) == len(texts)
    assembled = next(event for event in reversed(events(storage.store, "t")) if event.event == "prompt_assembled")
    assert assembled.breakdown["recalled"] == event.tokens <= DIALS["recall_tokens"]


def test_nothing_that_is_in_the_prompt_is_recalled(storage: Storage) -> None:
    graph, _ = long_thread(storage, "4711.")

    ask(graph, "Which locker code, and what of the weather?")

    kept = {message.id for message in graph.get_state(CONFIG).values["messages"]}
    last = next(event for event in reversed(events(storage.store, "t")) if event.event == "recalled")
    assert not kept.intersection(last.message_ids)


def searches(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> list[SearchOp]:
    """Return a list of the searches by words that the store is asked for from now on."""
    searched: list[SearchOp] = []
    batch = storage.store.batch

    def spy(ops: Any) -> Any:
        ops = list(ops)
        searched.extend(op for op in ops if isinstance(op, SearchOp) and op.query)
        return batch(ops)

    monkeypatch.setattr(storage.store, "batch", spy)
    return searched


def test_a_thread_that_fits_is_never_searched(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = searches(storage, monkeypatch)
    graph, _ = graph_of(storage, "Noted.", "4711.")
    ask(graph, "My locker code is 4711.")
    ask(graph, "What was my locker code?")

    assert searched == []


def test_zero_tokens_recall_nothing(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.")

    ask(graph, "What was my locker code?", recall_tokens=0)

    assert blocks(model) == []


def test_words_without_a_subject_recall_nothing(storage: Storage) -> None:
    graph, model = long_thread(storage, "Welcome.")

    ask(graph, "Thank you!")

    assert blocks(model) == []


def test_a_message_about_what_the_prompt_shows_recalls_nothing(storage: Storage) -> None:
    graph, model = long_thread(storage, "Yes.")

    ask(graph, "We keep speaking of the weather.")

    assert blocks(model) == []


def test_a_message_about_something_that_was_evicted_recalls_it(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.")

    ask(graph, "Open the locker.")

    assert "My locker code is 4711." in blocks(model)[0]


def test_a_message_about_something_new_recalls_nothing(storage: Storage) -> None:
    graph, model = long_thread(storage, "Fine.")

    ask(graph, "Order a pizza.")

    assert blocks(model) == []


def test_recall_does_not_move_the_head_of_the_next_prompt(storage: Storage) -> None:
    graph, _ = long_thread(storage, "4711.", "Yes.")

    ask(graph, "What was my locker code?")
    ask(graph, "Was the locker code short?")

    last = next(event for event in reversed(events(storage.store, "t")) if event.event == "prompt_assembled")
    assert last.head_moved == ""
    assert last.breakdown["recalled"] > 0


def test_what_was_recalled_stays_in_view_and_is_not_recalled_again(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.", "Yes.")

    ask(graph, "What was my locker code?")
    ask(graph, "Was the locker code short?")

    assert [block.count("My locker code is 4711.") for block in blocks(model)] == [1]
    assert model.prompts[-1][: len(model.prompts[-2])] == model.prompts[-2]


def test_what_was_recalled_leaves_with_the_next_eviction(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.", *["Yes."] * 3)
    ask(graph, "What was my locker code?")

    for text in [FILLER] * 3:
        ask(graph, text)

    assert blocks(model) == []
    texts = [message.text for message in transcript(storage.store, "t", graph.get_state(CONFIG).values["messages"])]
    assert not any("<recalled>" in text for text in texts)


def test_what_was_recalled_leaves_with_the_next_compaction(storage: Storage) -> None:
    _, model = long_thread(storage, "4711.", "Yes.")
    graph = build_graph(AGENT, model=model, summarizer="offline", storage=storage)
    ask(graph, "What was my locker code?", policy="summarize", context_limit=2, keep_last_turns=1)

    ask(graph, "Thank you!", policy="summarize", recall_tokens=0)

    assert blocks(model) == []


def test_a_day_on_which_nothing_was_said_recalls_nothing(storage: Storage) -> None:
    graph, model = long_thread(storage, "None.")

    ask(graph, "Which trip starts on 2001-02-03?")

    assert blocks(model) == []


def test_a_recalled_note_that_was_corrected_leaves_the_prompt(storage: Storage) -> None:
    graph, model = graph_of(storage, *["Yes."] * 3)
    dials: dict[str, Any] = {"window": 8_000, "notes_tokens": 100}
    notes = [
        Note(id=f"n{number}", text=f"Likes the city {name}.", date="2026-01-01") for number, name in enumerate(CITIES)
    ]
    for note in notes:
        storage.store.put(namespaces.notes("local"), note.id, note.value())
    ask(graph, "Tell me about the zoo of Turin.", **dials)
    shown = blocks(model)
    ask(graph, "And its harbour?", **dials)
    assert blocks(model) == shown

    storage.store.delete(namespaces.notes("local"), "n9")
    ask(graph, "And its museum?", **dials)

    assert "Turin" in shown[0]
    assert blocks(model) == []


def test_a_fork_never_recalls_what_the_left_branch_said(storage: Storage) -> None:
    graph, model = graph_of(storage, "Hello.", "Noted.", *["Yes."] * 4, "Noted.", *["Yes."] * 4, "Unknown.", "4711.")
    ask(graph, "Hi!")
    fork = graph.get_state(CONFIG).config
    for text in ("My locker code is 4711.", *[FILLER] * 4):
        ask(graph, text)
    left = graph.get_state(CONFIG).config

    ask(graph, "My locker is blue.", fork)
    for text in [FILLER] * 4:
        ask(graph, text)
    ask(graph, "Tell me the code of my locker.")

    assert "My locker is blue." in blocks(model)[0]
    assert "4711" not in blocks(model)[0]
    ask(graph, "Tell me the code of my locker.", left)
    assert "4711" in blocks(model)[0]
    assert "blue" not in blocks(model)[0]


def test_a_fork_recalls_what_left_it_however_much_its_prompt_holds(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "_LONGEST_WALK", 8)
    graph, model = graph_of(storage, *["Yes."] * 9)
    ask(graph, "Hi!")
    fork = graph.get_state(CONFIG).config
    ask(graph, "It rains.")
    dials: dict[str, Any] = {"window": 9_000, "policy": "sliding_window", "keep_last_turns": 5}

    ask(graph, "My locker is blue.", fork, **dials)
    for text in [*["It snows."] * 5, "What colour is my locker?"]:
        ask(graph, text, **dials)

    assert "My locker is blue." in blocks(model)[0]


def test_a_run_that_resumes_recalls_the_same(storage: Storage) -> None:
    graph, model = long_thread(storage, AIMessage("", tool_calls=[call("approve", "c1", what="opening")]), "Done.")
    ask(graph, "Open it with my locker code.")
    before = blocks(model)

    graph.invoke(Command(resume="yes"), CONFIG, context=Context(**DIALS))

    assert before == blocks(model) != []


def test_recall_gives_way_when_the_turn_needs_the_room(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.")

    ask(graph, "What was my locker code? " + "The hall is full of lockers. " * 228)

    assert len(model.prompts) == 7
    assert blocks(model) == []


def search(storage: Storage, **arguments: Any) -> str:
    wanted = AIMessage("", tool_calls=[call("recall_history", "c1", **arguments)])
    graph, model = long_thread(storage, wanted, "Done.")
    ask(graph, "Please look it up.", recall_tokens=0)
    return model.prompts[-1][-1].text


def test_the_tool_finds_evicted_messages_with_day_speaker_and_id(storage: Storage) -> None:
    told = search(storage, query="locker code")

    archived = next(item for item in storage.store.search(namespaces.transcript("t"), query="4711"))
    assert f"[{archived.key}] user: My locker code is 4711." in told
    assert f"{archived.value['date'][:10]}\n" in told


def test_the_tool_keeps_to_the_days_it_is_given(storage: Storage) -> None:
    assert "Nothing was found" in search(storage, query="locker code", before="2020-01-01")


def test_the_tool_says_what_a_day_looks_like(storage: Storage) -> None:
    assert "`after` must be a day such as 2025-03-04, got 'spring'" in search(storage, query="code", after="spring")


def test_the_tool_is_bound_once_something_was_evicted(storage: Storage) -> None:
    graph, model = long_thread(storage, "4711.")

    ask(graph, "What was my locker code?")

    names = [[each["function"]["name"] for each in tools] for tools in model.tools]
    assert "recall_history" not in names[0]
    assert "recall_history" in names[-1]


def test_a_day_on_which_nothing_was_said_costs_few_reads(storage: Storage) -> None:
    if not is_sqlite(storage.database):
        pytest.skip("statements are traced on SQLite")
    graph = build_graph(AGENT, model=ScriptedModel(["fine"] * 6), summarizer="offline", storage=storage)
    dials = Context(context_limit=2, keep_last_turns=1)
    for number in range(5):
        graph.invoke({"messages": f"order {number}"}, CONFIG, context=dials)
    said = [marked(HumanMessage(f"order number {number}", id=f"o{number}"), seq=0) for number in range(3_000)]
    storage.store.batch(append_operations("t", "local", said, why="evicted", at="2024-05-01T10:00:00+00:00"))
    statements: list[str] = []
    storage.database.connection.set_trace_callback(statements.append)

    graph.invoke({"messages": "And the order of 5 January 2019?"}, CONFIG, context=dials)

    assert len([one for one in statements if "JOIN store s" in one]) < 10


def test_nothing_is_searched_for_a_day_to_come(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = long_thread(storage, "4711.")
    searched = searches(storage, monkeypatch)

    ask(graph, "And on 2019-05-04, and on 2199-05-04?")

    assert [op.query for op in searched if op.filter] == ["2019-05-04"]
