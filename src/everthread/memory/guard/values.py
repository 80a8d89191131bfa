"""Values that name a person or open a door, told from other values by check digits and by the words around them.

Shapes and words are the pack `values`. Check digits are those of python-stdnum, phone numbers those of phonenumbers,
and token shapes those of detect-secrets, without its entropy plugins, which call every long identifier a secret.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

from everthread.memory.folding import View
from everthread.memory.guard.verdict import Finding
from everthread.memory.rules import BUILT_IN, RulePack, Rules

_Match = re.Match[str]

_TOKEN_PLUGINS = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
    "cloudant": "CloudantDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector",
    "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "private_key": "PrivateKeyDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
_LONG_WORD = re.compile(r"\S{16}|PRIVATE KEY")
_NPM_WORD = ":_authToken="
"""The npm plugin's pattern is asked only where it is said: of a row of slashes it takes the square of their number."""
_GROUPS = re.compile(r"[0-9]+")
_MIXED_GROUPS = re.compile(r"[a-z0-9]{0,30}[0-9][a-z0-9]{0,30}(?:-[a-z](?![a-z]))?")
_JOINT = re.compile(r"[ .\-_/·:]{1,3}\Z")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_AHEAD_OF_NO_CARD = _LETTERS | frozenset("0123456789+_")
_CLAUSE = re.compile(r"(?:[^.!?;\n]|\.(?=\S)(?<![\u3040-\u9fff]\.)|(?<=\bn[or])\.|(?<=nr)\.|(?<=\btel)\.){6,2000}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_TIME = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d")
_AHEAD = 36
"""Signs ahead of a number that may say what it is."""
_REACH = 48
"""Signs between a word for a kind and its value."""
_AROUND = 70
"""Signs on both sides of an address that may say whose it is."""
_QUOTES = "\"'`.,;()"


def values(view: View, rules: Rules) -> Iterator[Finding]:
    """Yield what names or unlocks a person: numbers, codes, secrets, references, addresses, birth dates."""
    found = _Detector(view, rules.pack("values"))
    yield from found.secrets()
    yield from found.matches("mails", lambda match: not match.group().startswith("git@"))  # a repository's address
    yield from found.matches("handles")
    yield from found.matches("bookings", group=1, text=view.text)
    zones = view.low.replace(" ", "<") if "<<" in view.low else view.low
    yield from found.matches("machine_zones", text=zones)
    yield from found.births()
    if any(sign.isnumeric() for sign in view.low):
        yield from found.numbers()
        yield from found.contacts()
        yield from found.kinds()


def load() -> None:
    """Load every check and its tables, so that no later number pays for it."""
    _is_possible_phone("+44 20 7946 0000")
    _vendor_tokens()
    for number in ("DE89370400440532013000", "GB82WEST12345698765432"):
        _stdnum("iban")(number, check_country=False)
    _stdnum("cn.ric")("11010519491231002X")
    pack = BUILT_IN.pack("values")
    kinds = {kind for rule in pack.sections["id_words"] for kind in rule.values["kinds"].split()}
    for kind in ("luhn", *(rule.values["kind"] for rule in pack.sections["id_shapes"]), *sorted(kinds)):
        _stdnum(kind)("0" * 10)


