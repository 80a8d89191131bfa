"""A fork by time travel never sees what the branch it left said (invariant 12)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import Field

from everthread import Context, build_graph, open_storage
from everthread.memory.recall import Question
from everthread.models.scripted import CannedModel, Tools
from everthread.state import Agent, namespaces
from everthread.storage.open import Storage
from everthread.storage.recall import candidates, search_of

CONFIG: Any = {"configurable": {"thread_id": "t"}}
AGENT = Agent(name="test", title="Test", instructions="Be brief.")
DIALS: list[dict[str, Any]] = [
    {"context_limit": 2, "keep_last_turns": 1},
    {"policy": "sliding_window", "keep_last_turns": 1},
    {"policy": "token_budget", "window": 1_500, "max_output_tokens": 100},
]
"""Dials under which messages soon leave the working set, with and without a summary."""


class Counting(CannedModel):
    """Answers every question with its word and a number of its own."""

    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    answers: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "counting"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        self.prompts.append(messages)
        asked = [words(one.text) for one in messages if re.match(r"word\d+x ", str(one.text))]
        self.answers.append(f"answer{len(self.answers)}y")
        return AIMessage(f"{asked[-1][0]} {self.answers[-1]} " + "fine " * 40)


def words(text: Any) -> list[str]:
    """Return the words that tell one message from any other."""
    return re.findall(r"word\d+x|answer\d+y|edit\d+z", str(text))


@dataclass
class Thread:
    """A thread and its plain model: every message of each branch, as words."""

    storage: Storage
    dials: dict[str, Any]
    model: Counting = field(default_factory=Counting)
    heads: list[tuple[Any, list[str]]] = field(default_factory=list)
    """Where each turn ended, and all that was said up to there."""

    def __post_init__(self) -> None:
        self.graph: Any = build_graph(AGENT, model=self.model, summarizer="offline", storage=self.storage)
        self.context = Context(keep_checkpoints=None, **self.dials)

    def ask(self, place: int) -> None:
        """Ask something where a turn ended, the newest or any other."""
        config, before = self.heads[place % len(self.heads)] if self.heads else (CONFIG, [])
        told = f"word{len(self.heads)}x"
        self.graph.invoke({"messages": [HumanMessage(f"{told} " + "long " * 40)]}, config, context=self.context)
        self._ended([*before, told])

    def answer_again(self, place: int) -> None:
        """Let the model answer an old question again, which brings no new message."""
        history = [state for state in self.graph.get_state_history(CONFIG) if state.next == ("model",)]
        if history:
            state = history[place % len(history)]
            asked = words(state.values["messages"][-1].text)[0]
            before = next(said[: said.index(asked) + 1] for _, said in self.heads if asked in said)
            self.graph.invoke(None, state.config, context=self.context)
            self._ended(before)

    def edit(self, place: int) -> None:
        """Put a turn behind an old one by hand."""
        config, before = self.heads[place % len(self.heads)]
        told = [f"word{len(self.heads)}x", f"edit{len(self.heads)}z"]
        turn = [HumanMessage(f"{told[0]} by hand"), AIMessage(f"{told[0]} {told[1]}")]
        self.graph.update_state(config, {"messages": turn}, as_node="summarize")
        self.heads.append((self.graph.get_state(CONFIG).config, [*before, *told]))

    def _ended(self, before: list[str]) -> None:
        self.heads.append((self.graph.get_state(CONFIG).config, [*before, self.model.answers[-1]]))

    def strangers(self) -> Iterator[str]:
        """Name every place of the newest branch that has words of another one, or not all of its own."""
        said = self.heads[-1][1]
        state = self.graph.get_state(CONFIG).values["messages"]
        shown = [word for one in state for word in words(one.text)[-1:]]
        if shown != [word for word in said if word in shown]:
            yield f"the state has {shown} of {said}"
        prompts, self.model.prompts[:] = self.model.prompts[-1:], []
        sent = {word for prompt in prompts for one in prompt for word in words(one.text)}
        if not sent <= set(said):
            yield f"the prompt has {sorted(sent - set(said))}"
        session = self.storage.store.get(namespaces.SESSIONS, "t")
        search = search_of(self.storage.store, "t", state, session.value["shared"] if session else None)
        asked = Question.read(" ".join(["long fine hand", *said]), date(2026, 1, 1))
        found = {word for passage in candidates(search, asked)[0].values() for word in words(passage.text)[-1:]}
        if not found <= set(said) or not set(said) <= {*found, *shown}:
            yield f"recall finds {sorted(found)} beside {shown} of {said}"


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "ask", "fork", "answer_again", "edit"]), st.integers(0, 30)),
    min_size=2,
    max_size=10,
)


@pytest.mark.slow
@pytest.mark.parametrize("dials", DIALS, ids=lambda dials: str(next(iter(dials))))
@settings(max_examples=6)
@given(steps=STEPS)
def test_every_branch_has_its_own_messages_and_no_others(dials: dict[str, Any], steps: list[tuple[str, int]]) -> None:
    with open_storage("sqlite://") as storage:
        thread = Thread(storage, dials)
        thread.ask(-1)
        for kind, place in steps:
            if kind in ("ask", "fork"):
                thread.ask(place if kind == "fork" else -1)
            else:
                getattr(thread, kind)(place)

            assert list(thread.strangers()) == []


def test_an_old_answer_is_not_recalled_where_the_question_was_answered_again() -> None:
    with open_storage("sqlite://") as storage:
        thread = Thread(storage, DIALS[1])
        for _ in range(4):
            thread.ask(-1)
        thread.answer_again(-1)
        for _ in range(3):
            thread.ask(-1)

        assert list(thread.strangers()) == []


@pytest.mark.parametrize("kept", [0, 2])
def test_a_branch_keeps_what_it_archived_when_an_edit_removes_the_rest(kept: int) -> None:
    with open_storage("sqlite://") as storage:
        emptied(storage, kept)
        view = storage.thread("t")

        left = {words(one.text)[-1] for one in view.messages if str(one.id) in view.left_ids}

        assert left == {"word1x", "answer1y"}  # the first branch archived no more


@pytest.mark.parametrize("kept", [0, 2])
def test_a_branch_recalls_what_it_archived_after_an_edit_removed_the_rest(kept: int) -> None:
    with open_storage("sqlite://") as storage:
        thread = emptied(storage, kept)
        thread.graph.invoke({"messages": "word99x and now"}, CONFIG, context=thread.context)
        session = storage.store.get(namespaces.SESSIONS, "t")
        assert session is not None
        here = thread.graph.get_state(CONFIG).values["messages"]

        search = search_of(storage.store, "t", here, session.value["shared"])
        found, _ = candidates(search, Question.read("long fine", date(2026, 1, 1)))

        assert {words(one.text)[-1] for one in found.values()} >= {"word4x", "answer4y", "word5x", "answer5y"}


def emptied(storage: Storage, kept: int) -> Thread:
    """Return a thread that left a branch, and of whose messages an edit has removed all but the last."""
    thread = Thread(storage, {"policy": "sliding_window", "keep_last_turns": 2})
    for _ in range(4):
        thread.ask(-1)
    thread.ask(0)
    for _ in range(4):
        thread.ask(-1)
    here = thread.graph.get_state(CONFIG).values["messages"]
    stays = here[len(here) - kept :]
    thread.graph.update_state(CONFIG, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *stays]})
    return thread


def test_an_edit_on_a_branch_holds_though_its_message_was_archived_since() -> None:
    with open_storage("sqlite://") as storage:
        thread = Thread(storage, {"policy": "sliding_window", "keep_last_turns": 2})
        for _ in range(6):
            thread.ask(-1)
        branch = thread.heads[1][0]
        edited = thread.graph.get_state(branch).values["messages"][2]

        thread.graph.update_state(branch, {"messages": [HumanMessage("edit1z by hand", id=edited.id)]})
        thread.graph.invoke({"messages": "word9x"}, CONFIG, context=thread.context)

        assert "edit1z by hand" in [message.text for message in thread.model.prompts[-1]]


async def test_an_async_run_from_an_older_checkpoint_notes_what_the_branches_share(tmp_path: Any) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph: Any = build_graph(AGENT, model=Counting(), summarizer="offline", storage=storage)
        await graph.ainvoke({"messages": "word1x one"}, CONFIG)
        first = (await graph.aget_state(CONFIG)).config
        await graph.ainvoke({"messages": "word2x two"}, CONFIG)
        await graph.aupdate_state(first, {"moved": ""}, as_node="summarize")
        session = await storage.store.aget(namespaces.SESSIONS, "t")

    assert session is not None
    assert session.value["shared"] == 1


def test_going_on_from_the_newest_checkpoint_leaves_no_branch() -> None:
    with open_storage("sqlite://") as storage:
        thread = Thread(storage, {})
        thread.ask(-1)
        thread.ask(-1)

        session = storage.store.get(namespaces.SESSIONS, "t")

    assert session is not None
    assert session.value["shared"] is None


@pytest.mark.parametrize(("asked", "shared"), [("mine", None), ("another", 1)])
def test_a_turn_that_begins_again_because_its_beginning_was_not_saved_is_no_fork(
    asked: str, shared: int | None
) -> None:
    with open_storage("sqlite://") as storage:
        thread = Thread(storage, {})
        thread.ask(-1)
        question = {"messages": [HumanMessage("and then?", id="mine")]}
        parts = thread.graph.stream(question, CONFIG, stream_mode="checkpoints", durability="sync")
        next(parts)
        parts.close()
        # What the run writes to the store just before it dies.
        record = storage.store.get(namespaces.SESSIONS, "t")
        assert record is not None
        storage.store.put(namespaces.SESSIONS, "t", {**record.value, "turns": 2, "question": asked}, index=False)

        thread.graph.invoke(None, CONFIG)

        session = storage.store.get(namespaces.SESSIONS, "t")

    assert session is not None
    assert session.value["shared"] == shared
