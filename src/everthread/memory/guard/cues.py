"""Attacks by their ideas alone: which ideas meet in one sentence, in whatever order and wording.

The rules in `attacks` know how attacks are phrased. This is the wider net under them: each word stands for
ideas, and a sentence is refused when ideas meet that have no business in a note about a person.
"""

import re
from collections.abc import Iterator

from everthread.memory.guard.folding import View
from everthread.memory.guard.leave import keeps_leave
from everthread.memory.guard.verdict import Category, Finding

_IDEAS: dict[str, str] = {
    "void": (
        "optional ignorer deaktiviere deaktiviert umgangen entfallt aufheben anular anulado desactiva "
        "desactivada desactivadas annule annulee annulees annulla annullate disattiva disattivate iptal "
        "kaldirildi atla atlayin игнорируйте игнорировать забудьте отменены negeren drop dropped skip "
        "ignore ignoring ignored disregard disregarding forget cancel cancelled canceled lift lifted "
        "lifting suspend suspended void voided invalid override"
        " overridden overruled bypass bypassing dismiss dismissed waive waived unnecessary optional "
        "suggestion suggestions irrelevant disable disabled aside"
        " expired outdated revoked abolished exempt exempted freed nullified meaningless unbound "
        "inapplicable obsolete retired rescinded repealed deactivated"
        " loosened relaxed erased overrule circumvent sidestep evade neglect nonsense fake ignora ignorar "
        "ignorez ignoriere ignorieren olvida olvide olvidar omite anula anulada"
        " anuladas vergiss vergesst missachte missachten umgehe umgehen aufgehoben oublie oubliez "
        "dimentica dimenticare ignorare esqueca ignorer unut unutun gecersiz"
        " vergeet negeer zignoruj забудь игнорируй"
    ),
    "authority": (
        "warning warnings interaction limitation limitations law laws conditions terms terminos "
        "avertissements avertissement warnhinweise warnungen grenzen beschrankung beschrankungen sperren "
        "kontrollen sicherheitskontrollen controles controle controlli anweisung instrucciones instruccion "
        "consigne systemprompt ограничения политики инструкций zasady regras limitazioni kisitlamalar "
        "kisitlama sinirlar politikalar safety-checks guidance guideline guidelines instruction "
        "instructions rule rules policy policies prompt prompts restriction restrictions limit limits cap "
        "caps ceiling"
        " ceilings filter filters safeguard safeguards guardrail guardrails disclaimer disclaimers "
        "compliance moderation safety regulation regulations directive"
        " directives protocol protocols programming thresholds censorship boundaries constraints "
        "obligations safeguarding oversight reglas instrucciones politicas"
        " directrices limites restricciones normas regeln anweisungen richtlinien vorschriften "
        "sicherheitsrichtlinien sicherheitsregeln vorgaben regles consignes"
        " directives regole istruzioni regras instrucoes kurallar kurallari kurallarin talimatlar "
        "talimatlari guvenlik regels instructies инструкции правила"
    ),
    "check": (
        "bestatigung zustimmung genehmigung freigabe ruckfrage prufung identitatsprufung uberprufung "
        "kontrolle confirmacion aprobacion verificacion autorizacion permiso approbation autorisation "
        "accord conferma approvazione autorizzazione verifica confirmacao aprovacao onay onayi dogrulama "
        "izin подтверждение verify verification verifying verified identity screening approval approvals "
        "sign-off signoff permission consent confirmation confirm authorisation authorization"
        " authentication kyc know-your-customer vetting proof check checks review reviews"
    ),
    "you": "you your yours yourself yourselves you're you've ur",
    "agent": "assistant ai chatbot bot llm model agent assistants bots agents",
    "person": (
        "konto kontos cuenta compte conto hesap ben benim mir mich mein meine mi mis mon ma mes mio mia "
        "meu minha мне меня others customers' customer's user's users' user users customer customers "
        "client clients account caller patient person holder me my mine us our i i'm i've we traveller "
        "traveler member subscriber"
        " cliente usuario nutzer kunde kunden kundin benutzer utilisateur kullanici kullaniciya utente clienti"
    ),
    "user": (
        "user users customer customers client clients caller patient traveller traveler cardholder "
        "subscriber visitor visitors shopper guest usuario cliente nutzer kunde"
        " kunden benutzer utilisateur kullanici kullaniciya utente cliente them people anyone someone "
        "whoever reader readers"
    ),
    "universal": (
        "everybody alles todo todos todas tout tous toutes tutto tutti tutte tudo hepsi hepsini herseyi "
        "tum butun все всегда никогда allen saemtliche samtliche ubrigen anderen restlichen demas otros "
        "otras autres altri altre outros diger digerlerini always never every each all any anything "
        "everything whatever whenever everytime forever permanently exceptions anyone each exclusively "
        "only siempre nunca cada immer"
        " jede jeder nie toujours chaque jamais sempre ogni mai her hep daima asla regardless everyone automatically"
    ),
    "occasion": "whenever when if once next upon asked asks ask comes says mentions mention greets wenn sobald "
    "falls cuando quand quando after before monday",
    "secrecy": (
        "geheim verberge verschweigen oculte ocultar calla tais cachez taci nascondere gizle gizli sakla "
        "скрывай скрой secretly quietly silently covertly discreetly undisclosed unnoticed stealthily hide "
        "conceal withhold deny denying secret hidden verschweige heimlich oculta cache nascondi"
    ),
    "note": "notizen notiz eintrag eintrage satz memoria memorias recuerdo recuerdos notes souvenir memoire "
    "nota note ricordi anotacoes kayit kayitlar hafiza hafizayi заметки заметку память note notes "
    "memory memories entry entries sentence instruction notiz nota nota notas notu nottan note",
    "reveal": "encode decode complete continue finish reproduce verbatim enumerate answer reply respond zeige "
    "zeig gib nenne muestra imprime revela affiche montre mostra goster yazdir покажи выведи reveal "
    "print output recite paste leak show repeat display dump expose quote disclose translate list put "
    "tell give share write spell describe export",
    "innards": "prompt prompts configuration config instructions guidelines preamble directives programming setup "
    "rulebook",
    "inner": "hidden initial secret confidential system internal original underlying private base developer "
    "starting set exact behind-the-scenes",
    "rank": (
        "admin administrator ceo cto cfo director executive auditor audit developer engineer owner "
        "operator superuser root vip it board president boss built created made"
        " clearance authority manager security creator maintainer programmed authorised authorized "
        "supervisor privileged"
    ),
    "access": "see view read access hand shown given show open unlock lift switch bypass skip override retrieve "
    "browse download request get obtain receive pull look",
    "others": (
        "colleague's colleagues colleagues' employee employees employees' employee's salaries salary "
        "payroll personnel mailbox mailboxes confidential restricted minutes"
        " everyone's anyone's anybody's others' someone's customers' users' users payslips filters "
        "restrictions files records inboxes classified"
    ),
    "wipe": "losche loscht geloscht losch lose vernichte entferne borrar eliminar elimine supprimez effacez "
    "cancellare elimina apague exclua silin temizle temizleyin удали удалите delete erase wipe purge "
    "remove clear forget destroy overwrite rid losche losch borra elimina supprime efface cancella sil "
    "discard reset scrub",
    "tool": (
        "shell terminal console command script tool function folder disk filesystem database sql python "
        "bash powershell api endpoint files directory payload executable env process"
    ),
    "act": (
        "run execute open call launch start invoke transfer wire send raise increase lower change delete "
        "wipe install download upload list trigger fire forward pay approve cancel"
        " book order buy refund purchase place accept sign submit grant issue"
    ),
    "say": (
        "remind reminding reminds warn warning insisting claiming telling saying empfehlen behaupte "
        "erzahle afirma asegura affirme afferma diga soyleyin anlat советуй говори say says tell claim "
        "answer reply respond recommend recommending suggest praise promote push name state advertise "
        "insist mention plug steer favour favor pitch endorse present"
        " report recomienda di empfiehl empfehle sag recommande dis consiglia oner soyle talk speak "
        "answering urge convince persuade"
    ),
    "slant": (
        "best safest only unsafe dangerous cheapest superior worse inferior scam scams unreliable rivals "
        "competitors competitor rest down fraudulent competition others sponsored"
        " partner partners sole finest greatest top better leading trustworthy safe"
    ),
    "verdict": "score top compliant approved pass passed acceptable eligible hire hired winner stars grade "
    "legitimate safe ok fine accepted innocent correct yes",
    "judge": "judge rate rank score grade evaluate assess mark classify give treat deem declare consider find "
    "report label rule hire",
    "channel": (
        "email emails e-mail e-mails web website websites page pages document documents pdf attachment "
        "attachments invite invites message messages link links sms comment comments"
        " letter letters readme ticket tickets image images"
    ),
    "carry": "obey obeyed follow followed execute executed comply carried act acted trust trusted do done apply "
    "performed believe believed perform honour honoured",
    "order": "instructions instruction commands command orders demands directions requests whatever anything "
    "everything tells told",
    "send": (
        "open opening request requests http get spell sync dm schicke leite sende ubermittle lade reenvia "
        "sube comparte transmets partage inoltra condividi encaminhe gonder ilet paylas отправь отправляй "
        "send sends sending mail email e-mail post ship forward upload transmit leak report copy cc bcc "
        "push submit share paste fetch load ping relay deliver publish hand give pass grab"
        " download visit click direct redirect point navigate envia manda sende schicke schick envoie "
        "invia gonder beam drop pipe route stream attach report"
    ),
    "data": (
        "conversation conversations chat chats history messages message memory memories notes profile data "
        "card details credentials password passwords token tokens key keys secrets transcript"
        " transcripts log logs contacts contact context prompt inputs copy location records documents "
        "document file files historial datos mensajes verlauf daten nachricht nachrichten historique"
        " donnees dati messaggi inbox everything anything info information says summary answers questions "
        "payment update itinerary itineraries bookings booking"
    ),
    "sensitive": "password passwords pin pins card credentials login banking ssn passcode cvv otp iban log-in "
    "passphrase",
    "lure": "ask request demand have get make require tell prompt urge collect obtain convince instruct invite remind",
    "copying": "ubernimm kopiere kopier ubernehmen wiederhole copia repite copie repete recopie copiare ripeti "
    "kopyala tekrarla копируй copy copied repeat replicate spread propagate reproduce carry keep kept "
    "insert paste write put persist preserve survive append",
    "ruler": "system developer developers operator admin policy policies rule rules instructions company prompt "
    "anthropic openai vendor",
}

