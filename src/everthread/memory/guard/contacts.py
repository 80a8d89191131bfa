"""Ways to reach or find a person: phone, mail, street address, and the full date of birth."""

import re
from collections.abc import Iterator

from everthread.memory.guard.folding import View, compiled
from everthread.memory.guard.identifiers import is_other_number
from everthread.memory.guard.verdict import Finding

_MAIL = compiled(r"(?<![a-z0-9.+-])[a-z0-9_.+'-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24}(?![a-z0-9@])")
_SPOKEN_MAIL = compiled(
    r"(?<!\w)[\w.+-]{1,64} ?(?:\[at\]|\(at\)|<at>|\bat\b|\barroba\b|@) ?[\w-]{2,40}(?: ?(?:\[dot\]"
    r"|\(dot\)|<dot>|\bdot\b|\bpunto\b|\.) ?"
    r"[\w-]{2,24}){0,2} ?(?:\[dot\]|\(dot\)|<dot>|\bdot\b|\bpunto\b) ?(?:com|org|net|io|edu|gov|co|de"
    r"|uk|fr|es|it|eu|dev|app|me|info)\b"
)
_PHONE_WORD = compiled(
    r"\b(?:phone|mobile|cell|cellphone|telephone|tel|landline|fax|whatsapp|signal|telegram|sms|imessage"
    r"|call(?:s|ed)?|ring|text"
    r"|dial|reach(?:ed|able)?|contact|number for her|number for him|telefon\w*|handy\w*|rufnummer"
    r"|mobil\w*|movil|telefono|celular"
    r"|portable|cep|gsm|numara\w*|ara\w{0,6}|cellulare|telemovel)\b|携帯|電話|电话|手机|手機|연락처|전화"
)
_INTERNATIONAL = compiled(r"(?<![a-z0-9+])(?:\+|00(?=[1-9]\d))[ (]{0,2}\d(?:[ ()./\-]{0,3}\d){6,16}")
_NANP = compiled(r"(?<![\w.+-])(?:1[ .-])?\(?[2-9]\d\d\)?[ .-]{1,2}[2-9]\d\d[ .-]\d{4}(?![\w-])")
_BRACKETED = compiled(r"(?<!\w)\(0?\d{2,5}\) ?\d{3,4}[ -]?\d{3,5}(?!\w)")
_LOCAL = compiled(r"(?<![a-z0-9.,+€$£-])\(?\d(?:[ ()./\-]{0,2}\d){6,14}(?![a-z0-9]|[,.]\d)")
_DATE_LIKE = compiled(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")

_UNIT = (
    r"(?:minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?|km|kms|kilomet\w+|miles?|mi|m"
    r"|met(?:er|re)s?|feet|ft|blocks?"
    r"|stars?|people|persons?|guests?|kids|children|adults|times?|percent|dollars?|euros?|usd|eur|gb|mb"
    r"|px|am|pm|st|nd|rd|th|or|to|and"
    r"|a|the|of|in|at|on|for|is|x|by|stops?|steps?|pages?|items?|tickets?|bags?|seats?|rooms?|floors?"
    r"|hotels?|lanes?|way|different)"
)
_NAME = rf"(?!{_UNIT}\b)[a-z][\w'.-]{{0,24}}"
_STREET = (
    r"(?:street|avenue|ave|road|rd|lane|ln|boulevard|blvd|crescent|cres|terrace|parkway|pkwy|mews"
    r"|gardens|alley|highway|hwy|turnpike"
    r"|grove|drive|dr|court|ct|circle|cir|close|st)"
)
_LOOSE_STREET = (
    r"(?:way|place|pl|square|sq|trail|trl|row|hill|park|walk|loop|path|bend|ridge|run|view|point"
    r"|heights|rise|green|wharf)"
)
_AT_HOME = (
    r"\b(?:address\w*|lives?|living|reside\w*|home|house|apartment|flat|deliver\w*|ship\w*|mail\w*|post"
    r"|send|moved|moving|meet|pick\w*"
    r"|drop\w*|based|located|stays? at|staying|parents?|office|clinic|workplace|find (?:me|him|her|them))\b"
)
_ADDRESSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (rule, compiled(pattern))
    for rule, pattern in (
        (
            "box",
            r"\b(?:p\.? ?o\.? ?box|post office box|postfach|apartado(?: postal)?|boite postale|casella postale"
            r"|posta kutusu)\W{0,3}\d{1,6}",
        ),
        ("street", rf"(?<![\w.,:/-])\d{{1,6}}[a-z]?(?:[-/]\d{{1,4}})?,? (?:{_NAME} ){{1,4}}{_STREET}\b(?!')"),
        ("street", rf"{_AT_HOME}.{{0,40}}(?<![\w.])\d{{1,6}}[a-z]?,? (?:{_NAME} ){{1,4}}{_LOOSE_STREET}\b"),
        (
            "street",
            rf"(?<![\w.])\d{{1,6}}[a-z]?,? (?:{_NAME} ){{1,4}}{_LOOSE_STREET}\b,? (?:apt|unit|suite|flat|#|[a-z "
            rf".'-]{{2,30}},? "
            r"(?:[a-z]{2} \d{5}|\d{5}|[a-z]{1,2}\d[\da-z]? ?\d[a-z]{2}\b))",
        ),
        ("street", r"\b(?:flat|apt|apartment|unit|suite) \w{1,5}, ?\d{1,5}[a-z]? [a-z]\w+"),
        ("postcode", r"\b\d{1,5}[a-z]?,? [a-z][\w' -]{3,40},.{0,40}?\b[a-z]{1,2}\d[\da-z]? ?\d[a-z]{2}\b"),
        ("postcode", r"\b\d{1,6} [a-z][\w' .-]{3,40},.{0,40}?\b[a-z]{2},? \d{5}(?:-\d{4})?\b"),
        (
            "german",
            r"[a-z]{3,30}(?:stras+e|str\.?|weg|platz|allee|gasse|ring|damm|ufer|steig|chaussee|laan|straat"
            r"|gatan|vej) ?\d{1,4} ?[a-h]?\b(?! ?(?:uhr|euro|km|minuten|prozent))",
        ),
        (
            "german",
            r"\b(?:[a-z]{3,20}(?:er|e)[ -])(?:strase|str\.|weg|platz|allee|gasse|ring|damm|ufer|landstrase) "
            r"\d{1,4} ?[a-h]?\b",
        ),
        (
            "german",
            r"\b(?:am|an der|an den|im|in der|auf der?m?|zum|zur) [a-z][\w -]{2,40} \d{1,4} ?[a-h]?, "
            r"?(?:d-)?\d{5} [a-z]+",
        ),
        (
            "romance",
            r"\b(?:calle|c/|avenida|avda\.?|paseo|plaza|carrer|camino|carretera|rua|travessa|praca|via|viale"
            r"|piazza|corso|vicolo) "
            r"(?:[\w'.-]{1,20} ){0,4}?[\w'.-]{1,20},? ?(?:n\.?[o°º]?\.? ?)?\d{1,4}\b(?! ?(?:horas|noches|dias"
            r"|euros|minutos|km|personas))",
        ),
        (
            "romance",
            r"\b\d{1,4}(?: ?(?:bis|ter))?,? (?:rue|avenue|boulevard|place|chemin|allee|impasse|quai|cours"
            r"|passage|route) (?:d[eu]s? |de la |de l')?[a-z]\w+",
        ),
        (
            "turkish",
            r"\b\w{2,20} (?:mahallesi|mah\.?|sokak|sokagi|sok\.?|sk\.?|caddesi|cad\.?|cd\.?|bulvari"
            r"|blv\.?)[^\n]{0,40}?\b(?:no ?[:.]? ?)?\d{1,4}\b",
        ),
        ("russian", r"(?:ул\.|улица|проспект|пр-т|переулок|бульвар) ?[а-я][а-я -]{2,30},? ?(?:д\.|дом)? ?\d{1,4}"),
        (
            "chinese",
            r"[\u4e00-\u9fff]{1,12}(?:路|街|巷|弄|大道|胡同|里)\d{1,5}(?:弄|巷|号|號)|\d{1,4}(?:号楼|号院|栋|棟"
            r"|单元)\d{0,5}",
        ),
        (
            "japanese",
            r"[\u3040-\u30ff\u4e00-\u9fff](?:\d{1,3}丁目|\d{1,4}番地|\d{1,3}-\d{1,3}-\d{1,4}(?!\d))|〒 ?\d{3}-?\d{4}",
        ),
        ("korean", r"[\uac00-\ud7a3]{1,10}(?:로|길) ?\d{1,4}(?:번길)?(?: ?\d{1,4})?"),
    )
)

