"""Take keys, tokens and passwords out of the text of an error before anybody keeps or shows it."""

import re

__all__ = ["scrub"]

_SECRETS = [
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|nvapi)[-_][\w*-]{4,}"), "[key]"),
    (re.compile(r"\bAIza[\w-]{10,}"), "[key]"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), "[key]"),
    (re.compile(r"(\bbearer\s+)[^\s\"',}]+", re.IGNORECASE), r"\1[key]"),
    (re.compile(r"(\bapi[-_ ]?key(?: provided)?[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]+", re.IGNORECASE), r"\1[key]"),
    (re.compile(r"([?&](?:key|token|api-key|access_token)=)[^\s&\"']+", re.IGNORECASE), r"\1[key]"),
    (re.compile(r"(://)[^/\s@]+@"), r"\1[key]@"),
]


def scrub(text: str) -> str:
    """Replace what looks like a key, a token or a password by `[key]`."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
