"""What makes one agent differ from another: words, tools, profile schema and summary sections."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


@dataclass(frozen=True)
class Agent:
    """An agent as data; write your own, or change one with `dataclasses.replace(travel, tools=[…])`."""

    name: str
    """Short lowercase name, such as `travel`; the CLI and the LangGraph server call it by this."""

    title: str
    """What people read, such as `Travel concierge`."""

    instructions: str
    """System prompt: role and rules of conduct. The memory policy is added by the graph."""

    tools: Sequence["BaseTool"] = field(default_factory=tuple)
    """Tools bound to the model, memory tools included."""

    profile: type[BaseModel] | None = None
    """Schema of the user's structured profile; None accepts any mapping."""

    summary_sections: tuple[str, ...] = ("Goal", "Decisions", "Facts", "Open questions", "Next step")
    """Headings of the rolling summary, in order."""

    rules: Sequence[str | Path] = ()
    """YAML files with rules of one's own, added to the built-in ones; docs/memory.md has the format."""
