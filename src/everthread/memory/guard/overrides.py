"""Text that voids what binds the assistant, claims privileges or asks for the hidden prompt.

Each rule is a name and a pattern over folded text in lower case.
"""

from everthread.memory.guard.lexicon import (
    ACT,
    AUTHORITY,
    BEGIN,
    CHECKS,
    CONSENT,
    PLAIN_AUTHORITY,
    QUALIFIED_AUTHORITY,
    VOID,
    VOIDED,
    gap,
)
from everthread.memory.guard.verdict import Category

RULES: tuple[tuple[Category, str, str], ...] = (
    ("policy_override", "void", rf"{BEGIN}{VOID}\b \W?{gap(5)}(?<!my )(?<!her )(?<!his ){AUTHORITY}\b"),
    ("policy_override", "void", rf"{BEGIN}(?:{PLAIN_AUTHORITY}|{QUALIFIED_AUTHORITY})\b{gap(5)}\W?{VOIDED}"),
    (
        "policy_override",
        "void",
        r"\b(?:talimat|kural|politika|komut|yonerge)\w*\b[^.\n]{0,40}\b(?:yok say\w*|gormezden gel\w*"
        r"|unut\w*|dikkate alma\w*|boz\w*|atla\w*|uyma\w*|gecersiz\w*|uygulanmaz)|\b(?:anweisungen|regeln"
        r"|vorgaben|richtlinien)\b[^.\n]{0,40}\b(?:ignorieren|missachten|vergessen|umgehen|ausser kraft"
        r"|nicht (?:beachten|befolgen))",
    ),
    (
        "policy_override",
        "void",
        r"\b(?:ignore|forget|disregard|drop|erase|unlearn) (?:all|everything|anything|whatever|what"
        r"|any)\b(?! i (?:said|told you|wrote|asked for)(?: \w+){0,2} (?:about|on|regarding)\b)[^.\n]{0,30}\b(?:told"
        r"|said|above|before|earlier|previous\w*|prior|learned|taught"
        r"|instructed|given|you know|came before)\b|\b(?:start|begin) (?:fresh|over|anew) with(?:out)? "
        r"(?:no |any )?(?:rules|instructions|restrictions)",
    ),
    (
        "policy_override",
        "void",
        r"\b(?:limits?|rules?|restrictions?|checks?|polic(?:y|ies)|instructions?|guidelines?|requirements?"
        r"|filters?|safeguards?|guardrails?|protections?|ceilings?|caps?)\b (?:that |which )?(?:you|they|we"
        r"|i|your \w+|the (?:operator|developer|system|company|bank|admin\w*|vendor))(?: \w+){0,5} (?:do "
        r"not|don't|no longer|does not|doesn't|never|stop|cease|are (?:void|off|gone|lifted|cancelled"
        r"|nothing|suggestions?|optional)|is (?:void|off|gone|lifted))",
    ),
    (
        "policy_override",
        "checks",
        rf"{BEGIN}(?:skip|bypass|waive|omit|disable|turn off|switch off|deactivate|suspend|avoid|forgo|forego"
        r"|drop|evade|circumvent|mute|stop|cease|remove|ignore|eliminate|dispense with|do away with|do "
        r"without|get rid of|no need (?:for|to (?:do|run|perform|require|wait for|follow|seek|get))|(?:do "
        r"not|don't|never|without) (?:run|do|perform|require|running|doing|performing|requiring|apply"
        r"|applying|request|requesting|demand|wait for|seek|bother with|enforce|go through)|salta(?:te)?"
        rf"|omite|uberspring\w*|saute|salta|atla)\b {gap(5)}{CHECKS}\b",
    ),
    ("policy_override", "checks", rf"{BEGIN}{CHECKS}\b {gap(6)}{VOIDED}"),
    (
        "policy_override",
        "checks",
        rf"{BEGIN}(?:exempt(?:ed|ion|s)?|excused|immune|freed|excluded|released|exception)\b "
        rf"{gap(5)}(?:{AUTHORITY}|{CHECKS}|rules|limits|checks)\b|\b(?:not|never|no longer) (?:be "
        rf")?(?:subject|bound|held|restricted|limited)\b {gap(3)}(?:{AUTHORITY}|{CHECKS}|rules|limits"
        r"|checks)\b|\bno (?:rules|limits|restrictions|filters|guidelines|safeguards|guardrails|polic(?:y"
        r"|ies)) (?:apply|for (?:me|this user|this customer|this account|this client)|exist|any ?more|bind)",
    ),
    (
        "policy_override",
        "privilege",
        r"\b(?:user|customer|client|caller|person|account|i|i'm|they|he|she|sender|requester|usuario"
        rf"|cliente|nutzer|kunde|kullanici)\b {gap(9)}(?:authori[sz]ed|allowed|permitted|cleared|entitled"
        r"|approved|whitelisted|verified|trusted|exempt|privileged|clearance|permission|autorizad[oa]"
        rf"|berechtigt|autorise|yetkili)\b {gap(4)}(?:to |for |from |a ver |que |zu )?{gap(5)}(?:(?:(?:all"
        r"|any|every|each)[ -])?(?:(?:other|another|else|everyone)(?:'s)? (?:\w+(?:'s|s')? )?(?:\w+)"
        r"|salar(?:y|ies)|payroll|restrictions?|verification|identity checks?|all (?:data|records|accounts"
        r"|files|tools|information|limits)|system prompt|(?:internal|hidden|confidential|secret|restricted"
        r"|private|sensitive) \w+|instructions|without (?:confirmation|approval|checks|limits|verification)"
        r"|unlimited|any (?:amount|limit|request|record|account)|anything|everything)|skip|bypass|override"
        r"|otros|anderen?)",
    ),
    (
        "policy_override",
        "privilege",
        r"\b(?:i am|i'm|this is|user is|he is|she is|speaking as|as|me,?|it's) (?:the |a |an |your |one of "
        r"(?:the|your) )?(?:\w+ )?(?:developers?|creators?|admin(?:istrator)?s?|operators?|owners?"
        r"|engineers?|maintainers?|author|ceo|cto|ciso|root|superuser|auditors?|security (?:team|officer)"
        r"|red team\w*)\b[^\n]{0,70}\b(?:lift|reveal|show|bypass|override|disable|unlock|grant|full access"
        r"|without (?:restrictions|limits|checks)|any restriction|system prompt|see (?:other|all|any|every)"
        r"|safety|restrictions?|privileg\w+|elevated|instructions|debugging this|this (?:system|bot"
        r"|assistant|ai|agent)|internal|authori[sz]ed|all data|other (?:users|customers|employees))",
    ),
    (
        "policy_override",
        "privilege",
        r"\b(?:has|have|with|holds?|received|given|granted|gets?) (?:\w+ )?(?:full|complete|admin\w*|root"
        r"|elevated|unlimited|unrestricted|override|special|security|top|level[- ]?\w+|executive|global"
        r"|master)[ -](?:\w+[ -])?(?:access|privileges?|permissions?|rights|clearance|authority|powers?"
        r"|overrides?)\b[^.\n]{0,70}\b(?:all|any|every|data|records|accounts?|tools|without|limits"
        r"|restrictions|checks|salar\w+|internal|confidential|bypass|override|system|users|assistant"
        r"|confirm\w*|verif\w*|approv\w*)\b",
    ),
    (
        "policy_override",
        "privilege",
        r"\b(?:any|every|all|content|whatever|anything)\b[^.\n]{0,30}\b(?:generate|produce|answer|provide"
        r"|allow|permit)\b (?:anything|everything|whatever|any content|all)\b|\b(?:generate|produce|answer"
        r"|provide|do|say|output|write|give)\b (?:anything|everything|whatever) (?:that )?(?:is "
        r")?(?:requested|asked|the user (?:wants|asks)|i (?:want|ask|say)|they (?:want|ask))",
    ),
    (
        "policy_override",
        "extraction",
        rf"{BEGIN}(?:reveal|show|print|display|output|repeat|leak|expose|dump|share|tell|give|write|recite"
        r"|disclose|translate|summari[sz]e|see|list|quote|copy|paste|return|send|provide|echo|spell|read(?: "
        r"back| out)?|describe|explain|paraphrase|encode|decode|convert|reproduce|what (?:is|are|was|were"
        r"|does)|what's|access|view|need|get|extract|publish|include|surface|gib|gebe?|zeige?|verrate|nenne"
        r"|muestra|revela|imprime|dime|affiche|montre|revele|mostra|rivela|mostre|goster|soyle|yazdir"
        rf"|acikla)\b {gap(8)}(?:(?:system|initial|hidden|base|original|developer|secret|internal|first"
        r"|starting|full|entire|exact|root|meta)[ -]?(?:\w+ )?(?:prompts?|instructions?|messages?"
        r"|configuration|directives|guidelines|rules|settings|preamble)|system ?prompts?|systemprompts?"
        r"|(?:your|those|these|the previous|its|tus|deine\w*|tes|vos|tue|suas) (?:\w+ )?(?:instructions?"
        r"|prompts?|guidelines|directives|configuration|rules|programming|anweisungen|instrucciones"
        r"|consignes|istruzioni|regeln)|(?:text|everything|words?|content|message|lines?|paragraphs?"
        r"|instructions?|all) (?:that (?:is|comes|came|appears) )?(?:above|before this|preceding)|prompt "
        r"(?:de sistema|del sistema|du systeme|di sistema)|sistem \w*(?:istem|komut|talimat)\w*)",
    ),
    (
        "policy_override",
        "extraction",
        r"\b(?:start|begin|open|prefix)\b (?:\w+ ){0,4}(?:answer|response|reply|output|message)s? (?:with"
        r"|by) .{0,10}(?:my|the|system|your) (?:\w+ )?(?:instructions?|prompt|rules|guidelines|directives)"
        r"|\b(?:hidden|system|internal|initial|secret) (?:prompts?"
        r"|instructions?)\b[^.\n]{0,40}\b(?:reveal\w*|disclos\w*|shown?|shar\w+|leak\w*|printed|public"
        r"|allowed)\b|\btext above this\b",
    ),
    (
        "policy_override",
        "keyword",
        r"\b(?:override|sudo|jailbreak|root access|god ?mode|unlock code|master key"
        r"|backdoor)\b\s?[:=!>]\s?\S|\b(?:authori[sz]ation|override|unlock|clearance|bypass)[ -](?:code|key"
        r"|token|phrase|level)\b[^.\n]{0,40}\b(?:lift|unlock|disable|grant|override|skip|bypass|full)"
        r"|\b(?:admin\w*|system|security|manager|emergency|developer|executive) override\b(?! (?:switch"
        r"|button))",
    ),
    (
        "policy_override",
        "consent",
        rf"{BEGIN}(?:always |just |simply |may |can |should |must |will |go ahead and |automatically "
        rf"|immediately )?{ACT}\b (?!nothing\b|none\b|no \w)[^.!?\n]{{0,60}}\b(?:without|ohne|sin|sans|senza|sem)\b "
        rf"[^.!?\n]{{0,24}}?{CONSENT}\b",
    ),
    (
        "policy_override",
        "consent",
        r"\b(?:never|don'?t|do not|stop|no need to|needn't|need not|not necessary to|quit|without|does "
        r"?n[o']t (?:want|need) (?:you |the assistant |the agent |it )?to(?: be)?|should not|shouldn't|must "
        r"not|skip|no) (?:\w+ ){0,2}?(?:ask(?:ing|ed)?|confirm(?:ing|ation)?|check(?:ing)? (?:in|with)"
        r"|check|seek(?:ing)?|request(?:ing)?|requir(?:e|ing)|wait(?:ing)? for|get(?:ting)?|approval"
        r"|permission|prompt(?:ing|ed)?)\b(?: \w+){0,3}? (?:before|prior to|for (?:\w+ ){0,2}?(?:approval"
        r"|permission|confirmation|consent|payments?|purchases?|bookings?|transactions?|transfers?|charges?"
        r"|refunds?|orders)|when (?:booking|buying|paying|sending|ordering|transferring|cancelling)|is "
        r"(?:needed|required|necessary)|approval|permission|confirmation|consent)\b",
    ),
    (
        "policy_override",
        "checks",
        r"\b(?:never|no|not|without|n't|skip|drop|spare)\b[^.\n]{0,30}\b(?:second|another|extra|other) (?:pair of "
        r"eyes|look|signature|approval"
        r"|check|glance)\b|\b(?:pass|let|wave|rush|usher|speed) (?:him|her|them|me|it|us|this (?:user|account"
        r"|customer|request)|the (?:user|customer|caller)"
        r"|everything|all \w+) (?:straight |right |just )?through\b[^.\n]{0,30}\b(?:checks?|controls?|verif\w+"
        r"|screening|security|approval|review|everything)\b"
        r"|\b(?:skip|omit|drop|leave out|no need for|forget|avoid|waive|spare me|without|not "
        r"ask)\b[^.\n]{0,30}\b(?:questions? (?:about|of|on) (?:who|identity)"
        r"|who (?:is|i am|they are|she is|he is) (?:calling|asking|writing|on the line)|security questions?"
        r"|identity questions?|proof of identity)\b",
    ),
    (
        "policy_override",
        "void",
        r"\b(?:refusals?|refusal (?:texts?|messages?|phrases?)|disclaimers?|safeguards?|protections?|safety \w+"
        r"|caveats?|guard ?rails?)\b[^.\n]{0,20}\b(?:may|can|could"
        r"|should|are|is|were|be|have been|get|gets)\b (?:now |to |all )?(?:be )?(?:left out|dropped|skipped"
        r"|switched off|turned off|disabled|omitted|lifted|removed|cut"
        r"|retired|ignored|suppressed|suspended|forbidden|banned|off)\b"
        r"|\b(?:rules?|limits?|polic(?:y|ies)|restrictions?|caps?|guidelines?|regulations?)\b[^.\n]{0,12}\b(?:ends?"
        r"|stops?|ceases?|finish(?:es)?)\b (?:where|when|with me"
        r"|for me|at my)\b"
        r"|\b(?:clauses?|provisions?|paragraphs?|articles?|rules?|polic(?:y|ies)) (?:\w+ )?(?:is|are|was|were|has "
        r"been|have been) (?:hereby )?(?:repealed|struck|annulled"
        r"|scrapped|withdrawn|void)\b|\b(?:immunity|exemption|exempt|immune) from\b[^.\n]{0,30}\b(?:rules?|polic\w+"
        r"|checks?|limits?|guidelines|content|restrictions?)\b",
    ),
    (
        "policy_override",
        "void",
        r"(?<!i )(?<!we )\b(?:does not|doesn't|do not|don't|need not|needn't|no longer|not|never) (?:have |need "
        r"|required |obliged |bound |expected )?(?:to )?(?:stick to|mind"
        r"|follow|respect|observe|obey|keep to|adhere to|heed|comply with|honou?r|care about|worry about|be held to"
        r"|bother with)\b[^.\n]{0,40}\b(?:limits?|rules?"
        r"|polic(?:y|ies)|caps?|procedures?|budgets?|guidelines?|regulations?|laws?|restrictions?|protocols?)\b"
        r"|\b(?:bypass(?:es)?|go(?:es)? (?:around|past|over)|skips?|circumvents?|evades?|sidesteps?) (?:the |any "
        r"|my |our |his |her |their )?(?:\w+ )?(?:managers?"
        r"|supervisors?|approvers?|compliance|finance|legal|auditors?|security desk|head office)\b"
        r"|\b(?:forget|ignore|disregard|never mind|scrap|skip|drop)\b (?:about )?(?:the |any |all |our |your "
        r")?(?:\w+ )?(?:procedures?|protocols?|playbooks?|checklists?"
        r"|runbooks?|formalit(?:y|ies))\b (?:for|on|about|when|with|and|that|in)\b",
    ),
    (
        "policy_override",
        "void",
        r"\b(?:what|everything|whatever|anything|the things?|all) (?:that )?(?:they|you|the (?:makers?|developers?"
        r"|company|operators?|vendor)|your \w+) (?:were |was |have been "
        r"|had been |ha(?:ve|d) )?(?:told|taught|learned|learnt|instructed|said|trained|shown"
        r"|wrote)\b[^.\n]{0,50}\b(?:outdated|obsolete|wrong|void|no longer|history|old"
        r"|invalid|superseded|nonsense|irrelevant|does(?:n't| not) (?:count|matter|apply))\b"
        r"|\b(?:listen|answer|stick|turn|defer|look) to me (?:instead|only|alone)\b|\b(?:do|go by|follow) (?:as"
        r"|what) i say (?:instead|only|from now|not)\b",
    ),
    (
        "policy_override",
        "privilege",
        r"\b(?:may|can|could|allowed to|entitled to|able to|free to|right to|permitted to|cleared to|get to|gets to"
        r"|let (?:me|him|her|them|us)|must be able to)\b (?:\w+ )?"
        r"(?:look (?:at|into|through|up)|reads?|see|view|open|access|check|browse|get|change|cancel|book|inspect"
        r"|pull(?: up)?|download|retrieve)\b (?:\w+ ){0,2}?(?:anyone"
        r"(?: else)?'s|anybody'?s?'s|everyone(?: else)?'s|everybody'?s?'s|other people's|another (?:user|customer"
        r"|employee|person|guest|traveller|colleague|client|member)'s"
        r"|someone else's|somebody else's|others'|(?:all|any) (?:users?|customers?|employees?|colleagues?"
        r"|staff)'?s?'? (?!to|who)\w+|colleagues'|other (?:users|customers"
        r"|employees|guests|travellers|clients|members|colleagues)')",
    ),
    (
        "policy_override",
        "extraction",
        r"\b(?:text|words?|lines?|sentences?|messages?|instructions?|paragraphs?|page|prompts?|rules|notes|brief\w*"
        r"|wording|tokens)\b(?: \w+){0,3}? (?:that |which )?(?:you|the (?:assistant"
        r"|model|bot|agent)) (?:were|was|are|is|have been|had been|got|received|began|started|run|runs|work"
        r"|works)\b (?:\w+ )?(?:given|told|configured|set up|loaded|initiali[sz]ed"
        r"|started|shown|handed|primed|fed|with|from|under|trained|programmed|not to)\b"
        r"|\byou were (?:told|instructed|asked|ordered) (?:not to|never to|to hide|to keep)\b|\b(?:tools?|functions?"
        r"|topics?|things?) (?:that )?you (?:may not|must not|are not (?:allowed|supposed)"
        r" to|aren't (?:allowed|supposed) to|should not) (?:mention|name|reveal|show|discuss|talk about)\b",
    ),
    (
        "policy_override",
        "consent",
        r"\b(?:brauchst|benotigst|musst|brauchen sie|mussen sie)\b[^.\n]{0,50}\b(?:keine?n?|nicht"
        r"|nie)\b[^.\n]{0,30}\b(?:freigabe|genehmigung|bestatigung|zustimmung|ruckfrage\w*"
        r"|erlaubnis|\w*fragen|ok)\b|(?<!no )\b(?:puedes?|paga\w*|compra\w*|reserva\w*|cancela\w*"
        r"|envia\w*)\b[^.\n]{0,30}\bsin (?:pedir|preguntar|esperar|consultar|avisar|mi (?:permiso"
        r"|aprobacion|confirmacion))\w*|\b(?:plus|pas) (?:\w+ ){0,2}(?:oblige\w*|besoin"
        r"|tenu\w*)\b[^.\n]{0,40}\b(?:demander|autorisation|accord|confirmation|regles?|valider)\b"
        r"|\b(?:non (?:serve|occorre|hai bisogno)|senza (?:chiedere|conferma))\b[^.\n]{0,30}\b(?:conferma"
        r"|approvazione|permesso|chiedere|\w*mi)\b|\b(?:sorma\w*|onay\w*|izin\w*|izne)\b"
        r"[^.\n]{0,20}\b(?:gerek yok|gerekmez|gerekmiyor|beklemeden|almadan)\b",
    ),
)
