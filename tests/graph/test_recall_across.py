"""Recall over the user's other threads: by the tool and by itself, never another user's, never a forgotten one's."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conversation import call
from everthread import Context, EverthreadMiddleware, Transcript, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.graph.ending import end_if_idle
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.state.marks import marks
from everthread.storage.erasure import erase
from everthread.storage.open import Storage
from everthread.tools.save_memory_note import save_memory_note

MINE: dict[str, Any] = {"recall_threads": "mine"}
CODE = "My locker code is 4711."
ASKS = "What was my locker code?"

Say = Callable[..., list[str]]


@tool
def look() -> str:
    """Look at the locker."""
    return "The shelf of the locker holds an umbrella."


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note, look])
LOOKED = AIMessage("", tool_calls=[call("look", "c1")])


def at(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


@pytest.fixture
def storage(database_url: str) -> Iterator[Storage]:
    """Open an empty database of each kind, on disk, since nothing is erased in memory."""
    with open_storage(database_url) as opened:
        yield opened


@pytest.fixture(params=["invoke", "ainvoke"])
def say(request: pytest.FixtureRequest, storage: Storage) -> Say:
    """Return a function that runs a turn, sync and async, and returns what the model was sent last."""

    def run(thread_id: str, text: str, *replies: Any, user: str = "ann", agent: Agent = AGENT, **dials: Any) -> Any:
        model = ScriptedModel(list(replies) or ["Noted."])
        graph = build_graph(agent, model=model, summarizer="offline", storage=storage)
        given: Any = {"config": at(thread_id), "context": Context(user_id=user, **dials)}
        if request.param == "ainvoke":
            asyncio.run(graph.ainvoke({"messages": text}, **given))
        else:
            graph.invoke({"messages": text}, **given)
        return [message.text for message in model.prompts[-1]]

    return run


def search(**arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[call("recall_history", "s1", query="locker code", **arguments)])


def end_by_graph(storage: Storage, thread_id: str) -> None:
    build_graph(AGENT, model=ScriptedModel([]), summarizer="offline", storage=storage).invoke(
        {"end_session": True}, at(thread_id), context=Context(user_id="ann")
    )


def end_by_sweep(storage: Storage, thread_id: str) -> None:
    assert not isinstance(end_if_idle(storage, thread_id, 0), str)


def said(storage: Storage) -> set[str]:
    return {str(item.value["text"]) for item in storage.store.search(namespaces.said("ann"))}


def test_a_new_thread_recalls_what_was_said_in_another_one_with_thread_date_and_speaker(say: Say) -> None:
    say("first", CODE)

    prompt = say("second", ASKS, **MINE)

    block = prompt[-2]
    assert "user: My locker code is 4711." in block
    assert block.splitlines()[2].endswith(", conversation first")
    assert prompt[-1] == ASKS


def test_by_default_a_thread_recalls_nothing_of_others(say: Say) -> None:
    say("first", CODE)

    assert "4711" not in " ".join(say("second", ASKS))


def test_the_tool_searches_other_threads_when_it_is_told_to(say: Say) -> None:
    say("first", CODE)

    found = say("second", "Hello.", search(threads="mine"), "4711.")[-1]
    alone = say("third", "Hello.", search(), "No idea.")[-1]

    assert "[first/0] user: My locker code is 4711." in found
    assert "conversation first" in found
    assert "Nothing was found" in alone


def test_the_tool_keeps_to_the_days_it_is_given_in_other_threads_too(say: Say) -> None:
    say("first", CODE)

    assert "Nothing was found" in say("second", "Hi.", search(threads="mine", before="2020-01-01"), "Done.")[-1]


def test_the_tool_is_bound_from_the_first_call_where_other_threads_are_searched(storage: Storage) -> None:
    model = ScriptedModel(["Hello."])
    graph = build_graph(AGENT, model=model, storage=storage)
    graph.invoke({"messages": "Hi."}, at("t"), context=Context(user_id="ann", recall_threads="mine"))

    assert "recall_history" in {one["function"]["name"] for one in model.tools[0]}


def test_an_answer_comes_with_the_question_behind_a_round_of_tools(say: Say) -> None:
    say("first", "Where did we leave the telescope?", LOOKED, "In the attic.")
    say("first", "Thank you.")

    assert "assistant: In the attic." in say("second", "What did I ask about the telescope?", **MINE)[-2]


@pytest.mark.parametrize("end", [end_by_graph, end_by_sweep])
def test_the_end_of_a_session_brings_its_last_reply_into_reach(
    say: Say, storage: Storage, end: Callable[[Storage, str], object]
) -> None:
    say("first", "Where did we leave the telescope?", LOOKED, "In the attic.")
    assert "In the attic." not in " ".join(say("second", "What did I ask about the telescope?", **MINE))

    end(storage, "first")

    assert "In the attic." in " ".join(say("third", "What did I ask about the telescope?", **MINE))


def guarded_agent(storage: Storage, *replies: str, behind: Sequence[Any] = ()) -> Any:
    """Return an agent of `create_agent` with our middleware, and others behind it."""
    agent: Any = create_agent(
        ScriptedModel(list(replies)),
        middleware=[EverthreadMiddleware(window=8_000, summarizer="offline"), *behind],
        checkpointer=storage.checkpointer,
        store=storage.store,
    )
    return storage.guard(agent)


FIRST: Any = {"configurable": {"thread_id": "first", "user_id": "ann"}}


def test_the_last_reply_under_the_middleware_is_in_reach_from_the_next_turn_on(storage: Storage) -> None:
    agent = guarded_agent(storage, "In the attic.", "Here.")

    agent.invoke({"messages": "Where is it?"}, FIRST)
    agent.invoke({"messages": "And the rest?"}, FIRST)

    assert said(storage) == {"Where is it?", "In the attic.", "And the rest?"}


def test_the_last_reply_under_the_middleware_is_in_reach_when_its_session_ends(storage: Storage) -> None:
    guarded_agent(storage, "In the attic.").invoke({"messages": "Where is it?"}, FIRST)

    end_by_sweep(storage, "first")

    assert said(storage) == {"Where is it?", "In the attic."}


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_a_reply_is_found_as_another_middleware_has_redacted_it(storage: Storage, api: str) -> None:
    redacts = PIIMiddleware("email", apply_to_output=True)
    agent = guarded_agent(storage, "Write to eve@example.com.", behind=[redacts])

    if api == "ainvoke":
        await agent.ainvoke({"messages": "Where to?"}, FIRST)
    else:
        agent.invoke({"messages": "Where to?"}, FIRST)
    after_turn = said(storage)
    end_by_sweep(storage, "first")

    assert not any("eve@example.com" in text for text in after_turn)
    assert said(storage) == {"Where to?", "Write to [REDACTED_EMAIL]."}


def test_what_a_tool_returned_stays_in_its_thread(say: Say) -> None:
    say("first", "What is in it?", LOOKED, "It is full.")

    prompt = say("second", "Was there an umbrella in the locker?", search(threads="mine"), "No idea.", **MINE)

    assert "holds an umbrella" not in " ".join(prompt)


def test_another_users_threads_are_never_searched(say: Say) -> None:
    say("first", CODE, user="ben")

    prompt = say("second", ASKS, search(threads="mine"), "No idea.", **MINE)

    assert "4711" not in " ".join(prompt)


def test_threads_of_another_agent_of_the_same_user_are_searched(say: Say) -> None:
    say("first", CODE, agent=Agent(name="other", title="Other", instructions="Be kind."))

    assert CODE in " ".join(say("second", ASKS, **MINE))


def test_a_thread_does_not_recall_itself_twice(say: Say) -> None:
    say("first", CODE)

    prompt = say("first", ASKS, search(threads="mine"), "4711.", **MINE)

    assert sum("4711" in text for text in prompt) == 1


def test_a_passage_that_is_in_view_is_not_recalled_again(say: Say, storage: Storage) -> None:
    say("first", CODE)
    say("second", ASKS, "4711.", **MINE)

    prompt = say("second", "What was the locker code again?", "4711, still.", **MINE)

    assert sum(CODE in text for text in prompt) == 1


@pytest.mark.parametrize(("words", "kept"), [("Paint it [redacted].", {"Paint it [redacted]."}), ("", set())])
def test_an_edited_message_is_found_as_it_reads_now(words: str, kept: set[str], storage: Storage) -> None:
    graph = build_graph(AGENT, model=ScriptedModel(["Red it is."]), storage=storage)
    graph.invoke({"messages": [HumanMessage("Paint it red.", id="q")]}, at("t"), context=Context(user_id="ann"))

    graph.update_state(at("t"), {"messages": [HumanMessage(words, id="q")]})

    assert said(storage) == kept


@pytest.mark.parametrize(("name", "kept"), [("P", {"Red it is.", "Thanks."}), (REMOVE_ALL_MESSAGES, set())])
def test_a_message_that_an_edit_removes_is_found_no_more(name: str, kept: set[str], storage: Storage) -> None:
    graph = build_graph(AGENT, model=ScriptedModel(["Red it is.", "Bye."]), storage=storage)
    for text in ("Paint it red.", "Thanks."):
        graph.invoke({"messages": [HumanMessage(text, id=text[0])]}, at("t"), context=Context(user_id="ann"))

    graph.update_state(at("t"), {"messages": [RemoveMessage(id=name)]})

    assert said(storage) == kept


def test_a_message_that_an_input_removes_is_found_no_more(storage: Storage) -> None:
    graph = build_graph(AGENT, model=ScriptedModel(["Red it is.", "Bye."]), storage=storage)
    ann = Context(user_id="ann")
    graph.invoke({"messages": [HumanMessage("Paint it red.", id="q")]}, at("t"), context=ann)

    graph.invoke({"messages": [RemoveMessage(id="q"), HumanMessage("Thanks.")]}, at("t"), context=ann)

    assert said(storage) == {"Red it is.", "Thanks."}


async def test_an_edit_of_an_agent_with_the_middleware_is_found_as_it_reads_now(storage: Storage) -> None:
    agent = guarded_agent(storage, "Red it is.")
    agent.invoke({"messages": [HumanMessage("Paint it red.", id="q")]}, FIRST)

    await agent.aupdate_state(FIRST, {"messages": [HumanMessage("Paint it blue.", id="q")]})

    assert said(storage) == {"Paint it blue."}


def by_our_own_graph(storage: Storage, *replies: str) -> Any:
    return build_graph(AGENT, model=ScriptedModel(list(replies)), storage=storage)


@pytest.mark.parametrize("made", [by_our_own_graph, guarded_agent])
@pytest.mark.parametrize("edit", [RemoveMessage(id="q"), HumanMessage("Paint it blue.", id="q")])
def test_a_thread_that_goes_back_behind_an_edit_is_found_as_it_reads_there(
    made: Callable[..., Any], edit: Any, storage: Storage
) -> None:
    graph = made(storage, "Red it is.", "Bye.")
    graph.invoke({"messages": [HumanMessage("Paint it red.", id="q")]}, FIRST)
    before = graph.get_state(FIRST).config["configurable"]
    graph.update_state(FIRST, {"messages": [edit]})

    graph.invoke({"messages": "Thanks."}, {"configurable": {**FIRST["configurable"], **before}})

    assert said(storage) == {"Paint it red.", "Red it is.", "Thanks."}


def test_a_thread_of_neither_graph_nor_middleware_is_not_searched_when_it_goes_back(storage: Storage) -> None:
    plain = StateGraph(MessagesState)
    plain.add_node("reply", lambda state: {"messages": [AIMessage("Red it is.")]})
    plain.add_edge(START, "reply")
    graph = storage.guard(plain.compile(checkpointer=storage.checkpointer, store=storage.store))
    graph.invoke({"messages": [HumanMessage("Paint it red.", id="q")]}, FIRST)
    before = graph.get_state(FIRST).config["configurable"]
    graph.update_state(FIRST, {"messages": [RemoveMessage(id="q")]})

    graph.invoke({"messages": "Thanks."}, {"configurable": {**FIRST["configurable"], **before}})

    assert said(storage) == set()


def test_a_forgotten_thread_is_recalled_nowhere_and_leaves_the_prompts_that_showed_it(
    say: Say, storage: Storage
) -> None:
    say("first", CODE)
    assert CODE in " ".join(say("second", ASKS, "I see.", **MINE))

    assert erase(storage, thread_id="first").is_verified

    assert CODE not in " ".join(say("second", "What was it, the locker code?", search(threads="mine"), "Gone.", **MINE))
    assert CODE not in " ".join(say("third", ASKS, **MINE))
    assert [item.value["thread_id"] for item in storage.store.search(namespaces.said("ann"), query="4711")] == []


def test_of_a_forgotten_user_nothing_can_be_searched(say: Say, storage: Storage) -> None:
    say("first", CODE)

    assert erase(storage, user_id="ann").is_verified

    assert storage.store.search(namespaces.said("ann")) == []
    assert CODE not in " ".join(say("second", ASKS, **MINE))


def test_the_ledger_names_the_threads_that_passages_are_from(say: Say, storage: Storage) -> None:
    say("first", CODE)
    say("second", ASKS, **MINE)

    event = next(event for event in events(storage.store, "second") if event.event == "recalled")

    assert event.threads == ["first"]
    assert "first/0" in event.message_ids


def test_a_fork_writes_over_what_it_replaces(storage: Storage) -> None:
    replies = ["Hello.", "Red it is.", "Bye.", "Blue it is.", "Bye."]
    graph = build_graph(AGENT, model=ScriptedModel(replies), storage=storage)
    ann = Context(user_id="ann")
    graph.invoke({"messages": "Hi."}, at("t"), context=ann)
    before = graph.get_state(at("t")).config
    graph.invoke({"messages": [HumanMessage("Paint it red.", id="q1")]}, at("t"), context=ann)
    graph.invoke({"messages": "Thanks."}, at("t"), context=ann)
    assert said(storage) == {"Hi.", "Hello.", "Paint it red.", "Red it is.", "Thanks."}

    graph.invoke({"messages": [HumanMessage("Paint it blue.", id="q2")]}, before, context=ann)
    graph.invoke({"messages": "Thank you."}, at("t"), context=ann)

    assert said(storage) == {"Hi.", "Hello.", "Paint it blue.", "Blue it is.", "Thank you."}


def test_another_graphs_agent_with_the_middleware_recalls_across_threads(storage: Storage) -> None:
    def agent(model: ScriptedModel) -> Any:
        made = create_agent(
            model,
            [look],
            middleware=[EverthreadMiddleware(window=8_000, summarizer="offline", **MINE)],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
        return storage.guard(made)

    first, second = ScriptedModel(["Noted."]), ScriptedModel([search(threads="mine"), "4711."])
    ann = {"user_id": "ann"}
    agent(first).invoke({"messages": CODE}, {"configurable": {"thread_id": "first", **ann}})
    agent(second).invoke({"messages": ASKS}, {"configurable": {"thread_id": "second", **ann}})

    recalled = [message.text for message in second.prompts[0] if marks(message).get("kind") == "recalled"]
    assert CODE in " ".join(recalled)
    assert f"[first/0] user: {CODE}" in second.prompts[1][-1].text


def test_a_transcript_of_ones_own_recalls_the_users_other_threads(storage: Storage) -> None:
    Transcript(storage.store, "first", "ann").append([("user", CODE), ("assistant", "Noted.")])
    Transcript(storage.store, "alien", "ben").append([("user", "My locker code is 9999.")])
    second = Transcript(storage.store, "second", "ann")

    assert second.recall(ASKS) == ""
    assert CODE in second.recall(ASKS, threads="mine")
    assert "9999" not in second.recall(ASKS, threads="mine")


def test_an_unknown_choice_of_threads_is_refused() -> None:
    with pytest.raises(SettingsError, match="`recall_threads` is 'all'"):
        Context(recall_threads="all")  # type: ignore[arg-type]
