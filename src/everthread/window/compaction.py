"""Write, read and render the rolling summary of what a compaction folds.

The rules write it first (`absorb`); what a summariser writes may take the place of their story (`rewritten`). The
user's constraints, word for word, and the index of identifiers stay as the rules made them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.memory.folding import folded
from everthread.memory.rendering import escape
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.constraints import constraints_in, urgency
from everthread.memory.text.sentences import sentences
from everthread.state.marks import is_synthetic
from everthread.state.summary import STANDING, Summary, SummaryEntry
from everthread.window.identifiers import identifiers_in, merged, render_identifiers, shown_in, within
from everthread.window.tokens import TokenCounter
from everthread.window.turns import Group, opens_turn, split

CountText = Callable[[str], int]

STORY_SHARE, STORY_TOKENS = 0.20, 600
"""Of the budget, and tokens at the most, for the story: the 200 words of a summariser are some 300."""

IDENTIFIER_SHARE, IDENTIFIER_TOKENS = 0.30, 600
"""Of the budget, and tokens at the most, for the index of identifiers."""

CONSTRAINT_SHARE, CONSTRAINT_TOKENS = 0.10, 2_000
"""Of the budget, and tokens at the most, for the user's constraints; the newest stay."""

SMALL_SHARE, SMALL_TOKENS = 0.20, 400
"""The same for a small budget, of which a tenth would be a handful of sentences."""

HEADINGS = 60
"""Tokens that the headings of a summary, and what it says of rules without room, take at the most."""

CONVERSATION = "Conversation"
STEPS = "Steps"
_BY_RULES = (STEPS, CONVERSATION)
"""Sections that the rules write; over the limit their entries go first, in this order."""

_DROPPED_TO = 0.6
"""Share of the story's limit down to which the rules' entries go at once, since each time the prompt's head changes."""

_GIST = 160
"""Characters that are kept of what somebody said."""

_SHORTEST = 12
"""Characters of a sentence that says nothing, such as `Yes, please.`"""

_ARGUMENTS, _RESULT = 100, 60
"""Characters that a step shows of a call's arguments, and of its result."""

TOOL_CHARACTERS = 600
"""What a summariser sees of the results of one tool round; parallel results share it."""

_FEWEST_CHARACTERS = 150
"""What it sees of one result at the least."""

CONDENSE_TOKENS = 12_000
"""Unread text that is worth a call of a summariser with a large window; until then the rules' summary stands."""

_FULL_REQUEST = 0.8
"""Share of one request that has to wait unread: what the next fold adds then still fits the same request."""

MOST_PENDING = 300
"""Unread messages that a summary remembers; without a summariser the list would grow with the thread."""

_HEADING = re.compile(r"#{1,6}\s+(\S.*)|\*\*(.+)\*\*:?")
_BULLET = re.compile(r"(?:[-*•]|\d{1,9}[.)])\s+(\S.*)")
_SOURCES = re.compile(r" ?\[(\d{1,9}(?: ?, ?\d{1,9})*)\] ?\.?$")
_NO_PROSE = ("{", "[", "`", "<")

_PROTECTED = re.compile(
    r"(?:the|all|any|new|updated?|current|users?|my|our|your|additional|important|protected|pinned|permanent|other|more|"
    r"further|active|s|section|note|summary|heading|title|of|and|[ivx]{1,4})*"
    r"(?:standing(?:instruct|rule)|identifiersseen)"
)
"""Letters with which a heading begins that only the state may have, whatever stands between them."""

_LONGEST_HEADING = 120
_MARKUP = re.compile(r"<[^<>]{0,80}>")
_OTHER_SECTION = "Summary"
"""Section of what a model wrote under a heading that it was not given, or under none."""


@dataclass(frozen=True)
class Limits:
    """Tokens that the parts of a summary may take."""

    story: int
    identifiers: int
    constraints: int

    @classmethod
    def of(cls, budget: int) -> "Limits":
        """Return the limits for a budget in tokens."""

        def part(share: float, most: int) -> int:
            return min(int(budget * share), most)

        return cls(
            story=part(STORY_SHARE, STORY_TOKENS),
            identifiers=part(IDENTIFIER_SHARE, IDENTIFIER_TOKENS),
            constraints=max(part(CONSTRAINT_SHARE, CONSTRAINT_TOKENS), part(SMALL_SHARE, SMALL_TOKENS)),
        )

    def within(self, tokens: int) -> "Limits":
        """Return limits that leave a summary of at most so many tokens; the constraints go last."""
        left = tokens - HEADINGS
        constraints = max(min(self.constraints, left), 0)
        share = min(max(left - constraints, 0) / max(self.story + self.identifiers, 1), 1.0)
        return Limits(int(self.story * share), int(self.identifiers * share), constraints)

    @property
    def total(self) -> int:
        """Tokens of a rendered summary at the most, headings included."""
        return self.story + self.identifiers + self.constraints + HEADINGS