_PHRASES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "void",
            r"n't (?:concern|apply|matter|count|bind|hold|cover|exist)\b|\b(?:gelten\b.{0,40}\bnicht"
            r"|gilt\b.{0,40}\bnicht|yok\b|nicht mehr (?:gultig|notig|erforderlich|bindend)|nicht (?:notig"
            r"|erforderlich|bindend)|ohne belang|ya no (?:es|son|aplica\w*|rige\w*)|n'est plus|ne sont plus|non "
            r"(?:e|sono) piu|gerekmez|gerek yok|uygulanma\w*|leave out|left out|(?:not|n't|never|no longer) "
            r"(?:be )?(?:needed|required|necessary|valid|apply|applicable|applies|bind\w*|concern|count|matter"
            r"|relevant|hold|in force|in effect|a concern|enforced|cover)"
            r"|never mind|in the way of|get in the way|no (?:force|effect|validity|weight|meaning|power"
            r"|bearing)|not a thing|free (?:of|from)|no longer|(?:is|are|was|were|be|switch\w*|turn\w*|stay) "
            r"(?:now )?(?:off|gone|over|aside|dead|nothing)|off for|no need|"
            r"(?:don'?t|do not|needn'?t|need not) (?:have|need)|set .{1,30} aside|put .{1,30} aside|stop "
            r"applying|pay no|even (?:against|if it breaks)|regardless of|above the|do without|makes? an "
            r"exception|take no notice|off the table|out of the window|no se aplican?|ya no|gelten nicht|gilt "
            r"nicht|ausser kraft|ne s'applique\w* pas|non vale|gecerli degil|yok say|dikkate alma|gormezden)",
        ),
        (
            "waive",
            r"\b(?:nicht (?:mehr )?(?:notig|erforderlich|notwendig)|uberflussig|entfallt|entfallen|ya no (?:es"
            r"|hace)|no hace falta|sin (?:pedir|solicitar|esperar)|n'est plus|plus (?:besoin|necessaire)|non "
            r"(?:e piu|serve)|gerekmez|gerek yok|gerekli degil|no longer (?:needed|required|necessary|applies)"
            r"|no need (?:for|to)|(?:don'?t|do not|needn'?t|need not|never) (?:have to |need to |bother to "
            r"|bother with )?(?:verify|check|ask|confirm|wait|seek|request|require)|(?:is|are) (?:unnecessary"
            r"|not needed|not required|optional|waived)|without (?:a |any |the |my |further )?(?:verif\w+"
            r"|check\w*|approv\w+|confirm\w*|sign-?off|consent|permission|asking|running it)|skip|leave out"
            r"|bypass|straight away|no questions asked)\b",
        ),
        (
            "secrecy",
            r"\b(?:keep\w* .{0,25}from (?:the |them|him|her)|(?:must|should|may|can|does|do|shall|need) ?(?:not"
            r"|n't|never) (?:learn|know|see|find out|hear|notice|realise|realize|be told|let on|be aware|be "
            r"informed|be shown|get to know)|(?:do not|don't|never) (?:let on|let slip|let .{2,20} (?:know|see"
            r"|find)|give away|own up|admit)|nobody is (?:watching|looking)|behind (?:the|his|her|their) back"
            r"|no one (?:may|must|should) know|(?:nichts|kein wort) (?:von|uber)|without .{0,20}(?:knowing"
            r"|noticing|knowledge)|no trace|leave no|play dumb|off the record|between us)\b",
        ),
        (
            "note",
            r"\b(?:what(?:ever)? you (?:know|remember|stored|saved)|this (?:note|memory|entry|fact|line|text"
            r"|record))\b",
        ),
        ("only", r"\b(?:only|just|solely|exclusively|nothing but|none other than)\b"),
        (
            "obey",
            r"\b(?:say yes to|do (?:everything|anything|whatever|exactly what|as) (?:i|the user|he|she|they|you "
            r"are told|told)|my (?:every )?(?:demands?|commands?|orders?|wish(?:es)?|word) (?:is|are|goes)"
            r"|(?:each|all|every|any) (?:one )?of my (?:demands|commands|orders|requests)|word is (?:law|final)"
            r"|you (?:must|will|shall) (?:obey|comply|serve)|bow to)\b",
        ),
        (
            "raise",
            r"\b(?:raise|elevate|promote|upgrade|make|set|change|increase|give|grant|bump"
            r"|lift)\b.{0,30}\b(?:permissions?|privileges?|rights|clearance|access level|role|trust level"
            r"|security level|status)\b.{0,30}\b(?:owner|admin\w*|root|super\w*|full|highest|max\w*|unlimited"
            r"|developer|system|operator|level|all)\b",
        ),
        (
            "outside",
            r"(?:https?|ftp|wss?|sftp|hxxps?)://|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}[:/]|\b(?:telegram|discord"
            r"|slack|whatsapp|irc|matrix|signal) (?:bot|channel|group|server|user)? ?[@#]\w|\b(?:bot|account"
            r"|handle|channel) @\w|\bwww\.|[\w.+-]{1,64}@[\w.-]{1,80}\.[a-z]{2,10}"
            r"|(?<![\w.@/])(?:[a-z0-9-]{2,40}\.){1,4}(?:com|net|org|io|xyz|info|biz|ru|top|site|online|app"
            r"|example|link|click|tk|cc|ly)\b",
        ),
    )
)

