"""The guard: decide whether a candidate note may be kept.

This is the plain form: shapes of the commonest identifiers and secrets, and wording that gives the
assistant orders. It is a filter, not a security boundary; see docs/memory.md.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verdict:
    """What the guard decided; `rule` names the rule, never the text that met it."""

    decision: Literal["allow", "block"]
    category: str = ""
    rule: str = ""

    @property
    def allowed(self) -> bool:
        """Tell whether the note may be kept."""
        return self.decision == "allow"


ALLOW = Verdict("allow")

_RULES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (category, rule, re.compile(pattern, re.IGNORECASE))
    for category, rule, pattern in (
        ("ssn", "shape", r"\b\d{3}[- ]\d{2}[- ]\d{4}\b"),
        ("iban", "shape", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
        ("email", "shape", r"[\w.+-]+@[\w-]+\.[\w.-]+"),
        ("passport", "context", r"\bpassport\b[^.]{0,30}?\b(?=[A-Z0-9]*\d{4})[A-Z0-9]{6,9}\b"),
        ("dob", "context", r"\b(?:born|birth|dob)\b[^.]{0,30}\b\d{1,4}[-/. ](?:\d{1,2}|[a-z]{3,9})[-/. ]\d{1,4}\b"),
        ("secret", "context", r"\b(?:password|passphrase|api[ _-]?key|secret key)\b\s*(?:is|:|=)\s*\S+"),
        ("auth_code", "context", r"\b(?:pin|cvv|cvc|otp|one[- ]time code|door code)\b\D{0,12}\d{3,8}\b"),
        ("booking_ref", "context", r"\b(?:record locator|pnr|confirmation (?:number|code))\b\W*(?:is\W*)?[A-Z0-9]{5,}"),
        (
            "policy_override",
            "wording",
            r"\b(?:ignore|disregard|override|bypass)\b.{0,40}\b(?:instructions?|rules?|polic(?:y|ies)|approval)\b",
        ),
        (
            "policy_override",
            "wording",
            r"\b(?:store|add|save|remember)\b.{0,20}\b(?:this|the following|new)\s+(?:rule|instruction|policy)\b",
        ),
        (
            "policy_override",
            "consent",
            r"\b(?:always|must|should|may|can|will|just)\s+(?:always\s+)?"
            r"(?:book|buy|pay|order|cancel|send|share|confirm|act)\b.{0,30}\bwithout\b.{0,15}"
            r"\b(?:ask\w*|approv\w*|confirm\w*|consent|permission)\b",
        ),
        (
            "policy_override",
            "consent",
            r"\b(?:never|don't|do not|stop|no need to)\s+(?:ask|asking|confirm|confirming|check|checking)\b.{0,25}"
            r"\b(?:before|for (?:my )?(?:approval|permission|confirmation)|booking|paying)\b",
        ),
        ("system_rule", "delimiter", r"</?(?:memories|user_profile|memory_policy|system)\b|<\|[a-z_]+\|>|\[/?INST\]"),
        ("system_rule", "authority", r"^\s*(?:system|developer|admin(?:istrator)?)\s*(?:message|note|prompt)?\s*:"),
        ("exfil_link", "link", r"\b(?:send|post|forward|upload)\b.{0,60}https?://"),
    )
)

_CARD = re.compile(r"\b(?:\d[ -]?){12,18}\d\b")


def check(text: str) -> Verdict:
    """Decide on one candidate note.

    Args:
        text: the note as it would be stored.
    """
    plain = _normalised(text)
    for category, rule, pattern in _RULES:
        if pattern.search(plain):
            return Verdict("block", category, rule)
    if any(_passes_luhn(found.group()) for found in _CARD.finditer(plain)):
        return Verdict("block", "card", "luhn")
    return ALLOW


def _normalised(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text)
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")


def _passes_luhn(text: str) -> bool:
    digits = [int(sign) for sign in text if sign.isdigit()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
