"""The sentences of a message that are the user's own: not quoted, not pasted, not handed over to be worked on.

What is somebody else's is blanked out before anything is read, so a rule that stands in a page, a mail or a text to be
translated is no rule of the user. In doubt a text is not theirs: a statement that was missed can be said again. Only in
the middle of a very long message, which nobody weighs, what no rule doubts passes.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from everthread.memory.rules import BUILT_IN
from everthread.memory.text.languages import UNSPACED, is_foreign
from everthread.memory.text.sentences import sentences
from everthread.memory.text.voice import Part, are_own

_MEMORY = re.compile(
    r"<(memories|user_profile|memory_policy|recalled|summary)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,300})?>")
_FENCE = re.compile(
    # A script from its first line on, too, up to the next blank one.
    r"^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)|```.*?(?:```|\Z)|^#!/.*?(?:^[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LABEL_OF_BLOCK = r"[\[【][^\[\]【】\n]{0,29}[^\W\d_][^\[\]【】\n]{0,29}[\]】]"
_FRAMED = re.compile(
    # Between two like lines, or two labels such as `[begin]` and `[end]`, behind what the user says of it. A line below
    # a heading, or with a blank line behind it, only divides a message, and so does a label that something follows.
    r"(?<=[.:?!…。：？！])[\"'”»)]?\s{0,20}\n[ \t]*(([-=*~#_+.|>%])\2{2,79})[ \t]*\n(?=[^\n]*\S).*?\n[ \t]*\1[ \t]*$"
    rf"|(?<=\S)(?:\s{{1,20}}(?=\[)|\s{{0,20}}(?=【)){_LABEL_OF_BLOCK}(?:\s|(?<=】))"
    rf"[^\[\]【】]{{20,20000}}?[.!?…。！？][\"'”»)]?\s{{0,20}}(?:{_LABEL_OF_BLOCK}(?=\s*\Z)|(?=[\[【]/){_LABEL_OF_BLOCK})",
    re.DOTALL | re.MULTILINE,
)
_INLINE_CODE = re.compile(r"`[^`\n]{1,2000}`")
_QUOTED = (
    re.compile(r'(?<![\w"])"(?=[^\s"])[^"]{0,20000}"|(?<![\w"])"(?=\w)[^"\n]*$', re.MULTILINE),
    re.compile(r"„[^“„”]{0,20000}[“”]|[“„][^“„”]{0,20000}”|[“„][^“„”\n]*$", re.MULTILINE),
    re.compile(r"«[^«»]{0,20000}»|»[^«»]{0,20000}«|[«»][^«»\n]*$|‚[^‚‘’]{0,20000}[‘’]", re.MULTILINE),
    re.compile(r"[「『][^「『」』]{0,20000}[」』]|‹[^‹›\n]{0,2000}›"),
    # An apostrophe opens a quotation only ahead of a word, and never in `'cause` and the like.
    re.compile(
        r"(?<![\w'’])['‘](?!(?:cause|em|til|till|tis|twas|bout|n|s|re|ve|ll|d|m|t)\b)(?=\w)"
        r"[^'’‘\n]{0,2000}(?:\w[’'](?=\w)[^'’‘\n]{0,2000}){0,40}['’](?!\w)",
        re.IGNORECASE,
    ),
)
_LABEL = re.compile(
    r"^[ \t]*(?:\[[^\]\n]{1,30}\][ \t]*)?([A-Z@][\w .'-]{0,30}?)(?:[ \t]*\([^()\n]{1,30}\))?:[ \t]+\S", re.MULTILINE
)
_FEWEST_LINES = 3
"""Lines with a speaker's name ahead of them that make a pasted conversation, one of the names at least twice."""

_CODE_INDENT = 4
"""Spaces ahead of a line of code in Markdown."""

