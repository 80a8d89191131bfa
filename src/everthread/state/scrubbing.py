"""Take keys, tokens and passwords out of the text of an error before anybody keeps or shows it."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import yaml

_PLUGINS = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "mailchimp": "MailchimpDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
"""Detectors of detect-secrets that take linear time; `secrets.yaml` has the shapes of the others."""


def scrub(text: str) -> str:
    """Replace what looks like a key, a token or a password by `[key]`."""
    for pattern in _patterns():
        text = pattern.sub(r"\1[key]" if pattern.groupindex.get("kept") else "[key]", text)
    return text


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return our own shapes and those of detect-secrets; loaded with the first error."""
    rules = yaml.safe_load(Path(__file__).with_name("secrets.yaml").read_text("utf-8"))
    # The group is named here, since a detector may have groups of its own that keep nothing.
    texts = ["".join(rule["pattern"].split("\n    ")).replace("\n", "") for rule in rules]
    ours = [re.compile(re.sub(r"^\((?!\?)", "(?P<kept>", text), re.IGNORECASE) for text in texts]
    plugins = (getattr(import_module(f"detect_secrets.plugins.{module}"), name) for module, name in _PLUGINS.items())
    return (*ours, *(pattern for plugin in plugins for pattern in plugin.denylist))
