"""Save what a user says about themselves, and show what is remembered; the distiller's rules do the reading."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from everthread.agents.offline.prompt import NoteLine, Prompt, Result
from everthread.agents.offline.replies import Call, Say, Step, for_user, plain
from everthread.memory.distill import candidates, keywords
from everthread.memory.text.constraints import is_for_this_time
from everthread.memory.text.sentences import sentences

SAVE = "save_memory_note"

_QUESTION = re.compile(
    r"\byou (?:still )?(?:know|remember|recall|have|saved?|stored?|got|keep)\b.{0,30}"
    r"\b(?:my (?:\w+ )?(?:preferences?|profile|notes?|details|diet|seat|name|home)|about me|on me)\b"
    r"|\b(?:what(?:['’]s| is| are)?|show|list)\b.{0,12}\bmy (?:\w+ )?(?:preferences?|profile|notes)\b"
    r"|\bdo you (?:still )?(?:remember|know)\b.{0,40}\b(?:i|i['’]m|my|me)\b"
    r"|\bdo i (?:usually |still )?(?:prefer|like)\b|\bwho am i\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(r"^(?:(?:and|so|but|hi|hello|hey)\W+)*(?:do|did|have|are|is|can|could)\b", re.IGNORECASE)
_FORGET = re.compile(
    r"^(?:please )?(?:forget|delete|erase|remove)\b.{0,20}\b(?:that|about|my|notes?|what)\b", re.IGNORECASE
)
_QUOTED = re.compile(r'^User said: "(.*)"$', re.DOTALL)
_REFUSED = re.compile(r"\s{0,9}(?:not saved|refused|blocked|rejected)\b", re.IGNORECASE)

# Numbers and documents help nobody here and would repeat what should not be repeated.
_PRIVATE = re.compile(
    r"(?:^|_)(?:ids?|number|passport|birth|dob|age|address|phone|email|tag)(?:_|$)|_id$|expiry", re.IGNORECASE
)


def memory_steps(prompt: Prompt, *, wishes: bool = False) -> tuple[list[Step], str]:
    """Plan a note for every statement of the message; the other sentences are for others to read.

    Args:
        wishes: note also what a request wants, such as a price limit; else the distiller does so after the turn.
    """
    if SAVE not in prompt.tools:
        return [], prompt.text
    statements = [
        one
        for one in candidates(prompt.text, question=prompt.last_answer[-500:], is_strict=True)
        if wishes or one.scope == "durable" or is_for_this_time(one.quote)
    ]
    steps: list[Step] = []
    for one in statements:
        words = [word.lower() for word in keywords(one.text) if word.isalpha()][:3] or ["preference"]
        steps.append(Call(SAVE, {"text": one.text, "keywords": words, "scope": one.scope}))
    quotes = " ".join(one.quote for one in statements)
    rest = [sentence for sentence in sentences(prompt.text) if sentence not in quotes]
    if any(map(_FORGET.match, rest)):
        steps.append(
            Say(
                "I cannot erase notes here; `everthread notes USER` shows what is kept. Tell me what holds instead; "
                "the newer statement then wins."
            )
        )
        rest = [sentence for sentence in rest if not _FORGET.match(sentence)]
    return steps, " ".join(rest)


def is_memory_question(text: str) -> bool:
    """Tell whether the user asks what is known about them."""
    return _QUESTION.search(text) is not None


def recollection(prompt: Prompt) -> str:
    """Answer what is known about the user: profile, long-term notes and notes of this conversation."""
    blocks = [
        ("From your profile", [f"{label}: {value}" for label, value in _facts(prompt.profile)]),
        ("From earlier conversations", [_dated(note) for note in prompt.long_term]),
        ("From this conversation", [_dated(note) for note in _session_notes(prompt)]),
    ]
    parts = [f"{title}:\n" + "\n".join(f"- {line}" for line in lines) for title, lines in blocks if lines]
    is_yes_or_no = _YES_OR_NO.match(prompt.text)
    if not parts:
        return (
            f"{'No, I have' if is_yes_or_no else 'I have'} no profile and no notes about you yet. Tell me what you "
            "prefer, for example “I prefer aisle seats”, and I will remember it."
        )
    opening = f"{'Yes, here' if is_yes_or_no else 'Here'} is what I know about you."
    return "\n\n".join((opening, *parts, "Tell me if something is wrong or has changed."))


def confirmation(prompt: Prompt, result: Result) -> str:
    """Say what became of a note."""
    if _is_refused(result):
        reason = re.sub(r"(?i)^not saved: (?:the note|it) looks like", "it looks like", result.text.strip())
        told = for_user(plain(reason))
        return f"I did not keep that as a note: {told} It stays in the messages of this conversation."
    text = str(result.args.get("text", ""))
    quoted = _QUOTED.match(text)
    note = f"“{plain(quoted[1])}”" if quoted else _as_part(plain(text))
    if result.args.get("scope") != "session" and "for this session only" not in result.text:
        return f"Noted for the future: {note.rstrip('.')}."
    usual = _usual(prompt, text)
    stays = f"Your usual preference stays as it is ({usual})." if usual else "Your usual preferences stay as they are."
    return f"Noted for this time only: {note.rstrip('.')}. {stays}"


def preferences(prompt: Prompt) -> list[str]:
    """Return everything known as lines, what counts most first: this conversation, profile, long-term notes."""
    facts = [f"{label}: {value}" for label, value in _facts(prompt.profile)]
    return [note.text for note in _session_notes(prompt)] + facts + [note.text for note in prompt.long_term]


def _session_notes(prompt: Prompt) -> list[NoteLine]:
    """Return the notes of this session: those injected, and those whose saving is still in the prompt."""
    results = [*(result for turn in prompt.turns for result in turn.results), *prompt.results]
    saved = [NoteLine(str(one.args.get("text", ""))) for one in results if one.tool == SAVE and not _is_refused(one)]
    return list({note.text: note for note in (*reversed(saved), *prompt.session) if note.text}.values())


def _is_refused(result: Result) -> bool:
    return result.failed or _REFUSED.match(result.text) is not None


def _usual(prompt: Prompt, wish: str) -> str:
    """Return what profile or long-term notes say on the subject of a wish, such as "seat preference: aisle"."""
    subject = {word.rstrip("s") for word in keywords(wish)}
    lines = [f"{label.lower()}: {value}" for label, value in _facts(prompt.profile)]
    lines += [_as_part(plain(note.text)) for note in prompt.long_term]
    return next((line for line in lines if subject & {word.strip(".,:").rstrip("s") for word in line.split()}), "")


def _as_part(sentence: str) -> str:
    """Return a sentence as part of another one: no capital at its beginning, no full stop."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _dated(note: NoteLine) -> str:
    return plain(note.text) + (f" ({note.date})" if note.date else "")


def _facts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the profile as labels and values; private fields are left out."""
    return [(label[:1].upper() + label[1:], plain(value)) for label, value in _flattened(values)]


def _flattened(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        label = f"{above}{str(name).replace('_', ' ')}"
        if _PRIVATE.search(str(name)) or value in (None, "", [], {}):
            continue
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{label}, ")
        elif isinstance(value, list):
            yield label, ", ".join(map(_item, value))
        else:
            yield label, _item(value)


def _item(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(str(part) for name, part in value.items() if not _PRIVATE.search(str(name)) and part)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
