"""What went wrong in a model call, told from the provider's code and words (failures.yaml).

Nodes know no provider package, so errors are recognised by what they carry: a status, a code, a body, a class name and
a message. Class names alone are not enough: with openai 3 the text of an error no longer holds its code, and
langchain-openai then raises a plain invalid-request error for a prompt that is too long.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import AIMessage

from everthread.errors import EverthreadError, ModelError
from everthread.state.scrubbing import scrub

_WORDS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("failures.yaml").read_text(encoding="utf-8"))


def _patterns(section: str) -> list[re.Pattern[str]]:
    return [re.compile(text.replace("{n}", r"(\d[\d,]{0,20})"), re.IGNORECASE) for text in _WORDS[section]]


def _kinds(section: str) -> dict[str, str]:
    return {name: kind for kind, names in _WORDS[section].items() for name in names}


_OVERFLOW, _RATE = _patterns("overflow"), _patterns("rate")
_PROMPT_SIZES, _LIMITS, _REPLY_SIZES = _patterns("prompt_sizes"), _patterns("limits"), _patterns("reply_sizes")
_BY_STATUS: dict[int, str] = _WORDS["by_status"]
_BY_CODE, _BY_CLASS, _UNREADABLE = _kinds("by_code"), _kinds("by_class"), _kinds("unreadable")
_AGAIN: str = _WORDS["again"]
_WHAT: dict[str, str] = _WORDS["what"]
_ADVICE: dict[str, str] = {kind: text.replace("{again}", _AGAIN) for kind, text in _WORDS["advice"].items()}

_CODE_IN_TEXT = re.compile(r"^(\w+): |\bcode='(\w+)'")
"""How langchain-openai words a failed stream of the Responses API: `server_error: …` or `…(code='server_error', …)`."""

_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason")
"""Where OpenAI and Gemini, Anthropic, and Ollama say why a reply ended."""

_LONGEST_QUOTE = 300
"""Characters of the provider's own words that an error repeats; some gateways answer with whole web pages."""


def classify(error: BaseException) -> ModelError | None:
    """Turn the error of a model call into one clear `ModelError`; None when it is not the provider's doing.

    The provider's own words are kept, scrubbed of keys. An error that is a `ModelError` already comes back as it is.
    """
    if isinstance(error, ModelError):
        return error
    if not isinstance(error, Exception) or isinstance(error, EverthreadError):
        return None
    if is_overflow(error):
        return ModelError(_overflow_sentence(error), kind="overflow")
    kind = next((kind for link in _chain(error) if (kind := _kind(link))), None)
    if kind is None:
        return None
    if kind == "connection" and any(_by_class(link) == "dropped" for link in _chain(error)):
        kind = "dropped"
    return ModelError(_sentence(kind, error), kind=kind)


def is_overflow(error: BaseException) -> bool:
    """Tell whether the provider refused the prompt because it is longer than the model's window.

    A rate limit counted in tokens is not that, nor is a reply reserve that alone is over the window: no trimming helps.
    """
    if isinstance(error, ModelError):
        return error.kind == "overflow"
    if not isinstance(error, Exception) or isinstance(error, EverthreadError):
        return False
    links = list(_chain(error))
    text = "\n".join(_text(link) for link in links)
    if any(_is_rate_limit(link) for link in links) or _reply_alone_is_over(text):
        return False
    return _says(_OVERFLOW, text) or any("ContextOverflowError" in _class_names(link) for link in links)


def overflow_sizes(error: BaseException) -> tuple[int | None, int | None]:
    """Read the prompt's size and the limit, in tokens, from an overflow error; None where the provider does not say."""
    prompt = limit = None
    for link in _chain(error):
        for body in _bodies(link):
            prompt = prompt or _as_int(body.get("n_prompt_tokens"))
            limit = limit or _as_int(body.get("n_ctx"))
        text = _text(link)
        prompt = prompt or _first_size(_PROMPT_SIZES, text)
        limit = limit or _first_size(_LIMITS, text)
    return prompt, limit


def check_complete(message: AIMessage) -> None:
    """Refuse a reply that ended before it was complete.

    An OpenAI-style stream that ends early with a clean end of file raises nothing in its client; all that is missing is
    the finish reason. A reply cut by the output limit inside a tool call is worse: while streaming, langchain completes
    the half-written arguments, and the call would run with half a value.

    Raises:
        ModelError: of kind `dropped`; the reply must not become part of the thread.
    """
    metadata = message.response_metadata
    finish = str(next((metadata[key] for key in _FINISH_KEYS if metadata.get(key)), "")).lower()
    # The Responses API has no finish reason: its last event sets `status`.
    if metadata.get("model_provider") == "openai" and not finish and not metadata.get("status"):
        raise ModelError(
            f"{_WHAT['dropped']}: it ended without a finish reason after {len(message.text):,} characters; {_AGAIN}",
            kind="dropped",
        )
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    if calls and ("length" in finish or "max_tokens" in finish or metadata.get("status") == "incomplete"):
        names = ", ".join(f"`{call['name']}`" for call in calls)
        raise ModelError(
            f"{_WHAT['dropped']}: the output limit cut it inside its tool calls ({names}); raise `max_output_tokens`",
            kind="dropped",
        )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _bodies(error: BaseException) -> Iterator[Mapping[str, Any]]:
    """Yield the error's JSON bodies, outer first: Azure nests the telling code, some clients raise a bare dict."""
    found = [getattr(error, "body", None), error.args[0] if error.args else None, getattr(error, "response", None)]
    while found:
        body = found.pop(0)
        if isinstance(body, Mapping):
            yield body
            found += [body.get(key) for key in ("error", "innererror", "inner_error", "Error")]


