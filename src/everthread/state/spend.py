"""What the calls of models may cost before somebody is asked."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeGuard

from everthread.errors import SettingsError

LIMITS = ("thread", "user_day")
"""Names of the limits, in the order in which they are told."""


@dataclass(frozen=True)
class Spend:
    """Count what calls of models cost, and ask before a limit is passed; see docs/spend.md.

    `Spend()` counts and limits nothing. Amounts are in the currency of the prices, as a rule US dollars.

    Raises:
        SettingsError: an amount is negative or no number, or there is no such file of prices.
    """

    thread: float | None = None
    """What a thread may cost over its whole life; None: no limit."""

    user_day: float | None = None
    """What all threads of a user may cost in a day of UTC; None: no limit."""

    grant: float | None = None
    """What a plain yes adds to a limit that is reached; None: as much again as the limit."""

    asks: bool = True
    """Whether a run stops with an interrupt at a limit; False: its turn ends with a reply that says why."""

    prices: str | Path | None = None
    """YAML file with prices of your own, which win over the packaged ones; None takes `EVERTHREAD_PRICES`."""

    def __post_init__(self) -> None:
        for name in (*LIMITS, "grant"):
            value = getattr(self, name)
            if value is not None and not is_amount(value):
                raise SettingsError(f"`{name}` of `Spend` must be an amount of money, at least 0, got {value!r}")
        if self.grant == 0:
            raise SettingsError("`grant` of `Spend` is 0, so that a yes would grant nothing; leave it out")
        if not isinstance(self.asks, bool):
            raise SettingsError(f"`asks` of `Spend` must be true or false, got {self.asks!r}")
        if self.prices is not None and not Path(self.prices).is_file():
            raise SettingsError(f"`prices` of `Spend` names {str(self.prices)!r}, which is no file")

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits that are set, by name."""
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}

    @property
    def price_file(self) -> Path | None:
        """The user's own file of prices."""
        named = self.prices or os.environ.get("EVERTHREAD_PRICES")
        return Path(named) if named else None

    @classmethod
    def from_text(cls, text: str) -> "Spend":
        """Read what a command line says, such as `user_day=2.00,thread=1.00`.

        Raises:
            SettingsError: it has another form.
        """
        values: dict[str, object] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, equals, value = map(str.strip, part.partition("="))
            if not equals or name not in {one.name for one in fields(cls)}:
                raise SettingsError(f"`--spend` takes limits such as `user_day=2.00,thread=1.00`, got {part!r}")
            if name in values:
                raise SettingsError(f"`--spend` names `{name}` twice: {text!r}")
            values[name] = _value(name, value)
        if not values:
            raise SettingsError("`--spend` is empty; say for example `--spend user_day=2.00`, or leave it out")
        return cls(**values)  # type: ignore[arg-type] # checked in `__post_init__`


def is_amount(value: object) -> TypeGuard[float]:
    """Tell whether a value is an amount of money; an integer may be too large for a float, which sums are."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def _value(name: str, text: str) -> object:
    if name == "prices":
        return text
    if name == "asks":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return float(text)
    except ValueError:
        return text
