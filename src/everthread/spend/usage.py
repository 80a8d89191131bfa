"""The tokens of a call, by kind: as the provider reports them, or else as we count them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "Usage", "reported_usage"]

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
    if not usage or not (usage.get("input_tokens") or usage.get("output_tokens")):
        return None
    inputs, outputs = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    total, output = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
    hour = int(inputs.get("ephemeral_1h_input_tokens") or 0)
    # Anthropic's client leaves the sum at 0 where it has both parts.
    write = int(inputs.get("cache_creation") or 0) or hour + int(inputs.get("ephemeral_5m_input_tokens") or 0)
    cached = min(int(inputs.get("cache_read") or 0), total)
    write = min(write, total - cached)
    reasoning = min(int(outputs.get("reasoning") or 0), output)
    new, hour = total - cached - write, min(hour, write)
    return Usage(new, cached, write, output - reasoning, reasoning, cache_write_hour=hour)
