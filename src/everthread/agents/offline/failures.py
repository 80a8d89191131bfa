"""Put what a tool tells the model into words for the user: what happened stays, instructions go."""

import re

from everthread.agents.offline.patterns import pattern

_ADVICE = pattern(
    r"[;,]\s*(?:or |and |so )?(?:ask the user|tell the user|check the (?:dates|year)|work it out|pass full names"
    r"|search again|search for it|search in|offer a|leave it out|split the time|call `|shorten it)\b.*$",
    r"; `\w+` shows .*$",
)
_FOR_THE_MODEL = pattern(r"\s*\b(?:Tell the user|Correct the arguments|Find out what|Search again)\b.*$")
_WORDING = tuple(
    (re.compile(told, re.IGNORECASE), said)
    for told, said in (
        (r"^(?:Error:\s*)+", ""),
        (r"\bunknown (service|check) '([^']*)'; the \w+ are\b", r"I know no \1 “\2”; I can look at"),
        (r"\bthis user has no\b", "you have no"),
        (r"\bthe user['’]s\b", "your"),
        (r"\bthe user (?=declined|added|asked|said)", "you "),
        (r"\bthe user\b", "you"),
        (r"`([a-z]+(?:_[a-z]+)*)`", lambda match: match[1].replace("_", " ")),
    )
)


def told_to_the_user(text: str) -> str:
    """Return a tool's refusal or failure as a sentence for the user, with the capital that the tool gave it."""
    text = _ADVICE.sub("", _FOR_THE_MODEL.sub("", text.strip()).rstrip(". ")).rstrip(". ")
    for told, said in _WORDING:
        text = told.sub(said, text)
    return f"{text}." if text else ""
