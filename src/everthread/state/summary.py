"""The rolling summary of what left the working set."""

from pydantic import BaseModel, ConfigDict


class SummaryEntry(BaseModel):
    """One bullet of the summary and the messages it rests on."""

    model_config = ConfigDict(frozen=True)

    section: str
    text: str
    sources: tuple[str, ...] = ()
    """Ids of the messages it came from."""


class Summary(BaseModel):
    """The state of the conversation up to a message, in the agent's sections.

    `text` is what a model wrote when it did not keep to the sections; entries then are empty.
    """

    model_config = ConfigDict(frozen=True)

    entries: tuple[SummaryEntry, ...] = ()
    text: str = ""
    covers: int = 0
    """Messages folded in so far."""
    last_message_id: str | None = None
    """Newest message folded in."""
    version: int = 0
    """Counts compactions of the thread, from 1."""
    writer: str = "extractive"
    """`model` or `extractive`."""
