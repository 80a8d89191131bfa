"""Turn what a user says about support tickets into a tool call."""

import re
from collections.abc import Sequence

from everthread.agents.offline.articles import OFFER_TICKET, presented_in
from everthread.agents.offline.filed import (
    TICKET_ID,
    TICKET_TOOLS,
    Filed,
    filed_in,
    shares,
    subject_words,
    ticket_in_view,
    tickets_meant,
)
from everthread.agents.offline.patterns import pattern
from everthread.agents.offline.reading import Reading, Turn, visible, without_secrets
from everthread.agents.offline.reply import Call, Say, Step
from everthread.agents.offline.statements import sentences

ASK_SUBJECT = "What is the ticket about?"
ASK_TICKET = "Which ticket do you mean? Please give me its number."
_CLOSE_OFFERED = re.compile(r"Shall I close ticket (\S+?)\?")

_OPEN = re.compile(
    r"\b(?:open|create|file|raise|log|submit|make|need)\s+(?:(?:me|us|up|please|now|a|an|another|one|more|new|second|third|"
    r"separate|different|extra|support|it|help ?desk|urgent|high|low|normal|priority)\W+)*ticket\b(?!s)(?P<about>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ONE_MORE = re.compile(
    r"^(?:(?:and|also|please|ok(?:ay)?|then|now|open|create|make|i need|can you open|could you open)\W+)*"
    r"(?:another(?: one)?|one(?: more)?|a second one|the same)\s+(?:for|about|on|regarding)\b(?P<about>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ESCALATE = pattern(
    r"\b(?:talk|speak) (?:to|with) (?:a |an |the )?(?:human|person|agent|someone|somebody|technician|colleague)\b",
    r"\bescalate (?:this|it|that|my (?:issue|problem|case))\b",
)
_LIST = pattern(
    r"\b(?:list|show|see|view|what|which|any|my|have)\b.{0,30}\btickets\b",
    r"\bstatus of my tickets?\b",
    r"\bmy ticket status\b",
    r"^(?:is|are|was|has|did|what|when|who)\b.{0,60}\bticket\b.{0,60}\?",
)
_CHANGE = pattern(
    r"\b(?:close|resolve|reopen|re-open|update|comment|mark|set|raise|lower|change|escalate|add)\b.{0,60}"
    r"\b(?:tickets?|priority|comment|it)\b",
    r"\bticket\b.{0,40}\b(?:closed?|resolved?|reopen|waiting|priority)\b",
)
_ABOUT = pattern(r"^\W*(?:(?:about|for|that|because|regarding|on|with|saying|titled|:|-)\s*)+")
_PRONOUN = pattern(r"^(?:(?:this|it|that|the|my|me|us|please|one|issue|problem|same|now|then|thanks?)\W*)*$")
_PRIORITY = pattern(
    r"\b(low|normal|high|urgent)[ -](?:priority|ticket)\b",
    r"\bpriority\b\W*(?:\w+\W+){0,7}?(low|normal|high|urgent)\b",
    r"\b(urgent)(?:ly)?\b",
)
_PRIORITY_PHRASE = pattern(
    r",?\s*(?:(?:with|at|as) )?(?:(?:a|the) )?(?:low|normal|high|urgent)[ -]priority\b", r"^\s*(?:urgent|high|low)\W+"
)
_POLITE_END = pattern(r"(?:,?\s*\b(?:too|as well|also|please|thanks|thank you))+$")
_STATUSES = (
    ("closed", r"\bclosed?\b"),
    ("resolved", r"\bresolved?\b|\bsolved\b"),
    ("open", r"\bre-?open(?:ed)?\b|\bto open\b|\bas open\b"),
    ("waiting", r"\bwaiting\b|\bon hold\b"),
)
_COMMENT = re.compile(
    r"(?:^[^:]{0,80}?:|\b(?:comment(?:ing)?|note|add)\b[^:]{0,60}?\bthat\b(?!\s+(?:ticket|one|issue|problem)\b)"
    r"|\bsaying\b)\s*(?P<text>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_YES = pattern(r"^(?:yes|yep|yeah|sure|ok(?:ay)?|please do|go ahead|do it)\b")
_NO = pattern(r"^(?:no|nope|none|never ?mind|forget it)\b")
_TITLE = 120
_FEW_WORDS = 4
"""A subject with more words tells the problem itself."""
_MOST_LISTED = 8
_LATELY = 3
"""Turns after a ticket in which "one for the printer too" asks for another."""


def ticket_step(reading: Reading) -> Step | None:
    """Plan what a message asks about tickets; None when it asks nothing about them."""
    text = reading.text.strip()
    if _YES.match(text) and (closing := _CLOSE_OFFERED.findall(reading.last_answer)):
        return Call("update_ticket", {"ticket_id": closing[-1], "status": "closed"})
    if _YES.match(text) and OFFER_TICKET in reading.last_answer:
        return _opened("", "", reading)
    if _LIST.search(text):
        status = re.search(r"\b(open|waiting|resolved|closed) tickets\b", text, re.IGNORECASE)
        return Call("list_tickets", {"status": status[1].lower()} if status else {})
    if ASK_SUBJECT in reading.last_answer and not _CHANGE.search(text):
        return _opened(text, "", reading)
    if _ESCALATE.search(text):
        return _opened("", "", reading)
    named = TICKET_ID.search(text)
    if not named and (asking := _asking(text, reading)):
        return _open_step(asking, text, reading)
    if ASK_TICKET in reading.last_answer and not _CHANGE.search(text):
        return Say("All right, I change no ticket.") if _NO.match(text) else _answered_step(text, reading)
    if _CHANGE.search(text) and (named or _speaks_of_a_ticket(text, reading)):
        return _change_step(text, reading)
    return None


def _asking(text: str, reading: Reading) -> tuple[str, str] | None:
    """Return the sentence that asks for a ticket, and what it is about."""
    for sentence in sentences(text):
        if match := _OPEN.search(sentence):
            return sentence, match["about"]
    more = _ONE_MORE.search(text)
    lately = {result.tool for turn in reading.turns[-_LATELY:] for result in turn.results}
    return (text, more["about"]) if more and "open_ticket" in lately else None


def _speaks_of_a_ticket(text: str, reading: Reading) -> bool:
    """Tell whether a change is one of a ticket: "close it" is, right after one was shown."""
    shown = not _last_tools(reading).isdisjoint(TICKET_TOOLS)
    return "ticket" in text.lower() or (shown and re.search(r"(?i)\b(?:it|one|priority)\b", text) is not None)


def _last_tools(reading: Reading) -> set[str]:
    return {result.tool for result in reading.turns[-1].results} if reading.turns else set()


def _open_step(asking: tuple[str, str], text: str, reading: Reading) -> Step:
    sentence, about = asking
    about = _POLITE_END.sub("", _ABOUT.sub("", _PRIORITY_PHRASE.sub("", about)).strip(" .!?"))
    rest = "" if sentence == text else " ".join(one for one in sentences(text) if one != sentence)
    return _opened("" if _PRONOUN.match(about) else about, rest, reading, _priority(text))


def _opened(about: str, rest: str, reading: Reading, priority: str | None = None) -> Step:
    """Open a ticket with what is known: the user's words, what was tried and what the checks said."""
    query, turns = _case(reading, about)
    if about and query:
        # "Open a ticket for the VPN" names the problem that was told before, with its error codes.
        problem, more = query, rest
    else:
        problem, more = about or rest or query, rest if about else ""
    if not problem:
        return Say(ASK_SUBJECT)
    title = sentences(without_secrets(problem))[0].strip(" .!?")[:_TITLE].strip()
    args = {
        "title": title[:1].upper() + title[1:],
        "description": _description(problem, more, turns if problem == query else ()),
    }
    return Call("open_ticket", {**args, "priority": priority} if priority else args)


def _description(problem: str, more: str, turns: Sequence[Turn]) -> str:
    articles = sorted({name for turn in turns for name in presented_in(turn.assistant)})
    checks = [result for turn in turns for result in turn.results if result.tool == "run_diagnostic"]
    lines = [f"Reported: {visible(without_secrets(problem), 1_500)}"]
    lines += [visible(without_secrets(more), 1_500)] if more else []
    lines += [f"Articles given to the user: {', '.join(articles)}."] if articles else []
    lines += [f"Check: {visible(result.text, 500)}" for result in checks[-3:] if not result.failed]
    return "\n".join(lines)


def _case(reading: Reading, about: str) -> tuple[str, Sequence[Turn]]:
    """Return a problem that was searched for, in the user's words, and the turns since.

    Args:
        reading: the prompt.
        about: what the ticket is about; empty takes the last problem, else it must share a word.
    """
    subject = subject_words(about)
    for place in range(len(reading.turns) - 1, -1, -1):
        for result in reversed(reading.turns[place].results):
            query = str(result.args.get("query", ""))
            if result.tool != "search_knowledge_base" or not query or re.fullmatch(r"KB-\d+", query):
                continue
            if not about or (len(subject) <= _FEW_WORDS and shares(subject, subject_words(query))):
                return query, reading.turns[place:]
    return "", ()


def _answered_step(text: str, reading: Reading) -> Step | None:
    """Make the change that was asked for before, now that the user says in which ticket."""
    named = TICKET_ID.search(text)
    found = [named[1]] if named else [one.id for one in tickets_meant(f"{text.strip(' .!?')} ticket", reading) or ()]
    return _change_step(f"{found[0]} {reading.turns[-1].user}", reading) if len(found) == 1 else None


def _change_step(text: str, reading: Reading) -> Step:
    told = _COMMENT.search(text)
    head = text[: told.start("text")] if told else text
    changes = _changes(head, told["text"].strip() if told else "")
    meant = _meant(head, reading)
    if not isinstance(meant, str):
        return meant
    if not changes:
        return Say(f"What shall I change in ticket {meant}: a comment, the status or the priority?")
    return Call("update_ticket", {"ticket_id": meant, **changes})


def _changes(head: str, comment: str) -> dict[str, str]:
    """Read what shall change, in front of a comment."""
    changes = {"comment": comment} if comment else {}
    if status := next((status for status, named in _STATUSES if re.search(named, head, re.IGNORECASE)), None):
        changes["status"] = status
    if priority := _priority(head):
        changes["priority"] = priority
    return changes


def _meant(head: str, reading: Reading) -> str | Step:
    """Return the number of the ticket, or what to ask: a guess could close the wrong one."""
    if match := TICKET_ID.search(head):
        return match[1]
    known, described = filed_in(reading), tickets_meant(head, reading)
    last = ticket_in_view(reading)
    found = described if described is not None else [last] if last else known
    if len(found) == 1:
        return found[0].id
    if not found and "list_tickets" not in _last_tools(reading):
        return Call("list_tickets", remark=ASK_TICKET)
    several = "Several tickets fit." if found else "None of your tickets seems to be about that."
    return Say("\n".join((f"{several} {ASK_TICKET}", *map(_line, (found or known)[-_MOST_LISTED:]))))


def _line(ticket: Filed) -> str:
    return f"- {ticket.id} · {ticket.status} · {visible(ticket.title, 120)}"


def _priority(text: str) -> str | None:
    match = _PRIORITY.search(text)
    return (match[1] or match[2] or match[3]).lower() if match else None
