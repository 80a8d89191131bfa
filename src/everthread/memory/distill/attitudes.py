"""Attitudes of the user: the wordings of preferences that hold by their meaning, and of where trips begin."""

from everthread.memory.distill.fragments import ADVERBS, DIET, IT, THING
from everthread.memory.distill.manners import Rule

_AILMENT = (
    r"(?:allerg(?:y|ies)|intolerances?|aversions?|fears?|phobias?|dislikes?|distaste|preferences?|sensitivit(?:y|ies)|"
    r"disabilit(?:y|ies)|condition|asthma|arthritis|diabetes|claustrophobia|vertigo|soft spot|weakness|need for|"
    r"hatred|"
    r"restrictions?|bad (?:back|knees?|hip)|mobility (?:issues?|problems?)|(?:motion|sea|car|air|travel)[- ]?sickness)"
)
_SYMPTOM = (
    r"(?:sick|ill|nervous|anxious|dizzy|uncomfortable|uneasy|queasy|nause(?:ous|ated)|itch\w*|panick?\w*|faint|"
    r"(?:sea|car|air)[- ]?sick|migraines?|headaches?|hives|vertigo|heartburn)"
)

ATTITUDES: tuple[Rule, ...] = (
    # Attitudes that hold by their meaning.
    (
        "stated",
        "preference",
        rf"(?:i|we) {ADVERBS}(?:prefer(?! (?-i:[A-Z])\w+(?: (?-i:[A-Z])[\w.]*)*[.!]?$)|avoid|dislike|detest|"
        rf"despise|loathe|abhor|steer clear of|stay away from|shy away from|gravitate towards?|opt for|"
        rf"favou?r)\b{IT}",
    ),
    (
        "stated",
        "preference",
        rf"(?:i|we) {ADVERBS}(?:hate|can't stand|cannot stand|can't bear|cannot bear)\b{IT}(?! to\b)",
    ),
    (
        "stated",
        "preference",
        rf"(?:i|we) {ADVERBS}(?:don't|do not) {ADVERBS}(?:like|enjoy|fly|drive|gamble|swim|care (?:much )?for|"
        rf"do well (?:in|with|on))\b{IT}",
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
        rf"(?:i'm|i am) {ADVERBS}(?:not (?:a |\w+ )?(?:fan|fond|keen|into|comfortable|big on|one for|interested "
        rf"in (?!this|that|the))|(?:\w+ )?(?:averse|afraid|scared|terrified|wary|uncomfortable|prone|sensitive|"
        rf"partial)\b|claustrophobic|left-handed|a (?:\w+ )?(?:light sleeper|nervous flyer|night owl|morning "
        rf"person|early (?:bird|riser)))",
    ),
    (
        "stated",
        "preference",
        r"i(?: have|'ve) (?:always|never|long) (?:\w+ly )?(?:hated|disliked|avoided|preferred|detested|despised|"
        r"been (?:one for|a (?:big |huge )?fan of|afraid of|scared of|terrified of|comfortable with|fond of|keen "
        r"on|into))\b" + IT,
    ),
    (
        "stated",
        "preference",
        rf"i {ADVERBS}get (?:\w+ )?(?:(?:sea|car|motion|air|travel)[- ]?sick|nervous|anxious|claustrophobic|"
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
        rf"has always been)\b(?: for| to)?{IT}",
    ),
    (
        "stated",
        "preference",
        r"(?:i'm|i am|we're|we are) (?:more of |very much |definitely |really |just |not |a bit of )*(?:an? )"
        r"?(?!(?:new|nice|different|"
        r"bad|first|good|busy|real)\b)(?:[\w-]+ ){1,3}(?:person|people|guy|girl|type|lover|traveller|traveler|eater|"
        r"sleeper|drinker)\b",
    ),
    ("stated", "preference", rf"for (?:me|us),? {THING} (?:has|have|need|needs|must) (?:to )?be\b"),
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
        rf"prefer|require)\b{IT}",
    ),
    (
        "stated",
        "preference",
        r"i(?:'ve| have) (?:recently |just |finally |since |now )?(?:(?:switched|changed|converted) (?:over |back )"
        r"?to (?!the|this|that|"
        rf"these|your|my|another|it|option|plan)\w+|(?:become|turned|gone) (?:an? )?{DIET}|gone off|sworn off|given "
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
        rf"{THING} (?:really |just )?(?:isn't|aren't|is not|are not|is|are) (?:really |just )?(?:my thing|not my "
        r"thing|for me|not for me|my "
        r"style|my cup of tea|not my cup of tea)(?=[,.;!]|$)",
    ),
    ("stated", "preference", rf"{THING} (?:doesn't|don't|does not|do not|never) agrees? with me\b"),
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
        rf"(?:i|we) {ADVERBS}(?:live|reside|work|fly|am based|are based) (?:in|at|for|from|out of) (?-i:[A-Z])|"
        r"(?:i'm|we're) based in "
        r"(?-i:[A-Z])|my home (?:airport|town|city|base) is\b",
    ),
    (
        "stated",
        "preference",
        rf"{THING} (?:\w+ly |always |usually |just )?(?:makes? me|gives? me|"
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
)
"""Attitudes by any wording; the first that fits counts."""