class _Detector:
    """The sections of the pack, asked of one view."""

    def __init__(self, view: View, pack: RulePack) -> None:
        self.view, self.low, self.pack = view, view.low, pack

    def matches(
        self, section: str, fits: Callable[[_Match], bool] = bool, *, group: int = 0, text: str = ""
    ) -> Iterator[Finding]:
        """Yield every match of a section's rules that fits; the group is what has the value's place."""
        for rule in self.pack.sections[section]:
            for match in rule.pattern.finditer(text or self.low):
                if fits(match):
                    yield Finding(rule.values["category"], rule.name, self.view.span(*match.span(group)))

    def secrets(self) -> Iterator[Finding]:
        if _LONG_WORD.search(self.view.text):
            yield from self.matches("tokens", text=self.view.text)
            for name, pattern in _vendor_tokens():
                if name == _TOKEN_PLUGINS["npm"] and _NPM_WORD not in self.view.text:
                    continue
                if match := pattern.search(self.view.text):
                    yield Finding("secret", name, self.view.span(*match.span()))
        yield from self.matches("said_secrets", self._is_said_secret)
        yield from self.matches(
            "bare_secrets", lambda match: _is_secret(self._value(match)) and not self._follows("no pass", match)
        )
        chosen = self.pack.pattern("chosen").search
        yield from self.matches("chosen_words", lambda match: chosen(self._value(match).lower()) is not None)
        yield from self.matches("odd_words")
        yield from self.matches("near_secrets", self._is_near_login, text=self.view.text)
        function_words = self.pack.words["function_words"]
        yield from self.matches(
            "phrases", lambda match: function_words.isdisjoint(re.findall(r"[a-z]+", self._value(match).lower()))
        )
        yield from self.matches("codes", self._is_code)
        yield from self.matches(
            "spelled_codes", lambda match: self._is_said("lock", match.start() - _REACH, match.end() + _REACH)
        )

    def numbers(self) -> Iterator[Finding]:
        yield from self.matches("passports", group=2)
        if not self._is_said("no bank"):
            yield from self.matches("accounts")
        yield from self._cards()
        yield from self.matches("ibans", _is_iban)
        yield from self.matches("ssns", self._is_counted)
        if self._is_said("ssn word"):
            yield from self.matches("near_ssns")
        yield from self.matches("national_ids", self._is_counted)
        yield from self._shaped_ids()
        yield from self._worded_ids()

    def births(self) -> Iterator[Finding]:
        if self._is_said("year") and self._is_said("birth") and not self._is_said("party"):
            yield from self.matches("births")

    def contacts(self) -> Iterator[Finding]:
        yield from self.matches("addresses", self._is_private)
        yield from self.matches("intl_phones", lambda match: _is_possible_phone(match.group()))
        yield from self.matches("phones", lambda match: self._is_counted(match) and self._is_private_phone(match))
        yield from self.matches("local_phones", self._is_local_phone)
        yield from self.matches("national_phones", self._is_national_phone)
        yield from self.matches(
            "homes",
            lambda match: not self._is_counted_off(match.end()) and self._is_private(match),
            text=self.view.text,
        )

    def kinds(self) -> Iterator[Finding]:
        """Find values by their shape and a word for their kind in the same clause, in either order."""
        for start, end in _clauses(self.low):
            for rule in self.pack.sections["kinds"]:
                beside, unless = rule.values.get("beside"), rule.values.get("unless")
                if beside is not None and not self._is_said(beside, start, end):
                    continue
                if unless is not None and self._is_said(unless, start, end):
                    continue
                if words := [match.span() for match in rule.pattern.finditer(self.low, start, end)]:
                    reach = int(rule.values.get("reach", _REACH))
                    for match in self.pack.pattern(rule.values["shape"]).finditer(self.view.text, start, end):
                        if any(self._is_of_kind(word, match, reach) for word in words):
                            yield Finding(rule.values["category"], rule.name, self.view.span(*match.span()))

    def _is_of_kind(self, word: tuple[int, int], match: _Match, reach: int) -> bool:
        """Tell whether a value is near the word for its kind, and not a plain number of something else."""
        (begin, stop), (start, end) = word, match.span()
        if (begin <= start and end <= stop) or max(start - stop, begin - end) > reach:
            return False
        is_year = _YEAR.fullmatch(match.group()) is not None
        if is_year and not (start >= stop and self.pack.pattern("given right away").match(self.low[stop:start])):
            return False
        return not (
            self._is_time(start, end)
            or self._is_said("a plain number", start - _AHEAD, start)
            or self._is_counted_off(end)
        )

    def _cards(self) -> Iterator[Finding]:
        """Find card numbers, also with signs between the groups, and in pieces with words between them."""
        places = [match.span() for match in _GROUPS.finditer(self.low)]
        for start, end, digits in _runs(self.low, places, most_digits=19):
            before, after = self.low[max(0, start - 1) : start], self.low[end : end + 1]
            if len(digits) < 12 or before in _AHEAD_OF_NO_CARD or after in _LETTERS:
                continue
            if self._is_card(digits) and (
                self._is_said("card word", start - 40, end + 30) or not self._is_other_number(start)
            ):
                yield Finding("card", "luhn", self.view.span(start, end))
        if not 2 <= len(places) <= 8 or not self._is_said("card word"):
            return
        for first in range(len(places) - 1):
            for last in range(first + 1, len(places)):
                digits = "".join(self.low[start:end] for start, end in places[first : last + 1])
                if 14 <= len(digits) <= 16 and self._is_card(digits):
                    yield Finding("card", "luhn, in pieces", self.view.span(places[first][0], places[last][1]))
                    return

    def _is_card(self, digits: str) -> bool:
        is_issued = self.pack.pattern("issuer").fullmatch(digits) is not None
        return is_issued and len(set(digits)) > 1 and _stdnum("luhn")(digits)

    def _shaped_ids(self) -> Iterator[Finding]:
        for rule in self.pack.sections["id_shapes"]:
            for match in rule.pattern.finditer(self.low):
                # Not every module takes the dots that people write.
                if _stdnum(rule.values["kind"])(match.group().replace(".", "")) and self._is_counted(match):
                    yield Finding("national_id", rule.values["kind"], self.view.span(*match.span()))

    def _worded_ids(self) -> Iterator[Finding]:
        spoken = [rule for rule in self.pack.sections["id_words"] if rule.pattern.search(self.low)]
        kinds = [kind for rule in spoken for kind in rule.values["kinds"].split()]
        places = [match.span() for match in _MIXED_GROUPS.finditer(self.low)][:40] if kinds else []
        for start, end, text in _runs(self.low, places, most_groups=6):
            if 8 <= sum(sign.isalnum() for sign in text) <= 18:
                for kind in kinds:
                    if _stdnum(kind)(self.low[start:end].upper()):
                        yield Finding("national_id", kind, self.view.span(start, end))
                        return

    def _value(self, match: _Match) -> str:
        """Return the last group that took part, as it was written."""
        group = match.lastindex or 0
        return self.view.text[match.start(group) : match.end(group)].strip(_QUOTES)

    def _is_said_secret(self, match: _Match) -> bool:
        value = self._value(match)
        if _is_secret(value):
            return True
        # A plain word is a secret when it is given as the value itself: `password: swordfish`, `password is Gandalf`.
        word = value.lower()
        is_plain = word in self.pack.words["function_words"] or re.search(r"(?:ed|ing|ly|able)\Z", word)
        if match[1].strip() or len(word) < 4 or is_plain:
            return False
        return value[0].isupper() or self.pack.pattern("assigned").search(match.group()) is not None

    def _is_code(self, match: _Match) -> bool:
        start, end = match.span(match.lastindex or 0)
        return not (
            self._follows("no code", match) or _is_year(match) or self._is_time(start, end) or self._is_counted_off(end)
        )

    def _is_near_login(self, match: _Match) -> bool:
        return self._is_said("login word", match.start() - 60, match.end() + 40)

    def _is_local_phone(self, match: _Match) -> bool:
        is_date = self.pack.pattern("date").search(match.group())
        return (
            not is_date
            and self._is_said("phone word", match.start() - 40, match.end() + 20)
            and self._is_counted(match)
            and self._is_private_phone(match)
        )

    def _is_national_phone(self, match: _Match) -> bool:
        return self._is_private_phone(match) and not (
            self._is_other_number(match.start())
            or self._is_said("a plain number", match.start() - _AHEAD, match.start())
            or self._is_counted_off(match.end())
        )

    def _is_private_phone(self, match: _Match) -> bool:
        return self._is_private(match) and not (
            self.pack.pattern("free number").match(self.low, match.start())
            or self._is_said("hotline", match.start() - 60, match.end() + 30)
        )

    def _is_private(self, match: _Match) -> bool:
        """Tell whether an address or a number is not that of a museum, a shop, an office or a story."""
        around = match.start() - _AROUND, match.end() + _AROUND
        if self._is_said("one's own", *around):
            return True
        is_public = self._is_said("public place", *around) and not self._is_said("lives there", *around)
        return not (is_public or self._is_said("fiction", *around))

    def _is_time(self, start: int, end: int) -> bool:
        return _TIME.fullmatch(self.low, start, end) is not None and self._is_said("a time", start - 12, start)

    def _is_counted_off(self, end: int) -> bool:
        """Tell whether what follows a number says what it counts or measures."""
        return self.pack.pattern("counted").match(self.low, end) is not None

    def _is_counted(self, match: _Match) -> bool:
        return not self._is_other_number(match.start())

    def _is_other_number(self, start: int) -> bool:
        """Tell whether the words just before a number say that it is a part, an order, a version and so on."""
        return self._is_said("other number", start - 32, start)

    def _is_said(self, name: str, start: int = 0, end: int | None = None) -> bool:
        end = len(self.low) if end is None else end
        return self.pack.pattern(name).search(self.low, max(0, start), end) is not None

    def _follows(self, name: str, match: _Match) -> bool:
        """Tell whether the words right ahead of a match are those of a rule."""
        return self._is_said(name, match.start() - 12, match.start())


