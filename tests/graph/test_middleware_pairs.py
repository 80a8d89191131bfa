"""The middleware beside langchain's own, inside them and around them."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ExtendedModelResponse,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRequest,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command
from pydantic import Field

from everthread import EverthreadMiddleware, EverthreadState, open_storage
from everthread.models.scripted import CannedModel, ScriptedModel
from everthread.nodes.thread_view import thread_messages
from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript
from everthread.window.tokens import counter_for

CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "ann"}, "recursion_limit": 100}
WINDOW = 3_000
TURNS = 8
"""Turns of `Shop`: the first ones leave the window in the fifth, and more in the eighth."""

Order = Callable[[Any, Any], Sequence[Any]]
Ask = Callable[..., dict[str, Any]]


@tool
def look_up(number: int) -> str:
    """Look up an order."""
    return "\n".join(f"order {number} line {line}: paid and packed" for line in range(20))


class Shop(CannedModel):
    """Looks each order up, then answers; keeps every prompt."""

    prompts: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "shop"

    def next_reply(self, messages: list[BaseMessage], tools: Any) -> AIMessage:
        if any("Extract" in message.text or "summar" in message.text.lower() for message in messages[-1:]):
            return AIMessage("Orders were looked up.")
        number = len(self.prompts) // 2
        self.prompts.append(list(messages))
        if next(message for message in reversed(messages) if message.id != "reminder").type == "tool":
            return AIMessage("It is packed. " * 20)
        return AIMessage("", tool_calls=[{"name": "look_up", "args": {"number": number}, "id": f"c{number}"}])


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as opened:
        yield opened


APIS = ["invoke", "ainvoke"]
ORDERS = ["theirs outside", "ours outside"]


def asking(api: str) -> Ask:
    def send(graph: Any, payload: Any) -> dict[str, Any]:
        payload = {"messages": [HumanMessage(payload)]} if isinstance(payload, str) else payload
        if api == "ainvoke":
            return dict(asyncio.run(graph.ainvoke(payload, CONFIG)))
        return dict(graph.invoke(payload, CONFIG))

    return send


def ordering(name: str) -> Order:
    return lambda theirs, ours: [theirs, ours] if name == "theirs outside" else [ours, theirs]


@pytest.fixture(scope="module", params=APIS)
def ask(request: pytest.FixtureRequest) -> Ask:
    return asking(request.param)


@pytest.fixture(scope="module", params=ORDERS)
def order(request: pytest.FixtureRequest) -> Order:
    return ordering(request.param)


def ours(**dials: Any) -> EverthreadMiddleware:
    return EverthreadMiddleware(**{"window": WINDOW, "summarizer": "offline", **dials})


def build(storage: Storage, model: Any, middleware: Sequence[Any], **options: Any) -> Any:
    return storage.guard(
        create_agent(
            model,
            options.pop("tools", [look_up]),
            system_prompt="You sell things.",
            middleware=middleware,
            checkpointer=storage.checkpointer,
            store=storage.store,
            **options,
        )
    )


class Reminder(AgentMiddleware):
    """Adds a message of its own to each request."""

    def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages, HumanMessage("Be kind.", id="reminder")]))

    async def awrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        return await handler(request.override(messages=[*request.messages, HumanMessage("Be kind.", id="reminder")]))


STOCK: dict[str, Callable[[], Any]] = {
    "context editing": lambda: ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1_000, keep=2)]),
    "todo list": lambda: TodoListMiddleware(),
    "model retry": lambda: ModelRetryMiddleware(max_retries=1, initial_delay=0),
    "tool retry": lambda: ToolRetryMiddleware(max_retries=1, initial_delay=0),
    "pii": lambda: PIIMiddleware("email", strategy="redact", apply_to_output=True),
    "model fallback": lambda: ModelFallbackMiddleware(Shop()),
    "model call limit": lambda: ModelCallLimitMiddleware(run_limit=10),
    "tool call limit": lambda: ToolCallLimitMiddleware(run_limit=10),
    "approvals": lambda: HumanInTheLoopMiddleware(interrupt_on={"sell": True}),
    "reminder": lambda: Reminder(),
    "summarization": lambda: SummarizationMiddleware(Shop(), trigger=("messages", 14), keep=("messages", 6)),
}

TALKS = [
    (name, api, order)
    for number, name in enumerate(STOCK)
    for api, order in zip(APIS, ORDERS if number % 2 else reversed(ORDERS), strict=True)
]
"""Each of them sync and async, outside and inside; which is with which alternates."""


@dataclass(frozen=True)
class Talk:
    """What a thread left: every prompt, what is in the state, and every message."""

    prompts: list[list[BaseMessage]]
    state: list[BaseMessage]
    messages: list[BaseMessage]


@pytest.fixture(scope="module")
def talk(request: pytest.FixtureRequest) -> Talk:
    """Talk once beside a middleware of langchain's own; more than one test looks at the thread."""
    name, api, order = request.param
    model, ask = Shop(), asking(api)
    with open_storage("sqlite://", lock_timeout_seconds=0) as storage:
        graph = build(storage, model, ordering(order)(STOCK[name](), ours()))
        for number in range(TURNS):
            state = ask(graph, f"Where is order {number}? " * 5)["messages"]
        messages = transcript(storage.store, "t", thread_messages(storage.store, "t", state))
    return Talk(model.prompts, state, messages)


