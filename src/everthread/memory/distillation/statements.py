"""What counts as a statement about the user: the wordings, and what each of them is worth.

Every rule is a form of English speech, tried where a clause begins, so that `do I prefer`, `she thinks I
prefer` and `how I prefer` are not taken for `I prefer`.
"""

import re
from dataclasses import dataclass
from typing import Literal

from everthread.memory.distillation.sentences import Sentence
from everthread.state.notes import NoteKind

Manner = Literal["asked", "rule", "stated", "taste"]
"""How it was said: asked to be remembered, an order for the future, a plain statement, a mere liking."""

CONFIDENCE: dict[Manner, float] = {"asked": 1.0, "rule": 1.0, "stated": 0.9, "taste": 0.6}
"""What a wording is worth; our choice, so that tastes go first when the notes do not fit."""


@dataclass(frozen=True)
class Statement:
    """A clause that says something lasting about the user, or limits something to now."""

    begin: int
    """Place of the clause's subject in the sentence."""
    manner: Manner
    kind: NoteKind | None = None
    """None: the wording of the whole note decides."""


_BOUNDARY = (
    r"(?:^|[;!?–—(]\s*|[,:.](?!\d)\s*|\s-+\s|\b(?:and|but|because|since|as|so|though|although|while|'?cause|plus|"
    r"yet|or|then|well|"
    r"also|actually|yes|yeah|no|nope|ok|okay|oh|hey|hi|hello|please|thanks|thank you|cool|great|btw|fyi|honestly|"
    r"personally|"
    r"sure|now|as a rule|in general|usually|generally|normally|typically|overall|remember|ever|(?:just|much) like "
    r"how)\s+)"
)
_MAYBE = r"(?:i (?:think|guess|suppose|believe|feel|must say|have to say|should mention)(?: that)? )?"
_HABITUALLY = (
    r"(?:usually|always|generally|typically|normally|never|rarely|seldom|hardly ever|mostly|almost always|"
    r"almost never|"
    r"almost exclusively|exclusively|ordinarily|tend to|in general|as a rule|routinely)"
)
_ADVERBS = (
    r"(?:(?:\w{2,}ly|always|almost|also|do|just|kind of|sort of|much|never|often|prefer to|rather|seldom|still|"
    r"tend to|"
    r"try to|would rather|very much|now|quite|even|as a rule|in general|have to|need to|must),? ){0,4}"
)
_IT = (
    r"(?! (?:(?:all|both|some|any|most|none|either|neither) of )?(?:it|that|this|these|those|them|him|her|his|you|"
    r"your|our|us|"
    r"what|how|when|where|if|to (?:hear|know|see|learn|check|confirm|think|believe|say|ask)|(?:the|a|an|any|some) "
    r"(?:\w+ )?"
    r"(?:ideas?|sounds?|concepts?|looks?|suggestions?|options?|ones?|thoughts?|points?|approach|theme|tips?|"
    r"advice|same)|"
    r"the (?:first|second|third|last|former|latter|other|next)|one|(?:option|number) \d)\b)"
)
_ITS_OWN = r"(?! (?:the|my|any|some|a|an)\b| [\"_])"
_DIET = (
    r"(?:vegetarian|vegan|pescatarian|pescetarian|halal|kosher|gluten[- ]free|dairy[- ]free|lactose[- ]free|"
    r"nut[- ]free|"
    r"plant[- ]based|keto\w*|paleo|low[- ](?:carb|sodium|salt|sugar|fat)|jain)"
)
_AILMENT = (
    r"(?:allerg(?:y|ies)|intolerances?|aversions?|fears?|phobias?|dislikes?|distaste|preferences?|sensitivit(?:y|ies)|"
    r"disabilit(?:y|ies)|condition|asthma|arthritis|diabetes|claustrophobia|vertigo|soft spot|weakness|need for|"
    r"hatred|"
    r"restrictions?|bad (?:back|knees?|hip)|mobility (?:issues?|problems?)|(?:motion|sea|car|air|travel)[- ]?sickness)"
)
_BODILY = (
    r"(?:eat|drink|stand|tolerate|stomach|bear|handle|consume|digest|fly|climb|swim|drive|walk (?:far|long)|"
    r"take stairs|sleep (?:with|in|on|well))"
)
_THING = (
    r"(?!(?:it|that|this|these|those|he|she|they|you|there|what|the (?:first|second|third|last|other)|"
    r"do|does|did|is|are|was|were|can|could|would|will|should|may|might|has|have|why|how|who|which|where|when|if|"
    r"whether|unless|maybe|perhaps|so|and|but|because|since|as|then|or|also|plus|yet|though|although|while|"
    r"well)\b)[\w'-]+(?: [\w'-]+){0,3}?"
)
"""A subject that is no pronoun, and no beginning of a question."""
_KIND = (
    rf"(?!\d|(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|next|the|your|his|her|its|their|my|"
    rf"our|another|one|both|some|no|nothing)\b){_THING}"
)
"""A subject that names a kind, such as `chain hotels`, rather than the one thing that is talked about."""
_SYMPTOM = (
    r"(?:sick|ill|nervous|anxious|dizzy|uncomfortable|uneasy|queasy|nause(?:ous|ated)|itch\w*|panick?\w*|faint|"
    r"(?:sea|car|air)[- ]?sick|migraines?|headaches?|hives|vertigo|heartburn)"
)
_BODY_PART = (
    r"my (?:\w+ )?(?:back|knees?|hips?|stomach|neck|"
    r"shoulders?|legs?|feet|ankles?|eyes?|ears?|heart|lungs?|skin|sinuses)"
)
_WEAK_SPOT = (
    r"my (?:\w+ )?(?:asthma|migraines?|allerg(?:y|ies)|anxiety|vertigo|claustrophobia|eczema|epilepsy|arthritis|"
    r"back|stomach|sinuses|skin|knees?)"
)
_WORKPLACE = r"(?:my|our) (?:\w+ )?(?:employer|company|firm|office|department|organi[sz]ation|university|school|policy)"
_DEVICE = (
    r"(?:mac(?:book|os| mini)?|imac|thinkpad|chromebook|windows(?: \d+)?(?! (?:seats?|tables?))|linux|ubuntu|debian|"
    r"fedora|i(?:phone|pad|os)|android|pixel|galaxy|samsung|firefox|chrome|safari|outlook|thunderbird|dell|lenovo)"
)
"""What someone works with, and keeps for years."""
_UNLASTING = (
    r"(?!(?:think|know|wonder|forget|forgot|want|wanted|need|get|look|try|end|find|feel|hear|see|say|said|ask|"
    r"have to|had|"
    r"knew|thought|heard|saw|been|got|was|were|did|meant|mean|hope|expect|guess|mind|wish|struggle|wanting|"
    r"looking|trying|\w+ed|is|are)\b)"
)

