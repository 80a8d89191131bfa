"""From a `provider:name` text to a chat model."""

import os
from typing import Any, overload

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from everthread.errors import SettingsError
from everthread.models.identity import DEFAULT_MODEL
from everthread.models.names import did_you_mean
from everthread.models.wrapped import ChatModel, check_chat_model
from everthread.plain import without_guide
from everthread.window.budget import UNKNOWN_WINDOW

TIMEOUT_SECONDS = 120.0
"""How long one request to an OpenAI-compatible server may take without a byte."""

MAX_RETRIES = 2
"""Further tries of the client after a 429, a 5xx or a lost connection."""

_FORMS = "`offline`, `openai:NAME`, or `PROVIDER:NAME` with langchain's provider packages, such as `anthropic:NAME`"

_PLACEHOLDER_KEY = "not-needed"
"""Local servers want a key in the header and ignore what it is."""


@overload
def resolve(model: str | None = None) -> BaseChatModel: ...


@overload
def resolve(model: ChatModel | str | None) -> ChatModel: ...


def resolve(model: ChatModel | str | None = None) -> ChatModel:
    """Give the chat model that an argument names; None takes `EVERTHREAD_MODEL`, else the offline model.

    Raises:
        SettingsError: the name has no known form, its package is missing, or its key is not set.
    """
    if model is None:
        model = os.environ.get("EVERTHREAD_MODEL") or DEFAULT_MODEL
    if not isinstance(model, str):
        return check_chat_model(model)
    text = model.strip()
    if text == "offline":
        from everthread.agents.offline import OfflineModel

        return OfflineModel()
    provider, _, name = text.partition(":")
    if not provider or not name:
        raise SettingsError(f"model {model!r} has no known form{did_you_mean(text)}; it may be {_FORMS}")
    return _openai(name) if provider == "openai" else _other(provider, name)


def _openai(name: str) -> BaseChatModel:
    base_url = os.environ.get("OPENAI_BASE_URL") or None
    key = os.environ.get("OPENAI_API_KEY") or (_PLACEHOLDER_KEY if base_url else None)
    if key is None:
        raise SettingsError(
            f"model 'openai:{name}' needs a key: set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for a local server; "
            "`--model offline` works without one"
        )
    from langchain_openai import ChatOpenAI  # takes half a second, so only who uses it pays

    # No temperature: models of the gpt-5 class refuse every value but their own.
    return ChatOpenAI(
        model=name,
        api_key=SecretStr(key),
        base_url=base_url,
        stream_usage=True,
        max_retries=MAX_RETRIES,
        timeout=TIMEOUT_SECONDS,
    )


def _other(provider: str, name: str) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    text = f"{provider}:{name}"
    try:
        # Ollama cuts a prompt that is longer than it was asked for, and says nothing.
        options: dict[str, Any] = {"num_ctx": UNKNOWN_WINDOW} if provider == "ollama" else {}
        model: Any = init_chat_model(name, model_provider=provider, **options)
    except Exception as error:  # each provider package has its own error for a missing key or setting
        reason = " ".join(without_guide(str(error)).split())[:300]
        if reason.startswith("Unsupported provider"):
            raise SettingsError(
                f"provider {provider!r} of model {text!r} is unknown{did_you_mean(text)}; use {_FORMS}"
            ) from error
        raise SettingsError(f"model {text!r} cannot be made: {reason or type(error).__name__}") from error
    if not isinstance(model, BaseChatModel):
        raise SettingsError(f"model {text!r} made a {type(model).__name__}, which is not a chat model")
    return model
