"""Keep what a model answers, and let a recording answer in its place."""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, message_to_dict, messages_from_dict

from everthread.errors import RecordError, SettingsError
from everthread.models.replay import ReplayModel

__all__ = ["Recorder", "Replay"]

_FAILURES = 3
"""Requests without any answer after which nobody goes on: the key is wrong, or the model is not there."""


class Recorder(BaseCallbackHandler):
    """Counts requests, tokens and seconds, and keeps each answer by its prompt."""

    def __init__(self) -> None:
        self.replies: dict[str, dict[str, Any] | None] = {}
        """By digest of the prompt; None for a request that failed or was late."""
        self.seconds: list[float] = []
        self.tokens = [0, 0]
        """Input and output, as far as the provider reports them."""
        self._failed: list[str] = []
        self._begun: dict[UUID, tuple[str, float]] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **_: Any
    ) -> None:
        """Note a request."""
        digest = _digest(messages[0])
        self.replies[digest] = None
        self._begun[run_id] = digest, time.monotonic()

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Keep an answer."""
        digest, began = self._begun.pop(run_id)
        message = response.generations[0][0].message
        self.seconds.append(time.monotonic() - began)
        usage = message.usage_metadata or {}
        self.tokens[0] += usage.get("input_tokens", 0)
        self.tokens[1] += usage.get("output_tokens", 0)
        self.replies[digest] = message_to_dict(message)

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Note a failure."""
        self._failed.append(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")

    def check(self) -> None:
        """Stop where nothing is answered.

        Raises:
            SettingsError: the first requests have all failed.
        """
        if len(self._failed) >= _FAILURES and not self.seconds:
            raise SettingsError(f"the model answers no request; the last error was {self._failed[-1]}")

    def save(self, path: Path) -> None:
        """Write what was answered, one JSON object a line."""
        rows = [{"prompt": digest, "reply": reply} for digest, reply in self.replies.items()]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


class Replay:
    """Recorded answers, by prompt.

    Raises:
        RecordError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            self._replies = {str(row["prompt"]): _message(row["reply"]) for row in rows}
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise RecordError(f"cannot read the recording {str(path)!r}: {type(error).__name__}") from error
        self._missing = 0
        self.model = ReplayModel(on_prompt=self._load, can_summarize=True)

    def check(self) -> None:
        """Stop where the recording is of other prompts.

        Raises:
            RecordError: a prompt has no answer in it.
        """
        if self._missing:
            raise RecordError("the recording has no answer to this prompt: the prompts or the cases have changed since")

    def _load(self, messages: Sequence[BaseMessage], _: Any) -> None:
        reply = self._replies.get(_digest(messages))
        self._missing += reply is None
        self.model.load([] if reply is None else [reply])


def _message(value: Any) -> AIMessage:
    # A request without an answer says nothing, which counts as a no.
    message = AIMessage("") if value is None else messages_from_dict([value])[0]
    if not isinstance(message, AIMessage):
        raise TypeError("a reply is an assistant's message")
    return message


def _digest(messages: Sequence[BaseMessage]) -> str:
    return hashlib.sha256("\n".join(str(one.text) for one in messages).encode()).hexdigest()[:16]