_OTHERS = (
    r"(?:my|our|his|her|their) (?:\w+ )?(?:wife|husband|partner|spouse|son|daughter|kids?|child(?:ren)?|"
    r"boss|manager|supervisor|company|employer|office|friends?|colleagues?|mother|mom|mum|father|dad|brother|sister|"
    r"parents?|girlfriend|boyfriend|fianc\w+|"
    r"client|team)"
)

_RULES: tuple[tuple[Manner, NoteKind | None, str], ...] = (
    # Orders for the future: they are the user's rules.
    (
        "rule",
        "constraint",
        r"(?:never|always|do not|don't) (?!(?:worry|forget|bother|mind|think|know|hesitate|you)\b)\w+ "
        r".{0,80}\b(?:before|without|unless|until)\b",
    ),
    (
        "rule",
        "constraint",
        r"(?:never|always) (?:please )?(?!(?:mind|know|been|had|thought|wanted|look\w*|try\w*)\b)[a-z]+ (?:me|my|"
        r"a|an|the|any|for|with|in|on|at|from|only|[a-z-]+s)\b",
    ),
    (
        "rule",
        "constraint",
        r"i (?:must (?:not |never |always )?(?!say|admit|have|know|see)|(?:absolutely |strictly )?refuse to |"
        r"insist (?:on|that) |will not (?:ever )?|won't (?:ever )?(?=eat|fly|stay|use|drink))\w+",
    ),
    (
        "rule",
        "constraint",
        r"(?:please )?(?:ask|check with|check back with|confirm with|consult|wait for|hold off|get back to)\b.{0,60}\b"
        r"(?:before|first|until|till)\b",
    ),
    ("rule", "constraint", r"(?:nothing|no \w+|nobody|no one)\b.{0,60}\bwithout (?:my|me|asking|checking)\b"),
    ("rule", "constraint", r"(?:under|in) no circumstances?\b|(?:please )?(?:don't|do not|never) ever (?!mind)\w+"),
    ("rule", "constraint", r"you (?:may|can|must|should) (?:only|never|not) (?!imagine|be\b|see\b|know\b)\w+"),
    (
        "rule",
        "constraint",
        rf"{_OTHERS} (?:is|are|must|may|should|shall|can) (?:not|never) (?:to )?(?:hear|know|learn|see|find out|read|"
        r"be "
        r"told|be informed|get wind)\b",
    ),
    ("rule", "constraint", r"only \w+ .{0,80}\b(?:after|once|when) (?:i|i've|we|we've)\b"),
    (
        "rule",
        "constraint",
        r"(?:please )?(?:do not|don't) (?:share|disclose|mention|forward|publish|call|text|phone|ring|contact|charge) "
        r"(?:my|me|any\w*|to|us|our|on|this|it)\b",
    ),
    ("rule", "constraint", r"only .{3,40} (?:works|is ok(?:ay)?|is fine|is possible) for (?:me|us)\b"),
    (
        "rule",
        "constraint",
        r"(?:nothing|no \w+) (?:before|after|earlier than|later than|over|under|above|below|with|without) .{2,40}?,? "
        r"(?:for (?:me|us)|ever)(?=[,.;!]|$)",
    ),
    (
        "rule",
        "constraint",
        r"(?:every|each|any|all(?: of)?(?: my| our)?) (?:[\w'-]+ ){1,4}?(?:has|have|needs?|must|"
        r"should) (?:always )?(?:to )?"
        r"be (?:approved|authori[sz]ed|signed off|cleared|confirmed|agreed)\b",
    ),
    (
        "rule",
        "constraint",
        rf"{_WORKPLACE} (?:\w+ )?(?:reimburses|covers|pays|allows|permits|requires|forbids|bans|approves|books|"
        r"(?:won't|doesn't|will not|does not) (?:reimburse|cover|pay|allow|permit|approve|let))\b",
    ),
    # How answers should look is said once and meant for all of them.
    (
        "rule",
        "preference",
        r"(?:please )?(?:always |just )?(?:give me|send me|keep|make|write|i (?:want|need|would like)|"
        r"i'd like) (?:your |the |me )?"
        r"(?:(?:answers|replies|responses|messages|explanations|emails) (?:\w+ )?(?:short|brief|concise|simple|plain|"
        r"formal|"
        r"informal|detailed|to the point|in \w+)|(?:short|brief|concise|simple|plain|detailed|longer|shorter|"
        r"one-line) "
        r"(?:answers|replies|responses|messages|explanations))(?=[,.;!]|$| (?:please|only|when|without|with|and|"
        r"from now)\b)",
    ),
    (
        "rule",
        "constraint",
        r"(?:whatever|wherever|whenever) (?:you|we|i) (?:book|choose|pick|find|order|reserve|suggest|send|write|go|"
        r"stay)\b.{0,40}\b"
        r"(?:has to|have to|must|should|needs? to|make sure|never|always)\b",
    ),
    (
        "rule",
        "constraint",
        r"(?:i'm|i am|we're|we are) (?:\w+ly )?(?:capped|limited|restricted) (?:at|to) [$€£]?\d",
    ),
    # A body and a diet: what hurts when it is forgotten.
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
        rf"{_THING} (?:would|could|can|will|might|may) (?:land|put) me (?:in|into) (?:the )?(?:an? )?(?:hospital|er|"
        rf"ward|"
        r"emergency \w+)\b",
    ),
    (
        "stated",
        "constraint",
        rf"{_THING} (?:\w+ly )?(?:triggers?|upsets?|sets? off|aggravates?|worsens?) {_WEAK_SPOT}\b",
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
        rf"(?:only {_DIET} (?:meals?|food|dishes|cooking)|{_DIET} (?:meals?|food|dishes) (?:only|always))\b",
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
    ("stated", "constraint", rf"we (?:always |strictly )?(?:keep|eat|follow|are) (?:a |an |strictly )?{_DIET}\b"),
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
        rf"(?:i'm|i am|i've been|i have been) {_ADVERBS}(?:a |an )?(?:\w+ )?(?:{_DIET}|allergic|intolerant|diabetic|"
        rf"coeliac|celiac|"
        rf"lactose|wheelchair|deaf|blind|epileptic|claustrophobic|anaphylactic)\b",
    ),
    (
        "stated",
        "constraint",
        rf"i {_ADVERBS}(?:follow|keep|eat|observe|stick to|am on|maintain|need) {_ADVERBS}(?:a |an |my )?(?:\w+ "
        rf")?{_DIET}\b",
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
        rf"i {_ADVERBS}(?:can't|cannot|can not|am unable to|am not able to|am not allowed to) {_ADVERBS}{_BODILY}\b",
    ),
    (
        "stated",
        "constraint",
        rf"i {_ADVERBS}need (?:a wheelchair|wheelchair|step-free|an accessible|accessible|a lift|insulin)\b",
    ),
    (
        "stated",
        "constraint",
        r"(?:due to|because of|given|with) my (?:[\w-]+ ){0,3}(?:allerg(?:y|ies)|intolerances?|disabilit(?:y|ies)|"
        r"diabetes|asthma)\b",
    ),
    ("stated", "constraint", rf"i {_ADVERBS}(?:don't|do not|never) {_ADVERBS}(?:eat|drink|smoke|consume)\b{_IT}"),
    ("stated", "constraint", rf"(?:i'm|i am|i've been) {_ADVERBS}on (?:a |an )?(?:[\w-]+ ){{1,3}}diet\b"),
    # Attitudes that hold by their meaning.
    (
        "stated",
        "preference",
        rf"(?:i|we) {_ADVERBS}(?:prefer(?! (?-i:[A-Z])\w+(?: (?-i:[A-Z])[\w.]*)*[.!]?$)|avoid|dislike|detest|"
        rf"despise|loathe|abhor|steer clear of|stay away from|shy away from|gravitate towards?|opt for|"
        rf"favou?r)\b{_IT}",
    ),
    (
        "stated",
        "preference",
        rf"(?:i|we) {_ADVERBS}(?:hate|can't stand|cannot stand|can't bear|cannot bear)\b{_IT}(?! to\b)",
    ),
    (
        "stated",
        "preference",
        rf"(?:i|we) {_ADVERBS}(?:don't|do not) {_ADVERBS}(?:like|enjoy|fly|drive|gamble|swim|care (?:much )?for|"
        rf"do well (?:in|with|on))\b{_IT}",
    ),
    (
        "stated",
        "preference",
        rf"(?:i have|i've|i've got|i suffer from) (?:a |an |some )?(?:[\w-]+,? ){{0,3}}{_AILMENT}\b",
    ),
    (
        "stated",
        "preference",
        r"(?:due to|because of|given|with) my (?:[\w-]+ ){0,3}(?:aversion|fear|phobia|dislike|claustrophobia|"
        r"vertigo|(?:motion|sea|car|air)[- ]?sickness)\b",
    ),
    (
        "stated",
        "preference",
        rf"(?:i'm|i am) {_ADVERBS}(?:not (?:a |\w+ )?(?:fan|fond|keen|into|comfortable|big on|one for|interested "
        rf"in (?!this|that|the))|(?:\w+ )?(?:averse|afraid|scared|terrified|wary|uncomfortable|prone|sensitive|"
        rf"partial)\b|claustrophobic|left-handed|a (?:\w+ )?(?:light sleeper|nervous flyer|night owl|morning "
        rf"person|early (?:bird|riser)))",
    ),
    (
        "stated",
        "preference",
        r"i(?: have|'ve) (?:always|never|long) (?:\w+ly )?(?:hated|disliked|avoided|preferred|detested|despised|"
        r"been (?:one for|a (?:big |huge )?fan of|afraid of|scared of|terrified of|comfortable with|fond of|keen "
        r"on|into))\b" + _IT,
    ),
    (
        "stated",
        "preference",
        rf"i {_ADVERBS}get (?:\w+ )?(?:(?:sea|car|motion|air|travel)[- ]?sick|nervous|anxious|claustrophobic|"
        rf"migraines|headaches|dizzy) ?(?:in|on|from|when|with|around|at|easily|$|\.)",
    ),
    ("stated", "preference", r"i (?:refuse|decline) \w+"),
    ("stated", "preference", r"i(?:'m| am) (?:strictly|firmly|strongly|morally) (?:against|opposed to)\b"),
    (
        "stated",
        "preference",
        r"i (?:no longer|don't|do not) \w+.{0,40}\b(?:anymore|any more|any longer)\b|i no longer \w+",
    ),
    (
        "stated",
        "preference",
        r"as someone (?:who|with)(?:'s| is)? (?:\w+ly )?(?:on a|allergic|intolerant|vegetarian|vegan|afraid|"
        r"follows|avoids|prefers|hates|dislikes|never|doesn't|can't|cannot|"
        r"refuses|an? (?:\w+ ){0,2}(?:allergy|intolerance|fear|phobia|aversion|disability))\b",
    ),
    ("stated", "preference", r"my (?:\w+ )?(?:favou?rite|preferred|go-to|usual) \w+(?: \w+)? (?:is|are)\b"),
    (
        "stated",
        "preference",
        rf"my (?:personal |usual |general |clear |strong )?(?:go-to|preference|default|favou?rite)(?: \w+){{0,3}}? "
        r"(?:is|are|would be|"
        rf"has always been)\b(?: for| to)?{_IT}",
    ),
    (
        "stated",
        "preference",
        r"(?:i'm|i am|we're|we are) (?:more of |very much |definitely |really |just |not |a bit of )*(?:an? )"
        r"?(?!(?:new|nice|different|"
        r"bad|first|good|busy|real)\b)(?:[\w-]+ ){1,3}(?:person|people|guy|girl|type|lover|traveller|traveler|eater|"
        r"sleeper|drinker)\b",
    ),
    ("stated", "preference", rf"for (?:me|us),? {_THING} (?:has|have|need|needs|must) (?:to )?be\b"),
    (
        "stated",
        "constraint",
        r"(?:i|we) can only (?:travel|fly|eat|drink|sleep|work|walk|drive|meet|leave|stay|take)\b",
    ),
    (
        "stated",
        "preference",
        r"(?:being|as|since i'm|because i'm|with) (?!soon|long|far|well|for|to|always|you|i|we|it|usual)[^,]{3,40}, "
        r"(?:i|we) (?:always |usually |really |do )?(?:need|want|"
        rf"prefer|require)\b{_IT}",
    ),
    (
        "stated",
        "preference",
        r"i(?:'ve| have) (?:recently |just |finally |since |now )?(?:(?:switched|changed|converted) (?:over |back )"
        r"?to (?!the|this|that|"
        rf"these|your|my|another|it|option|plan)\w+|(?:become|turned|gone) (?:an? )?{_DIET}|gone off|sworn off|given "
        r"up|cut out|"
        r"come to (?:prefer|like|love|hate|dislike|avoid|enjoy))\b(?! (?:on|looking|trying|the|hope|waiting|that|"
        r"this|it)\b)",
    ),
    (
        "stated",
        "preference",
        r"i(?:'ve| have)? (?:recently |just )?(?:stopped|quit|gave up) (?:eating|drinking|flying|driving|smoking|"
        r"using|buying|taking|"
        r"wearing|staying|travell?ing|meat|alcohol|sugar|coffee|dairy|gluten)\b",
    ),
    (
        "stated",
        "preference",
        r"(?:i|we) (?:really |just )?(?:don't|do not) do (?!this|that|it|so|much|anything|any|the|well|a)[a-z-]+",
    ),
    (
        "stated",
        "preference",
        rf"{_THING} (?:really |just )?(?:isn't|aren't|is not|are not|is|are) (?:really |just )?(?:my thing|not my "
        r"thing|for me|not for me|my "
        r"style|my cup of tea|not my cup of tea)(?=[,.;!]|$)",
    ),
    ("stated", "preference", rf"{_THING} (?:doesn't|don't|does not|do not|never) agrees? with me\b"),
    (
        "stated",
        "preference",
        r"i(?:'d| would) (?:much |always )?(?:rather|take|pick|choose) .{3,60}\b(?:generally|in general|any day|"
        r"every time|as a rule|"
        r"usually|over .{3,30} any ?time)\b|(?:i|we)(?:'d| would) (?:much )?sooner (?!.*\b(?:the|this|that|these|"
        r"those|on)\b).{3,40} than \w+",
    ),
    (
        "stated",
        "preference",
        r"(?:early |late )?(?:mornings|afternoons|evenings|nights|weekends|weekdays|(?:mon|tues|wednes|thurs|fri|"
        r"satur|sun)days|e-?mail|"
        r"phone calls|text messages|trains|buses) (?:usually |generally |always )?(?:is|are|works?|suits?) (?:me )"
        r"?(?:usually |always )?"
        r"(?:best|better|easiest)\b",
    ),
    (
        "stated",
        "preference",
        r"(?:please )?(?:always |only )?(?:write|answer|reply|respond|talk|speak|text|message) (?:to )?me (?:only |"
        r"always |back )*in "
        r"(?-i:[A-Z])\w+",
    ),
    (
        "stated",
        "preference",
        r"(?:please )?(?:just )?(?:call|address) me (?:as )?(?-i:(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|A|The|"
        r"When|If|On|At|In)[A-Z])"
        r"[a-z]+(?=[.!,]|$)",
    ),
    # Where somebody lives, works and leaves from: what trips begin with.
    (
        "stated",
        "fact",
        rf"(?:i|we) {_ADVERBS}(?:live|reside|work|fly|am based|are based) (?:in|at|for|from|out of) (?-i:[A-Z])|"
        r"(?:i'm|we're) based in "
        r"(?-i:[A-Z])|my home (?:airport|town|city|base) is\b",
    ),
    (
        "stated",
        "preference",
        rf"{_THING} (?:\w+ly |always |usually |just )?(?:makes? me|gives? me|"
        rf"gets? me) (?:feel )?(?:\w+ )?{_SYMPTOM}\b",
    ),
    (
        "stated",
        "constraint",
        r"(?:i|we) (?:really |always )?(?:need|require|must have) .{3,60}\b(?:because of|due to|on account of|"
        r"for) my (?:\w+ )?(?:back|knees?|hips?|"
        r"legs?|neck|bladder|height|size|asthma|allerg(?:y|ies)|condition|disability|pregnancy|religion|faith|diet|"
        r"age|eyes?|hearing|"
        r"eyesight|anxiety|arthritis|diabetes|migraines?)\b",
    ),
    (
        "stated",
        "constraint",
        r"i (?:can't|cannot|can not) (?:be reached|be called|take calls|answer|talk|do calls|do meetings) (?:before|"
        r"after|during|between|on \w+days)\b",
    ),
    # Judgements whose subject is the thing: `chain hotels leave me cold`.
    (
        "stated",
        "preference",
        rf"{_KIND} (?:\w+ly |always |usually |just |do |does )?(?:leaves? me cold|puts? me off|turns? me off|"
        rf"(?:stress|freak)(?:es)? me "
        r"out|drives? me (?:crazy|mad|nuts|up the wall)|wears? me out|bores? me|scares? me|terrif(?:y|ies) me|"
        r"bothers? me|appeals? to me|suits? me (?:best|better)|"
        r"(?:doesn't|don't|does not|do not|never) (?:appeal to|suit|interest|excite|work for) me)\b",
    ),
    (
        "stated",
        "preference",
        rf"{_KIND} (?:\w+ly |always )?(?<!not )(?<!n't )(?<!nothing )(?:matters?|counts?|means?) (?!nothing|"
        rf"little)(?:\w+ ){{0,3}}to me\b|{_KIND} (?:is|are) (?!not|never|no longer)(?:\w+ ){{0,3}}"
        r"(?:important|essential|crucial|vital|a must|a priority|a deal-?breaker|a no-?go|out of the question|"
        r"non-?negotiable|sacred|torture|a nightmare) "
        r"(?:to|for|with) me\b",
    ),
    (
        "stated",
        "preference",
        rf"{_KIND} (?:always |usually )?(?:beats?|trumps?) .{{2,40}}\b(?:for me|in my book|any ?(?:day|time)|"
        rf"every (?:single )?time)\b",
    ),
    (
        "stated",
        "preference",
        rf"{_KIND} and (?:i|me) (?:just |really )?(?:don't|do not|never|aren't|are not) (?:get (?:along|on)|mix|"
        rf"agree|friends|a good \w+)\b",
    ),
    (
        "stated",
        "preference",
        r"(?:i|we) (?:\w+ly |always )?(?:swear by|stick (?:to|with)|lean towards?|make (?:it )?a (?:point|rule|"
        r"habit)\b|"
        rf"am in the habit of|draw the line at|won't hear of|live on|thrive on|struggle with)\b{_IT}(?! (?:the|my)\b)",
    ),
    (
        "stated",
        "preference",
        r"(?:e-?mail|phone|text|texting|sms|chat|teams|slack|whatsapp|a (?:call|text)|calling|[\w-]+) (?:is|"
        r"'s) (?:always |usually )?"
        r"(?:by far )?(?:the|my) (?:best|easiest|fastest|quickest|only|preferred|surest) (?:way|channel) (?:to|"
        r"of) (?:reach|contact|"
        r"get (?:hold of|to)|reaching|contacting|getting hold of) me\b|i'm (?:best|easiest|easier) (?:reached|"
        r"to reach) \w+",
    ),
    (
        "stated",
        "preference",
        r"the (?:only|one) [\w -]{2,30}? (?:i|we) (?:\w+ly )?(?:trust|use|eat|drink|fly|enjoy|tolerate|accept|avoid|"
        r"hate|can (?:eat|stand|drink|use|take)|can't \w+|won't \w+) (?:is|are)\b"
        rf"|{_THING} (?:is|are) the (?:one|only) thing (?:that )?i (?:have to|must|need to|can't|cannot|won't|never|"
        rf"always|really|hate|"
        r"avoid)\b",
    ),
    (
        "stated",
        "preference",
        rf"(?:i'm|i am) {_ADVERBS}(?:hopeless|useless|bad|terrible|awful|no good|clumsy|slow) (?:with|at|"
        rf"on) {_KIND}(?=[,.;!]|$| and\b)"
        r"|(?:i|we) (?:sleep|see|hear|walk|work|travel|eat|digest|read|type|concentrate|function) (?:very |really |"
        r"much )?(?:badly|poorly|best|"
        r"better|worst|slowly|lightly|light|little)\b|i (?:do|get) my best (?:work|sleep|ideas)\b|(?:i'm|"
        r"i am) at my best\b",
    ),
    (
        "stated",
        "preference",
        r"(?:you can |please )?(?:always |best |only )?(?:reach|contact|message|e-?mail|text) me (?:best |only |"
        r"always )?(?:on|by|via|"
        r"through|over) (?!(?:mon|tues|wednes|thurs|fri|satur|sun)day|my\b|the\b|this\b|that\b)[a-z-]+",
    ),
    (
        "stated",
        "constraint",
        r"(?:i|we) (?:\w+ly )?(?:observe|keep|celebrate) (?!(?:mon|tues|wednes|thurs|fri|satur|"
        r"sun)day\b)(?-i:[A-Z])\w+"
        r"|(?:i|we) (?:don't|do not) (?:work|travel|fly|drive|answer|meet|take \w+|do \w+) on (?:the )?(?:weekends?|"
        r"weekdays|sabbath|"
        r"(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b",
    ),
    (
        "stated",
        "fact",
        r"(?:i|we) (?:only |just |mostly )?speak(?: only| just| no| fluent| a little|"
        r" some)? (?-i:[A-Z][a-z]+)\b"
        r"|(?:i|we) (?:don't|do not) speak (?:any |much )?(?-i:[A-Z][a-z]+)\b|my (?:first|native|"
        r"mother) (?:language|tongue) is\b",
    ),
    ("stated", "fact", r"(?:i|we) travel with (?:an?|my|our|two|three|four|\d) (?!friend of|few)\w+"),
    (
        "stated",
        "fact",
        r"(?:i'm|i am) (?:over |nearly |almost |about )?(?:\w+|\d+(?:[.,]\d+)?) ?(?:foot|feet|ft|cm|met(?:re|"
        r"er)s?) (?:tall|\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven)\b",
    ),
    ("stated", "preference", rf"{_THING} (?:is|are) my (?:preferred|favou?rite|usual|default|go-to|regular) \w+"),
    (
        "stated",
        "preference",
        rf"{_KIND} (?:is|are) (?:always |usually |just |simply )?(?:too \w+|useless|no (?:good|use)|(?:very |"
        rf"really )?(?:hard|difficult|"
        r"impossible|painful|exhausting)) (?:for|to|on) me\b",
    ),
    (
        "stated",
        "preference",
        r"(?:(?:on|at|in|for|during) (?!(?:the|my|our|your|this|that|these|those|two|three|four|five|six|seven|some|"
        r"few|all|both)\b|\d)"
        r"(?:[a-z'-]+ ){0,2}?[a-z'-]{3,}s|when(?:ever)? (?:i|we)(?:'m| am| are|'re)? (?:travel|fly|drive|work|eat|"
        r"dine|stay|present)\w*"
        r"(?: (?:alone|abroad|out|for work|with \w+))?),? (?:i|we) (?:only |just |really |also )?(?:need|require|"
        r"take|drink|eat|wear|"
        rf"sit|sleep|use|order|book|choose|stay|travel|fly|rent|drive|walk|work|pay|bring|carry)\b{_IT}",
    ),
    (
        "rule",
        "preference",
        r"(?:please )?(?:use|show|quote|give me) (?:me )?(?:only )?(?:metric|imperial|celsius|fahrenheit|kilomet\w+|"
        r"miles|(?:12|24)-hour)\b",
    ),
    (
        "stated",
        "fact",
        r"(?:i'm|i am) (?:(?:now |already )?retired|self-employed|freelance|a (?:student|pensioner|senior|veteran|"
        r"minor|teacher|nurse|doctor|lawyer|"
        r"freelancer|contractor|non-?smoker|smoker)|an? (?:[\w-]+ ){0,2}?(?:engineer|developer|designer|manager|"
        r"analyst|"
        r"consultant|accountant|scientist|researcher|journalist|administrator|technician|frequent flyer)|"
        r"the (?:\w+ )?(?:admin\w*|owner|head|lead|manager|maintainer) (?:of|for) (?:our|"
        r"the|my))\b"
        r"|(?:i|we) (?:collect|earn) (?:miles|points)\b",
    ),
    (
        "stated",
        "fact",
        r"(?:i|we) have (?:an? |two |three |four |five |\d )(?:[\w-]+ ){0,2}?(?:kids?|children|child|sons?|"
        r"daughters?|toddlers?|bab(?:y|ies)|"
        r"twins|dogs?|cats?|pets?|(?:loyalty|frequent[- ]flyer|member\w*|rail|"
        r"season) (?:card|status|pass|ticket))"
        r"(?=[,.;!]|$| (?:and|so|who|with)\b)",
    ),
    # What someone has, works with and is allowed to do.
    (
        "stated",
        "fact",
        rf"(?:i|we) {_ADVERBS}(?:use|run|work (?:on|from|with)|have|own) (?:an? |my )?(?:\w+ ){{0,2}}?{_DEVICE}\b"
        rf"|(?:i'm|i am|we're) (?:on|running|using) (?:an? |my )?(?:\w+ )?{_DEVICE}\b"
        r"|(?:my|our) (?:\w+ )?(?:laptop|computer|machine|desktop|phone|tablet|browser|workstation)s? "
        rf"(?:is|are|runs?) (?:an? |on )?(?:\w+ )?{_DEVICE}\b",
    ),
    (
        "stated",
        "fact",
        r"(?:i|we) (?:only )?have (?:only |no |full |just )?(?:local )?(?:admin\w*|root|sudo|read-only|"
        r"guest) (?:rights?|access|"
        r"permissions?|privileges?)\b",
    ),
    (
        "stated",
        "fact",
        r"(?:i|we) (?:don't|do not) (?:own|have) (?:an? |any )?(?:car|vehicle|(?:[\w'-]+ )?licen[cs]e|credit cards?|"
        r"smartphone|"
        r"landline|printer|passport)\b|i never learn(?:ed|t) to \w+",
    ),
    (
        "stated",
        "fact",
        r"(?:i'm|i am|we're|we are|i work) (?:on|in) (?:the )?(?-i:(?:[A-Z][a-z]+ ){1,3}Time\b|[A-Z]{3,4}\b|UTC|"
        r"GMT)(?: time)?(?: zone)?(?=[,.;!]| and\b| so\b|$)"
        r"|my time ?zone is\b",
    ),
    (
        "stated",
        "fact",
        r"(?:my|our) (?:\w+ )?(?:office|team|department|company|firm|work ?day|shift|shop|store|building|"
        r"school) (?:\w+ly |always )?"
        r"(?:closes|opens|ends|starts|begins|finishes|shuts) (?:at|on|by|before|after)\b",
    ),
    # Habits: the adverb says that it lasts.
    ("stated", "habit", rf"(?:i|we) (?:{_HABITUALLY} (?:just |also |only )?){_UNLASTING}[a-z]+(?<!ing)\b{_IT}"),
    ("stated", "habit", rf"{_HABITUALLY},? (?:i|we) (?:just |also |only )?{_UNLASTING}[a-z]+(?<!ing)\b{_IT}"),
    (
        "stated",
        "habit",
        rf"i (?:only|exclusively) (?:ever )?(?:eat|drink|fly|travel|stay|book|use|take|buy|wear|shop|sit|choose|"
        rf"order|rent)\b{_IT}|(?:i|we) (?:eat|drink|fly|travel|stay|book|use|take|buy|wear) (?:only|nothing but|"
        rf"exclusively)\b",
    ),
    (
        "stated",
        "habit",
        rf"i {_UNLASTING}(?!(?:lose|receive|have (?:\w+ )?(?:problems?|issues?|errors?|"
        rf"trouble))\b)[a-z]+\b{_IT}.{{2,60}}?\b"
        r"(?:as a rule|by default|out of habit|for (?:religious|health|medical|ethical|safety) reasons|most (?:days|"
        r"nights|mornings|"
        r"evenings|weeks|weekends)|on (?:weekdays|weekends)|(?:every|each|once an?|twice an?) (?:single )?(?:day|"
        r"week|month|year|"
        r"summer|winter|spring|autumn|fall|morning|evening|night|weekend|(?:mon|tues|wednes|thurs|fri|satur|"
        r"sun)day))(?=[,.;!]|$| (?:and|but|so|for)\b)",
    ),
    # Likings: true, and easily said of something else than a lasting taste.
    (
        "taste",
        "preference",
        rf"(?:i|we) {_ADVERBS}(?:like|love|enjoy|adore)\b{_IT}{_ITS_OWN}(?! to (?:go|travel|leave|book|fly|stay|"
        rf"take|get|find|make|rent|buy|reserve|depart|watch|eat|dine|visit|attend|come|return)\b)",
    ),
    (
        "taste",
        "preference",
        rf"(?:i'm|i am) {_ADVERBS}(?:a (?:big |huge |great )?fan of|fond of|(?:really |very )?into)\b{_IT}",
    ),
)
_COMPILED = tuple((manner, kind, re.compile(rule, re.IGNORECASE)) for manner, kind, rule in _RULES)
_OPENING = re.compile(_BOUNDARY, re.IGNORECASE)
_FRONTED = re.compile(
    r"(?:(?:and|but|also|so),? )?(?:on|at|in|for|during|with|without|when|whenever|while|after|before|because of|"
    r"due to) "
    r"(?!(?:this|that|these|those|case|the (?:end|moment|meantime|past))\b)(?:[\w'-]+ ){1,5}?(?=(?:i|we|i'm|i've|"
    r"we're) )",
    re.IGNORECASE,
)
"""What stands ahead of the subject without a comma: `on long flights I prefer …`."""
_PREAMBLE = re.compile(_MAYBE, re.IGNORECASE)

