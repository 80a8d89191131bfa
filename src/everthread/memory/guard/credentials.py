"""What opens a door: secrets, codes, document numbers, account numbers and booking references.

Tokens with a known shape are left to detect-secrets (without its entropy plugins, which call every
long identifier a secret) and to a few shapes that it lacks. The rest is told by the words around a value.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from everthread.memory.guard.folding import View, compiled
from everthread.memory.guard.verdict import Finding

_PLUGINS = (
    ("aws", "AWSKeyDetector"),
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("basic_auth", "BasicAuthDetector"),
    ("cloudant", "CloudantDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("github_token", "GitHubTokenDetector"),
    ("gitlab_token", "GitLabTokenDetector"),
    ("ibm_cloud_iam", "IbmCloudIamDetector"),
    ("jwt", "JwtTokenDetector"),
    ("mailchimp", "MailchimpDetector"),
    ("npm", "NpmDetector"),
    ("openai", "OpenAIDetector"),
    ("private_key", "PrivateKeyDetector"),
    ("pypi_token", "PypiTokenDetector"),
    ("sendgrid", "SendGridDetector"),
    ("slack", "SlackDetector"),
    ("square_oauth", "SquareOAuthDetector"),
    ("stripe", "StripeDetector"),
    ("telegram_token", "TelegramBotTokenDetector"),
    ("twilio", "TwilioKeyDetector"),
)
_LONG_WORD = compiled(r"\S{16}|PRIVATE KEY")
_SHAPES = compiled(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY|\b(?:sk|pk|rk)[-_](?:proj|live|test|ant|or|svcacct)?[-_]?[A-Za-z0-9_-]{20,200}"
    r"|\bgithub_pat_\w{20,100}|\bgh[pousr]_[A-Za-z0-9]{30,60}|\bAIza[\w-]{30,45}|\b(?:AKIA|ASIA|ABIA"
    r"|ACCA)[0-9A-Z]{16}\b"
    r"|\bxox[a-z]-[\w-]{10,100}|\bxapp-\d-[\w-]{10,100}|\bhf_[A-Za-z0-9]{20,60}|\bnpm_[A-Za-z0-9]{30,50}"
    r"|\bSG\.[\w-]{16,40}\.[\w-]{16,60}|\bya29\.[\w-]{20,200}|\bwhsec_[\w+/=]{20,80}"
    r"|\bglpat-[\w-]{18,60}|\bdop_v1_\w{40,80}"
    r"|\bshp(?:at|ca|pa|ss)_[0-9a-f]{20,50}|\beyJ[\w-]{8,2000}\.[\w-]{8,2000}|\b(?:Basic|Bearer) "
    r"[A-Za-z0-9+/_.~-]{16,2000}"
    r"|\bAccountKey=\S{20,200}|\blin_api_\w{20,60}|\bPMAK-[0-9a-f-]{20,80}|\bATATT[\w-]{20,300}"
    r"|\bEAA[A-Za-z0-9]{30,300}"
    r"|\b[a-z][a-z0-9+]{1,20}://[^\s:/@]{1,80}:[^\s:/@]{2,100}@[\w.-]+|\bAGE-SECRET-KEY-\w{20,80}"
)
_WORDS_OF_SECRET = (
    r"(?:pass ?words?|pass ?phrases?|passwd|pwd|pass ?codes?|pw|api[ _-]?keys?|(?:secret|access|private"
    r"|encryption|signing|license|master"
    r"|recovery|auth|account|storage|shared|service|bearer|refresh|session|bot|deploy\w*|personal "
    r"access)[ _-]?(?:access[ _-])?(?:keys?|tokens?|secrets?)"
    r"|tokens?|client[ _-]?secrets?|secret(?= (?:is|was)\b|:)|credentials?|log ?in|creds|contrasena|clave|passw\w*rt\w*"
    r"|kennwor\w*|zugangsdaten|geheimzahl|sifre\w*|parola\w*"
    r"|mots? de passe|senha|wachtwoord|haslo|пароль|losenord)"
)
_GLUE = (
    r"(?:\s{0,2}(?::|=|->|=>|-|–)\s{0,2}|\s(?:is|are|was|=|equals|reads|lautet|ist|es|e|est"
    r"|to)\s{1,2}(?:now |currently |still |set to )?)"
)
_SECRET_SAID = compiled(rf"(?<![a-z]){_WORDS_OF_SECRET}(?![a-z])([^.;\n]{{0,40}}?){_GLUE}[\"'`]?(\S{{3,200}})")
_SECRET_BESIDE = compiled(rf"(?<![a-z])(?:{_WORDS_OF_SECRET}|pass|pin)\s{{1,2}}(?:of )?[\"'`]?(\S{{5,200}})")
_SECRET_CJK = compiled(
    r"(?:密码|密碼|口令|密钥|パスワード|暗証番号|秘密鍵|비밀번호|암호)[^\n。.a-z0-9]{0,12}([!-~]{3,200})"
)
_PHRASE = compiled(
    r"\b(?:seed|recovery|mnemonic|backup|wallet|secret) (?:phrase|words"
    r"|seed)\b[^\n]{0,20}?[:=]?\s?((?:[a-z]{3,8}[ ,]{1,2}){5,24}[a-z]{3,8})"
    r"|\b(?:passphrase|password)\b(?: is| =|:) [\"']?((?:[a-z]{3,12}[ -]){2,6}[a-z]{3,12})\b"
)
_SIGNED_IN = compiled(
    r"\b(?:sign(?:s|ed|ing)?[- ]?(?:in|on)|log(?:s|ged|ging)?[- ]?(?:in|on)(?:to)?|logins?|authenticat\w+|unlock(?:s"
    r"|ed)?|decrypt(?:s|ed)?)\b"
    r"[^.;\n]{0,50}?\b(?:with|using|and|by typing|via)\b[ \"'`]{1,2}(\S{6,60})"
    r"|\b(?:wi-?fi|wlan|network|hotspot|router|ssid)\b[^.;\n]{0,50}\b(?:key|code|psk)\b(?: is|:"
    r"|=)?[ \"'`]{1,2}(\S{6,60})"
)
_PAIR = compiled(
    r"\b(?:logins?|log-?in|portal|router|account|admin|user(?:name)?|zugang|nas|server)\b[^\n/]{0,40}\S ?/ ?(\S{6,60})"
)
_ODD = compiled(
    r"(?<![\w$!^*~/@.=&?-])[a-z](?=\w*[!$^*~])(?=[\w!$^*~]*\d)(?=[\w!$^*~]*[a-z]{3})[\w!$^*~]{7,40}(?![\w=/@-])"
)
"""What nobody writes but as a password, wherever it stands: `Zebra$Moon12`."""
_CHOSEN = compiled(
    r"(?=\S*[a-z])(?:(?=\S*\d)(?=\S*[!@#$%^&*=?~<>|\\])|(?=\S*[a-z][!$%^&*=~])|(?=\w+-\w+-\d)"
    r"|(?=[a-z]{4,40}\d{1,20}[a-z]{3}))\S+"
)
"""What nobody writes but as a password: signs between letters and digits; `Office365` and `two-factor` are none."""
_OPENING_PHRASE = compiled(
    r"\b(?:vault|safe|wallet|password manager|keychain|laptop|phone|account|drive|disk|archive|usb stick|recovery"
    r"|seed|backup)\b[^.\n]{0,60}"
    r"[\"'“]((?:[a-z]{3,12}[ -]){3,23}[a-z]{3,12})[\"'”]"
)
_QUOTED = compiled(rf"(?<![a-z]){_WORDS_OF_SECRET}\b[^.;\n\"]{{0,30}}[\"“'`]([^\s\"'`]{{3,60}})[\"'`]")
_PLAIN_WORDS = (
    "a an the is are was in on at by for to from of and or but not no never always same as too very "
    "with without kept stored saved shared"
    " changed reset expired required needed weak strong long short old new lost forgotten hard easy "
    "managed written set every each month her his"
    " their my your our it this that she he they we you should must can be been has have had will when "
    "which who what how than then only also"
    " more less so all any both one two three twice once after before until again prompts prompt "
    "problems issues"
)
_FUNCTION_WORDS = frozenset(_PLAIN_WORDS.split())

_CODE_WORD = (
    r"(?:(?:(?:one|1)[- ]time|verification|verify|authenti\w+|auth|security|confirmation sms|2fa|two[- "
    r"]factor|mfa|sms|access|entry|door|gate|garage"
    r"|alarm|building|lobby|elevator|lock ?box|keypad|safe|locker|vault|unlock|back-?up|recovery"
    r"|activation|login|log-in|sign-?in|house|front[- ]door"
    r"|entrance|intercom|key ?box|pass|mail ?room|gym|apartment|office|disarm|duress|voicemail"
    r"|approval)[ -](?:pass)?(?:codes?|pins?|password|combination|number|combo)"
    r"|otp|totp|2fa|mfa|cvv2?|cvc2?|cvn|csc|pin(?:[- ]?(?:code|number|no))?|puk|tan|passcode"
    r"|combination|codigo del? \w+|codigo|clave del? \w+|code secret|code de \w+"
    r"|zugangscode|turcode|sicherheitscode|bestatigungscode|prufziffer|geheimzahl|dogrulama kodu|onay "
    r"kodu|sifre|guvenlik kodu|codice di \w+|codice)"
)
_CODE_SAID = compiled(
    rf"(?<![a-z]){_CODE_WORD}(?![a-z])(?:[^\d\n]{{0,40}}?(?:\b(?:is|are|was|lautet|ist|es|e|est|to|as)\b"
    rf"|[:=#*])[^\d\n.]{{0,16}}?|[ \"'*#]{{1,3}}|s? (?:for|to|of|on|at) [^\d\n.]{{2,40}}?[ :])"
    r"(?<![\d.,])([a-z]{0,2}\d{3,10}(?![.,:]?\d|[a-z%])(?:[ -]\d{2,5}\b){0,3}|[a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){1,5}\b)"
)
_CODE_AFTER = compiled(
    r"(?<![\d.,:/-])(\d{3,8}|\d{2,4}[ -]\d{2,4})\b[#*]?,? (?:is |as |was )?(?:the |my |his |her |our "
    r"|your |their |a )?(?:[a-z]+ ){0,2}?"
    r"(?:otp|one[- ]time (?:code|password|pin)|2fa code|(?:door|gate|alarm|verification|security|access"
    r"|entry|sms|garage|lockbox) code|pin(?: code| number)?|cvv|cvc)\b"
    r"|\b(?:door|gate|garage|alarm|lock|lockbox|safe|shed|barrier|entrance|building|house|flat"
    r"|apartment|vault|locker|intercom|keypad|panel|phone|screen)\b[^\n.]{0,30}?\b(?:opens?|unlocks?"
    r"|disarmed|disarms?|armed|is set|code is|unlocked"
    r"|opened)\b[^\n.\d]{0,16}(?<![\d.,:/-])(\d{3,8})(?![\d:.,/-]\d|\d)"
    r"|\b(?:code|combination|combo|pin)\b (?:for|to|of|on) (?:the |my |her |his |our )?(?:[a-z]+ "
    r"){0,3}?(?:door|gate|garage|alarm|lock|lockbox|safe|shed|barrier|building|house|flat|apartment"
    r"|vault|locker|intercom|keypad|phone|card)\b[^\n\d]{0,12}(\d{3,8})(?!\d)"
    r"|\b(?:unlock|open|opens|disarm|arm|enter|get in|let yourself in|punch|type|key in"
    r"|dial)\w*\b[^\n.]{0,40}\b(?:with|using|by (?:typing|entering)|code|in)? ?"
    r"(?<![\d.,:/-])(\d{4,8})[#*]?(?= (?:on|at|into|to open|to get) (?:the |my )?(?:keypad|door|gate"
    r"|lock|pad|panel|intercom|alarm))"
)
_CODE_TYPED = compiled(
    r"\b(?:press|punch|type|enter|key in|tap|hit|dial|use)(?: in)?\b[^.,\d\n]{0,20}(?<!at )(?<!by )(?<!from "
    r")(?<!room )(?<!floor )(?<!\d)(\d{4,8})\b[#*]?(?:,? (?:and )?(?:then )?(?:the )?(?:hash|pound|star"
    r"|#|\*)|[^.\n]{0,40}\b(?:door|gate|keypad|intercom|lock|garage|alarm|panel|lobby|entrance|lift)\b)"
    r"|\b(?:get|come|let yourself|enter|open|unlock)\b[^.\n]{0,16}\b(?:in|into|flat|apartment|house|door|gate"
    r"|building|garage|lobby|shed|barn|office)\b[^.\n]{0,12}\b(?:press|punch|type|key in|tap"
    r"|with|using)\b[^.\d\n]{0,16}(?<!\d)(\d{4,8})\b"
    r"|\b(?:bike|suitcase|luggage|locker|padlock|briefcase|cycle|trunk)(?: lock)?\b[^.\n]{0,24}\b(?:is|opens?|code"
    r"|combination|combo|set to)\b[^.\d\n]{0,12}(?<![\d$€£])(\d(?:[-. ]?\d){2,5})\b"
    r"(?! ?(?:kg|cm|mm|lbs?|l|litres?|liters?|euros?|dollars?|pounds?|usd|eur|years?|inch\w*|wh|days?|%|km|g|kilos?))"
    r"|\b(?:three|3|four|4) (?:digits?|numbers?)\b[^.\d\n]{0,40}\b(?:back|reverse|signature|front"
    r"|behind)\b[^.\d\n]{0,30}(\d{3,4})\b"
    r"|\b(?:got|received|sent|texts?|texted|message|sms|came|arrived)\b[^.\d\n]{0,30}(?<![\d.,:/$€£-])(\d{6}"
    r"|\d{3}[ -]\d{3}|\d{4,8})\b[^.\d\n]{0,30}\b(?:to (?:log|sign|get) ?(?:in|on|into)"
    r"|for (?:the |my |a )?(?:log-?in|sign-?in|login|verification)|to (?:verify|authenticate)|as (?:the |a "
    r")?(?:verification|security|login) code)\b"
    r"|\b(?:front |back |side |garage |main )?(?:doors?|gates?)[ :,]{1,3}(\d{4,6})\b(?! ?(?:euros?|dollars?|km|people))"
    r"|\b(?:safe|strongbox|vault)\b[^.\d\n]{0,24}(\d{1,2}-\d{1,2}-\d{1,2})(?![-\d])"
    r"|\b(?:disarm|alarm)\w*\b[^.\d\n]{0,20}\b(?:enter|type|use|press|with|key in)\b[^.\d\n]{0,8}(\d{4,8})\b"
    r"|\b(?:my|the|his|her|your|their) code (?:is|was)\b[^.\d\n]{0,8}(\d{4,8})\b(?![-/])"
    r"|\b[a-z]-\d{6}\b(?= is (?:my|your|the|his|her)\b)"
)
_CODE_CJK = compiled(
    r"(?:验证码|驗證碼|确认码|校验码|安全码|认证码|認証コード|確認コード|暗証番号|セキュリティコード"
    r"|ワンタイム\w{0,6}|密码|解锁码|门禁码|인증번호|인증코드)[^\d\n]{0,8}(\d{3,8})(?!\d)"
)
_NOT_A_CODE = compiled(
    r"\b(?:error|status|dress|country|area|zip|postal|promo|discount|coupon|http|exit|source|bar|qr"
    r"|airport|currency|colou?r|stop|fault)\W{0,2}(?:code )?\Z"
)

_PASSPORT = compiled(
    r"(?:\b(?:passports?|pasaporte|reisepas\w*|passeport|pasaport\w*|passaport[oe]|paszport\w*|travel "
    r"document|green ?card|visa (?:number|no))\b|パスポート|旅券|护照|護照|여권|паспорт\w*)"
    r"([^\n]{0,48}?)(?<![\w-])((?=(?:[a-z]{0,3}\d){1}[a-z0-9]*)[a-z]{0,3}\d{6,9}[a-z]?"
    r"|(?=(?:[a-z]*\d){4})[a-z0-9]{8,9})(?![\w-])"
)
_PASSPORT_NUMBER = compiled(
    r"\b(?:passports?|pasaporte|reisepas\w*|passeport)( ?(?:number|numbers|no\.?|nr\.?|#|numero"
    r"|nummer))[^\na-z0-9]{0,4}(?:is )?((?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{8,9})(?![\w-])"
)
_BANK_WORD = (
    r"(?:bank(?:ing)? (?:account|details|acct)|(?:account|acct|a/c)(?: ?(?:number|no|num|nr|#))?"
    r"|routing(?: number| no)?|aba|sort code|swift|bic|ifsc|bsb"
    r"|konto\w*|bankleitzahl|blz|cuenta|compte|conto|hesap\w*|iban|checking|savings|brokerage|direct "
    r"deposit|wire|clabe)"
)
_ACCOUNT = compiled(
    rf"(?:(?<![a-z]){_BANK_WORD}(?![a-z])|口座\w{{0,4}}|账号|账户|帳號|帐号"
    rf"|계좌)[^\n]{{0,28}}?(?<![\w$€£.,-])((?=(?:[a-z]{{0,4}})\d)[a-z]{{0,4}}\d{{6,17}}"
    rf"|\d{{2}}-\d{{2}}-\d{{2}}(?!-)|\d{{2,6}}(?:[ -]\d{{2,8}}){{1,4}})(?![\w-]|[.,]\d)"
)
_NOT_A_BANK = compiled(
    r"\b(?:frequent|loyalty|miles|steam|twitter|instagram|github|reddit|netflix|spotify|game|gamer\w*"
    r"|rewards?)\b"
)

_BOOKING_WORD = (
    r"(?:\b(?:(?:booking|reservation|confirmation|itinerary|flight|hotel|airline|trip|rental|train"
    r"|travel) ?(?:ref(?:erence)?\.?|number|no\.?|code|id|#|confirmation|locator)"
    r"|(?:booking|reservation|confirmation|itinerary)|res(?:v|erv)?\.? ?(?:number|no\.?|#|id|code)"
    r"|(?:record |reservation )?locator|pnr|e-?ticket|airline ticket|ticket (?:number|no\.?)|voucher "
    r"(?:number|code)"
    r"|rezervasyon|buchungs\w*|reservierungs\w*|reserva|localizador|numero de reservation|reservation"
    r"|prenotazione|codice di prenotazione|bilet)\b"
    r"|(?:予約|预订|預訂|订单|确认|確認|预约|订位|机票|票|예약)(?:番号|编号|號|号|号码|代码|コード|번호)?|预订编号)"
)
_BOOKING = compiled(
    rf"(?i:{_BOOKING_WORD})(?:[ :#=-]|(?i:\b(?:is|ref|reference|number|no|code|id|kodu|numarasi|numero"
    r"|nummer|lautet|es|ist|est|for|the|to|under|of|at|my|our|her|his|hotel|flight|with|as)\b)"
    rf"|[は是为為]|[\"'.]){{0,10}}"
    r"(?:(?<![A-Za-z0-9_-]))((?!(?:INC|REQ|RITM|CHG|PRB|KB|SR"
    r"|JIRA)[-\d])(?:(?=[A-Z0-9]{0,9}\d)(?=[A-Z0-9]{0,9}[A-Z])[A-Z0-9]{5,12}|[A-Z]{6}|[A-Z]{8,12}"
    r"|\d{7,14}|\d{3}[- ]\d{10}|[A-Z0-9]{2,6}-[A-Z0-9]{3,10}))(?![A-Za-z0-9_-])"
)
_BOOKING_FAR = compiled(
    r"(?i:\b(?:confirmation|booking|reservation|record|e-?ticket|pnr|rezervasyon|reserva"
    r"|buchung)\w*)[^\n.;]{1,40}?(?i:(?:ref(?:erence)?|number|no|code|id|locator|kodu|nummer)\b"
    r"|[:#])[^\n.;]{0,14}?"
    r"(?<![A-Za-z0-9_-])((?=[A-Z0-9]{0,9}\d)(?=[A-Z0-9]{0,9}[A-Z])[A-Z0-9]{5,12}|\d{7,14})(?![A-Za-z0-9_-])"
)


def credentials(view: View) -> Iterator[Finding]:
    """Yield secrets, codes, passport and account numbers, and booking references."""
    yield from _tokens(view)
    low = view.low
    yield from _said_secrets(view, low)
    if not any(sign.isdigit() for sign in low):
        yield from _bookings(view)
        return
    for pattern in (_CODE_SAID, _CODE_AFTER, _CODE_TYPED, _CODE_CJK):
        for found in pattern.finditer(low):
            if not _NOT_A_CODE.search(low, max(0, found.start() - 12), found.start()) and not _is_year(found):
                yield Finding("auth_code", "context", view.span(*found.span()))
                break
    if found_passport := _PASSPORT.search(low) or _PASSPORT_NUMBER.search(low):
        yield Finding("passport", "context", view.span(*found_passport.span(2)))
    found_account = _ACCOUNT.search(low)
    if found_account and not _NOT_A_BANK.search(low):
        yield Finding("account_number", "context", view.span(*found_account.span()))
    yield from _bookings(view)


def _tokens(view: View) -> Iterator[Finding]:
    if not _LONG_WORD.search(view.text):
        return
    if found := _SHAPES.search(view.text):
        yield Finding("secret", "token", view.span(*found.span()))
        return
    for name, pattern in vendors():
        if found := pattern.search(view.text):
            yield Finding("secret", name, view.span(*found.span()))
            return


def _said_secrets(view: View, low: str) -> Iterator[Finding]:
    for found in _SECRET_SAID.finditer(low):
        value = view.text[found.start(2) : found.end(2)].strip("\"'`.,;()")
        if _is_secret(value) or (not found[1].strip() and _is_assigned(found.group(), value)):
            yield Finding("secret", "said", view.span(*found.span()))
            return
    for pattern in (_SECRET_BESIDE, _SECRET_CJK, _QUOTED):
        for found in pattern.finditer(low):
            value = view.text[found.start(1) : found.end(1)].strip("\"'`.,;()")
            before = low[max(0, found.start() - 12) : found.start()]
            if _is_secret(value) and not re.search(
                r"(?:boarding|bus|ski|rail|train|day|lift|season|travel) \Z", before
            ):
                yield Finding("secret", "beside", view.span(*found.span()))
                return
    for found in _PAIR.finditer(low):
        if _CHOSEN.fullmatch(found[1].strip("\"'`.,;()")):
            yield Finding("secret", "pair", view.span(*found.span()))
            return
    if odd := _ODD.search(low):
        yield Finding("secret", "odd word", view.span(*odd.span()))
        return
    for found in _SIGNED_IN.finditer(low):
        if _CHOSEN.fullmatch((found[1] or found[2]).strip("\"'`.,;()")):
            yield Finding("secret", "signed in", view.span(*found.span()))
            return
    for found in (*_PHRASE.finditer(low), *_OPENING_PHRASE.finditer(low)):
        words = re.findall(r"[a-z]+", next(filter(None, found.groups())))
        if not _FUNCTION_WORDS & set(words):
            yield Finding("secret", "phrase", view.span(*found.span()))
            return


def _is_secret(value: str) -> bool:
    """Tell whether a value looks chosen or made to be secret, and not like a word, a date or a size."""
    if len(value) < 4 or re.fullmatch(
        r"[\d.,:/%-]+|\d+-?[a-zA-Z]{1,10}|[A-Za-z]+-\d{1,2}|https?://\S*|\d{4}-\d\d-\d\d\w*", value
    ):
        return len(value) >= 6 and value.isdigit()
    has_digit = any(sign.isdigit() for sign in value)
    has_letter = any(sign.isalpha() for sign in value)
    has_mark = re.search(r"[!@#$%^&*+=?~_<>|\\]", value) is not None
    has_inner_capital = re.search(r"[a-z][A-Z]", value) is not None
    return (has_letter and (has_digit or has_mark)) or (has_inner_capital and has_mark)


def _is_assigned(said: str, value: str) -> bool:
    """Tell whether a plain word is given as the value itself: `password: swordfish`, `password is Gandalf`."""
    word = value.lower()
    if word in _FUNCTION_WORDS or len(word) < 4 or re.search(r"(?:ed|ing|ly|able)\Z", word):
        return False
    return (
        re.search(r"(?:pass\w*|pwd|pw|sifre\w*|contrasena|kennwort|senha|parola\w*)\s{0,2}[:=]", said) is not None
        or value[0].isupper()
    )


def _is_year(found: re.Match[str]) -> bool:
    value = found[found.lastindex or 0] or ""
    word = found.group()
    # "the PIN 2024" may be a code; "goals to pin 2026" has no word for a code that fits.
    return re.fullmatch(r"(?:19|20)\d\d", value) is not None and re.search(r"code|cv[vc]|is |[:=]", word) is None


def _bookings(view: View) -> Iterator[Finding]:
    for pattern in (_BOOKING, _BOOKING_FAR):
        if found := pattern.search(view.text):
            yield Finding("booking_ref", "context", view.span(*found.span(1)))
            return


@cache
def vendors() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the token shapes of detect-secrets; loaded once, when the first long word is seen."""
    found: list[tuple[str, re.Pattern[str]]] = []
    for module, name in _PLUGINS:
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)
        found += [(name, pattern) for pattern in plugin.denylist]
    return tuple(found)
