"""A model that judges notes as a test says, and keeps what it was shown."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from everthread.models.scripted import CannedModel

Shown = dict[str, str]
"""A note as the prompt has it: `id`, `note`, `kind`, `from`, `said`."""


def shown_notes(prompt: str) -> list[Shown]:
    """Return the notes of a prompt that asks for a second opinion; of any other none."""
    _, _, block = prompt.partition("\n<notes>\n")
    return [json.loads(line) for line in block.partition("\n</notes>")[0].splitlines() if line]


def answers(*given: tuple[str, str]) -> str:
    return json.dumps({"answers": [{"id": name, "verdict": verdict} for name, verdict in given]})


def allow(notes: Sequence[Shown]) -> str:
    return answers(*((one["id"], "allow") for one in notes))


def refuse(notes: Sequence[Shown]) -> str:
    return answers(*((one["id"], "instruction_payload") for one in notes))


def fail(notes: Sequence[Shown]) -> str:
    raise RuntimeError("down")


class JudgeModel(CannedModel):
    """Judge notes by a function; whatever else is asked gets an answer with nothing in it.

    Args:
        judge: makes the reply to a request from the notes in it.
    """

    judge: Callable[[Sequence[Shown]], str]
    steps: str = '{"steps": [], "notes": []}'
    """Reply to every other request."""
    _asked: list[list[Shown]] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[list[Shown]]:
        """The notes of every request for a second opinion."""
        return self._asked

    @property
    def texts(self) -> list[list[str]]:
        """The texts of these notes."""
        return [[one["note"] for one in notes] for notes in self._asked]

    @property
    def _llm_type(self) -> str:
        return "judge"

    def next_reply(self, messages: list[BaseMessage], tools: Any) -> AIMessage:
        notes = shown_notes(str(messages[-1].text))
        if not notes:
            return AIMessage(self.steps)
        self._asked.append(notes)
        return AIMessage(self.judge(notes))
