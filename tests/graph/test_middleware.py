"""Somebody else's agent with the middleware: bounded prompts, nothing lost, a state that stays theirs."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from everthread import Context, EverthreadMiddleware, EverthreadState, open_storage
from everthread.errors import BudgetError, SettingsError
from everthread.graph.consolidation import build_consolidation
from everthread.ledger.record import events
from everthread.models.scripted import CannedModel, ScriptedModel
from everthread.nodes.thread_view import thread_messages
from everthread.state import namespaces
from everthread.state.marks import sequence
from everthread.storage import call_records, pruning
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript
from everthread.window.tokens import counter_for

CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "ann"}}
WINDOW = 3_000
"""What seven turns of `turns` do not fit: the first ones leave in the fifth turn, and more in the eighth."""
TURNS = 10

Ask = Callable[..., Any]


@tool
def look_up(number: int) -> str:
    """Look up an order."""
    return "\n".join(f"order {number} line {line}: paid and packed" for line in range(20))


def called(number: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look_up", "args": {"number": number}, "id": f"call-{number}"}])


def turns(count: int, start: int = 0) -> list[AIMessage]:
    """Return the replies of turns with a tool call each."""
    replies = [
        (called(number), AIMessage(f"Order {number} is packed. " * 12)) for number in range(start, start + count)
    ]
    return [reply for turn in replies for reply in turn]


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as opened:
        yield opened


@pytest.fixture(scope="module", params=["invoke", "ainvoke"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Send a message, sync and async, and return the state."""

    def send(graph: Any, text: Any, config: Any = CONFIG) -> dict[str, Any]:
        payload = {"messages": [HumanMessage(text)] if isinstance(text, str) else text}
        if request.param == "ainvoke":
            return dict(asyncio.run(graph.ainvoke(payload, config)))
        return dict(graph.invoke(payload, config))

    return send


