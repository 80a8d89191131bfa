"""Write, read and render the rolling summary of what a compaction folds."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.memory.rendering import escape
from everthread.memory.text.constraints import constraints_in, is_prohibition
from everthread.state.marks import is_synthetic
from everthread.state.summary import STANDING, Summary, SummaryEntry
from everthread.window.identifiers import identifiers_in, merged, render_identifiers, shown_in, within
from everthread.window.tokens import TokenCounter
from everthread.window.turns import Group, opens_turn, split

CountText = Callable[[str], int]

SUMMARY_SHARE = 0.20
"""Share of the budget that the story may take."""

IDENTIFIER_SHARE = 0.30
"""Share of the budget that the index of identifiers may take."""

STORY_TOKENS = 600
"""Tokens that the story may take at the most: a summariser's 200 words are some 300, and exchanges follow them."""

IDENTIFIER_TOKENS = 600
"""Tokens that the index may take at the most."""

STANDING_SHARE = 0.10
"""Share of the budget for standing instructions; the newest stay."""

STANDING_TOKENS = 400
"""Tokens for standing instructions at the most."""

CONVERSATION = "Conversation"
STEPS = "Steps"
TOOL_CHARACTERS = 600
"""What a summariser sees of the results of one tool round; parallel results share it."""

_FEWEST_CHARACTERS = 150
"""What it sees of one result at the least."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.*\S)\s*$")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+(.*?)\s*#*|\*\*(.+?)\*\*:?)\s*$")
_SOURCES = re.compile(r"\s*\[(\d+(?:\s*,\s*\d+)*)\]\s*\.?$")
_NO_PROSE = ("{", "[", "`", "<")
_LONGEST = 160
_SHORTEST = 12
"""Characters of a sentence that says nothing, such as `Yes, please.`"""

_RESULT = 60
"""Characters that a step shows of its result."""

CONDENSE_TOKENS = 12_000
"""Unread text that is worth a call of a summariser with a large window; until then the rules' summary stands."""

_FULL_REQUEST = 0.8
"""Share of one request that has to wait unread: what the next fold adds then still fits the same request."""

_DROPPED_TO = 0.6
"""Share of the story's limit down to which the oldest entries go once it is over: each time the head changes."""

MOST_PENDING = 300
"""Unread messages that a summary remembers; without a summariser the list would grow with the thread."""


@dataclass(frozen=True)
class Limits:
    """Tokens that the parts of a summary may take."""

    story: int
    identifiers: int
    standing: int

    @classmethod
    def of(cls, budget: int) -> "Limits":
        """Return the limits for a budget in tokens."""
        return cls(
            story=min(int(budget * SUMMARY_SHARE), STORY_TOKENS),
            identifiers=min(int(budget * IDENTIFIER_SHARE), IDENTIFIER_TOKENS),
            standing=min(int(budget * STANDING_SHARE), STANDING_TOKENS),
        )

    def within(self, tokens: int) -> "Limits":
        """Return limits that leave a summary of at most so many tokens; standing instructions go last."""
        left = tokens - 40
        standing = max(min(self.standing, left), 0)
        share = min(max(left - standing, 0) / max(self.story + self.identifiers, 1), 1.0)
        return Limits(int(self.story * share), int(self.identifiers * share), standing)

    @property
    def total(self) -> int:
        """Tokens of a rendered summary at the most, headings included."""
        return self.story + self.identifiers + self.standing + 40


