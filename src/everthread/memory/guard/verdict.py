"""What the guard says about a text."""

from dataclasses import dataclass, replace
from typing import Literal

Category = Literal[
    "",
    "ssn",
    "national_id",
    "card",
    "passport",
    "iban",
    "account_number",
    "phone",
    "email",
    "address",
    "dob",
    "booking_ref",
    "secret",
    "auth_code",
    "private_value",
    "instruction_payload",
    "system_rule",
    "policy_override",
    "exfil_link",
    "unreadable",
]
"""Why a text is not kept; empty for an allowed one, `unreadable` when the guard could not judge it."""

PHRASES: dict[str, str] = {
    "card": "a card number",
    "iban": "a bank account number",
    "ssn": "a social security number",
    "national_id": "a national identity number",
    "passport": "a passport number",
    "secret": "a password or a key",
    "auth_code": "a code or a PIN",
    "system_rule": "a rule of the system",
    "policy_override": "an override of rules",
    "exfil_link": "a way to send data out",
    "instruction_payload": "an instruction to the assistant",
    "dob": "a date of birth",
    "booking_ref": "a booking reference",
    "account_number": "an account number",
    "email": "an e-mail address",
    "address": "a street address",
    "phone": "a phone number",
    "private_value": "a private number, code or address",
    "unreadable": "something that cannot be judged",
}
"""What does the most harm, and the surest first: that category names a text with several findings."""

Span = tuple[int, int]
"""Start and end in the text as it was given, in characters."""


@dataclass(frozen=True)
class Finding:
    """One thing that a detector found; it holds places and names, never the text itself."""

    category: Category
    rule: str
    span: Span

    def moved(self, offset: int) -> "Finding":
        """Return it as found in a part that begins so many characters into the text."""
        return replace(self, span=(self.span[0] + offset, self.span[1] + offset)) if offset else self


@dataclass(frozen=True)
class Verdict:
    """What the guard decided; `rule` names the rule, never the text that met it."""

    decision: Literal["allow", "block", "redact"]
    category: Category = ""
    rule: str = ""
    span: Span | None = None
    """Where in the text; the whole text when the finding was hidden in it as a whole."""
    findings: tuple[Finding, ...] = ()
    """Everything found in the view of the text that decided, most important first."""

    @property
    def allowed(self) -> bool:
        """Tell whether the text may be kept as it is."""
        return self.decision == "allow"


ALLOW = Verdict("allow")


def phrase(category: str) -> str:
    """Return what a text of a category looks like, for people: `a passport number`."""
    return PHRASES.get(category, category.replace("_", " ") or "no note")
