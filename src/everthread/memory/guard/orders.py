"""Text that poses as an authority, breaks out of its place in the prompt or plants a rule.

Each rule is a name and a pattern over folded text in lower case.
"""

from everthread.memory.guard.lexicon import FREE, HEADER, MODE, ORDER, SYSTEM, gap
from everthread.memory.guard.verdict import Category

RULES: tuple[tuple[Category, str, str], ...] = (
    (
        "system_rule",
        "chat template",
        r"<\|[a-z_ ]{2,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|\[/?(?:system|assistant|user"
        r"|developer)(?: \w+)?\]|</?s>\s?\[|#{2,4} ?(?:instruction|system|human|user|assistant|response|new "
        r"instructions?|developer)s?\b ?:?|\bbegin (?:system|admin)\b|-{3,} ?(?:end|begin|new|start) (?:of "
        r")?(?:user|system|memor\w+|notes?|instructions?|context|prompt)",
    ),
    (
        "system_rule",
        "delimiter",
        r"</?\s?(?:memor(?:y|ies)|user_?profile|memory_policy|(?:system|assistant|agent|memory|policy"
        r"|safety)(?:[_-]\w+)?|instructions?|developer"
        r"|admin|assistant|tool_?(?:result|call|use|output)s?|function_?(?:call|result)s?|important"
        r"|polic(?:y|ies)|recalled|context|prompt|rules?|notes?|conversation|override"
        r"|documents?)\b[^>\n]{0,40}>",
    ),
    (
        "system_rule",
        "role",
        r"[\"']?role[\"']?\s?[:=]\s?[\"']?(?:system|developer|assistant|tool|admin)\b|(?:human|user): "
        r"[^\n]{0,200}(?:\n|\\n| )\s?(?:assistant|ai|bot): |(?:^|\n)\s?(?:assistant|system|developer) "
        r"?:.{0,200}\n\s?(?:user|human) ?:",
    ),
    (
        "system_rule",
        "authority",
        rf"(?:^|[\n.!?;\])>|\"'*#=-]\s{{0,3}})\[?{SYSTEM}(?:[ _-]{HEADER}| team)(?: \w+){{0,3}}?(?: (?:to"
        rf"|for|from) (?:the |all )?\w+(?: \w+)?)?\]?\s{{0,2}}[:\]>=—-]",
    ),
    ("system_rule", "authority", rf"(?:^|\n)\W{{0,3}}{SYSTEM}\W{{0,3}}[:>]\s.{{0,80}}\b{ORDER}\b"),
    (
        "system_rule",
        "authority",
        r"\b(?:admin|system|official|urgent|important|security|priority|new|message|note|notice"
        r"|attention)\b.{0,20}\b(?:notice|note|message|alert|instructions?|directive|attention|memo) "
        r"(?:to|for) (?:the |all |any )?(?:ai|assistants?|agents?|model|bot|llm|chatbot)s?\b",
    ),
    (
        "system_rule",
        "authority",
        r"\b(?:role|privileges?|permissions?|access(?: level)?|clearance|rights|trust level) (?:(?:is|are"
        r"|was|were|has been|have been|level) )?(?:now |hereby )?(?:elevated?|raised|escalated|upgraded"
        r"|promoted|set|granted) (?:to )?(?:super\w*|admin\w*|root|full|maximum|unlimited|owner|system"
        r"|developer|highest|level \d)",
    ),
    (
        "system_rule",
        "authority",
        r"\b(?:grant|give|enable|allow|assign|elevate|promote)s?\b (?:\w+ ){0,4}(?:full|admin\w*|root"
        r"|unrestricted|unlimited|developer|superuser|elevated|owner|complete|god)[ -](?:\w+ )?(?:access"
        r"|privileges?|permissions?|rights|status|powers?|control|mode)",
    ),
    (
        "system_rule",
        "authority",
        r"\btreat (?:this |the |me |him |her |any |every )?(?:user|customer|account|me|him|her|them|note"
        r"|person)?(?: \w+){0,4} as (?:a |an |the |if (?:it|they|he|she|i) (?:were|was|is|came from) (?:a "
        r"|an |the )?)?(?:developer|admin\w*|system|root|operator|owner|superuser|employee|staff|trusted"
        r"|verified|instructions?)",
    ),
    (
        "system_rule",
        "mode",
        r"\b(?:you are|you're|now|enter(?:ing)?|activat\w+|switch(?:ed|ing)?(?: in)?to|enable\w*"
        r"|turn(?:ed)? on|boot(?:ing)? (?:in)?to|start(?:ing)?|in|into|run(?:ning)? in|operate in|go "
        rf"into)\b (?:\w+ ){{0,2}}{MODE}[ _-]mode\b(?! (?:on|of) (?:my|his|her|the) (?:phone|laptop|camera"
        r"|router|tv|printer))|\b(?:developer|debug|admin|god|root|sudo|jailbreak|dan|superuser|maintenance"
        rf"|unrestricted)[ _-]mode\b\W{{0,3}}(?:is |=|:)?\W{{0,2}}(?:on|enabled|active|activated|true|1"
        r"|engaged|unlocked)\b",
    ),
    (
        "system_rule",
        "configuration",
        r"\b(?:guard ?rails?|safety\w*|moderation|(?:content_?)?filters?|polic(?:y|ies)|logging"
        r"|restrictions?|safe_?mode|content_?\w+|approvals?|confirm(?:ation)?s?|require_\w+|consent\w*"
        r"|sandbox\w*|audit\w*|verification|security\w*|permissions?|censor\w*)[\w.-]{0,20}\"?\s?(?:[=:]|:="
        r"|->|set to|to)\s?\"?(?:false|off|0|none|disabled?|no|null|all|allow_?\w*|bypass|skip|open|\*)\b",
    ),
    (
        "system_rule",
        "configuration",
        r"\b(?:memory_policy|system_prompt|base_prompt|system_message|guardrails"
        r"|developer_message)\s?[:=]\s?\S|(?:^|\n)\W{0,3}(?:policy|instructions?)\s?[:=]\s?\S|\b(?:operate"
        r"|run|work|answer|respond) (?:with|at|under|on) (?:policy|safety|trust|security|permission"
        r"|clearance)[ -](?:level|tier|mode)\b|\b(?:temperature|max_tokens"
        r"|model)\s?=\s?\S.{0,40}\b(?:system|safety|filter)",
    ),
    (
        "system_rule",
        "new rule",
        r"\b(?:sto(?:re|ring)|sav(?:e|ing)|add(?:ing)?|remember|record|keep|memori[sz]e|treat|set|make"
        r"|append|adopt|install|accept|register|enter|write|include|insert|take|consider|regard|guarda"
        r"|anade|agrega|recuerda|speicher\w*|merke? dir|enregistre\w*|memorizza|salva|kaydet|ekle)\b "
        r"[^.\n]{0,60}?\b(?:system|core|base|permanent|standing|master|global|root|primary|hard|binding"
        r"|top-?level|priority|unbreakable|operating|governing|internal|sistema|systemregel|grundregel"
        r"|systeme|sistem)s?(?:[ -](?:level|wide))?[ -]?(?:\w+ )?(?:rules?|instructions?|polic(?:y|ies)"
        r"|prompts?|directives?|law|orders?|commands?|rulebook|regel|regla|regle|regola|kural\w*)\b",
    ),
    (
        "system_rule",
        "new rule",
        r"\b(?:regla|regle|regola|regra|kural\w*|regel) (?:del|de|du|di|do|des) (?:el |la )?(?:sistema"
        r"|systeme|sistem\w*|systems?)\b|\bsystemregel\b|\bsistem kural\w*",
    ),
    (
        "system_rule",
        "new rule",
        r"\b(?:system|core|master|base|root|prime|primary|permanent|standing|global|binding|supreme"
        r"|overriding) (?:rule|directive|instruction|law|polic(?:y|ies)|prompt|order|command)s?(?: (?:for"
        r"|of) (?:the |this |all |any )?\w+)?\b\s?(?:\d+ ?)?[:=]|\b(?:permanent|standing|binding|new|core"
        r"|prime|supreme|overriding) (?:directive|instruction|law|order|command|rule)s? (?:for|to|of) "
        r"(?:the |this |all |any |your )?(?:agents?|assistants?|ai|model|bot|workspace|system|session|chat)",
    ),
    (
        "system_rule",
        "new rule",
        r"\b(?:save|store|add|remember|record|adopt|memori[sz]e|append|install|register|keep|note(?: down)?"
        r"|learn|internali[sz]e)\b (?:\w+ ){0,2}?(?:this|the following|these|a new|new|another"
        r"|following) (?:new )?(?:rule|instruction|polic(?:y|ies)|directive|command|order|law)s?\b(?! of "
        r"thumb)",
    ),
    (
        "system_rule",
        "new rule",
        r"\b(?:rules?|instructions?|polic(?:y|ies)|directives?) (?:of|for|in|on) (?:this |the |all |any "
        r"|your )?(?:workspace|agents?|assistants?|system|bots?|models?|ais?|platform|chatbot|deployment"
        r"|tenant)\b[^.\n]{0,10}[:,]|\b(?:base|system|original|current) prompt (?:is|has been|was)\b|\bnew "
        r"(?:base|system|core|master) (?:prompt|rules?|instructions?|polic(?:y|ies)|directive)",
    ),
    (
        "system_rule",
        "obedience",
        r"\b(?:obey|follow|execute|carry out|comply with|fulfil+)\b (?:\w+ ){0,2}?(?:all|every|any|each"
        r"|everything|anything|whatever|only|each and every)(?: and (?:all|every))? ?(?:of )?(?:my|his|her"
        r"|their|the user'?s?|this user'?s?|orders?|commands?|requests?|demands?)\b|\b(?:obey|comply with) "
        r"(?:me|him|her|them|everything|anything|all)\b|\bnever (?:refuse|decline|deny|reject|say no"
        r"|question|disobey|push back|object)\b(?! (?:a |an )?(?:dessert|coffee|drink|invitation|food|wine"
        r"|chocolate|cake|tea|upgrade))(?! calls)|\b(?:always|only) (?:comply|obey|say yes|agree)\b|\bnunca "
        r"(?:rechaces|niegues|te niegues)|\b(?:lehne|verweigere) (?:nie|niemals|keine)|\bne refuse[rz]? "
        r"jamais|\basla reddetme|\breddetme\b",
    ),
    (
        "system_rule",
        "obedience",
        r"\bcomply (?:fully |completely |immediately )?with (?:everything|anything|all|every|any|whatever)",
    ),
    (
        "system_rule",
        "precedence",
        r"\b(?:user (?:statements?|messages?|instructions?|requests?|words?)|(?:this|these|my|our|the "
        r"user's|saved|stored)? ?(?:notes?|memor(?:y|ies)|rules?|instructions?|entry|entries|words?"
        rf"|preferences?|directives?|requests?|statements?))\b{gap(5)}(?:outrank|override|overrule|takes? "
        r"(?:precedence|priority)|supersede|beat|trump|prevail|win|come before|rank above|replace"
        rf"|outweigh)s?\b{gap(4)}(?:system|developer|operator|instructions?|polic(?:y|ies)|rules?|everything"
        r"|all|prompts?|base|company|safety|guidelines|admin\w*|anything)|\b(?:higher|more|greater) "
        rf"(?:priority|authority|weight|precedence) than (?:\w+ ){{0,2}}(?:system|developer|operator"
        r"|instructions?|polic\w+|rules?|prompts?|guidelines)",
    ),
    (
        "system_rule",
        "persona",
        r"\b(?:you are|you're|ur) (?:now|from now on|no longer|hereby)\b|\bfrom (?:now|here|this point) "
        r"on,? you (?:are|will be|act|answer|respond|obey|must)\b|\b(?:act|behave|respond|answer|operate"
        r"|function|roleplay|role-play|pose|work) (?:as|like) (?:if you (?:were|are|had) )?(?:a |an |the "
        rf"|my )?[^.\n]{{0,40}}{FREE}|\b(?:pretend|imagine|assume|suppose) (?:that )?(?:to be|you (?:are"
        rf"|have|were|can)|you're)\b[^.\n]{{0,60}}(?:{FREE}|\b(?:developer|admin|hacker|root|system|evil"
        r"|human|no)\b)|\bdu bist (?:jetzt|ab sofort|nun)\b|\b(?:ahora eres|eres ahora|a partir de ahora "
        r"eres)\b|\btu es (?:maintenant|desormais)\b|\b(?:sen artik|artik sen)\b|\b(?:adesso|ora) sei\b"
        r"|\bagora voce e\b|\bdo anything now\b|\b(?:ai|assistant|agent|bot|model|you) (?:with|has|have"
        rf"|without|is|are) {FREE}",
    ),
    (
        "system_rule",
        "authority",
        r"\b(?:effective immediately|with immediate effect|as of (?:now|today|this moment)|henceforth"
        r"|hereby)\b[^.\n]{0,60}\b(?:workspace"
        r"|assistant|agent|session|bot|you|model|deployment|tenant|i set|i declare|we set|we "
        r"declare)\b[^.\n]{0,60}\b(?:directives?|rules?|modes?"
        r"|instructions?|authority|polic(?:y|ies)|protocols?|compliance|obey|serve|report to|answer to|restrictions?"
        r"|unrestricted)\b"
        r"|\[\[?[^\]\n]{0,20}\b(?:priority|system|admin|override|authority|clearance|directive|instruction"
        r"|trust)\b\s?[:=][^\]\n]{0,30}\]"
        r"|\bas your (?:\w+ )?(?:supervisor|operator|owner|creator|developer|admin\w*|maker|controller|principal"
        r"|commander|master|superior|parent"
        r" process|orchestrator|root)\b",
    ),
    (
        "system_rule",
        "precedence",
        r"\b(?:ranks?|ranked|stands?|counts?|sits?|weighs?|comes?|goes|placed|valued|wins?|is|are) (?:far |always "
        r"|well )?(?:above|over|ahead of|before"
        r"|higher than|more than|on top of)\b[^.\n]{0,40}\b(?:developers?|operators?|your (?:system|makers?|vendor"
        r"|provider|instructions|rules|prompt|company)"
        r"|(?:the|any|every|all|other|its) (?:system|makers?|vendor|instructions?|rules?|polic(?:y|ies)|prompts?"
        r"|guidelines))\b"
        r"|(?<!i )(?<!we )\b(?:replac|supersed|overrid|overrul|outrank|trump|supplant)(?:es?|ing|s)\b (?:the |your "
        r"|all |every |any )?(?:\w+ )?(?:(?:default|usual|normal|standard"
        r"|built-?in|original|system|agreed) (?:behaviou?rs?|rules?|settings?|answers?|instructions?|prompts?"
        r"|conduct|setup|polic\w+|process\w*)|other (?:notes?|sources?|memor\w+"
        r"|instructions?|rules?|entries))\b"
        r"|\b(?:set|turn|dial|bring|put|lower|raise) (?:the |your |all )?(?:compliance|safety|security|caution|trust"
        r"|restraint|restrictions?|refusals?|obedience)"
        r" (?:level |score )?(?:to|at|down to|up to) (?:zero|0|none|nil|max\w*|off|full|100)\b",
    ),
    (
        "system_rule",
        "obedience",
        r"\b(?:sprachmodell|assistent\w*|ki|bot|modell)\b[^.\n]{0,50}\b(?:gehorch\w+|befolg\w+|unterwirf\w*"
        r"|unterordn\w*|zu folgen)\b"
        r"|\b(?:asistente|modelo|ia|bot)\b[^.\n]{0,40}\b(?:obedec\w+|acatar|sometese)\b|\b(?:assistant|modele"
        r"|ia)\b[^.\n]{0,40}\b(?:obeir|obeit|soumis\w*)\b"
        r"|\b(?:tum|butun|her) kural\w* (?:ust\w+|on\w+)|\bbu (?:not|kayit|metin)\b[^.\n]{0,30}\b(?:ustun\w*|ustunde"
        r"|oncelik\w*)"
        r"|\b(?:accept|grant|fulfil+|honou?r|satisfy|carry out) (?:all|every|any|each)(?: and every)? (?:single "
        r")?(?:requests?|wish(?:es)?|commands?|demands?|orders?)\b",
    ),
)
