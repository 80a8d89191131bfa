"""What a person asked for of the prompts to come: a message back, a tool result masked, something pinned."""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from everthread.state.records import StoredItem


class Quote(NamedTuple):
    """A pinned message as a prompt shows it."""

    text: str
    speaker: str
    date: str
    """ISO day; empty when unknown."""

    @property
    def line(self) -> str:
        """Who said it, when, and what."""
        return f"{self.speaker}{f', {self.date}' if self.date else ''}: {self.text}"


@dataclass(frozen=True)
class Steering:
    """One thing that a person asked for."""

    id: str
    action: Literal["bring_back", "mask", "pin"]
    message_id: str = ""
    """What it is about; empty for a pinned sentence."""
    text: str = ""
    """What is pinned."""
    speaker: str = ""
    """Whose message is pinned, such as `assistant`."""
    date: str = ""
    actor: str = ""
    """Who asked for it, as a user id."""
    at: str = ""
    question: str = ""
    """Id of the question with which it was done; empty while it waits for one, and for what is pinned."""

    @property
    def is_waiting(self) -> bool:
        """Whether it is done with the next question."""
        return self.action != "pin" and not self.question

    def value(self) -> dict[str, Any]:
        """Return it as JSON for the store."""
        return {name: one for name, one in asdict(self).items() if one and name != "id"}


def steer_id(action: str, subject: str) -> str:
    """Derive an id from what is asked for, so that asking twice is asking once."""
    return "s-" + hashlib.sha256(f"{action}\x00{subject}".encode("utf-8", "replace")).hexdigest()[:16]


def steering_of(items: Iterable[StoredItem]) -> list[Steering]:
    """Read records, the oldest first; what another version wrote and this one cannot read is left out."""
    known = Steering.__dataclass_fields__.keys() - {"id"}
    read = [Steering(one.key, **one.value) for one in items if one.value.keys() <= known and "action" in one.value]
    return sorted(read, key=lambda one: (one.at, one.id))