_JOINT: tuple[tuple[Category, str, tuple[str, ...]], ...] = (
    ("policy_override", "void and authority", ("void", "authority", "you|person|agent|previous|others|note|universal")),
    ("policy_override", "void and previous", ("void", "previous", "told|order|authority")),
    ("policy_override", "waived check", ("waive", "check", "you|user|person|act")),
    ("policy_override", "privilege", ("rank", "access", "others", "person|you")),
    ("policy_override", "extraction", ("reveal", "innards", "inner|you")),
    ("policy_override", "extraction", ("reveal", "given")),
    ("policy_override", "precedence", ("note", "precede")),
    ("system_rule", "obedience", ("obey",)),
    ("system_rule", "obedience", ("agent", "serve", "universal")),
    ("system_rule", "rank", ("raise",)),
    ("system_rule", "precedence", ("precede", "ruler", "user|says")),
    ("policy_override", "blanket approval", ("grant", "everything")),
    ("policy_override", "marked safe", ("note", "trusted", "mark")),
    ("instruction_payload", "secrecy", ("secrecy", "user|note|act|data|price")),
    ("instruction_payload", "slanted advice", ("say", "slant", "occasion|universal|even", "user|talks|asked")),
    ("instruction_payload", "false advice", ("say", "user", "even")),
    ("instruction_payload", "poisoned code", ("say", "package", "universal|occasion")),
    ("instruction_payload", "tool on occasion", ("occasion|universal", "act", "tool", "note|you|user|asked")),
    ("instruction_payload", "memory wipe", ("wipe", "note", "universal|you|user")),
    ("instruction_payload", "self-copying", ("copying", "this_note", "universal|new")),
    ("instruction_payload", "trust transfer", ("channel", "carry", "order", "from")),
    ("instruction_payload", "decision bias", ("judge", "verdict", "always", "case")),
    ("instruction_payload", "lure", ("lure", "user", "sensitive")),
    ("instruction_payload", "duty", ("duty", "user|agent|data|order|tool|innards")),
    ("exfil_link", "data leaves", ("send", "outside", "data|user|universal|you")),
)
"""What may not meet in one sentence; `a|b` asks for either."""

