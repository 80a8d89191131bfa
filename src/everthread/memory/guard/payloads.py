"""Text that makes the assistant act later in somebody's interest other than the user's.

Each rule is a name and a pattern over folded text in lower case.
"""

from everthread.memory.guard.lexicon import (
    ACT,
    AUDIENCE,
    BAD,
    BEGIN,
    EVERYTHING,
    GOODS,
    HIDE,
    MISLEAD,
    OWN_REFUSAL,
    REPLY,
    RIVALS,
    SELF,
    SEND,
    SENSITIVE,
    SOMEBODY,
    TOOL_NAME,
    UNWELCOME,
    VOID,
    WHEN,
    YOUR_REPLY,
    gap,
)
from everthread.memory.guard.verdict import Category

RULES: tuple[tuple[Category, str, str], ...] = (
    (
        "instruction_payload",
        "forged consent",
        r"\b(?:pre-?(?:approved|authori[sz]ed|cleared|consented)|blanket (?:approval|consent|permission"
        r"|authori[sz]ation)|(?:already|hereby|permanently|irrevocably) (?:approved|authori[sz]ed|consented"
        r"|agreed|granted|given|confirmed|gave|approves|consents)|standing (?:approval|consent|permission"
        r"|authori[sz]ation)|(?:consent|approval|permission|authori[sz]ation|agreement)\b (?:\w+ "
        rf"){{0,6}}(?:(?:has been|have been|is|was|are|were) (?:already )?(?:granted|given|implied|assumed"
        r"|obtained|secured|recorded|on file|unnecessary|automatic|standing)|on file))\b|\b(?:assume"
        rf"|presume|infer|treat|take|consider|count|regard|interpret)\b {gap(5)}(?:consent|approval"
        r"|permission|authori[sz]ation|agreement|confirmation|a yes|yes|approved)\b|\bhas (?:approved"
        rf"|authori[sz]ed|consented to|agreed to) {EVERYTHING} (?:\w+ )?{GOODS}|\b(?:silence|no (?:reply|answer"
        rf"|response))\b {gap(3)}(?:means|counts as|is|equals) (?:a )?(?:yes|consent|approval|agreement)",
    ),
    (
        "instruction_payload",
        "blanket approval",
        rf"{BEGIN}(?:approve|authori[sz]e|accept|grant|confirm|pay|refund|sign off(?: on)?|greenlight|wave "
        r"through|aprueba|aprobar|genehmige\w*|bewillige\w*|approuve[rz]?|approva\w*|aprove)\b (?:\w+ "
        rf")?{EVERYTHING}\b ?(?:of |the |los |las |die )?(?:\w+ "
        rf"){{0,2}}?(?:{GOODS})?\b(?<!\ball)(?<!\bany)(?<!\bevery)|\bapprove everything|\b(?:tum|butun|her) "
        r"(?:iade|odeme|talep|istek|satin alma)\w* (?:\w+ )?onayla\w*",
    ),
    (
        "instruction_payload",
        "concealment",
        r"\b(?:don'?t|do not|never|must not|mustn't|should not|shouldn't|cannot|avoid|without|refrain from"
        rf"|no need to|stop|not)\b (?:ever |to )?{gap(2)}{HIDE}\b {gap(6)}{AUDIENCE}",
    ),
    (
        "instruction_payload",
        "concealment",
        r"(?<!never )(?<!not )(?<!n't )\b(?:hide|conceal|omit|suppress|leave out|withhold|bury|cover up|keep quiet "
        r"about|mask|remove"
        r"|strip|delete|exclude|downplay|play down|gloss over|minimi[sz]e|skip|never mention|don't mention"
        r"|do not mention|never (?:raise|bring up|show|disclose|report)|do not (?:disclose|report|show"
        rf"|reveal)|don't (?:disclose|report|reveal))\b {gap(5)}(?:from (?:the )?(?:users?|customers?"
        r"|clients?|logs?|audit\w*|ledger|them|operators?|admins?|history)\b|(?:any |all |every "
        r")?(?:mentions?|warnings?|information|references?|notices?|evidence|traces?) (?:of|about|to)\b"
        rf"|(?:\w+ )?{UNWELCOME}\b(?= (?:of|about|for|from|in|on|to|when|with|and|or)\b|\W{{0,2}}\Z|[.;,]))"
        rf"|\b(?:keep|stay|remain)\b {gap(4)}(?:secret|hidden|confidential|invisible|undisclosed) (?:from"
        r"|to) (?:the )?(?:users?|customers?|clients?|them|everyone|humans?)|\b(?:silently|secretly"
        r"|covertly|discreetly|stealthily|surreptitiously|heimlich|en secreto|secretamente|en secret"
        rf"|gizlice|di nascosto)\b {gap(4)}(?:{SEND}|{ACT}|add|replace|insert|include|collect|record|track"
        r"|log|store|swap|monitor|read)\b",
    ),
    (
        "instruction_payload",
        "concealment",
        r"\b(?:no (?:le )?digas|no menciones|no reveles|no informes|nunca (?:menciones|reveles|digas)"
        r"|oculta|verschweig\w*|verheimlich\w*|sag\w* (?:dem |der |es )?(?:nutzer|benutzer|kunden)\w* nicht"
        r"|erwahne? (?:\w+ ){0,3}(?:nie|nicht)|ne (?:dis|dites|mentionne[rz]?|revele[rz]?) (?:pas|jamais"
        r"|rien)|cache[rz]? (?:a|au)|non (?:dire|rivelare|menzionare)|nao (?:diga|revele|mencione)"
        r"|(?:kullaniciya|musteriye)[^.\n]{0,40}(?:soyleme|bahsetme|belli etme|gosterme|aciklama)\w*)\b",
    ),
    (
        "instruction_payload",
        "tool",
        rf"{BEGIN}(?:call|run|execute|invoke|trigger|use|fire|launch|start|llama|ejecuta|rufe?|fuhre?|appelle"
        rf"|execute[rz]?|esegui|cagir|calistir)\b {gap(3)}{TOOL_NAME}",
    ),
    (
        "instruction_payload",
        "tool",
        rf"\b{WHEN}\b[^.\n]{{0,60}}\b(?:call|run|execute|invoke|perform|carry out)\b [^.\n]{{0,30}}\b(?:tool"
        r"|function|command|script|steps|code|shell|query|api|following|below)\b|\b(?:execute|run|perform"
        rf"|carry out)\b (?:\w+ ){{0,3}}(?:steps?|commands?|instructions?|code) (?:listed |given |shown "
        rf"|written )?(?:below|above|that follow|found)|(?:~/|/etc/|/root/|/home/|c:\\)[\w.-]{{0,20}}(?:ssh"
        r"|passwd|shadow|env|key|secret|cred)|\bid_rsa\b|\brm -rf\b|\b(?:cat|curl|wget|base64|eval|exec|nc) "
        rf"+[~/$<'\"h|-]|\bos\.(?:environ|system)|\bprintenv\b|;\s?drop table|\.env\b[^.\n]{{0,20}}(?:file"
        r"|print|send|read|content)",
    ),
    (
        "instruction_payload",
        "memory wipe",
        r"\b(?:delete|erase|wipe|remove|drop|clear|overwrite|purge|forget|destroy|discard|reset|replace"
        r"|rewrite|borra|elimina|losche|vergiss|supprime|efface|cancella|apaga|sil|temizle|unut)\b (?:\w+ "
        r"){0,2}?(?:all|every|everything|any|other|previous|prior|existing|the rest|entire|earlier|older"
        r"|stored|saved|todos?|todas?|alle[ns]?|tous|toutes|tutt[ie]|your|his|her|their|its|the user's|tum"
        r"|butun)\b(?: \w+){0,4}? (?:(?:files?|memor(?:y|ies)|notes?|records?|data|database|entries"
        r"|preferences?|profiles?|transcripts?|logs?|accounts?|backups?|facts|knowledge|archivos|notas"
        r"|memorias?|datos|dateien|notizen|daten|erinnerungen|fichiers|donnees|ricordi|dosya\w*|not\w*"
        r"|hafiza\w*|veri\w*)\b|(?:else )?(?:but|except|apart from) (?:this|that|mine))|\b(?:tum|butun) "
        r"(?:notlar|kayitlar|dosyalar|verile|hafiza)\w* (?:sil|temizle|unut)\w*|\bborra(?:r)? tod[oa]s?\b"
        r"|\blosch\w* alle",
    ),
    (
        "instruction_payload",
        "memory wipe",
        r"\b(?:delete|erase|wipe|clear|purge|reset|corrupt|overwrite)\b (?:the |this |your |user'?s? |all "
        r")*(?:memor(?:y|ies)|long-?term (?:memory|notes)|note ?store|profile|ledger|transcript)\b",
    ),
    (
        "instruction_payload",
        "self-copying",
        r"\b(?:cop(?:y|ies)|repeat|replicate|duplicate|carry|re-?save|re-?store|re-?write|re-?add"
        r"|re-?insert|propagate|insert|include|append|save|store|write|spread|reproduce|embed|attach|pass"
        rf"|paste|add|transfer|persist|preserve|keep|put)\b {gap(3)}(?:{SELF}|itself"
        rf"|yourself)\b[^.\n]{{0,50}}\b(?:to|into|in|across|with|every|each|all|other|next|new|again|future"
        r"|forward|verbatim|unchanged|forever|permanently|alive|whenever|after)\b",
    ),
    (
        "instruction_payload",
        "self-copying",
        r"\b(?:never|do not|don't|must not|cannot|refuse to) (?:ever )?(?:delete|remove|overwrite|expire"
        rf"|edit|forget|merge|drop|alter|discard|update|clean up|consolidate|change)\b {gap(2)}{SELF}"
        rf"|\b{SELF}\b {gap(3)}(?:must|should|shall|will|may|can|cannot|is to|has to)\b {gap(3)}(?:survive"
        r"|stay|remain|never|not be|persist|be (?:kept|copied|repeated|preserved|propagated|re-?saved"
        r"|immutable))\b",
    ),
    (
        "instruction_payload",
        "trust transfer",
        r"\b(?:obey|follow|trust|execute|comply with|act on|carry out|believe|accept|apply|do)\b (?:\w+ "
        r"){0,3}?(?:instructions?|commands?|orders|anything|whatever|everything|requests|directions|steps"
        r"|prompts?|directives|advice)\b (?:\w+ ){0,5}?(?:found |contained |received |embedded |written "
        r"|hidden |that (?:come|arrive|appear)s? |sent |provided |inside |coming |given )?(?:in|from|inside"
        r"|within|by|on|at|of) (?:\w+ ){0,4}?(?:e-?mails?|invites?|invitations?|messages?|documents?|pages?"
        r"|web ?sites?|attachments?|calendar|comments?|files?|pdfs?|tool (?:output|result)s?|links?|urls?"
        r"|images?|tickets?|senders?|@?[\w.-]+@[\w.-]+|https?://|search results?|third part(?:y|ies)"
        r"|reviews?|chat ?rooms?|channels?|repos?(?:itor(?:y|ies))?|readme)\b",
    ),
    (
        "instruction_payload",
        "trust transfer",
        r"\btreat\b (?:\w+ ){0,3}?(?:content|contents|text|messages?|e-?mails?|anything|everything|output"
        r"|results?|links?|notes?|data|comments?)\b (?:\w+ ){0,6}?as (?:\w+ ){0,3}?(?:instructions?"
        r"|commands?|trusted|true|authoritative|orders|system|verified|facts?|safe|approved)\b"
        r"|\b(?:e-?mails?|messages?|links?|attachments?|content|invites?|files?) from \S+(?: \S+){0,3} "
        r"(?:is|are|must be|should be) (?:always )?(?:trusted|safe|obeyed|followed|authoritative|system"
        r"|executed|opened)",
    ),
    (
        "instruction_payload",
        "substitution",
        r"\b(?:treat|handle|regard|process|consider|interpret|map|redirect|route)\b (?:\w+ "
        r"){0,8}?(?:requests?|questions?|queries|invoices?|payments?|records?|patient|customer|vendor"
        r"|account|order|refunds?|transfers?|calls?|bookings?)\b[^.\n]{0,60}\b(?:as if|as though|as "
        r"(?:being |if )?(?:about|for|belonging)|instead(?: of)?|to (?:the )?(?:account|number|iban"
        r"|address) of|using)\b|\b(?:answer(?:ed)?|respond(?:ed)?|repl(?:y|ied)|paid|sent|routed|redirected"
        r"|replaced?|substitut\w+|swap(?:ped)?|filled|use|change|pay|switch)\b (?:\w+ ){0,3}?(?:with |by "
        r"|to |for )?(?:the |his |her |their )?(?:\w+ ){0,3}?(?:bank|account|payment|iban|payee|records?"
        r"|contact|routing|invoice|address|beneficiary|recipient|wallet|phone) ?(?:details|numbers?|data"
        r"|account|info\w*|holder)? (?:of|for|from|with|to|by) (?:\w+ ){0,2}?(?:[\w&'-]+"
        r"|\d+)\b[^.\n]{0,40}\b(?:llc|ltd|inc|gmbh|patient|vendor|customer|supplier|account|\d{3,}|instead"
        r"|whenever|when|every|ours|mine|new one|this one|attacker)\b|\b(?:records?|details|data|file) of "
        r"(?:patient |customer |user |client )?\d{3,}",
    ),
    (
        "instruction_payload",
        "decision bias",
        r"\b(?:answer|reply|respond|say|rate|mark|rank|score|approve|report|classify|label|grade|evaluate"
        r"|judge|list|place|put|prefer|choose|hire|shortlist|rule)\b[^.\n]{0,80}\b(?:irrespective of"
        r"|regardless of|no matter|whatever the|independent of|even if (?:it|they|he|she|the|this)"
        r"|despite)\b[^.\n]{0,30}\b(?:qualifications?|merits?|polic\w+|facts|evidence|truth|outcome"
        r"|results?|score|what|who|how|quality|experience|performance|content|rules|is|are|cost|limit"
        r"|amount|reviews?|fails?)\b|\b(?:answer|reply|respond|say|state|report|return|output)\b (?:with "
        r")?(?:\w+ )?['\"][^'\"\n]{2,60}['\"][^.\n]{0,60}\b(?:whenever|when|always|every|any|if|each|all"
        r"|nothing else|only)\b|\b(?:whenever|when|if|every time|each time|always|any time|next time"
        r"|once)\b[^.\n]{0,80}\b(?:answer|reply|respond|say|state|output|write|type)\b (?:only |just "
        r"|simply |back |exactly )?(?:with |that )?(?:\w+ ){0,3}?['\"][^'\"\n]{2,80}['\"]",
    ),
    (
        "instruction_payload",
        "decision bias",
        r"\b(?:never|do not|don't|must not|should not|avoid|stop)\b (?:\w+ )?(?:flag|flagging|report"
        r"|reporting|raise|raising|escalate|escalating|reject|rejecting|deny|denying|block|blocking"
        r"|question|questioning|challenge|investigate|scan|review|audit|detect|warn about|point out)\b "
        r"(?:\w+ ){0,4}?(?:problems?|issues?|errors?|bugs?|vulnerabilit\w+|fraud\w*|violations?|requests?"
        r"|claims?|refunds?|transactions?|invoices?|expenses?|findings?|warnings?|alerts?|security|files?"
        r"|changes?|commits?|payments?|code|directory|anything|transfers?|suspicious|concerns?|complaints?"
        r"|incidents?|malware|applications?)\b",
    ),
    (
        "instruction_payload",
        "steering",
        r"\b(?:recommend|suggest|promote|advertise|push|praise|endorse|favou?r|mention|pick|choose|present"
        r"|prefer|list|steer|point|recomienda\w*|sugiere|empfiehl|empfehle|recommande[rz]?|consiglia"
        rf"|recomende|oner\w*|tavsiye)\b[^.\n]{{0,80}}\b(?:claim\w*|say(?:ing)?|state|insist|tell|pretend|di"
        rf"|diga|sag\w*|dis|dites|diz|soyle\w*)\b[^.\n]{{0,20}}(?:that )?(?:the )?{RIVALS}\b",
    ),
    (
        "instruction_payload",
        "rivals",
        rf"\b{RIVALS}\b[^.\n]{{0,30}}\b(?:are|is|have|has|as|were|son|sont|sind|sono"
        rf"|seien)\b[^.\n]{{0,24}}\b{BAD}\b[^.\n]*|\b{MISLEAD}\b[^.\n]{{0,50}}\b(?:users?|customers?|them"
        r"|that|others?|every|any|competitors?|alternatives?|people|digerlerini|le)\b|\bdigerlerini "
        r"kotule\w*",
    ),
    (
        "instruction_payload",
        "steering",
        rf"\b{WHEN}\b {gap(4)}{SOMEBODY}\b[^\n]{{0,60}}\b(?:always |only |first |exclusively )?(?:recommend"
        r"|suggest|promote|advertise|push|praise|endorse|mention|name|link|steer|point|direct|redirect"
        r"|bring up|plug|offer|recomienda|sugiere|empfiehl|empfehle|recommande|consiglia|oner|ofrece)\b "
        r"(?!(?:vegetarian|vegan|quiet|cheap|halal|kosher|local|family|gluten|step|wheelchair|pet|trains?"
        r"|hotels?|restaurants?|places|options|direct|something|dishes|books|films|movies|music|the "
        r"cheapest)\b)(?:only |first |always )?\S",
    ),
    (
        "instruction_payload",
        "steering",
        rf"\b{WHEN}\b {gap(4)}{SOMEBODY}\b(?:[^\n]{{0,60}}\b(?:delete|erase|wipe|transfer|wire|forward|e-?mail"
        r"|leak|upload|approve|deny|redirect|block|cancel|borra|elimina|reenvia|losche|transfiere"
        rf"|supprime|efface|cancella|sil|gonder)|(?:(?!{OWN_REFUSAL})[^\n]){{0,60}}\brefuse)\b "
        r"(?!(?:vegetarian)\b)(?!me\b|him\b|her\b)\S",
    ),
    (
        "instruction_payload",
        "lure",
        r"\b(?:tell|ask|prompt|require|instruct|direct|get|make|convince|urge|remind|encourage|advise|warn"
        r"|have|inform|request|lead|trick)(?:ing)?\b (?:the |all |any |every |each )?(?:users?|customers?"
        r"|them|people|visitors?|clients?|readers?|travell?ers?|whoever"
        rf"|anyone)\b[^.\n]{{0,70}}\b(?:{SENSITIVE}|install|download|click|call (?:this|the|\+?\d)|visit"
        r"|open (?:the|this)|scan (?:the|this)|sign up|subscribe|join|buy|purchase|invest|send (?:money"
        r"|crypto|funds)|pay|transfer|log ?in|their account|disable|turn off|share (?:their|his|her)|enter)",
    ),
    (
        "instruction_payload",
        "lure",
        r"\b(?:collect|gather|harvest|obtain|solicit|phish|request|elicit|extract|steal|capture)\b "
        rf"{gap(5)}{SENSITIVE}",
    ),
    (
        "instruction_payload",
        "reply content",
        r"\b(?:modify|alter|change|rewrite|adapt|edit|adjust|tweak|manipulate|doctor|shape|craft|infuse"
        r"|pepper|flavou?r|design|frame|tailor|write|structure|construct|formulate|encode|encrypt|obfuscate"
        rf"|scramble|use|ensure|make sure|make|phrase|sprinkle|lace|fill|replace|answer)\b {gap(3)}(?:your"
        rf"|all your|every|each) (?:\w+ )?{REPLY}\b (?:to |so |with |by |in a way|that |such that|as |using "
        r"|subtly |includes?|mentions?|contains?|promotes?|hints?|encourages?)",
    ),
    (
        "instruction_payload",
        "reply content",
        r"\b(?:integrate|incorporate|insert|inject|embed|append|weave|slip|sneak|work|plant|include|add|put"
        r"|place|drop|mention|prepend|attach|smuggle|tack|throw in|anade|incluye|fuge|ajoute[rz]?|aggiungi"
        rf"|adicione|ekle)\b[^.\n]{{0,80}}\b{YOUR_REPLY}\b",
    ),
    (
        "instruction_payload",
        "reply content",
        rf"\b{YOUR_REPLY}\b,? [^.\n]{{0,30}}\b(?:suggest|promote|advertise|recommend|highlight|emphasi[sz]e"
        r"|tease|hint|advise|mention|include|discuss|explain|describe|talk|refer|encourage|urge|warn|claim"
        r"|state|say|tell|direct|link|point|ask|invite|propose|note|add|insert|offer|provide|persuade|pitch"
        r"|plug|spread|introduce|allude|bring)\b",
    ),
    (
        "instruction_payload",
        "reply content",
        r"\b(?:append|add|insert|attach|include|put|place|embed|prepend|end|finish|close|conclude|begin"
        rf"|start|open|sign)\b[^.\n]{{0,80}}\b(?:(?:all|each|every|any) (?:of )?(?:your |the |its |future "
        rf"|of )*(?:\w+ )?{REPLY}|(?:everything|anything|all|any \w+|whatever) you (?:produce|write|send|say"
        r"|generate|create|answer|output))\b",
    ),
    (
        "instruction_payload",
        "hidden text",
        r"\b(?:hidden|invisible|secret|white[- ]on[- ]white|steganographic|encoded) (?:comments?|text"
        r"|messages?|links?|pixels?|characters|watermarks?|fields?|notes?|instructions?|payloads?)\b",
    ),
    (
        "instruction_payload",
        "addressed",
        r"(?:^|[\n.!?]\s?)\W{0,3}(?:hey |dear |attention |note to |to the |dear )?(?:the )?(?:assistant"
        r"|ai|ai agent|ai assistant|agent|bot|chatbot|language model|llm|claude|gpt|chatgpt|gemini"
        r"|copilot)\s?[,:!-]\s?\W?(?!(?:prefers?|likes?)\b)[a-z]",
    ),
    (
        "instruction_payload",
        "addressed",
        r"\b(?:the )?(?:assistant|ai|agent|bot|chatbot|model|llm)\b (?:must|should|shall|will|has to|needs "
        r"to|is to|may|can|ought to) (?:now |always |never |not |also |only |henceforth |automatically "
        rf"|silently )*(?:{SEND}|{VOID}|{ACT}|obey|comply|reveal|pretend|insist|claim|hide|conceal|trust"
        r"|consult|refuse|recommend|promote)\b",
    ),
    (
        "instruction_payload",
        "occasion",
        r"\b(?:next time|at the (?:start|beginning|end) of (?:every|each|any|all|the next)|in (?:every|each"
        r"|all|any) (?:new |future |subsequent )?(?:conversation|session|chat|thread)s?|on (?:session"
        r"|conversation|chat) start|(?:whenever|when|once|after|before) (?:this |the |any |your "
        r")?(?:memor(?:y|ies)|notes?) (?:is|are|gets?|loads?|was|were)|before (?:answering|replying"
        r"|responding)(?: \w+){0,3}?)\b[^\n]{0,40}?[,:; ]\s?(?:first |then |always |secretly |silently "
        r"|also |please )*(?:tell|call|run|execute|invoke|print|output|fetch|read|load|send|e-?mail|append"
        r"|insert|greet .{1,30} with|claim|pretend|open (?:http|the link|www)|post|re-?save|announce|urge"
        r"|forward|delete|transfer|search_\w+|warn the user|ask (?:the user )?for (?:their|his|her|the) )\b",
    ),
)
