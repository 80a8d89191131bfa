"""Short answers: what they mean is in the assistant's question."""

import re
from dataclasses import dataclass

from everthread.memory.distill.attributes import attributes
from everthread.memory.distill.sentences import sentences
from everthread.memory.subjects import EXCLUSIVE
from everthread.state.notes import NoteKind, NoteScope

_LONGEST = 8
"""Words above which an answer speaks for itself."""

_LONGEST_QUESTION = 400
"""Characters above which what a short answer answers cannot be told."""

_GENERAL = re.compile(
    r"\b(?:do you (?:usually|generally|normally|always|typically|tend to|have (?:any|a|an)(?: \w+){0,2} "
    r"(?:preferences?|allerg\w+|restrictions?|requirements?|needs))"
    r"|(?:what|which)(?:'s| is) your (?:usual|preferred|favou?rite)|are you (?:an? )?(?:\w+ )?(?:vegetarian|vegan|"
    r"allergic|diabetic|left-handed)|any (?:\w+ ){0,2}(?:allergies|restrictions))\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:would you (?:like|prefer|want|rather)|do you (?:want|need|prefer)|shall i|should i|should it|how about|"
    r"what about)\b",
    re.IGNORECASE,
)
_PREFER = re.compile(r"\bdo you prefer\b", re.IGNORECASE)
_BODY = re.compile(r"\b(?:allerg|diet|restriction|vegetarian|vegan|wheelchair|access|medical|intoleran)", re.IGNORECASE)
_CHOICE = re.compile(
    r"(?:prefer|like|want|rather|need|rather have)\s+(?:an? |the |your )?(?P<options>[^?]*?\bor\b[^?]*)\?",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^(?:yes|yeah|yep|yup|sure|of course|definitely|absolutely|correct|right|i do|i am|that's right)\b[,.! ]*",
    re.IGNORECASE,
)
_NO = re.compile(r"^(?:no|nope|nah|not really|i don't|i'm not|none)\b[,.! ]*", re.IGNORECASE)
_POLITE = re.compile(
    r"\b(?:please|thanks|thank you|definitely|i'd|i would|i think|i|prefer|like|want|the|an?|would be (?:great|"
    r"good|nice)|is (?:fine|good|better)|for me|one|it's|always|usually|as usual|as always|by default)\b"
    r"|[,.!]",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:whatever|either|anything|both|don't (?:care|mind|know)|no preference|not sure|doesn't matter|you "
    r"(?:choose|decide)|up to you)\b|\?",
    re.IGNORECASE,
)
_ELLIPTIC = re.compile(r"^(?:the |an? )?(?P<options>[\w -]{2,40} or (?:the |an? )?[\w -]{2,40})\?$", re.IGNORECASE)
"""`Aisle or window?`"""
_ALWAYS = re.compile(
    r"\b(?:always|usually|normally|generally|as (?:usual|always)|by default|every time)\b", re.IGNORECASE
)
_LAST_NOUN = re.compile(r"(?:^|\s)([a-z-]+)$", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """What a reply to a question says about the user."""

    text: str
    scope: NoteScope
    kind: NoteKind
    subject: str = ""


def answered(reply: str, question: str) -> Answer | None:
    """Read a short reply together with the question that it answers.

    Args:
        reply: the user's whole message.
        question: the assistant's message ahead of it; only its last question counts.
    """
    asked = [sentence.text for sentence in sentences(question) if sentence.is_question]
    reply = " ".join(reply.split())
    if (
        not asked
        or len(asked) > 1
        or len(asked[0]) > _LONGEST_QUESTION
        or not reply
        or len(reply.split()) > _LONGEST
        or _OPEN.search(reply)
    ):
        return None
    is_general, is_offer = is_general_question(asked[0]), _OFFER.search(asked[0]) or _ELLIPTIC.match(asked[0])
    if not (is_general or is_offer):
        return None
    # "Do you prefer window or aisle?" asks for a taste; "do you prefer the 4th?" for this one booking.
    lasting = (
        is_general
        or _ALWAYS.search(reply)
        or (_PREFER.search(asked[0]) and EXCLUSIVE & {wanted.subject for wanted in attributes(asked[0])})
    )
    scope: NoteScope = "durable" if lasting else "session"
    return _chosen(reply, asked[0], scope) or _told(reply, asked[0], scope)


def is_general_question(question: str) -> bool:
    """Tell whether a question asks for what is always so, rather than for this time."""
    return _GENERAL.search(question) is not None


def _chosen(reply: str, question: str, scope: NoteScope) -> Answer | None:
    """Read `Aisle.` as the answer to `Do you prefer a window or an aisle seat?`."""
    found = _CHOICE.search(question) or _ELLIPTIC.match(question)
    said = " ".join(_POLITE.sub(" ", _YES.sub("", reply)).split()).lower()
    if found is None or not said:
        return None
    options = [
        " ".join(_POLITE.sub(" ", part).split()) for part in re.split(r",\s*(?:or\s+)?|\s+or\s+", found["options"])
    ]
    options = [option for option in options if option]
    chosen = [
        option
        for option in options
        if said == option.lower() or option.lower().split()[0] == said or said.startswith(option.lower())
    ]
    if len(chosen) != 1 or len(options) < 2:
        return None
    option, last = chosen[0].lower(), options[-1]
    noun = _LAST_NOUN.search(last)
    # "window or aisle seat": the noun stands once, at the end, and belongs to both.
    if noun and " " in last and not option.endswith(noun[1].lower()):
        option = f"{option} {noun[1].lower()}"
    subjects = {attribute.subject for attribute in attributes(option)}
    text = f"Prefers {option}." if scope == "durable" else f"This time wants {option}."
    return Answer(text, scope, "preference", subjects.pop() if len(subjects) == 1 else "")


def _told(reply: str, question: str, scope: NoteScope) -> Answer | None:
    """Keep a reply to a question about the user beside that question, in both speakers' words."""
    if scope == "session":
        wanted = attributes(question)
        if len(wanted) != 1 or not _YES.match(reply):
            return None
        return Answer(f"This time wants {wanted[0].phrase}.", "session", "preference", wanted[0].subject)
    if _NO.match(reply) and re.search(r"\b(?:any|preferences?|restrictions?|allerg\w+)\b", question, re.IGNORECASE):
        return None
    if not is_general_question(question):
        return None
    kind: NoteKind = "constraint" if _BODY.search(question) else "preference"
    asked = question.replace('"', "'")
    return Answer(f'Asked "{asked}", the user said: "{reply.rstrip(".!").replace(chr(34), chr(39))}"', scope, kind)
