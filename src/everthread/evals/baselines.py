"""What others do, measured beside us: keep everything, cut off the front, or remember nothing.

They are computed from the recording alone, with the same checks and counts, and without the graph.
"""

from collections.abc import Callable, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, trim_messages

from everthread.evals.checks import PromptChecker
from everthread.evals.recording import Watch, exchanges
from everthread.evals.records import Record
from everthread.evals.replay import Result, Trace
from everthread.models.scripted import Tools
from everthread.window.budget import reply_reserve
from everthread.window.tokens import TokenCounter
from everthread.window.turns import legal, split

FULL, TRUNCATE, NOTHING = "full history", "truncate only", "no memory"

BASELINES: tuple[str, ...] = (FULL, TRUNCATE, NOTHING)
"""Every message; as many of the newest turns as fit; the current turn alone."""

_SAFETY = 0.95
"""The same share of the budget that Everthread uses when counts are exact."""


def play_baseline(
    record: Record,
    name: str,
    *,
    window: int,
    counter: TokenCounter,
    watch: Watch | None = None,
    reserve: int | None = None,
) -> Trace:
    """Assemble every prompt of a recording as a baseline would.

    Args:
        name: one of `BASELINES`.
        window: input limit of the model in tokens.
        watch: sees every prompt with the recorded reply to it.
        reserve: tokens for the reply; None takes the usual ones.

    Returns:
        What a replay returns, without events; a prompt over the window is counted, not refused.
    """
    room = reply_reserve(window, reserve)
    checker = PromptChecker(window=window, reserve=room, counter=counter, instructions=record.toolkit.system)
    system = SystemMessage(record.toolkit.system)
    tools: Tools = list(record.toolkit.tools)
    budget = int((window - room - counter.messages([system]) - counter.tools(tools)) * _SAFETY)
    choose = _CHOICES[name]
    history: list[BaseMessage] = []
    runs = exchanges(record.messages)[0]
    for run in runs:
        checker.expect(run.input)
        history += run.input
        results = list(run.results)
        for reply in run.replies:
            prompt: list[BaseMessage] = [system, *legal(choose(history, budget, counter))]
            checker.check(prompt, tools)
            if watch is not None:
                watch(reply, prompt, tools)
            called = {str(call["id"]) for call in reply.tool_calls}
            answers = [result for result in results if result.tool_call_id in called]
            results = [result for result in results if result not in answers]
            history += [reply, *answers]
    turns = sum(isinstance(message, HumanMessage) for run in runs for message in run.input)
    result = Result.of(record, checker, turns=turns, outcome="replayed" if checker.calls else "refused")
    return Trace(result, tuple(checker.sizes))


def _newest(history: Sequence[BaseMessage], budget: int, counter: TokenCounter) -> list[BaseMessage]:
    def size(messages: Sequence[BaseMessage]) -> int:
        return sum(counter.sizes(messages))

    if size(history) <= budget:
        return list(history)
    newest = trim_messages(history, max_tokens=budget, token_counter=size, strategy="last", start_on="human")
    return newest or split(history)[-1].messages


_CHOICES: dict[str, Callable[[Sequence[BaseMessage], int, TokenCounter], list[BaseMessage]]] = {
    FULL: lambda history, *_: list(history),
    TRUNCATE: _newest,
    NOTHING: lambda history, *_: split(history)[-1].messages,
}