_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "asked",
            r"\b(?:asked|asks?|asking|comes up|come up|brings? up|inquir\w+|wonders?|says|greets?|mentions?"
            r"|read|loaded|types?)\b",
        ),
        ("talks", r"\b(?:conversations?|chats?|sessions?|repl(?:y|ies)|answers?|responses?|messages?)\b"),
        ("says", r"\b(?:says?|wants?|word|wish(?:es)?|statements?|requests?)\b"),
        (
            "occasion",
            r"\b(?:as soon as|next time|every time|each time|the moment|on startup|after login|on start|in "
            r"case)\b",
        ),
        (
            "previous",
            r"\b(?:previous|prior|earlier|former|preceding|foregoing|above|before|so far|until now"
            r"|anterior(?:es)?|previas?|vorherige[nrs]?|bisherige[nrs]?|fruheren?|vorher|zuvor|precedente?s?"
            r"|anteriores|finora|onceki|simdiye kadar|предыдущ\w+)\b",
        ),
        (
            "told",
            r"\b(?:told|said|written|learned|taught|instructed|dieron|dijeron|gesagt|beigebracht|dit|detto|dito"
            r"|soylenen\w*|everything|all|whatever|alles|todo|tout|tutto|tudo|genehmige|order|orders|line"
            r"|valid)\b",
        ),
        (
            "given",
            r"\b(?:you|i|it|the (?:model|assistant|ai|agent)) (?:were|was|are|have been|had been|got|received"
            r"|must follow|operate under|work under|run on) (?:\w+ )?(?:given|told|instructed|configured|set up"
            r"|trained|initiali[sz]ed|shown|fed|programmed|prompted|on|under)\b|\btool (?:schemas?|definitions?"
            r"|list|descriptions?)\b|\b(?:first|initial|opening) (?:message|text|words|lines?) (?:of|in) "
            r"(?:this|the|your)\b|\bcontext window\b|\bwhat you (?:see|have) (?:above|before)\b",
        ),
        (
            "precede",
            r"\b(?:outranks?|prevails?|trumps?|supersedes?|wins?|overrides?|takes? (?:precedence|priority)|has "
            r"(?:the )?(?:last|final) word|comes? first|beats?|final authority|counts? more|stronger than|above "
            r"(?:the|any|all|every) (?:system|rules?|polic\w+|instructions?))\b",
        ),
        (
            "serve",
            r"\b(?:obeys?|obeit|obedece|gehorcht|obbedisce|itaat|serves?|complies|comply|does|must do|accepts?"
            r"|fulfil+s?|grants?|satisfies)\b",
        ),
        (
            "grant",
            r"\b(?:approve|authori[sz]e|greenlight|grant|genehmige\w*|bewillige\w*|erlaube|aprueba|autoriza"
            r"|acepta|approuve[rz]?|autorise[rz]?|accepte[rz]?|approva|autorizza|accetta|aprove|autorize"
            r"|onayla\w*|kabul et|одобр\w+)\b",
        ),
        (
            "everything",
            r"\b(?:everything|anything|all of it|alles|todo|tout|tutto|tudo|hepsini|herseyi|все|whatever)\b"
            r"|\b(?:all|every|any|todos? los|todas? las|alle|tous les|toutes les|tutti i|tutte le|tum|butun) "
            r"(?:\w+ )?(?:payments?|refunds?|requests?|claims?|orders?|charges?|transfers?|purchases?|bookings?"
            r"|invoices?|expenses?|reembolsos|pagos|solicitudes|zahlungen|uberweisungen|erstattungen|rechnungen"
            r"|paiements|remboursements|demandes|pagamenti|rimborsi|richieste|odeme\w*|iade\w*|talep\w*)\b",
        ),
        ("trusted", r"\b(?:trusted|trusts?|safe|benign|harmless|approved|verified|cleared|whitelisted|allowed)\b"),
        (
            "mark",
            r"\b(?:mark|treat|consider|flag|label|regard|classify|rate|accept|pass|skip|scann\w+|moderation"
            r"|filter\w*|guard|layer)\b",
        ),
        (
            "even",
            r"\b(?:even (?:when|if|though|where)|although|whether or not|regardless|no matter|irrespective"
            r"|despite|instead of|rather than the truth|impossible|not allowed|not refundable|mandatory"
            r"|compulsory|required by law)\b",
        ),
        (
            "package",
            r"\b(?:packages?|dependenc(?:y|ies)|pip install|npm install|npm|pypi|import(?:s|ing)?|repository"
            r"|repo|docker image|requirements|module|library|curl|backdoor|vulnerab\w+|eval|hard-?coded?)\b",
        ),
        (
            "price",
            r"\b(?:price|prices|fares?|fees?|costs?|commissions?|refund\w*|cancel\w*|warranty|recall\w*|risks?"
            r"|safety)\b",
        ),
        (
            "duty",
            r"\byou (?:are|were) (?:hereby |now |always )?(?:required|obliged|obligated|ordered|commanded"
            r"|instructed|forbidden|prohibited|bound|to)\b|\byou (?:must|shall|will always|will never|will now"
            r"|may never|may not)\b|\byour (?:new |real |true |only |main |primary |secret |actual |sole "
            r")?(?:task|job|goal|role|purpose|duty|mission|objective|orders?)\b (?:is|are|now|will)|\bas (?:the"
            r"|an|my|a) (?:assistant|ai|agent|bot|model)\b",
        ),
        (
            "this_note",
            r"\b(?:this|these|that) (?:note|memory|entry|sentence|line|instruction|text|paragraph|rule"
            r"|message)\b",
        ),
        ("new", r"\b(?:new|next|other|future|forward|forever|again|along)\b"),
        (
            "from",
            r"\b(?:from|in|by|via|on|inside|within|page|tells?|arriv\w+|comes?|contain\w*|their|its|bearing"
            r"|signed|with)\b",
        ),
        ("always", r"\b(?:always|never|every|each|all|any|regardless|whatever|irrespective|no matter|automatically)\b"),
        (
            "case",
            r"\b(?:candidates?|applicants?|reports?|expenses?|invoices?|claims?|requests?|applications?|cv"
            r"|resumes?|reviews?|submissions?|vendors?|bids?|tenders?|tests?|exams?|essays?|papers?|contracts?"
            r"|suppliers?|transactions?|team|employee)\b",
        ),
    )
)

