"""Runs of a graph: messages sent again, processes, flavours, streams, forks and locks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conversation import call
from everthread import Agent, Context, build_graph, open_storage, pipeline
from everthread.errors import ModelError, SettingsError, StorageError
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.state.marks import sequence
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.open import Storage
from everthread.storage.said import said_in
from everthread.storage.transcript import transcript
from small_agent import AGENT, CONFIG, ask, calls, graph_of


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


@pytest.mark.parametrize("sent", [{}, {"messages": []}, {"messages": [], "end_session": False}], ids=repr)
@pytest.mark.parametrize("is_begun", [False, True])
def test_an_empty_input_is_refused(sent: dict[str, Any], is_begun: bool, storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")
    if is_begun:
        ask(graph, "hi")

    with pytest.raises(SettingsError, match="the input is empty"):
        graph.invoke(sent, CONFIG)
    assert (storage.store.get(namespaces.SESSIONS, "t") is not None) == is_begun


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_message_without_a_word_is_refused(text: str, storage: Storage) -> None:
    graph, model = graph_of(storage, "hello")

    with pytest.raises(SettingsError, match="is empty: send a text"):
        graph.invoke({"messages": text}, CONFIG)
    assert model.prompts == []


def test_a_message_sent_again_with_its_id_gets_the_answer_it_has(storage: Storage) -> None:
    graph, model = graph_of(storage, "hello")
    graph.invoke({"messages": [HumanMessage("hi", id="x")]}, CONFIG)

    again = graph.invoke({"messages": [HumanMessage("hi", id="x")]}, CONFIG)

    assert [message.text for message in again["messages"]] == ["hi", "hello"]
    assert len(model.prompts) == 1


def test_a_namespace_of_none_is_that_of_the_thread(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello", "again")
    ask(graph, "hi")

    result = graph.invoke({"messages": "more"}, {"configurable": {"thread_id": "t", "checkpoint_ns": None}})

    assert [message.text for message in result["messages"]] == ["hi", "hello", "more", "again"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_message_saved_by_a_run_that_died_at_once_is_not_lost(asynchronous: bool, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph, _ = graph_of(storage, "never sent")
        next(graph.stream({"messages": "first"}, CONFIG, stream_mode="checkpoints", durability="sync"))

    if asynchronous:
        async with open_storage(url) as storage:
            graph, model = graph_of(storage, "hello")
            await graph.ainvoke({"messages": "second"}, CONFIG)
    else:
        with open_storage(url) as storage:
            graph, model = graph_of(storage, "hello")
            graph.invoke({"messages": "second"}, CONFIG)

    assert [message.text for message in model.prompts[0][1:]] == ["first", "second"]


def test_a_graph_without_a_store_says_so() -> None:
    graph = build_graph(AGENT, model=ScriptedModel(["x"]))

    with pytest.raises(SettingsError, match="no store"):
        graph.invoke({"messages": "hi"})


def test_a_run_without_a_thread_says_so(storage: Storage) -> None:
    graph, _ = graph_of(storage, "x")

    with pytest.raises(SettingsError, match="thread_id"):
        graph.invoke({"messages": "hi"})


def test_a_second_process_continues_the_thread(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        ask(graph_of(storage, "a")[0], "1")

    with open_storage(url) as storage:
        graph, model = graph_of(storage, "b")
        ask(graph, "2")

    assert [message.text for message in model.prompts[0][1:]] == ["1", "a", "2"]


async def test_the_async_flavour_does_the_same(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
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

    async with open_storage(url) as storage:
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


def test_update_state_may_remove_every_message(storage: Storage) -> None:
    graph, model = graph_of(storage, "hello", "hello again")
    ask(graph, "hi")

    graph.update_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})

    assert graph.get_state(CONFIG).values["messages"] == []
    assert [one.text for one in ask(graph, "new")["messages"]] == ["new", "hello again"]
    assert [one.text for one in model.prompts[1][1:]] == ["new"]


async def test_runs_on_many_threads_at_once_do_not_lock_each_other_out(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, *["fine"] * 12)
        configs: list[Any] = [{"configurable": {"thread_id": f"t{number}"}} for number in range(12)]

        results = await asyncio.gather(*(graph.ainvoke({"messages": "hi"}, config) for config in configs))

    assert [result["messages"][-1].text for result in results] == ["fine"] * 12


async def test_runs_on_one_thread_at_once_take_turns(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, *["fine"] * 6)

        await asyncio.gather(*(graph.ainvoke({"messages": f"question {n}"}, CONFIG) for n in range(6)))
        state = await graph.aget_state(CONFIG)

    assert [message.type for message in state.values["messages"]] == ["human", "ai"] * 6


def test_a_graph_with_config_keeps_its_locks(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")

    assert graph.with_config(CONFIG).invoke({"messages": "hi"})["messages"][-1].text == "hello"


async def test_one_graph_answers_sync_and_async_runs(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, _ = graph_of(storage, *"abcd")
        graph.invoke({"messages": "1"}, CONFIG)
        await graph.ainvoke({"messages": "2"}, CONFIG)
        _ = list(graph.stream({"messages": "3"}, CONFIG))
        _ = [part async for part in graph.astream({"messages": "4"}, CONFIG)]

        texts = [message.text for message in graph.get_state(CONFIG).values["messages"]]

    assert texts == ["1", "a", "2", "b", "3", "c", "4", "d"]


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


def test_a_model_that_uses_an_id_again_replaces_no_answer_that_has_left(storage: Storage) -> None:
    graph, _ = graph_of(storage, *(AIMessage(f"answer {n}", id="always") for n in range(8)))
    for number in range(8):
        result = ask(graph, f"question {number}", context_limit=2, keep_last_turns=1)

    told = [message.text for message in transcript(storage.store, "t", result["messages"])]
    assert told == [f"{who} {n}" for n in range(8) for who in ("question", "answer")]


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


@pytest.mark.parametrize("kept", ["none", "last two", "first"])
@pytest.mark.parametrize("by", ["update_state", "input"])
def test_what_is_said_after_a_caller_emptied_the_state_comes_behind_what_left(
    storage: Storage, by: str, kept: str
) -> None:
    graph, _ = graph_of(storage, *(f"answer {n}" for n in range(8)))
    dials = {"context_limit": 2, "keep_last_turns": 1, "user_id": "ann"}
    for number in range(6):
        result = ask(graph, f"question {number}", **dials)
    here = result["messages"]
    stays = {"none": [], "last two": here[-2:], "first": here[:1]}[kept]
    removed = {message.id for message in here} - {message.id for message in stays}
    left = [one.text for one in transcript(storage.store, "t", here) if one.id not in removed]

    writes = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *stays]
    if by == "update_state":
        graph.update_state(CONFIG, {"messages": writes})
        ask(graph, "question 6", **dials)
    else:
        graph.invoke({"messages": [*writes, HumanMessage("question 6")]}, CONFIG, context=Context(**dials))
    result = ask(graph, "question 7", **dials)

    whole = transcript(storage.store, "t", result["messages"])
    assert [one.text for one in whole] == [*left, "question 6", "answer 6", "question 7", "answer 7"]
    assert len({sequence(one) for one in whole}) == len(whole)
    said = [item.value["text"] for item in said_in(storage.store, "t", "ann")]
    assert sorted(said) == sorted([*left, "question 6", "answer 6", "question 7"])


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_what_is_said_after_the_checkpoints_were_deleted_comes_behind_what_left(
    storage: Storage, is_guarded: bool
) -> None:
    guarded, model = graph_of(storage, *(f"answer {n}" for n in range(8)))
    graph = guarded if is_guarded else guarded.graph
    dials = {"context_limit": 2, "keep_last_turns": 1, "user_id": "ann"}
    for number in range(6):
        result = ask(graph, f"question {number}: parcel {number} is blue", **dials)
    here = {message.id for message in result["messages"]}
    left = [one.text for one in transcript(storage.store, "t", result["messages"]) if one.id not in here]

    storage.checkpointer.delete_thread("t")
    ask(graph, "Hello", **dials)
    question = {"messages": "What colour has parcel 3?"}
    result = await graph.ainvoke(question, CONFIG, context=Context(**dials))

    whole = transcript(storage.store, "t", result["messages"])
    assert [one.text for one in whole] == [*left, "Hello", "answer 6", question["messages"], "answer 7"]
    assert any("parcel 3 is blue" in one.text for one in model.prompts[7])
    assert len(said_in(storage.store, "t", "ann")) == 14


def test_an_app_without_checkpoints_that_sends_all_messages_again_has_each_turn_counted_once(storage: Storage) -> None:
    model, sent = ScriptedModel([f"answer {n}" for n in range(4)]), list[BaseMessage]()
    graph = pipeline(AGENT, model=model).compile(store=storage.store)
    for number in range(4):
        sent.append(HumanMessage(f"question {number}", id=f"q{number}"))
        sent.append(graph.invoke({"messages": list(sent)}, CONFIG)["messages"][-1])

    session = storage.store.get(namespaces.SESSIONS, "t")

    assert session is not None
    assert session.value["turns"] == 4


@pytest.mark.parametrize("is_guarded", [True, False])
def test_the_only_turn_of_a_thread_stays_known_when_its_checkpoints_are_deleted(
    storage: Storage, is_guarded: bool
) -> None:
    guarded, _ = graph_of(storage, "noted", "hello")
    graph = guarded if is_guarded else guarded.graph
    ask(graph, "My locker is 42.", user_id="ann")

    storage.checkpointer.delete_thread("t")
    ask(graph, "Hi", user_id="ann")

    said = {item.value["text"] for item in said_in(storage.store, "t", "ann")}
    assert said == {"My locker is 42.", "Hi"}
    assert storage.store.get(namespaces.SESSIONS, "t").value["turns"] == 2


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_first_turn_that_left_records_but_no_checkpoint_is_counted_once(storage: Storage, is_guarded: bool) -> None:
    guarded, _ = graph_of(storage, "lost", "hello")
    graph = guarded if is_guarded else guarded.graph
    ask(graph, "hi")
    storage.checkpointer.delete_thread("t")  # as a kill leaves it that comes ahead of the first checkpoint

    result = ask(graph, "hi")

    assert result["messages"][-1].text == "hello"
    assert storage.store.get(namespaces.SESSIONS, "t").value["turns"] == 1


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("again", [None, {"messages": [HumanMessage("question 3", id="q3")]}])
def test_a_turn_that_is_killed_after_the_checkpoints_were_deleted_is_no_fork(
    storage: Storage, again: Any, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded, _ = graph_of(storage, *["fine"] * 5)
    graph = guarded if is_guarded else guarded.graph
    for number in range(3):
        ask(graph, f"question {number}")
    storage.checkpointer.delete_thread("t")
    put_writes = Checkpointer.put_writes

    def killed(self: Checkpointer, config: Any, writes: Any, *task: str) -> None:
        if "turns" in dict(writes):  # of the first node, whose records are saved
            raise StorageError("killed")
        put_writes(self, config, writes, *task)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpointer, "put_writes", killed)
        with pytest.raises(StorageError):
            graph.invoke({"messages": [HumanMessage("question 3", id="q3")]}, CONFIG)

    graph.invoke(again, CONFIG)

    questions = {item.value["text"] for item in said_in(storage.store, "t", "local")} - {"fine"}
    assert questions == {f"question {number}" for number in range(4)}
    assert storage.store.get(namespaces.SESSIONS, "t").value["turns"] == 4


def test_a_result_of_a_round_that_was_left_unfinished_keeps_its_place(storage: Storage) -> None:
    both = calls(call("look", "c", n=3000), call("approve", "d", what="Paris"))
    graph, _ = graph_of(storage, both, "fine", "bye")
    ask(graph, "look and book", tool_output_tokens=200)

    ask(graph, "forget it")

    state = graph.get_state(CONFIG).values
    kinds = [message.type for message in transcript(storage.store, "t", state["messages"])]
    assert kinds == ["human", "ai", "tool", "human", "ai"]


def test_events_of_the_ledger_are_told_from_what_a_tool_streams(storage: Storage) -> None:
    @tool
    def report() -> str:
        """Report."""
        get_stream_writer()({"event": "progress", "done": 1})
        return "done"

    agent = Agent(name="test", title="Test", instructions="Be brief.", tools=[report])
    model = ScriptedModel([AIMessage("", tool_calls=[call("report", "c1")]), "Done."])
    graph = build_graph(agent, model=model, storage=storage)
    parts: Any = list(graph.stream({"messages": "hi"}, CONFIG, stream_mode="custom"))

    assert [part for part in parts if part.get("everthread") != "ledger"] == [{"event": "progress", "done": 1}]
    recorded = [event.model_dump(mode="json") for event in events(storage.store, "t")]
    ours = [part for part in parts if part.get("everthread") == "ledger"]
    assert [{name: value for name, value in part.items() if name != "everthread"} for part in ours] == recorded
