"""No secret of a known shape stays in a text that is kept, and plain words do."""

from pathlib import Path

import pytest
import yaml

import everthread.state.scrubbing
from everthread.state.scrubbing import scrub
from text_growth import LINEAR, growth

RULES = yaml.safe_load(Path(everthread.state.scrubbing.__file__).with_name("secrets.yaml").read_text("utf-8"))
S = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"  # 39 characters


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["name"]))
def test_every_shape_catches_its_examples(rule: dict[str, str]) -> None:
    for example in [rule["catches"]] if isinstance(rule["catches"], str) else rule["catches"]:
        assert "[key]" in scrub(example)


@pytest.mark.parametrize(
    "text",
    [
        f"token ghp_{S[:36]} refused",
        f"token github_pat_{S[:22]}_{S[:30]} refused",
        f"token glpat-{S[:20]} refused",
        f"token xoxb-123456789012-123456789012-{S[:24]} refused",
        f"token xapp-1-A0-1-{S[:30]} refused",
        f"https://hooks.slack.com/services/T0123/B0123/{S[:24]}",
        f"key AKIA{S[:16].upper()} refused",
        f"aws_secret_access_key = {S}x",
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={S}{S}{S[:8]}==;EndpointSuffix=core",
        f"npm_{S[:36]}",
        f"//registry.npmjs.org/:_authToken={S}",
        f"SG.{S[:22]}.{S}{S[:4]}",
        f"bot 123456789:{S[:35]}",
        f"password={S}",
        f'"password": "{S}"',
        f"DB_PASSWORD='{S}'",
        f"pwd={S};Server=db",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{S}\nDEK-Info: A-B\n{S}\n-----END OPENSSH PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{S}",
        f"Cookie: session={S}; theme=dark",
        f"Set-Cookie: id={S}; HttpOnly",
        f"Authorization: Basic {S}==",
        f"authorization='Digest {S}'",
        f"curl -H 'Basic {S}='",
        f"https://a.blob.core.windows.net/c?sv=2024&sig={S}&se=1",
        f"https://s3.example/o?X-Amz-Signature={S}",
        f"postgresql://ada:{S}@host/db",
        f"client_secret={S}",
        f"refresh_token: {S}",
        f"sk_live_{S[:24]}",
        f"eyJhbGciOi.{S}.{S}",
        f"pypi-AgEIcHlwaS5vcmc{S}{S}",
    ],
)
def test_no_secret_of_a_known_shape_is_left(text: str) -> None:
    left = scrub(text)

    assert "[key]" in left
    assert not any(S[start : start + 10] in left or S[start : start + 10].upper() in left for start in range(25))


@pytest.mark.parametrize(
    "text",
    [
        "the password is missing",
        "unexpected token at line 3",
        "Basic configuration of the printer",
        "the bearer of the ticket",
        "cookies are off",
        "https://example.com/a?page=2&q=sign",
        "INC-ABCDEFGH was opened at 12:30",
        "commit 4d1c5ce of main",
    ],
)
def test_plain_words_stay(text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize(
    "unit",
    ["-", " ", "a", "A1", "eyJ", "sk-", "://a", "://a:", "xoxb-1-", "password", "-----BEGIN PRIVATE KEY-----", "b "],
)
def test_scrubbing_takes_time_in_proportion_to_the_text(unit: str) -> None:
    scrub("")

    assert growth(lambda size: scrub(unit * (size // len(unit))), 20_000) <= LINEAR
