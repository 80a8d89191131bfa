"""Count what a prompt costs in tokens, as the provider does: messages, calls and results, tool schemas, images.

The constants that are ours were fitted to token counts logged by OpenAI for gpt-4.1: of 1,143 differences between
consecutive calls 98 % come out to the token.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage

from everthread.window.encoding import encoding, encoding_name_for, first_fraction
from everthread.window.images import image_tokens
from everthread.window.ranks import EncodingName
from everthread.window.tool_schemas import Tool, compact_json, openai_schema, render_tools

Accuracy = Literal["exact", "anchored", "estimated"]
"""`exact`: the model's own tokeniser; `anchored`: corrected by what the provider reported; `estimated`: neither."""

_REPLY: Final = 3
"""Once a prompt: what primes the reply. Source: OpenAI cookbook, "How to count tokens with tiktoken"."""
_MESSAGE: Final = 3
"""Once a message, next to its role and content. Source: as above."""
_NAME: Final = 1
"""Once a name, next to the name itself. Source: as above."""
_ONE_CALL: Final = 5
"""A single call, next to its arguments and its tool's name, which stands in the call and again in the result."""
_PARALLEL_CALLS: Final = 23
"""Several calls in one message: they travel as one call of a wrapper, and so do their results."""
_PARALLEL_CALL: Final = 3
"""Each call among several, next to its name and arguments; its result is counted as a message of its own."""
_PARALLEL_TOOL: Final = 57
"""Description of the wrapper, which is there as soon as two tools are."""

AUDIO: Final = 600
"""A recording: one minute at ten tokens a second, as OpenAI counts a user's audio; its length is not known here."""
FILE: Final = 3_000
"""A document or a film: the upper end of what Anthropic's guide gives for a page of PDF."""

_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text", "text-plain"})
_NOT_SENT: Final = frozenset({"reasoning", "reasoning_content", "thinking", "redacted_thinking"})
"""Reasoning is billed when it is made and not sent again."""
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call"})
"""Some providers repeat a message's calls in its content; they are counted once."""
_IMAGE_BLOCKS: Final = frozenset({"image", "image_url", "input_image"})
_MEDIA_BLOCKS: Final = {
    "audio": AUDIO,
    "input_audio": AUDIO,
    "file": FILE,
    "input_file": FILE,
    "document": FILE,
    "video": FILE,
}

_CACHED_CHARACTERS: Final = 12_000_000

_COUNTED_WHOLE: Final = 4_000_000
"""Characters up to which a text is counted; a longer one, which no window holds, is estimated by samples."""

_SAMPLES: Final = 20
_SAMPLE: Final = 20_000
_SAMPLE_MARGIN: Final = 1.1

_CHARACTERS_PER_TOKEN: Final = 12
"""A token is rarely longer; bounds how much text one cut has to read."""


class _Cache:
    """Tokens by text, first in first out; safe to share between threads."""

    def __init__(self, characters: int = _CACHED_CHARACTERS) -> None:
        self._capacity = self._room = characters
        # From a plain dict the oldest would be dear to take: it looks past all that left before.
        self._entries: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str) -> int | None:
        """Return the tokens of a text, if they are known."""
        return self._entries.get(text)

    def put(self, text: str, tokens: int) -> int:
        """Keep and return the tokens; the oldest texts leave once all together have too many characters."""
        if _weight(text) > self._capacity:
            return tokens
        with self._lock:
            if text not in self._entries:
                self._entries[text] = tokens
                self._room -= _weight(text)
            while self._room < 0:
                oldest, _ = self._entries.popitem(last=False)
                self._room += _weight(oldest)
        return tokens


def _weight(text: str) -> int:
    return len(text) + 100  # what an entry costs next to its text