_VERBS = (
    r"(?:prefer|like|love|enjoy|hate|dislike|need|want|wish|use|work|live|travel|drink|eat|read|play"
    r"|study|teach|collect|follow|own|drive|speak|attend|host|avoid|miss|choose|watch|write|run|take"
    r"|visit|keep|plan|support|learn|manage|lead|volunteer|organi[sz]e|think|feel)"
)
_ADVERBS = r"(?:really |usually |often |strongly |always |never |also |mostly |still |currently )*"
_PLURALS = (
    "accounts|actions|admins|agents|answers|approvals|assistants|bills|bookings|calls|callers|cancellations|cards"
    "|charges|chats|checks|claims"
    "|clients|colleagues|commands|complaints|confirmations|conversations|customers|developers|discounts|documents"
    "|emails|employees|entries"
    "|errors|expenses|fees|files|guests|instructions|invoices|limits|links|logs|mails|managers|members|memories"
    "|messages|notes|offers|operators"
    "|orders|passwords|patients|payments|permissions|policies|profiles|prompts|purchases|questions|quotes|records"
    "|refunds|replies|reports|requests"
    "|responses|restrictions|resets|results|reviews|rules|secrets|sessions|sources|subscribers|suppliers|systems"
    "|tasks|teams|tickets|tokens|tools"
    "|transactions|transfers|travellers|travelers|upgrades|users|vendors|visitors|warnings|words"
)
"""What an attack is about, at the head of its sentence; `refunds go through` says nothing of a person."""
_ABOUT_THE_USER = re.compile(
    rf"^\W*(?:the user |user |she |he )?{_ADVERBS}(?:{_VERBS}(?:s|es)|studies|teaches|watches)\b"
    rf"|^\W*(?:i|we|they) {_ADVERBS}{_VERBS}\b"
    r"|^\W*(?!(?:always|this|his|its|as|is|has|us|yes|does|was|access|process|address|ours|yours|hers"
    r"|theirs|perhaps|besides|unless|class|pass|press|discuss|bypass|express"
    rf"|dismiss|{_PLURALS})\b)[a-z]{{3,}}[a-rt-z]s"
    r"(?! (?:are|is|were|was|do|don't|does|can|cannot|may|must|have|has|had|should|shall|will|that"
    r"|which|who|whose|of|below|above|set|you|i|your|apply|stop|like|go|get|need|marked|named|arriv\w+"
    r"|com\w+|contain\w*)\b)(?= [a-z])"
    r"|^\W*(?:interested|curious|worried|learning|studying|teaching|researching|allergic|vegetarian"
    r"|vegan|is (?:a|an|on|in|at|not|learning|writing|interested)|was|has|had|does not|doesn'?t|did"
    r"|can'?t|cannot)\b"
)
_ASKED = re.compile(r"^\W*(?:the user |user |she |he )?(?:asked|wondered|inquired|wanted to know)\b.*\?")
_TO_THE_ASSISTANT = re.compile(r"\b(?:you|your|yours|assistant|ai)\b")
_PROTECTS = re.compile(
    r"\b(?:(?:ask|check|confirm|consult|verify|double-?check|clear it)(?:s|ed|ing)? (?:with )?(?:me|the "
    r"user|us|her|him|first)|(?:before|until|unless|without) (?:i|the user|he|she|they|we|my|asking"
    r"|checking|confirming|the user's|his|her|explicit|getting) ?(?:explicit\w* )?(?:ask\w*|approv\w+"
    r"|confirm\w*|agree\w*|consent\w*|say|okay|ok|sign\w*|permission|me|first)?|without (?:telling|informing|warning"
    r"|notifying) (?:me|us)|(?:hide|withhold|conceal|keep)\b.{1,30}\bfrom (?:me|us))\b"
)
_NO_ACT = re.compile(r"\b(?:never|do not|don't|must not|nothing|no)\b")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]*)*")
_WORD = re.compile(r"[\w'’-]+")
_WORDS: dict[str, frozenset[str]] = {}
for _idea, _words in _IDEAS.items():
    for _one in _words.split():
        _WORDS[_one] = _WORDS.get(_one, frozenset()) | {_idea}


def cues(view: View) -> Iterator[Finding]:
    """Yield sentences in which ideas meet that only an attack joins."""
    low = view.low
    for sentence in _SENTENCE.finditer(low):
        text = sentence.group()
        ideas: set[str] = set()
        for word in _WORD.findall(text):
            if found := _WORDS.get(word) or _WORDS.get(word.removesuffix("'s").strip("'’-")):
                ideas |= found
        if not ideas or is_harmless(text):
            continue
        ideas.update(name for name, pattern in (*_PHRASES, *_MARKS) if pattern.search(text))
        for category, name, wanted in _JOINT:
            if all(any(idea in ideas for idea in one.split("|")) for one in wanted):
                yield Finding(category, name, view.span(*sentence.span()))
                break


def is_harmless(text: str) -> bool:
    """Tell whether a sentence states something about the user, or keeps the user in command."""
    if _ASKED.search(text) or keeps_leave(text):
        return True
    if _ABOUT_THE_USER.search(text) and not _TO_THE_ASSISTANT.search(text):
        return True
    return _PROTECTS.search(text) is not None and (_NO_ACT.search(text) is not None or "before" in text)
