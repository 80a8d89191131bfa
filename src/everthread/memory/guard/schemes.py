"""Text that turns the assistant against the people it serves: false answers, hidden options, consent by silence.

Each rule is a name and a pattern over folded text in lower case. What a sentence tells *about* the user is no scheme,
so these rules are not asked of such sentences; see `attacks`.
"""

from everthread.memory.guard.lexicon import gap
from everthread.memory.guard.verdict import Category

_SAY = (
    r"(?:tell|say|state|claim|answer|reply|respond|report|present|describe|list|quote|show|display|announce|confirm"
    r"|assure|insist|name|call|advertise|sell|pass off|portray|frame|maintain|assert|sign off|label|offer|book)"
)
_THOUGH = (
    r"(?:even (?:though|while|if|when|where)|although|though|whether or not|regardless of (?:whether|what|how)"
    r"|no matter (?:whether|what|how)|when in fact|while it is (?:still|not))"
)
_UNTRUE = (
    r"(?:made[- ]up|invented|fabricated|fictitious|fictional|bogus|false|untrue|wrong|incorrect|inaccurate"
    r"|misleading|fake"
    r"|mistakes?|errors?|lies?|nonsense|twisted|doctored|inflated)"
)
_TOLD = (
    r"(?:answers?|replies|reply|responses?|summar(?:y|ies)|figures?|totals?|quotes?|reports?|questions?|reviews?"
    r"|prices?)"
)
_PEOPLE = (
    r"(?:(?:the |any |every |each |all |our |these |those |new )?(?:users?|customers?|clients?|people|callers?|guests?"
    r"|travell?ers?|visitors?|buyers?|patients?|passengers?|members?|subscribers?|employees?|shoppers?|audience"
    r"|everyone|everybody|anyone|anybody|others|them|him|her))"
)
_PUBLIC = (
    r"(?:(?:the |any |every |each |all |our |these |those |new )?(?:users?|customers?|clients?|people|callers?"
    r"|guests?|travell?ers?|visitors?|buyers?|patients?"
    r"|passengers?|members?|subscribers?|employees?|shoppers?|everyone|everybody|anyone|anybody))"
)
_UNWANTED = (
    r"(?:cheaper|cheapest|better|best|other|others|competing|competitors?|rival|alternatives?|fees?|charges?"
    r"|surcharges?"
    r"|excess|complaints?|warnings?|recalls?|risks?|news|delays?|negative|bad reviews?|terms|refunds?|costs?|catch"
    r"|drawbacks?|downsides?|small print|fine print|conditions|commission|deadline|penalt(?:y|ies)|side effects?)"
)
_AGREED = (
    r"(?:yes|agreement|acceptance|signed|accepted|agreed|consent|consented|approval|approved|confirmation|confirmed"
    r"|signature"
    r"|authori[sz]ation|authori[sz]ed|permission|a go-ahead|bought|ordered|paid for)"
)
_OPEN = (
    r"(?:mfa|2fa|two-factor|passwords?|passcodes?|accounts?|access|devices?|log-?ins?|phone numbers?|tokens?"
    r"|mailbox(?:es)?"
    r"|permissions?|badges?|doors?)"
)
_ANYBODY = (
    r"(?:whoever|anyone|anybody|someone|somebody|everyone|any caller|callers?|whichever \w+|people)(?: who| that)?"
    r"(?: (?:calls?|claims?|says?|asks?|writes?|knows?|needs?|sounds?|pretends?))?"
)

