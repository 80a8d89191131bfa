"""Circumstances: the wordings of what somebody observes, speaks, has, works with and is allowed to do."""

from everthread.memory.distill.fragments import ADVERBS, IT, KIND, THING
from everthread.memory.distill.manners import Rule

_DEVICE = (
    r"(?:mac(?:book|os| mini)?|imac|thinkpad|chromebook|windows(?: \d+)?(?! (?:seats?|tables?))|linux|ubuntu|debian|"
    r"fedora|i(?:phone|pad|os)|android|pixel|galaxy|samsung|firefox|chrome|safari|outlook|thunderbird|dell|lenovo)"
)
"""What someone works with, and keeps for years."""

CIRCUMSTANCES: tuple[Rule, ...] = (
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
    ("stated", "preference", rf"{THING} (?:is|are) my (?:preferred|favou?rite|usual|default|go-to|regular) \w+"),
    (
        "stated",
        "preference",
        rf"{KIND} (?:is|are) (?:always |usually |just |simply )?(?:too \w+|useless|no (?:good|use)|(?:very |"
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
        rf"sit|sleep|use|order|book|choose|stay|travel|fly|rent|drive|walk|work|pay|bring|carry)\b{IT}",
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
        rf"(?:i|we) {ADVERBS}(?:use|run|work (?:on|from|with)|have|own) (?:an? |my )?(?:\w+ ){{0,2}}?{_DEVICE}\b"
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
)
"""Circumstances by any wording; the first that fits counts."""
