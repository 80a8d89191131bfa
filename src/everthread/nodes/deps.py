"""What nodes need beside the state: the agent, its models and tools, and the store, thread and dials of the run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime, ServerInfo
from langgraph.store.base import BaseStore

from everthread.errors import SettingsError
from everthread.memory.rules import BUILT_IN, Rules
from everthread.models.identity import provider, tokenizer_name
from everthread.models.wrapped import ChatModel, input_limit, rewrapped, takes_cache_control
from everthread.nodes.response_format import ResponseFormat
from everthread.spend.prices import PriceList
from everthread.state import Agent, Context, namespaces
from everthread.state.context import named_dials, named_user
from everthread.window.budget import UNKNOWN_WINDOW
from everthread.window.prompt_cache import SLOTS
from everthread.window.tokens import TokenCounter, counter_for

Lock = Callable[[str], AbstractContextManager[None]]
"""Gives the block that holds a key, as `storage.locks.hold` does: nobody else is inside one of the same key."""


class BoundModel(NamedTuple):
    """A model as a prompt is sent to it."""

    chat: Runnable[Any, Any]
    tool_tokens: int
    """Of all schemas."""
    tool_names: Sequence[str]
    """In order."""


@dataclass(frozen=True)
class ModelWithTools:
    """A chat model and the tools that are bound to it."""

    chat: ChatModel
    tools: Sequence[BaseTool]
    """The agent's own."""
    readers: Sequence[BaseTool]
    """Tools that read what the prompt no longer shows; bound once something has left it."""
    name: str
    """Such as `gpt-5-mini`; `unknown` when it has none."""
    provider: str
    """Such as `openai`."""
    counter: TokenCounter
    response: ResponseFormat | None = field(default=None, kw_only=True)
    """Schema of the answers; None: they are text."""
    is_altered: bool = field(default=False, kw_only=True)
    """Something else is sent than the model node has put together, as other middlewares may do."""

    @classmethod
    def of(cls, chat: ChatModel, tools: Sequence[BaseTool], readers: Sequence[BaseTool], **more: Any) -> Self:
        """Look up what a model is called and how its tokens are counted; `more` are the other fields."""
        name = tokenizer_name(chat)
        return cls(chat, tools, readers, name or "unknown", provider(chat), counter_for(name), **more)

    def bound(self, *, reads_back: bool) -> BoundModel:
        """Return the model with its tools bound."""
        return self._with_readers if reads_back else self._without_readers

    # Once per graph and not once per call: converting and counting schemas takes a tenth of a turn.
    @cached_property
    def _with_readers(self) -> BoundModel:
        return self._bind([*self.tools, *self.readers])

    @cached_property
    def _without_readers(self) -> BoundModel:
        return self._bind(self.tools)

    def _bind(self, tools: Sequence[BaseTool]) -> BoundModel:
        names = [tool.name for tool in tools]
        if self.response is None:
            bound = rewrapped(self.chat, lambda chat: chat.bind_tools(list(tools)) if tools else chat)
            return BoundModel(bound, self.counter.tools(tools), names)
        answers = [] if self.is_native else [tool.name for tool in self.response.tools]
        bound, tokens = self.response.bind(self.chat, tools, self.counter, native=self.is_native)
        return BoundModel(bound, tokens, [*names, *answers])

    def answer(self, reply: AIMessage) -> Any:
        """Return the structured answer that a reply holds; None when there is none.

        Raises:
            StructuredOutputError: it does not fit the schema, and the model is not asked again.
        """
        if self.response is None:
            return None
        return self.response.read(reply, native=self.is_native)

    @cached_property
    def is_native(self) -> bool:
        """Whether the model answers by structured output of its own."""
        return self.response is not None and self.response.is_native(self.chat, [*self.tools, *self.readers])

    @cached_property
    def window(self) -> int:
        """Input limit in tokens, by the model's own profile."""
        return input_limit(self.chat) or UNKNOWN_WINDOW

    @cached_property
    def takes_cache_control(self) -> bool:
        """Whether the prompt may be marked for the provider's cache."""
        return takes_cache_control(self.chat)

    @property
    def cache_slots(self) -> int:
        """Marks that messages may have beside those that the tools carry already."""
        return SLOTS - sum("cache_control" in (tool.extras or {}) for tool in (*self.tools, *self.readers))


