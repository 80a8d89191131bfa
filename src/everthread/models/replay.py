"""A chat model that says again what a recorded assistant said."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from everthread.errors import ScriptError
from everthread.models.scripted import CannedModel, Count, Tools

OnPrompt = Callable[[list[BaseMessage], Tools], None]
"""Called with every prompt and its tool schemas before the reply is given; what it raises ends the call."""


class ReplayModel(CannedModel):
    """Replay recorded assistant messages in order; a driver loads them turn by turn.

    Args:
        on_prompt: sees every prompt that is sent, such as a checker of its size and its tool pairs.
        count: token counter behind `usage_metadata`; None reports no usage.
    """

    _queue: deque[AIMessage] = PrivateAttr(default_factory=deque)
    can_summarize: bool = False
    """A summary would take the reply that was recorded for the conversation."""
    _on_prompt: OnPrompt | None = PrivateAttr(default=None)
    _calls: int = PrivateAttr(default=0)

    def __init__(self, on_prompt: OnPrompt | None = None, *, count: Count | None = None, **kwargs: Any) -> None:
        super().__init__(count=count, **kwargs)
        self._on_prompt = on_prompt

    def load(self, messages: Iterable[AIMessage]) -> None:
        """Queue the replies of the next turn behind those that are still waiting."""
        self._queue.extend(messages)

    @property
    def left(self) -> int:
        """How many loaded messages have not been replayed."""
        return len(self._queue)

    @property
    def calls(self) -> int:
        """How many prompts were sent."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "replay"

    def pieces(self, text: str) -> list[str]:
        """Give a text as one chunk: a replay is checked, not watched."""
        return [text] if text else []

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Show the prompt to the checker, then take the next recorded message.

        Raises:
            ScriptError: every loaded message has been replayed.
        """
        self._calls += 1
        if self._on_prompt is not None:
            self._on_prompt(messages, tools)
        if not self._queue:
            raise ScriptError(
                f"call {self._calls} found no recorded reply; load one for the prompt that ends in "
                f"{messages[-1].text[:80]!r}"
            )
        return self._queue.popleft()
