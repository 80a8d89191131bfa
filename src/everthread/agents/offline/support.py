"""What the offline model does for IT support."""

import re

from everthread.agents.offline.articles import ASK_HELPED, OFFER_TICKET, Article, articles_in, present, presented_in
from everthread.agents.offline.checks import check_step, status_step
from everthread.agents.offline.filed import ticket_in_view
from everthread.agents.offline.memories import SAVE, confirmed, is_memory_question, known, memory_steps
from everthread.agents.offline.patterns import pattern, words
from everthread.agents.offline.reading import Reading, Result, visible, without_secrets
from everthread.agents.offline.reply import Call, Say, Step, failure, plain
from everthread.agents.offline.tickets import ticket_step

ABILITIES = (
    "I can search the knowledge base for a problem, show the status of services, run a diagnostic, open, update and "
    "list tickets, and remember what you tell me. For example: “My VPN fails with error 809.”"
)
NO_SECRETS = "Please do not send me passwords or codes: nothing here needs them."
SEARCH = "search_knowledge_base"

_MOST_ISSUES = 4
_PROBLEM = pattern(
    words(
        r"errors?|fail(?:s|ed|ing|ure)?|(?:ca|could|wo|does|is)n['’]?t|can['’]?t|cannot|can not|does not|is not|down",
        r"unable|crash\w*|slow\w*|broken|stuck|fro?ze\w*|hangs?|hanging|forgot\w*|locked|blocked|expired|lost|missing",
        r"problems?|issues?|trouble|blue screen|bsod|drops?|disconnect\w*|prompts?|keeps?|bounc\w+|jam\w*|denied|reset",
        r"install\w*|set ?up|configure|connect|how (?:do|can|to)|where (?:do|can)|help (?:me )?with|0x[0-9a-f]{4,}",
        r"not working|KB-\d+",
    )
)
_VOCABULARY = pattern(
    words(
        "vpn|wi-?fi|network|internet|outlook|e-?mail|mailbox|calendar|teams|zoom|onedrive|sharepoint|printers?|printing",
        "scanner|laptop|computer|desktop|screen|monitor|dock|keyboard|mouse|webcam|microphone|headset|audio|password",
        "mfa|authenticator|login|log ?in|sign ?in|account|windows|macos|mac|linux|browser|chrome|edge|software",
        "licen[cs]e|update|drive|disk|file share|server|dns|certificate|phone|tablet|bitlocker|backup|git|ssh|docker",
    )
)
_CONNECTOR = words(
    "and|also|plus|besides|another (?:problem|issue|thing)|finally|then|next",
    "first|firstly|second|secondly|third|thirdly",
)
_NEXT_ISSUE = pattern(
    rf"(?:^|(?<=[.!?;,])\s+|\n+)\s*(?:[-*•]\s+|\d+[.)]\s+|(?:{_CONNECTOR}[\s,:]*)+(?:(?:is|that)\b\s*)?|(?=my\b))",
    r"\s+(?:and also|and my|and the|as well as)\s+(?=\w)",
)
_STILL = pattern(
    r"\b(?:did(?: not|n['’]?t)|does(?: not|n['’]?t)|not|nothing|no)\b.{0,15}"
    r"\b(?:help\w*|work\w*|fix\w*|chang\w*|luck|better|solve\w*)\b",
    r"\bstill\b",
    r"\bsame (?:error|problem|issue|thing)\b",
    r"^no(?:pe)?\W*$",
)
_SOLVED = pattern(
    r"\b(?:that|it|this|everything)(?:['’]s| is| has| was)?(?: been)? (?:now )?"
    r"(?:helped|works?|worked|working|fixed|solved|resolved|did it|good)\b",
    r"\b(?:fixed|solved|resolved) (?:it|now)\b",
    r"^(?:yes|yep|yeah)\W*(?:(?:it|that) )?(?:did|does|helped|worked|works|works now)?\W*(?:thanks?|thank you)?\W*$",
)
_LOOKUP_OFFERED = re.compile(r"Shall I look up (KB-\d+)\?")


def plan(reading: Reading) -> list[Step]:
    """Plan what to do about the user's message; nothing when it is not understood."""
    notes, rest = memory_steps(reading, cautious=True)
    if is_memory_question(rest):
        return [*notes, Say(known(reading))]
    if step := ticket_step(reading) or _after_article(reading):
        return [*notes, step]
    if step := check_step(rest, reading) or status_step(rest):
        return [*notes, step, *_searches(_without_question(rest, step), reading)]
    warning = [Say(NO_SECRETS)] if without_secrets(reading.text) != reading.text else []
    return [*notes, *_searches(rest, reading), *warning]


def tell(reading: Reading, result: Result, remark: str) -> str:
    """Put a tool's answer into words; every fact comes from the tool."""
    if result.tool == SAVE:
        return confirmed(reading, result)
    if result.failed:
        return failure(result)
    if result.tool == SEARCH:
        return _found(reading, result)
    if result.tool == "service_status":
        return _statuses(result)
    if result.tool == "run_diagnostic":
        return _diagnosis(result)
    if result.tool == "list_tickets" and remark and not result.text.startswith("No tickets"):
        return f"{visible(result.text)}\n\n{remark}"
    return visible(result.text) or f"`{plain(result.tool)}` answered nothing."