@pytest.mark.parametrize("talk", TALKS, indirect=True, ids="-".join)
def test_beside_langchains_own_every_prompt_fits_and_is_whole(talk: Talk) -> None:
    for index, prompt in enumerate(talk.prompts):
        assert counter_for(None).messages(prompt) < WINDOW
        assert any(message.text.startswith(f"Where is order {index // 2}?") for message in prompt)
        calls = [call["id"] for message in prompt if isinstance(message, AIMessage) for call in message.tool_calls]
        assert calls == [message.tool_call_id for message in prompt if isinstance(message, ToolMessage)]
    assert len(talk.prompts) == 2 * TURNS
    assert talk.state[-1].text.startswith("It is packed.")


@pytest.mark.parametrize("talk", [one for one in TALKS if one[0] != "summarization"], indirect=True, ids="-".join)
def test_beside_langchains_own_nothing_is_lost(talk: Talk) -> None:
    assert [message.type for message in talk.messages] == ["human", "ai", "tool", "ai"] * TURNS
    assert all(line in talk.messages[2].text for line in ("order 0 line 0", "order 0 line 19"))


def test_what_is_redacted_in_a_long_result_is_not_in_the_transcript(storage: Storage, ask: Ask, order: Order) -> None:
    @tool
    def read_mail() -> str:
        """Read the mail."""
        return "ann@example.com has written\n" * 100

    call = {"name": "read_mail", "args": {}, "id": "c"}
    model = ScriptedModel([AIMessage("", tool_calls=[call]), "Read."])
    pii = PIIMiddleware("email", strategy="redact", apply_to_tool_results=True)

    values = ask(build(storage, model, order(pii, ours(tool_output_tokens=100)), tools=[read_mail]), "read")

    result = transcript(storage.store, "t", thread_messages(storage.store, "t", values["messages"]))[2]
    assert "left out" in values["messages"][2].text
    assert result.text.startswith("[REDACTED_EMAIL] has written")
    assert "ann@example.com" not in result.text


