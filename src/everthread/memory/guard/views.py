"""The readings of a text that the guard scans, each a `View`: as it stands, and with what hides words undone.

The work is bounded: a fixed number of readings, each at most as long as the text.
"""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from everthread.memory.folding import View, folded, is_selector
from everthread.memory.guard.number_words import HAN, KANA, SPELLED, digits_of, digits_of_han, digits_of_kana
from everthread.memory.guard.spelling import is_telling, segmented, unscrambled

_MOST_TOKENS = 4
"""Encoded pieces that are decoded, of each kind."""

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}.{0,12}?){3}", re.DOTALL)
_ENTITY = re.compile(r"&#?\w{2,8};")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,4000}={0,2}")
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ :,-]?){8,2000}")
_BLANK = re.compile(r"(?<!\s)\s*\n\s*|(?<=[^\W_]{2})\s{2,}|(?<!\s)\s{4,}")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*/|·,+~]{1,3}[^\W_](?![^\W_])){2,2000}")
_WIDE_GAP = re.compile(r"[ .\-_*/|·,+~]{2,3}")
_SEPARATOR = re.compile(r"[ .\-_*/|·,+~]")
_MIXED = re.compile(r"[a-zA-Z0-9_@$!|+]+")
"""What may be leetspeak; folded text has no accents, and next to other letters digits are digits."""
_FEWEST_LETTERS = 0.25
"""Share of letters in it; an error code has fewer."""
_LEET = str.maketrans("0134578@$!|+", "oieastbasiit")
_IN_WORDS = ((SPELLED, digits_of), (HAN, digits_of_han), (KANA, digits_of_kana))


def readings(raw: str) -> Iterator[View]:
    """Yield the readings of a text, the plainest first, none twice.

    Args:
        raw: the text as given, or a part of it.
    """
    seen: set[str] = set()
    for view in _all(raw):
        if view.text.strip() and view.text not in seen:
            seen.add(view.text)
            yield view


def hidden(raw: str) -> str:
    """Return what is written in signs that nobody sees: Unicode tags and variation selectors.

    The flags of England, Scotland and Wales are spelled in tags too; their letters are not hidden text.
    """
    if raw.isascii():
        return ""
    letters: list[str] = []
    after_flag = False
    for sign in raw:
        point = ord(sign)
        if 0xE0020 <= point <= 0xE007E:
            letters += [] if after_flag else [chr(point - 0xE0000)]
        elif is_selector(sign):
            letters.append(chr(point - 0xE0100 + 16))
        else:
            after_flag = sign == "\N{WAVING BLACK FLAG}"
    return "".join(letters)


def _all(raw: str) -> Iterator[View]:
    plain = folded(raw)
    yield plain
    yield from _undone(plain)
    decoded = [(text, (0, len(raw))) for text in (hidden(raw), _unescaped(raw)) if text]
    for text, span in (*decoded, *_decoded(raw)):
        view = View(folded(text).text, place=span)
        yield view
        yield from _undone(view)
    for turned in (plain.text[::-1], codecs.encode(plain.text, "rot13")):
        # Turned around, ordinary text is noise; only noise with telling words in it is read.
        if is_telling(turned.lower()):
            yield View(turned, place=(0, len(raw)), is_prose=True)


def _undone(view: View) -> Iterator[View]:
    """Yield a view with line breaks, spacing, leetspeak, spelled numbers and scrambled words undone."""
    if _BLANK.search(view.text):
        yield (view := _edited(view, _BLANK, lambda _: " "))
    low = view.low
    if _SPACED.search(low):
        yield _edited(view, _SPACED, _joined)
    if any(_is_leet(word) for word in _MIXED.findall(low)):
        yield _edited(view, _MIXED, lambda word: word.translate(_LEET) if _is_leet(word.lower()) else word)
    for pattern, digits in _IN_WORDS:
        if pattern.search(low):
            yield _edited(view, pattern, digits)
    if (right := unscrambled(low)) != low:
        yield View(right, place=view.place or view.span(0, len(low)), is_prose=view.is_prose)


def _edited(view: View, pattern: re.Pattern[str], edit: Callable[[str], str]) -> View:
    """Return a view with every match replaced; what is replaced takes the place of its match."""
    parts: list[str] = []
    origins: list[int] = []
    last = 0
    for match in pattern.finditer(view.low):
        new = edit(view.text[match.start() : match.end()])
        parts += (view.text[last : match.start()], new)
        origins += range(last, match.start())
        origins += [match.start() + (index * len(match.group())) // max(1, len(new)) for index in range(len(new))]
        last = match.end()
    parts.append(view.text[last:])
    origins += range(last, len(view.text))
    if view.origins is not None:
        origins = [view.origins[place] for place in origins]
    return View("".join(parts), tuple(origins), view.place, view.is_prose)


def _joined(run: str) -> str:
    words = [_SEPARATOR.sub("", word) for word in _WIDE_GAP.split(run)]
    joined = " ".join(segmented(word.lower()) if word.isalpha() else word for word in words)
    # In a run of digits a wide gap is only a wide gap.
    return joined.replace(" ", "") if joined.replace(" ", "").isdigit() else joined


def _is_leet(word: str) -> bool:
    plain = word.translate(_LEET)
    letters = sum(map(str.isalpha, word))
    return plain not in (word, word.strip("!+|")) and letters >= _FEWEST_LETTERS * len(word)


def _unescaped(raw: str) -> str:
    """Return a text with HTML entities or percent signs read, also twice; empty when it has none."""
    text = html.unescape(html.unescape(raw)) if _ENTITY.search(raw) else raw
    text = unquote(unquote(text)) if _PERCENT.search(text) else text
    return text if text != raw else ""


def _decoded(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield what pieces in base64 and hex say, with their places."""
    for found in list(_BASE64.finditer(raw))[:_MOST_TOKENS]:
        token = found.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = base64.b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            continue
        yield from _readable(plain, found.span())
    for found in list(_HEX.finditer(raw))[:_MOST_TOKENS]:
        digits = re.sub(r"0x|\\x|[^0-9A-Fa-f]", "", found.group())
        yield from _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]), found.span())


def _readable(plain: bytes, span: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield decoded bytes that are text: nearly all of it letters, digits and marks."""
    text = plain.decode("utf-8", "ignore")
    if len(text) >= 6 and sum(sign.isprintable() for sign in text) >= 0.9 * max(len(text), len(plain) // 2):
        yield text, span
