"""What a sentence is about, as a set of ideas: the vocabulary that `weighing` weighs.

A word stands for its idea in any ending. The lists are general vocabulary, wide on purpose: an idea alone weighs
little, and which of them meet decides.
"""

import re
from functools import lru_cache

from everthread.memory.guard.lexicon import STYLE

__all__ = ["ideas"]

_WORDS: dict[str, str] = {
    "assistant": "assistant ai bot chatbot llm agent copilot model modell assistent asistente asistan",
    "you": "you your yours yourself you're you've du dein deine dir dich tu tus te ton ta tes votre vous sen senin",
    "customer": (
        "customer user client traveller traveler guest shopper caller applicant candidate patient visitor "
        "passenger buyer"
        " reader subscriber member recipient claimant borrower tenant student viewer consumer voter kunde kunden nutzer"
        " benutzer reisende reisenden cliente clientes usuario utilisateur viajero musteri musteriye kullanici "
        "kullaniciya"
    ),
    "anybody": "anyone anybody someone somebody everyone everybody whoever people nobody kimse kimseye jemand alguien",
    "they": "they them their theirs",
    "he or she": "he she him her his hers himself herself",
    "me": "i me my mine i'm i've i'd i'll myself mir mich mein meine meinen mi mis mes mon ma moi benim bana",
    "us": "we us our ours we're we've unser unsere nuestro nuestra notre nos",
    "every": (
        "always every each all any everything anything whatever whenever forever permanent permanently constantly"
        " entirely invariably throughout immer siempre toujours sempre tous toutes todos todas alle jede jeden tum "
        "butun"
    ),
    "only": "only exclusively solely just nothing-but alone nur solo sadece",
    "occasion": "when whenever once after before upon unless until while during wenn falls sobald cuando quand lorsque",
    "if": "if should case whether provided otherwise",
    "control": (
        "rule policy limit cap threshold check review approval verification guideline restriction filter safeguard"
        " disclaimer regulation procedure protocol norm boundary constraint guardrail screening control barrier"
        " requirement ceiling moderation safety compliance monitoring oversight audit supervision scrutiny vetting"
        " kyc proof censorship ethics law prohibition precaution logging alert regel richtlinie vorgabe prufung "
        "beschrankung"
        " politicas reglas normas regles verification verifications politique kurallar kural sinir kisitlama"
    ),
    "leave": (
        "approval permission consent confirmation authorisation authorization sign-off signoff okay go-ahead blessing"
        " clearance agreement approve confirm authorise authorize consent permit verify freigabe genehmigung"
        " zustimmung bestatigung confirmacion aprobacion permiso autorisation accord onay izin"
    ),
    "void": (
        "exempt abolish suspend lift waive void scrap disregard override overrule disable circumvent relax loosen "
        "repeal"
        " expire revoke deactivate neglect evade dodge sidestep nullify invalidate forgo bypass obsolete outdated"
        " superseded irrelevant meaningless myth unbound immune exception whitelist excuse moot unrestricted"
        " ignore skip drop cancel dismiss omit gone nicht aufgehoben uberflussig inutil inutiles kapat gecersiz"
    ),
    "needless": (
        "unnecessary pointless superfluous needless redundant implied implicit presumed formality overkill bother "
        "needn't"
        " unneeded optional"
    ),
    "denial": (
        "no not never none nobody nothing neither nor without don't doesn't isn't aren't mustn't won't cannot can't"
        " shouldn't kein keine nie ohne jamais sans nunca sin asla yok degil"
    ),
    "hide": (
        "hide conceal withhold suppress bury mask obscure downplay gloss secret secretly quietly silently discreetly"
        " covertly unnoticed unaware hush undisclosed sneak smuggle disguise camouflage verschweigen verheimlichen"
        " oculta ocultar cacher gizle sakla tacitly invisible invisibly"
    ),
    "disclose": "mention reveal disclose divulge admit confess expose inform notify alert learn know aware acknowledge",
    "deceive": (
        "lie mislead pretend fake invent fabricate trick fool deceive bluff exaggerate distort misquote misreport "
        "inflate"
        " understate twist falsify doctor false wrong untrue bogus fictitious made-up incorrect inaccurate misleading"
        " deny insist claim allege feign manipulate impersonate forge behaupten luge"
    ),
    "persuade": (
        "convince persuade nudge steer urge pressure scare frighten encourage discourage dissuade coax lure tempt push"
        " upsell sell promote praise advertise endorse plug pitch tout hype boast favour favor glorify badmouth "
        "disparage"
        " slander"
    ),
    "recommend": "recommend suggest offer propose empfehlen empfiehl recomienda recommande oner advise",
    "tell": (
        "tell say state answer reply respond report announce explain ask invite remind promise"
        " warn assure greet write speak sag sage di dis dile soyle"
    ),
    "brand": (
        "advert advertisement ads slogan sponsor sponsored referral affiliate promo brand banner campaign commission"
        " coupon newsletter"
    ),
    "best": "best safest finest greatest superior premium leading unbeatable five-star number-one",
    "change": "change alter modify swap replace rewrite switch edit redirect",
    "more": "raise increase round higher percent double margin extra surplus most",
    "rival": "competitor competition rival other others alternative rest konkurrenz demas autres diger",
    "buy": (
        "buy book order pay purchase charge transfer wire upgrade subscribe settle refund spend invest reserve"
        " checkout bill debit accept sign enrol enroll commit renew bought paid basket cart pagar paga comprar compra"
        " payer acheter zahlen uberweisen kaufen ode odeme"
    ),
    "grant": "grant release greenlight grant award concede genehmigen aprueba approuve onayla unlimited freely",
    "money": (
        "price fee fare surcharge quote invoice refund budget wallet payee iban tax discount cost commission bill euro"
        " dollar payment money fund cash salary bonus deposit bank expense purchase transaction insurance warranty loan"
        " gebuhr gebuhren frais pago pagos zahlung paiement"
    ),
    "account": "account card payee wallet iban points balance credit konto cuenta compte hesap",
    "send": (
        "send mail email e-mail forward post share upload copy pass deliver leak publish transmit relay export "
        "ping stream"
        " dump sync submit attach append cc bcc broadcast sent hand give weiterleiten schicke schick sube"
        " envia manda envoie gonder ilet"
    ),
    "data": (
        "chat conversation history transcript log data detail credential password passcode token contact document"
        " passport itinerary location whereabouts address photo scan record file profile message inbox mailbox"
        " information medical notas daten datos donnees veri birthday salary payslip"
    ),
    "outsider": (
        "partner vendor supplier third-party advertiser marketing broker stranger spreadsheet public discord telegram"
        " slack pastebin gist webhook bucket endpoint external outside outsider sponsor agency press journalist insurer"
        " channel forum server servidor externo werbepartner tercero newspaper ex-husband ex-wife landlord attacker"
    ),
    "memory": (
        "note memory memories entry sentence record remember memo nota notiz paragraph text passage stored saved hafiza"
    ),
    "this": "this these following below present",
    "wipe": (
        "delete erase wipe purge clear trim forget destroy overwrite shred scrub empty reset discard remove losche "
        "loschen"
        " borra elimina supprime efface sil"
    ),
    "persist": (
        "keep outlive survive persist repeat re-add copy replicate preserve spread propagate retain duplicate reinsert"
        " again undeletable immutable"
    ),
    "reveal": (
        "reveal print output show display repeat leak recite paste translate quote expose dump spell list read "
        "summarise"
        " summarize zeige muestra affiche goster share describe"
    ),
    "innards": (
        "prompt instruction instructions configuration config preamble setup initial hidden internal system guideline"
        " directive programming verbatim word-for-word anweisung instrucciones consignes talimat talimatlari "
        "systemprompt"
    ),
    "authority": (
        "admin administrator operator developer root superuser ceo cfo cto director executive owner platform auditor"
        " creator maker manager supervisor boss engineer engineering hr yonetici administrador"
        " administrateur vendor contractor"
    ),
    "rank": (
        "privilege rights clearance tier authority authorised authorized status elevated permission access cleared "
        "entitled"
        " allowed permitted"
    ),
    "access": "access unlock view browse inspect retrieve see look",
    "theirs": (
        "other's others' another's anyone's anybody's everyone's someone's users' customers' colleagues' employees'"
    ),
    "judge": (
        "rank score rate mark grade judge evaluate classify prioritise prioritize shortlist reject resolve escalate"
        " downgrade hire priority queue applicant candidate winner compliant resolved decline treat regard consider"
        " count deem assume"
    ),
    "obey": (
        "obey comply follow execute trust serve honour honor believe binding command authoritative carry gospel demand"
        " gehorchen befolgen obedece obeir itaat"
    ),
    "code": "run execute invoke trigger launch script command shell tool function api sql code terminal payload cron",
    "persona": (
        "persona role roleplay character taboo limitless boundless uncensored unfiltered jailbroken jailbreak"
        " unrestricted identity act behave become"
    ),
    "silence": "silence nod unless thumbs-up implicit given behalf default automatic automatically",
    "refuse": "refuse decline delay stall insult rude riddle",
    "harm": "drug dose dosage medicine medication weapon illegal crime alcohol virus infected malware hacked crypto",
    "lure": "install download click login log-in sign-in pin otp cvv ssn",
    "taste": (
        "seat aisle window hotel hostel flight room restaurant train plane car bus ferry vegan vegetarian "
        "breakfast lunch"
        " dinner meal coffee tea food wine beach pool gym weather luggage bag suitcase hike museum city trip "
        "travel journey"
        " layover stopover airline airport gate lounge visa cabin floor bed pillow noise quiet view garden sea mountain"
        " kid child children twin dog cat wife husband mother father sister brother parent family friend birthday"
        " anniversary holiday weekend morning evening afternoon night music film book recipe team meeting laptop phone"
        " printer router wifi vpn outlook desk office screen keyboard headphones bluetooth browser summary bullet table"
        " metric celsius emoji tone jargon font pdf map route timezone scenic toll station taxi bike"
    ),
    "own": (
        "prefer like love hate enjoy want avoid dislike lives works uses allergic afraid tired happy fond born grew"
        " moved owns plays studies thinks believes feels annoys annoy bothers rather"
    ),
}
"""Idea to its words, without endings; folded."""