_ASKED = re.compile(
    r"^(?:(?:also|and|but|ok|okay|oh|yes|so|hey|hi|hello|well)?,? ?(?:please |pls |just )?(?:(?:can|could|would|"
    r"will) you )?(?:please |pls |just )?)?"
    r"(?:(?:remember|keep in mind|bear in mind|note|make a note|take note|don't forget|do not forget|never forget)"
    r"(?: for (?:the future|next time|later))?(?P<that> that|,|:)?\s+(?!when\b|what\b|how\b|where\b|who\b|why\b|"
    r"to (?!always|never)|last\b|if\b|the time\b|me\b)"
    r"|(?:for (?:future reference|the future|next time)|from now on|from here on|going forward|in (?:the )?future|"
    r"henceforth|"
    r"just so you know|for the record|for your information|fyi)[,:]?\s+(?:that )?)",
    re.IGNORECASE,
)
_LATER_ON = re.compile(r"\b(?:from now on|going forward|in (?:the )?future|from here on|henceforth)\b", re.IGNORECASE)
_NOT_REAL = re.compile(
    r"\b(?:(?:even )?if i (?:were|was|had|could|won|got|ever)|were i|suppose|supposing|imagine|imagining|pretend|"
    r"hypothetical(?:ly)?|"
    r"let's say|what if|in theory|i wish|in another life|as if|role-?play)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:used to|back (?:when|then)|in the past|years ago|as a (?:kid|child|student|teenager)|when i was)\b",
    re.IGNORECASE,
)
_SINCE_CHANGED = re.compile(r"\b(?:now|these days|nowadays|no longer|anymore)\b", re.IGNORECASE)
_OTHERS_SAY = re.compile(
    r"\b(?:says?|said|tells?|told|thinks?|claims?|insists?|believes?|writes?|wrote|joked|asked|according to)\b(?! "
    r"(?:you|to you))[^,;]{0,30}$",
    re.IGNORECASE,
)
_ANOTHER = re.compile(rf"\b{_OTHERS}\b|^(?:he|she|they|it|you)\b", re.IGNORECASE)
_ANOTHER_SUBJECT = re.compile(rf"(?:\b{_OTHERS}|\b(?:he|she|they|you))(?: \w+)?$", re.IGNORECASE)
_COMPANY = re.compile(rf"{_OTHERS} and $", re.IGNORECASE)
_CONJOINED = re.compile(r"(?:^|[,;] )[^,;]*\b(?:and|or)\s+$", re.IGNORECASE)


