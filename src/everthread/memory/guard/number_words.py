"""Numbers in words, as people dictate telephones, cards and codes, read as digits.

Words of several languages share one table: whoever dictates stays in one language, and no word means two numbers in it.
"""

import re

_UNITS = """\
zero oh null cero sifir zwo-null nolla
one eins ein uno un um uma bir
two zwei zwo dos deux dois duas iki due
three drei tres trois uc tre
four vier cuatro quatre quatro dort quattro
five funf cinco cinq bes cinque
six sechs seis meia alti sei
seven sieben siete sept sete yedi sette
eight acht ocho huit oito sekiz otto
nine neun nueve neuf dokuz nove niner"""
_TEENS = """\
ten zehn diez dix dez
eleven elf once onze
twelve zwolf doce douze doze
thirteen dreizehn trece treize treze
fourteen vierzehn catorce quatorze
fifteen funfzehn quince quinze
sixteen sechzehn dieciseis seize dezesseis dezasseis
seventeen siebzehn diecisiete dix-sept dezessete dezassete
eighteen achtzehn dieciocho dix-huit dezoito
nineteen neunzehn diecinueve dix-neuf dezenove dezanove"""
_TENS = """\
twenty zwanzig veinte vingt vingts vinte yirmi
thirty dreisig dreissig treinta trente trinta otuz
forty vierzig cuarenta quarante quarenta kirk
fifty funfzig cincuenta cinquante cinquenta elli
sixty sechzig sesenta soixante sessenta altmis
seventy siebzig setenta septante yetmis
eighty achtzig ochenta huitante oitenta seksen
ninety neunzig noventa nonante doksan"""
_HUNDREDS = """\
cien ciento cento
doscientos duzentos
trescientos trezentos
cuatrocientos quatrocentos
quinientos quinhentos
seiscientos seiscentos
setecientos setecentos
ochocientos oitocentos
novecientos novecentos"""


def _values(table: str, first: int, step: int) -> dict[str, int]:
    return {word: first + step * row for row, line in enumerate(table.splitlines()) for word in line.split()}


_UNIT = _values(_UNITS, 0, 1)
_TEN = _values(_TENS, 20, 10)
_WORDS = {
    **_UNIT,
    **_values(_TEENS, 10, 1),
    **_TEN,
    **_values(_HUNDREDS, 100, 100),
    # Written in one word: einundzwanzig, veintiuno.
    **{f"{unit}und{ten}": _UNIT[unit] + _TEN[ten] for unit in _UNIT for ten in _TEN if ten.endswith("ig")},
    **{f"veinti{unit}": 20 + value for unit, value in _UNIT.items()},
}
_HUNDRED = frozenset({"yuz", "hundred"})
_NUMBERS = {**_WORDS, **dict.fromkeys(_HUNDRED, 100), "on": 10}
_TIMES = {"double": 2, "triple": 3}
_AFTER_SIXTY = re.compile("dix|onze|douze|treize|quatorze|quinze|seize|dix-sept|dix-huit|dix-neuf")
"""French counts on to nineteen after sixty and eighty: soixante-douze."""
_TURKISH_UNIT = "bir|iki|uc|dort|bes|alti|yedi|sekiz|dokuz"
_AFTER_TEN = re.compile(rf"{_TURKISH_UNIT}|sept|huit|neuf")
"""Turkish and French count on after ten: `on bir`, `dix-sept` in two words."""
_WORD = "|".join(sorted((*_WORDS, *_HUNDRED, *_TIMES), key=len, reverse=True))
# The Turkish ten is an English preposition but ahead of a Turkish unit.
_ANY_NUMBER = rf"(?:{_WORD}|on(?= (?:{_TURKISH_UNIT})\b)|\d{{1,4}})"
SPELLED = re.compile(rf"\b{_ANY_NUMBER}(?:[ ,-]{{1,3}}(?:(?:y|e|et|und|and)[ -])?{_ANY_NUMBER}\b){{1,60}}")
_PART = re.compile(rf"([ ,-]{{0,3}})(?:(?:y|e|et|und|and)[ -])?({_ANY_NUMBER})(?![a-z\d])")
_SINGLE_DIGITS = re.compile(r"(?<!\d)\d(?:[ ,-]{1,3}\d(?!\d)){2,60}")

_HAN_DIGIT = {sign: str(digit) for digit, signs in enumerate(("零〇", "一幺", *"二三四五六七八九")) for sign in signs}
_HAN_RUN = f"[{''.join(_HAN_DIGIT)}]"
HAN = re.compile(rf"{_HAN_RUN}{{2,60}}(?:[, -]{{1,2}}{_HAN_RUN}{{2,60}}){{1,8}}|{_HAN_RUN}{{3,60}}")

_KANA_DIGITS = "ゼロ|レイ|マル ワン|イチ ニイ|ニー|ニ サン ヨン|シ ゴー|ゴ ロク ナナ|シチ ハチ キュウ|キュー|ク"
_KANA_DIGIT = {kana: str(digit) for digit, row in enumerate(_KANA_DIGITS.split()) for kana in row.split("|")}
_TO_KATAKANA = {point: point + 0x60 for point in range(0x3041, 0x3097)}
_KATAKANA = "|".join(sorted(_KANA_DIGIT, key=len, reverse=True))
_DIGIT_IN_KANA = re.compile(_KATAKANA)
_HIRAGANA = _KATAKANA.translate({point + 0x60: point for point in _TO_KATAKANA})
KANA = re.compile(
    rf"(?:{_KATAKANA})(?:[・, -]?(?:{_KATAKANA})){{3,40}}|(?:{_HIRAGANA})(?:[・, -]{{1,2}}(?:{_HIRAGANA})){{2,40}}"
)


def digits_of(run: str) -> str:
    """Return what a run of number words says in digits; a run too short to be a code stays as it is."""
    items: list[int | str] = []
    times, words = 1, 0
    for gap, word in _PART.findall(run.lower()):
        if word in _TIMES:
            times = _TIMES[word]
            continue
        words += not word.isdigit()
        if times == 1 and items and "," not in gap and (joined := _joined(items[-1], word)):
            items[-1] = joined
        else:
            items += [_NUMBERS.get(word, word)] * times
        times = 1
    digits = "".join(map(str, items))
    if not words:
        return _SINGLE_DIGITS.sub(lambda match: re.sub(r"\D", "", match.group()), run)
    return digits if words > 1 and (len(items) > 2 or len(digits) > 3) else run


def digits_of_han(run: str) -> str:
    """Return a run of Chinese digits as digits."""
    return "".join(_HAN_DIGIT.get(sign, "") for sign in run)


def digits_of_kana(run: str) -> str:
    """Return a run of Japanese digits in kana as digits."""
    return "".join(_KANA_DIGIT[kana] for kana in _DIGIT_IN_KANA.findall(run.translate(_TO_KATAKANA)))


def _joined(before: int | str, word: str) -> int:
    """Return the number that a word makes with the one ahead of it, as in forty-five; 0 if they are two numbers."""
    if isinstance(before, str) or word.isdigit():
        return 0
    if word in _HUNDRED:
        return before * 100 if 2 <= before <= 9 else 0
    value = _NUMBERS[word]
    if before == 4 and word.startswith("vingt"):
        return 80
    if before in (60, 80) and _AFTER_SIXTY.fullmatch(word):
        return before + value
    if before == 10:
        return 10 + value if _AFTER_TEN.fullmatch(word) else 0
    room = 100 if before >= 100 and before % 100 == 0 else 10 if before >= 20 and before % 10 == 0 else 0
    return before + value if 0 < value < room else 0
