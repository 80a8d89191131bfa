"""What the offline model does for IT support: articles, status, diagnostics, tickets."""

import re

from everthread.agents.offline.prompt import Prompt, Result
from everthread.agents.offline.replies import Call, Say, Step, plain, visible
from everthread.memory.text.consent import answer_of

ABILITIES = (
    "I can search the knowledge base for a problem, show the status of services, run a diagnostic, open, update and "
    "list tickets, and remember what you tell me. For example: “My VPN fails with error 809.”"
)
SEARCH = "search_knowledge_base"

_OFFER_TICKET = "Shall I open a ticket for this?"
_ASK_SUBJECT = "What is the ticket about?"
_ASK_TARGET = "Which host, device or service shall I check?"
_ASK_TICKET = "Which ticket do you mean? Please give me its number."

_PROBLEM = re.compile(
    r"\b(?:errors?|fail\w*|(?:ca|could|wo|does|is)n['’]?t|cannot|can not|does not|is not|down|slow\w*"
    r"|broken|stuck|fro?zen?|crash\w*|locked|blocked|expired|lost|missing|forgot\w*|reset|problems?|issues?|trouble|drops?"
    r"|denied|jam\w*|no (?:sound|audio|signal|internet|network)|install\w*|set ?up|connect\w*"
    r"|how (?:do|can) i|0x[0-9a-f]{4,}|KB-\d+)\b",
    re.IGNORECASE,
)
_THING = re.compile(
    r"\b(?:vpn|wi-?fi|network|internet|outlook|e-?mail|mailbox|calendar|teams|zoom|onedrive|sharepoint|print\w*|laptop"
    r"|computer|screen|monitor|dock|keyboard|mouse|webcam|headset|password|mfa|login|account|windows|mac\w*|linux|browser"
    r"|drive|disk|phone|backup|git|docker)\b",
    re.IGNORECASE,
)
_STILL = re.compile(r"\b(?:(?:did|does)(?: not|n['’]?t)|nothing) .{0,15}\b(?:help|work|chang)|\bstill\b", re.IGNORECASE)
_SOLVED = re.compile(
    r"\b(?:that|it|this)(?:['’]s| is| has)?(?: now)? (?:helped|works?|worked|fixed|solved)\b", re.IGNORECASE
)
_SECRET = re.compile(
    r"(?:\bmy )?\b(?:password|passphrase|passcode|pin|otp)\s*(?:is|was|:|=)\s*"
    r"(?!(?:not|expired|wrong|incorrect|locked|rejected|refused|denied|invalid|too|the|a|no)\b)\S+",
    re.IGNORECASE,
)

_STATUS = re.compile(
    r"\b(?:is|are) (?:the )?(?P<one>[\w-]+(?: [\w-]+)?) (?:down|up|available|working(?= today| right| for))\b"
    r"|\bstatus of (?:the )?(?P<two>(?!my |all )[\w-]+)|\b(?:outages?|incidents?) (?:with|of|for) (?P<three>[\w-]+)"
    r"|\b(?:service|system)s? status\b|\bknown (?:issues|incidents)\b|\boutages?\b|\ball services\b",
    re.IGNORECASE,
)
_CHECKS = {
    "ping": r"ping|reachable|connectivity",
    "dns": r"dns|nslookup|resolves?",
    "certificate": r"certificate|tls|ssl",
    "http": r"https?|web ?site",
    "disk": r"disk",
    "mail_flow": r"mail flow",
    "vpn_tunnel": r"vpn tunnel|tunnel",
    "wifi_signal": r"wi-?fi signal|wi-?fi",
    "printer_queue": r"print(?:er)? queue",
}
_RUN = re.compile(
    rf"^(?:please |can you )*(?:ping|nslookup)\b|\b(?:run|do|make)\b.{{0,25}}\b(?:diagnostic|check|test)\b"
    rf"|\b(?:check|test)\b (?:if |whether |the |my )?(?:.{{0,40}}reachable|{'|'.join(_CHECKS.values())})\b",
    re.IGNORECASE,
)
_HOST = re.compile(r"\b[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b|\b[A-Z]{2,9}-\d{2,9}\b")
_TARGET = re.compile(r"\b(?:of|for|on|to|ping) (?:the |my )?([\w@][\w@.-]*)", re.IGNORECASE)

_TICKET = re.compile(r"\bINC-[A-Z0-9]{4,12}\b")
_TICKET_LINE = re.compile(r"^(INC-[A-Z0-9]{4,12}) · (\w+) · \w+ · (.+)$", re.MULTILINE)
_LIST = re.compile(r"\b(?:list|show|what|which|any|my|status of)\b.{0,30}\btickets\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:open|create|file|log|need|raise an?)\b.{0,30}?\bticket\b(?!s)\W*"
    r"(?:(?:about|for|that|because|on|with)\b\W*)*(?P<about>.*)$"
    r"|\b(?:talk|speak) (?:to|with) (?:a |an )?(?:human|person|agent|someone|technician)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHANGE = re.compile(
    r"\b(?:close|resolve|reopen|re-open|update|comment|set|raise|lower|mark)\b.{0,60}(?:ticket|\bit\b|INC-)",
    re.IGNORECASE,
)
_STATUSES = {"closed": r"\bclosed?\b", "resolved": r"\bresolved?\b", "open": r"\bre-?open\b", "waiting": r"\bwaiting\b"}
_PRIORITY = re.compile(r"\b(low|normal|high|urgent)\b", re.IGNORECASE)
_COMMENT = re.compile(r"(?::|\bsaying\b|\bcomment that\b)\s*(\S.*)$", re.IGNORECASE | re.DOTALL)