def agent(storage: Storage, model: CannedModel, *more: Any, state: Any = None, **dials: Any) -> Any:
    dials = {"window": WINDOW, "summarizer": "offline", **dials}
    return storage.guard(
        create_agent(
            model,
            [look_up],
            system_prompt="You sell things.",
            middleware=[*more, EverthreadMiddleware(**dials)],
            state_schema=state,
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
    )


class Answering(CannedModel):
    """A model whose reply depends on the prompt."""

    reply: Callable[[Sequence[BaseMessage]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "answering"

    def next_reply(self, messages: list[BaseMessage], tools: Any) -> AIMessage:
        return self.reply(messages)


def whole(storage: Storage, values: Any) -> list[BaseMessage]:
    return transcript(storage.store, "t", thread_messages(storage.store, "t", values["messages"]))


def sent(model: ScriptedModel) -> list[list[BaseMessage]]:
    return [list(prompt) for prompt in model.prompts]


@dataclass(frozen=True)
class Talk:
    """What a thread left: every prompt, the messages of the state, and all messages."""

    prompts: list[list[BaseMessage]]
    state: list[BaseMessage]
    messages: list[BaseMessage]


@pytest.fixture(scope="module", params=[None, EverthreadState])
def talk(request: pytest.FixtureRequest, ask: Ask) -> Talk:
    """Talk once, in a state of the agent's own and in one with our channel; tests only look at the thread."""
    model = ScriptedModel(turns(TURNS))
    with open_storage("sqlite://") as storage:
        graph = agent(storage, model, state=request.param)
        for number in range(TURNS):
            values = ask(graph, f"Where is order {number}? " * 5)
        return Talk(sent(model), values["messages"], whole(storage, values))


def test_no_prompt_is_over_the_window_and_no_message_is_lost(talk: Talk) -> None:
    assert max(map(counter_for(None).messages, talk.prompts)) < WINDOW
    assert [message.type for message in talk.messages] == ["human", "ai", "tool", "ai"] * TURNS
    assert [one.text.split("?")[0] for one in talk.messages[::4]] == [
        f"Where is order {number}" for number in range(TURNS)
    ]
    assert len(talk.state) < 2 * TURNS


def test_every_prompt_has_its_question_and_whole_tool_rounds(talk: Talk) -> None:
    for index, prompt in enumerate(talk.prompts):
        assert any(message.text.startswith(f"Where is order {index // 2}?") for message in prompt)
        calls = {call["id"] for message in prompt if isinstance(message, AIMessage) for call in message.tool_calls}
        assert calls == {message.tool_call_id for message in prompt if isinstance(message, ToolMessage)}


def test_the_state_holds_no_message_of_ours(talk: Talk) -> None:
    assert {message.type for message in talk.state} == {"human", "ai", "tool"}
    assert not any("memory_policy" in message.text for message in talk.state)


def test_the_system_prompt_stays_and_memory_stands_behind_it(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel(["Hello."])

    ask(agent(storage, model), "hi")

    system, memory, question = sent(model)[0]
    assert (system.text, question.text) == ("You sell things.", "hi")
    assert "<memory_policy>" in memory.text


def test_what_left_is_recalled_when_it_is_asked_for(storage: Storage, ask: Ask) -> None:
    replies = [AIMessage("Noted."), *turns(TURNS), AIMessage("It is Perelman.")]
    model = ScriptedModel(replies)
    graph = agent(storage, model)
    ask(graph, "The name of my supplier is Perelman and he delivers on Fridays.")
    for number in range(TURNS):
        ask(graph, f"Where is order {number}? " * 5)

    # The anchor holds the first message; this one has left.
    ask(graph, "Which line of order 3 did you look up earlier, do you remember?")

    assert any("<recalled>" in message.text for message in sent(model)[-1])


def test_a_long_result_leaves_a_handle_that_can_be_read(storage: Storage, ask: Ask) -> None:
    @tool
    def read_log() -> str:
        """Read the log."""
        return "\n".join(f"line {number} of the log" for number in range(2_000))

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        results = [message for message in messages if message.type == "tool"]
        if not results:
            return AIMessage("", tool_calls=[{"name": "read_log", "args": {}, "id": "c1"}])
        if len(results) == 1:
            handle = results[0].additional_kwargs["everthread"]["handle"]
            arguments = {"handle": handle, "offset": 6_000}
            return AIMessage("", tool_calls=[{"name": "read_tool_output", "args": arguments, "id": "c2"}])
        return AIMessage("done")

    graph = storage.guard(
        create_agent(
            Answering(reply=reply),
            [read_log],
            middleware=[EverthreadMiddleware(window=8_000, summarizer="offline", tool_output_tokens=500)],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
    )

    values = ask(graph, "read the log")

    log, part = [message for message in values["messages"] if message.type == "tool"]
    assert counter_for(None).text(log.text) < 700
    assert part.text.startswith("[tokens 6,000")
    assert [event.event for event in events(storage.store, "t")].count("offloaded") == 1


def test_an_overflow_is_sent_again_smaller(storage: Storage, ask: Ask) -> None:
    refused = []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        if len(messages) > 12:
            refused.append(len(messages))
            raise ValueError("This model's maximum context length is 2000 tokens, however you requested 2600 tokens")
        return AIMessage("Yes. " * 40)

    graph = agent(storage, Answering(reply=reply))

    for number in range(7):
        values = ask(graph, f"Is order {number} paid?")

    assert refused
    assert values["messages"][-1].text.startswith("Yes.")


def test_a_run_without_a_user_is_refused_by_name(storage: Storage, ask: Ask) -> None:
    graph = agent(storage, ScriptedModel(["Hello."]))

    with pytest.raises(SettingsError, match="no user"):
        ask(graph, "hi", {"configurable": {"thread_id": "t"}})


def test_a_guarded_run_without_a_user_saves_nothing(storage: Storage, ask: Ask) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    graph = agent(storage, ScriptedModel(["Hello."]))

    with pytest.raises(SettingsError, match="no user"):
        ask(graph, "hi", config)

    assert storage.checkpointer.get_tuple(config) is None
    assert storage.store.search((), limit=1) == []


def test_a_user_can_be_named_once_for_all_runs(storage: Storage, ask: Ask) -> None:
    graph = agent(storage, ScriptedModel(["Hello."])).with_config({"configurable": {"user_id": "ann"}})

    assert ask(graph, "hi", {"configurable": {"thread_id": "t"}})["messages"][-1].text == "Hello."


def test_a_dial_can_be_set_for_one_run(storage: Storage, ask: Ask) -> None:
    graph = agent(storage, ScriptedModel(turns(2)))
    config = {"configurable": {**CONFIG["configurable"], "everthread": {"window": 600}}}

    with pytest.raises(BudgetError):
        ask(graph, "Where is it? " * 300, config)


def test_a_context_of_ours_sets_dials_too(storage: Storage) -> None:
    graph = storage.guard(
        create_agent(
            ScriptedModel(["Hello."]),
            middleware=[EverthreadMiddleware()],
            context_schema=Context,
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
    )
    thread: Any = {"configurable": {"thread_id": "t"}}

    with pytest.raises(BudgetError):
        graph.invoke({"messages": "Where is it? " * 300}, thread, context=Context(user_id="ann", window=600))


def test_an_unknown_dial_is_refused_when_it_is_set() -> None:
    with pytest.raises(SettingsError, match="unknown dial 'windows'"):
        EverthreadMiddleware(windows=4_000)


def test_headings_of_the_summary_are_a_list() -> None:
    with pytest.raises(SettingsError, match="`summary_sections` of an agent must be a list, got 'Orders'"):
        EverthreadMiddleware(summary_sections="Orders")


def test_another_users_thread_is_refused_without_a_guard(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel(["Hello.", "Hello."])
    graph = agent(storage, model).graph
    ask(graph, "hi")

    with pytest.raises(SettingsError, match="another user"):
        ask(graph, "hi", {"configurable": {"thread_id": "t", "user_id": "bob"}})


def test_without_a_store_prompts_are_trimmed_and_that_is_said_once(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(turns(TURNS))
    graph = create_agent(
        model, [look_up], middleware=[EverthreadMiddleware(window=WINDOW)], checkpointer=InMemorySaver()
    )

    for number in range(TURNS):
        values = ask(graph, f"Where is order {number}? " * 5)

    assert max(map(counter_for(None).messages, sent(model))) < WINDOW
    assert len(values["messages"]) == 4 * TURNS
    assert [record.message[:20] for record in caplog.records].count("this agent has no st") == 1


def test_without_a_checkpointer_a_history_that_is_sent_again_is_kept_once(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel(turns(TURNS))
    graph = create_agent(
        model, [look_up], middleware=[EverthreadMiddleware(window=WINDOW, summarizer="offline")], store=storage.store
    )
    history: list[BaseMessage] = []

    for number in range(TURNS):
        history.append(HumanMessage(f"Where is order {number}? " * 5, id=f"q{number}"))
        left = ask(graph, history)["messages"]
        history = [*history, *(one for one in left if all(one.id != known.id for known in history))]

    assert max(map(counter_for(None).messages, sent(model))) < WINDOW
    messages = transcript(storage.store, "t", thread_messages(storage.store, "t", left))
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"] * TURNS


def test_without_a_thread_id_nothing_is_kept(storage: Storage, ask: Ask) -> None:
    graph = create_agent(
        ScriptedModel(["Hello."]), middleware=[EverthreadMiddleware(window=WINDOW)], store=storage.store
    )

    ask(graph, "hi", {"configurable": {"user_id": "ann"}})

    assert not storage.store.list_namespaces()


def test_without_a_guard_what_is_missing_is_said_once(
    storage: Storage, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    graph = agent(storage, ScriptedModel(["one", "two"])).graph

    ask(graph, "hi")
    ask(graph, "again")

    assert ["storage.guard" in record.message for record in caplog.records].count(True) == 1


def test_a_fork_does_not_see_what_its_branch_never_had(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel([*turns(8), AIMessage("forked")])
    graph = agent(storage, model)
    for number in range(4):
        ask(graph, f"Where is order {number}? " * 5)
    early = graph.get_state(CONFIG).config["configurable"]
    for number in range(4, 8):
        ask(graph, f"Where is order {number}? " * 5)

    ask(graph, "And now?", {"configurable": {**CONFIG["configurable"], **early}})

    prompt = "\n".join(message.text for message in sent(model)[-1])
    assert "order 3" in prompt
    assert not any(f"order {number}" in prompt for number in range(4, 8))


def test_a_turn_of_the_app_without_the_middleware_is_no_gap(storage: Storage, ask: Ask) -> None:
    with_us = agent(storage, ScriptedModel([*turns(6), *turns(6, start=7)]))
    plain = create_agent(
        ScriptedModel(turns(1, start=6)), [look_up], checkpointer=storage.checkpointer, store=storage.store
    )
    for number in range(6):
        ask(with_us, f"Where is order {number}? " * 5)
    ask(plain, "Where is order 6? " * 5)

    for number in range(7, 13):
        values = ask(with_us, f"Where is order {number}? " * 5)

    messages = whole(storage, values)
    assert [one.text.split("?")[0] for one in messages if one.type == "human"] == [
        f"Where is order {number}" for number in range(13)
    ]


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_fork_with_another_first_question_sees_nothing_of_the_branch_that_it_left(
    storage: Storage, ask: Ask, is_guarded: bool
) -> None:
    model = ScriptedModel(["Yes. " * 100] * 8)
    guarded = agent(storage, model)
    graph = guarded if is_guarded else guarded.graph
    for number in range(7):
        ask(graph, f"Where is order {number}? " * 30)
    begun = [one for one in graph.get_state_history(CONFIG) if one.next == ("model",)][-1]
    (first,) = begun.values["messages"]

    asked = [RemoveMessage(id=first.id), HumanMessage("Where is order 3?")]
    fork = graph.update_state(begun.config, {"messages": asked})["configurable"]
    graph.invoke(None, {"configurable": {**CONFIG["configurable"], **fork}})

    assert [message.text for message in model.prompts[-1] if "order" in message.text] == ["Where is order 3?"]


@pytest.mark.parametrize("state", [None, EverthreadState])
def test_what_is_said_after_the_state_was_emptied_comes_behind_what_left(
    storage: Storage, ask: Ask, state: Any
) -> None:
    graph = agent(storage, ScriptedModel(["Yes. " * 100] * 9), state=state)
    for number in range(7):
        ask(graph, f"Where is order {number}? " * 30)

    ask(graph, [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("A new start.")])
    values = ask(graph, "And on?")

    messages = whole(storage, values)
    assert [one.text for one in messages if one.type == "human"][-2:] == ["A new start.", "And on?"]
    assert len({sequence(one) for one in messages}) == len(messages) > 4


def test_a_message_sent_again_gets_its_answer(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel([*turns(TURNS), AIMessage("never asked")])
    graph = agent(storage, model)
    for number in range(TURNS):
        ask(graph, [HumanMessage(f"Where is order {number}? " * 5, id=f"q{number}")])

    values = ask(graph, [HumanMessage("Where is order 2? " * 5, id="q2")])

    assert values["messages"][-1].text.startswith("Order 2 is packed.")
    assert len(model.prompts) == 2 * TURNS


def test_what_a_user_said_is_known_on_another_thread_after_the_session(storage: Storage, ask: Ask) -> None:
    note = {"text": "Prefers aisle seats.", "keywords": ["seat"]}
    call = AIMessage("", tool_calls=[{"name": "save_memory_note", "args": note, "id": "c"}])
    model = ScriptedModel([call, "Noted.", "Hello."])
    graph = agent(storage, model)
    ask(graph, "I always prefer aisle seats.")
    build_consolidation(storage).invoke({"user_id": "ann", "idle_minutes": 0})

    ask(graph, "hi", {"configurable": {"thread_id": "other", "user_id": "ann"}})

    assert "Prefers aisle seats." in sent(model)[-1][1].text


@pytest.mark.parametrize("policy", ["sliding_window", "head_tail", "token_budget", "salience", "summarize"])
@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_thread_is_like_prompts_fit_and_nothing_is_lost(storage: Storage, policy: str, seed: int) -> None:
    chance = random.Random(seed)
    words = ["order", "paid", "packed", "shelf", "invoice", "boat", "refund", "late", "carrier", "address"]

    def text(most: int) -> str:
        return " ".join(chance.choices(words, k=chance.randint(1, most)))

    @tool
    def search(words: str) -> str:
        """Search the shop."""
        return text(900)

    replies: list[AIMessage] = []
    for turn in range(10):
        for round in range(chance.randint(0, 2)):
            calls = [
                {"name": "search", "args": {"words": text(4)}, "id": f"c{turn}-{round}-{call}"}
                for call in range(chance.randint(1, 3))
            ]
            replies.append(AIMessage(text(20), tool_calls=calls))
        replies.append(AIMessage(text(120)))
    model = ScriptedModel(replies)
    graph = storage.guard(
        create_agent(
            model,
            [search],
            middleware=[
                EverthreadMiddleware(window=4_500, summarizer="offline", policy=policy, tool_output_tokens=400)
            ],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
    )
    asked = [f"{turn}: {text(150)}" for turn in range(10)]

    for question in asked:
        values = graph.invoke({"messages": question}, CONFIG)

    assert max(map(counter_for(None).messages, sent(model))) < 4_500
    messages = whole(storage, values)
    assert len(values["messages"]) < len(messages)  # some have left the prompts
    assert [message.text for message in messages if message.type == "human"] == asked
    assert [message.text for message in messages if message.type == "ai"] == [reply.text for reply in replies]
    calls_made = [call["id"] for reply in replies for call in reply.tool_calls]
    assert [message.tool_call_id for message in messages if isinstance(message, ToolMessage)] == calls_made
    for prompt in sent(model):
        open_calls = [call["id"] for message in prompt if isinstance(message, AIMessage) for call in message.tool_calls]
        assert open_calls == [message.tool_call_id for message in prompt if isinstance(message, ToolMessage)]


def test_a_wrong_dial_of_a_run_is_refused_before_its_message_is_saved(storage: Storage, ask: Ask) -> None:
    graph = agent(storage, ScriptedModel(["Hello."]))
    config = {"configurable": {**CONFIG["configurable"], "everthread": {"windwo": 600}}}

    with pytest.raises(SettingsError, match="did you mean 'window'"):
        ask(graph, "hi", config)

    assert not graph.get_state(CONFIG).values


def test_the_agents_model_is_not_taken_for_a_dial() -> None:
    with pytest.raises(SettingsError, match="`summarizer` names another one"):
        EverthreadMiddleware(model="offline")


def test_the_agents_own_model_summarizes_within_the_window(storage: Storage, ask: Ask) -> None:
    sizes = []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        sizes.append(counter_for(None).messages(messages))
        return AIMessage("The orders are paid, packed and sent. " * 12)

    graph = agent(storage, Answering(reply=reply), summarizer=None)

    for number in range(16):
        ask(graph, f"Where is order {number}? " * 20)

    assert max(sizes) < WINDOW


def test_an_answer_that_is_made_again_stands_on_the_same_tool_round(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel([*turns(TURNS), AIMessage("made again")])
    graph = agent(storage, model)
    for number in range(TURNS):
        ask(graph, f"Where is order {number}? " * 5)
    history = [one for one in graph.get_state_history(CONFIG) if one.next == ("model",)]

    values = dict(graph.invoke(None, {"configurable": {**CONFIG["configurable"], **history[0].config["configurable"]}}))

    assert values["messages"][-1].text == "made again"
    assert [message.type for message in sent(model)[-1][-3:]] == ["human", "ai", "tool"]
    assert f"order {TURNS - 1} line 19" in sent(model)[-1][-1].text
    assert [message.type for message in whole(storage, values)] == ["human", "ai", "tool", "ai"] * TURNS


def test_the_first_branch_goes_on_as_it_was_behind_a_second_one(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel([*turns(6), AIMessage("second branch"), AIMessage("first branch")])
    graph = agent(storage, model)
    for number in range(6):
        ask(graph, f"Where is order {number}? " * 5)
    first = graph.get_state(CONFIG).config["configurable"]
    fork = next(one for one in graph.get_state_history(CONFIG) if one.next == ("model",)).config["configurable"]
    graph.invoke(None, {"configurable": {**CONFIG["configurable"], **fork}})

    ask(graph, "And now?", {"configurable": {**CONFIG["configurable"], **first}})

    texts = [message.text for message in sent(model)[-1]]
    assert any(text.startswith("Order 5 is packed.") for text in texts)
    assert "second branch" not in texts


def called_records(storage: Storage) -> int:
    return len(storage.store.search(namespaces.calls("t"), limit=10_000))


def test_records_of_calls_are_pruned_with_the_checkpoints_and_a_fork_finds_its_own(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "RUNS_BETWEEN", 4)
    model = ScriptedModel([*turns(24), AIMessage("forked")])
    graph = agent(storage, model)
    for number in range(24):
        graph.invoke({"messages": f"Where is order {number}? " * 5}, CONFIG)
    oldest = [one for one in graph.get_state_history(CONFIG) if not one.next][-1]

    graph.invoke(
        {"messages": "And now?"}, {"configurable": {**CONFIG["configurable"], **oldest.config["configurable"]}}
    )

    assert called_records(storage) <= 2 * (10 + 3 * 4)
    ids = [str(one.id) for one in oldest.values["messages"]]
    assert storage.store.get(namespaces.calls("t"), ids[-1]) is not None
    prompt = sent(model)[-1]
    assert any(message.text.startswith("## Conversation") for message in prompt)
    assert prompt[-2].text == oldest.values["messages"][-1].text


def test_without_a_guard_records_are_bounded_and_a_fork_does_without(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_records, "UNGUARDED_TURNS", 4)
    monkeypatch.setattr(call_records, "TURNS_BETWEEN", 4)
    model = ScriptedModel([*turns(24), AIMessage("forked"), AIMessage("and on")])
    graph = agent(storage, model).graph
    for number in range(24):
        graph.invoke({"messages": f"Where is order {number}? " * 5}, CONFIG)
    assert called_records(storage) <= 2 * 8
    early = [one for one in graph.get_state_history(CONFIG) if not one.next][-9]

    fork = {"configurable": {**CONFIG["configurable"], **early.config["configurable"]}}
    values = graph.invoke({"messages": "And now?"}, fork)
    prompt = [message.text for message in sent(model)[-1]]
    assert prompt[2].startswith("Where is order 0?")
    assert prompt[-2].startswith("Order 8 is packed.")
    assert prompt[-1] == "And now?"
    values = graph.invoke({"messages": "Go on."}, CONFIG)

    assert not any(f"order {number}" in message.text for message in sent(model)[-1] for number in range(9, 24))
    places = [sequence(message) for message in thread_messages(storage.store, "t", values["messages"])]
    assert places == [0, *range(40 - len(places) + 1, 40)]


@pytest.mark.parametrize("strikes", range(1, 2 * TURNS, 3))
def test_a_reply_that_was_never_saved_leaves_the_thread_in_order(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, strikes: int
) -> None:
    class Killed(BaseException):
        pass

    model = ScriptedModel(turns(TURNS + 2))
    graph = agent(storage, model)
    put = type(storage.store).batch
    calls = 0

    def batch(store: Any, ops: Any) -> Any:
        nonlocal calls
        ops = list(ops)
        done = put(store, ops)
        if any(getattr(op, "namespace", ())[-1:] == ("calls",) and hasattr(op, "value") for op in ops):
            calls += 1
            if calls == strikes:
                raise Killed
        return done

    monkeypatch.setattr(type(storage.store), "batch", batch)
    asked = []
    for number in range(TURNS):
        text = f"Where is order {number}? " * 5
        asked.append(text)
        try:
            values = graph.invoke({"messages": [HumanMessage(text, id=f"q{number}")]}, CONFIG)
        except Killed:
            values = graph.invoke({"messages": [HumanMessage(text, id=f"q{number}")]}, CONFIG)

    messages = whole(storage, values)
    assert [message.text for message in messages if message.type == "human"] == asked
    results = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    assert results == {call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls}
    for prompt in sent(model):
        calls_in = [call["id"] for message in prompt if isinstance(message, AIMessage) for call in message.tool_calls]
        assert calls_in == [message.tool_call_id for message in prompt if isinstance(message, ToolMessage)]
        assert not any("No result: this call was interrupted" in message.text for message in prompt)


def test_a_client_that_sends_its_whole_history_gets_no_old_summary(storage: Storage, ask: Ask) -> None:
    model = ScriptedModel(turns(TURNS))
    graph = agent(storage, model).graph
    said: list[BaseMessage] = []
    for number in range(TURNS):
        said.append(HumanMessage(f"Where is order {number}? " * 5, id=f"q{number}"))
        values = ask(graph, list(said))

    assert max(map(counter_for(None).messages, sent(model))) < WINDOW
    humans = [message.id for message in whole(storage, values) if message.type == "human"]
    assert humans == [f"q{number}" for number in range(TURNS)]


def test_parallel_results_of_different_lengths_are_all_kept(storage: Storage, ask: Ask) -> None:
    @tool
    def lines(count: int) -> str:
        """Return lines."""
        return "\n".join(f"line {number} of {count}" for number in range(count))

    replies: list[Any] = []
    for turn in range(3):
        for round in range(4):
            calls = [
                {"name": "lines", "args": {"count": count}, "id": f"{turn}-{round}-{count}"} for count in (40, 500)
            ]
            replies.append(AIMessage("", tool_calls=calls))
        replies.append("done")
    graph = storage.guard(
        create_agent(
            ScriptedModel(replies),
            [lines],
            middleware=[EverthreadMiddleware(window=WINDOW, summarizer="offline", tool_output_tokens=300)],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
    )

    for turn in range(3):
        values = ask(graph, f"turn {turn}")

    kept = [message.tool_call_id for message in whole(storage, values) if isinstance(message, ToolMessage)]
    assert kept == [f"{turn}-{round}-{count}" for turn in range(3) for round in range(4) for count in (40, 500)]


def test_a_message_that_another_middleware_takes_out_is_not_sent(storage: Storage, ask: Ask) -> None:
    class Private(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(self._without(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(self._without(request))

        def _without(self, request: Any) -> Any:
            return request.override(messages=[one for one in request.messages if "4111" not in one.text])

    model = ScriptedModel(["Noted.", "Yes."])
    graph = agent(storage, model, Private())
    ask(graph, [HumanMessage("My card is 4111 1111 1111 1111."), HumanMessage("Keep it.")])

    ask(graph, "Go on.")

    assert not any("4111" in message.text for prompt in sent(model) for message in prompt)


def test_another_user_cannot_answer_an_approval_without_a_guard(storage: Storage, ask: Ask) -> None:
    ran = []

    @tool
    def sell(item: str) -> str:
        """Sell something."""
        if interrupt(f"Sell {item}?"):
            ran.append(item)
        return "done"

    call = AIMessage("", tool_calls=[{"name": "sell", "args": {"item": "boat"}, "id": "c"}])
    graph = create_agent(
        ScriptedModel([call, "Sold."]),
        [sell],
        middleware=[EverthreadMiddleware(window=WINDOW)],
        checkpointer=storage.checkpointer,
        store=storage.store,
    )
    ask(graph, "Sell the boat.")

    with pytest.raises(SettingsError, match="another user"):
        graph.invoke(Command(resume=True), {"configurable": {"thread_id": "t", "user_id": "bob"}})

    assert not ran