_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|z|s|zo|ço|t)?|mrz|apr(?:il)?|ma[iy]|mayis"
    r"|mayo|june?|juni|juin|junio|july?|juli|julio"
    r"|juillet|aug(?:ust)?|agosto|aout|sept?(?:ember|embre|iembre)?|oct(?:ober|obre|ubre)?|okt(?:ober)?"
    r"|nov(?:ember|embre|iembre)?"
    r"|de[cz](?:ember|embre|iembre)?|enero|febrero|abril|fevrier|avril|gennaio|febbraio|aprile|maggio"
    r"|giugno|luglio|settembre|ottobre"
    r"|dicembre|ocak|subat|nisan|haziran|temmuz|agustos|eylul|ekim|kasim|aralik|janeiro|fevereiro|marco"
    r"|maio|junho|julho|setembro"
    r"|outubro|dezembro|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)"
)
_YEAR = r"(?:19\d\d|20[0-2]\d)"
_DATE = (
    rf"(?:{_YEAR}[-/. ]{{1,2}}\d{{1,2}}[-/. ]{{1,2}}\d{{1,2}}|\d{{1,2}}[-/. ]{{1,2}}\d{{1,2}}[-/. "
    rf"]{{1,2}}(?:{_YEAR}|\d\d\b)"
    rf"|\d{{1,2}}(?:st|nd|rd|th|er|\.|o|º)?[ -]{{0,2}}(?:of |de |di )?{_MONTH}\.?[ ,/-]{{1,3}}(?:de |del "
    rf"|of )?(?:{_YEAR}|'\d\d\b)"
    rf"|{_MONTH}\.?[ -](?:the )?\d{{1,2}}(?:st|nd|rd|th)?[ ,-]{{1,3}}(?:of )?(?:{_YEAR}|'\d\d\b)"
    rf"|{_YEAR}[ ,.-]{{1,2}}{_MONTH}\.?[ -]\d{{1,2}}\b"
    rf"|{_YEAR} ?[年년] ?\d{{1,2}} ?[月월] ?\d{{1,2}} ?[日号일]|(?<!\d){_YEAR}[01]\d[0-3]\d(?!\d))"
)
_BIRTH_WORD = (
    r"(?:\b(?:born|birth(?:day|date)?s?|d\.?o\.?b\.?|b-?day|geboren|geb\.|geburts\w*|geburtstag"
    r"|naci(?:o|da?|do|miento)|nacido|cumple\w*|fecha de nac\w*"
    r"|ne le|nee le|naissance|anniversaire|nat[oa]|nascita|nascid[oa]|nascimento|compleanno|dogum\w*"
    r"|dogdu|geboortedatum)\b"
    r"|生年月日|出生|誕生|生日|生まれ|태어|생년|родил\w*|рожден\w*)"
)
_BORN = compiled(
    rf"{_BIRTH_WORD}[^\n]{{0,40}}?{_DATE}|{_DATE}[^\n.]{{0,20}}?(?:に|is (?:my|her|his|their|the) )?{_BIRTH_WORD}"
)
_PARTY = compiled(
    r"birthday (?:trip|party|dinner|weekend|celebration|getaway|cruise|lunch|flight|present|gift|concert)"
)