_DETACHED = re.compile(r" (?=n't\b|['’](?:m|s|d|ve|re|ll)\b|[,.;:!?](?:\s|$))", re.IGNORECASE)
_UNMARKED = re.compile(r"\b(?:(?:do|does|did|is|are|was|would|could|should|ca|wo)nt|[Ii]m|[Ii]ve)\b")
"""`dont` and `im`, as people type them; in German `im` is another word."""

_FIRST_SENTENCE = re.compile(r"\s{0,99}+[^\n]{1,400}?(?:[.!?…:](?=\s)|\n)")
_SALUTATION = re.compile(
    r"(?:(?<=[.!?…:])|(?<=\n))\s{1,9}(?:dear|sehr geehrte[rs]?|liebe[rs]?|ch[eè]re?s?|estimad[oa]s?|querid[oa]s?"
    r"|gentile|car[oa]|beste)\s[\w .'’-]{1,60},(?=\s)",
    re.IGNORECASE,
)
_SIGNED = r",[^\S\n]{0,9}\n?\s{0,9}(?-i:[A-Z])[\w.'’-]{0,40}(?:\s(?-i:[A-Z])[\w.'’-]{0,40}){0,3}[.!]?(?=\s|$)"
_CLOSING = re.compile(
    r"(?:(?<=[.!?…])|(?<=\n))\s{1,9}(?:"
    # `Love, Ann` closes a letter, `Love it.` does not.
    rf"(?:(?:all\s(?:the|my)\s)?(?:best|love)|cheers|yours?(?:\s\w{{1,20}}){{0,3}}){_SIGNED}|"
    r"(?:(?:with\s)?(?:(?:my|all|very|kind|kindest|warm|warmest|best|many)\s){0,3}(?:regards|wishes|greetings)"
    r"|yours\s\w{1,20}ly|sincerely(?:\syours)?|respectfully|cordially|mit\s\w{1,20}\s?gr(?:ü|ue)(?:ß|ss)en"
    r"|(?:viele|liebe|beste|herzliche|freundliche)\sgr(?:ü|ue)(?:ß|ss)e|cordialement|bien\s(?:à|a)\svous|amicalement"
    r"|(?:un\s)?(?:cordial\s)?saludos?|atentamente|(?:cordiali|distinti)\ssaluti|atenciosamente"
    rf"|(?:met\s)?vriendelijke\sgroet(?:en)?)(?:{_SIGNED}|,?[.!]?\s{{0,9}}$|,?\n))",
    re.IGNORECASE,
)
_HELLO = re.compile(r"\W{0,9}(?:hi|hello|hey|dear|good\s\w{1,20}|hallo|guten|bonjour|hola|ciao|olá)\b", re.IGNORECASE)

_SAID = re.compile(r"[^\W\d_]")
_BETWEEN_BLANKS = re.compile(r"(?<=_) (?=_)")

_LONGEST_HEAD = 400
"""Characters of a line or sentence that tell what it is."""

_GREETING = 40
"""Characters ahead of a question up to which nothing stands there that it could be about."""

_LONGEST_QUOTED = 20
"""Characters of a quotation in a message that counts as typed."""

_LONGEST_TYPED = 400
"""Characters of a message that people type; a longer one may hold a paste that nothing shows."""

_GAP = "\n"
"""Stands for what is not the user's, and ends a sentence."""

_BLANK = "_"
"""Stands for a quotation inside of a sentence of the user's."""

_SHORTEST_QUOTATION = 3 * _BLANK
"""A letter between two marks; `my_name` is none."""

