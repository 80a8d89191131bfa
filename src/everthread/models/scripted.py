"""A chat model that replies from a list: the fake for tests, examples and demos."""

import json
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from everthread.errors import ScriptError

Tools = list[dict[str, Any]]
"""Tools as they are sent: OpenAI function schemas."""

Count = Callable[[Sequence[BaseMessage], Tools], int]
"""Tokens of messages and tool schemas together."""


class CannedModel(BaseChatModel):
    """A chat model whose replies are made elsewhere; subclasses say which reply comes next."""

    count: Count | None = None
    """Token counter behind `usage_metadata`; None reports no usage."""

    @abstractmethod
    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Take the reply to this prompt, or raise what the call should raise."""

    def pieces(self, text: str) -> list[str]:
        """Cut a text into what one chunk of a stream holds: words with the space before them."""
        return re.findall(r"\s*\S+\s*\Z|\s*\S+|\s+", text)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as a provider does: their schemas travel with every prompt."""
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _reply(self, messages: list[BaseMessage], tools: Tools | None) -> AIMessage:
        # A copy, because langchain writes ids into the message that it gets.
        reply = self.next_reply(messages, tools or []).model_copy()
        if self.count is not None and reply.usage_metadata is None:
            prompt, output = self.count(messages, tools or []), self.count([reply], [])
            reply.usage_metadata = UsageMetadata(
                input_tokens=prompt, output_tokens=output, total_tokens=prompt + output
            )
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, kwargs.get("tools")))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(self._reply(messages, kwargs.get("tools"))):
            yield ChatGenerationChunk(message=chunk)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, **kwargs):
            yield chunk

    def _chunks(self, reply: AIMessage) -> Iterator[AIMessageChunk]:
        """Cut a reply into chunks that add up to it: text, then calls with their arguments in halves, then the rest."""
        contents = self.pieces(reply.content) if isinstance(reply.content, str) else [reply.content]
        for content in contents:
            yield AIMessageChunk(content=content, id=reply.id)
        for part in _call_parts(reply):
            yield AIMessageChunk(content="", tool_call_chunks=[part], id=reply.id)
        yield AIMessageChunk(
            content="",
            id=reply.id,
            name=reply.name,
            additional_kwargs=reply.additional_kwargs,
            response_metadata=reply.response_metadata,
            usage_metadata=reply.usage_metadata,
            chunk_position="last",
        )


class ScriptedModel(CannedModel):
    """Reply from a list, keep every prompt and every bound tool list, and fail loudly when the list runs out.

    Args:
        replies: in order; a text, a whole message, or an exception to raise instead of a reply.
        count: token counter behind `usage_metadata`; None reports no usage.
    """

    _replies: list[str | AIMessage | Exception] = PrivateAttr()
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _tools: list[Tools] = PrivateAttr(default_factory=list)

    def __init__(
        self, replies: Iterable[str | AIMessage | Exception] = (), *, count: Count | None = None, **kwargs: Any
    ) -> None:
        super().__init__(count=count, **kwargs)
        self._replies = list(replies)

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        """Every prompt that was sent, oldest first, also those that an exception answered."""
        return self._prompts

    @property
    def tools(self) -> list[Tools]:
        """The tool schemas bound at each call, in the order of `prompts`."""
        return self._tools

    @property
    def left(self) -> int:
        """How many replies have not been used."""
        return len(self._replies)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Take the next reply of the list.

        Raises:
            ScriptError: the list has run out.
        """
        # Copies: what a later node changes in a message was not in this prompt.
        self._prompts.append([message.model_copy() for message in messages])
        self._tools.append(tools)
        if not self._replies:
            raise ScriptError(
                f"call {len(self._prompts)} found no reply: the script holds {len(self._prompts) - 1}; add one for the "
                f"prompt that ends in {messages[-1].text[:80]!r}"
            )
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return AIMessage(content=reply) if isinstance(reply, str) else reply


def _call_parts(reply: AIMessage) -> Iterator[ToolCallChunk]:
    calls = [(call["name"], json.dumps(call["args"], ensure_ascii=False), call["id"]) for call in reply.tool_calls]
    calls += [(call["name"] or "", call["args"] or "", call["id"]) for call in reply.invalid_tool_calls]
    for index, (name, args, call_id) in enumerate(calls):
        yield ToolCallChunk(name=name, args="", id=call_id, index=index, type="tool_call_chunk")
        for half in (args[: len(args) // 2], args[len(args) // 2 :]):
            yield ToolCallChunk(name=None, args=half, id=None, index=index, type="tool_call_chunk")
