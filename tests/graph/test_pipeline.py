"""The graph from end to end with a scripted model and a real database."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.agents.notes import save_memory_note
from everthread.errors import BudgetError, ModelError, SettingsError
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.state.marks import marks
from everthread.storage.open import Storage, aopen_storage
from everthread.storage.transcript import transcript

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of the table" for number in range(n))


@tool
def approve(what: str) -> str:
    """Ask the user."""
    return f"approved: {interrupt({'what': what})}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("the shelf is empty")


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note, look, approve, fail])


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        yield opened


def calls(*wanted: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=list(wanted))


def graph_of(storage: Storage, *replies: Any, summarizer: Any = "offline") -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return build_graph(AGENT, model=model, summarizer=summarizer, storage=storage), model


def ask(graph: Any, text: str | None, **dials: Any) -> dict[str, Any]:
    result = graph.invoke({"messages": text} if text else {"end_session": True}, CONFIG, context=Context(**dials))
    assert isinstance(result, dict)
    return result


def names(storage: Storage) -> list[str]:
    return [event.event for event in events(storage.store, "t")]


def test_a_turn_is_answered(storage: Storage) -> None:
    graph, model = graph_of(storage, "hello")

    result = ask(graph, "hi")

    assert [message.text for message in result["messages"]] == ["hi", "hello"]
    assert [message.type for message in model.prompts[0]] == ["system", "human"]


def test_a_turn_that_fits_skips_the_nodes_that_would_do_nothing(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("look", "c", n=2)), "found")

    steps = [next(iter(part)) for part in graph.stream({"messages": "hi"}, CONFIG, stream_mode="updates")]

    assert steps == ["inject_memory", "model", "tools", "model"]


def test_trim_runs_before_every_model_call_that_might_not_fit(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("look", "c", n=2)), "found")
    dials = Context(policy="sliding_window", distillation=("turn",))

    updates = graph.stream({"messages": "hi"}, CONFIG, context=dials, stream_mode="updates")
    steps = [next(iter(part)) for part in updates]

    assert steps == ["inject_memory", "trim", "model", "tools", "trim", "model", "distill_notes"]


def test_a_failing_tool_answers_its_call_with_the_error(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("fail", "c")), "sorry")

    ask(graph, "hi")

    assert "the shelf is empty" in model.prompts[1][-1].text


def test_a_call_of_an_unknown_tool_is_answered(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("fly", "c")), "sorry")

    ask(graph, "hi")

    assert isinstance(model.prompts[1][-1], ToolMessage)


def test_calls_without_ids_get_ids_of_their_own(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "", n=1), call("look", "", n=1)), "done")

    ask(graph, "hi")

    ids = [message.tool_call_id for message in model.prompts[1] if isinstance(message, ToolMessage)]
    assert len(set(ids)) == 2


def test_a_malformed_call_is_answered_with_what_is_missing(storage: Storage) -> None:
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "look", "args": "{", "id": "c", "error": "", "type": "invalid_tool_call"}]
    )
    graph, model = graph_of(storage, broken, "again")

    ask(graph, "hi")

    assert "n: Field required" in model.prompts[1][-1].text


def test_a_long_tool_result_is_offloaded_and_can_be_read_back(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "c", n=3000)), "long", calls(), "read")

    ask(graph, "hi", tool_output_tokens=200)

    masked = model.prompts[1][-1]
    handle = marks(masked)["handle"]
    assert f'read_tool_output(handle="{handle}")' in masked.text
    assert "read_tool_output" in str(model.tools[1])
    assert "read_tool_output" not in str(model.tools[0])


def test_a_handle_is_read_back_by_the_model(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("look", "c", n=3000)), "long")
    masked = ask(graph, "hi", tool_output_tokens=500)["messages"][2]
    handle = marks(masked)["handle"]
    more, model = graph_of(storage, calls(call("read_tool_output", "d", handle=handle, offset=6000)), "read")

    ask(more, "go on", tool_output_tokens=500)

    assert "row 900 of the table" in model.prompts[1][-1].text


def test_an_interrupt_pauses_and_resumes(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("approve", "c", what="Paris")), "booked")

    paused = ask(graph, "book it")
    result = graph.invoke(Command(resume="yes"), CONFIG, context=Context())

    assert paused["__interrupt__"][0].value == {"what": "Paris"}
    assert result["messages"][-2].text == "approved: yes"


def test_a_new_message_instead_of_an_approval_leaves_no_call_unanswered(storage: Storage) -> None:
    graph, model = graph_of(storage, calls(call("approve", "c", what="Paris")), "fine, no booking")
    ask(graph, "book it")

    ask(graph, "forget it")

    assert [message.type for message in model.prompts[1]] == ["system", "human", "ai", "tool", "human"]


def test_the_prompt_stays_in_the_window_however_long_the_thread(storage: Storage) -> None:
    graph, model = graph_of(storage, *[f"answer {number} " + "word " * 80 for number in range(40)])

    for number in range(40):
        ask(graph, f"question {number} " + "word " * 80, window=2_000)

    assembled = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"]
    assert max(event.tokens + event.breakdown["reply_reserve"] for event in assembled) <= 2_000
    assert all(prompt[1].text.startswith("question 0 ") for prompt in model.prompts)


def test_nothing_is_lost_by_eviction_and_compaction(storage: Storage) -> None:
    graph, _ = graph_of(storage, *[f"answer {number} " + "word " * 80 for number in range(30)])
    for number in range(30):
        result = ask(graph, f"question {number} " + "word " * 80, window=2_000)

    told = [message.text.split(" word")[0] for message in transcript(storage.store, "t", result["messages"])]

    assert told == [f"{who} {number}" for number in range(30) for who in ("question", "answer")]
    assert "compacted" in names(storage)


def test_context_limit_compacts_all_but_the_last_turns_after_the_reply(storage: Storage) -> None:
    graph, _ = graph_of(storage, *"abcde")
    for text in ("1", "2", "3", "4"):
        result = ask(graph, text, context_limit=4, keep_last_turns=2)
    assert len(result["messages"]) == 8

    result = ask(graph, "5", context_limit=4, keep_last_turns=2)

    assert [message.text for message in result["messages"]] == ["1", "4", "d", "5", "e"]
    assert result["summary"]["covers"] == 5


def test_the_summary_is_written_by_the_summarizer_and_shown_as_a_pair(storage: Storage) -> None:
    summarizer = ScriptedModel(["The user counts and the assistant spells the alphabet."])
    graph, model = graph_of(storage, *"abcd", summarizer=summarizer)
    for text in ("1", "2", "3"):
        ask(graph, text, context_limit=2, keep_last_turns=1)

    ledger = [event for event in events(storage.store, "t") if event.event == "compacted"]
    assert [event.writer for event in ledger] == ["model"]
    ask(graph, "4", context_limit=9)
    assert [message.text for message in model.prompts[3][2:4]] == [
        "Summarize the conversation so far.",
        "The user counts and the assistant spells the alphabet.",
    ]


@pytest.mark.parametrize("reply", ["", "ok", RuntimeError("no credit"), "far too long " * 3_000])
def test_a_summarizer_that_fails_costs_nothing_but_an_event(storage: Storage, reply: Any) -> None:
    graph, _ = graph_of(storage, *"abc", summarizer=ScriptedModel([reply]))

    for text in ("the budget is 900 EUR", "2", "3"):
        result = ask(graph, text, context_limit=2, keep_last_turns=1)

    assert result["messages"][-1].text == "c"
    assert result["summary"]["writer"] == "extractive"


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


def test_the_guard_keeps_a_sensitive_note_out_of_store_and_ledger(storage: Storage) -> None:
    graph, model = graph_of(
        storage, calls(call("save_memory_note", "c", text="Her SSN is 078-05-1120", keywords=[])), "sorry"
    )

    ask(graph, "remember it")

    assert "never stored" in model.prompts[1][-1].text
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


def test_an_unchanged_head_is_cacheable(storage: Storage) -> None:
    graph, _ = graph_of(storage, "a", "b")
    ask(graph, "1")
    ask(graph, "2")

    second = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"][1]

    assert second.tokens - second.cacheable_tokens < 20


def test_an_error_of_the_model_keeps_the_message_once_and_the_next_run_continues(storage: Storage) -> None:
    graph, model = graph_of(storage, ModelError("the provider is down", kind="server"), "hello")
    with pytest.raises(ModelError, match="provider is down"):
        ask(graph, "hi")

    result = ask(graph, "hi")

    assert [message.text for message in result["messages"]] == ["hi", "hello"]
    assert [message.text for message in model.prompts[1][1:]] == ["hi"]


def test_a_failed_turn_is_continued_without_a_message(storage: Storage) -> None:
    graph, _ = graph_of(storage, ModelError("down"), "hello")
    with pytest.raises(ModelError):
        ask(graph, "hi")

    assert graph.invoke(None, CONFIG)["messages"][-1].text == "hello"


def test_an_overflow_is_retried_with_a_smaller_budget(storage: Storage) -> None:
    refusal = RuntimeError("This model's maximum context length is 900 tokens. However, your messages resulted in 1000")
    graph, _ = graph_of(storage, *["word " * 100] * 6, refusal, refusal, "short")
    for number in range(6):
        ask(graph, f"{number} " + "word " * 100, window=8_000)

    result = ask(graph, "now", window=8_000)

    assert result["messages"][-1].text == "short"
    refused = [event for event in events(storage.store, "t") if event.event == "prompt_assembled"][-3:]
    assert refused[0].tokens > refused[1].tokens > refused[2].tokens
    assert names(storage).count("overflow") == 2


def test_a_prompt_refused_six_times_ends_with_how_far_it_got(storage: Storage) -> None:
    graph, model = graph_of(storage, *[RuntimeError("prompt is too long: context_length_exceeded")] * 6)

    with pytest.raises((ModelError, BudgetError)):
        ask(graph, "hi")

    assert len(model.prompts) <= 6


def test_a_window_too_small_for_the_system_prompt_is_refused_with_the_numbers(storage: Storage) -> None:
    graph, _ = graph_of(storage, "never")

    with pytest.raises(BudgetError, match="`window` is 300 tokens"):
        ask(graph, "hi", window=300)


def test_a_run_without_anything_to_answer_says_so(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")

    with pytest.raises(SettingsError, match="nothing to answer"):
        graph.invoke({"messages": []}, CONFIG)


def test_a_message_sent_again_with_its_id_gets_the_answer_it_has(storage: Storage) -> None:
    graph, model = graph_of(storage, "hello")
    graph.invoke({"messages": [HumanMessage("hi", id="x")]}, CONFIG)

    again = graph.invoke({"messages": [HumanMessage("hi", id="x")]}, CONFIG)

    assert [message.text for message in again["messages"]] == ["hi", "hello"]
    assert len(model.prompts) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_message_saved_by_a_run_that_died_at_once_is_not_lost(asynchronous: bool, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph, _ = graph_of(storage, "never sent")
        next(graph.stream({"messages": "first"}, CONFIG, stream_mode="checkpoints", durability="sync"))

    if asynchronous:
        async with aopen_storage(url) as storage:
            graph, model = graph_of(storage, "hello")
            await graph.ainvoke({"messages": "second"}, CONFIG)
    else:
        with open_storage(url) as storage:
            graph, model = graph_of(storage, "hello")
            graph.invoke({"messages": "second"}, CONFIG)

    assert [message.text for message in model.prompts[0][1:]] == ["first", "second"]


def test_one_unreadable_note_does_not_cost_the_user_a_turn(storage: Storage) -> None:
    storage.store.put(namespaces.notes("local"), "broken", {"text": "no other field"})
    graph, _ = graph_of(storage, "hello")

    assert ask(graph, "hi")["messages"][-1].text == "hello"


def test_a_graph_without_a_store_says_so() -> None:
    graph = build_graph(AGENT, model=ScriptedModel(["x"]))

    with pytest.raises(SettingsError, match="no store"):
        graph.invoke({"messages": "hi"})


def test_a_run_without_a_thread_says_so(storage: Storage) -> None:
    graph, _ = graph_of(storage, "x")

    with pytest.raises(SettingsError, match="thread_id"):
        graph.invoke({"messages": "hi"})


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


def test_a_second_process_continues_the_thread(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        ask(graph_of(storage, "a")[0], "1")

    with open_storage(url) as storage:
        graph, model = graph_of(storage, "b")
        ask(graph, "2")

    assert [message.text for message in model.prompts[0][1:]] == ["1", "a", "2"]


async def test_the_async_flavour_does_the_same(tmp_path: Path) -> None:
    async with aopen_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, model = graph_of(storage, calls(call("look", "c", n=900)), "b", *"cdef")
        for number in range(5):
            result = await graph.ainvoke(
                {"messages": f"question {number}"}, CONFIG, context=Context(context_limit=2, keep_last_turns=1)
            )
        ended = await graph.ainvoke({"end_session": True}, CONFIG)

    assert result["summary"]["version"] >= 1
    assert ended["turns"] == 5
    assert model.left == 0


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "custom"])
async def test_every_stream_mode_works_sync_and_async(mode: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph, _ = graph_of(storage, "one two")
        assert list(graph.stream({"messages": "hi"}, CONFIG, stream_mode=mode))

    async with aopen_storage(url) as storage:
        graph, _ = graph_of(storage, "three four")
        assert [part async for part in graph.astream({"messages": "hi"}, CONFIG, stream_mode=mode)]


def test_messages_are_streamed_in_pieces(storage: Storage) -> None:
    graph, _ = graph_of(storage, "one two three")

    parts = [part.text for part, _ in graph.stream({"messages": "hi"}, CONFIG, stream_mode="messages")]

    assert "".join(parts) == "one two three"
    assert len(parts) > 1


def test_history_and_forks_work(storage: Storage) -> None:
    graph, model = graph_of(storage, "a", "b", "c")
    ask(graph, "1")
    ask(graph, "2")
    after_first = next(
        state for state in graph.get_state_history(CONFIG) if not state.next and len(state.values["messages"]) == 2
    )

    graph.invoke({"messages": "other"}, after_first.config)

    assert [message.text for message in model.prompts[2][1:]] == ["1", "a", "other"]


def test_update_state_edits_the_working_set(storage: Storage) -> None:
    graph, model = graph_of(storage, "a", "b")
    first = ask(graph, "1")["messages"][0]
    graph.update_state(CONFIG, {"messages": [HumanMessage("one", id=first.id)]})

    ask(graph, "2")

    assert [message.text for message in model.prompts[1][1:]] == ["one", "a", "2"]


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


async def test_runs_on_many_threads_at_once_do_not_lock_each_other_out(tmp_path: Path) -> None:
    async with aopen_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, *["fine"] * 12)
        configs: list[Any] = [{"configurable": {"thread_id": f"t{number}"}} for number in range(12)]

        results = await asyncio.gather(*(graph.ainvoke({"messages": "hi"}, config) for config in configs))

    assert [result["messages"][-1].text for result in results] == ["fine"] * 12


async def test_runs_on_one_thread_at_once_take_turns(tmp_path: Path) -> None:
    async with aopen_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, *["fine"] * 6)

        await asyncio.gather(*(graph.ainvoke({"messages": f"question {n}"}, CONFIG) for n in range(6)))
        state = await graph.aget_state(CONFIG)

    assert [message.type for message in state.values["messages"]] == ["human", "ai"] * 6


@pytest.mark.parametrize("reported", [9_000, 80_000, 10**9])
def test_an_absurd_usage_report_does_not_cost_the_thread(storage: Storage, reported: int) -> None:
    usage: Any = {"input_tokens": reported, "output_tokens": 1, "total_tokens": reported + 1}
    graph, _ = graph_of(storage, AIMessage("one", usage_metadata=usage), "two")
    ask(graph, "1", window=8_000)

    assert ask(graph, "2", window=8_000)["messages"][-1].text == "two"


def test_a_graph_with_config_keeps_its_locks(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")

    assert graph.with_config(CONFIG).invoke({"messages": "hi"})["messages"][-1].text == "hello"


async def test_a_run_that_does_not_fit_its_storage_says_which_to_open(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage, pytest.raises(SettingsError, match="aopen_storage"):
        await graph_of(storage, "x")[0].ainvoke({"messages": "hi"}, CONFIG)
    async with aopen_storage(url) as opened:
        with pytest.raises(SettingsError, match="ainvoke"):
            graph_of(opened, "x")[0].invoke({"messages": "hi"}, CONFIG)


def test_other_words_under_a_known_id_are_a_new_question(storage: Storage) -> None:
    graph, model = graph_of(storage, "one", "two")
    graph.invoke({"messages": [HumanMessage("first", id="x")]}, CONFIG)

    graph.invoke({"messages": [HumanMessage("second", id="x")]}, CONFIG)

    assert len(model.prompts) == 2


def test_a_model_that_uses_an_id_again_loses_no_answer(storage: Storage) -> None:
    graph, _ = graph_of(storage, *(AIMessage(f"answer {n}", id="always") for n in range(3)))
    for number in range(3):
        result = ask(graph, f"question {number}")

    assert [m.text for m in result["messages"]] == [f"{who} {n}" for n in range(3) for who in ("question", "answer")]


def ask_all(graph: Any, messages: list[HumanMessage]) -> dict[str, Any]:
    return dict(graph.invoke({"messages": messages}, CONFIG, context=Context(context_limit=2, keep_last_turns=1)))


def test_a_history_sent_again_is_not_archived_twice(storage: Storage) -> None:
    graph, _ = graph_of(storage, *"abcd")
    sent: list[HumanMessage] = []
    for number in range(4):
        sent.append(HumanMessage(f"question {number}", id=f"h{number}"))
        result = ask_all(graph, sent)

    told = [message.text for message in transcript(storage.store, "t", result["messages"])]
    assert told == ["question 0", "a", "question 1", "b", "question 2", "c", "question 3", "d"]
    assert result["turns"] == 4


def test_a_first_message_of_many_images_does_not_cost_the_thread(storage: Storage) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    graph, _ = graph_of(storage, *"abcd")
    graph.invoke({"messages": [HumanMessage([image] * 6)]}, CONFIG, context=Context(window=9_000))
    for _ in range(2):
        result = ask(graph, "word " * 1_500, window=6_000)

    assert result["messages"][-1].text == "c"


def test_an_unreadable_long_term_note_does_not_stop_consolidation(storage: Storage) -> None:
    storage.store.put(namespaces.notes("local"), "broken", {"text": "no other field"})
    graph, _ = graph_of(storage, calls(call("save_memory_note", "c", text="Likes tea", keywords=[])), "ok")
    ask(graph, "tea")
    ask(graph, None)

    assert len(storage.store.search(namespaces.notes("local"))) == 2


@pytest.mark.parametrize("policy", ["sliding_window", "head_tail", "token_budget", "salience", "summarize"])
def test_a_rule_of_the_user_survives_every_policy(storage: Storage, policy: str) -> None:
    graph, model = graph_of(storage, *["fine " * 60] * 30)
    ask(graph, "hello", window=2_500, policy=policy)
    ask(graph, "Ask me before you book anything.", window=2_500, policy=policy)
    for number in range(28):
        ask(graph, f"question {number} " + "word " * 60, window=2_500, policy=policy)

    assert all(any("Ask me before you book anything." in m.text for m in prompt) for prompt in model.prompts[1:])


def test_a_result_is_archived_only_when_its_whole_round_is_done(storage: Storage) -> None:
    both = calls(call("look", "c", n=3000), call("approve", "d", what="Paris"))
    graph, _ = graph_of(storage, both, "fine", "bye")
    ask(graph, "look and book", tool_output_tokens=200)

    ask(graph, "forget it")

    state = graph.get_state(CONFIG).values
    places = [marks(message)["seq"] for message in transcript(storage.store, "t", state["messages"])]
    assert places == sorted(set(places))


def test_a_long_result_never_enters_a_checkpoint_whole(storage: Storage) -> None:
    graph, _ = graph_of(storage, calls(call("look", "c", n=3000)), "long")
    ask(graph, "hi", tool_output_tokens=200)

    states = list(graph.get_state_history(CONFIG))

    assert all(len(message.text) < 3_000 for state in states for message in state.values.get("messages", []))


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
