"""The offline model as a chat model: tool calls, streaming, usage."""

import hashlib
import json
from collections.abc import Sequence
from datetime import date

from langchain_core.language_models import ModelProfile
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from pydantic import Field

from everthread.agents.offline.conversation import answer
from everthread.agents.offline.reading import read
from everthread.models.scripted import CannedModel, Tools

MAX_INPUT_TOKENS = 128_000


class OfflineModel(CannedModel):
    """A deterministic chat model for a first run without a key: patterns for two agents' domains, and no LLM.

    It keeps no state. Everything it says comes from the prompt: the user's message, the injected profile
    and notes, and the results of tools. The bound tools tell which agent it serves. The same prompt always
    gets the same reply.
    """

    can_summarize: bool = Field(default=False, frozen=True)
    """False: whoever wants a summary or an extraction should use rules instead."""

    today: date | None = None
    """The day to reckon from; None takes the prompt's `Today is …` line, else the clock."""

    @property
    def _llm_type(self) -> str:
        return "everthread-offline"

    def _resolve_model_profile(self) -> ModelProfile:
        return {"max_input_tokens": MAX_INPUT_TOKENS, "tool_calling": True}

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Answer a prompt."""
        reading = read(messages, _names(tools), self.today)
        reply = answer(reading)
        calls = [
            ToolCall(name=call.tool, args=dict(call.args), id=_call_id(reading.key, place, call.tool), type="tool_call")
            for place, call in enumerate(reply.calls)
        ]
        finish = "tool_calls" if calls else "stop"
        return AIMessage(
            content=reply.text,
            tool_calls=calls,
            response_metadata={"model_name": "offline", "finish_reason": finish},
            usage_metadata=_usage(messages, tools, reply.text, calls),
        )


def _names(tools: Tools) -> frozenset[str]:
    return frozenset(str(tool.get("function", tool).get("name", "")) for tool in tools)


def _call_id(key: str, place: int, tool: str) -> str:
    """Derive a call's id from its turn: the same prompt gives the same id, another turn another one."""
    return "call_" + hashlib.sha256(f"{key}\x00{place}\x00{tool}".encode()).hexdigest()[:24]


def _usage(messages: Sequence[BaseMessage], tools: Tools, text: str, calls: Sequence[ToolCall]) -> UsageMetadata:
    # Here and not above: the tokeniser's ranks take a moment to load, and many callers only need the name.
    from everthread.window.tokens import counter_for

    counter = counter_for("offline")
    prompt = counter.messages(list(messages)) + (counter.tools(list(tools)) if tools else 0)
    output = counter.text(text) + sum(counter.text(call["name"] + json.dumps(call["args"])) for call in calls)
    return UsageMetadata(input_tokens=prompt, output_tokens=output, total_tokens=prompt + output)
