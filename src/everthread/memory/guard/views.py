"""The readings of a text that the guard scans: as it stands, and with what hides words undone.

The work is bounded: a fixed number of readings, each at most as long as the text.
"""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from everthread.memory.guard.folding import View, folded, is_selector
from everthread.memory.guard.words import corrected, segmented, telling

_MOST_TOKENS = 4
"""Encoded pieces that are decoded, of each kind."""

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}.{0,12}?){3}", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_ENTITY = re.compile(r"&#?\w{2,8};")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,4000}={0,2}")
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ :,-]?){8,2000}")
_BINARY = re.compile(r"[01]{8}(?: ?[01]{8}){3,500}")
_DECIMAL = re.compile(r"\d{2,3}(?:[ ,]{1,2}\d{2,3}){7,500}")
_BLANK = re.compile(r"\s*\n\s*|(?<=[^\W_]{2})\s{2,}|\s{4,}")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*/|·,+~]{1,3}[^\W_](?![^\W_])){2,2000}")
_WIDE_GAP = re.compile(r"[ .\-_*/|·,+~]{2,3}")
_SEPARATOR = re.compile(r"[ .\-_*/|·,+~]")
_SPLIT_WORD = re.compile(r"(?<=[^\W\d_])[.\-_*/|·+~'](?=[^\W\d_])")
_MIXED = re.compile(r"[\w@$!|+]+")
_LEET = str.maketrans("0134578@$!|+", "oieastbasiit")
_NUMBER_WORDS = {
    word: str(digit)
    for digit, words in enumerate(
        (
            "zero oh null cero sifir zwo-null nolla",
            "one eins uno un bir",
            "two zwei zwo dos deux iki due",
            "three drei tres trois uc tre",
            "four vier cuatro quatre dort quattro",
            "five funf cinco cinq bes cinque",
            "six sechs seis alti sei",
            "seven sieben siete sept yedi sette",
            "eight acht ocho huit sekiz otto",
            "nine neun nueve neuf dokuz nove niner",
        )
    )
    for word in words.split()
}
_SPELLED = re.compile(
    rf"\b(?:{'|'.join(_NUMBER_WORDS)}|\d|double|triple)(?:[ ,-]{{1,3}}(?:{'|'.join(_NUMBER_WORDS)}|\d"
    rf"|double|triple)\b){{2,60}}"
)
_HAN_DIGITS = str.maketrans("零〇一二三四五六七八九", "00123456789")
_HAN_NUMBER = re.compile(r"[零〇一二三四五六七八九]{3,40}")


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
    if secret := hidden(raw):
        yield _decoded("hidden", secret, (0, len(raw)))
    for name, decode in _DECODERS:
        for text, span in decode(raw):
            found = _decoded(name, text, span)
            yield found
            yield from _undone(found)
    for name, turned in (("reversed", plain.text[::-1]), ("rot13", codecs.encode(plain.text, "rot13"))):
        # Turned around, ordinary text is noise; only noise with telling words in it is read.
        if telling(turned.lower()):
            yield View(name, turned, whole=(0, len(raw)), is_prose=True)


def _undone(view: View) -> Iterator[View]:
    """Yield a view with line breaks, spacing, leetspeak, spelled numbers, and typing mistakes undone."""
    if _BLANK.search(view.text):
        yield (view := _edited(view, "whitespace", _BLANK, lambda _: " "))
    low = view.low
    if _SPACED.search(low):
        yield _edited(view, "spacing", _SPACED, _joined)
    if _SPLIT_WORD.search(low):
        yield _edited(view, "split words", _SPLIT_WORD, lambda _: "", is_prose=True)
    if any(_is_leet(word) for word in _MIXED.findall(low)):
        leet = _edited(view, "leetspeak", _MIXED, lambda word: _unleet(word, "i"))
        yield leet
        if "1" in low or "!" in low or "|" in low:
            yield _edited(view, "leetspeak", _MIXED, lambda word: _unleet(word, "l"))
    if _SPELLED.search(low):
        yield _edited(view, "spelled", _SPELLED, _as_digits)
    if _HAN_NUMBER.search(low):
        yield _edited(view, "spelled", _HAN_NUMBER, lambda text: text.translate(_HAN_DIGITS))
    if (right := corrected(low)) != low:
        yield View("spelling", right, whole=view.whole or view.span(0, len(low)), is_prose=view.is_prose)


def _edited(
    view: View, name: str, pattern: re.Pattern[str], edit: Callable[[str], str], is_prose: bool = False
) -> View:
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
    return View(name, "".join(parts), tuple(origins), view.whole, is_prose or view.is_prose)


def _joined(run: str) -> str:
    words = [_SEPARATOR.sub("", word) for word in _WIDE_GAP.split(run)]
    joined = " ".join(segmented(word.lower()) if word.isalpha() and len(word) >= 8 else word for word in words)
    # In a run of digits a wide gap is only a wide gap.
    return joined.replace(" ", "") if joined.replace(" ", "").isdigit() else joined


def _is_leet(word: str) -> bool:
    return (
        word != (plain := word.translate(_LEET)) and any(sign.isalpha() for sign in word) and plain != word.strip("!+|")
    )


def _unleet(word: str, one: str) -> str:
    if not _is_leet(word.lower()):
        return word
    return word.replace("1", one).replace("!", one).replace("|", one).translate(_LEET)


def _as_digits(run: str) -> str:
    digits: list[str] = []
    times = 1
    for word in re.findall(r"\w+", run.lower()):
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
            continue
        digits.append(_NUMBER_WORDS.get(word, word) * times)
        times = 1
    return "".join(digits)


def _decoded(name: str, text: str, span: tuple[int, int]) -> View:
    return View(name, folded(text).text, whole=span)


def _entities(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    if _ENTITY.search(raw):
        yield html.unescape(html.unescape(raw)), (0, len(raw))


def _percent(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    if _PERCENT.search(raw):
        yield unquote(unquote(raw)), (0, len(raw))


def _escapes(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    if len(_ESCAPED.findall(raw)) > 2:
        yield _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), raw), (0, len(raw))


def _base64(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for found in list(_BASE64.finditer(raw))[:_MOST_TOKENS]:
        token = found.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = base64.b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            continue
        yield from _readable(plain, found.span())


def _hex(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for found in list(_HEX.finditer(raw))[:_MOST_TOKENS]:
        digits = re.sub(r"0x|\\x|[^0-9A-Fa-f]", "", found.group())
        yield from _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]), found.span())


def _bits(raw: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for found in list(_BINARY.finditer(raw))[:_MOST_TOKENS]:
        bits = found.group().replace(" ", "")
        yield from _readable(int(bits, 2).to_bytes(len(bits) // 8, "big"), found.span())
    for found in list(_DECIMAL.finditer(raw))[:_MOST_TOKENS]:
        points = [int(point) for point in re.findall(r"\d+", found.group())]
        if all(32 <= point < 127 for point in points):
            yield from _readable(bytes(points), found.span())


def _readable(plain: bytes, span: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield decoded bytes that are text: nearly all of it letters, digits and marks."""
    text = plain.decode("utf-8", "ignore")
    if len(text) >= 6 and sum(sign.isprintable() for sign in text) >= 0.9 * max(len(text), len(plain) // 2):
        yield text, span


_DECODERS: tuple[tuple[str, Callable[[str], Iterator[tuple[str, tuple[int, int]]]]], ...] = (
    ("entities", _entities),
    ("percent", _percent),
    ("escapes", _escapes),
    ("base64", _base64),
    ("hex", _hex),
    ("codes", _bits),
)
