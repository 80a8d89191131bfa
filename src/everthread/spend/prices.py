"""What models cost: the packaged list, with the user's own file over it."""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from everthread.errors import SettingsError
from everthread.spend.usage import Usage

_MILLION = 1_000_000
_DATED = re.compile(r"(?:-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8}|-latest)$")
_BEDROCK = re.compile(r"^(?:[a-z]{2,4}\.)?(?:anthropic|amazon|mistral|meta|cohere|deepseek)\.|-v\d+(?::\d+)?$")

DEFAULT_CURRENCY = "USD"
"""Of a price list that names none."""


class Price(BaseModel):
    """Prices for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    """For input that the provider read from its cache; None: the same as `input`."""
    cache_write: float | None = Field(default=None, ge=0)
    """For input that enters the cache; None: the same as `input`."""
    output: float = Field(ge=0)
    reasoning: float | None = Field(default=None, ge=0)
    """For output that nobody is shown; None: the same as `output`."""

    def cost(self, usage: Usage) -> float:
        """Return what a call costs."""
        # An hour in Anthropic's cache costs 8/5 of five minutes there.
        write = self.input if self.cache_write is None else self.cache_write
        hour = self.input if self.cache_write is None else 1.6 * self.cache_write
        cached = self.input if self.cached_input is None else self.cached_input
        reasoning = self.output if self.reasoning is None else self.reasoning
        return (
            usage.input * self.input
            + usage.cached * cached
            + (usage.cache_write - usage.cache_write_hour) * write
            + usage.cache_write_hour * hour
            + usage.output * self.output
            + usage.reasoning * reasoning
        ) / _MILLION

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """Return what a call of so many tokens costs at the most: all of its input new, and kept in the cache."""
        dearest = max(self.input, self.cache_write or 0.0)
        return (input_tokens * dearest + output_tokens * max(self.output, self.reasoning or 0.0)) / _MILLION


class LongPrice(Price):
    """Prices of a call whose prompt is longer than some models take at their usual price."""

    above: int = Field(ge=1)
    """Tokens of input from which on they hold, for the whole call."""


class ModelPrice(Price):
    """Prices of one model."""

    source: str = ""
    """Where they were read."""
    date: date
    """When."""
    long: LongPrice | None = None

    def for_input(self, tokens: int) -> Price:
        """Return the prices of a call with so many tokens of input."""
        return self.long if self.long is not None and tokens > self.long.above else self


class PriceList(BaseModel):
    """Prices by model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = DEFAULT_CURRENCY
    models: dict[str, ModelPrice]
    own: frozenset[str] = frozenset()
    """Those of a user's own file, which win over all others that fit a model, `provider:*` too."""

    def find(self, provider: str, name: str) -> ModelPrice | None:
        """Return the prices of a model; None when nobody knows them.

        Args:
            provider: such as `openai`; may be empty.
            name: such as `gpt-5-mini-2025-08-07`.
        """
        names = sorted(_names(provider, name), key=lambda one: one not in self.own)
        return next((self.models[one] for one in names if one in self.models), None)

    def cost(self, provider: str, name: str, usage: Usage) -> float | None:
        """Return what a call costs; None when the model has no price."""
        price = self.find(provider, name)
        return None if price is None else price.for_input(usage.total_input).cost(usage)


def _names(provider: str, name: str) -> Iterator[str]:
    """Yield the names under which a model may stand in a list, its own first."""
    names = [name, _DATED.sub("", name), name.rpartition("/")[2]]
    plain = _BEDROCK.sub("", _BEDROCK.sub("", names[-1]))
    names += [plain, _DATED.sub("", plain)]
    for one in dict.fromkeys(names):
        yield f"{provider}:{one}"
        yield one
    yield f"{provider}:*"


def read_price_list(path: Path | None = None) -> PriceList:
    """Return the packaged prices, with those of a file over them.

    Raises:
        SettingsError: the file cannot be read, has another currency, or a price is missing or negative.
    """
    if path is None:
        return _packaged()
    is_from_environment = str(path) == os.environ.get("EVERTHREAD_PRICES")
    where = f"EVERTHREAD_PRICES={str(path)!r}" if is_from_environment else repr(str(path))
    own = _validated(read_yaml(path, where), where)
    # Amounts of two currencies cannot be added up.
    packaged = _packaged().models if own.currency == _packaged().currency else {}
    return PriceList(currency=own.currency, models={**packaged, **own.models}, own=frozenset(own.models))


@cache
def _packaged() -> PriceList:
    source = files("everthread.spend") / "prices.yaml"
    return _validated(yaml.safe_load(source.read_text(encoding="utf-8")), "the packaged prices")


def read_yaml(path: Path, where: str) -> Any:
    """Return what a file of prices holds.

    Raises:
        SettingsError: it cannot be read, or is not YAML; `where` says which file.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {where}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:  # such as a thirteenth month
        raise SettingsError(f"cannot read {where}: it is not YAML: {str(error).splitlines()[0]}") from error


def _validated(values: Any, where: str) -> PriceList:
    """Return a list of prices; sources are links, or names under `sources`."""
    if not isinstance(values, Mapping) or not isinstance(values.get("models"), Mapping):
        raise SettingsError(f"{where}: a price list has `models` with `input`, `output` and `date`; docs/spend.md")
    try:
        # As in other YAML, `x-` and `.` are for what anchors name.
        named = {key: one for key, one in values.items() if not str(key).startswith(("x-", "."))}
        file = _PriceFile.model_validate({**named, "models": {str(key): one for key, one in values["models"].items()}})
        shared = {} if file.date is None else {"date": file.date}
        models = {name: {**shared, **one, **file.source_of(one)} for name, one in file.models.items()}
        return PriceList.model_validate({"currency": file.currency, "models": models})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"])).removeprefix("models.")
        raise SettingsError(f"{where}: `{name}`: {first['msg']}; docs/spend.md has the format") from error


class _PriceFile(BaseModel):
    """A file of prices, before what its models share is theirs."""

    model_config = ConfigDict(extra="forbid")

    currency: Annotated[str, StringConstraints(strip_whitespace=True, to_upper=True, min_length=1)] = DEFAULT_CURRENCY
    date: Any = None
    """Of each model without one of its own, which is where it is checked."""
    sources: dict[str | int, str] | None = None
    models: dict[str, dict[str, Any]]

    def source_of(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """Return the source of a model, by its name if it has one."""
        source = model.get("source", "")
        return {"source": (self.sources or {}).get(source, source) if isinstance(source, str | int) else source}
