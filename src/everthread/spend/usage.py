"""The tokens of a call, by kind: as the provider reports them, or else as we count them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KINDS = ("input", "cached", "cache_write", "output", "reasoning")
"""Kinds of tokens that are counted, each a field of `Usage`."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; no token is in two of the kinds."""

    input: int = 0
    """Input that was neither read from the provider's cache nor written to it."""
    cached: int = 0
    """Input read from the cache."""
    cache_write: int = 0
    """Input written to the cache."""
    output: int = 0
    """Output that is shown."""
    reasoning: int = 0
    """Output that is not."""
    is_counted: bool = False
    """The provider reported nothing, and the figures are our own count."""
    cache_write_hour: int = 0
    """Of `cache_write`, what stays for an hour instead of five minutes."""

    @property
    def total_input(self) -> int:
        """All input."""
        return self.input + self.cached + self.cache_write


def reported_usage(usage: Mapping[str, Any] | None) -> Usage | None:
    """Return what a reply's `usage_metadata` says; None when it says nothing.

    There `input_tokens` has all kinds of input, and `output_tokens` the reasoning too.
    """
    usage = usage or {}
    total, output = _tokens(usage, "input_tokens"), _tokens(usage, "output_tokens")
    if not (total or output):
        return None
    inputs, outputs = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    hour = _tokens(inputs, "ephemeral_1h_input_tokens")
    # Anthropic's client leaves the sum at 0 where it has both parts.
    write = _tokens(inputs, "cache_creation") or hour + _tokens(inputs, "ephemeral_5m_input_tokens")
    cached = min(_tokens(inputs, "cache_read"), total)
    write = min(write, total - cached)
    reasoning = min(_tokens(outputs, "reasoning"), output)
    new, hour = total - cached - write, min(hour, write)
    return Usage(new, cached, write, output - reasoning, reasoning, cache_write_hour=hour)


def _tokens(reported: Mapping[str, Any], kind: str) -> int:
    """Return the tokens of a kind, never fewer than none.

    OpenAI's client puts the service tier ahead of a kind, as in `flex_cache_read`.
    """
    names = (kind, f"flex_{kind}", f"priority_{kind}")
    return max(0, next((int(value) for name in names if (value := reported.get(name))), 0))