def test_an_approval_is_asked_and_answered(storage: Storage, ask: Ask, order: Order) -> None:
    sold = []

    @tool
    def sell(item: str) -> str:
        """Sell something."""
        sold.append(item)
        return f"sold {item}"

    calls = [{"name": "sell", "args": {"item": item}, "id": f"c-{item}"} for item in ("boat", "house")]
    model = ScriptedModel([AIMessage("", tool_calls=calls), "Only the boat is sold."])
    approvals = HumanInTheLoopMiddleware(interrupt_on={"sell": True})
    graph = build(storage, model, order(approvals, ours()), tools=[sell])

    asked = ask(graph, "Sell the boat and the house.")
    values = ask(graph, Command(resume={"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]}))

    assert len(asked["__interrupt__"][0].value["action_requests"]) == 2
    assert (sold, values["messages"][-1].text) == (["boat"], "Only the boat is sold.")


def test_a_failing_model_is_retried_by_its_own_error(storage: Storage, ask: Ask, order: Order) -> None:
    model = ScriptedModel([TimeoutError("slow"), "Here."])
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, retry_on=(TimeoutError,))

    values = ask(build(storage, model, order(retry, ours())), "hi")

    assert values["messages"][-1].text == "Here."


def test_a_fallback_model_gets_the_prompt(storage: Storage, ask: Ask, order: Order) -> None:
    fallback = ScriptedModel(["From the other one."])
    middleware = order(ModelFallbackMiddleware(fallback), ours())

    values = ask(build(storage, ScriptedModel([TimeoutError("down")]), middleware), "hi")

    assert values["messages"][-1].text == "From the other one."
    assert fallback.prompts[0][-1].text == "hi"


def test_a_selected_tool_is_the_only_one_sent(storage: Storage, ask: Ask, order: Order) -> None:
    @tool
    def other() -> str:
        """Do something else."""
        return "else"

    selector = ScriptedModel(
        [AIMessage("", tool_calls=[{"name": "ToolSelectionResponse", "args": {"tools": ["look_up"]}, "id": "s"}])]
    )
    model = ScriptedModel(["Done."])
    middleware = order(LLMToolSelectorMiddleware(model=selector, always_include=["recall_history"]), ours())

    ask(build(storage, model, middleware, tools=[look_up, other]), "hi")

    assert {one["function"]["name"] for one in model.tools[0]} == {"look_up", "recall_history"}


def test_a_reminder_of_another_middleware_is_sent_and_not_kept(storage: Storage, ask: Ask, order: Order) -> None:
    model = ScriptedModel(["One.", "Two."])
    graph = build(storage, model, order(Reminder(), ours()))

    ask(graph, "hi")
    values = ask(graph, "again")

    assert [prompt[-1].text for prompt in model.prompts] == ["Be kind.", "Be kind."]
    assert [message.text for message in values["messages"]] == ["hi", "One.", "again", "Two."]


def test_what_another_middleware_puts_between_messages_stays_there(storage: Storage, ask: Ask) -> None:
    class Remark(AgentMiddleware):
        """Adds a message ahead of all others, behind the first one and behind the last one."""

        def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
            return handler(self._remarked(request))

        async def awrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
            return await handler(self._remarked(request))

        def _remarked(self, request: ModelRequest) -> ModelRequest:
            ahead, middle, behind = (HumanMessage(text) for text in ("ahead", "middle", "behind"))
            first, *rest = request.messages
            return request.override(messages=[ahead, first, middle, *rest, behind])

    model = ScriptedModel(["Yes. " * 200] * 10)
    graph = build(storage, model, [Remark(), ours()], tools=[])

    for number in range(10):
        ask(graph, f"Is order {number} paid? " * 5)

    for number, prompt in enumerate(model.prompts[1:], start=1):
        texts = [message.text for message in prompt[1:] if "<memory_policy>" not in message.text]
        assert texts[0] == "ahead"
        assert texts[1].startswith("Is order 0 paid?")
        assert texts[2] == "middle"
        assert texts[-2].startswith(f"Is order {number} paid?")
        assert texts[-1] == "behind"
    assert len(model.prompts[-1]) < 16


class Hiding(AgentMiddleware):
    """Hides what orders have been in results and what was asked for in calls, in the request alone."""

    def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        return handler(request.override(messages=list(map(self._hidden, request.messages))))

    async def awrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        return await handler(request.override(messages=list(map(self._hidden, request.messages))))

    def _hidden(self, message: Any) -> Any:
        if isinstance(message, ToolMessage):
            return message.model_copy(update={"content": message.text.replace("paid", "HIDDEN")})
        if isinstance(message, AIMessage) and message.tool_calls:
            return message.model_copy(update={"tool_calls": [{**call, "args": {}} for call in message.tool_calls]})
        return message


@pytest.fixture(scope="module")
def hidden_talk(ask: Ask) -> list[list[BaseMessage]]:
    """Return the prompts of a talk in which another middleware ahead of ours hides parts of messages."""
    model = Shop()
    with open_storage("sqlite://", lock_timeout_seconds=0) as storage:
        graph = build(storage, model, [Hiding(), ours(window=3_400)])
        for number in range(TURNS):
            ask(graph, f"Where is order {number}? " * 10)
    return model.prompts


def test_calls_are_sent_as_another_middleware_changed_them(hidden_talk: list[list[BaseMessage]]) -> None:
    replies = [message for prompt in hidden_talk for message in prompt if isinstance(message, AIMessage)]

    assert {str(call["args"]) for reply in replies for call in reply.tool_calls} == {"{}"}


def test_a_result_that_is_cut_shows_nothing_that_another_middleware_hid(hidden_talk: list[list[BaseMessage]]) -> None:
    results = [message for prompt in hidden_talk for message in prompt if isinstance(message, ToolMessage)]

    assert any("left out" in result.text and "HIDDEN" in result.text for result in results)
    assert not [result.text for result in results if "paid" in result.text]


class Rewriting(AgentMiddleware):
    """Returns a reply of its own in the place of the model's, without its id."""

    def wrap_model_call(self, request: ModelRequest, handler: Any) -> AIMessage:
        return self._rewritten(handler(request))

    async def awrap_model_call(self, request: ModelRequest, handler: Any) -> AIMessage:
        return self._rewritten(await handler(request))

    def _rewritten(self, response: Any) -> AIMessage:
        (reply,) = response.result
        return AIMessage(reply.text.upper(), tool_calls=reply.tool_calls)


def test_a_reply_that_another_middleware_writes_again_keeps_the_thread_in_order(
    storage: Storage, ask: Ask, order: Order
) -> None:
    model = Shop()
    graph = build(storage, model, order(Rewriting(), ours()))

    for number in range(TURNS):
        values = ask(graph, f"Where is order {number}? " * 5)

    messages = transcript(storage.store, "t", thread_messages(storage.store, "t", values["messages"]))
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"] * TURNS
    assert {message.text for message in messages[3::4]} == {"IT IS PACKED. " * 20}
    session = storage.store.get(namespaces.SESSIONS, "t")
    assert session is not None
    assert session.value["turns"] == TURNS
    assert any(message.text.startswith("## Conversation") for message in model.prompts[-1])


class Inserting(AgentMiddleware):
    """Puts a message behind the first turn into the state, once, as those do that write all messages again."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        messages = state["messages"]
        if len(messages) != 5:
            return None
        inserted = HumanMessage("By the way.", id="inserted")
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *messages[:2], inserted, *messages[2:]]}


@pytest.mark.parametrize("state", [None, EverthreadState])
def test_a_message_put_into_the_middle_of_the_state_has_its_place_by_when_it_came(
    storage: Storage, ask: Ask, state: Any
) -> None:
    model = ScriptedModel(["One.", "Two.", "Three."])
    graph = build(storage, model, [Inserting(), ours()], tools=[], state_schema=state)
    for question in ("first", "second", "third"):
        values = ask(graph, question)

    assert [message.text for message in model.prompts[-1][2:]] == [
        *("first", "One.", "By the way.", "second", "Two.", "third")
    ]
    messages = transcript(storage.store, "t", thread_messages(storage.store, "t", values["messages"]))
    assert [message.text for message in messages] == [
        "first",
        "One.",
        "second",
        "Two.",
        "By the way.",
        "third",
        "Three.",
    ]


class Forgetful(AgentMiddleware):
    """Removes the second message from the state in the step of the call, as ours does once it does not fit."""

    def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
        left = [RemoveMessage(id=str(message.id)) for message in request.state["messages"][1:2]]
        return ExtendedModelResponse(handler(request), Command(update={"messages": left}) if left else None)


@pytest.mark.parametrize("state", [None, EverthreadState])
def test_two_middlewares_may_remove_one_message_from_a_delta_channel_only(
    storage: Storage, order: Order, state: Any
) -> None:
    graph = build(storage, ScriptedModel(["Yes. " * 300] * 9), order(Forgetful(), ours()), tools=[], state_schema=state)

    def talk() -> None:
        for number in range(9):
            graph.invoke({"messages": f"Is order {number} paid? " * 40}, CONFIG)

    if state is None:
        # LangGraph's own reducer refuses to remove what is gone.
        with pytest.raises(ValueError, match="doesn't exist"):
            talk()
    else:
        talk()
        assert len(graph.get_state(CONFIG).values["messages"]) < 12
