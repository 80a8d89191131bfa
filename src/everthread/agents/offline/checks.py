"""Turn a question on a service or a device into a status query or a diagnostic."""

import re
from typing import Any

from everthread.agents.offline.patterns import pattern, word_set
from everthread.agents.offline.reading import Reading
from everthread.agents.offline.reply import Call, Say, Step

ASK_TARGET = "Which host, device or service shall I check?"

# How people call a check, and how `run_diagnostic` does.
_CHECKS = (
    ("ping", r"ping|reachab\w+|latency|connectivity|traceroute|trace route"),
    ("dns", r"dns|nslookup|dig|name resolution|resolves?"),
    ("certificate", r"cert(?:ificate)?s?|tls|ssl"),
    ("http", r"https?|url|web ?site|web page"),
    ("disk", r"disk|disk space|storage|smart"),
    ("mail_flow", r"mail[ _-]flow|message trace|mail trace|mail delivery"),
    ("vpn_tunnel", r"vpn[ _-]tunnel|tunnel|vpn"),
    ("wifi_signal", r"wi-?fi[ _-]signal|wi-?fi|wireless|wlan"),
    ("printer_queue", r"printer[ _-]queue|print queue|printer"),
)
_OWN_DEVICE = frozenset({"disk", "wifi_signal"})
_NAMES = "|".join(pattern for _, pattern in _CHECKS)
_RUN = pattern(
    r"^(?:please |can you |could you )*(?P<bare>ping|traceroute|nslookup|dig)\s+(?P<host>\S+)",
    rf"\b(?:run|do|perform|start|make|execute)\b.{{0,25}}\b(?:diagnostics?|checks?|tests?|{_NAMES})\b",
    rf"\b(?:check|test|diagnose|verify)\s+(?:the |my |our )?(?:{_NAMES})\b.{{0,15}}"
    r"\b(?:of|for|on|to|from|at|against|with|signal|queue)\b",
    r"\bcheck (?:if|whether)\b.{0,60}\b(?:reachable|online|up|responds?|responding|resolves?|answers?)\b",
    r"\b(?:check|test)\s+(?:the |my |our )?"
    r"(?:ping|dns|certificate|disk(?: space)?|wi-?fi signal|print(?:er)? queue|tunnel)\b",
)
_TARGET = pattern(
    r"\b(?:for|on|of|to|against|from|at)\s+(?:(?:the|my|our|host|device|server|service|target)\s+)*"
    r"(?P<target>[\w@][\w@.:/-]*)"
)
_HOST = re.compile(r"\b[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b|\b[A-Z]{2,}-\d{2,}\b")

_SERVICE = r"[\w.&/-]{1,40}(?: [\w.&/-]{1,40}){0,2}"
_STATUS = tuple(
    pattern(one)
    for one in (
        rf"\b(?:is|are)\s+(?:the |our |there )?(?P<service>(?!my\b|your\b){_SERVICE}?)\s+(?:currently |really |still )?"
        r"(?:down|up|offline|online|available|having (?:problems|issues|an outage)|working(?= (?:for|right|today)))\b",
        rf"\b(?:service )?status (?:of|for) (?:the |our )?(?P<service>(?!all|every|my ticket){_SERVICE})",
        r"\b(?P<service>(?!service|system|ticket|the|your|my)[\w&-]{1,40}) status\b",
        r"\b(?:outages?|incidents?|known (?:issues|problems|incidents|disturbances)|maintenance)\b"
        r"(?:\s+(?:with|of|for|on|at|in)\s+(?:the |our )?(?P<service>[\w&-]+))?",
        r"\b(?:service|system)s? status\b|\bstatus of (?:all|every)\b|\ball services\b(?P<service>)",
    )
)
_NO_SERVICE = word_set(
    "it this that everything something anything there any all services systems you we i current known what how the a"
)


def check_step(text: str, reading: Reading) -> Step | None:
    """Plan a diagnostic; asks for the target when none is named. None when no check is asked for."""
    if ASK_TARGET in reading.last_answer and reading.turns and not _RUN.search(text):
        answer = text.strip(" .!?")
        return _call(_check_named(reading.turns[-1].user), answer) if 0 < len(answer.split()) <= 4 else None
    match = _RUN.search(text)
    if match is None:
        return None
    check = _check_named(match["bare"] or text)
    target = match["host"] or _target(text) or _own_device(check, reading)
    return _call(check, target) if target else Say(ASK_TARGET)


def status_step(text: str) -> Step | None:
    """Plan a status query, on one service when one is named; None when the message asks for no status."""
    for rule in _STATUS:
        if match := rule.search(text):
            service = (match["service"] or "").strip(" .?!").lower()
            words = [word for word in service.split() if word not in ("right", "now", "today", "please")]
            named = " ".join(words)
            return Call("service_status", {"service": named} if named and words[0] not in _NO_SERVICE else {})
    return None


def _call(check: str, target: str) -> Call:
    return Call("run_diagnostic", {"check": check, "target": target.strip(" .?!,")})


def _check_named(text: str) -> str:
    return next((name for name, words in _CHECKS if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE)), "ping")


def _target(text: str) -> str | None:
    host = _HOST.search(text)
    if host:
        return host.group()
    named = _TARGET.search(text)
    target = named["target"].split(" ")[0] if named else None
    return target if target and target.lower() not in _NO_SERVICE else None


def _own_device(check: str, reading: Reading) -> str | None:
    """Return the asset tag of the user's first device for a check that runs on a device."""
    devices: Any = reading.profile.get("devices")
    if check not in _OWN_DEVICE or not isinstance(devices, list):
        return None
    tags = [device.get("asset_tag") for device in devices if isinstance(device, dict)]
    return next((str(tag) for tag in tags if tag), None)
