"""Read what a user says about themselves: lasting preferences and wishes for this time only."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from everthread.agents.offline.patterns import pattern, word_set, words
from everthread.memory.text.constraints import is_for_this_time, keeps_approval

Scope = Literal["durable", "session"]

_LONGEST = 300


@dataclass(frozen=True)
class Statement:
    """One thing worth a note."""

    text: str
    """In the third person, one or two short sentences; a rule for the assistant word for word."""
    keywords: tuple[str, ...]
    """One to three lowercase words."""
    scope: Scope


def sentences(text: str) -> list[str]:
    """Cut a text into sentences; lines and list items are sentences of their own."""
    parts = re.split(r"(?<=[.!?;])\s+|\n+", text)
    return [stripped for part in parts if (stripped := re.sub(r"^(?:[-*•]|\d+[.)])\s+", "", part.strip()))]


def statements_in(text: str, *, cautious: bool = False) -> tuple[list[Statement], str]:
    """Separate what is worth a note from the rest of a message.

    Args:
        text: the user's message.
        cautious: take only what the user asks to remember or calls a preference; "I always get error
            809" is a symptom, not a habit.

    Returns:
        The statements in order, and the sentences that hold none.
    """
    found: list[Statement] = []
    rest: list[str] = []
    for sentence in sentences(text):
        if is_task(sentence):
            continue
        if not cautious and (changed := _CHANGED.match(sentence)):
            found.append(_changed(changed))
            continue
        reason = _REASON.match(sentence)
        if reason and found and not _EXPLICIT.match(sentence) and "(" not in found[-1].text:
            found[-1] = _with_reason(found[-1], reason)
            continue
        read = [(clause, _statement(clause, cautious)) for clause in _clauses(sentence)]
        told = [statement for _, statement in read if statement]
        found += told
        rest += [clause for clause, statement in read if not statement] if told else [sentence]
    return found, " ".join(rest)


def is_wish_to_forget(text: str) -> bool:
    """Tell whether the user asks to forget something."""
    return any(_FORGET.match(sentence) for sentence in sentences(text))


def without_wish_to_forget(text: str) -> str:
    """Take the sentences out that ask to forget something, so that they are read as nothing else."""
    return " ".join(sentence for sentence in sentences(text) if not _FORGET.match(sentence))


def is_task(text: str) -> bool:
    """Tell whether the user asks for a reminder: something to do on a day, and no preference."""
    return any(_TASK.match(sentence) for sentence in sentences(text))


def third_person(clause: str) -> str:
    """Rewrite "I am …", "I prefer …", "my … is …" as a note about the user, without the full stop."""
    text = clause.strip().rstrip(".!;, ")
    for opening, replacement in _OPENINGS:
        text, count = opening.subn(replacement, text, count=1)
        if count:
            break
    else:
        text = _FIRST_VERB.sub(lambda match: (match[1] or "") + _conjugated(match[2]), text, count=1)
    for inner, replacement in _INNER:
        text = inner.sub(replacement, text)
    return text[:1].upper() + text[1:]


def keywords_of(text: str) -> tuple[str, ...]:
    """Choose one to three lowercase words: topics first, then content words, never a name or a number."""
    lowered = text.lower()
    topics = [topic for named, topic in _TOPICS if re.search(named, lowered)]
    words = [word for word in re.findall(r"(?<![A-Z\w-])[a-z]{4,}(?![\w-])", text) if word not in _COMMON]
    return tuple(dict.fromkeys(topics or words))[:3] or ("preference",)


_I = (
    r"\bI(?:['’]d| would| do)?"
    r"(?: (?:really|strongly|much|also|always|usually|generally|normally|typically|still|now|just|rather))*"
)
_SELECTION = pattern(
    r"\b(?:prefer|like|love|want|take|hate|need)\b (?:it|that|this|these|those|them|both|option|number|the flight"
    r"|the hotel|the (?:\w+ )?(?:one|option|first|second|third|fourth|last|cheapest|fastest|other))\b"
)
_EXPLICIT = re.compile(
    r"^(?:(?:please|and|also|can you|could you|would you|will you|do)\s+)*"
    r"(?:remember|keep in mind|bear in mind|don['’]?t forget|note(?=[ ,:]+(?:that|down|i\b|my\b|:))|make a note"
    r"|save (?:that|this)|for (?:your|the|future) (?:records?|notes?|information|reference))"
    r"(?:\s+(?:down|of|please|this))*[\s,:]*(?:that\b|the fact that\b)?[\s,:]*(?P<body>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_TASK = pattern(
    r"^(?:(?:please|and|also|can you|could you|will you)\s+)*remind me\b",
    r"^(?:(?:please|and|also|can you|could you|will you)\s+)*(?:remember|don['’]?t forget|make a note|note)"
    r"(?:\s+(?:down|that))*[\s,:]+(?:that\s+)?"
    r"(?:(?:i|we)(?:['’]ve)? (?:have|need|must|got|should)?\s*(?:to\s+)?|to\s+)?"
    r"(?!always|never|usually|i\b|my\b|we\b)[a-z]+\b.{0,80}"
    r"\b(?:tomorrow|tonight|later today|this (?:morning|afternoon|evening)|at \d{1,2}(?::\d\d)?\b|"
    r"(?:on|next|this) (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
)
_CHANGED = pattern(
    r"^(?:(?:well|actually|oh|so|and|but)\W+)*I(?: no longer| don['’]?t| do not) (?:like|prefer|want|need) "
    r"(?P<old>[^,;.]{2,60}?)"
    r"(?: any ?more| any longer)?\s*[,;]?\s+(?:and |but |now,? )*I(?:['’]d)? (?:now |rather |do )*(?:prefer|like|want) "
    r"(?P<new>[^,;.]{2,60}?)(?: now| instead| from now on)*[.! ]*$"
)
_LASTING = pattern(
    words("from now on|in general|generally|as a rule|by default|in (?:the )?future|going forward") + r",?\s*"
)
_HABIT = pattern(words("always|usually|never|every time|whenever|normally|typically"))
_THIS_TIME = pattern(
    r"\b(?:only )?"
    + words(
        r"this time(?: (?:only|around))?",
        r"(?:for|on|during|in) this (?:trip|flight|journey|stay|visit|booking|holiday|conversation|case|one)(?: only)?",
        r"this (?:trip|case) only|just (?:this )?once|for once|for now|right now|for (?:today|tomorrow|tonight)",
    )
    + r"[,:]?\s*"
)
_PREFERENCE = pattern(
    rf"{_I} (?:prefer|hate|dislike|avoid|can['’]?t stand)\b",
    rf"{_I} (?:don['’]?t|do not) (?:like|eat|drink|fly|check)\b",
    r"\bI (?:always|usually|generally|normally|typically|never) (?!said|got|received|asked|had|heard|been|seen)",
    r"\bI(?:['’]m| am)(?: (?:now|actually|strictly|also|a|an|very|severely|no longer|not))* "
    r"(?:vegetarian|vegan|pescatarian|allergic|intolerant|lactose|gluten|coeliac|celiac|diabetic|left-handed|tall"
    r"|claustrophobic|afraid of|scared of|light sleeper|heavy sleeper|early bird|night owl)\b",
    r"\bmy (?:favou?rite|preferred|usual|normal|default) .+ (?:is|are)\b",
    r"\bmy (?:home (?:city|airport)|budget) is\b",
    r"\bI(?: just| now| recently)*(?:['’]ve| have)? ?(?:live|moved) (?:in|to)\b",
    r"\bI have (?:a|an|no|two|\w+) (?:\w+ )?(?:visa|allergy|allergies|status|dog|cat|wheelchair|intolerance)\b",
)
_STANDING = pattern(
    r"^(?:please )?(?:don['’]?t|do not|never)\b.{3,60}\b(?:before|without|unless|until)\b",
    r"^(?:please )?always (?:ask|check|confirm|tell|show|wait)\b",
)
_CAUTIOUS = pattern(rf"{_I} prefer\b")
_LIKING = pattern(rf"{_I} (?:like|love)\b")
_WISH = pattern(rf"{_I} (?:don['’]?t |not )?(?:want|need|like|love)\b")
_WANT = pattern(
    rf"{_I} (?:don['’]?t |not )?(?:want|need)\b",
    rf"{_I} (?:like|love) to have\b",
    r"\bI(?:['’]d| would) (?:like|love|prefer)\b",
    r"\bmy budget is\b",
)
_FORGET = pattern(
    r"^(?:please )?(?:forget|delete|erase|remove)\b.{0,20}"
    r"\b(?:that|about|my|notes?|what|everything|preferences?)\b"
)
_LEAD = pattern(r"^(?:(?:actually|well|oh|so|and|also|but|by the way|btw|fyi|hi|hello|hey|please)\b[,:!\s]*)+(?=\S)")
_TAIL = pattern(r",?\s*(?:please )?(?:remember|note)(?: that| this| it)?(?: for (?:me|later|next time))?[.! ]*$")
_AMENITY = pattern(
    words(
        "seats?|window|aisle|meals?|room|floor|breakfast|legroom|bags?|luggage|cabin|row|bed|view|wi-?fi|pool|parking",
        "quiet|upgrade|lounge|nonstop|non-stop|layovers?|stopovers?",
    )
)
_REQUEST = pattern(
    r"\b(?:book|find|search|look|show|get|need|want|reserve|check|list|cancel|compare|like)\b.{0,40}"
    r"\b(?:flights?|hotels?|rental|cars?|tickets?|insurance|bookings?|options?)\b",
    r"\b(?:fly|flights?|travel|go|trip|tickets?)\b.{0,30}\bto\s+(?-i:[^\Wa-z])",
)
_COMMAND = pattern(words("book|find|search|show|get|list|cancel|reserve|compare"))
_SPEAKER = pattern(r"\b(?:I|I['’]\w+|my|me|we|no|only)\b", r"\b(?:window|aisle) seat")
_REASON = pattern(
    r"^(?:because |since |so that |as )?I (?:really |just )?(?P<verb>want|need|have|like|plan|hope) (?P<what>to .+)$"
)
_ASKING = re.compile(
    r"\?\s*$|^(?:do(?! not\b)|does|did|what|which|who|where|when|why|how|is|are)\b|"
    r"^(?:can|could|would|will|should|have|has)\b",
    re.IGNORECASE,
)
_NEW_CLAUSE = pattern(r",?\s+(?:and|but)\s+(?=I\b|I['’]|my\b|this time\b|for this\b)", r";\s*")


def _clauses(sentence: str) -> list[str]:
    """Cut "… and I …", "… but this time …" where a new statement begins."""
    cut = _NEW_CLAUSE.split(sentence)
    return [part.strip() for part in cut if part.strip()]


def _statement(clause: str, cautious: bool) -> Statement | None:
    explicit = _EXPLICIT.match(clause)
    if explicit:
        body = explicit["body"].strip(" .!?,")
        # "Do you remember me?" asks, it does not tell.
        return (
            _noted(body, cautious, asked=True)
            if body and not (clause.endswith("?") and _is_recollection(clause))
            else None
        )
    if (
        _FORGET.match(clause)
        or _ASKING.search(clause)
        or _SELECTION.search(clause)
        or not _is_about_the_user(clause, cautious)
    ):
        return None
    return _noted(clause, cautious)


def _is_recollection(clause: str) -> bool:
    """Tell "Do you remember …?" from "Can you remember that …?", which asks for a note."""
    if re.match(r"(?i)^(?:do|did) you|^remember\b", clause):
        return True
    return re.search(r"(?i)\b(?:that|this)\b|:", clause) is None


def _is_about_the_user(clause: str, cautious: bool) -> bool:
    if keeps_approval(clause):
        return True
    lasting, once = _LASTING.search(clause), _THIS_TIME.search(clause)
    if cautious:
        return bool(_CAUTIOUS.search(clause) or (lasting and _SPEAKER.search(clause)))
    if _PREFERENCE.search(clause) or _STANDING.search(clause) or (lasting and not _COMMAND.search(clause)):
        return True
    if _REQUEST.search(clause):
        return False
    if once and _SPEAKER.search(clause):
        return True
    return bool(_LIKING.search(clause) or (_WISH.search(clause) and _AMENITY.search(clause)))


def _noted(clause: str, cautious: bool, *, asked: bool = False) -> Statement | None:
    """Write a clause as a note; "I want …" without "always" or "from now on" is for this time only."""
    lasting = _LASTING.search(clause) or _HABIT.search(clause)
    once = _THIS_TIME.search(clause) or (not lasting and not asked and _WANT.search(clause))
    bare = _LASTING.sub("", _THIS_TIME.sub("", _TAIL.sub("", _LEAD.sub("", clause)))).strip(" ,:;")
    # A rule holds word for word; told of somebody else, it could be anybody's.
    is_rule = _STANDING.search(bare) or keeps_approval(bare)
    text = (f"{bare[:1].upper()}{bare[1:]}" if is_rule else third_person(bare))[:_LONGEST].strip(" .!")
    if len(text) < 3:
        return None
    if once:
        only = "This case only" if cautious else "This trip only"
        return Statement(f"{only}: {text[0].lower()}{text[1:]}.", keywords_of(text), "session")
    # The tool keeps a note that speaks of today for this session only, whatever it is called with.
    return Statement(f"{text}.", keywords_of(text), "session" if is_for_this_time(text) else "durable")


def _changed(match: re.Match[str]) -> Statement:
    """Write "I don't like X any more, I prefer Y now" as one note, so that neither half is read alone."""
    old, new = (third_person(match[name]).strip() for name in ("old", "new"))
    old, new = (f"{half[:1].lower()}{half[1:]}" for half in (old, new))
    return Statement(f"Prefers {new} (no longer {old}).", keywords_of(f"{new} {old}"), "durable")


def _with_reason(statement: Statement, reason: re.Match[str]) -> Statement:
    told = f"{_conjugated(reason['verb'].lower())} {reason['what'].rstrip('.!? ')}"
    for inner, replacement in _INNER:
        told = inner.sub(replacement, told)
    return replace(statement, text=f"{statement.text.rstrip('.')} ({told}).")


_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "am": "is", "was": "was"}
_UNCHANGED = word_set("can could will would shall should must may might had went got took bought left came ate slept")


def _conjugated(verb: str) -> str:
    lowered = verb.lower()
    if lowered in _IRREGULAR:
        return _IRREGULAR[lowered]
    if lowered in _UNCHANGED or re.search(r"[^e]ed$", lowered):
        return lowered
    if re.search(r"(?:s|x|z|ch|sh|o)$", lowered):
        return f"{lowered}es"
    return f"{lowered[:-1]}ies" if re.search(r"[^aeiou]y$", lowered) else f"{lowered}s"


_REALLY = r"(?: really| just| also)*"
_OPENINGS = tuple(
    (pattern(opening), replacement)
    for opening, replacement in (
        (rf"^I(?:['’]m| am)\b{_REALLY}", "is"),
        (r"^I(?:['’]ve| have) got\b", "has"),
        (r"^I(?:['’]ve)\b", "has"),
        (rf"^I{_REALLY} (?:do not|don['’]?t)\b", "does not"),
        (rf"^I{_REALLY} (?:cannot|can['’]?t|can not)\b", "cannot"),
        (r"^I (?:won['’]?t|will not)\b", "will not"),
        (rf"^I(?:['’]d| would){_REALLY} prefer(?: to have)?\b", "prefers"),
        (r"^I(?:['’]d| would) rather\b", "would rather"),
        (rf"^I(?:['’]d| would)?{_REALLY} (?:like|love|want|need) to have\b", "prefers"),
        (rf"^I(?:['’]d| would){_REALLY} (?:like|love) to\b", "wants to"),
        (rf"^I(?:['’]d| would){_REALLY} (?:like|love)\b", "prefers"),
        (r"^I(?:['’]ll)\b", "will"),
        (r"^I(?:['’]d)\b", "would"),
        (r"^to\b", "asks to"),
        (r"^my\s+", ""),
    )
)
_FIRST_VERB = pattern(
    r"^I(?:\s+(?:really|just))*\s+"
    r"((?:(?:also|always|usually|generally|normally|typically|never|often|now|only|still)\s+)*)([a-z']+)\b"
)
_INNER = tuple(
    (re.compile(inner), replacement)
    for inner, replacement in (
        (r"\b[Ii](?:['’]m| am)\b", "they are"),
        (r"\bI was\b", "they were"),
        (r"\bI['’]ve\b", "they have"),
        (r"\bI['’]d\b", "they would"),
        (r"\bI['’]ll\b", "they will"),
        (r"\bI\b", "they"),
        (r"\b[Mm]y\b", "their"),
        (r"\bmyself\b", "themselves"),
        (r"\bmine\b", "theirs"),
        (r"\bme\b", "them"),
    )
)
_TOPICS = (
    (r"\bseats?\b|\baisle\b|\bwindow\b|\blegroom\b", "seat"),
    (r"\bwindow\b", "window"),
    (r"\baisle\b", "aisle"),
    (r"\bvegetarian\b", "vegetarian"),
    (r"\bvegan\b", "vegan"),
    (r"\ballerg|\bintoleran", "allergy"),
    (
        r"\b(?:vegetarian|vegan|pescatarian|gluten|halal|kosher|(?:meals?|food|eats?|nuts?|peanuts?)\b)",
        "meal",
    ),
    (r"\bhotels?\b|\brooms?\b", "hotel"),
    (r"\bfloors?\b", "floor"),
    (r"\bquiet\b", "quiet"),
    (r"\bcentral\b|\bwalkable\b|\bcentre\b|\bcenter\b|\bdowntown\b", "location"),
    (r"\bbags?\b|\bluggage\b|\bbaggage\b", "bags"),
    (r"\bred[- ]?eyes?\b|\bovernight\b|\bnight flights?\b", "overnight"),
    (r"\bnon-?stop\b|\bdirect\b|\blayovers?\b|\bstopovers?\b|\bconnections?\b", "nonstop"),
    (r"\bmornings?\b", "morning"),
    (r"\bevenings?\b", "evening"),
    (r"\bbusiness class\b|\bfirst class\b|\bpremium economy\b|\beconomy\b", "cabin"),
    (r"\bbudget\b|\bcheap(?:est)?\b|\bprices?\b|\bcosts?\b", "budget"),
    (r"\bairlines?\b|\bcarrier\b", "airline"),
    (r"\bvisas?\b", "visa"),
    (r"\brental\b|\bcars?\b", "car"),
    (r"\bhome\b|\blives?\b|\bmoved\b|\bflies from\b", "home"),
    (r"\bemails?\b|\bphone\b|\bcalls?\b", "contact"),
)
_COMMON = word_set(
    """that this with from they their them have does never always usually generally when where which what would
    prefers wants likes loves hates avoids needs only trip time really about into than then very much more most some
    other travels flies will theirs takes asks is are not"""
)
