"""From a text to a model: every form, and a clear error for every other one."""

import re
import sys
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from everthread.errors import SettingsError
from everthread.models.identity import describe, model_name
from everthread.models.provider import resolve
from everthread.models.replay import ReplayModel
from everthread.models.scripted import ScriptedModel
from everthread.models.wrapped import input_limit


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVERTHREAD_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def langchain(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Stand in for the optional package; the list gets (name, provider) of every model asked for."""
    asked: list[tuple[str, str]] = []

    def init_chat_model(name: str, *, model_provider: str) -> Any:
        asked.append((name, model_provider))
        if model_provider == "anthropic":
            return ScriptedModel(["from anthropic"])
        raise ValueError("Did not find a key:\nset XYZ_API_KEY")

    module = ModuleType("langchain.chat_models")
    module.__dict__["init_chat_model"] = init_chat_model
    monkeypatch.setitem(sys.modules, "langchain", ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)
    return asked


KEY = SecretStr("sk-test")


def openai(text: str = "openai:gpt-4.1-mini") -> ChatOpenAI:
    model = resolve(text)
    assert isinstance(model, ChatOpenAI)
    return model


def test_a_model_is_taken_as_it_is() -> None:
    model = ScriptedModel(["a"])

    assert resolve(model) is model


@pytest.mark.parametrize("text", ["offline", None])
def test_offline_is_named_or_the_default(text: str | None) -> None:
    assert describe(resolve(text)) == "offline"


def test_the_environment_names_the_default_and_an_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTHREAD_MODEL", "openai:gpt-5-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    assert describe(resolve()) == "openai:gpt-5-mini"
    assert describe(resolve("openai:gpt-4o")) == "openai:gpt-4o"
    assert describe(resolve("offline")) == "offline"


def test_openai_gets_bounded_retries_a_time_out_usage_and_no_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    model = openai("openai:gpt-5-mini")

    assert (model.max_retries, model.request_timeout, model.stream_usage) == (2, 120.0, True)
    assert "temperature" not in model._default_params


def test_openai_without_a_key_says_what_to_set_and_what_needs_none() -> None:
    with pytest.raises(SettingsError, match=r"set `OPENAI_API_KEY`.*`--model offline` works without one"):
        resolve("openai:gpt-5-mini")


def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")

    model = openai("openai:llama3.2:3b")

    assert (model.openai_api_base, model.model_name) == ("http://127.0.0.1:11434/v1", "llama3.2:3b")


def test_a_key_that_is_set_is_not_replaced_for_a_local_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")

    assert openai().root_client.api_key == "sk-mine"


def test_other_providers_go_through_langchain(langchain: list[tuple[str, str]]) -> None:
    model = resolve("anthropic:claude-sonnet-4-5")

    assert model.invoke("hi").text == "from anthropic"
    assert langchain == [("claude-sonnet-4-5", "anthropic")]


def test_a_missing_provider_package_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'ibm:granite' cannot be made: .*`pip install langchain-ibm`"):
        resolve("ibm:granite")


def test_what_a_provider_package_refuses_is_told_on_one_line(langchain: list[tuple[str, str]]) -> None:
    with pytest.raises(SettingsError, match="'xai:grok-4' cannot be made: Did not find a key: set XYZ_API_KEY"):
        resolve("xai:grok-4")


@pytest.mark.parametrize("text", ["my-model", "", "openai:", ":gpt-4o", "  "])
def test_a_text_of_no_known_form_lists_the_forms(text: str) -> None:
    with pytest.raises(SettingsError, match=r"no known form; it may be `offline`, `openai:NAME`, or `PROVIDER:NAME`"):
        resolve(text)


def test_an_unknown_provider_lists_the_forms() -> None:
    with pytest.raises(SettingsError, match=r"provider 'my_own' .* is unknown; use `offline`"):
        resolve("my_own:model")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ofline", "offline"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("gemini-2.5-pro", "google_genai:gemini-2.5-pro"),
        ("opanai:gpt-5", "openai:gpt-5"),
        ("gemini:gemini-2.5-prof", "google_genai:gemini-2.5-pro"),
        ("mistral:my-own", "mistralai:my-own"),
    ],
)
def test_a_wrong_name_suggests_the_right_one(text: str, meant: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(f"(did you mean {meant!r}?)")):
        resolve(text)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(SettingsError, match="must be a chat model or a text, got int"):
        resolve(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "said", "name"),
    [
        (ChatOpenAI(model="gpt-4.1", api_key=KEY), "openai:gpt-4.1", "gpt-4.1"),
        (ScriptedModel(), "scripted", None),
        (ReplayModel(), "replay", None),
    ],
)
def test_a_model_says_its_name(model: BaseChatModel, said: str, name: str | None) -> None:
    assert (describe(model), model_name(model)) == (said, name)


def test_the_input_limit_is_not_the_headline_window() -> None:
    assert input_limit(ChatOpenAI(model="gpt-5-mini", api_key=KEY)) == 272_000


def test_a_model_without_profile_has_no_limit() -> None:
    assert input_limit(ScriptedModel()) is None
    assert input_limit(ChatOpenAI(model="my-own-model", api_key=KEY)) is None
