"""Show and confirm what is remembered about the user."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from everthread.agents.offline.failures import told_to_the_user
from everthread.agents.offline.patterns import pattern
from everthread.agents.offline.reading import NoteLine, Reading, Result
from everthread.agents.offline.reply import Call, Say, Step, lowered, plain
from everthread.agents.offline.statements import (
    is_task,
    is_wish_to_forget,
    keywords_of,
    statements_in,
    without_wish_to_forget,
)

SAVE = "save_memory_note"
CANNOT_FORGET = (
    "I cannot erase notes here; `everthread notes USER` shows what is kept. Tell me what holds instead; the newer "
    "statement then wins."
)
NO_TASKS = "I keep what you prefer, not a to-do list: I cannot remind you of that."

_QUESTION = pattern(
    r"\byou (?:still )?(?:know|remember|recall|have|saved?|stored?|got|keep)\b.{0,30}"
    r"\b(?:my (?:\w+ )?(?:preferences?|profile|notes?|details|diet|seat|name|home)|about me|on me)\b",
    r"\b(?:what(?:['’]s| is| are)?|show|list|tell me|which)\b.{0,12}\bmy (?:\w+ )?(?:preferences?|profile|notes)\b",
    r"\bdo you (?:still )?remember\b.{0,40}\b(?:i|i['’]m|my|me)\b",
    r"\bdo you know (?:what|which|that|if|whether) i (?:prefer|like|eat|want|am|usually)\b",
    r"\bdo i (?:usually |normally |still )?(?:prefer|like)\b",
    r"\bwho am i\b",
)
# Numbers and documents help nobody here and would repeat what should not be repeated.
_PRIVATE = re.compile(
    r"(?:^|_)(?:ids?|number|passport|birth|dob|age|address|phone|email|tag)(?:_|$)|_id$|expiry", re.IGNORECASE
)
_YES_OR_NO = pattern(r"(?:^|[.!?,]\s+)(?:(?:and|so|but|hi|hello|hey)\W+)*(?:do|did|have|are|is|can|could)\b")
_MOST = 12


def memory_steps(reading: Reading, *, cautious: bool = False) -> tuple[list[Step], str]:
    """Plan a note for every statement of the message; the rest of the message is for others to read."""
    found, rest = statements_in(reading.text, cautious=cautious)
    steps: list[Step] = [
        Call(SAVE, {"text": one.text, "keywords": list(one.keywords), "scope": one.scope}) for one in found
    ]
    if is_wish_to_forget(rest):
        steps.append(Say(CANNOT_FORGET))
        rest = without_wish_to_forget(rest)
    if is_task(reading.text):
        steps.append(Say(NO_TASKS))
    if not steps and re.match(r"(?i)^(?:please )?remember(?: that| this)?[\s.:,!]*$", reading.text):
        steps.append(Say("What shall I remember?"))
    return steps, rest


def is_memory_question(text: str) -> bool:
    """Tell whether the user asks what is known about them."""
    return _QUESTION.search(text) is not None


def known(reading: Reading) -> str:
    """Answer what is known about the user: profile, long-term notes and notes of this conversation."""
    blocks = [
        ("From your profile", [f"{label}: {value}" for label, value in _facts(reading.profile)]),
        ("From earlier conversations", [_dated(note) for note in reading.long_term]),
        ("From this conversation", [_dated(note) for note in session_notes(reading)]),
    ]
    parts = [f"{title}:\n" + "\n".join(f"- {line}" for line in lines) for title, lines in blocks if lines]
    is_yes_or_no = _YES_OR_NO.search(reading.text) is not None
    if not parts:
        begins = "No, I have" if is_yes_or_no else "I have"
        return (
            f"{begins} no profile and no notes about you yet. Tell me what you prefer, for example "
            "“I prefer aisle seats”, and I will remember it."
        )
    begins = "Yes, here" if is_yes_or_no else "Here"
    return "\n\n".join((f"{begins} is what I know about you.", *parts, "Tell me if something is wrong or has changed."))


def session_notes(reading: Reading) -> list[NoteLine]:
    """Return the notes of this session: those injected, and those whose saving is still in the prompt."""
    saved = [
        NoteLine(str(result.args.get("text", "")))
        for results in (*(turn.results for turn in reading.turns), reading.results)
        for result in results
        if result.tool == SAVE and not refused(result)
    ]
    notes = {note.text: note for note in (*reversed(saved), *reading.session) if note.text}
    return list({**notes, **{note.text: note for note in reading.session}}.values())


def refused(result: Result) -> bool:
    """Tell whether a note was not kept."""
    return result.failed or re.match(r"(?i)\s*(?:not saved|refused|blocked|rejected)\b", result.text) is not None


def confirmed(reading: Reading, result: Result) -> str:
    """Tell what became of a note."""
    if refused(result):
        reason = re.sub(r"(?i)^not saved: (?:the note|it) looks like", "it looks like", result.text.strip())
        return f"I did not keep that: {told_to_the_user(plain(reason)[:300])}"
    text = str(result.args.get("text", ""))
    for_now = result.args.get("scope") == "session" or "for this session only" in result.text
    if not for_now:
        return f"Noted for the future: {lowered(plain(text))}."
    wish = re.sub(r"(?i)^this (?:trip|case) only:\s*", "", text)
    usual = usual_preference(reading, keywords_of(wish))
    stays = f"Your usual preference stays as it is ({usual})." if usual else "Your usual preferences stay as they are."
    return f"Noted for this time only: {lowered(plain(wish))}. {stays}"


def usual_preference(reading: Reading, keywords: tuple[str, ...]) -> str:
    """Return what profile or long-term notes say on a topic, such as "seat preference: aisle"; empty when nothing."""
    topic = keywords[0]
    for label, value in _facts(reading.profile):
        if topic in label.lower():
            return f"{label.lower()}: {value}"
    lines = (note for note in reading.long_term if topic in note.keywords or topic in keywords_of(note.text))
    return next((lowered(plain(note.text)) for note in lines), "")


def preferences(reading: Reading) -> list[str]:
    """Return everything known as lines, what counts most first: this conversation, profile, long-term notes."""
    facts = [f"{label}: {value}" for label, value in _facts(reading.profile)]
    return [
        *(note.text for note in session_notes(reading)),
        *facts,
        *(note.text for note in reading.long_term),
    ]


def _dated(note: NoteLine) -> str:
    return plain(note.text) + (f" ({note.date})" if note.date else "")


def _facts(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    return list(_flattened(profile, ""))[:_MOST]


def _flattened(values: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if _PRIVATE.search(str(name)) or value in (None, "", [], {}):
            continue
        label = f"{above}{str(name).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{label}, ")
        elif isinstance(value, list):
            told = [plain(_item(item)) for item in value]
            yield label[:1].upper() + label[1:], ", ".join(one for one in told if one)
        else:
            yield label[:1].upper() + label[1:], plain(_word(value))


def _item(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(_word(part) for name, part in value.items() if not _PRIVATE.search(str(name)) and part)
    return _word(value)


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