def _codes(error: BaseException) -> list[str]:
    values = [getattr(error, "code", None), getattr(error, "type", None)]
    for body in _bodies(error):
        values += [body.get("code"), body.get("type"), body.get("Code")]
    if isinstance(error, ValueError) and (match := _CODE_IN_TEXT.search(str(error))):
        values.append(match[1] or match[2])
    return [str(value).lower() for value in values if value is not None]


def _messages(error: BaseException) -> list[str]:
    bodies = [body.get("message", body.get("Message")) for body in _bodies(error)]
    return [text for text in (*bodies, getattr(error, "message", None), str(error)) if isinstance(text, str) and text]


def _text(error: BaseException) -> str:
    return "\n".join([*_codes(error), *_messages(error)])


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    candidates = [getattr(error, name, None) for name in ("status_code", "http_status", "status", "code")]
    candidates += [getattr(response, "status_code", None), *(body.get("code") for body in _bodies(error))]
    return next((n for value in candidates if (n := _as_int(value)) is not None and 400 <= n < 600), None)


def _class_names(error: BaseException) -> list[str]:
    return [cls.__name__ for cls in type(error).__mro__]


def _by_class(error: BaseException) -> str | None:
    return next((_BY_CLASS[name] for name in _class_names(error) if name in _BY_CLASS), None)


def _kind(error: BaseException) -> str | None:
    status = _status(error)
    if status is not None:
        return _BY_STATUS.get(status) or ("server" if status >= 500 else "invalid")
    by_code = next((_BY_CODE[code] for code in _codes(error) if code in _BY_CODE), None)
    return by_code or _by_class(error) or _unreadable(error)


def _unreadable(error: BaseException) -> str | None:
    for words, kind in _UNREADABLE.items():
        if words in str(error):
            return kind
    modules = _modules(error)
    if isinstance(error, json.JSONDecodeError) and any(name.split(".")[0] in _WORDS["clients"] for name in modules):
        return "server"
    if isinstance(error, IndexError) and modules and modules[-1].startswith("langchain_core.language_models"):
        return "server"  # langchain-core takes the first choice of a reply that has none
    return None


def _modules(error: BaseException) -> list[str]:
    """List the modules that the error came through, the one that raised it last."""
    names, step = [], error.__traceback__
    while step is not None:
        names.append(str(step.tb_frame.f_globals.get("__name__", "")))
        step = step.tb_next
    return names


def _is_rate_limit(error: BaseException) -> bool:
    if _status(error) == 429 or _by_class(error) == "rate_limit":
        return True
    return any(_BY_CODE.get(code) == "rate_limit" for code in _codes(error)) or _says(_RATE, _text(error))


def _reply_alone_is_over(text: str) -> bool:
    reply, limit = _first_size(_REPLY_SIZES, text), _first_size(_LIMITS, text)
    return reply is not None and limit is not None and reply >= limit


def _says(patterns: list[re.Pattern[str]], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


def _first_size(patterns: list[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return sum(int(group.replace(",", "")) for group in match.groups() if group)
    return None


def _as_int(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _quote(error: BaseException, *, deepest: bool = False) -> str:
    """Repeat the provider's words on one line, scrubbed and bounded; `deepest` takes the first cause's words."""
    texts = [messages[0] for link in _chain(error) if (messages := _messages(link))]
    if not texts:
        return type(error).__name__
    text = " ".join(scrub(texts[-1 if deepest else 0]).split())
    text = re.sub(r"^Error code: \d+( - )?", "", text)
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"


def _sentence(kind: str, error: BaseException) -> str:
    status = next((n for link in _chain(error) if (n := _status(link))), None)
    said = _quote(error, deepest=kind in ("connection", "dropped"))
    advice = _ADVICE[kind]
    if kind == "rate_limit" and "too large" in said.lower():
        advice = "this request alone is over the limit, so waiting does not help: set `window` below it"
    what = _WHAT[kind] + (f" ({status})" if status else "")
    return f"{what}: {said.rstrip('.')}; {advice}" if said else f"{what}; {advice}"


def _overflow_sentence(error: BaseException) -> str:
    prompt, limit = overflow_sizes(error)
    size = f" of {prompt:,} tokens" if prompt else ""
    over = f" of {limit:,} tokens" if limit else ""
    aim = f"`window` to {limit:,} or less" if limit else "a smaller `window`"
    return f"the prompt{size} is over the model's limit{over}: {_quote(error).rstrip('.')}; set {aim} to trim in time"
