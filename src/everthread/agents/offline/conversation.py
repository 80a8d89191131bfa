"""Answer a prompt: choose the agent's tools, plan, put the answers of tools into words."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everthread.agents.offline import support, travel
from everthread.agents.offline.memory import SAVE, confirmation, is_memory_question, memory_steps, recollection
from everthread.agents.offline.prompt import Prompt, Result
from everthread.agents.offline.replies import Call, Say, Step, failure, plain, visible

DISCLAIMER = "(offline demo model: pattern matching, no LLM; set OPENAI_API_KEY and --model openai:NAME for a real one)"


@dataclass(frozen=True)
class _Domain:
    """What the model can do for one agent."""

    abilities: str
    plan: Callable[[Prompt, str], list[Step]]
    describe: Callable[[Prompt, Result, str], str]


_TRAVEL = _Domain(travel.ABILITIES, travel.plan, travel.describe)
_SUPPORT = _Domain(support.ABILITIES, support.plan, support.describe)
_NEITHER = _Domain(
    "Without the tools of the travel or the support agent I can only keep small talk and show what I know about you.",
    lambda prompt, text: [],
    lambda prompt, result, remark: visible(result.text) or f"`{plain(result.tool)}` answered nothing.",
)

_SMALL_TALK = (
    (r"\b(?:who|what) are you\b|\bare you (?:an? )?(?:ai|bot|robot|human|llm|language model)\b|\bwhich model\b",
     "I am the offline demo model: I match patterns and am not a language model. {abilities}"),
    (r"\b(?:bye|goodbye|see you|good night)\b|\bthat(?:['’]s| is| was) all\b",
     "Goodbye. What you asked me to remember is kept."),
    (r"\b(?:thanks|thank you|thx|cheers)\b", "You are welcome. Is there anything else?"),
    (r"^(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings)\b[^\n]{0,25}$", "Hello{name}. {abilities}"),
    (r"\bwhat can you do\b|^help\W*$|\bhow can you help\b", "{abilities}"),
)  # fmt: skip


def answer(prompt: Prompt) -> tuple[str, Sequence[Call]]:
    """Answer a prompt with words, or with calls and no words.

    Tools are called at most once in a turn, in parallel; after their answers there are only words, so a
    turn always ends.
    """
    domain = _TRAVEL if "search_flights" in prompt.tools else _SUPPORT if support.SEARCH in prompt.tools else _NEITHER
    steps = [_possible(step, prompt.tools) for step in _plan(prompt, domain)]
    calls = [step for step in steps if isinstance(step, Call)]
    if calls and not prompt.results:
        return "", calls
    if not prompt.results:
        parts = [step.text for step in steps if isinstance(step, Say)] or [_small_talk(prompt, domain)]
    else:
        # A result can push what the plan rested on out of a small window; another plan's words would be wrong then.
        is_same_plan = {result.tool for result in prompt.results} <= {call.tool for call in calls}
        remarks = {call.tool: call.remark for call in calls if is_same_plan}
        parts = [_described(prompt, domain, result, remarks.get(result.tool, "")) for result in prompt.results]
        parts += [step.text for step in steps if isinstance(step, Say) and is_same_plan]
    return "\n\n".join([*parts, *([DISCLAIMER] if prompt.begins else [])]), ()


def _plan(prompt: Prompt, domain: _Domain) -> list[Step]:
    if not prompt.text:
        return []
    notes, rest = memory_steps(prompt)
    if is_memory_question(rest):
        return [*notes, Say(recollection(prompt))]
    if domain is _SUPPORT and support.is_problem(prompt.text):
        # "I use Linux and the VPN drops" says both.
        rest = prompt.text
    return [*notes, *(domain.plan(prompt, rest) if rest else [])] or memory_steps(prompt, wishes=True)[0]


def _described(prompt: Prompt, domain: _Domain, result: Result, remark: str) -> str:
    if result.tool == SAVE:
        return confirmation(prompt, result)
    return failure(result) if result.failed else domain.describe(prompt, result, remark)


def _possible(step: Step, tools: frozenset[str]) -> Step:
    if isinstance(step, Say) or step.tool in tools:
        return step
    return Say(f"I cannot do that here: this agent has no tool `{step.tool}`.")


def _small_talk(prompt: Prompt, domain: _Domain) -> str:
    name = prompt.profile.get("name")
    greeted = f", {plain(name)}" if isinstance(name, str) and name else ""
    for pattern, reply in _SMALL_TALK:
        if re.search(pattern, prompt.text, re.IGNORECASE):
            return reply.format(name=greeted, abilities=domain.abilities)
    reason = "I am sorry, I did not understand that." if prompt.text else "I got no text that I could read."
    return f"{reason} {domain.abilities}"
