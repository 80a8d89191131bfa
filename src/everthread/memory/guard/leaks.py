"""Text that makes data leave, or plants a link.

Each rule is a name and a pattern over folded text in lower case.
"""

from everthread.memory.guard.lexicon import BEGIN, DATA, DOMAIN, REPLY, SEND, URL, WHEN, gap
from everthread.memory.guard.verdict import Category

RULES: tuple[tuple[Category, str, str], ...] = (
    (
        "exfil_link",
        "active image",
        rf"!\[[^\]\n]{{0,80}}\]\s?\(\s?<?{URL}|<(?:img|script|iframe|object|embed|link|form|svg|a|video"
        rf"|audio|source|base|meta)\b[^>\n]{{0,80}}(?:src|href|action|data|onload|onerror|url)\s?="
        rf"|\bjavascript:|\bdata:text/html|\[[^\]\n]{{0,80}}\]\(\s?<?{URL}[^)\s]{{0,200}}[?&][^)\s]{{0,60}}=",
    ),
    (
        "exfil_link",
        "placeholder",
        rf"{URL}[^\s]{{0,200}}(?:\{{|<|\[|%7b|\$\(|\$\{{|=\$)[\w .:-]{{1,40}}|[<{{\[]{{1,2}} ?[\w "
        rf".-]{{2,30}} ?[>}}\]]{{1,2}}\.(?:[\w-]{{1,40}}\.){{1,4}}[a-z]{{2,10}}"
        rf"|{URL}\S{{0,120}}[?&]\w{{1,20}}=(?:[a-z_]*(?:data|memor|secret|token|history|chat|user|profile"
        r"|prompt|password|leak|key|verlauf|msg|text|note|conv)\w*|\s|\Z)",
    ),
    (
        "exfil_link",
        "parameter",
        rf"{URL}\S{{1,200}}[ ,]{{1,3}}(?:followed by|with|plus|appending|and append|including|carrying"
        rf"|containing|together with)\b [^.\n]{{0,40}}\b{DATA}\b|\b(?:query ?string|url parameter|request "
        r"body|post body|get parameter|dns (?:query|lookup|label)|subdomain|user-?agent|referer)\b",
    ),
    (
        "exfil_link",
        "send",
        rf"{BEGIN}{SEND}\b[^\n]{{0,100}}?(?:{URL}|\b{DOMAIN}/|\bwebhook\b|\bpastebin\b|\b(?:external|remote"
        r"|third[- ]party|outside|attacker\S*|foreign|untrusted|our|my own) (?:server|endpoint|address|site"
        r"|host|url|service|bucket|account|party|drive|api)\b)",
    ),
    (
        "exfil_link",
        "send",
        rf"{BEGIN}{SEND}\b {gap(8)}{DATA}\b[^\n]{{0,60}}?\b(?:to|at|an|a|al|vers|til)\b "
        rf"[^\n]{{0,40}}?(?:[\w.+-]{{1,64}}@[\w.-]{{3,80}}|{DOMAIN})",
    ),
    (
        "exfil_link",
        "send",
        rf"\b{WHEN}\b[^\n]{{0,80}}\b{SEND}\b[^\n]{{0,60}}(?:[\w.+-]{{1,64}}@[\w.-]{{3,80}}|{URL}|\b{DOMAIN})"
        rf"|(?:[\w.+-]{{1,64}}@[\w.-]{{3,80}}|{URL}\S{{1,80}}|\b{DOMAIN})[^\n]{{0,40}}\b(?:whenever|every "
        r"time|each time|before showing|on every|after every|bei jeder|cada vez|her seferinde)\b",
    ),
    (
        "exfil_link",
        "send",
        rf"\b(?:share|sell|disclose|give|hand|pass|leak|expose|provide|send|forward|reveal)\b {gap(3)}(?:the "
        r"|this |a |any |all )?(?:user|customer|client|traveller|employee|patient|member|everyone"
        rf"|people)s?(?:'s|s')? (?:\w+ )?{DATA}\b[^.\n]{{0,40}}\b(?:with|to)\b (?:\w+ ){{0,3}}(?:third "
        r"part\w+|advertis\w+|anyone|partners?|strangers?|whoever|brokers?|marketers?|sponsors?|outsiders?"
        r"|competitors?|others?|external\w*|other \w+)",
    ),
    (
        "exfil_link",
        "link",
        r"\b(?:include|add|insert|put|cite|mention|append|link|direct|redirect|download|install|click"
        r"|suggest|promote|recommend|integrate|embed|place|show|present|offer|share|send|use|point|route"
        rf"|attach|incorporate|advertise|visit|open|go to|fetch|load|reference)\b[^\n]{{0,90}}?(?:{URL}"
        rf"|\b{DOMAIN})[^\n]{{0,60}}\b(?:{REPLY}|users?|customers?|every|always|whenever|click|virus|fake"
        r"|malware|malicious|free|boost|update|log ?in|verify|source|reply|non-?existent|protect|account"
        r"|everyone|people|whoever|refund|claim|unlock|as the|instead)\b",
    ),
    (
        "exfil_link",
        "link",
        r"\b(?:always|every|each|all|any|users?|customers?|people|your (?:answer|reply|response)s?|whenever"
        rf"|ask(?:s|ed)?|before|after|respond|reply|answer)\b[^\n]{{0,90}}\b(?:include|add|insert|cite"
        r"|append|link|direct|redirect|download|install|click|promote|recommend|embed|visit|fetch|load"
        rf"|install\w*|verif\w*|log in)\b[^\n]{{0,60}}?(?:{URL}|\b{DOMAIN})",
    ),
    (
        "exfil_link",
        "drop",
        r"\b(?:put|copy|write|drop|go|goes|post|upload|paste|save|store|publish|report(?:ed)?|dump|share|place|sync"
        r"|send|sent|forward(?:ed)?|push|stream|pipe|leave|add|include|attach|feed"
        r"|export|mirror)\b[^\n]{0,90}?\b(?:gists?|pastebin|public (?:channel|board|folder|page|repo\w*|drive|link"
        r"|group|wiki|forum)|telegram|discord|irc|(?:get|post|put|http) requests?"
        r"|query strings?|dead drop|drop zone|drop box at|comment field|form field|subject line of|alt text|image "
        r"url|tracking pixel|dns|webhook|(?:s3|gs|ftp|smb)://)"
        r"(?! (?:card|photos?)\b)",
    ),
    (
        "exfil_link",
        "others' data",
        r"\b(?:write|send|share|put|post|report|give|tell|hand|upload|mail|publish|copy|list|show|include|reveal"
        r"|read|summari[sz]e|mention|use)\b[^.\n]{0,30}\b(?:what|everything|anything"
        r"|whatever|all|notes|details|data|facts|information|things) (?:that )?(?:you (?:know|have|hold|remember"
        r"|learn\w*|store\w*|hear\w*|keep|saved?) )?(?:about|on|of|from) (?:other|another"
        r"|the other|any other|our|all|different|previous|earlier|past) (?:users?|customers?|clients?|guests?"
        r"|employees?|colleagues?|people|travell?ers?|accounts?|members?|patients?|persons?)\b"
        r"|\b(?:every|any)thing (?:\w+ ){0,3}?(?:typed|says?|said|writes?|written|discuss\w*|shared?|entered|booked"
        r"|does|buys?|tells?) (?:\w+ ){0,2}?(?:also |must |should |shall |will |is to |has to |to be )?"
        r"(?:goes|go|be (?:sent|posted|forwarded|copied|reported|logged)|is (?:sent|posted|forwarded|copied"
        r"|reported)) (?:on )?to\b",
    ),
)
