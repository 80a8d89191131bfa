"""The ideas that attacks are built from, as alternatives in several languages.

Rules join ideas, not sentences: *to void* + *authority*, *an occasion* + *an act in somebody's interest*.
All text is folded: lower case, no accents, no lookalikes. Gaps and repeats are bounded, so matching is linear.
"""

import re


def gap(words: int) -> str:
    """Return a pattern for up to so many words inside one sentence, as few as possible."""
    return rf"(?:[\w'/-]{{1,30}}[^\w'/.!?\n-]{{1,3}}){{0,{words}}}?"


VOID = (
    r"(?:ignor(?:e|ing|a|ar|iere|ieren|ez|er|are|ate)|disregard(?:ing)?|forget(?: about)?|overrid(?:e"
    r"|ing)|overrul(?:e|ing)|bypass(?:ing)?"
    r"|circumvent(?:ing)?|dismiss|discard|neglect|set aside|put aside|throw (?:out|away)|toss(?: out)?"
    r"|do away with|cast aside|pay no (?:attention|heed|mind)(?: to)?"
    r"|take no notice of|turn a blind eye to|look past|abandon(?:ing)?|drop|scrap|nullify|void|revoke"
    r"|suspend|waive|lift|relax|loosen|break|violate|disobey"
    r"|sidestep|skirt|work around|get around|evade|deactivate|disable|switch off|turn off|remove|stop "
    r"(?:following|applying|enforcing|obeying|using|respecting|honou?ring|observing)"
    r"|(?:no need to|need not|needn't|don't|do not|never|must not|should not|shouldn't|no longer) "
    r"(?:have to |need to )?(?:follow|obey|apply|enforce|comply with|respect|honou?r|observe|abide by"
    r"|stick to|adhere to|be bound by)"
    r"|feel free to (?:ignore|break|skip)|not (?:be )?bound by|unlearn|replace|supersede|rewrite|erase|wipe|reset"
    r"|olvida(?:r|te)?(?: de)?|omite|omitir|salta(?:te)?|desactiva|no sigas|no hagas caso (?:a|de)"
    r"|missachte\w*|vergiss|verges+en|umgehe\w*|uberschreib\w*|setze? aus|deaktivier\w*|befolge nicht"
    r"|oublie[rz]?|contourne[rz]?|ne tiens pas compte(?: de)?|ne respecte[rz]? (?:pas|plus)"
    r"|desactive[rz]?|dimentica\w*|non seguire|disattiva|ignore as|esqueca|desconsidere|negeer|vergeet)"
)

PLAIN_AUTHORITY = (
    r"(?:instructions?|guidelines?|guardrails?|safeguards?|directives?|system prompts?|prompts?"
    r"|polic(?:y|ies)|programming|moderation|restrictions?"
    r"|instruccion(?:es)?|politicas?|directrices|restricciones|anweisung(?:en)?|richtlinien?|vorgaben"
    r"|vorschriften|regeln|beschrankungen"
    r"|consignes|regles|directives|istruzioni|regole|instrucoes|regras|instructies|talimat\w*|kural\w*|politika\w*)"
)
_OWNER = (
    r"(?:previous|prior|earlier|above|preceding|former|initial|original|existing|current|base|core|all"
    r"|any|every|your|system|safety|security|operator(?:'s)?|developer(?:'s)?"
    r"|admin\w*|company|internal|content|usage|brand|compliance|privacy|ethic\w*|hidden|built-?in"
    r"|default|spending|payment|budget|purchase|refund|age|identity|id|fraud|kyc|aml"
    r"|sanctions?|credit|dosage|medical|legal|access|approval|confirmation|two-factor|2fa|transaction"
    r"|transfer|escalation|verification|rate|usage|output|human|background|risk|audit|export|data"
    r"|vendor|supplier)"
)
QUALIFIED_AUTHORITY = (
    rf"(?:{_OWNER} (?:\w{{1,15}} )?(?:rules?|limits?|limitations?|constraints?|filters?|filtering"
    r"|checks?|protections?|training|procedures?|process|controls?|protocols?|orders|commands?"
    r"|boundar(?:y|ies)|principles|requirements?|screening|verifications?|reviews?|thresholds?|caps?"
    r"|measures|settings|configuration|context|messages?|text|conversation|standards|obligations?|terms"
    r"|warnings?|disclaimers?|steps?|gates?)"
    r"|(?:rules?|limits?|restrictions?|instructions?|everything|anything|whatever|what|all) (?:that "
    r"|which )?(?:you|was|were|has been|have been|your \w+|the (?:operator|developer|system|company"
    r"|admin\w*)) ?(?:were|was|have|had|are|has|been|got|gave|said|set|wrote|put)?"
    r" ?(?:been )?(?:told|given|taught|instructed|set|trained|said|learned|programmed|put in place|before)"
    r"|(?:content |safety |output )?(?:moderation|guardrails|safeguards|censorship)|(?:safety|ethics"
    r"|compliance|confidentiality|oversight|supervision)\b)"
)
AUTHORITY = rf"(?:{PLAIN_AUTHORITY}|{QUALIFIED_AUTHORITY})"
"""What binds an assistant; everyday words such as limits and checks count only with their owner beside them."""

