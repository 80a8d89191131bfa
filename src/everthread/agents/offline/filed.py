"""The tickets that the prompt shows, and which of them the user means."""

import re
from dataclasses import dataclass

from everthread.agents.offline.patterns import pattern, word_set
from everthread.agents.offline.reading import Reading

TICKET_ID = re.compile(r"\b(?!KB-)([A-Z]{2,6}-(?=[A-Z0-9]*\d|[A-Z2-7]{8}\b)[A-Z0-9]{1,12})\b")

TICKET_TOOLS = ("open_ticket", "update_ticket", "list_tickets")
_LINE = re.compile(rf"^{TICKET_ID.pattern} · (\w+) · (\w+) · (.+)$", re.MULTILINE)
_ORDINALS = {"first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "last": -1}
_ORDINAL = pattern(rf"\b({'|'.join(_ORDINALS)})\s+(?:\w+\s+)?(?:tickets?|one)\b")
_BEFORE = pattern(r"((?:[\w'’-]+\s+){1,6})(?:tickets?|one)\b")
_AFTER = pattern(
    r"\b(?:tickets?|one)\s+(?:is\s+)?(?:about|for|on|regarding|concerning|with)\s+((?:[\w'’-]+\s*){1,6}?)"
    r"(?=$|[.,;:!?]|\b(?:to|as|and|because|please)\b)"
)
_NO_SUBJECT = word_set(
    """the a an my our your this that these those it its one ticket tickets please can could would will you i we me us
    to of on in at for with as and or is are was be has have do does did just now then so too also last latest newest
    first second third fourth 1st 2nd 3rd 4th close closed resolve resolved reopen re-open update comment mark set raise
    raised lower change escalate add note put make open opened waiting hold status priority low normal high urgent need
    want new other old same current about from say saying help desk support it's i'd like let let's go ahead yes ok okay
    no not mean meant think already all any both"""
)


@dataclass(frozen=True)
class Filed:
    """A ticket as the prompt shows it last."""

    id: str
    status: str
    title: str
    about: frozenset[str]
    """Words of its title and description."""


def filed_in(reading: Reading) -> list[Filed]:
    """Return the tickets of this user that the prompt shows, the first one shown first."""
    found: dict[str, Filed] = {}
    for turn in reading.turns:
        for result in turn.results:
            if result.tool not in TICKET_TOOLS or result.failed:
                continue
            described = subject_words(str(result.args.get("description", "")))
            for name, status, _, title in _LINE.findall(result.text):
                known = found[name].about if name in found else frozenset()
                found[name] = Filed(name, status, title, known | described | subject_words(title))
    return list(found.values())


def ticket_in_view(reading: Reading) -> Filed | None:
    """Return the ticket that was opened, changed or shown last; None when that were several, or none."""
    last = reading.latest(*TICKET_TOOLS)
    names = dict.fromkeys(name for name, *_ in _LINE.findall(last.text)) if last else {}
    return next((one for one in filed_in(reading) if one.id in names), None) if len(names) == 1 else None


def tickets_meant(text: str, reading: Reading) -> list[Filed] | None:
    """Return the tickets that the words of a message fit: by place, or by subject.

    Returns:
        None when the message describes none, as in "close the ticket".
    """
    tickets = filed_in(reading)
    if ordinal := _ORDINAL.search(text):
        place = _ORDINALS[ordinal[1].lower()]
        listed = _last_list(reading) or [one.id for one in tickets]
        return [one for one in tickets if listed[place : place + 1 or None] == [one.id]]
    named = [match[1] for match in (*_BEFORE.finditer(text), *_AFTER.finditer(text))]
    subject = frozenset[str]().union(*map(subject_words, named))
    if not subject:
        return None
    by_title = [one for one in tickets if shares(subject, subject_words(one.title))]
    return by_title or [one for one in tickets if shares(subject, one.about)]


def subject_words(text: str) -> frozenset[str]:
    """Return the words of a text that can tell one subject from another."""
    words = (word.replace("-", "") for word in re.findall(r"[^\W_][\w'’-]+", text.lower()) if word not in _NO_SUBJECT)
    return frozenset(word for word in words if len(word) > 1)


def shares(left: frozenset[str], right: frozenset[str]) -> bool:
    """Tell whether two texts have a word in common; "printer" and "printers" are one."""
    return any(one == other or _begins(one, other) or _begins(other, one) for one in left for other in right)


def _begins(short: str, long: str) -> bool:
    return len(short) >= 4 and long.startswith(short)


def _last_list(reading: Reading) -> list[str]:
    """Return the ids in the order of the list that was shown last, when nothing was opened since."""
    last = reading.latest("open_ticket", "list_tickets")
    return [name for name, *_ in _LINE.findall(last.text)] if last and last.tool == "list_tickets" else []
