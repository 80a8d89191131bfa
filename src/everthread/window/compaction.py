"""Compact: choose what is folded, and write and render the rolling summary without a model."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.memory.rendering import escape
from everthread.state.context import Context
from everthread.state.marks import is_synthetic
from everthread.state.summary import Summary, SummaryEntry
from everthread.window.masking import STUB_TOKENS, mask
from everthread.window.tokens import TokenCounter
from everthread.window.turns import anchor_of, opens_turn, split

CountText = Callable[[str], int]

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_IDENTIFIER = re.compile(
    r"\b(?:0x[0-9A-Fa-f]{4,}|[A-Z]{2,}[-_]?\d[\w-]*|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{5,}|"
    r"[a-z]+_[a-z]+_\d{3,}|\d{4}-\d{2}-\d{2}|#?W?\d{6,})\b"
)
_RULE = re.compile(
    r"\b(?:never|always|don't|do not|must|before i|unless i|without my|budget|allerg\w+)\b", re.IGNORECASE
)
_LONGEST = 220
_IDENTIFIERS = "Identifiers"
_STANDING = "Standing instructions"


def render_summary(summary: Summary, sections: Sequence[str]) -> str:
    """Render a summary under its headings, in the agent's order; other headings follow."""
    if not summary.entries:
        return summary.text
    order = [*sections, *(entry.section for entry in summary.entries)]
    blocks = []
    for section in dict.fromkeys(order):
        lines = [f"- {entry.text}" for entry in summary.entries if entry.section == section]
        if lines:
            blocks.append(f"## {section}\n" + "\n".join(lines))
    return "\n\n".join(blocks)


def extract(previous: Summary | None, folded: Sequence[BaseMessage], *, limit: int, count: CountText) -> Summary:
    """Fold messages into a summary by rules: what the user asked for and forbade, answers, identifiers.

    Standing instructions and identifiers stay longest; the oldest exchanges go first when the summary
    is over its limit. Nothing is rephrased, so nothing is invented.

    Args:
        previous: the summary so far; its entries are kept and never summarised again.
        folded: the messages that leave, oldest first.
        limit: tokens of the rendered summary.
        count: tokens of a text.
    """
    entries = [*(previous.entries if previous else ()), *_entries(folded)]
    entries = _within(_unique(entries), limit, count)
    return Summary(
        entries=tuple(entries),
        text=previous.text if previous and not previous.entries else "",
        covers=(previous.covers if previous else 0) + len(folded),
        last_message_id=str(folded[-1].id),
        version=(previous.version if previous else 0) + 1,
    )


def transcript_lines(folded: Sequence[BaseMessage], *, tool_characters: int = 600) -> str:
    """Render messages for a summariser: speaker and text, tool results cut short."""
    lines = []
    for message in folded:
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = "; ".join(f"{call['name']}({call['args']})" for call in message.tool_calls)
            lines.append(
                f"assistant calls {calls}" if not message.text else f"assistant: {message.text} [calls {calls}]"
            )
        elif isinstance(message, ToolMessage):
            text = str(message.text)
            cut = text if len(text) <= tool_characters else text[:tool_characters] + " […]"
            lines.append(f"tool {message.name or ''}: {cut}")
        elif not is_synthetic(message):
            lines.append(f"{'user' if opens_turn(message) else 'assistant'}: {message.text}")
    return "\n".join(escape(line) for line in lines)


def _entries(folded: Sequence[BaseMessage]) -> list[SummaryEntry]:
    found: list[SummaryEntry] = []
    for message in folded:
        source = (str(message.id),)
        text = str(message.text)
        if opens_turn(message):
            found += [
                SummaryEntry(section=_STANDING, text=f'User: "{_short(sentence)}"', sources=source)
                for sentence in _SENTENCE.split(text)
                if _RULE.search(sentence)
            ]
            found.append(SummaryEntry(section="Conversation", text=f"User: {_gist(text)}", sources=source))
        elif isinstance(message, AIMessage) and text.strip() and not is_synthetic(message):
            found.append(SummaryEntry(section="Conversation", text=f"Assistant: {_gist(text)}", sources=source))
        found += [
            SummaryEntry(section=_IDENTIFIERS, text=identifier, sources=source)
            for identifier in dict.fromkeys(_IDENTIFIER.findall(text))
        ][:12]
    return found


def _unique(entries: Sequence[SummaryEntry]) -> list[SummaryEntry]:
    by_text: dict[tuple[str, str], SummaryEntry] = {}
    for entry in entries:
        by_text.setdefault((entry.section, entry.text), entry)
    return list(by_text.values())


def _within(entries: list[SummaryEntry], limit: int, count: CountText) -> list[SummaryEntry]:
    """Drop entries until the rest fits: exchanges first, then identifiers, then instructions, oldest first."""
    sizes = [count(entry.text) + 3 for entry in entries]
    total = sum(sizes)
    gone: set[int] = set()
    for section in ("Conversation", _IDENTIFIERS, _STANDING):
        for place, entry in enumerate(entries):
            if total <= limit:
                break
            if entry.section == section:
                gone.add(place)
                total -= sizes[place]
    return [entry for place, entry in enumerate(entries) if place not in gone]


def _gist(text: str) -> str:
    """Return the first sentence that says something."""
    sentences = [part.strip() for part in _SENTENCE.split(text) if len(part.strip()) > 12]
    return _short(sentences[0] if sentences else text)


def _short(text: str) -> str:
    text = escape(text)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"


@dataclass
class Fold:
    """What one compaction masks and folds."""

    folded: list[BaseMessage] = field(default_factory=list)
    masked: dict[str, BaseMessage] = field(default_factory=dict)
    """Stand-ins by message id."""
    by_turns: bool = False
    """The number of turns asked for it, not their size."""
    tokens_before: int = 0
    tokens_after: int = 0


def plan_fold(messages: Sequence[BaseMessage], *, target: int, context: Context, counter: TokenCounter) -> Fold:
    """Plan one compaction down to a target.

    Old tool results are masked first, which costs nothing and is often enough; then the oldest turns
    are folded, whole, and the last `keep_last_turns` stay word for word. The anchor stays.

    Args:
        messages: the working set, oldest first.
        target: tokens that should be left.
        context: `keep_last_turns`, `context_limit`.
        counter: counts tokens.
    """
    turns = split(messages)
    foldable = turns[: -context.keep_last_turns]
    anchor = anchor_of(messages)
    fold = Fold(tokens_before=sum(map(counter.message, messages)))
    fold.by_turns = context.context_limit is not None and len(turns) > context.context_limit
    left = fold.tokens_before
    for turn in turns[:-1]:
        for result in (result for group in turn.groups for result in group.results):
            if left > target and counter.text(str(result.text)) > STUB_TOKENS + 40:
                stand_in = mask(result, STUB_TOKENS, counter.text)
                fold.masked[str(result.id)] = stand_in
                left += counter.message(stand_in) - counter.message(result)
    for turn in foldable:
        if left <= target and not fold.by_turns:
            break
        for message in turn.messages:
            if message is not anchor:
                fold.folded.append(message)
                left -= counter.message(fold.masked.pop(str(message.id), message))
    fold.tokens_after = left
    return fold


def usable(text: str, limit: int, count: CountText) -> bool:
    """Tell whether what a summariser wrote may replace messages: it says something and is not too long."""
    return len(text.split()) >= 5 and count(text) <= limit
