"""What went wrong in a model call, told from the provider's code and words.

Nodes know no provider package, so errors are recognised by what they carry: a status, a code, a body, a class name and
a message. Class names alone are not enough: with openai 3 the text of an error no longer holds its code, and
langchain-openai then raises a plain invalid-request error for a prompt that is too long.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from everthread.errors import EverthreadError, ModelError
from everthread.state.scrubbing import scrub

_OVERFLOW = re.compile(
    "|".join(
        (
            r"context[_ ]?(?:length|window|size|limit)[_ ](?:has been )?exceeded",
            r"exceed_context_size|ContextWindowExceeded",
            r"maximum (?:context|prompt|model) length",
            r"exceed(?:s|ed)? (?:the )?(?:model's )?(?:available |maximum |max )?context (?:length|window|size|limit)",
            r"context (?:window|length) exceeds limit|exceeded model token limit",
            r"(?:longer|greater) than the (?:model's )?context length",
            r"input tokens exceed|input token count.*exceeds the maximum",
            r"prompt (?:is )?too long|input is too long|is too long and exceeds limit|prompt exceeds max length",
            r"reduce the length of the (?:messages|prompt)",
            r"context the overflows|reached context length",  # LM Studio, word for word
            r"max_tokens must be at least 1, got -",  # vLLM, when the prompt leaves less than nothing for the reply
        )
    ),
    re.IGNORECASE,
)
"""How OpenAI, Azure, vLLM, Ollama, llama.cpp, LM Studio, Anthropic, Gemini and gateways refuse a long prompt."""

_RATE = re.compile(r"tokens per min|per minute|\bTPM\b|rate.?limit|too many requests|throttl", re.IGNORECASE)
"""A limit per time, not per prompt, although its message speaks of tokens that are too many."""

_N = r"(\d[\d,]*)"
_PROMPT_SIZES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\({_N} (?:in the messages|in your prompt|of text input)(?:[,;] {_N} (?:in the functions|of tool input))?",
        rf"messages resulted in {_N} tokens",
        rf"(?:request has|(?:request|prompt) contains(?: at least)?) {_N} (?:input |prompt )?tokens",
        rf"prompt is too long: {_N} tokens",
        rf"exceed context limit: {_N} \+",
        rf"input token count \(?{_N}",
        rf"prompt \(length {_N}\)",
        rf"keep the first {_N} tokens",
        rf"(?:request|input|prompt|requested tokens) \({_N}(?: tokens)?\)",
        rf"input length \(?{_N}\)? exceeds",
        rf"prompt has {_N} tokens",
        rf"requested (?:about )?{_N} tokens",
    )
]
_LIMITS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"> {_N}",
        rf"{_N} maximum context length",
        rf"(?:context|prompt|model) (?:length|window|size)(?: of)?(?: is)?(?: only)? \(?{_N}",
        rf"limit of {_N}",
        rf"tokens allowed \(?{_N}",
        rf"model token limit: {_N}",
    )
]
_REPLY_SIZE = re.compile(
    rf"{_N} (?:(?:in|for) +the (?:completion|output)|output tokens|'max_tokens')|\+ {_N} >|is too large: {_N}",
    re.IGNORECASE,
)

_BY_STATUS = {401: "authentication", 402: "permission", 403: "permission", 404: "not_found", 408: "timeout"}
_BY_STATUS |= {409: "server", 429: "rate_limit"}

_BY_CODE = {
    "invalid_api_key": "authentication",
    "authentication_error": "authentication",
    "permission_error": "permission",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "insufficient_quota": "rate_limit",
    "server_error": "server",
    "api_error": "server",
    "overloaded_error": "server",
    "content_filter": "invalid",
    "invalid_prompt": "invalid",
    "invalid_request_error": "invalid",
}

# Looked up from the most derived class upwards, so a read time-out is not taken for a lost connection.
_BY_CLASS = {
    "ModelAuthenticationError": "authentication",
    "ModelPermissionDeniedError": "permission",
    "ModelNotFoundError": "not_found",
    "ModelRateLimitError": "rate_limit",
    "ModelAPIError": "server",
    "ModelTimeoutError": "timeout",
    "APITimeoutError": "timeout",
    "TimeoutException": "timeout",
    "TimeoutError": "timeout",
    "Timeout": "timeout",
    "RemoteProtocolError": "dropped",
    "ReadError": "dropped",
    "ChunkedEncodingError": "dropped",
    "ClientPayloadError": "dropped",
    "ConnectionResetError": "dropped",
    "ModelConnectionError": "connection",
    "APIConnectionError": "connection",
    "TransportError": "connection",
    "ClientConnectionError": "connection",
    "ConnectionError": "connection",
    "ModelInvalidRequestError": "invalid",
    "APIResponseValidationError": "server",
    "APIError": "server",
    "OpenAIError": "invalid",
}

_CODE_IN_TEXT = re.compile(r"^(\w+): |\bcode='(\w+)'")
"""How langchain-openai words a failed stream of the Responses API: `server_error: …` or `…(code='server_error', …)`."""

_CLIENTS = {
    "openai",
    "langchain_openai",
    "anthropic",
    "langchain_anthropic",
    "ollama",
    "langchain_ollama",
    "groq",
    "mistralai",
}
"""Packages in which a reply that is not JSON is the provider's doing."""

_UNREADABLE = {
    "No generation chunks were returned": "dropped",
    "Unexpected response type from OpenAI-compatible endpoint": "server",
    "Response missing 'choices' key": "server",
    "Received response with null value for 'choices'": "server",
}
"""Replies that are no chat completion: the client raises built-in errors for them, known only by their words."""

_WHAT = {
    "authentication": "the model provider refused the key",
    "permission": "the model provider does not allow this account the request",
    "not_found": "the model or its address was not found",
    "rate_limit": "the model provider's rate limit or quota is used up",
    "server": "the model provider failed or sent no readable reply",
    "timeout": "the model did not answer in time",
    "connection": "the model provider cannot be reached",
    "dropped": "the model's reply broke off",
    "invalid": "the model provider refused the request",
}
_AGAIN = "the message is kept: run the thread again to continue the turn"
_ADVICE = {
    "authentication": "set a valid key, such as `OPENAI_API_KEY`, or use `--model offline`, which needs none",
    "permission": "check the account's billing and its access to this model, or choose another with `--model`",
    "not_found": "check the name given to `--model` and, for a local server, `OPENAI_BASE_URL`",
    "rate_limit": f"wait, or check the account's quota; {_AGAIN}",
    "server": f"try later, and check `OPENAI_BASE_URL` if it is set; {_AGAIN}",
    "timeout": f"try later or with a smaller prompt; {_AGAIN}",
    "connection": f"check the network and, for a local server, `OPENAI_BASE_URL`; {_AGAIN}",
    "dropped": _AGAIN,
    "invalid": "change what it names, or choose another model with `--model`",
}

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
    return bool(_OVERFLOW.search(text)) or any("ContextOverflowError" in _class_names(link) for link in links)


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
    if isinstance(error, json.JSONDecodeError) and any(name.split(".")[0] in _CLIENTS for name in modules):
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
    return any(_BY_CODE.get(code) == "rate_limit" for code in _codes(error)) or bool(_RATE.search(_text(error)))


def _reply_alone_is_over(text: str) -> bool:
    reply, limit = _first_size([_REPLY_SIZE], text), _first_size(_LIMITS, text)
    return reply is not None and limit is not None and reply >= limit


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
