"""Let a language model say which of two prompts is better, and keep its answers word for word."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everthread.errors import SettingsError
from everthread.evals.needs import shown_text
from everthread.evals.suites import share
from everthread.models.provider import resolve
from everthread.prompts import render

_LONGEST = 24_000
"""Characters of one prompt that the judge sees; the head and the tail of a longer one."""

Better = Literal["a", "b", "tie", "unreadable"]


@dataclass(frozen=True)
class Verdict:
    """What the judge said of one case."""

    case: str
    better: Better
    a_came_first: bool
    answer: str
    """Word for word."""


def judge_named(name: str) -> tuple[BaseChatModel | None, str]:
    """Return the judge's model, or None and why there is none: evaluations go on without."""
    if name.strip() == "offline":
        return None, "judge skipped: `offline` matches patterns and cannot judge; use `--judge provider:name`"
    try:
        return resolve(name), ""
    except SettingsError as reason:
        return None, f"judge skipped: {str(reason).partition('; `--model')[0]}"


class Judge:
    """A model that compares prompts, in an order that a seed decides.

    Args:
        seed: decides which of two prompts stands first, since models favour a place.
        output: a file that gets one JSON object a verdict.
    """

    def __init__(self, model: BaseChatModel, *, seed: int, output: Path) -> None:
        self.verdicts: list[Verdict] = []
        self._model = model
        self._dice = random.Random(seed)
        self._output = output
        try:
            output.write_text("", encoding="utf-8")
        except OSError as error:
            raise SettingsError(f"cannot write {str(output)!r}: {error.strerror}") from error

    def compare(self, case: str, a: Sequence[BaseMessage], b: Sequence[BaseMessage], reply: str) -> Verdict:
        """Ask which prompt is better; a failing model gives a verdict that is `unreadable`."""
        a_came_first = self._dice.random() < 0.5
        first, second = (a, b) if a_came_first else (b, a)
        question = render("judge", first=_conversation(first), second=_conversation(second), reply=_cut(reply))
        try:
            answer = str(self._model.invoke([HumanMessage(question)]).text)
        except Exception as error:  # noqa: BLE001 - providers raise what they like, and one case is not the evaluation
            answer = f"{type(error).__name__}: {error}"
        verdict = Verdict(case, _better(answer, a_came_first), a_came_first, answer)
        self.verdicts.append(verdict)
        with self._output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(verdict), ensure_ascii=False) + "\n")
        return verdict

    def shares(self) -> dict[str, float]:
        """Return how often each was better, among the readable verdicts, and how many were unreadable."""
        readable = [one for one in self.verdicts if one.better != "unreadable"]
        counts = {name: sum(one.better == name for one in readable) for name in ("a", "b", "tie")}
        figures = {f"judge.{name}": share(count, len(readable)) for name, count in counts.items()}
        return {**figures, "judge.unreadable": len(self.verdicts) - len(readable), "judge.cases": len(self.verdicts)}


def _conversation(prompt: Sequence[BaseMessage]) -> str:
    """Return a prompt without its instructions, which both have."""
    parts = [f"[{one.type}] {shown_text([one])}" for one in prompt if not isinstance(one, SystemMessage)]
    return _cut("\n".join(parts))


def _cut(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}\n[…]\n{text[-half:]}"


def _better(answer: str, a_came_first: bool) -> Better:
    try:
        choice = str(json.loads(answer[answer.index("{") : answer.rindex("}") + 1])["better"]).strip().lower()
    except (ValueError, KeyError, TypeError):
        choice = ""
    if choice == "tie":
        return "tie"
    if choice not in ("1", "2"):
        return "unreadable"
    return "a" if (choice == "1") == a_came_first else "b"
