"""Turn what a user says about support tickets into a tool call."""

import re
from collections.abc import Sequence

from everthread.models.offline.articles import OFFER_TICKET, presented_in
from everthread.models.offline.patterns import pattern
from everthread.models.offline.reading import Reading, Turn, visible, without_secrets
from everthread.models.offline.reply import Call, Say, Step
from everthread.models.offline.statements import sentences

ASK_SUBJECT = "What is the ticket about?"
ASK_TICKET = "Which ticket do you mean? Please give me its number."
_CLOSE_OFFERED = re.compile(r"Shall I close ticket (\S+?)\?")

_TICKET_ID = re.compile(r"\b(?!KB-)([A-Z]{2,6}-(?=[A-Z0-9]*\d|[A-Z2-7]{8}\b)[A-Z0-9]{1,12})\b")
_OPEN = re.compile(
    r"\b(?:open|create|file|raise|log|submit|make|need)\s+(?:(?:me|us|up|please|now|a|an|another|one|new|support|it|"
    r"help ?desk|urgent|high|low|normal|priority)\W+)*ticket\b(?!s)(?P<about>.*)$",
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
    r"\bpriority\b\W*(?:\w+\W+){0,2}?(low|normal|high|urgent)\b",
    r"\b(urgent)(?:ly)?\b",
)
_PRIORITY_PHRASE = pattern(
    r",?\s*(?:(?:with|at|as) )?(?:(?:a|the) )?(?:low|normal|high|urgent)[ -]priority\b", r"^\s*(?:urgent|high|low)\W+"
)
_STATUSES = (
    ("closed", r"\bclosed?\b"),
    ("resolved", r"\bresolved?\b|\bsolved\b"),
    ("open", r"\bre-?open(?:ed)?\b|\bto open\b|\bas open\b"),
    ("waiting", r"\bwaiting\b|\bon hold\b"),
)
_COMMENT = re.compile(
    r"(?:\bcomment(?:ing)?\b|\bsaying\b|\bthat\b|\bnote\b)?[^:]{0,40}?(?::|\bthat\b|\bsaying\b)\s*(?P<text>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_YES = pattern(r"^(?:yes|yep|yeah|sure|ok(?:ay)?|please do|go ahead|do it)\b")
_TITLE = 120


def ticket_step(reading: Reading) -> Step | None:
    """Plan what a message asks about tickets; None when it asks nothing about them."""
    text = reading.text.strip()
    if _YES.match(text) and (closing := _CLOSE_OFFERED.findall(reading.last_answer)):
        return Call("update_ticket", {"ticket_id": closing[-1], "status": "closed"})
    if _YES.match(text) and OFFER_TICKET in reading.last_answer:
        return _opened("", "", reading)
    if _LIST.search(text):
        status = re.search(r"\b(open|waiting|resolved|closed)\b", text, re.IGNORECASE)
        return Call("list_tickets", {"status": status[1].lower()} if status else {})
    if ASK_SUBJECT in reading.last_answer and not _CHANGE.search(text):
        return _opened(text, "", reading)
    if _ESCALATE.search(text):
        return _opened("", "", reading)
    asking = next((sentence for sentence in sentences(text) if _OPEN.search(sentence)), None)
    if asking and not _TICKET_ID.search(text):
        return _open_step(asking, text, reading)
    named = _TICKET_ID.search(text)
    if named and ASK_TICKET in reading.last_answer and not _CHANGE.search(text):
        return _change_step(f"{named[1]} {reading.turns[-1].user}", reading)
    if _CHANGE.search(text) and (named or "ticket" in text.lower()):
        return _change_step(text, reading)
    return None


def ticket_in_view(reading: Reading) -> str | None:
    """Return the number of the ticket that was opened, changed or shown last."""
    last = reading.latest("open_ticket", "update_ticket", "list_tickets")
    match = _TICKET_ID.search(last.text) if last else None
    return match[1] if match else None


def _open_step(asking: str, text: str, reading: Reading) -> Step:
    match = _OPEN.search(asking)
    about = _PRIORITY_PHRASE.sub("", match["about"] if match else "")
    about = re.sub(r"(?i),?\s*(?:please|thanks|thank you)$", "", _ABOUT.sub("", about).strip(" .!?"))
    rest = " ".join(sentence for sentence in sentences(text) if sentence != asking)
    return _opened("" if _PRONOUN.match(about) else about, rest, reading, _priority(text))


def _opened(about: str, rest: str, reading: Reading, priority: str | None = None) -> Step:
    """Open a ticket with what is known: the user's words, what was tried and what the checks said."""
    query, turns = _case(reading)
    problem = about or rest or query
    if not problem:
        return Say(ASK_SUBJECT)
    title = sentences(without_secrets(problem))[0].strip(" .!?")[:_TITLE].strip()
    args = {
        "title": title[:1].upper() + title[1:],
        "description": _description(problem, rest if about else "", turns if problem == query else ()),
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


def _case(reading: Reading) -> tuple[str, Sequence[Turn]]:
    """Return the problem that was searched for last, in the user's words, and the turns since."""
    for place in range(len(reading.turns) - 1, -1, -1):
        for result in reversed(reading.turns[place].results):
            query = str(result.args.get("query", ""))
            if result.tool == "search_knowledge_base" and query and not re.fullmatch(r"KB-\d+", query):
                return query, reading.turns[place:]
    return "", ()


def _change_step(text: str, reading: Reading) -> Step:
    match = _TICKET_ID.search(text)
    name = match[1] if match else ticket_in_view(reading)
    if name is None:
        return Say(ASK_TICKET)
    args: dict[str, str] = {"ticket_id": name}
    told = _COMMENT.search(text)
    head = text[: told.start("text")] if told else text
    if told:
        args["comment"] = told["text"].strip()
    if status := next((status for status, named in _STATUSES if re.search(named, head, re.IGNORECASE)), None):
        args["status"] = status
    if priority := _priority(head):
        args["priority"] = priority
    if len(args) == 1:
        return Say(f"What shall I change in ticket {name}: a comment, the status or the priority?")
    return Call("update_ticket", args)


def _priority(text: str) -> str | None:
    match = _PRIORITY.search(text)
    return (match[1] or match[2]).lower() if match else None
