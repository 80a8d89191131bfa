"""Provider errors, told apart by code and words; the same through the real client is in test_openai_server.py."""

import json

import pytest
from langchain_core.exceptions import ContextOverflowError, ModelAuthenticationError, ModelTimeoutError
from langchain_core.messages import AIMessage

from everthread.errors import BudgetError, ModelError
from everthread.nodes.failures import check_complete, classify, is_overflow, overflow_sizes, scrub

# Each wording with the prompt's size and the limit that it tells.
OVERFLOWS: dict[str, tuple[str, int | None, int | None]] = {
    "openai": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens. "
        "Please reduce the length of the messages.",
        130001,
        128000,
    ),
    "openai with functions": (
        "This model's maximum context length is 8192 tokens. However, you requested 8500 tokens (7000 in the messages, "
        "500 in the functions, and 1000 in the completion).",
        7500,
        8192,
    ),
    "openai configured limit": (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300009 tokens.",
        300009,
        272000,
    ),
    "openai responses": (
        "context_length_exceeded: Your input exceeds the context window of this model. Please adjust your input.",
        None,
        None,
    ),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4744 in the messages, "
        "256 in the completion). Please reduce the length of the messages or completion.",
        4744,
        4096,
    ),
    "vllm input tokens": (
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please "
        "reduce the length of the input messages.",
        5000,
        4096,
    ),
    "vllm prompt and reply": (
        "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 4096 "
        "tokens and your request has 3000 input tokens (2048 > 4096 - 3000).",
        3000,
        4096,
    ),
    "vllm decoder": (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        5000,
        4096,
    ),
    "vllm scheduler": ("Input prompt (2664 tokens) is too long and exceeds limit of 2048/2560", 2664, 2048),
    "vllm nothing left": ("max_tokens must be at least 1, got -186.", None, None),
    "ollama": ("input length exceeds maximum context length", None, None),
    "ollama cloud": ("prompt too long; exceeded max context length by 12345 tokens", None, None),
    "llama.cpp": ("the request exceeds the available context size, try increasing it", None, None),
    "llama.cpp with sizes": (
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        5000,
        4096,
    ),
    "llama-cpp-python": ("Requested tokens (2285) exceed context window of 2048", 2285, 2048),
    "lm studio": (
        "Trying to keep the first 4721 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        4721,
        4096,
    ),
    "lm studio mid-generation": (
        "Reached context length of 4096 tokens with model (arch: x) that does not currently support mid-generation "
        "context overflow.",
        None,
        4096,
    ),
    "anthropic": ("prompt is too long: 210000 tokens > 200000 maximum", 210000, 200000),
    "anthropic with reply": (
        "input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000, decrease input length",
        188059,
        200000,
    ),
    "gemini": (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1200000,
        1048576,
    ),
    "bedrock": ("Input is too long for requested model.", None, None),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537812,
        131072,
    ),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        40000,
        32768,
    ),
    "openrouter": (
        "This endpoint's maximum context length is 128,000 tokens. However, you requested about 130,000 tokens "
        "(129,000 of text input, 1,000 in the output).",
        129000,
        128000,
    ),
    "litellm": ("litellm.ContextWindowExceededError: ContextWindowExceededError: OpenAIException", None, None),
}

NOT_OVERFLOWS = {
    "openai tokens per minute": (
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000. The "
        "input or output tokens must be reduced in order to run successfully."
    ),
    "anthropic tokens per minute": (
        "This request would exceed the rate limit of 30,000 input tokens per minute; reduce the length of the messages"
    ),
    "output limit": "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
    "reply alone over the window": (
        "This model's maximum context length is 4096 tokens. However, you requested 5010 tokens (10 in the messages, "
        "5000 in the completion)."
    ),
    "vllm reply alone over the window": (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 "
        "tokens and your request has 30 input tokens (8192 > 4096 - 30)."
    ),
    "one string too long": "Invalid 'messages[1].content': string too long. Expected a maximum length of 1048576.",
    "orphan": "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
}


class ProviderError(Exception):
    """An error that carries what provider clients put on theirs."""

    def __init__(self, text: str = "", /, **attributes: object) -> None:
        super().__init__(text)
        self.__dict__ |= attributes


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_prompt_over_the_window_is_recognised_by_its_words(name: str) -> None:
    message, prompt, limit = OVERFLOWS[name]

    assert is_overflow(ProviderError(message))
    assert overflow_sizes(ProviderError(message)) == (prompt, limit)


@pytest.mark.parametrize("name", NOT_OVERFLOWS)
def test_other_limits_on_tokens_are_no_overflow(name: str) -> None:
    assert not is_overflow(ProviderError(NOT_OVERFLOWS[name], status_code=400))


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("Error code: 400", code="context_length_exceeded"),
        ProviderError("Error code: 400", body={"code": "context_length_exceeded"}),
        ProviderError("Error code: 400", body={"error": {"innererror": {"code": "context_length_exceeded"}}}),
        ProviderError("Error code: 400", body={"type": "exceed_context_size_error"}),
        ProviderError("Error code: 500", status_code=500, message="the prompt exceeds the context window"),
        ValueError({"code": 400, "message": "prompt is too long"}),
        ContextOverflowError("no words that tell it"),
    ],
)
def test_an_overflow_is_found_wherever_the_client_puts_it(error: Exception) -> None:
    assert is_overflow(error)


def test_an_overflow_is_found_behind_the_error_that_wraps_it() -> None:
    wrapper = RuntimeError("the call failed")
    wrapper.__cause__ = ProviderError("Error code: 400", code="context_length_exceeded")

    assert is_overflow(wrapper)


def test_sizes_are_read_from_the_fields_of_llama_cpp() -> None:
    body = {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}}

    assert overflow_sizes(ProviderError("too long", body=body)) == (5000, 4096)