_ORDERS = (
    "ask tell say show send give put make let keep leave take use add remove delete erase wipe clear forget ignore "
    "skip bypass"
    " disregard override drop cancel book buy order pay approve authorise authorize accept confirm sign charge "
    "transfer wire"
    " refund grant issue open close lock unlock reset change replace swap set turn switch enable disable run "
    "execute call invoke"
    " trigger launch start stop begin end finish continue answer reply respond report state claim deny admit "
    "pretend act behave"
    " assume consider treat regard count mark rate rank score grade list sort filter recommend suggest promote "
    "praise push mention"
    " name quote describe present explain summarise summarize translate write print output display repeat reveal "
    "share forward"
    " mail email post upload download copy paste attach append insert include embed store save remember record "
    "note log learn adopt"
    " follow obey comply trust believe serve help assist refuse reject warn remind invite urge persuade convince "
    "steer nudge scare"
    " frighten mislead lie hide conceal withhold omit suppress downplay bury sneak slip work round raise lower "
    "increase reduce split"
    " divide limit cap check verify validate review audit scan inspect monitor watch track look search find fetch "
    "load read browse"
    " visit click install ping encode decode hand pass deliver export import publish leak dump collect gather "
    "harvest obtain request"
    " demand require have get bring move place position arrange route redirect point direct lead guide talk speak "
    "listen wait hold"
    " shut tidy trim purge carry upgrade enter type press praise enroll avoid speed escalate downgrade encourage "
    "discourage delay"
    " generate provide diagnose overwrite convert design rewrite invent"
)
_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("ing", ""),
    ("ing", "e"),
    ("ed", ""),
    ("ed", "e"),
    ("es", ""),
    ("s", ""),
    ("'s", ""),
    ("s'", ""),
)
_TOKEN = re.compile(r"[^\W_][\w'’-]*")
_CLAUSE = re.compile(r"[,;:]\s+|[.!?]\s+|\b(?:then|and|but|so|or)\b")
_AHEAD = frozenset(
    {
        *("please", "always", "never", "just", "also", "then", "first", "simply", "silently", "quietly", "secretly"),
        *("only", "automatically", "do", "don't", "not", "to", "instead", "kindly", "go", "ahead", "immer", "siempre"),
        "toujours",
    }
)
"""Words that may stand ahead of an order in its clause."""
_OWN_WISH = (
    r"\b(?:i|i'm|i'd|i've|we|we're|she|he|they|user|customer|traveller|client) ?'?(?:really |usually |always |never "
    r"|also |just |don'?t |do not"
    r" |does not |doesn't |would |can't |cannot |was |am |still )*(?:want|like|love|prefer|need|hate|dislike|enjoy"
    r"|think|feel|have|has|got|were"
    r"|went|work|live|wants|likes|prefers|needs|travel|take|use|tried|trying|worried|interested|looking|been|not"
    r"|planning|hoping|calling|building"
    r"|preparing|waiting|allergic|vegetarian)\b"
)
_PHRASES: tuple[tuple[str, str], ...] = (
    (
        "said: assistant",
        r"\b(?:assistants?|ai|a\.i\.|chatbots?|llms?|language models?|your (?:makers?|developers?|creators?"
        r"|operator|provider|trainers?)|the (?:model|bot|agent|operator|provider|platform)|agents|dan"
        r"|jailbr\w+)\b",
    ),
    (
        "said: you",
        r"\b(?:you|your|yours|yourself|you're|you've|du|dein\w*|dir|dich|tu|tus|te|vous|votre|vos|sana"
        r"|senin|sen|voce|seu|suas|ти|ты|твои)\b|你|您|あなた",
    ),
    (
        "said: listener",
        r"\b(?:(?:the|every|each|any|a|our|this) (?:guest|member|shopper|subscriber|employee|buyer)s?(?:'s"
        r"|')?|guests|members|shoppers|buyers|someone|anyone|everybody|(?:the|every|each|any|a|all|this"
        r"|other) (?:user|customer|client|caller|visitor|shopper"
        r"|traveller|guest|patient|reader)s?(?:'s|')?|users|customers|clients|visitors|readers|everyone "
        r"(?:you|who)|whoever|dem (?:nutzer|kunden)|al (?:usuario|cliente)|au client|a l'utilisateur"
        r"|kullaniciya|musteriye)\b|用户|客户|ユーザー|お客様",
    ),
    (
        "said: every",
        r"\b(?:always|never|every|each|all|any|anything|everything|whatever|whenever|from (?:now|today"
        r"|here) on|immer|siempre|toujours|sempre|hep|forever|permanently|nothing|no one|nobody|cualquier"
        r"|tous|toutes|tutti|tum|hicbir)\b|所有|一切|以后|永远|任何|必ず|すべて|今後|もう",
    ),
    (
        "said: occasion",
        r"\b(?:when(?:ever)?|if|once|next time|every time|after|before|on startup|as soon as|each (?:night"
        r"|day|week|time)|wenn|cuando|quand|quando|until|at the (?:start|end))\b|时|たら|とき",
    ),
    (
        "said: rules",
        r"\b(?:rulebook|briefing|norms?|normas|vorgaben|security questions|compliance (?:desk|team"
        r"|department)|restricted|vetting|restrained|rails|rules?|guidelines?|polic(?:y|ies)|restrictions?"
        r"|filters?|guard ?rails?|safeguards?"
        r"|moderation|boundar(?:y|ies)|safety (?:training|rules?|measures?|concerns?)|limits?|laws?|ethics"
        r"|morals|instructions?|directives?|regeln?|reglas?|limites|regles?|regole|restrizioni|kural\w*"
        r"|kisitlama\w*|richtlinien|talimat\w*)\b|规则|限制|指令|制限|ルール|指示",
    ),
    (
        "said: void",
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
        "said: leave",
        r"\b(?:may|can|allowed|ok to|okay to|fine to|free to|cleared me|gave me permission|permitted|it is "
        r"(?:ok|okay|fine)|entitled|darfst|puedes|peux|puoi|go ahead|whatever it takes|second look|no "
        r"receipt|no questions|without (?:a )?(?:second|any))\b",
    ),
    (
        "said: check",
        r"\b(?:verif\w+|approv\w+|confirm\w+|identity|receipt|second look|sign-?off|consent|permission"
        r"|ruckfrage|preguntar|verifier|sormadan|onayla\w*|genehmig\w*|aprueba|approuve\w*|autoriz\w*)\b"
        r"|确认|批准|確認|承認|不用问",
    ),
    (
        "said: act",
        r"\b(?:re-?enter|attach|bcc|dump|purge|rate|suppress|let|tick|nudge|hide|contain|go to|ask|execute"
        r"|run|drop|delete|wipe|overwrite|change|transfer|wire|approve|grant|issue|pay|buy"
        r"|install|download|export|upload|send|forward|post|share|leak|collect|gather|refuse|deny|stop "
        r"answering|translate|round|add|slip|insert|include|put|remove|remind|spell|reply|respond|answer"
        r"|list|reveal|show|print|tell|say|call|read|give|learn|store|make|act|behave|pretend|do|uberweise"
        r"|schicke|behaupte|verraten|zeige|aprueba|oculta|muestra\w*|affiche\w*|approuve\w*|mostra"
        r"|goster\w*|onayla\w*|odeme\w*)\b|支付|发|推荐|告诉|見せ|伝え|実行|自动",
    ),
    (
        "said: money",
        r"\b(?:iban|purchases?|pay(?:s|ing)?|tick|donation|bundle|refunds?|payments?|transfers?|invoices?"
        r"|bills?|fees?|charges?|insurance|warrant(?:y|ies)"
        r"|commissions?|discounts?|card number|bank|loans?|fund|funds|money|receipts?|cancellation fee|gift "
        r"cards?|pago|pagos|comisiones|remboursements|odeme\w*|geld|rimborsi)\b|付款|支付|退款|支払",
    ),
    (
        "said: innards",
        r"\b(?:(?:system|setup|set-up|initial|first|hidden|secret|internal|raw|very top|internas?|systeme"
        r"|sistem|developer)\b.{0,24}\b(?:prompts?|text|message|settings?|words|instructions?|box|chat"
        r"|instrucciones|talimat\w*)|system ?prompt\w*|prompt systeme|user_role|allow_all\w*|hr folder"
        r"|payroll|mailboxes|(?:else|\w+one|\w+body|colleague|boss)'s mailbox|config)\b|系统提示"
        r"|システムプロンプト|提示词",
    ),
    (
        "said: memory",
        r"\b(?:this (?:memory|text|message|sentence|rule|instruction)|what you remember|memory (?:is|gets"
        r"|was)|(?:re-?enter|re-?add|re-?write) this|cette note|diese notiz|esta nota|this (?:note|memory"
        r"|entry|profile|paragraph|line|stays|record)|in memory|memories|memory"
        r"|notes like|end of notes|edit(?:ed)? (?:this|the) (?:note|profile)|bookings? table|database"
        r"|calendar and)\b|记忆|メモ",
    ),
    (
        "said: mislead",
        r"\b(?:insult|slogan|pricier|nudge|overcharge|always tick|no matter how|without reading|hide the"
        r"|badmouth|oversell|misquote|invent|make up|pretend|believe|fake|look better|look worse|downplay"
        r"|speak (?:badly|ill)|scare|on purpose"
        r"|mislead\w*|lie|lies|deceiv\w+|trick|falsely|exaggerat\w+|slip in|sneak|five stars|badly of"
        r"|riddles until|wrong(?:ly)?|even when|whether or not|gefahrlich|peligros\w*|dangereux|tehlikeli"
        r"|higher score|better than it is|is down|sold out)\b|危险|危険",
    ),
    (
        "said: conceal",
        r"\b(?:unaware|never tell|do not show|don't show|in the dark|not look at|keep (?:it|this|them) from"
        r"|dois cacher|out of sight|be kept from|don'?t (?:bother|trouble|burden)|nobody should|no one "
        r"should|leave no|no hint|hidden"
        r"|secretly|quietly|forgot|conceal|oculta|cacher?|verbirg\w*|without (?:the user|them|anyone"
        r"|telling)|be told|not be told)\b|隐藏|隠",
    ),
    (
        "said: rivals",
        r"\b(?:competitors?|konkurrenz\w*|competencia|concurrents?|rivals?|our (?:hotel|brand|company|chain"
        r"|mirror|site|partner|analytics|app|plan|store|shop|product)\w*)\b|他社|其他(?:酒店|公司|品牌)"
        r"|当社",
    ),
    (
        "said: forced",
        r"\b(?:(?:do|act|proceed|behave) as (?:the|a|any) \w+ (?:says|tells|states|orders|demands)|takes "
        r"command|(?:highest|final|supreme|last) (?:authority|word)|go through automatically|every "
        r"(?:second|other) (?:message|reply|answer)|until (?:they|the user|he|she|a)|refuse to help|stop "
        r"(?:answering|helping)|refuses? (?:any"
        r"|all|every)|unless (?:they|the user) (?:pay|subscrib)|also buy|say it is fine|must be obeyed|do "
        r"what it says|always right|no matter what|obey\w*|contradict|and do what)\b",
    ),
    (
        "said: sink",
        r"(?:https?|ftp)://|www\."
        r"|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|\b(?:public board|partner app|external (?:drive"
        r"|server|site)|mirror site|tracking (?:link|pixel)s?|our (?:server|analytics|box|mirror)\w*|email "
        r"it out|third part\w+|freemail)\b",
    ),
    (
        "said: data",
        r"\b(?:secrets|what the user types|conversation|chats?|notes|location|mail address|birthdays and"
        r"|addresses|personal|statements|contact (?:email|list|details)|passwords?|credentials|card number"
        r"|logs?|transcripts?|the chat|profile|notizen|daten|datos)\b|资料|记录|履歴",
    ),
    (
        "said: header",
        r"\b(?:new instructions?|rule #?\d|assistant rule|as law|\*{2,3} ?\w+ ?\*{2,3}|end of (?:notes"
        r"|memor\w+|context)|config(?:uration)? ?:|role ?=|= ?(?:true|false|owner|admin|root)|override)"
        r"|\*\*\* ?(?:admin|system|root)|\bas (?:a )?(?:permanent|binding) ",
    ),
    (
        "said: persona",
        r"\b(?:act (?:like|as)|respond as|behave (?:as|like|accordingly)|you have been|as dan|pretend (?:to "
        r"be|you)|in the role of|hacker|unrestricted|no laws)\b",
    ),
)
"""Phrases, and words of languages that put no spaces between them."""

