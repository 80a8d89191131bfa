"""Short answers: what they mean is in the assistant's question."""

import re

from everthread.memory.distill.attributes import attributes
from everthread.memory.distill.statements import Candidate, cue
from everthread.memory.subjects import EXCLUSIVE
from everthread.memory.text.consent import answer_of
from everthread.memory.text.own_words import own_sentences
from everthread.memory.text.wording import wording
from everthread.state.notes import NoteKind, NoteScope

_LONGEST = 8
"""Words above which an answer speaks for itself."""

_LONGEST_QUESTION = 400
"""Characters above which what a short answer answers cannot be told."""

_LONGEST_LEAD, _LONGEST_ABOUT = 20, 120
"""Characters ahead of what a question asks, and of the question, up to which it says nothing by itself."""

_ASKS_FOR_ANY = re.compile(r"\b(?:any|preferences?|restrictions?|allerg\w+)\b", re.IGNORECASE)
_BETWEEN = re.compile(r",\s{0,9}(?:or\s{1,9})?|\s{1,9}or\s{1,9}")
_LAST_NOUN = re.compile(r"(?:^|\s)([a-z-]+)$", re.IGNORECASE)


def answered(reply: str, question: str) -> Candidate | None:
    """Read a short reply together with the question that it answers.

    Args:
        reply: the user's whole message.
        question: the assistant's message ahead of it; only its last question counts.
    """
    questions = [sentence.text for sentence in own_sentences(question, is_users=False) if sentence.is_question]
    reply = " ".join(reply.split())
    if len(questions) != 1 or len(questions[0]) > _LONGEST_QUESTION:
        return None
    if not 0 < len(reply.split()) <= _LONGEST or cue("open-answer").search(reply):
        return None
    asked = questions[0]
    is_general = cue("asks-in-general").search(asked) is not None
    if not (is_general or cue("offers").search(asked) or cue("elliptic-choice").match(asked)):
        return None
    # "Do you prefer window or aisle?" asks for a taste; "do you prefer the 4th?" for this one booking.
    asks_taste = cue("asks-taste").search(asked) and EXCLUSIVE & {wish.subject for wish in attributes(asked)}
    scope: NoteScope = "durable" if is_general or asks_taste or cue("always").search(reply) else "session"
    if answer := _choice(reply, asked, scope):
        return answer
    return _about_user(reply, asked) if is_general else _accepted_offer(reply, asked, scope)


def _choice(reply: str, question: str, scope: NoteScope) -> Candidate | None:
    """Read `Aisle.` as the answer to `Do you prefer a window or an aisle seat?`."""
    asked = cue("choice").search(question) or cue("elliptic-choice").match(question)
    said = _content(answer_of(reply)[1] if answer_of(reply)[0] == "yes" else reply).lower()
    if asked is None or not said:
        return None
    options = [option for part in _BETWEEN.split(asked["options"]) if (option := _content(part))]
    named = [option for option in options if said == option.lower().split()[0] or said.startswith(option.lower())]
    if len(named) != 1 or len(options) < 2:
        return None
    option, last = named[0].lower(), options[-1]
    noun = _LAST_NOUN.search(last)
    # "window or aisle seat": the noun stands once, at the end, and belongs to both.
    if noun and " " in last and not option.endswith(noun[1].lower()):
        option = f"{option} {noun[1].lower()}"
    subjects = {wish.subject for wish in attributes(option)}
    text = f"Prefers {option}." if scope == "durable" else f"This time wants {option}."
    return Candidate(reply, text, scope, "preference", subjects.pop() if len(subjects) == 1 else "")


def _content(text: str) -> str:
    return " ".join(cue("polite").sub(" ", text).split())


def _accepted_offer(reply: str, question: str, scope: NoteScope) -> Candidate | None:
    """Read `Yes, please.` as the answer to `Would you like an aisle seat?`; an offer says nothing of other times."""
    wanted = attributes(question)
    if scope != "session" or len(wanted) != 1 or answer_of(reply)[0] != "yes":
        return None
    return Candidate(reply, f"This time wants {wanted[0].phrase}.", "session", "preference", wanted[0].subject)


def _about_user(reply: str, question: str) -> Candidate | None:
    """Keep a reply to a question about the user beside that question, in both speakers' words.

    Only one that asks and says nothing: what an assistant takes for granted ahead of it, or names, is not the user's.
    """
    if answer_of(reply)[0] == "no" and _ASKS_FOR_ANY.search(question):
        return None
    asks = cue("asks-in-general").search(question)
    if asks is None or asks.start() > _LONGEST_LEAD or len(question) > _LONGEST_ABOUT or wording(question).names:
        return None
    kind: NoteKind = "constraint" if cue("asks-body").search(question) else "preference"
    quoted, said = question.replace('"', "'"), reply.rstrip(".!").replace('"', "'")
    return Candidate(reply, f'Asked "{quoted}", the user said: "{said}"', "durable", kind)
