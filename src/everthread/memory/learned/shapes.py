"""The codes of a text, such as numbers, passwords and addresses of mails, by their shape and never by what they are."""

import re

from everthread.memory.folding import folded

_TOKEN = re.compile(r"[A-Za-z0-9@#*+./:\-_$%&=^~]+")
_CODE = re.compile(r"[0-9@#*_$%&=^~]|[a-z][A-Z]")
"""What a word of a language has not; of the last, only where it is longer than three letters."""
_SHORTEST = 4
_REPEATED = re.compile(r"(.)\1*")
_LONGEST = 20
_MOST_ALIKE = 4
"""Signs in a row that are counted; of more, only that they are more."""
_MOST_DIGITS, _MOST_LETTERS, _MOST_LENGTHS = 17, 5, 9


def without_codes(text: str) -> tuple[str, list[str]]:
    """Return a folded text with a 0 for each of its codes, and what their shapes are called.

    A shape is known by its signs (`AA000-0a`), by its runs (`A2 0 3`), by how many digits and letters it has, and by
    its length.
    """
    names: list[str] = []

    def note(match: re.Match[str]) -> str:
        token = match.group()
        found = _CODE.search(token)
        if found is None or (found.group().isalpha() and len(token) < _SHORTEST):
            return token
        names.extend(_names(token))
        return " 0 "

    return _TOKEN.sub(note, folded(text).text), names


def _names(token: str) -> list[str]:
    shape = "".join(map(_kind, token))
    digits, letters = shape.count("0"), shape.count("a") + shape.count("A")
    has_signs = digits + letters < len(shape)
    return [
        f"shape {shape[:_LONGEST]}",
        f"runs {_REPEATED.sub(_run, shape)[:_LONGEST]}",
        f"signs {min(digits, _MOST_DIGITS)} {min(letters, _MOST_LETTERS)} {has_signs}",
        f"length {min(len(shape) // 3, _MOST_LENGTHS)}",
    ]


def _run(match: re.Match[str]) -> str:
    count = len(match.group())
    return match[1] + ("" if count == 1 else str(count) if count <= _MOST_ALIKE else "+")


def _kind(sign: str) -> str:
    return "0" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign
