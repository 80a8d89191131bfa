"""The answer of a turn as data: `response_format`, by LangChain's strategies for it.

The model's own structured output is used where all chat models of a run have it. Elsewhere the schema is a tool that
the model has to call, and its call is the answer. What is wrong goes back to the model as the result of that call.
"""

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any, Union, cast, get_origin

from langchain.agents.structured_output import (
    AutoStrategy,
    MultipleStructuredOutputsError,
    OutputToolBinding,
    ProviderStrategy,
    ProviderStrategyBinding,
    StructuredOutputError,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool

from everthread.errors import SettingsError
from everthread.models.wrapped import ChatModel, chat_models, rewrapped
from everthread.window.tokens import TokenCounter
from everthread.window.tool_schemas import compact_json

_FRAME = 30
"""Tokens that a provider may put around the schema of its own structured output."""


class ResponseFormat:
    """The schema of the answers of one graph.

    Args:
        schema: a Pydantic model, dataclass, TypedDict or JSON Schema, a union of these, or one of LangChain's
            strategies `ToolStrategy` and `ProviderStrategy`.

    Raises:
        SettingsError: it is none of these.
    """

    def __init__(self, schema: Any) -> None:
        try:
            self.native, by_tool = _strategies(schema)
        except ValueError as error:
            raise SettingsError(
                "`response_format` must be a Pydantic model, dataclass, TypedDict or JSON Schema, or LangChain's "
                f"`ToolStrategy` or `ProviderStrategy` of one: {error}"
            ) from error
        self._by_tool = by_tool
        specs = by_tool.schema_specs if by_tool else []
        self._bindings = {spec.name: OutputToolBinding.from_schema_spec(spec) for spec in specs}

    @property
    def tools(self) -> list[BaseTool]:
        """The schema as tools; empty when the model's own structured output is asked for."""
        return [binding.tool for binding in self._bindings.values()]

    @property
    def types(self) -> Any:
        """What an answer is an instance of, as an annotation."""
        strategy = self._by_tool or self.native
        schema = strategy.schema if strategy else None
        return dict[str, Any] if isinstance(schema, dict) else schema

    def is_native(self, model: ChatModel, tools: Sequence[BaseTool]) -> bool:
        """Tell whether a model answers by structured output of its own."""
        if self.native is None or self._by_tool is None:
            return self._by_tool is None
        return all(_has_structured_output(chat, tools) for chat in chat_models(model)) and bool(chat_models(model))

    def bind(
        self, model: ChatModel, tools: Sequence[BaseTool], counter: TokenCounter, *, native: bool
    ) -> tuple[Runnable[Any, Any], int]:
        """Return a model with tools and schema bound, and the tokens of both."""
        if not native or self.native is None:
            every = [*tools, *self.tools]
            return rewrapped(model, lambda chat: chat.bind_tools(every, tool_choice="any")), counter.tools(every)
        options = self.native.to_model_kwargs()

        def bound(chat: Any) -> Runnable[Any, Any]:
            with_schema = chat.bind_tools(list(tools), **options)
            if not tools and isinstance(with_schema, RunnableBinding):
                # An empty list is an error with OpenAI.
                kept = {name: value for name, value in with_schema.kwargs.items() if name != "tools"}
                return with_schema.model_copy(update={"kwargs": kept})
            return cast("Runnable[Any, Any]", with_schema)

        return rewrapped(model, bound), counter.tools(tools) + counter.text(compact_json(options)) + _FRAME

    def read(self, reply: AIMessage, *, native: bool) -> Any:
        """Return the answer that a reply holds; None when it holds none and the turn goes on, or ends without.

        Raises:
            StructuredOutputError: what it holds does not fit the schema, and the strategy says not to ask again.
        """
        if not native:
            return self._answer(reply)[0]
        if reply.tool_calls or self.native is None:
            return None
        spec = self.native.schema_spec
        try:
            return ProviderStrategyBinding.from_schema_spec(spec).parse(reply)
        except ValueError as error:
            raise StructuredOutputValidationError(spec.name, error, reply) from error

    def is_answer(self, call: AIMessage) -> bool:
        """Tell whether a call holds the answer, so that the turn ends once its tools have run."""
        return self._answer(call)[0] is not None

    def result(self, call: AIMessage, tool_call: ToolCall) -> ToolMessage | None:
        """Return what the model reads as the result of its answer; None for a call of another tool."""
        if tool_call["name"] not in self._bindings or self._by_tool is None:
            return None
        value, mistake = self._answer(call)
        said = self._by_tool.tool_message_content or f"Returning structured response: {value}"
        return ToolMessage(
            content=said if mistake is None else mistake,
            tool_call_id=str(tool_call["id"]),
            name=tool_call["name"],
            status="success" if mistake is None else "error",
        )

    def _answer(self, call: AIMessage) -> tuple[Any, str | None]:
        """Return the answer that a call holds, or else what is wrong with it; neither when it is no answer.

        Raises:
            StructuredOutputError: it is wrong, and the strategy says not to ask again.
        """
        answers = [one for one in call.tool_calls if one["name"] in self._bindings]
        if not answers or self._by_tool is None:
            return None, None
        error: StructuredOutputError
        if len(answers) > 1:
            error = MultipleStructuredOutputsError([one["name"] for one in answers], call)
        else:
            name = answers[0]["name"]
            try:
                return self._bindings[name].parse(answers[0]["args"]), None
            except ValueError as reason:
                error = StructuredOutputValidationError(name, reason, call)
        return None, _correction(error, self._by_tool.handle_errors)


def _strategies(given: Any) -> tuple[ProviderStrategy[Any] | None, ToolStrategy[Any] | None]:
    """Return the strategies that may be used: the provider's own, and that of a tool."""
    if isinstance(given, ProviderStrategy):
        return given, None
    if isinstance(given, ToolStrategy):
        return None, given
    schema = given.schema if isinstance(given, AutoStrategy) else given
    if isinstance(schema, dict) and "title" not in schema and "oneOf" not in schema:
        # LangChain would make up another name in every process, and the names of tools are ahead of the whole prompt.
        schema = {"title": "answer", **schema}
    several = get_origin(schema) in (Union, UnionType) or (isinstance(schema, dict) and "oneOf" in schema)
    return None if several else ProviderStrategy(schema), ToolStrategy(schema)


def _has_structured_output(chat: Any, tools: Sequence[BaseTool]) -> bool:
    """Tell whether a chat model answers in a schema by itself, also while it has tools."""
    profile, name = chat.profile or {}, str(getattr(chat, "model", "")).lower()
    # Gemini before 3 takes a schema or tools, and not both.
    return bool(profile.get("structured_output")) and not (tools and "gemini" in name and "gemini-3" not in name)


Handling = bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], str]


def _correction(error: StructuredOutputError, handling: Handling) -> str:
    """Return what the model is told of its mistake.

    Args:
        handling: `ToolStrategy.handle_errors`.

    Raises:
        StructuredOutputError: the strategy does not handle it.
    """
    if isinstance(handling, str):
        return handling
    if isinstance(handling, type | tuple):
        handling = isinstance(error, handling)
    if isinstance(handling, bool):
        if not handling:
            raise error
        return f"Error: {error}\n Please fix your mistakes."
    return handling(error)
