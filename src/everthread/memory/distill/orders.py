"""Orders for the future, and how answers should look: the wordings of the user's rules."""

from everthread.memory.distill.fragments import OTHERS
from everthread.memory.distill.manners import Rule

_WORKPLACE = r"(?:my|our) (?:\w+ )?(?:employer|company|firm|office|department|organi[sz]ation|university|school|policy)"

ORDERS: tuple[Rule, ...] = (
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
        rf"{OTHERS} (?:is|are|must|may|should|shall|can) (?:not|never) (?:to )?(?:hear|know|learn|see|find out|read|"
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
)
"""Orders by any wording; the first that fits counts."""
