"""The engine for everybody else's agent: a middleware for `create_agent` and whatever is built on it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Required, cast

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import ExecutionInfo
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel

from everthread.errors import ModelError, SettingsError
from everthread.memory.rules import BUILT_IN, Rules
from everthread.models.calls import ModelCall, ModelCalls, amake_calls, make_calls
from everthread.models.identity import provider, tokenizer_name
from everthread.models.provider import resolve
from everthread.models.wrapped import ChatModel
from everthread.nodes.agent_model import AgentModel, AgentModelWithTools, SchemaSizes
from everthread.nodes.call_ahead import CallAhead, is_asked_ahead
from everthread.nodes.deps import BoundModel, ModelWithTools, NodeDeps, is_nested
from everthread.nodes.distill_notes import distill_notes
from everthread.nodes.inject_memory import inject_memory
from everthread.nodes.model import model as call_model
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import checked_session
from everthread.nodes.second_opinion import judge
from everthread.nodes.sizes import PromptSize, is_full, needs_trim
from everthread.nodes.spending import metered
from everthread.nodes.summarize import summarize
from everthread.nodes.thread_view import ThreadView, with_ids
from everthread.nodes.tools import error_text, offload_new, with_id
from everthread.nodes.trim import trim
from everthread.spend.prices import read_price_list
from everthread.state import Agent, Context, Spend, State, state_after
from everthread.state.agent import OTHERS
from everthread.state.context import changed_dials, named_user, no_user, set_dials
from everthread.state.marks import ended_at_limit, of_others
from everthread.state.messages import Messages
from everthread.storage.call_records import prune_unguarded_calls
from everthread.storage.kept_checkpoints import OURS
from everthread.tools import OWN_TOOLS, READERS
from everthread.tools.save_memory_note import Judge, memory_tool
from everthread.window.tokens import counter_for
from everthread.window.turns import question_of

logger = logging.getLogger(__name__)


class EverthreadState(AgentState[Any]):
    """The state of an agent whose checkpoints hold what is new instead of all messages; see `create_agent`."""

    messages: Required[Messages]


class EverthreadMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps an agent's prompts inside a budget, loses nothing that leaves them, and remembers its users.

    Before each model call it trims the prompt, recalls what the question asks for and puts what is known of the user
    behind the system message, which stays as it is. What leaves the state is in the store first. Nothing else of the
    agent's state is read or written, so the middleware can be added to an agent with existing threads, and taken away.

    A run names its user by a context that has `user_id`, or by `configurable["user_id"]`; for an app with one user,
    `agent.with_config({"configurable": {"user_id": "me"}})` names it once. Dials can be set for one run by
    `configurable["everthread"]`, such as `{"window": 32_000}`, or by a `Context` where it is the agent's schema.

    Inside another graph, such as a deep agent's subagents, and without a store or a `thread_id`, only the prompt is
    made smaller: the state stays as it is, nothing is remembered, and nothing has to be. An agent without a
    checkpointer remembers by `thread_id` too, if its client sends the messages with the ids that they had.

    Args:
        summarizer: a chat model or `provider:name` that writes summaries; None takes the model of the call. The dial
            `guard="model"` needs one.
        profile: schema of the user's structured profile; None accepts any mapping.
        rules: YAML files with rules of one's own, as for `Agent`.
        summary_sections: headings of the rolling summary, in order; None takes those of `Agent`.
        spend: counts what calls cost and asks before a limit is passed; None counts nothing.
        name: of the middleware. A deep agent's own summarizer is replaced by one called `SummarizationMiddleware`.
        dials: every other dial of `Context`, for all runs.

    Raises:
        SettingsError: a dial does not exist or is out of range, or `guard` is `model` and there is no `summarizer`.
    """

    def __init__(
        self,
        *,
        summarizer: ChatModel | str | None = None,
        profile: type[BaseModel] | None = None,
        rules: Sequence[str | Path] = (),
        summary_sections: Sequence[str] | None = None,
        spend: Spend | None = None,
        name: str = "EverthreadMiddleware",
        **dials: Any,
    ) -> None:
        if "user_id" in dials:
            raise SettingsError('`user_id` is of a run: pass {"configurable": {"user_id": "…"}} as its config')
        if "model" in dials:
            raise SettingsError("the agent has its model already; `summarizer` names another one for summaries")
        self._dials = dials
        self._summarizer = None if summarizer is None else resolve(summarizer)
        self._check_guard(Context.from_mapping(dials))
        self._rules = Rules(rules) if rules else BUILT_IN
        agent = Agent(OTHERS, "Agent", "An agent of somebody else.", profile=profile, spend=spend)
        self._prices = None if spend is None else read_price_list(spend.price_file)
        if summary_sections is not None:
            agent = replace(agent, summary_sections=cast("tuple[str, ...]", summary_sections))
        self._agent = agent
        self._name = name
        self._schemas = SchemaSizes()
        self._has_warned = False
        # What they refuse, such as a handle copied wrongly, is for the model; `create_agent` would end the run.
        readers = [tool.model_copy(update={"handle_tool_error": error_text}) for tool in READERS]
        self.tools = [memory_tool(self._rules, self._judge()), *readers]

    @property
    def name(self) -> str:
        """Name of the middleware, by which an agent tells two from each other."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Make the call with a prompt that holds its budget.

        Raises:
            BudgetError: what has to be in the prompt does not fit the window.
            SettingsError: the run names no user, or the thread belongs to another one.
        """
        config = get_config()
        return make_calls(self._answered(request, handler, config), config)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Do what `wrap_model_call` does without blocking the event loop."""
        config = get_config()
        return await amake_calls(self._answered(request, handler, config), config)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run a tool; ours gets a view of the state."""
        run, shown = self._shown(request)
        result = handler(shown)
        return with_id(result, request.state) if run.keeps else result

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Do what `wrap_tool_call` does without blocking the event loop."""
        run, shown = await asyncio.to_thread(self._shown, request)
        result = await handler(shown)
        return with_id(result, request.state) if run.keeps else result

    def _answered(
        self, sent_request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any], config: RunnableConfig
    ) -> ModelCalls[ModelResponse[Any] | ExtendedModelResponse[Any]]:
        """Do in one step what our own graph does in several, on a view of the agent's state."""
        request = _named(sent_request)
        # What came without an id can be neither removed from the agent's state nor replaced in it.
        is_fixed = request is not sent_request
        agent_model = AgentModel(request, handler)
        run = self._run(request.runtime, config)
        sent: Sequence[BaseMessage] = of_others(request.state["messages"])
        if question_of(sent) is None:
            # There is nothing that a prompt could be built around.
            yield from _as_it_is(cast(State, {"messages": sent}), run.runtime, self._deps(request, agent_model, run))
            return cast(ModelResponse[Any], agent_model.response)
        if run.context.model is not None:
            agent_model.request = request = request.override(model=resolve(run.context.model))
        deps = self._deps(request, agent_model, run)
        view = ThreadView.load(run.store, run.thread_id, sent, is_guarded=run.is_guarded)
        # A deep agent's own summarizer counts the messages of the state by their position.
        stays = is_fixed or request.state.get("_summarization_event") is not None
        if is_asked_ahead(config.get("configurable", {})):
            raise CallAhead(view, run.runtime, deps, stays)
        state, runtime = view.state, run.runtime
        if view.is_new_question:
            state = state_after(state, inject_memory(state, runtime, deps))
        else:
            resumed = NodeRun.of(state, runtime, deps)
            state = state_after(state, resumed.plan_update(resumed.plan()))
        new = view.new if run.keeps and not is_fixed else ()
        offloaded, keep_offloaded = offload_new(state, new, runtime, deps)
        state = state_after(state, offloaded)
        model = deps.model
        if needs_trim(PromptSize.of(state, state["plan"], model), run.context):
            state = state_after(state, trim(state, runtime, deps))
        while True:
            try:
                state = state_after(state, (yield from call_model(state, runtime, deps)))
            except ModelError as error:
                if error.kind != "overflow" and error.__cause__ is not None:
                    # Other middlewares retry and fall back by the provider's own errors.
                    raise error.__cause__ from None
                raise
            if not state.get("overflows"):
                break
            state = state_after(state, trim(state, runtime, deps))
        keep_offloaded()
        reply = state["messages"][-1]
        if ended_at_limit(reply):
            agent_model.response = ModelResponse(result=[reply])
        if agent_model.ends_turn and run.keeps:
            if "turn" in run.context.distillation:
                state = state_after(state, (yield from distill_notes(state, runtime, deps)))
            if is_full(PromptSize.of(state, state["plan"], model), run.context):
                state = state_after(state, (yield from summarize(state, runtime, deps)))
        response = agent_model.response_with(cast(AIMessage, reply))
        if not run.keeps:
            return response
        # What it says is kept for other threads from the state, by the next turn: a middleware may redact it yet.
        run.store.batch(list(view.record(state, run.thread_id, stays=stays)))
        if agent_model.ends_turn and not run.is_guarded:
            prune_unguarded_calls(run.store, run.thread_id, state.get("turns", 0))
        writes = offloaded["messages"] if stays else view.writes(state)
        return ExtendedModelResponse(response, Command(update={"messages": writes})) if writes else response

    def _judge(self) -> Judge | None:
        """Return who is asked about a note that the tool is to save; None without a summarizer."""
        chat = self._summarizer
        if chat is None:
            return None
        model = ModelWithTools.of(chat, (), READERS)
        priced_as = self._summarizer_name(chat)
        deps = NodeDeps(self._agent, model, chat, lambda _: model, prices=self._prices, summarizer_name=priced_as)
        return partial(judge, deps=deps)

    def _check_guard(self, dials: Context) -> None:
        """Refuse `guard="model"` without a model of its own: a tool that saves a note cannot tell who called it.

        Raises:
            SettingsError: there is no summarizer.
        """
        if dials.guard == "model" and self._summarizer is None:
            raise SettingsError('`guard="model"` needs a model to ask: name one as `summarizer` of the middleware')

    def _run(self, runtime: Any, config: RunnableConfig) -> "_Run":
        """Tell whose run this is, with which dials, and whether anything is kept.

        Raises:
            SettingsError: it names no user, or a dial that does not exist.
        """
        configurable, info = config.get("configurable", {}), runtime.execution_info
        thread_id = info.thread_id if info is not None else None
        is_inside, context = is_nested(runtime), runtime.context
        keeps = runtime.store is not None and thread_id is not None and not is_inside
        user_id = named_user(context, configurable)
        if keeps and user_id is None:
            raise no_user()
        is_guarded = OURS in config.get("metadata", {})
        if not is_inside:
            self._warn_once(keeps=keeps, is_guarded=is_guarded)
        set_here = {**(changed_dials(context) if isinstance(context, Context) else {}), **set_dials(configurable)}
        dials = Context.from_mapping({**self._dials, **set_here, "user_id": str(user_id or Context.user_id)})
        self._check_guard(dials)
        if keeps:
            if not is_guarded:
                checked_session(runtime.store, str(thread_id), dials)
            here = replace(runtime, context=dials)
            return _Run(dials, here, runtime.store, str(thread_id), keeps=True, is_guarded=is_guarded)
        # What the nodes keep is gone with the call.
        store, nobody = InMemoryStore(), ExecutionInfo("", "", "", thread_id="none")
        aside = replace(runtime, context=dials, store=store, execution_info=nobody, stream_writer=lambda chunk: None)
        return _Run(dials, aside, store, "none", keeps=False, is_guarded=is_guarded)

    def _warn_once(self, *, keeps: bool, is_guarded: bool) -> None:
        """Say once what is missing."""
        if self._has_warned or (keeps and is_guarded):
            return
        self._has_warned = True
        if keeps:
            logger.warning(
                "this agent runs without `storage.guard(agent)`: nothing locks its threads, resumes a turn that was "
                "cut off, or prunes old checkpoints"
            )
        else:
            logger.warning(
                "this agent has no store, or its run no `thread_id`, so prompts are trimmed and nothing is remembered; "
                "create it with `checkpointer=storage.checkpointer` and `store=storage.store`"
            )

    def _deps(self, request: ModelRequest[Any], agent_model: AgentModel, run: "_Run") -> NodeDeps:
        chat, counter = request.model, counter_for(tokenizer_name(request.model))
        tokens, names = self._schemas.of(request, counter)
        sent = BoundModel(agent_model, tokens + agent_model.added_tokens(counter), names)
        model = AgentModelWithTools.of(chat, (), READERS, sent=sent, is_altered=agent_model.is_altered)
        return NodeDeps(
            self._agent,
            model,
            self._summarizer or chat,
            lambda _: model,
            rules=self._rules,
            prices=self._prices,
            summarizer_name=self._summarizer_name(chat),
            remembers=run.keeps,
            head=request.system_message or SystemMessage(""),
        )

    def _summarizer_name(self, chat: ChatModel) -> tuple[str, str]:
        """Return provider and name of the summarizer, where it is to be priced."""
        model = self._summarizer or chat
        return ("", "unknown") if self._prices is None else (provider(model), tokenizer_name(model) or "unknown")

    def _shown(self, request: ToolCallRequest) -> tuple["_Run", ToolCallRequest]:
        """Return the run of a tool call and what the tool is to see: ours a view of the state, the agent's its own."""
        run = self._run(request.runtime, request.runtime.config)
        if request.tool_call["name"] not in OWN_TOOLS:
            return run, request
        if not run.keeps:
            # There the question may be another model's words, and a note would make them the user's own.
            return run, replace(request, runtime=replace(request.runtime, store=None))
        state = ThreadView.load(run.store, run.thread_id, request.state["messages"]).state
        return run, replace(request, state=state, runtime=replace(run.runtime, state=state))


def _named(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """Return a request whose messages have ids; the same one when all of the agent's state have."""
    own = request.state["messages"]
    named = with_ids(own)
    if named is own:
        return request
    pairs = list(zip(own, named, strict=True))
    messages = [next((new for old, new in pairs if old is one), one) for one in request.messages]
    return request.override(state=cast(Any, {**request.state, "messages": named}), messages=cast(Any, messages))


@metered
def _as_it_is(state: State, runtime: Any, deps: NodeDeps) -> ModelCalls[None]:
    """Send the messages that there are."""
    prompt = [deps.head or SystemMessage(""), *state["messages"]]
    yield ModelCall(deps.model.bound(reads_back=False).chat, prompt, is_reply=True)


@dataclass(frozen=True)
class _Run:
    """Whose run it is, and where what it keeps goes."""

    context: Context
    runtime: Any
    store: BaseStore
    thread_id: str
    keeps: bool
    is_guarded: bool
