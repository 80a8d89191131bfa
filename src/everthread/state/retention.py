"""How long a database keeps what was said."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from everthread.errors import SettingsError


@dataclass(frozen=True)
class Retention:
    """What is kept for how long; None keeps all of it.

    `open_storage(url, retention=…)` has it for every thread, and an agent's own takes its place, as a whole, for the
    threads of that agent: `Agent(…, retention=Retention())` keeps all of them. Nothing goes by itself: `retain` and
    `everthread retain` delete, and so do `sweep`, `worker` and `serve`.

    Raises:
        SettingsError: a value is out of range.
    """

    idle_days: float | None = None
    """Days without activity after which a thread goes as a whole, above 0. The user's long-term notes stay."""

    transcript_days: float | None = None
    """Days after which a message goes from the transcript, above 0, once no checkpoint has it any more."""

    ledger_turns: int | None = None
    """Turns of each thread whose events are kept, at least 1; those about notes stay as long as the thread."""

    def __post_init__(self) -> None:
        for name in ("idle_days", "transcript_days"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < float("inf")):
                raise SettingsError(f"`{name}` must be a number of days above 0, got {value!r}")
        turns = self.ledger_turns
        if turns is not None and not (isinstance(turns, int) and _is_number(turns) and turns >= 1):
            raise SettingsError(f"`ledger_turns` must be a whole number of at least 1, got {turns!r}")

    def as_json(self) -> dict[str, Any]:
        """Return what is set as one JSON object."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a policy such as `idle_days=90,ledger_turns=500`.

        Raises:
            SettingsError: it has another form, or a value is out of range.
        """
        names = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name in values:
                raise SettingsError(f"a retention names `{name}` twice: {text!r}")
            try:
                if name not in names:
                    raise ValueError
                values[name] = int(value) if name == "ledger_turns" else float(value)
            except ValueError:
                raise SettingsError(
                    f"{part!r} is no retention; write it as `idle_days=90,transcript_days=30,ledger_turns=500`, "
                    "each of them or some"
                ) from None
        return cls(**values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
