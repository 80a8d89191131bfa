"""The chat models inside a wrapper: `bind`, `with_retry`, `with_fallbacks`, configurable fields and alternatives."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable, RunnableConfigurableAlternatives
from langchain_core.runnables.fallbacks import RunnableWithFallbacks

from everthread.errors import SettingsError

ChatModel: TypeAlias = Runnable[LanguageModelInput, AIMessage]
"""A chat model, or one with LangChain's wrappers around it."""


_NO_TOOLS = BaseChatModel.bind_tools
"""What a model has that cannot call tools."""

ChatT = TypeVar("ChatT", bound=Runnable[Any, Any])

OLLAMA_CONTEXT = 4_096
"""Context length of an Ollama model without `num_ctx`, on machines with less than 24 GiB of video memory."""


def chat_models(model: Runnable[Any, Any]) -> list[BaseChatModel]:
    """Return the chat models that a call may reach, the one that is asked first ahead.

    Of a configurable one these are the default and its alternatives that are made already; empty when there is no
    default, and for whatever is no chat model.
    """
    if isinstance(model, BaseChatModel):
        return [model]
    if isinstance(model, RunnableBindingBase):
        return chat_models(model.bound)
    parts: list[Any] = []
    if isinstance(model, RunnableWithFallbacks):
        parts = [model.runnable, *model.fallbacks]
    elif isinstance(model, RunnableConfigurableAlternatives):
        parts = [model.default, *(one for one in model.alternatives.values() if isinstance(one, Runnable))]
    elif isinstance(model, DynamicRunnable):
        parts = [model.default]
    else:
        # What `init_chat_model` makes of configurable fields hands out the methods of its default model.
        default = getattr(getattr(model, "get_num_tokens", None), "__self__", None)
        return [default] if isinstance(default, BaseChatModel) else []
    return [chat for part in parts for chat in chat_models(part)]


def chat_model(model: Runnable[Any, Any]) -> BaseChatModel | None:
    """Return the chat model that is asked first: its name and profile stand for the whole."""
    return next(iter(chat_models(model)), None)


def input_limit(model: Runnable[Any, Any]) -> int | None:
    """Return the most tokens that every chat model inside takes in, by their profiles; None when none has one.

    Ollama cuts a prompt at its context length without a word, so there that length is the limit.
    """
    limits = map(_limit, chat_models(model))
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)


def _limit(chat: BaseChatModel) -> Any:
    if "num_ctx" in type(chat).model_fields:
        return getattr(chat, "num_ctx", None) or OLLAMA_CONTEXT
    return (chat.profile or {}).get("max_input_tokens")


def reply_limited(model: Runnable[Any, Any], tokens: int) -> Runnable[Any, Any]:
    """Return a model, with its tools or without, whose replies have so many tokens at the most."""

    def limited(chat: Runnable[Any, Any]) -> Runnable[Any, Any]:
        limited_chat, options = reply_limit(chat, tokens)
        return limited_chat.bind(**options) if options else limited_chat

    return rewrapped(model, limited)


def reply_limit(chat: ChatT, tokens: int) -> tuple[ChatT, dict[str, int]]:
    """Return a chat model and the argument of a call that limits its reply; each client has its own name for it."""
    fields = getattr(type(chat), "model_fields", {})
    if "num_predict" in fields:  # Ollama's client takes it from the model only
        ollama: Any = chat
        return ollama.model_copy(update={"num_predict": tokens}), {}
    return chat, {"max_output_tokens" if "max_output_tokens" in fields else "max_tokens": tokens}


def takes_cache_control(model: Runnable[Any, Any]) -> bool:
    """Tell whether every call reaches a client of Anthropic's, which alone needs marks and alone surely takes them."""
    if isinstance(model, RunnableBindingBase):
        return takes_cache_control(model.bound)
    if isinstance(model, RunnableWithFallbacks):
        return all(map(takes_cache_control, (model.runnable, *model.fallbacks)))
    packages = (kind.__module__.partition(".")[0] for kind in type(model).__mro__)
    return isinstance(model, BaseChatModel) and "langchain_anthropic" in packages


def rewrapped(model: Runnable[Any, Any], make: Callable[[Any], Runnable[Any, Any]]) -> Runnable[Any, Any]:
    """Return what `make` makes of each chat model, with the same wrappers around it.

    Tools have to be bound inside a retry and to every fallback in its own way; what is configurable is made when
    the run's config is known.
    """
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": rewrapped(model.bound, make)})
    if isinstance(model, RunnableWithFallbacks):
        update = {
            "runnable": rewrapped(model.runnable, make),
            "fallbacks": [rewrapped(one, make) for one in model.fallbacks],
        }
        return model.model_copy(update=update)
    if isinstance(model, DynamicRunnable):
        return _prepared(model, make)
    return make(model)


def _prepared(
    model: DynamicRunnable[Any, Any], make: Callable[[Any], Runnable[Any, Any]]
) -> RunnableLambda[Any, AIMessage]:
    """Return a runnable that calls what the config of each run chooses."""

    def chosen(_: Any, config: RunnableConfig, **options: Any) -> Any:
        return rewrapped(model.prepare(config)[0], make).bind(**options)

    async def achosen(_: Any, config: RunnableConfig, **options: Any) -> Any:
        return chosen(_, config, **options)  # a coroutine, so that the model is awaited as well

    return RunnableLambda(chosen, achosen, name="configurable")


def check_chat_model(model: object) -> ChatModel:
    """Return a chat model as it is.

    Raises:
        SettingsError: it is none, or it has tools bound already, which ours would take the place of.
    """
    if not isinstance(model, Runnable) or not (chat_models(model) or hasattr(model, "bind_tools")):
        raise SettingsError(
            f"`model` must be a chat model or a text, got {type(model).__name__}; wrappers such as `.bind(…)`, "
            "`.with_retry()` and `.with_fallbacks([…])` may be around it, and nothing before or behind it"
        )
    if _has_tools(model):
        raise SettingsError("`model` has tools bound to it, which those of the agent replace; give them to the agent")
    return model


def check_takes_tools(model: ChatModel) -> ChatModel:
    """Return a model to which tools can be bound as it is.

    Raises:
        SettingsError: LangChain's `bind_tools` is not implemented for it, as for its fake models.
    """
    for chat in chat_models(model):
        if getattr(chat.bind_tools, "__func__", None) is _NO_TOOLS:
            raise SettingsError(
                f"`model` must be able to call tools, and {type(chat).__name__} has no `bind_tools`; every agent has "
                "tools that save notes and read back what left the prompt. In tests, take `ScriptedModel`"
            )
    return model


def _has_tools(model: Runnable[Any, Any]) -> bool:
    if isinstance(model, RunnableBindingBase):
        return "tools" in model.kwargs or _has_tools(model.bound)
    if isinstance(model, RunnableWithFallbacks):
        return any(map(_has_tools, (model.runnable, *model.fallbacks)))
    return isinstance(model, DynamicRunnable) and _has_tools(model.default)
