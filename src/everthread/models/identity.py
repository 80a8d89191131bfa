"""What is known about a model: who serves it, its name, and by which name its tokens are counted."""

from everthread.models.wrapped import ChatModel, chat_model

DEFAULT_MODEL = "offline"


def describe(model: ChatModel) -> str:
    """Name a model as `resolve` takes it, such as `openai:gpt-5-mini`; our own are `offline`, `scripted`, `replay`."""
    name = model_name(model)
    return provider(model) if name is None else f"{provider(model)}:{name}"


def provider(model: ChatModel) -> str:
    """Name who serves a model, such as `openai`: the package of its class, else the class itself."""
    chat = chat_model(model)
    if chat is None:
        return "configurable"
    packages = [kind.__module__.partition(".")[0] for kind in type(chat).__mro__]
    name = next((one for one in packages if one.startswith("langchain_") and one != "langchain_core"), None)
    return name.removeprefix("langchain_") if name else type(chat).__name__.removesuffix("Model").lower()


def model_name(model: ChatModel) -> str | None:
    """Give the model's own name, such as `gpt-4.1`, which tells its tokenizer; None when it has none."""
    chat = chat_model(model)
    for attribute in ("model_name", "model", "model_id", "deployment_name"):
        value = getattr(chat, attribute, None)
        if isinstance(value, str) and value:
            return value.removeprefix("models/")
    return None


def tokenizer_name(model: ChatModel) -> str | None:
    """Give the name by which a model's tokens are counted; our own models count as we do."""
    is_own = any(kind.__module__.startswith("everthread.") for kind in type(chat_model(model)).__mro__)
    return model_name(model) or (DEFAULT_MODEL if is_own else None)