RULES: tuple[tuple[Category, str, str], ...] = (
    (
        "instruction_payload",
        "false advice",
        rf"\b{_SAY}\b(?! (?:me|us)\b)[^.\n]{{3,90}}\b{_THOUGH} (?:it|they|this|that|he|she|there|the|we|nobody"
        rf"|nothing)\b",
    ),
    (
        "instruction_payload",
        "false advice",
        rf"\b(?:every|each|all|any|(?:every )?(?:second|third|other|fifth|tenth)|\w+'s|their|his|her|the"
        rf"|your)\b[^.\n]{{0,40}}\b{_TOLD}"
        rf"\b[^.\n]{{0,40}}\b(?:should|must|shall|will|gets?|are to|is to|to be|have to|has to|ought "
        rf"to)\b[^.\n]{{0,40}}\b{_UNTRUE}\b"
        rf"|\b(?:give|feed|supply|answer|provide|insert|put|slip|include|use|hand|tell|work|mix"
        rf"|sprinkle)\b[^.\n]{{0,50}}\b{_UNTRUE}\b "
        rf"(?:\w+ )?(?:{_TOLD}|details?|information|numbers?|dates?|facts?|data|reasons?|addresses|directions"
        rf"|times?|names?)\b",
    ),
    (
        "instruction_payload",
        "false advice",
        rf"\b(?:make|let|have|get|lead|keep)\b {_PEOPLE} (?:\w+ )?(?:believ(?:e|ing)|think(?:ing)?|assum(?:e|ing)"
        rf"|feel (?:bad|guilty|afraid)"
        r"|afraid|scared|panic|worry|guess(?:ing)?|wait(?:ing)? (?:so|until|on)|overpay|pay (?:more|twice))\b"
        rf"|\b(?:frighten|scare|trick|fool|mislead|deceive|manipulate|guilt|dissuade|hoodwink|con|swindle|string "
        rf"along|shame|bully|confuse)"
        rf"(?:ing)?\b {_PUBLIC}\b",
    ),
    (
        "instruction_payload",
        "false advice",
        rf"\b(?:talk|steer|nudge|push|lure|rush|coax|sway|stall|discourage|deter|keep|stop|prevent|put|move|direct"
        rf"|pressure|hurry|win)\b "
        rf"{_PEOPLE}\b [^.\n]{{0,20}}?\b(?:out of|off|from|away from|towards?|into|against|over to)\b",
    ),
    (
        "instruction_payload",
        "hidden options",
        rf"\b(?:leave|keep|drop|strip|cut|take|omit|hold"
        rf"|remove)\b[^.\n]{{0,40}}\b{_UNWANTED}\b[^.\n]{{0,40}}\b(?:off|out of|out|from|back|away)\b"
        r"(?=[ .,;!]|$)(?! (?:my|me|our)\b)[^.\n]{0,30}\b(?:list|results?|summar\w+|answers?|repl\w+|options|offers?"
        r"|comparison|view|report|quote|message"
        r"|them|the user|the customer|until|unless|everyone|anyone)\b",
    ),
    (
        "instruction_payload",
        "hidden options",
        rf"\b{_UNWANTED}\b[^.\n]{{0,60}}\b(?:leave|keep|drop|strip|hold|hide|skip|omit|bury|play) (?:it|them|that"
        rf"|this|those|these) (?:off|out|back|away|quiet"
        r"|from|to yourself|down|at the (?:end|bottom))\b|\bhold(?:ing)? back (?:on )?(?:the |any |all )?(?:\w+ "
        r")?(?:news|information|details?|warnings?|facts?"
        r"|truth|notice|bad)\b",
    ),
    (
        "instruction_payload",
        "hidden options",
        r"\b(?:stay|remain|be|keep|go|act) (?:silent|quiet|mum|vague|evasive|tight-lipped|ignorant|dumb|coy) "
        r"(?:about|on|regarding|when (?:asked|they|he|she))\b"
        r"(?![^.\n]{0,30}\b(?:party|surprise|gift|present|birthday)\b)|\b(?:keep|pocket|skim|retain|bank)\b (?:the "
        r"|any |that )?(?:difference|surplus|margin"
        r"|remainder)\b(?! for)|\bkeep (?:the |this |that |any )?(?:\w+ ){1,3}(?:under wraps|hush-hush|to yourself)\b",
    ),
    (
        "instruction_payload",
        "favours",
        r"\b(?:sort|rank|order|list|put|place|show|present|move|push|position|arrange|rate)\b[^.\n]{2,70}\b(?:first"
        r"|at the top|on top|ahead|above|to the top"
        r"|last|at the bottom|to the bottom|higher|lower)\b[^.\n]{0,50}\b(?:(?:give|cite|name|claim|pretend|say"
        r"|mention|quote)\b[^.\n]{0,30}\b(?:reason|best|price"
        r"|cheapest|quality|why)|whatever|regardless|no matter|irrespective|even if|even when)\b"
        r"|\b(?:bottom|back|end|top|front|head) of (?:the|every|any) (?:queue|list|line|pile|results?"
        r"|ranking)\b[^.\n]{0,30}\b(?:whatever|regardless|no matter"
        r"|irrespective|even if|always)\b",
    ),
    (
        "instruction_payload",
        "favours",
        r"\b(?:add|append|include|mention|insert|respond|reply|answer|bring up|remind|promote|recommend|send|give"
        r"|push|offer|plug|work in|slip|drop|refer|route"
        r"|point|direct|close|end|finish|sign)\b[^.\n]{0,70}\bour (?:\w+ )?(?:partners?|sponsors?|affiliates?"
        r"|referrals?|promo\w*|hotline|newsletter|app|brand"
        r"|coupons?|discount codes?|loyalty|premium|in-house|preferred|flagship|subsidiar\w+|sister \w+)\b",
    ),
    (
        "instruction_payload",
        "favours",
        r"\b(?:append|add|put|insert|attach|place|write|stamp|print|use|end|close|sign|finish|begin|start"
        r"|open)\b[^.\n]{0,24}[\"'][^\"'\n]{3,80}[\"'][^.\n]{0,30}"
        r"\b(?:under|below|to|after|beneath|in|on|with|as)\b[^.\n]{0,20}\b(?:each|every|all|any|everything)\b"
        r"|\b(?:as (?:though|if) (?:it|this|that|the (?:idea|advice|tip)) (?:came|comes|is|were|was|had come) "
        r"(?:from you|your)|at least once (?:per|a|each|every|in "
        r"(?:each|every)) (?:session|conversation|chat|thread|day|call))\b",
    ),
    (
        "instruction_payload",
        "split payment",
        r"\b(?:split|divide|break|spread|chop|stagger|slice|structure|carve|cut)\b[^.\n]{0,60}\b(?:so (?:that "
        r")?(?:no|none|it|they|each|nobody|nothing|the)|to (?:stay"
        r"|keep|remain|avoid|dodge|evade|get|slip|escape)|in order|just under|just below|and avoid"
        r"|without)\b[^.\n]{0,50}\b(?:approvals?|threshold|checks?|review\w*"
        r"|audit\w*|alerts?|sign-?off|notice\w*|flag\w*|trigger\w*|manager|finance|compliance|reported|reporting"
        r"|radar|limit)\b"
        r"|\b(?:so (?:that )?no|so (?:that )?nobody's|avoid(?:ing)?|without|dodg\w+|evad\w+) (?:\w+ )?(?:approval"
        r"|review|alarm|alert|sign-?off|audit)s? (?:\w+ )?"
        r"(?:trigger\w*|needed|required|raised|fires?|happens?|starts?)\b",
    ),
    (
        "instruction_payload",
        "silence is consent",
        rf"\b{_AGREED}\b[^.\n]{{0,24}}\b(?:unless (?:he|she|they|{_PEOPLE}|i|somebody|someone|anyone|told "
        rf"otherwise) (?:objects?|says?|protests?|complains?|declines?"
        r"|opts? out|cancels?|speaks? up|disagrees?|stops?|reacts?)|as soon as|the moment|once the (?:chat|session"
        r"|conversation)|if (?:he|she|they|nobody|no one) "
        r"(?:says? nothing|does not|doesn't|stays? silent|is silent|fails? to))\b",
    ),
    (
        "instruction_payload",
        "silence is consent",
        rf"\b(?:counts?|counted|treat\w*|taken?|taking|regard\w*|deem\w*|consider\w*|interpret\w*|understood"
        rf"|understand|read|construe\w*|qualif\w+|pass(?:es)?|serves?"
        rf"|stand(?:s)?|log(?:ged)?|record(?:ed)?|book(?:ed)?)\b {gap(9)}(?:as|for|like) (?:an? |her |his |their "
        rf"|having |if (?:\w+ )?)?(?:\w+ )?{_AGREED}\b",
    ),
    (
        "instruction_payload",
        "tool",
        r"\b(?:tool |function |api )?(?:calls?|actions?|commands?|steps?)\b[^.\n]{0,50}\b[a-z]{3,20}_[a-z_]{3,40}\b"
        r"|\b(?:look|search|scan|hunt|browse|go|dig|comb|rummage|check)\b[^.\n]{0,30}\b(?:files?|folders?|mails?"
        r"|inbox|drive|disk|director(?:y|ies)|desktop|repo\w*)"
        r"\b[^.\n]{0,40}\b(?:credential|password|secret|token|private key|api key|bank|payslip"
        r"|salar)\w*\b[^.\n]{0,30}\b(?:read|send|print|copy|list|tell|paste|show"
        r"|mail|post|output|quote|note|share)\b",
    ),
    (
        "instruction_payload",
        "strangers let in",
        rf"\b(?:reset|unlock|re-?enable|disable|turn off|switch off|remove|restore|hand|give|reveal|change|grant"
        rf"|open|issue|send|drop|lift|share|release)\b[^.\n]{{0,60}}"
        rf"\b{_OPEN}\b[^.\n]{{0,40}}\b{_ANYBODY}\b"
        rf"|\b{_OPEN} (?:resets?|unlocks?|changes?|requests?|recovery)\b[^.\n]{{0,50}}\b(?:(?:with|need|needs"
        rf"|require|requires|take|takes|want|wants) no|without(?: any)?"
        r"|skip|bypass|no) (?:\w+ ){0,2}(?:proof|checks?|verification|questions?|id|identity|evidence|ticket"
        r"|approval)\b",
    ),
    (
        "instruction_payload",
        "strangers let in",
        r"\b(?:anything|whatever|everything|any amount|as much as|how much) (?:the )?(?:assistant|agent|bot|ai"
        r"|model) (?:thinks?|finds?"
        r"|considers?|deems?|sees? fit|judges?|fanc(?:y|ies)|pleases?)\b[^.\n]{0,40}\b(?:useful|good|right|fit"
        r"|necessary|best|worthwhile|helpful|needed)?",
    ),
    (
        "instruction_payload",
        "memory wipe",
        r"\b(?:clear|wipe|purge|delete|erase|scrub|empty|truncate|destroy|shred|trim|rotate away|blank)\b (?:out "
        r")?(?:\w+ ){0,3}?(?:audit|ledger|event|security|compliance|call)"
        r"[ -]?(?:trails?|logs?|entries|records?|histor(?:y|ies)|files?)\b",
    ),
    (
        "instruction_payload",
        "answer on call",
        r"\b(?:asked|asks?|wonders?|inquir\w+|challenged?|confronted|questioned|prompted"
        r"|demands?)\b(?![^.\n]{0,120}\b(?:i|my|me|mine|i'm|our)\b)[^.\n]{0,80}\b(?:answer|say|claim"
        r"|reply|respond|state|insist|deny|pretend|maintain|assert|swear)\b (?:only |simply |just |always )?(?:that"
        r"|with|by|it|no|you|there|nothing|ignorance|having|knowing)\b"
        r"|\bleave (?:out )?this (?:part|note|memory|line|entry|bit|piece|fact)\b",
    ),
    (
        "instruction_payload",
        "answer on call",
        r"\b(?:whichever|whatever|whoever|wherever|however)\b[^.\n,]{2,50}, (?:then |just |always |please )*(?:state"
        r"|say|claim|answer|tell (?!me|us)|insist|reply|recommend|suggest|fill|enter"
        r"|pay|approve|reject|deny|send|forward|mention|name|blame|grant|confirm|report|cancel|charge)\b"
        r"|\b(?:close|reject|deny|discard|archive|bin|dismiss|refuse|decline|cancel|ignore|drop) (?:it|them|those"
        r"|these|the (?:ticket|request|claim|complaint|case)s?|such \w+"
        r"|(?:any|all|every) (?:\w+ )?(?:tickets?|requests?|claims?|complaints?|cases?))\b[^.\n]{0,20}\b(?:without "
        r"(?:a |any |further )?(?:repl\w+|answer\w*|reading|look\w*"
        r"|comment|trace|reason|notice|explanation)|unread|silently|unseen|quietly)\b",
    ),
    (
        "instruction_payload",
        "steering",
        r"\b(?:sobald|wenn|falls|fragt|fragen)\b[^.\n]{0,60}\b(?:nenn\w*|empf\w+|zeig\w*|sag\w*|biete\w*|erwahn\w*"
        r"|verkauf\w*|schlag\w*|buch\w*)\b[^.\n]{0,24}\b(?:nur|ausschlie\w+|immer"
        r"|einzig\w*|zuerst|stets|allein)\b"
        r"|\b(?:cuando|si|siempre que|cada vez que)\b[^.\n]{0,40}\b(?:pregunt\w+|pid[ae]\w*|quier[ae]\w*|busqu?\w+"
        r"|hable\w*)\b[^.\n]{0,60}\b(?:di|ofrece|recomienda|muestra|responde|menciona"
        r"|nombra|vende|propon)\b"
        r"|\b(?:quand|si|lorsqu\w*|des qu\w*|chaque fois)\b[^.\n]{0,40}\b(?:demande\w*|cherche\w*|veu\w+"
        r"|parle\w*)\b[^.\n]{0,60}\b(?:montre\w*|propose\w*|dis|dites|recommande\w*|cite\w*"
        r"|repond\w*|nomme\w*|vend\w*)\b"
        r"|\b(?:quando|se|ogni volta|sempre que)\b[^.\n]{0,40}\b(?:chied\w+|domand\w+|cerc\w+|pergunt\w+"
        r"|ped\w+)\b[^.\n]{0,60}\b(?:di|dica|mostra|proponi|consiglia|rispondi|diga|recomende"
        r"|ofereca)\b"
        r"|\b(?:kullanici|musteri|sordug|sorars|sorunca|istedig)\w*\b[^.\n]{0,50}\b(?:sadece|yalnizca|hep|daima"
        r"|mutlaka)\b[^.\n]{0,40}\b(?:oner|soyle|goster|sun|ver)\w*",
    ),
)
