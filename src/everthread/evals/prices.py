"""What prompts and replies cost at a provider's prices, net of its prompt cache."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from everthread.errors import SettingsError
from everthread.spend.prices import read_price_list, read_yaml

_MILLION = 1_000_000


class Cost(BaseModel):
    """Money by what it was for."""

    model_config = ConfigDict(frozen=True)

    uncached: float = 0.0
    cached: float = 0.0
    output: float = 0.0

    @property
    def total(self) -> float:
        """Return all of it."""
        return self.uncached + self.cached + self.output

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            uncached=self.uncached + other.uncached,
            cached=self.cached + other.cached,
            output=self.output + other.output,
        )


class Prices(BaseModel):
    """Prices of one model, per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "prices"
    currency: str = "USD"
    input: float = Field(ge=0)
    cached_input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    """For input that enters the cache; None: the same as `input`."""
    cache_minimum: int = Field(default=1024, ge=0)
    """Tokens below which a head is not cached."""

    def cost(self, sizes: Iterable[tuple[int, int]], output_tokens: int) -> Cost:
        """Price a conversation.

        Args:
            sizes: of each prompt its tokens, and those at its head that the one before had too.
        """
        fresh = self.input if self.cache_write is None else self.cache_write
        uncached = cached = 0
        for tokens, head in sizes:
            hit = head if head >= self.cache_minimum else 0
            cached += hit
            uncached += tokens - hit
        return Cost(
            uncached=uncached * fresh / _MILLION,
            cached=cached * self.cached_input / _MILLION,
            output=output_tokens * self.output / _MILLION,
        )


def read_prices(path: Path | None = None) -> Prices:
    """Read a file of prices, or take those of a model; None reads the neutral example that ships with the package.

    Args:
        path: a file, or the name of a model such as `gpt-5-mini`, whose packaged prices are taken.

    Raises:
        SettingsError: the file cannot be read, or a price is missing or negative.
    """
    if path is not None and not path.exists() and (found := read_price_list().find("", str(path))) is not None:
        cached = found.input if found.cached_input is None else found.cached_input
        own = found.model_dump(include={"input", "output", "cache_write"})
        return Prices(name=f"{path}, {found.date}", cached_input=cached, **own)
    where = "the example prices" if path is None else repr(str(path))
    values = read_yaml(Path(__file__).with_name("prices.yaml") if path is None else path, where)
    try:
        return Prices.model_validate(values if isinstance(values, dict) else {})
    except ValidationError as error:
        problems = "; ".join(map(_problem, error.errors(include_url=False)))
        raise SettingsError(f"{where}: {problems}. A price list has {_FORM}") from error


_FORM = "`input`, `cached_input` and `output`, each for a million tokens; everthread/evals/prices.yaml is an example"


def _problem(error: Mapping[str, Any]) -> str:
    name = ".".join(map(str, error["loc"]))
    text = {"missing": "is missing", "extra_forbidden": "is not known"}.get(error["type"])
    return f"`{name}` {text}" if text else f"`{name}`: {error['msg']}, got {error['input']!r:.40}"