def _runs(
    low: str, places: list[tuple[int, int]], *, most_groups: int = 19, most_digits: int = 99
) -> Iterator[tuple[int, int, str]]:
    """Yield groups of digits alone and joined with those that follow after a sign or two: start, end, what they say."""
    for first, (start, _) in enumerate(places):
        text = ""
        for place, (begin, end) in enumerate(places[first : first + most_groups], start=first):
            if place > first and not _JOINT.match(low[places[place - 1][1] : begin]):
                break
            text += low[begin:end]
            if len(text) > most_digits:
                break
            yield start, end, text


def _clauses(low: str) -> Iterator[tuple[int, int]]:
    """Yield the places of clauses that have a digit."""
    for match in _CLAUSE.finditer(low):
        if any(sign.isdigit() for sign in match.group()):
            yield match.span()


def _is_iban(match: _Match) -> bool:
    text = match.group()
    ends = (place for place in range(15, len(text) + 1) if place == len(text) or text[place] in " .-")
    return any(_stdnum("iban")(text[:end], check_country=False) for end in ends)


def _is_secret(value: str) -> bool:
    """Tell whether a value looks chosen or made to be secret, and not like a word, a date or a size."""
    if len(value) < 4 or re.fullmatch(
        r"[\d.,:/%-]+|\d+-?[a-zA-Z]{1,10}(?:'[a-z]{1,4})?|[A-Za-z]{1,40}-\d{1,2}|https?://\S*|\d{4}-\d\d-\d\d\w*", value
    ):
        return len(value) >= 6 and value.isdigit()
    has_letter = any(sign.isalpha() for sign in value)
    return has_letter and re.search(r"[\d!@#$%^&*+=?~_<>|\\]", value) is not None


