"""Answer a prompt: choose the domain, plan, put the answers of tools into words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everthread.agents.offline import support, travel
from everthread.agents.offline.booking import introduced_in
from everthread.agents.offline.memories import SAVE, confirmed, is_memory_question, known, memory_steps
from everthread.agents.offline.patterns import pattern, words
from everthread.agents.offline.reading import Reading, Result, visible, without_secrets
from everthread.agents.offline.reply import Call, Say, Step, failure, plain

DISCLAIMER = "(offline demo model: pattern matching, no LLM; set OPENAI_API_KEY and --model openai:NAME for a real one)"
CANNOT_SUMMARISE = "The offline model cannot summarise or extract: it matches patterns and is no language model."

_SHOWN_TURNS = 8


@dataclass(frozen=True)
class Domain:
    """What the model can do for one agent."""

    abilities: str
    plan: Callable[[Reading], list[Step]]
    tell: Callable[[Reading, Result, str], str]


@dataclass(frozen=True)
class Reply:
    """What the model answers: words, or calls and no words."""

    text: str = ""
    calls: Sequence[Call] = ()


def answer(reading: Reading) -> Reply:
    """Answer a prompt.

    Tools are called at most once in a turn, in parallel; after their answers there are only words, so a
    turn always ends.
    """
    if reading.asks_for_summary:
        return Reply(CANNOT_SUMMARISE)
    domain = _domain(reading.tools)
    planned = domain.plan(reading) if reading.text.strip() else []
    steps = [_possible(step, reading.tools) for step in planned]
    if reading.results:
        return _said(reading, _told(reading, domain, steps if _led_to(steps, reading.results) else []))
    if calls := [step for step in steps if isinstance(step, Call)]:
        return Reply(calls=_without_repeats(calls))
    said = [step.text for step in steps if isinstance(step, Say)]
    return _said(reading, said or [_small_talk(reading, domain)])


def _led_to(steps: Sequence[Step], results: Sequence[Result]) -> bool:
    """Tell whether a plan is the one whose calls have been answered.

    A result can push the options it was chosen from out of a small window; planned again, the same message
    would then say that it does not know them.
    """
    return {result.tool for result in results} <= {step.tool for step in steps if isinstance(step, Call)}


def _said(reading: Reading, parts: Sequence[str]) -> Reply:
    return Reply("\n\n".join((*parts, DISCLAIMER) if reading.begins else parts))


def _told(reading: Reading, domain: Domain, steps: Sequence[Step]) -> list[str]:
    """Put all answers of this turn into words, and add what was left to say."""
    remarks: dict[str, list[str]] = {}
    for step in steps:
        if isinstance(step, Call):
            remarks.setdefault(step.tool, []).append(step.remark)
    parts = []
    for result in reading.results:
        waiting = remarks.get(result.tool) or [""]
        parts.append(domain.tell(reading, result, waiting.pop(0)))
    return [*parts, *(step.text for step in steps if isinstance(step, Say))]


def _possible(step: Step, tools: frozenset[str]) -> Step:
    if isinstance(step, Say) or step.tool in tools:
        return step
    return Say(f"I cannot do that here: this agent has no tool `{step.tool}`.")


def _without_repeats(calls: Sequence[Call]) -> list[Call]:
    unique: list[Call] = []
    for call in calls:
        if not any(call.tool == other.tool and dict(call.args) == dict(other.args) for other in unique):
            unique.append(call)
    return unique


def _domain(tools: frozenset[str]) -> Domain:
    if "search_flights" in tools:
        return Domain(travel.ABILITIES, travel.plan, travel.tell)
    if support.SEARCH in tools:
        return Domain(support.ABILITIES, support.plan, support.tell)
    return Domain(_GENERIC, _plan_without_domain, _tell_without_domain)


_GENERIC = (
    "Without the tools of the travel or the support agent I can only keep small talk and show what I know about you."
)


def _plan_without_domain(reading: Reading) -> list[Step]:
    if is_memory_question(reading.text):
        return [Say(known(reading))]
    return memory_steps(reading)[0] if SAVE in reading.tools else []


def _tell_without_domain(reading: Reading, result: Result, remark: str) -> str:
    if result.tool == SAVE:
        return confirmed(reading, result)
    return failure(result) if result.failed else visible(result.text) or f"`{plain(result.tool)}` answered nothing."


_GREETING = pattern(r"^(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings|howdy)\b[^\n]{0,25}$")
_THANKS = pattern(words("thanks|thank you|thx|cheers|much appreciated"))
_GOODBYE = pattern(
    words("bye|goodbye|see you|good night"),
    r"\bthat(?:['’]s| is| was| will be) all\b",
    r"\bi(?:['’]m| am) done\b",
)
_IDENTITY = pattern(
    r"\b(?:who|what) are you\b",
    r"\bare you (?:an? )?(?:ai|bot|robot|human|person|real|llm|gpt|chatgpt|language model|model)\b",
    r"\bwhich model\b",
)
_HELP = pattern(r"\bwhat can you do\b", r"^help\W*$", r"\bhow can you help\b", r"\bwhat do you do\b")
_RECAP = pattern(
    r"\bsummar(?:y|i[sz]e)\b",
    r"\brecap\b",
    r"\bwhat (?:have|did) we (?:discuss|talk|do|cover)\w*",
    r"\bwhere (?:were|are) we\b",
)


def _small_talk(reading: Reading, domain: Domain) -> str:
    text = reading.text.strip()
    if not text:
        return f"I got no text that I could read. {domain.abilities}"
    if _IDENTITY.search(text):
        return f"I am the offline demo model: I match patterns and am not a language model. {domain.abilities}"
    if _RECAP.search(text):
        return _recap(reading)
    if _GOODBYE.search(text):
        return "Goodbye. What you asked me to remember is kept."
    if _THANKS.search(text):
        return "You are welcome. Is there anything else?"
    if _GREETING.match(text):
        return f"Hello{_greeted(reading.profile)}. {domain.abilities}"
    if name := introduced_in(text):
        return f"Hello, {plain(name)}. {domain.abilities}"
    if _HELP.search(text):
        return domain.abilities
    return f"I am sorry, I did not understand that. {domain.abilities}"


def _greeted(profile: Mapping[str, Any]) -> str:
    name = profile.get("name")
    return f", {plain(name)}" if isinstance(name, str) and name else ""


def _recap(reading: Reading) -> str:
    """List what is in view in the words it was said in; nothing is rephrased."""
    earlier = [f"Summary of what came before:\n{visible(reading.summary)}"] if reading.summary else []
    lines = []
    for turn in reading.turns[-_SHOWN_TURNS:]:
        if turn.user:
            lines.append(f"- You: “{visible(without_secrets(' '.join(turn.user.split())), 160)}”")
        lines += [f"  - {_done(result)}" for result in turn.results]
    if not (earlier or lines):
        return "We have only just begun; there is nothing to sum up yet."
    return "\n\n".join(
        [*earlier, *(["In this conversation, as far as I still see it:\n" + "\n".join(lines)] if lines else [])]
    )


def _done(result: Result) -> str:
    told = ", ".join(f"{name} {visible(str(value), 80)}" for name, value in result.args.items())
    outcome = "failed" if result.failed else "done"
    return (
        f"{result.tool.replace('_', ' ')} ({told}): {outcome}"
        if told
        else f"{result.tool.replace('_', ' ')}: {outcome}"
    )
