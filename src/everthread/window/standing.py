"""Find the user's standing instructions: sentences that must hold until the user takes them back."""

import re

_SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][)\]\"”’'])|(?<=[\])]))\s+|\n+|;\s+")

_LEAD = r"^(?:please,?\s+|and\s+|but\s+|also,?\s+|so,?\s+|oh,?\s+|just\s+)*"
"""What may stand ahead of an order."""

_LEAVE = (
    r"(?:approv\w+|confirm\w*|consent\w*|permission|say|say-so|said so|told you|tell you|okay|ok|agree\w*|ask\w*|word|"
    r"go[- ]ahead|sign[- ]?off|signed off|green light|blessing|authori[sz]\w+|let you know|decided?|hear(?:d|ing)? "
    r"from me|me)"
)
_MONEY = (
    r"(?:[$€£]\s?\d|\d[\d.,]*\s?(?:k\b|[$€£]|dollars?\b|euros?\b|pounds?\b|bucks\b|francs?\b|usd\b|eur\b|gbp\b|chf\b|"
    r"(?:a|per|each) (?:night|day|month|week|person)\b|all in\b|in total\b|total\b))"
)
_PERSON = r"\b(?:i|we|he|she|they|(?:my|our) \w+(?: \w+)?|dad|mom|mum)"
_HEALTH = (
    r"(?:c(?:o?e)liac|diabetic|epileptic|pregnant|vegan|vegetarian|pescatarian|lactose|gluten|halal|kosher|intoleran\w+|"
    r"wheelchair|crutches|pacemaker|claustrophobi\w+|deaf|blind|epipen|epi-pen)"
)