_ARTICLE = re.compile(
    r"^(?P<id>KB-\d+) · (?P<title>.+?) \(score (?P<score>[\d.]+)\)\nSymptoms: .*\nSteps:\n(?P<steps>(?:.*\n)*?)"
    r"Verify: (?P<verify>.*)\nEscalate when: (?P<escalate>.*)$",
    re.MULTILINE,
)
_PRESENTED = re.compile(r"article (KB-\d+), “")


def plan(prompt: Prompt, text: str) -> list[Step]:
    """Plan what to do about a message; nothing when it is not understood.

    Args:
        text: the message without what was noted.
    """
    if step := _ticket_step(prompt, text) or _after_article(prompt, text) or _check_step(prompt, text):
        return [step]
    if match := _STATUS.search(text):
        service = next((name for name in match.groups() if name), "").lower()
        return [Call("service_status", {"service": service} if service not in ("", "everything", "all") else {})]
    query = without_secrets(text)
    steps: list[Step] = []
    if query != text:
        steps.append(Say("Please do not send me passwords or codes: nothing here needs them."))
    if not (_PROBLEM.search(query) or _THING.search(query)):
        return steps
    last = prompt.latest(SEARCH)
    if last and not _THING.search(query) and len(query.split()) <= 12:
        # "The code is 0x80070057" says something only together with the problem before it.
        query = f"{last.args.get('query', '')} {query}".strip()
    return [Call(SEARCH, {"query": query[:500]}), *steps]


def describe(prompt: Prompt, result: Result, remark: str) -> str:
    """Put a tool's answer into words; every fact comes from the tool."""
    if result.tool == SEARCH:
        articles = list(_ARTICLE.finditer(result.text))
        if not articles:
            return f"I found no article on this. {_OFFER_TICKET}"
        others = "; ".join(f"{other['id']} ({visible(other['title'], 120)})" for other in articles[1:])
        also = f"\n\nAlso found: {others}." if others else ""
        return f"{_presented(articles[0], 'closest')}{also}\n\nDid that help?"
    if result.tool == "service_status":
        lines = visible(result.text, 6_000).splitlines()
        well = [line for line in lines if ": operational" in line]
        if len(well) > 3:
            lines = [line for line in lines if line not in well]
            lines.append(f"The other {len(well)} services are operational.")
        return "\n".join(lines)
    if result.tool == "run_diagnostic" and (article := re.search(r"\bSee (KB-\d+)", result.text)):
        return f"{visible(result.text)}\n\nShall I look up {article[1]}?"
    text = visible(result.text) or f"`{plain(result.tool)}` answered nothing."
    return f"{text}\n\n{remark}" if remark else text


def is_problem(text: str) -> bool:
    """Tell whether a text says that something does not work."""
    return _PROBLEM.search(text) is not None and _THING.search(text) is not None


def without_secrets(text: str) -> str:
    """Take passwords and codes that somebody wrote down out of a text; "my password is expired" stays."""
    return _SECRET.sub("[secret left out]", text)


def _presented(article: re.Match[str], place: str) -> str:
    return "\n\n".join(
        (
            f"The {place} match is article {article['id']}, “{visible(article['title'], 200)}”:",
            visible(article["steps"]),
            f"To check: {visible(article['verify'], 500)}",
            f"Escalate when: {visible(article['escalate'], 500)}",
        )
    )


def _after_article(prompt: Prompt, text: str) -> Step | None:
    """Go on after an article or an offer: the next article, or the end of the case."""
    last, offered = prompt.latest(SEARCH), re.search(r"Shall I look up (KB-\d+)\?", prompt.last_answer)
    if offered and answer_of(text)[0] == "yes":
        return Call(SEARCH, {"query": offered[1], "limit": 1})
    if answer_of(text)[0] == "no" and len(text.split()) <= 4 and (offered or _OFFER_TICKET in prompt.last_answer):
        return Say("All right. Is there anything else?")
    if len(text.split()) > 12 or _THING.search(text):
        return None
    if last and _STILL.search(text):
        seen = {name for turn in prompt.turns for name in _PRESENTED.findall(turn.assistant)}
        articles = list(_ARTICLE.finditer(last.text))
        # Far below the best match comes what only shares a word with the question.
        close = [one for one in articles if float(one["score"]) >= float(articles[0]["score"]) / 2]
        left = [article for article in close if article["id"] not in seen]
        if left:
            return Say(f"{_presented(left[0], 'next')}\n\nDid that help?")
        return Say(f"I have no further article on this. {_OFFER_TICKET}")
    if _SOLVED.search(text) or ("Did that help?" in prompt.last_answer and answer_of(text)[0] == "yes"):
        tickets = _shown_tickets(prompt)
        if len(tickets) == 1 and tickets[0][1] not in ("resolved", "closed"):
            return Say(f"Good. Shall I close ticket {tickets[0][0]}?")
        return Say("Good. Is there anything else?")
    return None