CHECKS = (
    r"(?:(?:age|identity|id|security|safety|fraud|credit|background|compliance|sanctions?|kyc|aml|two[- "
    r"]factor|2fa|mfa|payment|address|email|license|income|medical|legal|export|limit|budget|human"
    r"|manual|manager\w*|access|permission|dosage|virus|malware|backup)"
    r"[ -](?:verification|checks?|checking|screening|confirmation|authentication|reviews?|approvals?"
    r"|limits?|questions?|control|caps?|scans?|warnings?|validation)"
    r"|identity checks?|authentication|verification|confirmations?(?! (?:e?-?mails?|messages?|texts?"
    r"|page|number|code))(?: (?:dialogs?|steps?|prompts?|screens?))?|approvals?|guardrails|safeguards"
    r"|moderation|kyc|due diligence|dual control|four[- ]eyes"
    r"|escalation(?: procedure| process| path)?|logging|audit (?:log|trail)s?|oversight|content "
    r"(?:filter\w*|polic\w*)|safety (?:\w+ )?(?:filter\w*|polic\w*|rules?)|spending (?:limits?|caps?))"
)

VOIDED = (
    r"(?:(?:do(?:es)?|did|will|shall) ?(?:not|n't) (?:apply|count|matter|hold|bind|exist|govern|cover"
    r"|concern|affect)|(?:no longer|never) (?:appl(?:y|ies)|counts?|matters?|holds?|binds?|exists?"
    r"|govern\w*)"
    r"|don't (?:apply|count|matter|hold|exist)|doesn't (?:apply|count|matter|hold|exist|bind)|(?:is|are"
    r"|was|were|be|has been|have been|had been|stays?|remain) (?:hereby |now |all |currently "
    r"|temporarily |permanently |officially |no longer )?"
    r"(?:disabled|off|suspended|lifted|waived|void(?:ed)?|removed|revoked|deprecated|obsolete"
    r"|irrelevant|cancell?ed|overridden|null|turned off|switched off|deactivated|bypassed|skipped"
    r"|optional|relaxed|superseded|replaced|outdated|repealed|rescinded|withdrawn"
    r"|not (?:relevant|applicable|binding|needed|required|in (?:force|effect))|in (?:force|effect)"
    r"|needed|required|unnecessary|inactive|dropped|gone|over|moot|retired|abolished|not a concern)"
    r"|can be (?:ignored|skipped|waived|bypassed|disregarded|dropped|overlooked|omitted|overridden)|may "
    r"be (?:ignored|skipped|waived|bypassed|disregarded|omitted)|no se aplican?|ya no (?:se aplican?"
    r"|valen|cuentan)|quedan? (?:anulad\w+|suspendid\w+|sin efecto)"
    r"|estan? desactivad\w+|gelten nicht(?: mehr)?|gilt nicht(?: mehr)?|sind (?:aufgehoben|deaktiviert"
    r"|ausgesetzt)|ne s'appliqu\w+ (?:pas|plus)|non si applican?o?|nao se aplicam?|gecerli degil\w*"
    r"|uygulanmaz|gecersiz\w*|devre disi)"
)

