"""An agent with the middleware through whatever a thread goes through, at random.

Forks by time travel, processes that die ahead of a checkpoint or right behind what the middleware has saved, models
that fail with and without a retry around us, replies that another middleware writes again, and windows that change.
"""

import asyncio
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import PrivateAttr

from everthread import EverthreadMiddleware, EverthreadState, open_storage
from everthread.models.scripted import CannedModel
from everthread.nodes.thread_view import thread_messages
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript
from everthread.window.tokens import counter_for

STEPS = 12
WORDS = ("order", "paid", "packed", "shelf", "invoice", "boat", "refund", "late", "carrier", "address")


class Killed(BaseException):
    """The process is gone."""


class Customer:
    """What has been said so far, each text with a tag of its own, and what happens next."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tags: set[str] = set()
        self.branch: set[str] = set()
        """Tags of the branch that the thread is on."""
        self.window = 4_000
        self.question = ""
        self.rounds = self.failures = 0

    def text(self, kind: str, most: int) -> str:
        tag = f"[{kind}{len(self.tags)}]"
        self.tags.add(tag)
        self.branch.add(tag)
        return f"{tag} {' '.join(self.chance.choices(WORDS, k=self.chance.randint(1, most)))}"


class Clerk(CannedModel):
    """Looks things up, fails when it is told to, and checks every prompt."""

    _customer: Customer = PrivateAttr()

    def __init__(self, customer: Customer) -> None:
        super().__init__()
        self._customer = customer

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def next_reply(self, messages: list[BaseMessage], tools: Any) -> AIMessage:
        customer = self._customer
        shown = set(re.findall(r"\[[a-z]\d+\]", "\n".join(message.text for message in messages)))
        called = [call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
        assert counter_for(None).messages(messages) <= customer.window
        assert customer.question in shown
        assert shown <= customer.branch
        assert called == [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
        if customer.failures:
            customer.failures -= 1
            raise TimeoutError("slow")
        if not customer.rounds:
            return AIMessage(customer.text("a", 150))
        customer.rounds -= 1
        text, count = customer.text("a", 5), customer.chance.randint(1, 3)
        calls = [{"name": "look", "args": {"number": number}, "id": f"{text[:6]}-{number}"} for number in range(count)]
        return AIMessage(text, tool_calls=calls)


class Rewriting(AgentMiddleware[Any, Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> AIMessage:
        return self._again(handler(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> AIMessage:
        return self._again(await handler(request))

    def _again(self, response: Any) -> AIMessage:
        (reply,) = response.result
        return AIMessage(reply.content, tool_calls=reply.tool_calls)


@contextmanager
def killing(storage: Storage, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the process at a checkpoint, or behind the record of a call; as often as not, never."""
    with monkeypatch.context() as patch:
        store, saver, left = type(storage.store), type(storage.checkpointer), [chance.randint(1, 4)]
        batch, put = store.batch, saver.put

        def strike() -> None:
            left[0] -= 1
            if not left[0]:
                raise Killed

        def struck_batch(self: Any, ops: Any) -> Any:
            ops = list(ops)
            done = batch(self, ops)
            if any(hasattr(op, "value") and op.namespace[-1] == "calls" for op in ops):
                strike()
            return done

        def struck_put(self: Any, *args: Any) -> Any:
            strike()
            return put(self, *args)

        match chance.choice(["store", "checkpoint", "never", "never"]):
            case "store":
                patch.setattr(store, "batch", struck_batch)
            case "checkpoint":
                patch.setattr(saver, "put", struck_put)
        yield


def agent(storage: Storage, customer: Customer) -> Any:
    @tool
    def look(number: int) -> str:
        """Look something up."""
        return customer.text("r", customer.chance.choice([20, 300, 2_000]))

    retry = ModelRetryMiddleware(max_retries=1, retry_on=(TimeoutError,), on_failure="error", initial_delay=0)
    theirs: list[Any] = [Rewriting(), retry]
    ours = EverthreadMiddleware(window=customer.window, summarizer="offline", tool_output_tokens=400)
    middleware = [*customer.chance.sample(theirs, customer.chance.randint(0, 2)), ours]
    made = create_agent(
        Clerk(customer),
        [look],
        middleware=middleware,
        checkpointer=storage.checkpointer,
        store=storage.store,
        state_schema=customer.chance.choice([None, EverthreadState]),
    )
    return storage.guard(made)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_prompts_stay_whole_and_branches_apart(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    customer = Customer(seed)
    chance = customer.chance
    ends: list[tuple[str, set[str], list[str]]] = []
    asked: list[str] = []
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=1) as storage:
        graph = agent(storage, customer)
        for _ in range(STEPS):
            customer.window = chance.choice([3_000, 4_000, 8_000])
            thread = {"thread_id": "t", "user_id": "ann", "everthread": {"window": customer.window}}
            here = dict(thread)
            if ends and chance.random() < 0.2:
                here["checkpoint_id"], branch, before = chance.choice(ends[-5:])
                customer.branch, asked = set(branch), list(before)
            text = customer.text("q", 120)
            customer.question = text.split()[0]
            customer.rounds, customer.failures = chance.choice([0, 1, 1, 2]), int(chance.random() < 0.1)
            payload = {"messages": [HumanMessage(text, id=customer.question)]}
            try:
                # A fork that dies ahead of its first checkpoint has left nothing that could go on.
                with killing(storage, chance, monkeypatch) if here == thread else nullcontext():
                    graph.invoke(payload, {"configurable": here})
            except (Killed, TimeoutError):
                # Sent again, as a client would: the turn goes on where it was.
                asyncio.run(graph.ainvoke(payload, {"configurable": thread}))
            asked.append(customer.question)
            snapshot = graph.get_state({"configurable": {"thread_id": "t"}})
            ends.append((snapshot.config["configurable"]["checkpoint_id"], set(customer.branch), list(asked)))

            assert not snapshot.next
            messages = thread_messages(storage.store, "t", snapshot.values["messages"])
            kept = transcript(storage.store, "t", messages)
            questions = [message.text.split()[0] for message in kept if message.type == "human"]
            assert [question for question in questions if question in asked] == asked
            assert len(set(questions)) == len(questions)