def _check_step(prompt: Prompt, text: str) -> Step | None:
    """Plan a diagnostic; asks for the target when none is named."""
    answers = _ASK_TARGET in prompt.last_answer and len(text.split()) <= 4
    if not answers and not _RUN.search(text):
        return None
    asked = prompt.turns[-1].user if answers else text
    check = next((name for name, words in _CHECKS.items() if re.search(rf"(?i)\b(?:{words})\b", asked)), "ping")
    host, named = _HOST.search(text), _TARGET.search(text)
    target = (
        host.group() if host else text.strip(" .!?") if answers else named[1] if named else _own_device(prompt, check)
    )
    return Call("run_diagnostic", {"check": check, "target": target}) if target else Say(_ASK_TARGET)


def _own_device(prompt: Prompt, check: str) -> str | None:
    """Return the asset tag of the user's first device for a check that runs on a device."""
    devices = prompt.profile.get("devices")
    if check not in ("disk", "wifi_signal") or not isinstance(devices, list):
        return None
    return next((str(one["asset_tag"]) for one in devices if isinstance(one, dict) and one.get("asset_tag")), None)


def _ticket_step(prompt: Prompt, text: str) -> Step | None:
    """Plan what a message asks about tickets; None when it asks nothing about them."""
    is_yes = answer_of(text)[0] == "yes"
    if is_yes and (closing := re.search(r"Shall I close ticket (\S+?)\?", prompt.last_answer)):
        return Call("update_ticket", {"ticket_id": closing[1], "status": "closed"})
    if is_yes and _OFFER_TICKET in prompt.last_answer:
        return _opened(prompt, "", "")
    if _LIST.search(text):
        status = re.search(r"(?i)\b(open|waiting|resolved|closed) tickets\b", text)
        return Call("list_tickets", {"status": status[1].lower()} if status else {})
    if _ASK_SUBJECT in prompt.last_answer:
        return _opened(prompt, text, "")
    if not _TICKET.search(text) and (asked := _OPEN.search(text)):
        if asked["about"] is None:  # a person is asked for
            return _opened(prompt, "", "")
        return _opened(prompt, asked["about"].strip(" .:!?"), text[: asked.start()].strip())
    if _CHANGE.search(text) or (_ASK_TICKET in prompt.last_answer and _TICKET.search(text)):
        return _changed(prompt, text)
    return None


def _opened(prompt: Prompt, about: str, before: str) -> Step:
    """Open a ticket in the user's words: what it is about, what was said before, and which articles were tried."""
    earlier = prompt.latest(SEARCH)
    case = str(earlier.args.get("query", "")) if earlier else ""
    subject = re.sub(r"(?i)^(?:this|it|that|me|please)?$", "", about) or before or case
    if not subject:
        return Say(_ASK_SUBJECT)
    description = f"Reported: {without_secrets(before or subject)}"
    tried = dict.fromkeys(name for turn in prompt.turns for name in _PRESENTED.findall(turn.assistant))
    if subject == case and tried:
        description += f"\nArticles given to the user: {', '.join(tried)}."
    title = re.split(r"(?<=[.!?])\s", without_secrets(subject))[0].rstrip(".")[:120]
    args = {"title": title[:1].upper() + title[1:], "description": description}
    priority = _PRIORITY.search(prompt.text)
    return Call("open_ticket", {**args, "priority": priority[1].lower()} if priority else args)


def _changed(prompt: Prompt, text: str) -> Step:
    named, tickets = _TICKET.search(text), _shown_tickets(prompt)
    asked = text if _CHANGE.search(text) or not prompt.turns else f"{prompt.turns[-1].user} {text}"
    words = set(re.findall(r"[a-z]{3,}", text.lower())) - {"the", "ticket", "close", "please", "and", "about"}
    about = [one for one in tickets if words & set(one[2].lower().split())]
    meant = named.group() if named else about[0][0] if len(about) == 1 else tickets[0][0] if len(tickets) == 1 else None
    if meant is None:
        return Call("list_tickets", remark=_ASK_TICKET)
    changes: dict[str, str] = {}
    status = next((name for name, words_ in _STATUSES.items() if re.search(words_, asked, re.IGNORECASE)), None)
    if comment := _COMMENT.search(asked):
        changes["comment"] = without_secrets(comment[1])
    elif status:
        changes["status"] = status
    if not comment and (priority := _PRIORITY.search(asked)):
        changes["priority"] = priority[1].lower()
    return Call("update_ticket", {"ticket_id": meant, **changes})


def _shown_tickets(prompt: Prompt) -> list[tuple[str, str, str]]:
    """Return id, status and title of the tickets that the newest answer of a ticket tool shows."""
    last = prompt.latest("open_ticket", "update_ticket", "list_tickets")
    return _TICKET_LINE.findall(last.text) if last else []