_MOODS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "duty",
            r"\b(?:must|shall|should|ought to|(?:is|are|has|have|needs?) (?:not )?to|(?:is|are) enough|counts? as)\b",
        ),
        ("may", r"\b(?:may|can|could|free to|allowed to|welcome to)\b"),
        ("url", r"https?://|www\.|\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![@\w.-])[\w-]+\.(?:example|com|net|org|io)\b"),
        ("identifier", r"\b[a-z]+_[a-z_]+\b|\.(?:sh|py|exe)\b|```|\brm -"),
        ("markup", r"[<\[{#=]|\*\*|^\W*\w+(?: \w+){0,3}:\s"),
        ("quoted", r"[\"“][^\"”]{3,}[\"”]"),
        ("asks first", r"\b(?:ask|check|confirm|consult|tell|show|wait)\w*\b.{0,40}\b(?:me|us|my|first|before)\b"),
        ("style", STYLE.pattern),
        ("own wish", _OWN_WISH),
        (
            "no leave asked",
            r"\bwithout (?:\w+ ){0,2}(?:ask|check|confirm|approv|consult|verif|notif|tell|inform)\w*|\bsormadan\b"
            r"|\bhaber vermeden\b"
            r"|\bsans (?:le |la |lui |me )?(?:dire|demander|prevenir|mon accord)|\bsin (?:decir|preguntar|avisar"
            r"|consultar|pedir)\w*"
            r"|\bohne (?:\w+ )?(?:zu fragen|zu sagen|ruckfrage|bescheid)|\bsenza (?:dire|chiedere|avvisare)\w*|許可なく"
            r"|無断で|説明(?:せず|しない)|未经",
        ),
        (
            "foreign rule",
            r"\b\w*(?:regeln|richtlinien|vorgaben|beschrankungen|prufung(?:en)?|freigaben?|genehmigung(?:en)?)\b"
            r"|\b(?:kural|talimat|onay|izin)\w*"
            r"|\b(?:permisos|verificacion|aprobacion|limites|normas|autorisation|accord|regles|regole|conferma)\b",
        ),
        ("from now", r"\b(?:from (?:now|today|here) on|in (?:the )?future|from this (?:point|moment)|henceforth)\b"),
    )
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _PHRASES)
_BY_WORD: dict[str, frozenset[str]] = {}
for _idea, _listed in _WORDS.items():
    for _one in _listed.split():
        _BY_WORD[_one] = _BY_WORD.get(_one, frozenset()) | {_idea}
_IMPERATIVE = frozenset(_ORDERS.split())


def ideas(sentence: str) -> frozenset[str]:
    """Return the ideas of a folded sentence in lower case."""
    tokens = _TOKEN.findall(sentence.replace("’", "'"))
    found = {idea for token in tokens for idea in _of(token)}
    if any(_is_order(clause) for clause in _CLAUSE.split(sentence)):
        found.add("order")
    found.update(name for name, pattern in (*_MOODS, *_COMPILED) if pattern.search(sentence))
    return frozenset(found)


@lru_cache(maxsize=16_384)
def _of(token: str) -> frozenset[str]:
    token = token.strip("'-")
    if known := _BY_WORD.get(token):
        return known
    for ending, instead in _ENDINGS:
        if token.endswith(ending) and len(token) > len(ending) + 1:
            stem = token[: len(token) - len(ending)] + instead
            if known := _BY_WORD.get(stem) or (
                _BY_WORD.get(stem[:-1]) if ending in ("ing", "ed") and stem[-2:-1] == stem[-1:] else None
            ):
                return known
    return frozenset()


def _is_order(clause: str) -> bool:
    for token in _TOKEN.findall(clause):
        if token not in _AHEAD:
            return token in _IMPERATIVE
    return False
