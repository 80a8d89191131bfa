"""Where sentences end."""

import re

_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][)\]\"'”’»]))\s+|(?<=[。！？])[」』）]?\s*|(?<=\])\s+(?=[A-Z])|[\n\r]+")
_NO_END = re.compile(
    r"(?:\b(?:a\.m|p\.m|e\.g|i\.e|etc|mrs?|ms|dra?|st|vs|approx|no|u\.s|sra?|srta|mme|mlle|nr|bzw|(?-i:ca)|z\.\s?b|d\.\s?h)\.|\b[A-Z]\."
    r"|^\s{0,9}\d{1,3}\.|\b(?:(?<!i )am|vom|zum|des|den|dem|jeden)\s\d{1,2}\.)$",
    re.IGNORECASE | re.MULTILINE,
)
"""Abbreviations, initials, German days of the month and the number of a list item, whose full stop ends no sentence."""

_LONGEST_ABBREVIATION = 12
"""Characters ahead of an end that can make it none."""

_BULLET = re.compile(r"^(?:[-*•]|\d{1,3}[.)])\s+(?=\S)")


def sentences(text: str, *, at_semicolons: bool = False) -> list[str]:
    """Return the sentences of a text word for word, without what separates them; a line or list item is one.

    Args:
        text: prose or lines, in any language that ends sentences with `.`, `!`, `?` or their CJK forms.
        at_semicolons: cut there as well.
    """
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        if end.group().isspace() and not set(end.group()) & {"\n", "\r"}:
            ahead = text[max(begin, end.start() - _LONGEST_ABBREVIATION) : end.start()]
            if _NO_END.search(ahead):
                continue
        parts.append(text[begin : end.end()])
        begin = end.end()
    parts.append(text[begin:])
    if at_semicolons:
        parts = [half for part in parts for half in re.split(r"(?<=;)\s+", part)]
    return [bare for part in parts if (bare := _BULLET.sub("", part.strip()))]
