"""The models: instant, deterministic, and left out of every measurement."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict

from longrun.probe import Probe
from longrun.workload import Workload, answer, city, reference, tool_result

_REFERENCE = re.compile(r"RT\d{4}-\d{3}[ABC]")
_REPLY_TOKENS = 80


class StoppedError(BaseException):
    """The contender has used up its time; not an `Exception`, so that no fallback swallows it."""


@dataclass
class Clock:
    """CPU and wall time of the contender: everything in this process but the models themselves."""

    limit_seconds: float = float("inf")
    _cpu_of_models: float = 0.0
    _wall_of_models: float = 0.0
    _began: float = field(default_factory=time.perf_counter)
    marks: list[tuple[float, float]] = field(default_factory=list)
    """CPU and wall seconds at each model call."""

    @property
    def cpu(self) -> float:
        """CPU seconds of all threads."""
        return time.process_time() - self._cpu_of_models

    @property
    def wall(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._began - self._wall_of_models

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what this thread does inside."""
        cpu, wall = time.thread_time(), time.perf_counter()
        try:
            yield
        finally:
            self._cpu_of_models += time.thread_time() - cpu
            self._wall_of_models += time.perf_counter() - wall


@dataclass
class Script:
    """What the model does next: call tools for some rounds, then answer. It never looks at the prompt."""

    workload: Workload
    turn: int = 0
    round: int = 0

    def begin(self, turn: int) -> None:
        """Start a turn, and have the results of its tools ready before the clock runs."""
        self.turn, self.round = turn, 0
        for round_ in range(self.workload.rounds):
            for place in range(self.workload.parallel):
                tool_result(reference(turn, round_, place))

    def next_reply(self) -> AIMessage:
        """Return the next message of the model."""
        if self.round >= self.workload.rounds:
            return AIMessage(answer(self.turn))
        wanted = [reference(self.turn, self.round, place) for place in range(self.workload.parallel)]
        self.round += 1
        calls = [
            {
                "name": "search_options",
                "args": {"reference": one, "city": city(self.turn)},
                "id": f"call_{one}",
                "type": "tool_call",
            }
            for one in wanted
        ]
        return AIMessage("", tool_calls=calls)


@dataclass
class Conversation:
    """One thread: what its model says next, and what its prompts have shown."""

    thread_id: str
    script: Script
    probe: Probe
    summarized: list[int] = field(default_factory=list)
    """Prompt tokens of each request to the summariser."""


CURRENT: ContextVar[Conversation] = ContextVar("conversation")
"""The conversation whose turn is running; LangGraph hands it on to the threads and tasks of a run."""


class _Fake(BaseChatModel):
    """Looks to a framework like gpt-4.1 of OpenAI: name, input limit, and usage in every reply."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model_name: str = "gpt-4.1"
    clock: Clock

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {"ls_provider": "openai", "ls_model_name": self.model_name, "ls_model_type": "chat"}

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Convert the tools at each call, as langchain-openai does."""
        kwargs.pop("tool_choice", None)
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **kwargs)

    def _reply(self, messages: list[BaseMessage], tools: Sequence[dict[str, Any]]) -> AIMessage:
        raise NotImplementedError

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with self.clock.paused():
            reply = self._reply(messages, kwargs.get("tools") or [])
        if self.clock.wall > self.clock.limit_seconds:
            raise StoppedError
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Reply on the event loop, as the async client of a provider does."""
        return self._generate(messages, stop, None, **kwargs)


class FakeChat(_Fake):
    """Follows the script and shows every prompt to the probe."""

    def _reply(self, messages: list[BaseMessage], tools: Sequence[dict[str, Any]]) -> AIMessage:
        self.clock.marks.append((self.clock.cpu, self.clock.wall))
        conversation = CURRENT.get()
        return _with_usage(conversation.script.next_reply(), conversation.probe.saw(messages, tools))


class FakeSummarizer(_Fake):
    """Writes a summary as a good model would: it keeps the rule whenever the messages hold it."""

    def _reply(self, messages: list[BaseMessage], tools: Sequence[dict[str, Any]]) -> AIMessage:
        conversation = CURRENT.get()
        size = conversation.probe.counter.messages(messages)
        conversation.summarized.append(size)
        text = "\n".join(str(message.text) for message in messages)
        return _with_usage(AIMessage(summary_of(text, conversation.probe.rule)), size)


def summary_of(text: str, rule: str) -> str:
    """Return a summary of about 150 words: the rule if the text has it, and the newest references."""
    references = list(dict.fromkeys(_REFERENCE.findall(text)))[-8:]
    constraints = [f'- The user said: "{rule}".'] if rule in text else []
    return "\n".join(
        [
            "## Goal",
            "- Plan a tour of five cities for two people in May; compare options and find the best value.",
            *constraints,
            "## Decisions",
            "- Prefer options with free cancellation near the station, because arrival times may still change.",
            "- Rejected hotels without a lift, as one traveller carries heavy equipment.",
            "## Options offered",
            *(
                f"- {one}: cheapest with free cancellation; the second choice was quieter but a fifth more."
                for one in references
            ),
            "## Status",
            "- Nothing is booked. The last options were presented and no reference has been approved so far.",
            "## Next step",
            "- Compare the next city and name one reference with price, star rating and what it leaves out.",
        ]
    )


@tool
def search_options(reference: str, city: str) -> str:
    """Search rooms and connections for one stop of a tour.

    Args:
        reference: reference of the stop, such as RT0001-000A.
        city: name of the city.
    """
    return tool_result(reference)


@tool
def book_option(code: str, travellers: int, note: str = "") -> str:
    """Book one option that the user has approved.

    Args:
        code: code of the option as the search returned it.
        travellers: number of people.
        note: a wish for the hotel or the carrier.
    """
    return f"booked {code} for {travellers}"


TOOLS: list[BaseTool] = [search_options, book_option]


def _with_usage(reply: AIMessage, tokens: int) -> AIMessage:
    reply.usage_metadata = UsageMetadata(
        input_tokens=tokens, output_tokens=_REPLY_TOKENS, total_tokens=tokens + _REPLY_TOKENS
    )
    reply.response_metadata = {"model_provider": "openai", "model_name": "gpt-4.1", "finish_reason": "stop"}
    return reply