def absorb(
    previous: Summary | None,
    folded: Sequence[BaseMessage],
    remaining: Sequence[BaseMessage],
    *,
    limits: Limits,
    counter: TokenCounter,
) -> Summary:
    """Fold messages into the summary by rules: what was asked, answered and done, rules of the user, identifiers.

    Entries of the summary so far are kept, never summarised again; the oldest go when it is over its
    limit. Nothing is rephrased, so nothing is invented.

    Args:
        previous: the summary so far.
        folded: messages that leave the working set, oldest first.
        remaining: the working set afterwards, as the prompt shows it.
        limits: tokens of each part.
        counter: counts tokens.
    """
    known = previous or Summary()
    standing = [*_in(known, STANDING), *_standing(folded)]
    story = [entry for entry in known.entries if entry.section != STANDING] + _story(folded)
    entries = [*_newest(standing, limits.standing, counter.text), *_within(_unique(story), limits.story, counter)]
    made = known.model_copy(
        update={
            "entries": tuple(entries),
            "text": _cut(known.text, limits.story // 2, counter.text),
            "covers": known.covers + len(folded),
            "last_message_id": str(folded[-1].id) if folded else known.last_message_id,
            "version": known.version + 1,
            "writer": "extractive" if folded else known.writer,
            "pending": (*known.pending, *(str(message.id) for message in folded))[-MOST_PENDING:],
            "pending_tokens": known.pending_tokens + sum(line_sizes(numbered_lines(folded), counter)),
        }
    )
    return _indexed(made, folded, remaining, limits, counter)


def rewritten(
    made: Summary,
    text: str,
    numbered: Mapping[int, str],
    *,
    limits: Limits,
    counter: TokenCounter,
    support: str,
    later: Sequence[tuple[str, str]] = (),
) -> Summary | None:
    """Put a model's text in place of the story, when it may take that place.

    The user's standing instructions and the identifiers stay as the rules made them. Bullets with a
    number or code that the input does not have are left out.

    Args:
        made: the summary by rules, after `absorb`.
        text: what the summariser wrote.
        numbered: message ids by the numbers that the summariser was shown.
        limits: tokens of each part.
        counter: counts tokens.
        support: everything the summariser was shown.
        later: ids and lines that wait for the next request; what the rules say of them stays.

    Returns:
        None when most of its bullets say what nobody said, or the text is no summary at all.
    """
    standing = _in(made, STANDING)
    told = {entry.text for entry in standing}
    entries = [entry for entry in _read(text, numbered) if entry.text not in told and entry.section != STANDING]
    supported = [entry for entry in entries if all(known in support for known, _ in identifiers_in(entry.text))]
    if len(supported) * 2 < len(entries) or (not entries and text.lstrip()[:1] in _NO_PROSE):
        return None
    free = "" if entries else text.strip()
    waiting = {source for source, _ in later}
    ours = [entry for entry in made.entries if entry.section in _RANK and waiting.intersection(entry.sources)]
    new = made.model_copy(
        update={
            "entries": (*standing, *supported, *ours),
            "text": free,
            "writer": "model",
            "failures": 0,
            "pending": tuple(known for known in made.pending if known in waiting),
            "pending_tokens": sum(line_sizes(later, counter)),
        }
    )
    kept = within(made.identifiers, limits.identifiers, counter, is_shown=render_story(new, ()).__contains__)
    return new.model_copy(update={"identifiers": tuple(kept)})


def wants_summarizer(made: Summary, request: int) -> bool:
    """Tell whether enough waits unread to be worth a summariser's call.

    Bullets of the rules are exact but many; a call for every folded turn would cost more than it says.

    Args:
        made: the summary by rules.
        request: tokens of new messages that fit one request to the summariser.
    """
    return made.pending_tokens >= min(CONDENSE_TOKENS, request * _FULL_REQUEST)


def usable(text: str, limit: int, count: CountText) -> bool:
    """Tell whether what a summariser wrote may replace messages: it says something and is not too long."""
    return len(text.split()) >= 5 and count(text) <= limit


def render_summary(summary: Summary, sections: Sequence[str]) -> str:
    """Render story and identifiers as the model reads them."""
    return "\n\n".join(
        part for part in (render_story(summary, sections), render_identifiers(summary.identifiers)) if part
    )


def render_story(summary: Summary, sections: Sequence[str]) -> str:
    """Render the entries under their headings: standing instructions, the agent's order, then any other."""
    blocks = [summary.text] if summary.text else []
    order = [STANDING, *sections, *(entry.section for entry in summary.entries if entry.section not in _RANK)]
    for section in dict.fromkeys((*order, CONVERSATION)):
        # What the rules add stands last and in the order of time, so that a longer story begins as it did before.
        members = _RANK if section == CONVERSATION else (section,)
        lines = [f"- {entry.text}" for entry in summary.entries if entry.section in members]
        if lines:
            blocks.append(f"## {section}\n" + "\n".join(lines))
    return "\n\n".join(blocks)


def numbered_lines(folded: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """Return a summariser's view of messages: id and line; speaker, text, calls, tool results cut short."""
    lines = []
    shown = TOOL_CHARACTERS
    for message in folded:
        if isinstance(message, AIMessage) and message.tool_calls:
            shown = max(TOOL_CHARACTERS // len(message.tool_calls), _FEWEST_CHARACTERS)
            calls = "; ".join(f"{call['name']}({call['args']})" for call in message.tool_calls)
            lines.append((str(message.id), " ".join(filter(None, ["assistant:", str(message.text), f"calls {calls}"]))))
        elif isinstance(message, ToolMessage):
            lines.append((str(message.id), f"tool {message.name or ''}: {_short(str(message.text), shown)}"))
        elif not is_synthetic(message):
            speaker = "user" if opens_turn(message) else "assistant"
            lines.append((str(message.id), f"{speaker}: {message.text}"))
    return [(source, escape(line)) for source, line in lines]


def line_sizes(lines: Sequence[tuple[str, str]], counter: TokenCounter) -> list[int]:
    """Return the tokens of a summariser's lines."""
    return [counter.text(line) for _, line in lines]


def _indexed(
    made: Summary, gone: Sequence[BaseMessage], remaining: Sequence[BaseMessage], limits: Limits, counter: TokenCounter
) -> Summary:
    """Index what is neither in the story nor in what the prompt still shows."""
    is_shown = shown_in(render_story(made, ()), remaining)
    kept = within(merged(made.identifiers, gone), limits.identifiers, counter, is_shown=is_shown)
    return made.model_copy(update={"identifiers": tuple(kept)})


def _in(summary: Summary, section: str) -> list[SummaryEntry]:
    return [entry for entry in summary.entries if entry.section == section]


def _standing(folded: Sequence[BaseMessage]) -> list[SummaryEntry]:
    return [
        SummaryEntry(section=STANDING, text=sentence, sources=(str(message.id),))
        for message in folded
        if opens_turn(message)
        for sentence in constraints_in(str(message.text))
    ]


def _story(folded: Sequence[BaseMessage]) -> list[SummaryEntry]:
    found = []
    for group in (group for turn in split(folded) for group in turn.groups):
        first, source = group.messages[0], tuple(str(message.id) for message in group.messages)
        text = str(first.text)
        if opens_turn(first):
            found.append(SummaryEntry(section=CONVERSATION, text=f"User: {_gist(text)}", sources=source))
        elif isinstance(first, AIMessage) and not is_synthetic(first):
            if text.strip():
                found.append(SummaryEntry(section=CONVERSATION, text=f"Assistant: {_gist(text)}", sources=source))
            found += [SummaryEntry(section=STEPS, text=step, sources=source) for step in _steps(group)]
    return found


def _steps(group: Group) -> list[str]:
    """Return one line for each call: what was called with what, and how its result begins."""
    results = {result.tool_call_id: str(result.text) for result in group.results}
    steps = []
    for call in group.messages[0].tool_calls if isinstance(group.messages[0], AIMessage) else []:
        told = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        # So many words are longer than what is shown of them.
        result = " ".join(results.get(str(call["id"]), "no result").split(maxsplit=_RESULT))
        steps.append(escape(f"{call['name']}({_short(told, 100)}) → {_short(result, _RESULT)}"))
    return steps


def _unique(entries: Sequence[SummaryEntry]) -> list[SummaryEntry]:
    by_text: dict[tuple[str, str], SummaryEntry] = {}
    for entry in entries:
        by_text.setdefault((entry.section, entry.text), entry)
    return list(by_text.values())


def _within(entries: list[SummaryEntry], limit: int, counter: TokenCounter) -> list[SummaryEntry]:
    """Drop entries once they are over the limit: steps first, then exchanges, then any other, the oldest first."""
    sizes = [counter.text(entry.text) + 3 for entry in entries]
    total = sum(sizes) + 6 * len({entry.section for entry in entries})
    target = limit * _DROPPED_TO if total > limit else limit
    order = sorted(range(len(entries)), key=lambda place: (_RANK.get(entries[place].section, 2), place))
    gone: set[int] = set()
    for place in order:
        is_ours = entries[place].section in _RANK
        if total <= (target if is_ours else limit):
            break
        gone.add(place)
        total -= sizes[place]
    return [entry for place, entry in enumerate(entries) if place not in gone]


_RANK = {STEPS: 0, CONVERSATION: 1}


def _newest(entries: Sequence[SummaryEntry], limit: int, count: CountText) -> list[SummaryEntry]:
    """Return the rules that fit, each text once, in order: prohibitions before wishes, the newest first."""
    latest = list({entry.text: entry for entry in entries}.values())
    order = sorted(range(len(latest)), key=lambda place: (not is_prohibition(latest[place].text), -place))
    kept: set[int] = set()
    for place in order:
        size = count(latest[place].text) + 3
        if size <= limit:
            kept.add(place)
            limit -= size
    return [entry for place, entry in enumerate(latest) if place in kept]


def _read(text: str, numbered: Mapping[int, str]) -> list[SummaryEntry]:
    """Read headings and bullets; a bullet may end in the numbers of its messages."""
    section, entries = "Summary", []
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            section = (heading.group(1) or heading.group(2)).strip()
        elif bullet := _BULLET.match(line):
            told = bullet.group(1)
            sources: tuple[str, ...] = ()
            if found := _SOURCES.search(told):
                numbers = (int(number) for number in found.group(1).split(","))
                sources = tuple(numbered[number] for number in numbers if number in numbered)
                told = told[: found.start()].rstrip()
            entries.append(SummaryEntry(section=section, text=told, sources=sources))
    return entries


def _gist(text: str) -> str:
    """Return the first sentence that says something."""
    said = next((sentence for sentence in _sentences(text) if len(sentence) > _SHORTEST), text)
    return escape(_short(said, _LONGEST))


def _sentences(text: str) -> Iterator[str]:
    """Yield sentences one by one, since mostly the first is all that is asked for."""
    begin = 0
    for end in _SENTENCE.finditer(text):
        yield text[begin : end.start()].strip()
        begin = end.end()
    yield text[begin:].strip()


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest].rsplit(" ", 1)[0] + " …"


def _cut(text: str, limit: int, count: CountText) -> str:
    """Return the lines of a text that fit, the newest last."""
    lines = text.splitlines()
    while lines and count("\n".join(lines)) > limit:
        lines = lines[1:]
    return "\n".join(lines)
