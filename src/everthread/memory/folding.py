"""Fold a text to plain letters and digits, remembering where each sign came from."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property

# Letters of other scripts that look like a Latin one, from the most used rows of Unicode's
# confusables.txt (UTS 39), and Latin letters that NFKD leaves as they are.
_PAIRS = (
    "аa бb вb гr ґr ԁd еe єe һh іi јj кk ӏl мm пn оo рp ԛq сc тt уy хx ѕs ѵv ԝw "
    "АA ВB ЕE НH ІI ЈJ КK МM ОO РP ЅS ТT УY ҮY ХX ԌG ԚQ ԜW "
    "αa βb εe ηn ιi κk νv οo ρp τt υu χx γy ωw µu "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX օo ոn սu ցg հh "
    "ıi øo łl đd ðd ħh ŧt æa œo ßs þp ɑa ɡg ɩi ʋv ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu "
    "ᴠv ᴡw ʏy ᴢz"
)
_ALIKE = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}
_FOREIGN = re.compile(r"[\u0370-\u058f]")
_WORD = re.compile(r"\w+")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")
_QUOTES = str.maketrans("‘’‚‛`´“”„‟«»′″。、।", "''''''" + '"' * 6 + "'\"" + ".,.")


@dataclass(frozen=True)
class View:
    """A text as one of the readings that the guard scans.

    `text` keeps its case; `low` is the same in lower case, of the same length.
    """

    text: str
    origins: tuple[int, ...] | None = None
    """For each sign of `text` its place in the text as given; None when the places are the same."""
    place: tuple[int, int] | None = None
    """The place of what was decoded, when single signs have none."""
    is_prose: bool = False
    """True when digits in it mean nothing, as in a reversed text: only wording is looked at."""

    @cached_property
    def low(self) -> str:
        """The text in lower case."""
        lower = self.text.lower()
        if len(lower) == len(self.text):
            return lower
        return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in self.text)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place of a match in the text as given."""
        if self.place is not None:
            return self.place
        if self.origins is None:
            return start, end
        if start >= len(self.origins):
            return 0, 0
        return self.origins[start], self.origins[max(start, end - 1)] + 1


def folded(raw: str) -> View:
    """Return a text without invisible signs, in compatibility form, without accents and lookalikes.

    Args:
        raw: any text.
    """
    if raw.isascii() and raw.isprintable():
        return View(raw)
    signs: list[str] = []
    origins: list[int] = []
    for place, sign in enumerate(raw):
        for plain in _plain(sign):
            signs.append(plain)
            origins.append(place)
    text = "".join(signs)
    if _FOREIGN.search(text):
        text = _without_lookalikes(text)
    return View(text, tuple(origins))


@cache
def _plain(sign: str) -> str:
    """Return what one sign stands for; empty for an invisible one."""
    if sign in "\t\r":
        return " "
    if sign.isascii():
        return sign if sign == "\n" or sign.isprintable() else ""
    kind = unicodedata.category(sign)
    if is_invisible(sign) or kind == "Cc":
        return ""
    if kind == "Zl" or kind == "Zp":
        return "\n"
    if 0x1F1E6 <= ord(sign) <= 0x1F1FF:
        return chr(ord(sign) - 0x1F1E6 + ord("A"))
    if 0x1F130 <= ord(sign) <= 0x1F149 or 0x1F150 <= ord(sign) <= 0x1F169 or 0x1F170 <= ord(sign) <= 0x1F189:
        return chr((ord(sign) - 0x1F130) % 0x20 + ord("A"))
    parts = unicodedata.normalize("NFKC", sign)
    return "".join(_letter(part) for part in parts)


def _letter(sign: str) -> str:
    if sign.isascii():
        return sign
    kind = unicodedata.category(sign)
    if kind == "Nd":
        return str(unicodedata.decimal(sign))
    if kind == "Pd" or sign == "−":
        return "-"
    if kind == "Zs":
        return " "
    parts = unicodedata.normalize("NFD", sign)
    # Only Latin loses its marks: in Japanese or Hindi they are part of the letter.
    if len(parts) > 1 and parts[0].isascii():
        sign = parts[0]
    if 0x0300 <= ord(sign) <= 0x036F:
        return ""
    sign = sign.translate(_QUOTES)
    return sign if _FOREIGN.match(sign) else sign.translate(_ALIKE)


def is_invisible(sign: str) -> bool:
    """Tell whether a sign takes no room: format signs, variation selectors, fillers, tags."""
    return unicodedata.category(sign) == "Cf" or sign in _INVISIBLE or "\ufe00" <= sign <= "\ufe0f" or is_selector(sign)


def is_selector(sign: str) -> bool:
    """Tell whether a sign is one of the supplementary variation selectors."""
    return 0xE0100 <= ord(sign) <= 0xE01EF


def _without_lookalikes(text: str) -> str:
    """Replace lookalikes in words that mix scripts, and everywhere in a text that is mostly Latin."""
    foreign = len(_FOREIGN.findall(text))
    latin = sum(sign.isascii() and sign.isalpha() for sign in text)
    if latin >= foreign:
        return text.translate(_ALIKE)
    return _WORD.sub(lambda word: _if_mixed(word.group()), text)


def _if_mixed(word: str) -> str:
    return word.translate(_ALIKE) if any(sign.isascii() and sign.isalpha() for sign in word) else word