_LONG_QUOTATION = 25 * _BLANK
_LONG_QUOTATION_UNSPACED = 8 * _BLANK
_OF_THE_ASSISTANT = re.compile(r"\b(?:you|your|yours)\b[^.!?\n\"“”]{0,60}$", re.IGNORECASE)
_YES = re.compile(
    r"\W{1,4}(?:(?:and|then)\s)?(?:i\s(?:say|think)\s)?(?:yes|yep|yeah|sure|agreed|go\sfor\sit|please\sdo|do\s(?:it|that)|exactly|"
    r"correct|that's\sright|right|ok|okay)\b(?!\s(?:but|not))",
    re.IGNORECASE,
)
_YES_AHEAD = re.compile(r"^\W{0,4}(?:yes|yep|yeah|sure|agreed|ok|okay)\b[^.!?\n]{0,80}$", re.IGNORECASE)
_ASKS_FOR_A_YES = re.compile(
    r"[,，、.] ?¿?(?:o\.?k\.?|okay|got it|understood|is that clear|clear|agreed|deal|klar|alles klar|verstanden"
    r"|vale|de acuerdo|estamos|entendid[oa]|d'accord|compris|entendu|combinado|tá(?: bom)?|certo|tamam mı|olur mu"
    r"|anlaştık mı|anlaşıldı mı|いいですね|いいね|わかった|好吗|好嗎|好吧|可以吗|可以嗎|行吗|明白吗|知道吗) ?[?？]$",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(
    r"\W{0,3}(?:(?:and|but|so) ){0,2}(?:do|does|did|will|would|can|could|is|are|was|were|am|have|has|should|shall"
    r"|may|which|what|where|when|who|whose|how|why|(?:i|we) should)\b(?! (?:not|n't))",
    re.IGNORECASE,
)
_NEAR = 100
"""Characters beside a quotation that tell whose words it repeats, and whether the user takes them up."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a user."""

    quote: str
    """Word for word."""
    text: str
    """In one line, with plain apostrophes and no space ahead of punctuation."""
    bare: str
    """`text` with quoted spans blanked: the same length, so places agree."""
    own_words: str
    """`quote` with quoted spans blanked."""

    @property
    def is_question(self) -> bool:
        """Tell whether it ends with a question mark."""
        return self.text.endswith(("?", "？"))

    @property
    def is_settled(self) -> bool:
        """Tell whether it only asks for a yes to what it says: `Nobody moves it, got it?`"""
        return _ASKS_FOR_A_YES.search(self.text) is not None and _QUESTION_WORD.match(self.text) is None

    @property
    def told(self) -> str:
        """`bare` without the "got it?" of a sentence that is settled."""
        return _ASKS_FOR_A_YES.sub("", self.bare) if self.is_settled else self.bare

    @property
    def has_quotation(self) -> bool:
        """Tell whether it quotes more than a word or two, so that it is not all the user's."""
        return (_LONG_QUOTATION_UNSPACED if UNSPACED.search(self.quote) else _LONG_QUOTATION) in self.bare


def own_sentences(text: str, *, at_semicolons: bool = False, is_users: bool = True) -> list[Sentence]:
    """Split a message into the sentences that are the user's own.

    Left out are memory blocks, code, marked-up text, quoted and logged lines, forwarded mail, pasted conversations, and
    what is given to be translated, proofread, forwarded and the like; quotations inside a sentence are blanked. Without
    that, a user who pastes a page, or a client that sends a prompt back, would have its text learnt as their own.

    Args:
        text: the message.
        at_semicolons: cut there as well.
        is_users: False for a message of the assistant, of which only what is marked as somebody else's is left out.
    """
    masked, place = _masked(text) if is_users else without_marked(text), 0
    found: list[Sentence] = []
    for part in sentences(masked, at_semicolons=at_semicolons):
        place = masked.index(part, place)
        if _SAID.search(part):
            found.append(_read(text[place : place + len(part)], part))
        place += len(part)
    return found


def is_typed(text: str) -> bool:
    """Tell whether a message is short and nothing in it looks pasted or handed over; it may quote a single word."""
    if len(text) > _LONGEST_TYPED or "\n\n" in text:
        return False
    masked = _masked(text)
    changed = [(sign, original) for sign, original in zip(masked, text, strict=True) if sign != original]
    is_one_word = all(sign == _BLANK and not original.isspace() for sign, original in changed)
    return not changed or (is_one_word and len(changed) <= _LONGEST_QUOTED and _BETWEEN_BLANKS.search(masked) is None)


def is_reported(sentence: Sentence) -> bool:
    """Tell whether a sentence only tells what a page, a policy or somebody says."""
    return BUILT_IN.pack("foreign").fits("reported", sentence.bare)


def _read(quote: str, masked: str) -> Sentence:
    text = _DETACHED.sub("", " ".join(quote.split())).replace("’", "'")
    # The same signs in the same order, so the blanks of the one are those of the other.
    signs = iter([sign for sign, original in zip(masked, quote, strict=True) if not original.isspace()])
    bare = "".join(" " if sign == " " else next(signs) for sign in text).replace("’", "'")
    bare = _BETWEEN_BLANKS.sub(_BLANK, bare)
    unmarked = [] if is_foreign(text) else list(_UNMARKED.finditer(text))
    for match in reversed(unmarked):
        place = match.end() - 1 if match.group().endswith("nt") else match.start() + 1
        text = f"{text[:place]}'{text[place:]}"
        bare = bare[:place] + (_BLANK if bare[place] == _BLANK else "'") + bare[place:]
    return Sentence(quote, text, bare, masked)


def _masked(text: str) -> str:
    """Return a message of the same length in which only what is the user's own can be read."""
    marked = without_marked(text)
    signs, parts = list(marked), parts_of(text, marked)
    for part, is_own in zip(parts, are_own(text, parts), strict=True):
        for start, end in part.doubtful if is_own is None else () if is_own else [(part.start, part.end)]:
            signs[start:end] = _GAP * (end - start)
    return "".join(signs)


def without_marked(text: str) -> str:
    """Return a message of the same length without what is marked as somebody else's: code, markup, quotations."""
    signs = list(text)

    def blank(start: int, end: int, sign: str = _GAP) -> None:
        signs[start:end] = sign * (end - start)

    for pattern in (_MEMORY, _COMMENT, _FENCE, _FRAMED):
        for match in pattern.finditer(text):
            blank(*match.span())
    for find in (_marked_up, _marked_lines):
        for start, end in find("".join(signs)):
            blank(start, end)
    for match in _INLINE_CODE.finditer("".join(signs)):
        blank(*match.span(), _BLANK)
    for pattern in _QUOTED:
        for match in pattern.finditer("".join(signs)):
            if not _takes_up(match):
                _blank_quotation(signs, match)
    return "".join(signs)


def parts_of(text: str, masked: str) -> list[Part]:
    """Return the sentences of a message in their places, with what rules say of each.

    Args:
        text: the message.
        masked: it, without what is certainly not the user's.
    """
    parts: list[Part] = []
    clues = {name: deque(_merged(find(masked))) for name, find in _CLUES.items()}
    place = 0
    for sentence in sentences(masked):
        start = masked.index(sentence, place)
        place = end = start + len(sentence)
        marks = {"quotation"} if _SHORTEST_QUOTATION in sentence else set[str]()
        doubtful: list[tuple[int, int]] = []
        for name, spans in clues.items():
            while spans and spans[0][1] <= start:
                spans.popleft()
            within = [
                (max(start, first), min(end, last))
                for first, last in takewhile(lambda span: span[0] < end, spans)  # noqa: B023
            ]
            if within:
                covered = sum(last - first for first, last in within)
                marks.add(name if 2 * covered > end - start else f"part {name}")
                doubtful += within
        parts.append(Part(start, end, frozenset(marks), tuple(doubtful)))
    return parts


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return places in order, those that touch as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _takes_up(quotation: re.Match[str]) -> bool:
    """Tell whether the user repeats what the assistant asked, and says yes to it: `re your "…?": yes`."""
    start, end, text = *quotation.span(), quotation.string
    ahead, behind = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    if _OF_THE_ASSISTANT.search(ahead) is None:
        return False
    return _YES.match(behind) is not None or (start <= _NEAR and _YES_AHEAD.match(ahead) is not None)


def _blank_quotation(signs: list[str], match: re.Match[str]) -> None:
    """Blank what stands between two marks; the sign that ends a sentence there ends that of the user, too."""
    for place in range(match.start(), match.end()):
        if not signs[place].isspace():
            signs[place] = _BLANK
        elif signs[place] != " ":
            signs[place] = " "
    if match.end() - match.start() > 2 and match.string[match.end() - 2] in ".!?":
        signs[match.end() - 1] = match.string[match.end() - 2]


def _marked_up(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of elements, from the opening tag to the closing one."""
    opened: dict[str, int] = {}
    end = 0
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            opened.setdefault(name, tag.start())
        elif (start := opened.pop(name, -1)) >= end:
            yield start, tag.end()
            end = tag.end()
            opened.clear()


def _marked_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of lines that are quoted, logged or code."""
    pack = BUILT_IN.pack("foreign")
    place, block = 0, -1
    for line in text.splitlines(keepends=True):
        start, place = place, place + len(line)
        head = line[:_LONGEST_HEAD]
        indent = len(head) - len(head.lstrip(" \t"))
        if head.strip():
            # What is set in further than its heading is data, and far in it is code.
            is_data = indent >= _CODE_INDENT or head[:1] == "\t" or (block >= 0 and indent > block)
            block = (block if is_data and block >= 0 else -1) if not pack.fits("block", head) else indent
            if is_data:
                yield start, place
                continue
        if pack.fits("line", head):
            yield start, place


def _mail(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of a mail, from its first header on."""
    place = 0
    for line in text.splitlines(keepends=True):
        if BUILT_IN.pack("foreign").fits("mail", line[:_LONGEST_HEAD]):
            yield place, len(text)
            return
        place += len(line)


def _conversation(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of lines with a speaker ahead of them, where one of the speakers comes again."""
    lines = [*_LABEL.finditer(text)]
    names = [line[1].lower() for line in lines]
    if len(names) >= _FEWEST_LINES and len(set(names)) < len(names):
        for line in lines:
            end = text.find("\n", line.end())
            yield line.start(), len(text) if end < 0 else end


def _letters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of a letter behind a sentence of the user's, which begins or ends as letters do.

    Of a message that is one letter, greeting and all, the user is the author.
    """
    first = _FIRST_SENTENCE.match(text)
    if first is None:
        return
    start = first.end()
    if salutation := _SALUTATION.search(text, start):
        yield salutation.start(), len(text)
    elif (closing := _CLOSING.search(text, start)) and not _HELLO.match(text):
        yield start, closing.end()


def _handed_over(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of what is given to be worked on, or told as the words of another."""
    place = 0
    for part in sentences(text):
        start = text.index(part, place)
        place = start + len(part)
        # A colon ends what is asked for, and begins what it is asked of.
        found = BUILT_IN.pack("foreign").match("handed", part[:_LONGEST_HEAD])
        if found is None:
            continue
        rule, match = found
        rest = start + match.end() if rule.values["covers"] == "behind" else place
        behind = text[rest:].lstrip()
        covers = rule.values["covers"]
        is_ahead = covers == "ahead" or (covers == "either" and not behind.strip(".!?… "))
        if is_ahead or (covers == "back" and (start > _GREETING or not behind)):
            yield 0, start
        elif behind and behind[0] != _BLANK:
            # A quotation that comes next is all that is meant.
            yield rest, len(text)
            return


_CLUES: dict[str, Callable[[str], Iterator[tuple[int, int]]]] = {
    "mail": _mail,
    "conversation": _conversation,
    "letter": _letters,
    "handed over": _handed_over,
}
"""What hints at words of another and is not certain: the voice of each sentence is weighed together with it."""
