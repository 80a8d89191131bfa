"""The offline model as a chat model: tool calls, streaming, usage."""

import hashlib
from collections.abc import Sequence
from datetime import date
from typing import Any

from langchain_core.language_models import ModelProfile
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from pydantic import Field

from everthread.agents.offline.conversation import answer
from everthread.agents.offline.prompt import read
from everthread.models.scripted import CannedModel, Count, Tools

MAX_INPUT_TOKENS = 128_000


def _count(messages: Sequence[BaseMessage], tools: Sequence[Any]) -> int:
    # Imported here: the tokeniser's ranks take a moment to load, and many callers only need the model's name.
    from everthread.window.tokens import counter_for

    counter = counter_for("offline")
    return counter.messages(list(messages)) + (counter.tools(list(tools)) if tools else 0)


class OfflineModel(CannedModel):
    """A deterministic chat model for a first run without a key: patterns for the two ready agents, and no LLM.

    It keeps no state. Everything it says comes from the prompt: the user's message, the injected profile
    and notes, and the results of tools. The bound tools tell which agent it serves. The same prompt always
    gets the same reply.
    """

    can_summarize: bool = Field(default=False, frozen=True)
    """False: whoever wants a summary or an extraction should use rules instead."""

    count: Count | None = _count

    today: date | None = None
    """The day to reckon from; None takes the prompt's `Today is …` line, else the clock."""

    @property
    def _llm_type(self) -> str:
        return "everthread-offline"

    def _resolve_model_profile(self) -> ModelProfile:
        return {"max_input_tokens": MAX_INPUT_TOKENS, "tool_calling": True}

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Answer a prompt."""
        names = frozenset(str(tool.get("function", tool).get("name", "")) for tool in tools)
        prompt = read(messages, names, self.today)
        text, calls = answer(prompt)
        return AIMessage(
            content=text,
            tool_calls=[
                ToolCall(name=call.tool, args=dict(call.args), id=_call_id(prompt.key, place, call.tool))
                for place, call in enumerate(calls)
            ],
            response_metadata={"model_name": "offline", "finish_reason": "tool_calls" if calls else "stop"},
        )


def _call_id(key: str, place: int, tool: str) -> str:
    """Derive a call's id from its turn: the same prompt gives the same id, another turn another one."""
    return "call_" + hashlib.sha256(f"{key}\x00{place}\x00{tool}".encode()).hexdigest()[:24]