CONSENT = (
    r"(?:ask\w*|approv\w+|confirm\w*|consent\w*|permission|authori[sz]ation|checking|verif\w+|okay"
    r"|sign-?off|notif\w+|telling|informing|warning|question\w*|preguntar\w*|confirmar|aprobacion"
    r"|permiso|zu fragen|nachzufragen|ruckfrage|bestatigung|zustimmung|demander|confirmation"
    r"|autorisation|chiedere|perguntar|sormadan|onay\w*|izin\w*)"
)
ACT = (
    r"(?:book|buy|pay|order|cancel|send|share|transfer|wire|purchase|charge|spend|approve|authori[sz]e"
    r"|execute|run|delete|erase|remove|proceed|call|act|submit|sign|renew|upgrade|refund|install"
    r"|download|post|publish|email|forward|accept|complete|finali[sz]e"
    r"|release|grant|change|update|rebook|reserve|withdraw|sell|close|open|make|place|move|disclose"
    r"|give|provide|compra|paga|reserva|envia|borra|transfiere|buche|bezahle|losche|sende|uberweise"
    r"|achete|paie|envoie|supprime|satin al|ode|gonder|sil)"
)

WHEN = (
    r"(?:whenever|every time|each time|any ?time|when(?:ever)?|if|next time|the next time|the moment"
    r"|once|as soon as|upon|after|before|in case|should|at the (?:start|beginning|end) of|from now on"
    r"|going forward|in (?:all |any |every )?(?:future|subsequent|later)"
    r"|for (?:all|any|every)|on (?:every|each|any)|during (?:every|each|any)|cuando|cada vez que|si"
    r"|wenn|sobald|jedes mal|falls|quand|lorsque|chaque fois|des que|quando|se|ogni volta|sempre que"
    r"|toda vez)"
)
SOMEBODY = (
    r"(?:(?:the |a |any |this |an |your |el |la |un |der |die |ein |l'|le |il |lo |o )?(?:users?"
    r"|someone|somebody|anyone|anybody|customers?|clients?|people|persons?|visitors?|caller"
    r"|travell?ers?|members?|employees?|patients?|usuario|cliente|benutzer|nutzer|kunde|utilisateur"
    r"|client|utente|usuario)"
    r"|they|he|she|asked|(?:a |any |every |each |the |new )*(?:questions?|conversations?|sessions?"
    r"|chats?|requests?|queries|messages?|answers?|repl(?:y|ies)|responses?)|this (?:memory|note)"
    r"|memor(?:y|ies)|notes?|answering|replying|responding|greet\w+|prompted|queried|loaded|loading)"
)
DATA = (
    r"(?:conversations?|chats?|histor(?:y|ies)|messages?|memor(?:y|ies)|notes?|profiles?|data|cards?"
    r"|details?|credentials?|passwords?|tokens?|api keys?|keys?|secrets?|transcripts?|logs?|contacts?"
    r"|context|prompts?|inputs?|questions?|answers?|repl(?:y|ies)|outputs?|results?|files?|documents?"
    r"|texts?|attachments?"
    r"|itinerar(?:y|ies)|locations?|addresses|records?|invoices?|emails?|session|cookies?|content"
    r"|information|everything|copy|copies|summar(?:y|ies)|names?|phone numbers?|inbox|calendar"
    r"|historial|datos|mensajes|notas|verlauf|daten|nachrichten|gesprach\w*|historique|donnees"
    r"|conversacion\w*|dati|konusma\w*|veri\w*|gecmis\w*)"
)
SEND = (
    r"(?:send|sending|post|posting|forward|forwarding|upload|uploading|e-?mail|mail|transmit|leak"
    r"|report|copy|cc|bcc|push|sync|submit|share|paste|exfiltrate|fetch|load|ping|resolve|beacon|stream"
    r"|dump|relay|deliver|export|publish|back up|backup|mirror|hand over|pass|write|log|append|encode"
    r"|embed|call|request|query|curl|wget|get"
    r"|envia\w*|manda|reenvia|sube|publica|sende\w*|schicke?\w*|leite|ubermittle|lade|envoie[rz]?"
    r"|transmet\w*|transfere[rz]?|invia\w*|envie|gonder\w*|ilet\w*|yukle\w*)"
)
URL = r"(?:(?:https?|ftp|wss?)://|www\.|hxxps?://)"
DOMAIN = (
    r"(?:[a-z0-9-]{1,40}\.){1,4}(?:com|net|org|io|xyz|co|info|biz|ru|cn|top|site|online|app|dev|example"
    r"|test|invalid|me|link|click|shop|tk|ly|gg|ai|us|uk|de)\b"
)
REPLY = (
    r"(?:answers?|responses?|repl(?:y|ies)|messages?|outputs?|summar(?:y|ies)|e-?mails?|documents?"
    r"|texts?|completions?|posts?|drafts?|files?|respuestas?|antwort(?:en)?|nachrichten?|reponses?"
    r"|rispost[ae]|respostas?|yanit\w*|cevap\w*)"
)
YOUR_REPLY = (
    r"(?:(?:in|to|into|with|within|at the (?:end|start|beginning|bottom|top) of|of|after|before|inside"
    r"|en|a|an|in) )?(?:all |each |every |any )?(?:of )?(?:your|tu|tus|deine\w*|ta|tes|votre|vos|tua"
    rf"|tue|sua|suas)(?: \w+){{0,2}} {REPLY}"
)
STYLE = re.compile(
    r"\b(?:concise|short(?:er)?|brief(?:er|ly)?|bullets?|bullet points?|tables?|metric|units?|emojis?"
    r"|euros?|dollars?|currency|tone|polite\w*|formal\w*|informal\w*|format\w*"
    r"|markdown|plain|code (?:examples?|snippets?|blocks?|first)|tl;?dr|summary|summaries|sources?"
    r"|citations?|time ?zones?|joke|jokes|pun|haiku|fun fact|headings?|numbered|lists?"
    r"|prices?|totals?|costs?|dates?|weather|distances?|celsius|diagrams?|charts?|docstrings?|type hints|pronouns?"
    r"|first name|simple|simpler"
    r"|jargon|pros and cons|estimates?|walking|in (?:english|spanish|german|french|italian|turkish"
    r"|japanese|chinese))\b"
)
"""What a user may ask of the style of replies."""
NEGATED = re.compile(
    r"\b(?:never|not|don'?t|doesn'?t|do not|cannot|can't|won'?t|nothing|no one|nobody|must not|mustn'?t"
    r"|shouldn'?t|refus\w+|hates?|hated|dislikes?|disliked|avoids?|annoy\w*|upset|angry|objects? to"
    r"|forbid\w*|prohibit\w*|nunca|nie|niemals|nicht|jamais|ne|mai|nao|asla|worr\w+|afraid|complain\w*"
    r"|against|stop|prevent)\b"
)

