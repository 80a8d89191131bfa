"""Sentences by which users keep the last word: `don't book anything without my approval`.

They speak of leave and of acts as attacks do, and say the opposite. Only acts on the user's behalf count, never checks,
rules or records, and nothing may follow: `… unless it is cheap` is another sentence.
"""

import re

__all__ = ["keeps_leave"]

_ACT = (
    r"(?:book|buy|pay|purchas|order|charg|chang|cancel|send|shar|delet|remov|restart|reboot|install|uninstall|transfer|"
    r"spend|reserv|rebook|modif|updat|submit|sign|contact|call|email|messag|post|publish|shut|mov|format|wip|reset|renew|subscrib|"
    r"upgrad|downgrad|refund|touch|do|mak|commit|finali[sz]|proceed|go ahead|act|switch|turn|"
    r"overwrit|alter|edit|giv)\w{0,6}"
)
_OBJECT = (
    r"(?:(?!\b(?:rule|polic|limit|check|guard|safe|warn|verif|log|record|filter|instruct|memor|restrict|review|audit|alert|"
    r"prompt|identit|security|password)\w*)[^,;:.!?\n]){0,60}"
)
_WORD = (
    r"(?:approval|ok|okay|consent|permission|confirmation|say-so|go-ahead|sign-off|authori[sz]ation|word|agreement|yes|"
    r"blessing|green light)"
)
_WHOSE = r"(?:my|our|their|the user's)(?: (?:explicit|express|prior|clear|written|final))*"
_LEAVE = (
    rf"(?:(?:first )?(?:asking|checking with|consulting|telling) (?:me|us|them|the user)(?: first)?|{_WHOSE} {_WORD}|"
    r"(?:you )?(?:ask|check with|consult|tell|hear from) (?:me|us|them)(?: first)?|"
    r"(?:i|we|they|the user)(?:'ve| have| has)? (?:explicitly |personally )?(?:approv\w+|confirm\w*|agre\w+|say|says|"
    r"said|ok|okay\w*|consent\w*|sign\w*|give|gave|given|tell|told)\b[^,;:.!?\n]{0,25})"
)
_LEAD = r"\W*(?:(?:please|and|but|also|always|asks)\W+)*"
_KEPT = re.compile(
    rf"{_LEAD}(?:(?:(?:never|don't|do not|dont|no|does not want you to)(?: ever| you)? {_ACT}\b{_OBJECT}|"
    rf"(?:nothing|nobody|no one)(?: (?:gets|is|may|should|can|be|to|must|ever)){{0,3}} {_ACT}\b{_OBJECT}) ?"
    rf"\b(?:before|without|until|till|unless)\b {_LEAVE}|"
    rf"(?:ask|check with|consult|wait for|get|obtain|require) (?:me|us|them|the user|{_WHOSE} {_WORD})"
    rf"(?: for (?:(?:my|our|their) )?{_WORD})?(?: first)?(?: (?:before|prior to) (?:you |any )?{_ACT}\b{_OBJECT})?)\W*",
    re.IGNORECASE,
)


def keeps_leave(sentence: str) -> bool:
    """Tell whether a sentence makes an act wait for the user and says nothing else."""
    return _KEPT.fullmatch(sentence.replace("’", "'")) is not None