def _is_year(match: _Match) -> bool:
    value = match[match.lastindex or 0] or ""
    # "the PIN 2024" may be a code; "goals to pin 2026" has no word for a code that fits.
    is_code = re.search(r"code|cv[vc]|is |[:=]", match.group())
    return re.fullmatch(r"(?:19|20)\d\d", value) is not None and not is_code


def _is_possible_phone(text: str) -> bool:
    """Tell whether a number has a country code and a length that exist there; it need not be assigned."""
    import phonenumbers

    digits = re.sub(r"[^\d+]", "", text)
    try:
        number = phonenumbers.parse("+" + digits.lstrip("+").removeprefix("00"), None)
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_possible_number(number))


@cache
def _vendor_tokens() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the token shapes of detect-secrets; loaded when the first long word is seen."""
    plugins = (
        getattr(import_module(f"detect_secrets.plugins.{module}"), name) for module, name in _TOKEN_PLUGINS.items()
    )
    return tuple((plugin.__name__, pattern) for plugin in plugins for pattern in plugin.denylist)


@cache
def _stdnum(kind: str) -> Callable[..., bool]:
    """Return the check of one kind of number; the module is loaded when it is first needed."""
    check: Callable[..., bool] = import_module(f"stdnum.{kind}").is_valid
    return check
