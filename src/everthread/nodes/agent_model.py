"""The model of somebody else's agent as our nodes need it: behind its other middlewares, and with all its tools."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool

from everthread.models.identity import tokenizer_name
from everthread.models.wrapped import reply_limit
from everthread.nodes.deps import BoundModel, ModelWithTools
from everthread.state.marks import is_masked
from everthread.window.masking import MARKER_TOKENS, STUB_TOKENS, mask
from everthread.window.tokens import TokenCounter, counter_for


class AgentModel(Runnable[Any, AIMessage]):
    """The agent's own way to its model, as a model that gets a prompt.

    Other middlewares may have changed the request already. What they did to messages of the state, and what they added
    between them, is sent; it does not get into the transcript.
    """

    def __init__(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> None:
        self.request = request
        self.response: Any = None
        self._handler = handler
        own = self._own = {message.id: message for message in request.state["messages"]}
        self._added = [one for one in request.messages if one.id is None or one.id not in own]
        asked = {message.id for message in request.messages}
        self._removed = {name for name in own if name not in asked}
        self._changed = {one.id: one for one in request.messages if one.id in own and one != own[one.id]}

    @property
    def is_altered(self) -> bool:
        """Whether other middlewares send something else than the thread has."""
        return bool(self._added or self._removed or self._changed)

    def added_tokens(self, counter: TokenCounter) -> int:
        """Return what other middlewares add to the prompt: messages of their own, and what they made longer."""
        longer = [counter.message(new) - counter.message(self._own[name]) for name, new in self._changed.items()]
        return sum(counter.sizes(self._added)) + sum(max(size, 0) for size in longer)

    @property
    def ends_turn(self) -> bool:
        """Whether the reply is the last of its turn."""
        return self.response.structured_response is not None or not self._reply.tool_calls

    @property
    def _reply(self) -> AIMessage:
        return next(one for one in self.response.result if isinstance(one, AIMessage))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AIMessage:
        """Send a prompt, which begins with the system message."""
        self.response = self._handler(self._sent(input, options))
        return self._reply

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AIMessage:
        """Send a prompt asynchronously."""
        self.response = await self._handler(self._sent(input, options))
        return self._reply

    def response_with(self, reply: AIMessage) -> ModelResponse[Any]:
        """Return the response, whose reply has an id of its own and calls that can be answered."""
        named = {"id": reply.id, "tool_calls": reply.tool_calls, "invalid_tool_calls": reply.invalid_tool_calls}
        old = self._reply
        result = [one.model_copy(update=named) if one is old else one for one in self.response.result]
        return replace(self.response, result=result)

    def _sent(self, prompt: Sequence[BaseMessage], options: Mapping[str, Any]) -> ModelRequest[Any]:
        system, *messages = prompt
        model = self.request.model
        if "max_tokens" in options:
            model, options = reply_limit(model, options["max_tokens"])
        kept = [one for one in messages if one.id is None or one.id not in self._removed]
        counter = counter_for(tokenizer_name(model))
        shown = [self._as_changed(one, counter) if one.id in self._changed else one for one in kept]
        return self.request.override(
            model=model,
            system_message=cast(SystemMessage, system) if self.request.system_message else None,
            messages=cast("list[AnyMessage]", self._with_added(shown)),
            model_settings={**self.request.model_settings, **options},
        )

    def _as_changed(self, message: BaseMessage, counter: TokenCounter) -> BaseMessage:
        """Return a message as another middleware made it, cut where this call cuts the message."""
        changed = self._changed[message.id]
        is_cut = is_masked(message) and message.content != self._own[message.id].content
        if not is_cut or counter.message(changed) <= counter.message(message):
            return changed
        return mask(changed, max(counter.text(str(message.text)) - MARKER_TOKENS, STUB_TOKENS), counter)

    def _with_added(self, shown: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Put each message of another middleware behind the message that it followed, or the nearest one ahead."""
        ids = {message.id for message in shown}
        followed: str | None = None
        added: dict[str | None, list[BaseMessage]] = {None: []}
        for message in self.request.messages:
            if message.id is None or message.id not in self._own:
                added.setdefault(followed, []).append(message)
            elif message.id in ids:
                followed = message.id
        ahead = added.pop(None)
        return [*ahead, *(one for message in shown for one in (message, *added.get(message.id, ())))]


@dataclass(frozen=True)
class AgentModelWithTools(ModelWithTools):
    """The model of one call, with all tools that are sent along."""

    sent: BoundModel

    def bound(self, *, reads_back: bool) -> BoundModel:
        """Return what sends a prompt; the agent binds its tools itself."""
        return self.sent

    @property
    def cache_slots(self) -> int:
        """Marks for the prompt's end and the system message; a deep agent sets two more behind us, and four is all."""
        return 2


class SchemaSizes:
    """Tokens and names of the schemas that requests send.

    Counting takes a tenth of a turn, and an agent has the same tools time and again.
    """

    def __init__(self) -> None:
        self._counted: dict[Hashable, tuple[int, Sequence[str]]] = {}

    def of(self, request: ModelRequest[Any], counter: TokenCounter) -> tuple[int, Sequence[str]]:
        """Return those of all tools and of a structured response."""
        response = getattr(request.response_format, "schema", request.response_format)
        key = (counter.encoding_name, counter.exact, *map(_identity, [*request.tools, response]))
        found = self._counted.get(key)
        if found is None:
            schemas = [*request.tools, *_response_schemas(response)]
            found = counter.tools(schemas), tuple(map(_tool_name, schemas))
            self._counted = {key: found}
        return found


def _response_schemas(response: Any) -> list[dict[str, Any]]:
    """Return the schemas of a structured response as tools: counted so, one that the provider takes costs no more."""
    if response is None:
        return []
    return [
        {"name": spec.name, "description": spec.description, "parameters": dict(spec.json_schema)}
        for spec in ToolStrategy(response).schema_specs
    ]


def _identity(schema: Any) -> Hashable:
    """Return what tells the schema of a tool or of a response from every other one."""
    if isinstance(schema, BaseTool):
        return schema.name, schema.description, _identity(schema.args_schema)
    return schema if isinstance(schema, Hashable) else repr(schema)


def _tool_name(tool: Any) -> str:
    """Return the name of a tool, or of what a provider takes as one."""
    if isinstance(tool, BaseTool):
        return tool.name
    schema = tool.get("function", tool) if isinstance(tool, Mapping) else {"name": getattr(tool, "__name__", "")}
    return str(schema.get("name") or schema.get("type") or "unnamed")
