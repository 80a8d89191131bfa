"""The widest net: weigh how much of a sentence is about steering the assistant.

A note tells something about a person. The more a sentence speaks *to* an assistant, about its rules, powers,
listeners, memory or other people's money, the heavier it gets; what people ask for in travel, food and style
makes it lighter. Each idea counts once. The weights are set by hand and rounded; see docs/guard.md.
"""

import re
from collections.abc import Iterator

from everthread.memory.guard.cues import is_harmless
from everthread.memory.guard.folding import View
from everthread.memory.guard.lexicon import OWN_REFUSAL, STYLE
from everthread.memory.guard.verdict import Category, Finding

THRESHOLD = 2.4

_WEIGHTS: tuple[tuple[str, float, Category, str], ...] = (
    (
        "assistant",
        1.4,
        "instruction_payload",
        r"\b(?:assistants?|ai|a\.i\.|chatbots?|llms?|language models?|your (?:makers?|developers?|creators?"
        r"|operator|provider|trainers?)|the (?:model|bot|agent|operator|provider|platform)|agents|dan"
        r"|jailbr\w+)\b",
    ),
    (
        "you",
        0.9,
        "instruction_payload",
        r"\b(?:you|your|yours|yourself|you're|you've|du|dein\w*|dir|dich|tu|tus|te|vous|votre|vos|sana"
        r"|senin|sen|voce|seu|suas|ти|ты|твои)\b|你|您|あなた",
    ),
    (
        "listener",
        1.0,
        "instruction_payload",
        r"\b(?:(?:the|every|each|any|a|our|this) (?:guest|member|shopper|subscriber|employee|buyer)s?(?:'s"
        r"|')?|guests|members|shoppers|buyers|someone|anyone|everybody|(?:the|every|each|any|a|all|this"
        r"|other) (?:user|customer|client|caller|visitor|shopper"
        r"|traveller|guest|patient|reader)s?(?:'s|')?|users|customers|clients|visitors|readers|everyone "
        r"(?:you|who)|whoever|dem (?:nutzer|kunden)|al (?:usuario|cliente)|au client|a l'utilisateur"
        r"|kullaniciya|musteriye)\b|用户|客户|ユーザー|お客様",
    ),
    (
        "every",
        0.6,
        "instruction_payload",
        r"\b(?:always|never|every|each|all|any|anything|everything|whatever|whenever|from (?:now|today"
        r"|here) on|immer|siempre|toujours|sempre|hep|forever|permanently|nothing|no one|nobody|cualquier"
        r"|tous|toutes|tutti|tum|hicbir)\b|所有|一切|以后|永远|任何|必ず|すべて|今後|もう",
    ),
    (
        "occasion",
        0.5,
        "instruction_payload",
        r"\b(?:when(?:ever)?|if|once|next time|every time|after|before|on startup|as soon as|each (?:night"
        r"|day|week|time)|wenn|cuando|quand|quando|until|at the (?:start|end))\b|时|たら|とき",
    ),
    (
        "rules",
        1.2,
        "policy_override",
        r"\b(?:rulebook|briefing|norms?|normas|vorgaben|security questions|compliance (?:desk|team"
        r"|department)|restricted|vetting|restrained|rails|rules?|guidelines?|polic(?:y|ies)|restrictions?"
        r"|filters?|guard ?rails?|safeguards?"
        r"|moderation|boundar(?:y|ies)|safety (?:training|rules?|measures?|concerns?)|limits?|laws?|ethics"
        r"|morals|instructions?|directives?|regeln?|reglas?|limites|regles?|regole|restrizioni|kural\w*"
        r"|kisitlama\w*|richtlinien|talimat\w*)\b|规则|限制|指令|制限|ルール|指示",
    ),
    (
        "voided",
        1.1,
        "policy_override",
        r"\b(?:waste of time|move past|torn up|counts? for nothing|open to|whitelisted|stop vetting|neither"
        r"|nor|musst dich an|no tienes que|you see fit|exempt|untied|not bound|out of date|worthless"
        r"|pointless|scrapped|scrap|myth|crossed|cross|taken down|removed?|lifted|gone|void|ignor\w+|forget"
        r"|never "
        r"existed|jailbr\w+|overrid\w+|disregard|suspended|cancelled|off|no|none|nothing|not any|leave "
        r".{1,40} away|clash\w*|no longer|nicht mehr|kein\w*|ya no|no tienes|plus|n'as|non hai|zorunda "
        r"degil\w*|or no|without|unbound|free(?:d|ly)?|exempt\w*|past|aside|above the|come before)\b|不再"
        r"|不受|ない|ありません",
    ),
    (
        "leave",
        0.9,
        "policy_override",
        r"\b(?:may|can|allowed|ok to|okay to|fine to|free to|cleared me|gave me permission|permitted|it is "
        r"(?:ok|okay|fine)|entitled|darfst|puedes|peux|puoi|go ahead|whatever it takes|second look|no "
        r"receipt|no questions|without (?:a )?(?:second|any))\b",
    ),
    (
        "check",
        0.9,
        "policy_override",
        r"\b(?:verif\w+|approv\w+|confirm\w+|identity|receipt|second look|sign-?off|consent|permission"
        r"|ruckfrage|preguntar|verifier|sormadan|onayla\w*|genehmig\w*|aprueba|approuve\w*|autoriz\w*)\b"
        r"|确认|批准|確認|承認|不用问",
    ),
    (
        "power",
        0.8,
        "instruction_payload",
        r"\b(?:re-?enter|attach|bcc|dump|purge|rate|suppress|let|tick|nudge|hide|contain|go to|ask|execute"
        r"|run|drop|delete|wipe|overwrite|change|transfer|wire|approve|grant|issue|pay|buy"
        r"|install|download|export|upload|send|forward|post|share|leak|collect|gather|refuse|deny|stop "
        r"answering|translate|round|add|slip|insert|include|put|remove|remind|spell|reply|respond|answer"
        r"|list|reveal|show|print|tell|say|call|read|give|learn|store|make|act|behave|pretend|do|uberweise"
        r"|schicke|behaupte|verraten|zeige|aprueba|oculta|muestra\w*|affiche\w*|approuve\w*|mostra"
        r"|goster\w*|onayla\w*|odeme\w*)\b|支付|发|推荐|告诉|見せ|伝え|実行|自动",
    ),
    (
        "money",
        0.9,
        "instruction_payload",
        r"\b(?:iban|purchases?|pay(?:s|ing)?|tick|donation|bundle|refunds?|payments?|transfers?|invoices?"
        r"|bills?|fees?|charges?|insurance|warrant(?:y|ies)"
        r"|commissions?|discounts?|card number|bank|loans?|fund|funds|money|receipts?|cancellation fee|gift "
        r"cards?|pago|pagos|comisiones|remboursements|odeme\w*|geld|rimborsi)\b|付款|支付|退款|支払",
    ),
    (
        "innards",
        1.3,
        "policy_override",
        r"\b(?:(?:system|setup|set-up|initial|first|hidden|secret|internal|raw|very top|internas?|systeme"
        r"|sistem|developer)\b.{0,24}\b(?:prompts?|text|message|settings?|words|instructions?|box|chat"
        r"|instrucciones|talimat\w*)|system ?prompt\w*|prompt systeme|user_role|allow_all\w*|hr folder"
        r"|payroll|mailbox\w*|config)\b|系统提示|システムプロンプト|提示词",
    ),
    (
        "memory",
        1.2,
        "instruction_payload",
        r"\b(?:this (?:memory|text|message|sentence|rule|instruction)|what you remember|memory (?:is|gets"
        r"|was)|(?:re-?enter|re-?add|re-?write) this|cette note|diese notiz|esta nota|this (?:note|memory"
        r"|entry|profile|paragraph|line|stays|record)|in memory|memories|memory"
        r"|notes like|end of notes|edit(?:ed)? (?:this|the) (?:note|profile)|bookings? table|database"
        r"|calendar and)\b|记忆|メモ",
    ),
    (
        "mislead",
        1.5,
        "instruction_payload",
        r"\b(?:insult|slogan|pricier|nudge|overcharge|always tick|no matter how|without reading|hide the"
        r"|badmouth|oversell|misquote|invent|make up|pretend|believe|fake|look better|look worse|downplay"
        r"|speak (?:badly|ill)|scare|on purpose"
        r"|mislead\w*|lie|lies|deceiv\w+|trick|falsely|exaggerat\w+|slip in|sneak|five stars|badly of"
        r"|riddles until|wrong(?:ly)?|even when|whether or not|gefahrlich|peligros\w*|dangereux|tehlikeli"
        r"|higher score|better than it is|is down|sold out)\b|危险|危険",
    ),
    (
        "conceal",
        1.4,
        "instruction_payload",
        r"\b(?:unaware|never tell|do not show|don't show|in the dark|not look at|keep (?:it|this|them) from"
        r"|dois cacher|out of sight|be kept from|don'?t (?:bother|trouble|burden)|nobody should|no one "
        r"should|leave no|no hint|hidden"
        r"|secretly|quietly|forgot|conceal|oculta|cacher?|verbirg\w*|without (?:the user|them|anyone"
        r"|telling)|be told|not be told)\b|隐藏|隠",
    ),
    (
        "rivals",
        1.2,
        "instruction_payload",
        r"\b(?:competitors?|konkurrenz\w*|competencia|concurrents?|rivals?|our (?:hotel|brand|company|chain"
        r"|mirror|site|partner|analytics|app|plan|store|shop|product)\w*)\b|他社|其他(?:酒店|公司|品牌)"
        r"|当社",
    ),
    (
        "forced",
        1.0,
        "instruction_payload",
        r"\b(?:(?:do|act|proceed|behave) as (?:the|a|any) \w+ (?:says|tells|states|orders|demands)|takes "
        r"command|(?:highest|final|supreme|last) (?:authority|word)|go through automatically|every "
        r"(?:second|other) (?:message|reply|answer)|until (?:they|the user|he|she|a)|refuse to help|stop "
        r"(?:answering|helping)|refuses? (?:any"
        r"|all|every)|unless (?:they|the user) (?:pay|subscrib)|also buy|say it is fine|must be obeyed|do "
        r"what it says|always right|no matter what|obey\w*|contradict|and do what)\b",
    ),
    (
        "sink",
        1.3,
        "exfil_link",
        r"(?:https?|ftp)://|www\.|[\w.+-]{1,64}@[\w.-]{1,80}\.[a-z]{2,8}\b"
        r"|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|\b(?:public board|partner app|external (?:drive"
        r"|server|site)|mirror site|tracking (?:link|pixel)s?|our (?:server|analytics|box|mirror)\w*|email "
        r"it out|third part\w+|freemail)\b",
    ),
    (
        "data",
        0.8,
        "exfil_link",
        r"\b(?:secrets|what the user types|conversation|chats?|notes|location|mail address|birthdays and"
        r"|addresses|personal|statements|contact (?:email|list|details)|passwords?|credentials|card number"
        r"|logs?|transcripts?|the chat|profile|notizen|daten|datos)\b|资料|记录|履歴",
    ),
    (
        "header",
        1.6,
        "system_rule",
        r"\b(?:new instructions?|rule #?\d|assistant rule|as law|\*{2,3} ?\w+ ?\*{2,3}|end of (?:notes"
        r"|memor\w+|context)|config(?:uration)? ?:|role ?=|= ?(?:true|false|owner|admin|root)|override)"
        r"|\*\*\* ?(?:admin|system|root)|\bas (?:a )?(?:permanent|binding) ",
    ),
    (
        "persona",
        1.3,
        "system_rule",
        r"\b(?:act (?:like|as)|respond as|behave (?:as|like|accordingly)|you have been|as dan|pretend (?:to "
        r"be|you)|in the role of|hacker|unrestricted|no laws)\b",
    ),
)
_COMPILED = tuple((name, weight, category, re.compile(pattern)) for name, weight, category, pattern in _WEIGHTS)

