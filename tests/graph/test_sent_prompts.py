"""`prompt_at` gives what a call sent, byte for byte, whatever has happened to the thread since."""

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import Field

from everthread import (
    Context,
    EverthreadMiddleware,
    EverthreadState,
    aprompt_at,
    build_graph,
    calls,
    open_storage,
    prompt_at,
    sent_prompts,
    set_profile,
)
from everthread.errors import EverthreadError, NotFoundError, SettingsError
from everthread.ledger import events, retention
from everthread.ledger.recipes import calls_of
from everthread.models.scripted import CannedModel, ScriptedModel, Tools
from everthread.state import Agent, namespaces
from everthread.state.context import POLICIES
from everthread.state.marks import MARK

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of table {n} has the reference RT{n}-{number}" for number in range(n))


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[look])


class Killed(BaseException):
    """The process is gone."""


class Recording(CannedModel):
    """Keeps what each call sent, by its number in the ledger, and replies by chance."""

    storage: Any = None
    rng: Any = None
    rounds: int = 0
    fails: str = ""
    sent: dict[int, tuple[list[Any], list[str]]] = Field(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "recording"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        number = len(calls_of(events(self.storage.store, "t")))
        self.sent[number] = list(map(as_sent, messages)), [one["function"]["name"] for one in tools]
        fails, self.fails = self.fails, ""
        if fails == "kill":
            raise Killed
        if fails == "overflow":
            raise ValueError("prompt is too long: context_length_exceeded")
        if self.rounds > 0 and tools:
            self.rounds -= 1
            wanted = range(self.rng.choice([1, 1, 2]))
            return AIMessage(
                "", tool_calls=[{"name": "look", "args": {"n": self.rng.choice([1, 5, 60])}, "id": ""} for _ in wanted]
            )
        return AIMessage(f"answer {self.rng.randint(0, 3)} " + "fine " * self.rng.choice([1, 30]))


def as_sent(message: BaseMessage) -> dict[str, Any]:
    """Return all of a message but our marks, which no provider is sent."""
    value = message.model_dump()
    value["additional_kwargs"] = {key: one for key, one in value["additional_kwargs"].items() if key != MARK}
    return value


class Thread:
    """A thread and what its calls have sent: of our own graph, or of somebody's agent with the middleware."""

    def __init__(self, path: Path, policy: str, seed: int, *, is_own: bool = True) -> None:
        self.path, self.rng, self.is_own = path, random.Random(seed), is_own
        self.policy, self.asked = policy, 0
        self.model = Recording(rng=self.rng)
        self.open()

    def open(self) -> None:
        self.storage = open_storage(f"sqlite:///{self.path}")
        self.model.storage = self.storage
        if self.is_own:
            self.graph = build_graph(AGENT, model=self.model, summarizer="offline", storage=self.storage)
            return
        # Every other one with a channel that holds what is new instead of all messages.
        schema: Any = {"state_schema": EverthreadState} if self.rng.random() < 0.5 else {}
        middleware = EverthreadMiddleware(summarizer="offline", **self.dials)
        saved: Any = {"checkpointer": self.storage.checkpointer, "store": self.storage.store}
        agent = create_agent(self.model, [look], middleware=[middleware], system_prompt="Be brief.", **saved, **schema)
        self.graph = self.storage.guard(agent)

    @property
    def dials(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "window": 1_600 if self.is_own else 2_400,
            "max_output_tokens": 100,
            "keep_last_turns": 1,
            "keep_last_messages": 4,
            "tool_output_tokens": 200,
            "keep_checkpoints": None,
        }

    def run(self, given: Any, config: Any = CONFIG, *, is_async: bool = False) -> None:
        is_marked = self.rng.random() < 0.2
        more: dict[str, Any] = {}
        if self.is_own:
            more["context"] = Context(**self.dials, prompt_cache=is_marked)
        else:
            user = {"user_id": "local", "everthread": {"prompt_cache": is_marked}}
            config = {"configurable": {**config["configurable"], **user}}
        try:
            if is_async:
                asyncio.run(self.graph.ainvoke(given, config, **more))
            else:
                self.graph.invoke(given, config, **more)
        except (Killed, EverthreadError, ValueError):
            pass

    def ask(self, *, is_async: bool = False, text: str | None = None, config: Any = CONFIG) -> None:
        self.asked += 1
        self.model.rounds = self.rng.choice([0, 0, 1, 3])
        about = self.rng.choice(["the trip", "RT5-3", "what did I say at the beginning?"])
        words = text or f"question {self.asked % 4} about {about} " + "word " * self.rng.choice([1, 60])
        self.last = HumanMessage(words, id=f"q{self.asked}")
        self.run({"messages": [self.last]}, config, is_async=is_async)

    def fork(self) -> None:
        states = [one for one in self.graph.get_state_history(CONFIG) if one.values.get("messages")]
        if states:
            state = self.rng.choice(states)
            if self.rng.random() < 0.3:
                self.run(None, state.config)
            else:
                self.ask(config=state.config)

    def act(self, action: str) -> None:
        if action in ("kill", "overflow"):
            self.model.fails = action
            self.ask()
            self.model.fails = ""
        elif action == "ask":
            self.ask()
        elif action == "aask":
            self.ask(is_async=True)
        elif action == "fork":
            self.fork()
        elif action == "resend" and self.asked:
            self.run({"messages": [self.last]})
        elif action == "edit" and self.asked:
            self.model.fails = "kill"
            self.ask()
            self.run({"messages": [HumanMessage("other words", id=self.last.id)]})
        elif action == "profile":
            set_profile(self.storage, "local", {"seat": self.rng.choice(["aisle", "window"])})
        elif action == "prune":
            self.storage.checkpointer.prune_turns("t", 1)
        elif action == "restart":
            self.storage.close()
            self.open()

    def check(self) -> None:
        for sent in sent_prompts(self.storage, "t") if self.model.sent else ():
            if sent.number not in self.model.sent:
                continue
            messages, tools = self.model.sent[sent.number]
            assert (sent.problems, list(sent.tools or ())) == ((), tools)
            assert list(map(as_sent, sent.messages)) == messages


ACTIONS = ["ask", "ask", "aask", "kill", "overflow", "fork", "resend", "edit", "profile", "prune", "restart"]


@pytest.mark.slow
@pytest.mark.parametrize("is_own", [True, False], ids=["graph", "middleware"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=3)
@given(
    actions=st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=10),
    seed=st.integers(0, 1_000),
)
def test_every_prompt_can_be_made_again(is_own: bool, policy: str, actions: Sequence[str], seed: int) -> None:
    with TemporaryDirectory() as folder:
        thread = Thread(Path(folder, "a.db"), policy, seed, is_own=is_own)
        for action in actions:
            thread.act(action)
        thread.storage.close()
        thread.open()
        thread.check()
        thread.storage.close()


@pytest.fixture
def thread(tmp_path: Path) -> Iterator[Thread]:
    made = Thread(tmp_path / "a.db", "summarize", 7)
    yield made
    made.storage.close()


@pytest.mark.parametrize("is_own", [True, False], ids=["graph", "middleware"])
def test_a_prompt_can_be_made_again_after_all_that_happens_to_threads(is_own: bool, tmp_path: Path) -> None:
    thread = Thread(tmp_path / "a.db", "summarize", 7, is_own=is_own)
    for action in (*ACTIONS, *ACTIONS):
        thread.act(action)

    thread.check()

    assert len(thread.model.sent) > 20
    thread.storage.close()


async def test_the_async_twin_gives_the_same(thread: Thread) -> None:
    thread.ask()

    assert await aprompt_at(thread.storage, "t", 1) == prompt_at(thread.storage, "t", 1)


def test_a_prompt_can_be_made_again_after_an_input_emptied_the_state() -> None:
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["One.", "Two."]), storage=storage)
        graph.invoke({"messages": "first"}, CONFIG)

        graph.invoke({"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("second")]}, CONFIG)

        assert [one.text for one in prompt_at(storage, "t", 1).messages[1:]] == ["first"]


def test_a_call_names_its_parent_on_its_branch(thread: Thread) -> None:
    for _ in range(3):
        thread.model.rounds = 0
        thread.run({"messages": f"question {thread.asked}"})
    first = [one for one in thread.graph.get_state_history(CONFIG) if one.values.get("turns") == 1 and not one.next]
    thread.run({"messages": "another question"}, first[0].config)

    assert [sent.parent for sent in sent_prompts(thread.storage, "t")] == [None, 1, 2, 1]


def test_a_call_is_found_by_its_number_from_both_ends_and_by_its_name(thread: Thread) -> None:
    thread.ask()
    thread.ask()

    first = prompt_at(thread.storage, "t", 1)

    assert prompt_at(thread.storage, "t", first.name) == first
    assert prompt_at(thread.storage, "t").number == len(sent_prompts(thread.storage, "t"))


@pytest.mark.parametrize("call", [0, 99, -99, "unknown"])
def test_a_call_that_is_not_there_is_refused(thread: Thread, call: int | str) -> None:
    thread.ask()

    with pytest.raises(NotFoundError, match="has no call"):
        prompt_at(thread.storage, "t", call)


@pytest.mark.parametrize("call", [None, 1.0])
def test_what_is_neither_number_nor_name_of_a_call_is_refused(thread: Thread, call: Any) -> None:
    thread.ask()

    with pytest.raises(SettingsError, match="a call is its number or its name"):
        prompt_at(thread.storage, "t", call)


def test_a_message_that_another_program_changed_is_named_and_not_shown(thread: Thread) -> None:
    thread.run({"messages": [HumanMessage("the old words", id="q")]})
    # Not through the guard, which would keep the old ones.
    thread.graph.graph.update_state(CONFIG, {"messages": [HumanMessage("the new words", id="q")]})

    sent = prompt_at(thread.storage, "t", 1)

    assert sent.problems == ("q: its words were changed since",)
    assert [part.form for part in sent.parts or ()] == ["system", "missing"]


def test_a_call_of_an_older_version_is_named(thread: Thread) -> None:
    thread.ask()
    rows = thread.storage.store.search(namespaces.ledger("t"), filter={"event": "prompt_assembled"})
    first = min(rows, key=lambda row: row.key)  # a search orders by the second of the last change
    value = {name: one for name, one in first.value.items() if name != "recipe"}
    thread.storage.store.put(namespaces.ledger("t"), first.key, value, index=False)

    sent = prompt_at(thread.storage, "t", 1)

    assert (sent.parts, sent.problems) == (None, ("an older version made this call and kept no recipe",))


def test_a_text_that_cannot_be_read_is_named(thread: Thread) -> None:
    thread.ask()
    name = next(part.id for part in prompt_at(thread.storage, "t", 1).parts or () if part.form == "system")
    thread.storage.store.put(namespaces.prompts("t"), name, {"message": {"type": "none"}}, index=False)

    assert prompt_at(thread.storage, "t", 1).problems == (f"{name}: its record cannot be read",)


class Reminding(AgentMiddleware):
    """Adds a message to every prompt."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages, HumanMessage("be kind", id="reminder")]))


@pytest.mark.parametrize("others", [[], [Reminding()]], ids=["alone", "with another"])
def test_a_prompt_tells_whether_other_middlewares_changed_it(thread: Thread, others: list[Any]) -> None:
    middleware = [*others, EverthreadMiddleware(summarizer="offline")]
    saved: Any = {"checkpointer": thread.storage.checkpointer, "store": thread.storage.store}
    agent = create_agent(thread.model, [look], middleware=middleware, **saved)
    config: Any = {"configurable": {"thread_id": "t", "user_id": "local"}}
    thread.storage.guard(agent).invoke({"messages": "hello"}, config)

    assert prompt_at(thread.storage, "t", 1).is_altered == bool(others)


def test_retention_takes_texts_only_once_no_recipe_can_name_them(thread: Thread) -> None:
    for place in range(3):
        set_profile(thread.storage, "local", {"seat": f"row {place}"})
        thread.run({"messages": f"question {place}"})
    texts = len(thread.storage.store.search(namespaces.prompts("t"), limit=100))

    retention.prune(thread.storage.store, "t", 2)
    assert len(thread.storage.store.search(namespaces.prompts("t"), limit=100)) == texts
    assert prompt_at(thread.storage, "t", 1).is_exact

    retention.prune(thread.storage.store, "t", 1_000)
    assert not thread.storage.store.search(namespaces.prompts("t"), limit=100)


def test_most_recipes_are_short(thread: Thread) -> None:
    for place in range(12):
        thread.run({"messages": f"question {place}"})

    sizes = [len(json.dumps(call.event.recipe)) for call in calls_of(events(thread.storage.store, "t"))]

    assert median(sizes) <= 250


def test_a_call_is_found_by_its_turn_without_the_whole_ledger(storage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_TURNS_BACK", 3)
    graph = build_graph(AGENT, model=ScriptedModel(["Fine."] * 9), summarizer="offline", storage=storage)
    for number in range(9):
        graph.invoke({"messages": f"Question {number}."}, CONFIG, context=Context(window=3_000))

    for whole in calls.sent_prompts(storage, "t"):
        sent, before = calls.prompt_in_turn(storage, "t", whole.name, whole.event.turn)
        assert sent.messages == whole.messages
        assert (before is None) == (whole.parent is None)
    with pytest.raises(NotFoundError):
        calls.prompt_in_turn(storage, "t", "none", 9)


def test_a_thread_that_waits_for_an_approval_is_read_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    asks = AIMessage("", tool_calls=[{"name": "look", "args": {"n": 1}, "id": "c1"}])
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ScriptedModel([asks]), storage=storage)
        graph.invoke({"messages": "Look."}, CONFIG, context=Context("u"), interrupt_before=["tools"])
        caplog.clear()

        assert prompt_at(storage, "t", 1).is_exact

    assert not caplog.records
