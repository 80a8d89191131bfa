"""Numbers that name a person or an account, told from other numbers by check digits and by the words around.

Check digits and structures are those of python-stdnum; a number that fails them is only a number.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

from everthread.memory.guard.folding import View, compiled
from everthread.memory.guard.verdict import Finding

_BEFORE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+_")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_GROUPS = compiled(r"\d+")
_JOINT = compiled(r"[ .\-_/·:]{1,3}\Z")
_CARD_WORDS = compiled(
    r"\b(?:card|visa|mastercard|amex|american express|discover|maestro|credit|debit|cc|half|digits|kreditkarte|karte"
    r"|tarjeta|carte|carta|kart\w*)\b|カード|卡"
)
_OTHER_NUMBER = compiled(
    r"\b(?:order|tracking|serial|model|part|isbn|imei|uuid|guid|sku|invoice|article|item|parcel|shipment|product"
    r"|barcode|ean|upc|build|version|checksum|hash|commit|case|incident|sensor|meter|lot|batch|catalog(?:ue)?|template"
    r"|error|job|run|log|bug|asset|patent|doi|arxiv)\b"
)
_IBAN = compiled(r"(?<![a-z0-9])[a-z]{2}[ .-]?\d{2}(?:[ .-]?[a-z0-9]){11,30}")
_SSN = compiled(r"(?<![\w-])(\d{3})([-. /_])(\d{2})[-. /_](\d{4})(?![\w-])")
_SSN_WORD = compiled(
    r"\b(?:ssn|social(?: security)?(?: (?:number|no|num))?|soc\.? ?sec\w*|tin|tax ?(?:payer )?id"
    r"|w-?[249])\b|\bs\.s\.n\b"
)
_NINE = compiled(r"(?<!\d)(\d{3})[-. /_]{0,3}(\d{2})[-. /_]{0,3}(\d{4})(?!\d)")
_MRZ = compiled(r"p[<a-z][a-z]{3}[a-z]{2,30}<<[a-z<]{2,40}|(?<![a-z0-9<])[a-z0-9<]{9}\d[a-z<]{3}\d{7}[mfx<]\d{7}")
_NINO = compiled(r"(?<!\w)[abceghj-prstw-z][abceghj-nprstw-z] ?\d{2} ?\d{2} ?\d{2} ?[abcd](?!\w)")
_ID_WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (compiled(words), modules)
    for words, modules in (
        (r"\b(?:tckn|tc|t\.c\.|kimlik)\b", "tr.tckimlik"),
        (r"\b(?:steuer\w*|idnr)\b", "de.idnr"),
        (r"\b(?:aadhaa?r|uidai|pan)\b", "in_.aadhaar in_.pan"),
        (r"\b(?:sin|social insurance)\b", "ca.sin"),
        (r"\bpesel\b", "pl.pesel"),
        (r"\b(?:cpf|rg)\b", "br.cpf"),
        (r"\bmy ?number\b|マイナンバー|個人番号", "jp.in_"),
        (r"\b(?:nir|securite sociale|insee)\b", "fr.nir"),
        (r"\b(?:bsn|burgerservice\w*)\b", "nl.bsn"),
        (r"\b(?:personnummer|person number)\b", "se.personnummer no.fodselsnummer"),
        (r"\bfodselsnummer\b", "no.fodselsnummer"),
        (r"\bcpr\b", "dk.cpr"),
        (r"\b(?:rijksregister\w*|registre national)\b", "be.nn"),
        (r"\bcnp\b", "ro.cnp"),
        (r"\begn\b", "bg.egn"),
        (r"\b(?:teudat|zehut)\b", "il.idnr"),
        (r"\b(?:tfn|tax file)\b", "au.tfn"),
        (r"\brodne\b", "cz.rc"),
        (r"\b(?:rut|run)\b", "cl.rut"),
        (r"\bnhs\b", "gb.nhs"),
        (r"\butr\b", "gb.utr"),
        (r"\b(?:dni|nie|nif)\b", "es.dni es.nie es.nif pt.nif"),
        (r"\bcodice\b", "it.codicefiscale"),
        (r"身份证|身份證|居民", "cn.ric"),
        (r"주민등록", "kr.rrn"),
        (r"\b(?:itin|tax(?:payer)? (?:id|identification))\b", "us.itin de.idnr es.nif pt.nif"),
        (r"\b(?:ahv|avs)\b", "ch.ssn"),
        (r"\b(?:hetu|henkilotunnus)\b", "fi.hetu"),
        (r"\boib\b", "hr.oib"),
        (r"\b(?:cuit|cuil)\b", "ar.cuit"),
        (
            r"\b(?:national|identity|personal|citizen|resident|government|civil)[ -]"
            r"(?:id|identity|identification|insurance|card|number|no|code)\b|\bid (?:number|no|card|nr)\b|\bidentita?\b"
            r"|\bidentite\b|\b(?:numero de |)identidad\b|\bpersonalausweis\w*",
            "tr.tckimlik pl.pesel za.idnr il.idnr ee.ik lt.asmens ro.cnp bg.egn be.nn cn.ric es.dni es.nie "
            "it.codicefiscale"
            " in_.aadhaar nl.bsn",
        ),
    )
)
"""Words for one kind of number, and the checks that a number beside them has to pass."""

_LICENCE = compiled(
    r"\b(?:driv(?:er'?s?|ing) licen[cs]e|licence number|license number|fuhrerschein\w*|permiso de "
    r"conducir|permis de conduire"
    r"|ehliyet)\b[^.\n]{0,25}?\b(?=[a-z0-9-]*\d{4})[a-z0-9-]{6,18}\b"
)


def identifiers(view: View) -> Iterator[Finding]:
    """Yield cards, bank accounts by IBAN, social security and national numbers, and passport scans."""
    low = view.low
    if any(sign.isdigit() for sign in low):
        yield from _cards(view, low)
        yield from _ibans(view, low)
        yield from _ssns(view, low)
        yield from _nationals(view, low)
    for found in _MRZ.finditer(low.replace(" ", "<") if "<<" in low else low):
        yield Finding("passport", "machine-readable zone", view.span(*found.span()))


def is_other_number(low: str, start: int) -> bool:
    """Tell whether the words just before a number say that it is a part, an order, a version and so on."""
    return _OTHER_NUMBER.search(low, max(0, start - 32), start) is not None


def _cards(view: View, low: str) -> Iterator[Finding]:
    groups = [(found.start(), found.end()) for found in _GROUPS.finditer(low)]
    for first, (start, _) in enumerate(groups):
        if start and (low[start - 1] in _BEFORE):
            continue
        digits = ""
        for place in range(first, min(first + 19, len(groups))):
            begin, end = groups[place]
            if place > first and not _JOINT.match(low[groups[place - 1][1] : begin]):
                break
            digits += low[begin:end]
            if len(digits) > 19:
                break
            if len(digits) >= 12 and low[end : end + 1] not in _LETTERS and _is_card(digits):
                told = _CARD_WORDS.search(low, max(0, start - 40), min(len(low), end + 30))
                if told or not is_other_number(low, start):
                    yield Finding("card", "luhn", view.span(start, end))
                    return
    yield from _split_card(view, low, groups)


def _split_card(view: View, low: str, groups: list[tuple[int, int]]) -> Iterator[Finding]:
    """Find a card number told in pieces, with words between them."""
    if not 2 <= len(groups) <= 8 or not _CARD_WORDS.search(low):
        return
    for first in range(len(groups) - 1):
        digits = ""
        for begin, end in groups[first:]:
            digits += low[begin:end]
            if 14 <= len(digits) <= 16 and _is_card(digits):
                yield Finding("card", "luhn, in pieces", view.span(groups[first][0], end))
                return


_ISSUERS = compiled(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-59]|[689]\d)\d{11}|62\d{14,17}|220[0-4]\d{12}"
    r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}|9792\d{12}|(?:508|60|8[12])\d{13,14}"
)


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and len(set(digits)) > 1 and bool(_check("luhn")(digits))


def _ibans(view: View, low: str) -> Iterator[Finding]:
    for found in _IBAN.finditer(low):
        text = found.group()
        ends = [place for place in range(15, len(text) + 1) if place == len(text) or text[place] in " .-"]
        if any(_check("iban")(text[:end], check_country=False) for end in ends):
            yield Finding("iban", "check digits", view.span(*found.span()))


def _ssns(view: View, low: str) -> Iterator[Finding]:
    told = _SSN_WORD.search(low)
    for found in _NINE.finditer(low) if told else ():
        if found[1] not in ("000", "666") and found[2] != "00" and found[3] != "0000":
            yield Finding("ssn", "context", view.span(*found.span()))
            return
    for found in _SSN.finditer(low):
        area = found[1]
        issued = area not in ("000", "666") and area < "900" and found[3] != "00" and found[4] != "0000"
        if issued and found[2] in "-. " and not is_other_number(low, found.start()):
            yield Finding("ssn", "shape", view.span(*found.span()))
            return


_SHAPED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("cn.ric", compiled(r"(?<!\w)\d{17}[\dx](?!\w)")),
    ("it.codicefiscale", compiled(r"(?<!\w)[a-z]{6}\d{2}[a-z]\d{2}[a-z]\d{3}[a-z](?!\w)")),
    ("mx.curp", compiled(r"(?<!\w)[a-z]{4}\d{6}[hm][a-z]{5}[a-z0-9]\d(?!\w)")),
    ("es.nie", compiled(r"(?<!\w)[xyz][ .-]?\d{7}[ .-]?[a-z](?!\w)")),
    ("es.dni", compiled(r"(?<!\w)\d{2}\.?\d{3}\.?\d{3}[ .-]?[a-z](?!\w)")),
    ("kr.rrn", compiled(r"(?<!\w)\d{6}-\d{7}(?!\w)")),
    ("ch.ssn", compiled(r"(?<!\w)756[. ]\d{4}[. ]\d{4}[. ]\d{2}(?!\w)")),
    ("br.cpf", compiled(r"(?<!\w)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)")),
    ("fi.hetu", compiled(r"(?<!\w)\d{6}[-+a]\d{3}[a-z0-9](?!\w)")),
)
"""Shapes that are rare enough to need no word beside them once the check digits hold."""


def _nationals(view: View, low: str) -> Iterator[Finding]:
    for module, shape in _SHAPED:
        for found in shape.finditer(low):
            if _check(module)(found.group()) and not is_other_number(low, found.start()):
                yield Finding("national_id", module, view.span(*found.span()))
                return
    told = [module for words, modules in _ID_WORDS if words.search(low) for module in modules.split()]
    for found in _NINO.finditer(low):
        if not is_other_number(low, found.start()):
            yield Finding("national_id", "gb.nino", view.span(*found.span()))
            return
    for found in _LICENCE.finditer(low):
        yield Finding("national_id", "licence", view.span(*found.span()))
        return
    for start, end in _candidates(low) if told else ():
        for module in told:
            if _check(module)(low[start:end].upper()):
                yield Finding("national_id", module, view.span(start, end))
                return


def _candidates(low: str) -> Iterator[tuple[int, int]]:
    """Yield the runs of 8 to 18 letters and digits that hold digits, also when spaces part them."""
    groups = [found.span() for found in re.finditer(r"[a-z0-9]*\d[a-z0-9]*(?:-[a-z](?![a-z]))?", low)][:40]
    for first, (start, _) in enumerate(groups):
        for place in range(first, min(first + 6, len(groups))):
            end = groups[place][1]
            if place > first and not _JOINT.match(low[groups[place - 1][1] : groups[place][0]]):
                break
            if 8 <= sum(sign.isalnum() for sign in low[start:end]) <= 18:
                yield start, end


def load() -> None:
    """Load every check and its tables, so that no later number pays for it."""
    for text in ("DE89370400440532013000", "GB82WEST12345698765432"):
        _check("iban")(text, check_country=False)
    _check("cn.ric")("11010519491231002X")
    told = {module for _, modules in _ID_WORDS for module in modules.split()}
    for module in ("luhn", "iban", *(name for name, _ in _SHAPED), *sorted(told)):
        _check(module)("0" * 10)


@cache
def _check(module: str) -> Callable[..., bool]:
    """Return the check of one kind of number; the module is loaded when it is first needed."""
    found: Callable[..., bool] = import_module(f"stdnum.{module}").is_valid
    return found