_caches: Final[dict[EncodingName, _Cache]] = {"o200k_base": _Cache(), "cl100k_base": _Cache()}


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens for one family of models; make it with `counter_for`."""

    encoding_name: EncodingName = "o200k_base"
    exact: bool = False
    """The encoding is the model's own."""
    first_fraction: float = 0.80
    """Share of the budget that is used as long as counts are estimates."""
    _cache: _Cache = field(default_factory=_Cache, repr=False, compare=False)

    @property
    def accuracy(self) -> Accuracy:
        """How far the counts can be trusted before the provider has reported anything."""
        return "exact" if self.exact else "estimated"

    def text(self, text: str) -> int:
        """Return the tokens of a text on its own."""
        if not text:
            return 0
        tokens = self._cache.get(text)
        return self._cache.put(text, self._counted(text)) if tokens is None else tokens

    def _counted(self, text: str) -> int:
        encode = encoding(self.encoding_name).encode_ordinary
        if len(text) <= _COUNTED_WHOLE:
            return len(encode(text))
        step = len(text) // _SAMPLES
        samples = sum(len(encode(text[place * step : place * step + _SAMPLE])) for place in range(_SAMPLES))
        return math.ceil(samples / (_SAMPLES * _SAMPLE) * len(text) * _SAMPLE_MARGIN)

    def head(self, text: str, tokens: int) -> int:
        """Return how many characters the first tokens of a text are."""
        tokens = max(tokens, 0)
        text = _paired(text[: tokens * _CHARACTERS_PER_TOKEN])
        ends = [0, *encoding(self.encoding_name).ends(text)]
        return _characters_in(text, ends[min(tokens, len(ends) - 1)])

    def tail(self, text: str, tokens: int) -> int:
        """Return how many characters the last tokens of a text are."""
        tokens = max(tokens, 0)
        text = _paired(text[max(len(text) - tokens * _CHARACTERS_PER_TOKEN, 0) :])
        ends = [0, *encoding(self.encoding_name).ends(text)]
        return len(text) - _characters_in(text, ends[max(len(ends) - 1 - tokens, 0)])

    def message(self, message: BaseMessage) -> int:
        """Return what a message adds to a prompt.

        The name of a called tool is counted twice with the call, so that a result costs the same with its name and
        without.
        """
        content, calls = message.content, _calls(message)
        tokens = _MESSAGE + (self.text(message.role) if isinstance(message, ChatMessage) else 1)
        if message.name and not isinstance(message, ToolMessage):
            tokens += _NAME + self.text(message.name)
        tokens += self._content(content, bool(calls))
        return tokens + self._called(calls, bool(content)) if calls else tokens

    def sizes(self, messages: Iterable[BaseMessage]) -> list[int]:
        """Return what each of these messages adds to a prompt."""
        return list(map(self.message, messages))

    def messages(self, messages: Sequence[BaseMessage]) -> int:
        """Return the tokens of a prompt of these messages, without its tools."""
        return sum(self.sizes(messages)) + _REPLY

    def tools(self, tools: Sequence[Tool]) -> int:
        """Return what the schemas of the bound tools add to a prompt.

        OpenAI shows them to its models as TypeScript; most other families show JSON.
        """
        if not tools:
            return 0
        schemas = list(map(openai_schema, tools))
        if not self.exact:
            return self.text(json.dumps(schemas, ensure_ascii=False, default=str))
        return self.text(render_tools(schemas)) + (_PARALLEL_TOOL if len(schemas) > 1 else 0)

    def _called(self, calls: Sequence[tuple[str, object]], has_content: bool) -> int:
        # Text before a call has not been seen in the logs; two messages are the most it can cost.
        tokens = _MESSAGE + 1 if has_content else 0
        sizes = [
            (self.text(name), self.text(args if isinstance(args, str) else compact_json(args))) for name, args in calls
        ]
        if len(sizes) == 1:
            return tokens + _ONE_CALL + 2 * sizes[0][0] + sizes[0][1]
        return tokens + _PARALLEL_CALLS + sum(_PARALLEL_CALL + name + args for name, args in sizes)

    def _content(self, content: str | Sequence[str | Mapping[str, Any]], has_calls: bool) -> int:
        if isinstance(content, str):
            return self.text(content)
        return sum(self.text(block) if isinstance(block, str) else self._block(block, has_calls) for block in content)

    def _block(self, block: Mapping[str, Any], has_calls: bool) -> int:
        kind = str(block.get("type", ""))
        if kind in _TEXT_BLOCKS and isinstance(block.get("text"), str):
            return self.text(block["text"])
        if kind in _NOT_SENT or (has_calls and kind in _CALL_BLOCKS):
            return 0
        if kind in _IMAGE_BLOCKS:
            return image_tokens(block)
        return _MEDIA_BLOCKS[kind] if kind in _MEDIA_BLOCKS else self.text(compact_json(block))


def counter_for(model_name: str | None) -> TokenCounter:
    """Return what counts a model's tokens; counters of one encoding share their cache.

    Args:
        model_name: such as `gpt-4.1-mini` or `openai:gpt-5`; None when unknown.
    """
    return _counter(*encoding_name_for(model_name), first_fraction(model_name))


@cache
def _counter(name: EncodingName, exact: bool, fraction: float) -> TokenCounter:
    return TokenCounter(name, exact, fraction, _caches[name])


def _calls(message: BaseMessage) -> list[tuple[str, object]]:
    """Return name and arguments of each call, as the provider gets them."""
    if not isinstance(message, AIMessage):
        return []
    if message.tool_calls or message.invalid_tool_calls:
        return [(call["name"], call["args"]) for call in message.tool_calls] + [
            (call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls
        ]
    raw = message.additional_kwargs
    functions = [call.get("function") or {} for call in raw.get("tool_calls") or ()]
    functions += [raw["function_call"]] if raw.get("function_call") else []
    return [(str(function.get("name", "")), function.get("arguments") or "") for function in functions]


def _characters_in(text: str, size: int) -> int:
    """Return how many characters the first bytes of a text are; one that is cut in two does not count."""
    return size if text.isascii() else len(text.encode()[:size].decode("utf-8", "ignore"))


def _paired(text: str) -> str:
    """Return a text as the tokeniser reads it: halves of a character put together, and alone replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