# The summary by rules.


def absorb(
    previous: Summary | None,
    folded: Sequence[BaseMessage],
    remaining: Sequence[BaseMessage],
    *,
    limits: Limits,
    counter: TokenCounter,
    rules: Rules = BUILT_IN,
) -> Summary:
    """Fold messages into the summary by rules: what was asked, answered and done, the user's constraints, identifiers.

    Entries of the summary so far are kept, never summarised again; the oldest go when it is over its
    limit. Nothing is rephrased, so nothing is invented.

    Args:
        folded: messages that leave the working set, oldest first.
        remaining: the working set afterwards, as the prompt shows it.
        rules: tell which sentences are constraints of the user.
    """
    summary = previous or Summary()
    constraints = [entry for entry in summary.entries if entry.section == STANDING] + _constraints_of(folded, rules)
    story = [entry for entry in summary.entries if entry.section != STANDING] + _story_of(folded)
    kept = _newest_constraints(constraints, limits.constraints, counter)
    left_out = len({entry.text for entry in constraints}) - len(kept)
    summary = summary.model_copy(
        update={
            "entries": (*kept, *_newest_story(story, limits.story, counter)),
            "rules_left_out": summary.rules_left_out + left_out,
            "text": _last_lines(summary.text, limits.story // 2, counter),
            "covers": summary.covers + len(folded),
            "last_message_id": str(folded[-1].id) if folded else summary.last_message_id,
            "version": summary.version + 1,
            "writer": "extractive" if folded else summary.writer,
            "pending": (*summary.pending, *(str(message.id) for message in folded))[-MOST_PENDING:],
            "pending_tokens": summary.pending_tokens + sum(line_sizes(numbered_lines(folded), counter)),
        }
    )
    is_shown = shown_in(render_story(summary, ()), remaining)
    index = within(merged(summary.identifiers, folded), limits.identifiers, counter, is_shown=is_shown)
    return summary.model_copy(update={"identifiers": tuple(index)})


def _constraints_of(folded: Sequence[BaseMessage], rules: Rules) -> list[SummaryEntry]:
    return [
        SummaryEntry(section=STANDING, text=sentence, sources=(str(message.id),))
        for message in folded
        if opens_turn(message)
        for sentence in constraints_in(str(message.text), rules)
    ]


def _story_of(folded: Sequence[BaseMessage]) -> list[SummaryEntry]:
    """Return an entry for each thing that was said, and one for each call."""
    entries: list[SummaryEntry] = []
    for group in (group for turn in split(folded) for group in turn.groups):
        first, sources = group.messages[0], tuple(str(message.id) for message in group.messages)
        if is_synthetic(first) or isinstance(first, ToolMessage):
            continue
        speaker = "Assistant" if isinstance(first, AIMessage) else "User" if opens_turn(first) else ""
        text = str(first.text)
        if speaker == "User" or (speaker and text.strip()):
            said = f"{speaker}: {_gist(text)}"
            entries.append(SummaryEntry(section=CONVERSATION, text=said, sources=sources))
        entries += [SummaryEntry(section=STEPS, text=step, sources=sources) for step in _steps(group)]
    return entries


def _steps(group: Group) -> Iterator[str]:
    """Yield a line for each call: what was called with what, and how its result begins."""
    first, results = group.messages[0], {result.tool_call_id: str(result.text) for result in group.results}
    for call in first.tool_calls if isinstance(first, AIMessage) else ():
        arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        # So many words are longer than what is shown of them.
        result = " ".join(results.get(str(call["id"]), "no result").split(maxsplit=_RESULT))
        yield escape(f"{call['name']}({_cut(arguments, _ARGUMENTS)}) → {_cut(result, _RESULT)}")


def _gist(text: str) -> str:
    """Return the first sentence that says something."""
    # Nothing further on is shown, so a long text need not be read to its end.
    start = text[: 4 * _GIST]
    said = next((sentence for sentence in sentences(start) if len(sentence) > _SHORTEST), text)
    return escape(_cut(said, _GIST))


def _newest_constraints(entries: Sequence[SummaryEntry], limit: int, counter: TokenCounter) -> list[SummaryEntry]:
    """Return the constraints that fit, each text once, in order: the urgent ones first, of equals the newest."""
    latest = list({entry.text: entry for entry in entries}.values())
    kept: set[int] = set()
    for place in sorted(range(len(latest)), key=lambda place: (urgency(latest[place].text), -place)):
        size = _entry_tokens(latest[place], counter)
        if size <= limit:
            kept.add(place)
            limit -= size
    return [entry for place, entry in enumerate(latest) if place in kept]


def _newest_story(entries: Sequence[SummaryEntry], limit: int, counter: TokenCounter) -> list[SummaryEntry]:
    """Drop entries once they are over the limit: steps first, then exchanges, then any other, the oldest first."""
    first_of_each: dict[tuple[str, str], SummaryEntry] = {}
    for entry in entries:
        first_of_each.setdefault((entry.section, entry.text), entry)
    story = list(first_of_each.values())
    sizes = [_entry_tokens(entry, counter) for entry in story]
    total = sum(sizes) + 6 * len({entry.section for entry in story})
    target = limit * _DROPPED_TO if total > limit else limit
    gone: set[int] = set()
    ranks = {section: rank for rank, section in enumerate(_BY_RULES)}
    for place in sorted(range(len(story)), key=lambda place: ranks.get(story[place].section, len(ranks))):
        if total <= (target if story[place].section in _BY_RULES else limit):
            break
        gone.add(place)
        total -= sizes[place]
    return [entry for place, entry in enumerate(story) if place not in gone]


def _entry_tokens(entry: SummaryEntry, counter: TokenCounter) -> int:
    """Return the tokens of an entry with its bullet and the end of its line."""
    return counter.text(entry.text) + 3


# The summary of a summariser.


def wants_summarizer(summary: Summary, request: int) -> bool:
    """Tell whether enough waits unread to be worth a summariser's call.

    Bullets of the rules are exact but many; a call for every folded turn would cost more than it says.

    Args:
        summary: the summary by rules.
        request: tokens of new messages that fit one request to the summariser.
    """
    return summary.pending_tokens >= min(CONDENSE_TOKENS, request * _FULL_REQUEST)


def numbered_lines(folded: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """Return a summariser's view of messages: id and line; speaker, text, calls, tool results cut short."""
    lines = []
    characters = TOOL_CHARACTERS
    for message in folded:
        if isinstance(message, AIMessage) and message.tool_calls:
            characters = max(TOOL_CHARACTERS // len(message.tool_calls), _FEWEST_CHARACTERS)
            calls = "; ".join(f"{call['name']}({call['args']})" for call in message.tool_calls)
            lines.append((str(message.id), " ".join(filter(None, ["assistant:", str(message.text), f"calls {calls}"]))))
        elif isinstance(message, ToolMessage):
            lines.append((str(message.id), f"tool {message.name or ''}: {_cut(str(message.text), characters)}"))
        elif not is_synthetic(message):
            speaker = "user" if opens_turn(message) else "assistant"
            lines.append((str(message.id), f"{speaker}: {message.text}"))
    return [(source, escape(line)) for source, line in lines]


def line_sizes(lines: Sequence[tuple[str, str]], counter: TokenCounter) -> list[int]:
    """Return the tokens of a summariser's lines."""
    return [counter.text(line) for _, line in lines]


def usable(text: str, limit: int, count: CountText) -> bool:
    """Tell whether what a summariser wrote may replace messages: it says something and is not too long."""
    return len(text.split()) >= 5 and count(text) <= limit


def rewritten(
    summary: Summary,
    text: str,
    numbered: Mapping[int, str],
    *,
    sections: Sequence[str],
    limits: Limits,
    counter: TokenCounter,
    support: str,
    later: Sequence[tuple[str, str]] = (),
) -> Summary | None:
    """Put a model's text in place of the story, when it may take that place.

    The user's constraints and the identifiers stay as the rules made them: what a model writes under such a heading,
    in whatever style, is left out. So are bullets with a number or code that the input does not have.

    Args:
        summary: the summary by rules, after `absorb`.
        numbered: message ids by the numbers that the summariser was shown.
        sections: headings that it was given; what stands under another one goes under one of ours.
        later: ids and lines that wait for the next request; what the rules say of them stays.

    Returns:
        None when most of its bullets say what nobody said, or the text is no summary at all.
    """
    constraints = [entry for entry in summary.entries if entry.section == STANDING]
    texts = {entry.text for entry in constraints}
    text = _unprotected(text)
    titles = {_letters(section): section for section in sections}
    written = [
        entry.model_copy(update={"section": titles.get(_letters(entry.section), _OTHER_SECTION)})
        for entry in read_entries(text, numbered)
        if entry.text not in texts
    ]
    supported = [entry for entry in written if all(name in support for name, _ in identifiers_in(entry.text))]
    prose = "" if written else _prose(text)
    if len(supported) * 2 < len(written) or not (written or prose) or prose[:1] in _NO_PROSE:
        return None
    unread = {source for source, _ in later}
    by_rules = [entry for entry in summary.entries if entry.section in _BY_RULES and unread.intersection(entry.sources)]
    new = summary.model_copy(
        update={
            "entries": (*constraints, *supported, *by_rules),
            "text": prose,
            "writer": "model",
            "failures": 0,
            "pending": tuple(message_id for message_id in summary.pending if message_id in unread),
            "pending_tokens": sum(line_sizes(later, counter)),
        }
    )
    index = within(summary.identifiers, limits.identifiers, counter, is_shown=render_story(new, ()).__contains__)
    return new.model_copy(update={"identifiers": tuple(index)})


def read_entries(text: str, numbered: Mapping[int, str]) -> list[SummaryEntry]:
    """Read headings and bullets; a bullet may end in the numbers of its messages."""
    section, entries = _OTHER_SECTION, []
    for line in (" ".join(line.split()) for line in text.splitlines()):
        if heading := _HEADING.fullmatch(line):
            section = (heading.group(1) or heading.group(2)).rstrip("#").strip()
        elif bullet := _BULLET.fullmatch(line):
            said = bullet.group(1)
            sources: tuple[str, ...] = ()
            if cited := _SOURCES.search(said):
                numbers = map(int, cited.group(1).split(","))
                sources = tuple(numbered[number] for number in numbers if number in numbered)
                said = said[: cited.start()]
            entries.append(SummaryEntry(section=section, text=escape(said), sources=sources))
    return entries


def _unprotected(text: str) -> str:
    """Return a model's text without sections that only the state may have, each up to the next heading."""
    kept: list[str] = []
    is_protected = False
    for line in text.splitlines():
        if _PROTECTED.match(_letters(line[:_LONGEST_HEADING])):
            is_protected = True
        elif _HEADING.fullmatch(" ".join(line.split())):
            is_protected = False
        if not is_protected:
            kept.append(line)
    return "\n".join(kept)


def _letters(heading: str) -> str:
    """Return a heading's letters alone: case, marks, numbers, spacing and signs that nobody sees make no other one."""
    return "".join(sign for sign in folded(_MARKUP.sub("", heading)).low if sign.isalpha())


def _prose(text: str) -> str:
    """Return a model's text without headings of its own, and without delimiters of ours."""
    return "\n".join(escape(line.lstrip().lstrip("#").lstrip()) for line in text.strip().splitlines())


# What the model reads.


def render_summary(summary: Summary, sections: Sequence[str]) -> str:
    """Render story and identifiers as the model reads them."""
    parts = (render_story(summary, sections), render_identifiers(summary.identifiers))
    return "\n\n".join(filter(None, parts))


def render_story(summary: Summary, sections: Sequence[str]) -> str:
    """Render the entries under their headings: constraints, the agent's sections, any other, then those by rules.

    What the rules add is last and in the order of time, so that a longer story begins as it did before.
    """
    blocks = [summary.text] if summary.text else []
    others = (entry.section for entry in summary.entries if entry.section not in _BY_RULES)
    for section in dict.fromkeys((STANDING, *sections, *others, CONVERSATION)):
        members = _BY_RULES if section == CONVERSATION else (section,)
        lines = [f"- {entry.text}" for entry in summary.entries if entry.section in members]
        if section == STANDING and summary.rules_left_out:
            lines.append(f"({summary.rules_left_out} older ones have no room here; `recall_history` finds them.)")
        if lines:
            blocks.append(f"## {section}\n" + "\n".join(lines))
    return "\n\n".join(blocks)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters].rsplit(" ", 1)[0] + " …"


def _last_lines(text: str, limit: int, counter: TokenCounter) -> str:
    """Return the lines of a text that fit, without the first ones."""
    lines = text.splitlines()
    while lines and counter.text("\n".join(lines)) > limit:
        lines = lines[1:]
    return "\n".join(lines)
