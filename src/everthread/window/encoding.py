"""OpenAI's tokenisers from package data: built once, when first asked for, without the network."""

import re
from functools import cache
from itertools import accumulate
from threading import Lock
from typing import Final

import tiktoken

from everthread.window import ranks
from everthread.window.ranks import EncodingName

# The patterns are tiktoken's (MIT), `tiktoken_ext.openai_public`.
_CONTRACTION: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS: Final[dict[EncodingName, str]] = {
    "o200k_base": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}",
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": "|".join(
        (
            r"'(?i:[sdmt]|ll|ve|re)",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"\p{N}{1,3}+",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
            r"\s++$",
            r"\s*[\r\n]",
            r"\s+(?!\S)",
            r"\s",
        )
    ),
}

_O200K: Final = re.compile(r"(?:^|[:/])(?:(?:chat)?gpt-4o|gpt-4\.[15]|gpt-5|o[134])(?![a-z0-9])")
_CL100K: Final = re.compile(r"(?:^|[:/])(?:gpt-4(?![a-z0-9.])|gpt-3\.?5(?![0-9]))")
_OURS: Final = re.compile(r"(?:offline|scripted|replay)(?![a-z0-9])")
"""Our own local models: what they count is what we count."""

_NEW_CLAUDE: Final = re.compile(r"claude-(?:opus-4-[7-9]|[a-z]+-(?:[5-9]|\d\d))(?!\d)")
_OPEN_MODELS: Final = re.compile(r"(?:^|[:/])(?:code)?(?:llama|mistral|mixtral|qwen|phi|deepseek|gemma|vicuna|yi)")

_LONGEST_BLANK: Final = 100_000
"""The tokeniser's regex engine runs out of stack, and panics, between 300,000 and 1,000,000 blanks in a row."""
_BLANKS: Final = re.compile(rf"(?<!\s)\s{{{_LONGEST_BLANK},}}")


class Encoding(tiktoken.Encoding):
    """An encoding that takes any text, a run of a million blanks too."""

    lengths: bytes
    """How many bytes of UTF-8 each token stands for, by its number."""

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the tokens of a text; see tiktoken's encoding."""
        if len(text) <= _LONGEST_BLANK:
            return super().encode_ordinary(text)
        tokens: list[int] = []
        start = 0
        for run in _BLANKS.finditer(text):
            for end in range(run.start() + _LONGEST_BLANK, run.end(), _LONGEST_BLANK):
                tokens += super().encode_ordinary(text[start:end])
                start = end
        return tokens + super().encode_ordinary(text[start:])

    def ends(self, text: str) -> list[int]:
        """Return where each token of a text ends, in bytes of UTF-8; a lone surrogate has the three of `�`."""
        return list(accumulate(map(self.lengths.__getitem__, self.encode_ordinary(text))))


_built: dict[EncodingName, Encoding] = {}
_lock = Lock()


def encoding(name: EncodingName = "o200k_base") -> Encoding:
    """Return the encoding; the first call reads its ranks, in a fifth of a second.

    Its `encode_ordinary` takes any text: special tokens such as `<|endoftext|>` count as the text they are, and a lone
    surrogate counts as the replacement character.
    """
    if (built := _built.get(name)) is not None:
        return built
    with _lock:
        if name not in _built:
            tokens = ranks.read(name)
            built = Encoding(
                name,
                pat_str=_PATTERNS[name],
                mergeable_ranks=dict(zip(tokens, range(len(tokens)), strict=True)),
                special_tokens={},  # a text has none: what is spelled like one counts as the text it is
            )
            built.lengths = bytes(map(len, tokens))
            _built[name] = built
        return _built[name]


def first_fraction(model_name: str | None) -> float:
    """Return the share of the budget that is used while no reply has told how far our counts are off.

    Claude from Opus 4.7 on counts 1.4 to 1.6 times as many tokens as o200k in English and code, and up to 2.2 in
    German; earlier ones 1.1 to 1.2. Small vocabularies of open models cut words into more pieces. Gemini, like what is
    unknown, is within a quarter.
    """
    name = (model_name or "").lower()
    if _NEW_CLAUDE.search(name):
        return 0.60
    return 0.75 if _OPEN_MODELS.search(name) else 0.80


@cache
def encoding_name_for(model_name: str | None) -> tuple[EncodingName, bool]:
    """Return the encoding of a model and whether it is the model's own.

    Args:
        model_name: such as `gpt-4.1-mini`, `openai:gpt-5` or `openai/gpt-4o`; None when unknown.
    """
    name = (model_name or "").lower()
    if _O200K.search(name) or _OURS.match(name):
        return "o200k_base", True
    if _CL100K.search(name):
        return "cl100k_base", True
    return "o200k_base", False