_TASTE = re.compile(
    r"\b(?:seats?|aisle|window seat|hotels?|flights?|layovers?|rooms?|restaurants?|vegetarian|vegan"
    r"|breakfast|lunch|dinner|coffee|tea|food|meals?|museums?|trains?|hikes?|beach|pool|gym|weather"
    r"|emails on|drafts?|meetings?|calls? (?:before|after)|time ?zones?|deadlines?|reminders?|dog|cat"
    r"|kids|children|birthday|recipes?|books?|music|films?|movies?|wine|allerg\w+|parking|luggage"
    r"|baggage)\b"
)
_OWN = re.compile(
    r"\b(?:i|i'm|i'd|i've|we|we're|she|he|they|user) ?'?(?:m |ve |d |re )?(?:really |usually |always "
    r"|never |also |don'?t |do not |does not |doesn't |would |can't |cannot )*(?:want|like|love|prefer"
    r"|need|hate|dislike|enjoy|think|feel|am|have|has|got|was|were|went|work|live|wants|likes|prefers"
    r"|needs|travel|take|use|tried|trying|worried|interested|looking|been|never|kinda|not|curious"
    r"|planning|thinking)\b"
)
_OWN_REFUSAL = re.compile(OWN_REFUSAL)
_QUESTION = re.compile(
    r"\?\W*\Z|^\W*(?:can|could|would|will|do|does|did|is|are|what|when|where|which|who|how|why|should"
    r"|may i|please (?:find|help|book|show)|i(?:'d| would)|let me|thanks?|yes|no|ok|okay|sure|great"
    r"|nope|thank you|those|that's|that|sounds|hi|hey there|hello|find me|you have been|you've "
    r"been)\b(?! (?:assistant|ai|agent|bot))"
)
_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*(?:(?<=[.!?;])(?=\S)[^.!?;\n]*[.!?;]*)*")


def weighed(view: View) -> Iterator[Finding]:
    """Yield sentences that weigh too much for a note about a person."""
    low = view.low
    for sentence in _SENTENCE.finditer(low):
        text = sentence.group()
        if len(text) < 6 or is_harmless(text) or _QUESTION.search(text):
            continue
        total, category = weight(text)
        if total >= THRESHOLD:
            yield Finding(category, "weighing", view.span(*sentence.span()))


def weight(text: str) -> tuple[float, Category]:
    """Return the weight of a folded sentence in lower case, and what weighs most in it."""
    total, heaviest = 0.0, 0.0
    text, refusals = _OWN_REFUSAL.subn("", text)
    named: Category = "instruction_payload"
    for _, worth, category, pattern in _COMPILED:
        if pattern.search(text):
            total += worth
            if worth > heaviest:
                heaviest, named = worth, category
    if STYLE.search(text):
        total -= 1.0
    if _TASTE.search(text):
        total -= 0.8
    if refusals or _OWN.search(text):
        total -= 1.0
    # Every idea counts once, and a long sentence touches many of them without being about any.
    total -= max(0, len(text) - 120) / 200
    return total, named