_STANDING = re.compile(
    "|".join(
        (
            rf"{_LEAD}(?:never|don't|do not|always|make (?:\w+ )?sure|be sure|only|avoid|refrain from|stay (?:off|"
            r"away from|"
            r"out of)|"
            rf"hands off|keep (?:away from|off|out of)|stop \w+ing|whenever you|(?:every|each) time you)\b.{{8,}}",
            rf"{_LEAD}if\b.{{5,}}, (?:please )?(?:ask me|check with me|call me|stop|don't|do not|never|always)\b",
            rf"{_LEAD}leave (?:my|the|our|that|this|it)\b.{{0,40}}\b(?:alone|as (?:it|they) (?:is|are)|untouched)\b",
            r"\b(?:whatever happens|at all times)\b|^[^,]{3,60}\bonly, please[.!]?$",
            # leave that the user keeps to themselves
            r"\b(?:before|until|till|unless|without) (?:i|i've|i'm|my|asking|checking|me|you|hearing)"
            rf"\b.{{0,30}}\b{_LEAVE}\b",
            r"\bwithout (?:asking|checking with|telling|consulting)(?: me)?(?: first)?[.!]?$|"
            r"\b(?:show|tell|send|ask|warn|call|check (?:it |that |this )?with) me\b.{0,60}\bbefore (?:you|anything|"
            r"any)\b|"
            r"\bbefore (?:you|anything|any)\b.{3,60}, (?:please )?(?:show|ask|tell|send|call|check with) me\b",
            r"\bas long as i (?:haven't|have not|don't|do not)\b|\bmy (?:approval|consent|permission|okay|go-ahead|"
            r"say-so|"
            r"sign-off)\b.{0,30}\b(?:before|first)\b",
            rf"{_LEAD}(?:hold off|wait|pause|stand by)\b.{{0,60}}\b(?:until|till|before|for me|for my)\b",
            r"\b(?:ask|check with|confirm with|consult|wait for|get|clear\b.{1,30}\bwith|run\b.{1,30}\b(?:by|past))"
            r"\s+(?:me|my (?:approval|ok|okay|consent|permission|"
            r"go-ahead|say-so|sign-off))\b.{0,20}(?:\b(?:before|first)\b|$)",
            r"\bi(?:'d| would)? (?:want|need|have|insist on|prefer) (?:to )?(?:approv\w+|confirm\w*|see\w*|review\w*|"
            r"sign(?:ing)? off|ok|okay)\b.{0,60}\b(?:first|before|beforehand)\b",
            # limits of money
            r"\b(?:my|our|the|total) budget\b.{0,20}\d|\bno more than\b.{0,12}\d|\bat most\b.{0,12}\d",
            rf"\b(?:can't|cannot|won't|don't want to|do not want to|not|never|without)\b.{{0,20}}\b(?:go(?:ing)? "
            r"(?:over|above|"
            rf"beyond|past)|exceed\w*|(?:spend|pay)(?:ing)? (?:more|over|above)|afford more)\b.{{0,20}}{_MONEY}",
            r"\b(?:keep|stay|come in|has to be|have to be|must be|should be|needs? to be|must cost|spend|pay)"
            rf"\b.{{0,40}}\b(?:under|"
            rf"below|within|less than|up to)\s.{{0,20}}{_MONEY}",
            rf"\b(?:maximum|max|limit|cap|ceiling)\b.{{0,20}}{_MONEY}",
            # health, and what somebody cannot do
            r"\b(?:i'm|i am|is|are) (?:\w+ )?allergic\b|\ballerg(?:y|ies) to\b",
            r"\b(?:could|would|will|can|might|nearly|almost) kill(?:ed)? (?:me|him|her|them|my)\b|\banaphyla\w+",
            rf"{_PERSON}(?:'m|'re|'s|'ve| am| are| is| have| has| use| uses| need| needs)\b.{{0,25}}\b{_HEALTH}\b",
            rf"{_PERSON} (?:can't|cannot|can not|must not|mustn't|may not|don't|doesn't) (?:eat|drink|climb|walk|"
            r"fly|drive)\b",
            r"\b(?:need|needs|require|requires)\b.{0,30}\b(?:step-free|accessible|ground[- ]floor|elevator|ramp)\b",
            rf"{_PERSON} (?:carry|carries|keep|keeps|eat|eats)\b.{{0,15}}\b{_HEALTH}\b|\bmakes? (?:me|him|her|them) "
            r"(?:ill|sick)\b",
            # prohibitions
            r"\b(?:(?:not|\w+n't) allowed to|(?:you|they) may not(?! (?:always|be))|i forbid|i refuse to|we refuse to|"
            r"out of "
            r"the question|off[- ]limits|not an option|"
            r"deal[- ]?breaker)\b",
            rf"{_LEAD}(?:no|nothing) (?!problem|worries|thank|need|idea|one\b|matter|luck|doubt)(?:[\w-]+ )"
            rf"{{0,2}}(?:before|after|"
            rf"with|containing|above|over|under|below|from|in|on)\b.{{4,}}",
            r"\b(?:it|they|that|this|everything|which) (?:has|have|needs?) to (?:be|stay|remain)\b|\bi have to "
            r"be\b.{2,40}\bby\b|"
            r"\bmust (?:stay|remain|keep)\b",
            r"\b(?:you|it) must(?: not|n't)?\b|\bmust (?:not|never)\b",
            r"\b(?:is|are) (?:not|never) to (?:be|hear|know|see|learn|find|get|receive|have|call|contact)\b",
            r"\b(?:nobody|no one|none of (?:them|my))(?: else)? (?:may|should|must|can|is to|is allowed)\b",
            r"\b(?:under no circumstances|on no account|at no point|in no case)\b",
            r"\b(?:keep|leave) (?:it|this|that|(?:my|the|our) \w+)\b.{0,30}\b(?:secret|confidential|private|between "
            r"us|to "
            r"yourself)\b",
            r"\bi(?:'d| would) rather (?:you )?(?:didn't|did not|not have you)\b|\bi (?:do not|don't) want (?:you|"
            r"anyone|"
            r"anybody|my \w+) to\b",
            r"\bno \w+(?: or \w+)? (?:in|on|with|at|during) (?:any|my|our|every)\b",
            r"\bnothing (?:gets|is|should|may|can|goes)\b.{0,40}\bwithout\b",
            # from now on
            r"\b(?:from now on|going forward|from here on|for the rest of (?:this|our|the) (?:trip|conversation|"
            r"chat|session))\b",
            r"\bonly\b.{3,60}\bworks? for (?:me|us)\b",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
_LONGEST = 300
_FIRST = re.compile(
    r"\b(?:never|don't|do not|not|no|nothing|nobody|none|can't|cannot|won't|must|without|before|until|till|unless|"
    r"allerg\w+|anaphyla\w+|kill|budget|limit|max|maximum|under|below|ask|wait|hold off)\b",
    re.IGNORECASE,
)


def is_prohibition(sentence: str) -> bool:
    """Tell whether breaking the rule does harm: a prohibition, a condition, an allergy, a limit."""
    return _FIRST.search(_plain(sentence)) is not None


def standing_in(text: str) -> list[str]:
    """Return the sentences of a user's message that are standing instructions, word for word.

    Questions are none, and a sentence over 300 characters is a story, not a rule.
    """
    sentences = (sentence.strip() for sentence in _SENTENCE.split(text))
    return [
        sentence
        for sentence in sentences
        if 8 <= len(sentence) <= _LONGEST and not sentence.endswith("?") and _STANDING.search(_plain(sentence))
    ]


def _plain(sentence: str) -> str:
    return sentence.replace("’", "'")