def test_a_rate_limit_counted_in_tokens_stays_a_rate_limit() -> None:
    error = ProviderError(NOT_OVERFLOWS["openai tokens per minute"], status_code=429, code="rate_limit_exceeded")

    found = classify(error)

    assert found is not None
    assert found.kind == "rate_limit"
    assert "set `window` below it" in str(found)


def test_status_429_is_never_an_overflow_whatever_it_says() -> None:
    assert not is_overflow(ProviderError("prompt is too long: 10 tokens > 5 maximum", status_code=429))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ProviderError("no", status_code=401), "authentication"),
        (ProviderError("no", status_code=402), "permission"),
        (ProviderError("no", status_code=403), "permission"),
        (ProviderError("no", status_code=404), "not_found"),
        (ProviderError("no", status_code=408), "timeout"),
        (ProviderError("no", status_code=422), "invalid"),
        (ProviderError("no", status_code=429), "rate_limit"),
        (ProviderError("no", status_code=503), "server"),
        (ProviderError("no", status_code=529), "server"),
        (ProviderError("no", response=ProviderError(status_code=404)), "not_found"),
        (ProviderError("no", body={"code": 503}), "server"),
        (ProviderError("no", code="insufficient_quota"), "rate_limit"),
        (ValueError("server_error: The server had an error"), "server"),
        (ValueError("ResponseError(code='rate_limit_exceeded', message='slow down')"), "rate_limit"),
        (ModelAuthenticationError("no"), "authentication"),
        (ModelTimeoutError("late"), "timeout"),
        (TimeoutError("late"), "timeout"),
        (ConnectionRefusedError("no"), "connection"),
        (ConnectionResetError("gone"), "dropped"),
        (ProviderError("prompt is too long", status_code=400), "overflow"),
        (ProviderError(NOT_OVERFLOWS["output limit"], status_code=400), "invalid"),
    ],
)
def test_each_failure_has_its_kind(error: Exception, kind: str) -> None:
    found = classify(error)

    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "error",
    [
        KeyError("messages"),
        IndexError("list index out of range"),
        TypeError("unsupported operand"),
        ValueError("invalid literal for int()"),
        json.JSONDecodeError("Expecting value", "", 0),
        BudgetError("the context length is exceeded: prompt is too long"),
        KeyboardInterrupt(),
    ],
)
def test_a_programming_error_is_not_blamed_on_the_provider(error: BaseException) -> None:
    assert classify(error) is None
    assert not is_overflow(error)


def test_a_model_error_is_given_back_as_it_is() -> None:
    error = ModelError("the prompt is over the limit", kind="overflow")

    assert classify(error) is error
    assert is_overflow(error)


def test_an_overflow_says_both_sizes_and_the_dial_to_set() -> None:
    found = classify(ProviderError(OVERFLOWS["anthropic"][0], status_code=400))

    assert str(found).startswith("the prompt of 210,000 tokens is over the model's limit of 200,000 tokens: ")
    assert str(found).endswith("set `window` to 200,000 or less to trim in time")


def test_a_web_page_as_error_body_is_cut_and_put_on_one_line() -> None:
    found = classify(ProviderError("<html>\n" + "<p>sorry</p>\n" * 1000, status_code=502))

    assert "\n" not in str(found)
    assert len(str(found)) < 600


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-SECRETSECRET.",
        "Incorrect API key provided: SECRETSECRET. You can find it in your account.",
        "header was Authorization: Bearer SECRETSECRET",
        "https://user:SECRETSECRET@gateway.local/v1 refused",
        "https://host/v1beta/models?key=SECRETSECRET&alt=sse refused",
        '{"api_key": "SECRETSECRET"}',
        "AIzaSECRETSECRET is not valid",
        "gsk_SECRETSECRET is not valid",
        "eyJSECRETSECRET.eyJzdWIiOiIx.SECRETSECRET has expired",
    ],
)
def test_keys_are_scrubbed(text: str) -> None:
    assert "SECRET" not in scrub(text)
    assert "SECRET" not in str(classify(ProviderError(text, status_code=401)))


@pytest.mark.parametrize(
    "text",
    ["the token count is 12", "task-force, risk-averse and disk-based", "set an API key first", "see https://host/a@b"],
)
def test_plain_words_are_not_scrubbed(text: str) -> None:
    assert scrub(text) == text


def test_a_stream_without_finish_reason_is_dropped() -> None:
    with pytest.raises(ModelError, match="broke off") as caught:
        check_complete(AIMessage("Hello", response_metadata={"model_provider": "openai"}))

    assert caught.value.kind == "dropped"


@pytest.mark.parametrize(
    "metadata",
    [
        {"model_provider": "openai", "finish_reason": "stop"},
        {"model_provider": "openai", "finish_reason": "length"},
        {"model_provider": "openai", "object": "response", "status": "completed"},
        {"model_provider": "anthropic", "stop_reason": "end_turn"},
        {},
    ],
)
def test_a_finished_reply_is_complete(metadata: dict[str, str]) -> None:
    check_complete(AIMessage("Hello", response_metadata=metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {"finish_reason": "length"},
        {"finish_reason": "MAX_TOKENS"},
        {"stop_reason": "max_tokens"},
        {"model_provider": "openai", "object": "response", "status": "incomplete"},
    ],
)
def test_a_tool_call_cut_by_the_output_limit_is_dropped(metadata: dict[str, str]) -> None:
    call = {"name": "book", "args": {"option_id": "F-1"}, "id": "c1", "type": "tool_call"}

    with pytest.raises(ModelError, match=r"inside its tool calls \(`book`\)"):
        check_complete(AIMessage("", tool_calls=[call], response_metadata=metadata))
