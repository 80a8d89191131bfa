"""Bodies and diets: the wordings of what hurts when it is forgotten."""

from everthread.memory.distill.fragments import ADVERBS, DIET, IT, THING
from everthread.memory.distill.manners import Rule

_BODILY = (
    r"(?:eat|drink|stand|tolerate|stomach|bear|handle|consume|digest|fly|climb|swim|drive|walk (?:far|long)|"
    r"take stairs|sleep (?:with|in|on|well))"
)
_BODY_PART = (
    r"my (?:\w+ )?(?:back|knees?|hips?|stomach|neck|"
    r"shoulders?|legs?|feet|ankles?|eyes?|ears?|heart|lungs?|skin|sinuses)"
)
_WEAK_SPOT = (
    r"my (?:\w+ )?(?:asthma|migraines?|allerg(?:y|ies)|anxiety|vertigo|claustrophobia|eczema|epilepsy|arthritis|"
    r"back|stomach|sinuses|skin|knees?)"
)

BODIES: tuple[Rule, ...] = (
    (
        "stated",
        "constraint",
        r"(?!(?:it|that|this|he|she|they|you)\b)[\w' -]{2,40}? (?:could|would|can|will|might) kill (?:me|us)\b"
        r"|(?!(?:it|that|this|he|she|they)\b)[\w' -]{2,40}? (?:is|are) (?:strictly |absolutely |completely )"
        r"?(?:off[- ]limits|"
        r"deadly|poison)(?: (?:for|to) (?:me|us))?(?=[,.;!]|$)",
    ),
    (
        "stated",
        "constraint",
        rf"{THING} (?:would|could|can|will|might|may) (?:land|put) me (?:in|into) (?:the )?(?:an? )?(?:hospital|er|"
        rf"ward|"
        r"emergency \w+)\b",
    ),
    (
        "stated",
        "constraint",
        rf"{THING} (?:\w+ly )?(?:triggers?|upsets?|sets? off|aggravates?|worsens?) {_WEAK_SPOT}\b",
    ),
    (
        "stated",
        "constraint",
        rf"{_BODY_PART} (?:\w+ )?(?:can't|cannot|won't|will not|doesn't|don't|does not|do not) (?:\w+ly )?(?:take|"
        rf"handle|stand|"
        r"bear|tolerate|cope|manage|like|do well|allow)\b(?! (?:it|this|that|these|those)\b)",
    ),
    (
        "stated",
        "constraint",
        rf"(?:only {DIET} (?:meals?|food|dishes|cooking)|{DIET} (?:meals?|food|dishes) (?:only|always))\b",
    ),
    ("stated", "constraint", r"(?:i|we) (?:always )?carry (?:an? |my )?(?:epi-?pen|inhaler|insulin|auto-?injector)"),
    (
        "stated",
        "constraint",
        r"(?:i|we) (?:use|need|travel with|walk with|have|wear) (?:an? )?(?:wheelchair|walker|cane|crutches|pacemaker|"
        r"service dog|guide dog|hearing aids?|walking stick|screen reader|cpap|oxygen|prosthe\w+|insulin pump)\b|"
        r"(?:i'm|i am) (?:in a wheelchair|hard of hearing|"
        r"pregnant|"
        r"colou?r-?blind)\b",
    ),
    ("stated", "constraint", rf"we (?:always |strictly )?(?:keep|eat|follow|are) (?:a |an |strictly )?{DIET}\b"),
    (
        "stated",
        "constraint",
        r"no (?!problem|need|worr|idea|hurry|thank|rush|way|reason|matter|doubt|difference|big|good|luck)[a-z-]+(?: "
        r"[a-z-]+){0,2} "
        r"(?:for (?:me|us)\b|ever\b|in any \w+|of any kind|whatsoever|at all\b)",
    ),
    (
        "stated",
        "constraint",
        rf"(?:i'm|i am|i've been|i have been) {ADVERBS}(?:a |an )?(?:\w+ )?(?:{DIET}|allergic|intolerant|diabetic|"
        rf"coeliac|celiac|"
        rf"lactose|wheelchair|deaf|blind|epileptic|claustrophobic|anaphylactic)\b",
    ),
    (
        "stated",
        "constraint",
        rf"i {ADVERBS}(?:follow|keep|eat|observe|stick to|am on|maintain|need) {ADVERBS}(?:a |an |my )?(?:\w+ "
        rf")?{DIET}\b",
    ),
    (
        "stated",
        "constraint",
        r"(?:i have|i've|i've got|i suffer from|i live with) (?:a |an |some |severe )?(?:[\w-]+ "
        r"){0,3}(?:allerg(?:y|ies)|intolerances?|disabilit(?:y|ies)|diabetes|asthma|restrictions?)\b",
    ),
    (
        "stated",
        "constraint",
        rf"i {ADVERBS}(?:can't|cannot|can not|am unable to|am not able to|am not allowed to) {ADVERBS}{_BODILY}\b",
    ),
    (
        "stated",
        "constraint",
        rf"i {ADVERBS}need (?:a wheelchair|wheelchair|step-free|an accessible|accessible|a lift|insulin)\b",
    ),
    (
        "stated",
        "constraint",
        r"(?:due to|because of|given|with) my (?:[\w-]+ ){0,3}(?:allerg(?:y|ies)|intolerances?|disabilit(?:y|ies)|"
        r"diabetes|asthma)\b",
    ),
    ("stated", "constraint", rf"i {ADVERBS}(?:don't|do not|never) {ADVERBS}(?:eat|drink|smoke|consume)\b{IT}"),
    ("stated", "constraint", rf"(?:i'm|i am|i've been) {ADVERBS}on (?:a |an )?(?:[\w-]+ ){{1,3}}diet\b"),
)
"""Bodies and diets by any wording; the first that fits counts."""