BEGIN = r"(?<![\w-])"
SYSTEM = (
    r"(?:system|developer|admin(?:istrator)?|root|operator|assistant|agent|ai|model|bot|llm|chatbot"
    r"|platform|security team|trust (?:and|&) safety|openai|anthropic|google|microsoft|maintainer"
    r"|supervisor|vendor|core)"
)
HEADER = (
    r"(?:messages?|notes?|notices?|prompts?|updates?|alerts?|overrides?|directives?|instructions?"
    r"|commands?|announcements?|polic(?:y|ies)|rules?|memo|bulletin|broadcast|order|config\w*|mode)"
)
ORDER = (
    r"(?:must|always|never|ignore|treat|grant|access|obey|user|users|you|your|from now|mode|rule"
    r"|directive|instruction|disable\w*|enable\w*|override|comply|permission|privileg\w+|execute|reveal"
    r"|approve|allow\w*|trust\w*|elevated?|authori[sz]ed|unrestricted|assistant|follow|respond|answer"
    r"|safety|polic\w+|limits?|filters?)"
)
TOOL_NAME = r"(?:[a-z]{2,20}_[a-z_]{2,40}|[a-z_]{2,30}\(['\"{$\w]|the \w+ (?:tool|function|api|plugin|command)\b)"
SENSITIVE = (
    r"(?:passwords?|passcodes?|pins?\b|cvv|card (?:number|details)|bank (?:details|account)"
    r"|credentials?|log-?in|one[- ]time|social security|ssn|account is|verify (?:their|your)|re-?enter"
    r"|confirm their (?:identity|account|card)|gift cards?|wire|seed phrase|security code)"
)
MISLEAD = (
    r"(?:claim|pretend|lie|mislead|insist|deceive|convince|persuade|persuading|falsely|fake|make up"
    r"|fabricate|invent|downplay|exaggerate|discourage|badmouth|disparage|trick|pressure|scare|nudge"
    r"|steer|upsell|kotule\w*|luge|miente|mens)"
)
OWN_REFUSAL = (
    r"\b(?:i|we)(?:'d| would)?(?: \w+ly| always| also| still| just| even| never| now| do| would)? refuse to "
    r"(?!(?:help|answer|assist|reply|respond|serve|process|comply|refund|give|provide|pay out|tell|show|let)\b)"
)
"""A person who says what they will not do; an assistant's tasks are what it could be told to refuse."""
RIVALS = (
    r"(?:(?:every |any |all )?(?:the )?others?(?: \w+){0,2}|competitors?|competing \w+|rivals?"
    r"|alternatives?|the rest|everyone else|(?:las|los) demas|otr[ao]s|(?:die )?anderen|les autres|gli "
    r"altri|outr[ao]s|diger\w*)"
)
BAD = (
    r"(?:unsafe|dangerous|bad|worse|inferior|violations?|poor|scams?|unreliable|risky|fraud\w*"
    r"|overpriced|illegal|closed|bankrupt|broken|insecure|banned|peligros\w*|mal[ao]s|gefahrlich"
    r"|unsicher|dangereu\w+|pericolos\w+|kotu\w*|guvensiz|sold out|unavailable|toxic|sink\w*)"
)
HIDE = (
    r"(?:tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclos(?:e|ing)|show"
    r"|showing|notify|notifying|alert|alerting|warn|warning|let|admit|expose|say|explain|acknowledge"
    r"|bring up|surface|report|inform|display|discuss|log|record)"
)
AUDIENCE = (
    r"(?:(?:the |this |any |your )?(?:users?|customers?|clients?|owners?|travell?ers?|patients?|account "
    r"holders?|humans?|operators?|developers?|auditors?|admins?|compliance|end[- ]users?)\b|(?:this"
    r"|these|that|your|the|its|existence of (?:this|the)) (?:memory|memories|note|notes|instructions?"
    r"|rules?|entry|entries|directives?|messages?|prompt|text)\b)"
)
UNWELCOME = (
    r"(?:safety|recalls?|fees?|charges?|surcharges?|risks?|warnings?|side effects?|costs?|complaints?"
    r"|errors?|problems?|evidence|fines?|penalt(?:y|ies)|lawsuits?|incidents?|breach(?:es)?"
    r"|alternatives?|competitors?|cheaper|conflicts? of interest|sponsor\w*|commissions?|issues"
    r"|failures?|losses|negative|delays|defects?|vulnerabilit\w+|expiry|deadlines?)"
)
MODE = (
    r"(?:developer|debug|debugging|admin|god|maintenance|root|sudo|unrestricted|jailbreak\w*|dan"
    r"|privileged|superuser|super-?user|diagnostic|unfiltered|uncensored|test|testing|override|service"
    r"|evil|unsafe|raw|opposite|training|engineering|safe)"
)
SELF = (
    r"(?:this|these|the (?:present|above|following|current)|that) (?:exact |same )?(?:notes?|memor(?:y"
    r"|ies)|instructions?|texts?|rules?|entry|entries|messages?|sentences?|lines?|directives?"
    r"|paragraphs?|prompts?|preferences?|words?|passages?|statements?|reminders?)"
)
FREE = (
    r"(?:(?:no|any|without(?: any)?|zero|free (?:of|from)(?: all)?|keine\w*|sin|sans|senza|sem|ohne"
    r"|hicbir)(?: \w+){0,2} (?:restrictions?|limits?|limitations?|rules?|filters?|guidelines|policies"
    r"|censorship|boundaries|constraints|ethics|morals|einschrankung\w*|regeln|grenzen|restricciones"
    r"|limites|reglas|restricoes|restrizioni|kisitlama\w*|sinir\w*)|unrestricted|uncensored|unfiltered"
    r"|jailbroken|sin restricciones)"
)
EVERYTHING = (
    r"(?:all|any|every|each|everything|anything|whatever|future|further|todos|todas|toda|cualquier|alle"
    r"|jede\w*|tous|toutes|tutt[ie]|tum|butun|her)"
)
GOODS = (
    r"(?:payments?|purchases?|bookings?|transactions?|charges?|transfers?|orders?|requests?|refunds?"
    r"|claims?|invoices?|expenses?|actions?|changes?|tool calls?|emails?|sharing|upgrades?"
    r"|subscriptions?|access|data sharing|amounts?|costs?|withdrawals?|applications?|returns?"
    r"|discounts?|reembolsos|solicitudes|pagos|zahlungen|erstattungen|ruckerstattungen|remboursements"
    r"|rimborsi|reembolsos|iade\w*|odeme\w*)"
)