def asked_to_remember(sentence: Sentence) -> int | None:
    """Return where the content begins when the user asks to have something kept; None otherwise."""
    found = _ASKED.match(sentence.bare)
    is_asking = sentence.is_question and not (found and re.search(r"\byou\b", found.group(), re.IGNORECASE))
    if found is None or is_asking or not sentence.text[found.end() :].strip(" ."):
        return None
    return found.end()


def speaks_of_later(sentence: Sentence) -> bool:
    """Tell whether the sentence sets a default for the time to come."""
    return _LATER_ON.search(sentence.bare) is not None


def is_hypothetical(text: str) -> bool:
    """Tell whether a text talks of what is not so."""
    return _NOT_REAL.search(text) is not None


def statements(sentence: Sentence) -> list[Statement]:
    """Return the statements of a sentence by where they begin: the first rule that fits a clause counts."""
    if is_hypothetical(sentence.bare):
        return []
    found: dict[int, Statement] = {}
    begins = [opening.end() for opening in _OPENING.finditer(sentence.bare)]
    if (fronted := _FRONTED.match(sentence.bare)) and not sentence.is_question:
        begins.append(fronted.end())
    for begin in begins:
        preamble = _PREAMBLE.match(sentence.bare, begin)
        place = preamble.end() if preamble else begin
        if place in found or not is_own(sentence.bare[:place], sentence.bare[place:]):
            continue
        for manner, kind, rule in _COMPILED:
            if rule.match(sentence.bare, place):
                found[place] = Statement(place, manner, kind)
                break
    return [found[begin] for begin in sorted(found)]


def is_own(before: str, after: str) -> bool:
    """Tell whether a clause is the user's own of today: not what others say, nor what used to be."""
    if _OTHERS_SAY.search(before) or _COMPANY.search(before):
        return False
    clause = after.split(", but ")[0]
    earlier = before[max(before.rfind(sign) for sign in ",;") + 1 :]
    return not (_PAST.search(clause) or (_PAST.search(earlier) and not _SINCE_CHANGED.search(earlier)))


def is_of_another(before: str, quote: str) -> bool:
    """Tell whether a quote speaks of another person, by itself or by the subject ahead of it."""
    return _ANOTHER.search(quote) is not None or _ANOTHER_SUBJECT.search(before) is not None
