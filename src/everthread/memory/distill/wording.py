"""Turn the user's words into a note's words where that is safe, and find the words that carry meaning."""

import re


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ADVERBS = _set(
    "also always almost just never now often only rather seldom still sometimes much too very quite even kind"
    " of sort hardly ever no longer"
)
_NOT_ADVERBS = _set("fly rely apply comply supply reply multiply")
_MODALS = _set("can can't cannot could couldn't must mustn't should shouldn't will won't would wouldn't may might")
_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "don't": "doesn't", "am": "is", "haven't": "hasn't"}
_OTHER_PERSONS = re.compile(r"\b(?:we|we're|we've|our|ours|us|you|your|yours|you're|you'll)\b", re.IGNORECASE)
_LATER = {
    "i": "they",
    "i'm": "they're",
    "i've": "they've",
    "i'd": "they'd",
    "i'll": "they'll",
    "my": "their",
    "me": "them",
    "mine": "theirs",
    "myself": "themselves",
}
_LATER_WORD = re.compile(r"\bi am\b|\bi was\b|\b(?:i'm|i've|i'd|i'll|i|my|me|mine|myself)\b", re.IGNORECASE)
_SECOND_VERB = re.compile(
    r"(\b(?:and|but|or) (?:\w+ly |much |also )?)(think|prefer|avoid|dislike|hate|love|like|want|need|refuse|tend|"
    r"don't)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^i(?:'(m|ve|d|ll))?\s+", re.IGNORECASE)


def third_person(clause: str, lead: str = "") -> str | None:
    """Return `I usually prefer X.` as `Usually prefers X.`; None when that could change the meaning.

    Args:
        clause: begins with the subject `I`.
        lead: what stands ahead of it and belongs to it, such as `When I travel for work`.
    """
    if _OTHER_PERSONS.search(clause) or _OTHER_PERSONS.search(lead) or '"' in clause:
        return None
    begin = _FIRST.match(clause)
    if begin is None:
        return None
    contracted, rest = (begin.group(1) or "").lower(), clause[begin.end() :]
    if contracted in ("d", "ll"):
        return None
    told = {"m": "is", "ve": "has"}[contracted] + " " + rest if contracted else _conjugated(rest)
    told = _LATER_WORD.sub(_later, told)
    if lead:
        told = f"{told.rstrip(' .?!,;:-')} {lead[0].lower()}{_LATER_WORD.sub(_later, lead)[1:]}"
    told = _SECOND_VERB.sub(lambda found: found[1] + _singular(found[2]), told)
    told = told.rstrip(" .?!,;:-")
    return told[:1].upper() + told[1:] + "."


def quotation(clause: str) -> str:
    """Return the user's words as a note that says that they are the user's words."""
    words = clause.strip().rstrip(" .?!,;:-").replace('"', "'")
    return f'User said: "{words}"'


def _conjugated(rest: str) -> str:
    words = rest.split(" ")
    for place, word in enumerate(words):
        bare = word.lower().strip(",")
        if bare in _ADVERBS or (bare.endswith("ly") and bare not in _NOT_ADVERBS):
            continue
        words[place] = _singular(word)
        break
    return " ".join(words)


def _singular(verb: str) -> str:
    lowered = verb.lower()
    if lowered in _MODALS:
        return lowered
    if lowered in _IRREGULAR:
        return _IRREGULAR[lowered]
    if re.search(r"[^aeiou]y$", lowered):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z)$", lowered) else "s")


def _later(found: re.Match[str]) -> str:
    word = found.group().lower()
    return {"i am": "they are", "i was": "they were"}.get(word) or _LATER[word]


def content_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning, shortened to a common stem."""
    return {stem(word) for word in _words(text)}


def keywords(text: str) -> list[str]:
    """Return up to three lowercase tags: words that carry meaning and are no names, numbers or dates."""
    names = set(re.findall(r"(?<=[a-z,;] )[A-Z]\w+", text))
    told = " ".join(word for word in text.split() if word.strip(".,;:!?\"'") not in names)
    return list(dict.fromkeys(word for word in _words(told) if len(word) > 3 and word not in _DATES))[:3]


def stem(word: str) -> str:
    """Shorten a word so that its plural and its verb forms meet; crude, and the same every time."""
    for ending in ("ings", "ing", "ies", "ied", "es", "ed", "s", "ly", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _words(text: str) -> list[str]:
    found = re.findall(r"[^\W\d_]+(?:'t)?|\d+", text.lower())
    return [word for word in found if word not in _COMMON and (len(word) > 1 or word.isdigit())]


_COMMON = _set(
    "a about absolutely activities activity after all almost also always am an and any anything are as asked at"
    " avoid avoids be because been before being but by can can't cannot could dislike dislikes do does doesn't"
    " don't due else enjoy enjoys especially ever exclusively for from generally get go has hate hates have"
    " having how i if in into is it its just keep kind like likes lot love loves make makes many may me mind"
    " more most much must my need needs never no not now of often on one only or other over particularly people"
    " please prefer preference preferred prefers primarily quite rather really refuse refuses remember said"
    " severe should since so some something sometimes strict strictly strong strongly such tend tends than that"
    " the their them then these they they're thing things this those time times to too tries try trying"
    " typically under unless until up use used user usually very want wants was way we well were what when where"
    " whether which while who will with without would you your"
)
_DATES = _set(
    "january february march april june july august september october november december monday tuesday wednesday"
    " thursday friday saturday sunday today tomorrow tonight yesterday week weekend month year morning afternoon"
    " evening"
)