@dataclass(frozen=True)
class NodeDeps:
    """What the nodes of one graph share."""

    agent: Agent
    model: ModelWithTools
    summarizer: ChatModel
    named_model: Callable[[str], ModelWithTools]
    """Makes a model from `provider:name`, for `Context.model`."""
    prices: PriceList | None = None
    """What models cost, for an agent with `spend`."""
    summarizer_name: tuple[str, str] = ("", "unknown")
    """Provider and name of the summarizer, for its price."""
    rules: Rules = BUILT_IN
    """Built-in rules, with those of the agent."""
    remembers: bool = True
    """The run has a user, a thread and a store; otherwise its prompts say nothing of memory."""
    head: SystemMessage | None = None
    """The system message of somebody else's agent, which stays as it is: memory stands in a message behind it."""
    dials: type[Context] = Context
    """Type of the run's dials, some of which it may have fixed."""

    def model_for(self, context: Context) -> ModelWithTools:
        """Return the run's model."""
        return self.model if context.model is None else self.named_model(context.model)

    def with_fixed_dials(self, runtime: "RuntimeT") -> "RuntimeT":
        """Return a runtime whose dials are those that this graph has fixed, whoever made its context.

        LangGraph hands on a parent's context, a ready `Context` and None as they are, not as this graph's own type.

        Raises:
            SettingsError: the run sets a fixed dial to another value.
        """
        if self.dials is Context or isinstance(runtime.context, self.dials):
            return runtime
        context = self.dials.from_mapping(vars(context_of(runtime)))
        # Plain, so that our own nodes may still replace a dial.
        return replace(runtime, context=Context(**vars(context)))

    @property
    def tools(self) -> list[BaseTool]:
        """All tools that a model of this graph can call."""
        return [*self.model.tools, *self.model.readers]

    @property
    def response(self) -> ResponseFormat | None:
        """Schema of the answers; None: they are text."""
        return self.model.response

    def ends_turn(self, reply: AIMessage) -> bool:
        """Tell whether the results of a reply end the turn: every tool is `return_direct`, or one is the answer."""
        direct = {tool.name for tool in self.tools if tool.return_direct}
        if reply.tool_calls and all(call["name"] in direct for call in reply.tool_calls):
            return True
        return self.response is not None and self.response.is_answer(reply)

    def check_sync(self) -> None:
        """Refuse to run under `invoke` with a tool that has a coroutine and no function.

        Raises:
            SettingsError: such a tool could only fail, and the model would be told of a mistake that is not its own.
        """
        for tool in self.tools:
            if getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None:
                raise SettingsError(
                    f"tool `{tool.name}` is async only, so this agent cannot run under `invoke` or `stream`; use "
                    "`ainvoke` or `astream`, or give the tool a sync function as well"
                )

    @property
    def writes_summaries(self) -> bool:
        """Whether the summarizer is a language model."""
        return bool(getattr(self.summarizer, "can_summarize", True))


AnyRuntime = Runtime[Context] | ToolRuntime[Any, Any]
RuntimeT = TypeVar("RuntimeT", Runtime[Context], ToolRuntime[Any, Any])


def store_of(runtime: AnyRuntime) -> BaseStore:
    """Return the run's store.

    Raises:
        SettingsError: the graph was built without one, so nothing could be kept.
    """
    if runtime.store is None:
        raise SettingsError(
            "this graph has no store, so nothing could be kept; build it with `build_graph(…, storage=storage)` "
            "or run it on a LangGraph server"
        )
    return runtime.store


def thread_of(runtime: AnyRuntime) -> str:
    """Return the id of the run's thread.

    Raises:
        SettingsError: the run has none.
    """
    info = runtime.execution_info
    if info is None or not namespaces.is_named(info.thread_id):
        raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
    return str(info.thread_id)


def is_nested(runtime: AnyRuntime) -> bool:
    """Tell whether a node or a tool is of a graph that runs inside another one."""
    info = runtime.execution_info
    return info is not None and "|" in info.checkpoint_ns


def context_of(runtime: AnyRuntime) -> Context:
    """Return the run's dials; the defaults when the caller gave none, or a context of their own that names the user.

    Raises:
        SettingsError: inside another graph, its context names no user; on a server, it is not the user who signed in.
    """
    context = _dials_of(runtime)
    check_signed_in(runtime.server_info, context.user_id)
    return context


def check_signed_in(server: ServerInfo | None, user_id: str) -> None:
    """Refuse a user who is not the one that a LangGraph server has authenticated, where it authenticates at all.

    Raises:
        SettingsError: a client named somebody else.
    """
    user = None if server is None else server.user
    if user is not None and user.identity != user_id:
        raise SettingsError(f"this run is signed in as {user.identity!r} but names the user {user_id!r}; use one id")


def _dials_of(runtime: AnyRuntime) -> Context:
    context: Any = runtime.context
    if isinstance(context, Context):
        return context
    is_mapping = isinstance(context, Mapping)
    # Inside another graph it may be that graph's own, which has other keys beside a user.
    is_ours = is_mapping and (not is_nested(runtime) or context.keys() <= set(Context.__dataclass_fields__))
    configurable = ensure_config().get("configurable", {})
    if context is None or is_ours:
        user_id = named_user(context, configurable)
        return Context.from_mapping({**dict(context or {}), **({"user_id": user_id} if user_id else {})})
    return Context.from_mapping(named_dials(context, configurable))