def issues_in(text: str) -> list[str]:
    """Separate the problems of a message, in order; a sentence without a subject of its own goes with the last one."""
    parts = [part.strip(" ,;") for part in _NEXT_ISSUE.split(text)]
    issues: list[str] = []
    for part in (half for whole in parts for half in _halves(whole)):
        thing, trouble = _VOCABULARY.search(part), _PROBLEM.search(part) or part.lower().startswith("my ")
        if issues and not (thing and trouble):
            issues[-1] = f"{issues[-1]} {part}"
        elif thing or _PROBLEM.search(part):
            issues.append(part)
    return issues[:_MOST_ISSUES]


def _halves(part: str) -> list[str]:
    """Cut "Zoom fails and OneDrive does not sync" where both halves name a thing and its trouble."""
    left, word, right = part.partition(" and ")
    whole = all(_VOCABULARY.search(half) and _PROBLEM.search(half) for half in (left, right))
    return [left, *_halves(right)] if word and whole else [part] if part else []


def _searches(text: str, reading: Reading) -> list[Step]:
    issues = issues_in(without_secrets(text))
    if len(issues) == 1 and not _VOCABULARY.search(issues[0]) and len(text.split()) <= 12:
        # "The code is 0x80070057" says something only together with the problem before it.
        last = reading.latest(SEARCH)
        issues = [f"{last.args.get('query', '')} {issues[0]}".strip()] if last else issues
    return [Call(SEARCH, {"query": issue[:500]}) for issue in issues]


def _without_question(text: str, step: Step) -> str:
    """Return what is left to search for after a question on a status or a check: nothing when it was all."""
    if isinstance(step, Say) or len(issues_in(text)) < 2:
        return ""
    asked = str(step.args.get("service") or step.args.get("target") or "")
    return "\n".join(issue for issue in issues_in(text) if not asked or asked.lower() not in issue.lower())


def _after_article(reading: Reading) -> Step | None:
    """Go on after an article: the next one, a ticket, or the end of the case."""
    text, last = reading.text.strip(), reading.latest(SEARCH)
    offered = _LOOKUP_OFFERED.findall(reading.last_answer)
    if offered and re.match(r"(?i)^(?:yes|sure|ok|please|go ahead)", text):
        return Call(SEARCH, {"query": offered[-1], "limit": 1})
    if re.match(r"(?i)^(?:no|nope|not now)\b", text) and (offered or OFFER_TICKET in reading.last_answer):
        return Say("All right. Is there anything else?")
    if len(text.split()) > 12 or _VOCABULARY.search(text):
        return None
    if last is not None and _STILL.search(text) and not re.search(r"\b0x|\d{3}", text):
        return Say(_next_article(reading, last))
    if _SOLVED.search(text) and (ASK_HELPED in reading.last_answer or "ticket" in reading.last_answer.lower()):
        ticket = ticket_in_view(reading)
        if ticket is None or ticket.status in ("resolved", "closed"):
            return Say("Good. Is there anything else?")
        return Say(f"Good. Shall I close ticket {ticket.id}?")
    return None


def _next_article(reading: Reading, last: Result) -> str:
    given = {name for turn in reading.turns for name in presented_in(turn.assistant)}
    found = articles_in(last.text)
    # Far below the best match comes what only shares a word with the question.
    left = [article for article in found if article.id not in given and article.score >= found[0].score / 2]
    if left:
        return f"{present(left[0], [], first=False)}\n\n{ASK_HELPED}"
    return f"I have no further article on this. {OFFER_TICKET}"


def _found(reading: Reading, result: Result) -> str:
    found: list[Article] = articles_in(result.text)
    searches = [one for one in reading.results if one.tool == SEARCH]
    query = visible(str(result.args.get("query", "")), 120)
    heading = f"On “{query}”:\n\n" if len(searches) > 1 else ""
    if not found:
        return f"{heading}I found no article on this. {OFFER_TICKET}"
    last = searches[-1] is result
    question = ("Did any of this help?" if len(searches) > 1 else ASK_HELPED) if last else ""
    return f"{heading}{present(found[0], found[1:])}\n\n{question}".strip()


def _statuses(result: Result) -> str:
    """Show disturbances in full; many services that work take one line together."""
    lines = visible(result.text, 6_000).splitlines()
    well = [line for line in lines if re.search(r": operational\b", line)]
    if len(well) <= 3:
        return "\n".join(lines)
    return "\n".join(
        [*(line for line in lines if line not in well), f"The other {len(well)} services are operational."]
    )


def _diagnosis(result: Result) -> str:
    article = re.search(r"\bSee (KB-\d+)", result.text)
    offer = f"\n\nShall I look up {article[1]}?" if article else ""
    return f"{visible(result.text)}{offer}"