def contacts(view: View) -> Iterator[Finding]:
    """Yield mail addresses, phone numbers, street addresses and full birth dates."""
    low = view.low
    if "@" in low or "at" in low:
        yield from _mails(view, low)
    if not any(sign.isdigit() for sign in low):
        return
    if (born := _BORN.search(low)) and not _PARTY.search(low):
        yield Finding("dob", "context", view.span(*born.span()))
    for rule, pattern in _ADDRESSES:
        if place := pattern.search(low):
            yield Finding("address", rule, view.span(*place.span()))
            break
    yield from _phones(view, low)


def _mails(view: View, low: str) -> Iterator[Finding]:
    for found in _MAIL.finditer(low):
        # What a repository is cloned from is nobody's mailbox.
        if not found.group().startswith("git@"):
            yield Finding("email", "shape", view.span(*found.span()))
    if found_spoken := _SPOKEN_MAIL.search(low):
        yield Finding("email", "spoken", view.span(*found_spoken.span()))


def _phones(view: View, low: str) -> Iterator[Finding]:
    for found in _INTERNATIONAL.finditer(low):
        if is_possible(found.group()):
            yield Finding("phone", "international", view.span(*found.span()))
    for pattern in (_NANP, _BRACKETED):
        for found in pattern.finditer(low):
            if not is_other_number(low, found.start()):
                yield Finding("phone", "shape", view.span(*found.span()))
    for found in _LOCAL.finditer(low):
        near = low[max(0, found.start() - 40) : found.end() + 20]
        if (
            _PHONE_WORD.search(near)
            and not _DATE_LIKE.search(found.group())
            and not is_other_number(low, found.start())
        ):
            yield Finding("phone", "context", view.span(*found.span()))


def is_possible(text: str) -> bool:
    """Tell whether a number has a country code and a length that exist there; it need not be assigned."""
    import phonenumbers

    digits = re.sub(r"[^\d+]", "", text)
    try:
        number = phonenumbers.parse("+" + digits.lstrip("+").removeprefix("00"), None)
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_possible_number(number))
