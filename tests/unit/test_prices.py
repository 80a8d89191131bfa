"""Prices of models, and the tokens that they are for."""

from pathlib import Path

import pytest

from everthread import Spend
from everthread.errors import SettingsError
from everthread.spend.prices import read_price_list
from everthread.spend.usage import Usage, reported_usage


@pytest.mark.parametrize(
    ("provider", "name", "known_as"),
    [
        ("openai", "gpt-5-mini", "gpt-5-mini"),
        ("openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic", "claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("aws", "us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("openrouter", "openai/gpt-4.1", "gpt-4.1"),
        ("ollama", "qwen3:8b", "ollama:*"),
    ],
)
def test_a_model_is_found_under_the_names_that_providers_give_it(provider: str, name: str, known_as: str) -> None:
    prices = read_price_list()

    assert prices.find(provider, name) == prices.models[known_as]


@pytest.mark.parametrize("name", ["gpt-6", "gpt-5-mini-turbo", "claude", ""])
def test_an_unknown_model_has_no_price(name: str) -> None:
    prices = read_price_list()

    assert prices.find("openai", name) is None
    assert prices.cost("openai", name, Usage(input=1_000)) is None


def test_every_packaged_price_has_date_and_source_and_a_cheaper_cache() -> None:
    for price in read_price_list().models.values():
        assert price.source
        assert price.date.year >= 2026
        assert (price.cached_input or 0) <= price.input <= price.output


def test_kinds_of_tokens_cost_what_they_cost() -> None:
    usage = Usage(
        input=1_000_000, cached=1_000_000, cache_write=2_000_000, output=1_000_000, cache_write_hour=1_000_000
    )

    cost = read_price_list().cost("anthropic", "claude-sonnet-4-6", usage)

    assert cost == pytest.approx(3 + 0.3 + 3.75 + 6 + 15)


def test_a_long_prompt_costs_more() -> None:
    prices = read_price_list()

    assert prices.cost("openai", "gpt-5.4", Usage(input=272_000)) == pytest.approx(0.68)
    assert prices.cost("openai", "gpt-5.4", Usage(input=272_001)) == pytest.approx(1.360005)


def test_a_file_of_the_users_own_wins(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("date: 2026-02-03\nmodels:\n  gpt-5-mini: { input: 7, output: 8 }\n", encoding="utf-8")

    prices = read_price_list(file)

    assert prices.models["gpt-5-mini"].input == 7
    assert prices.models["gpt-5-nano"] == read_price_list().models["gpt-5-nano"]


def test_a_price_of_the_users_own_wins_also_by_provider(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("models:\n  'azure:*': { input: 7, output: 8, date: 2026-02-03 }\n", encoding="utf-8")
    prices = read_price_list(file)

    assert prices.find("azure", "gpt-5-mini") == prices.models["azure:*"]
    assert prices.find("openai", "gpt-5-mini") == prices.models["gpt-5-mini"]


def test_a_currency_in_small_letters_is_the_same_one(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("currency: usd\nmodels:\n  m: { input: 7, output: 8, date: 2026-02-03 }\n", encoding="utf-8")

    prices = read_price_list(file)

    assert prices.currency == "USD"
    assert prices.find("openai", "gpt-5-mini") is not None


def test_prices_in_another_currency_stand_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("currency: EUR\nmodels:\n  m: { input: 7, output: 8, date: 2026-02-03 }\n", encoding="utf-8")

    assert list(read_price_list(file).models) == ["m"]


def test_models_may_share_what_an_anchor_names_and_number_their_sources(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    shared = "x-base: &base { input: 7, date: 2026-02-03, source: 1 }\nsources: { 1: https://example.com }\n"
    file.write_text(f"{shared}models:\n  m: {{ <<: *base, output: 8 }}\n", encoding="utf-8")

    price = read_price_list(file).models["m"]

    assert (price.input, price.output, price.source) == (7, 8, "https://example.com")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models: 3", "`models`"),
        ("models:\n  m: { input: -1, output: 1, date: 2026-01-01 }", "`m.input`"),
        ("models:\n  m: { input: 1, output: 1 }", "`m.date`"),
        ("models:\n  m: { input: 1, output: 1, date: 2026-01-01, per: 3 }", "`m.per`"),
        ("models:\n  m: { input: .inf, output: 1, date: 2026-01-01 }", "`m.input`"),
        ("models:\n  m: { input: 1, output: 1, date: 2026-01-01, source: [a] }", "`m.source`"),
        ("sources: [a]\nmodels: {}", "`sources`"),
        ("curency: EUR\nmodels: {}", "`curency`"),
        ("date: 2026-13-01\nmodels: {}", "month"),
        ("models: [", "not YAML"),
    ],
)
def test_a_file_that_is_no_price_list_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError, match=says):
        read_price_list(file)


@pytest.mark.parametrize("name", ["missing.yaml", "bad.yaml"])
def test_a_price_list_that_the_environment_names_is_refused_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "bad.yaml").write_text("models: 3", encoding="utf-8")
    monkeypatch.setenv("EVERTHREAD_PRICES", str(tmp_path / name))

    with pytest.raises(SettingsError, match=f"EVERTHREAD_PRICES='.*{name}'"):
        read_price_list(Spend().price_file)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, None),
        ({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}, None),
        ({"input_tokens": 10, "output_tokens": 3}, Usage(input=10, output=3)),
        (
            {
                "input_tokens": 100,
                "output_tokens": 30,
                "input_token_details": {"cache_read": 60, "cache_creation": 10},
                "output_token_details": {"reasoning": 25},
            },
            Usage(input=30, cached=60, cache_write=10, output=5, reasoning=25),
        ),
        (
            # As Anthropic's client has it.
            {
                "input_tokens": 100,
                "output_tokens": 3,
                "input_token_details": {
                    "cache_read": None,
                    "cache_creation": 0,
                    "ephemeral_5m_input_tokens": 20,
                    "ephemeral_1h_input_tokens": 30,
                },
            },
            Usage(input=50, cache_write=50, output=3, cache_write_hour=30),
        ),
        (
            # As OpenAI's client has it for a service tier.
            {
                "input_tokens": 100,
                "output_tokens": 30,
                "input_token_details": {"flex_cache_read": 60, "flex": 40},
                "output_token_details": {"flex_reasoning": 25, "flex": 5},
            },
            Usage(input=40, cached=60, output=5, reasoning=25),
        ),
        # Fewer than none.
        ({"input_tokens": 10, "output_tokens": -3, "input_token_details": {"cache_read": -4}}, Usage(input=10)),
        ({"input_tokens": -10, "output_tokens": 0}, None),
        # Parts that are more than the whole.
        ({"input_tokens": 5, "output_tokens": 0, "input_token_details": {"cache_read": 9}}, Usage(cached=5)),
    ],
)
def test_the_report_of_a_provider_is_split_into_kinds(reported: dict[str, int] | None, usage: Usage | None) -> None:
    assert reported_usage(reported) == usage


def test_spend_is_read_from_a_command_line() -> None:
    assert Spend.from_text("user_day=2.00, thread=1,asks=false") == Spend(thread=1.0, user_day=2.0, asks=False)


def test_an_amount_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(SettingsError, match="`thread` of `Spend` must be an amount of money"):
        Spend(thread=10**400)


@pytest.mark.parametrize(
    "text",
    [
        "2.00",
        "day=1",
        "thread=much",
        "thread=-1",
        "grant=0",
        "thread=nan",
        "asks=perhaps",
        "",
        " , ",
        "thread=1,thread=2",
    ],
)
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        Spend.from_text(text)
