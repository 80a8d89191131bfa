"""What makes one agent differ from another: words, tools, profile schema and summary sections."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from everthread.errors import SettingsError
from everthread.state.retention import Retention
from everthread.state.spend import Spend

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


OTHERS = "agent"
"""Name of an agent of somebody else, which has our middleware."""

_BROUGHT = ("read_tool_output", "recall_history")
"""Tools that the graph adds to every agent's own."""


@dataclass(frozen=True)
class Agent:
    """An agent as data; write your own, or change one with `dataclasses.replace(travel, tools=[…])`.

    Raises:
        SettingsError: a field has the wrong type or a value that cannot work; the message names the field.
    """

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

    migrations: Sequence[Callable[[dict[str, Any]], dict[str, Any]]] = ()
    """How an older state becomes today's: each takes all state keys of your own from version n to n + 1."""

    renamed_tools: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Tools of earlier versions by name, and what they are called now: their open calls and approvals go on."""

    retention: Retention | None = None
    """What is kept of this agent's threads for how long, in place of the storage's policy; None: what that one says."""

    spend: Spend | None = None
    """Counts what calls cost, and the limits at which a run asks; None counts nothing."""

    def __post_init__(self) -> None:
        if self.spend is not None and not isinstance(self.spend, Spend):
            raise SettingsError(f"`spend` of an agent must be a `Spend`, got {self.spend!r}")
        for name in ("name", "title", "instructions"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise SettingsError(f"`{name}` of an agent must be a non-empty text, got {value!r}")
        for name in ("tools", "summary_sections", "rules", "migrations"):
            value = getattr(self, name)
            if isinstance(value, str | bytes) or not isinstance(value, Sequence):
                raise SettingsError(f"`{name}` of an agent must be a list, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        self._check_tools()
        self._check_summary_sections()
        if self.profile is not None and not (isinstance(self.profile, type) and issubclass(self.profile, BaseModel)):
            raise SettingsError(f"`profile` of an agent must be a class of pydantic's BaseModel, got {self.profile!r}")
        self._check_history()
        if self.retention is not None and not isinstance(self.retention, Retention):
            raise SettingsError(f"`retention` of an agent must be a Retention, got {self.retention!r}")
        for rule in self.rules:
            if not isinstance(rule, str | Path):
                raise SettingsError(f"`rules` of an agent takes paths of YAML files, got {rule!r}")
            if not Path(rule).is_file():
                raise SettingsError(f"`rules` of an agent names {str(rule)!r}, which is no file")

    def _check_tools(self) -> None:
        if not self.tools:
            return
        # Taken when called: an agent without tools needs no LangChain to be made.
        from langchain_core.tools import BaseTool

        for tool in self.tools:
            if not isinstance(tool, BaseTool):
                hint = "; decorate the function with `langchain_core.tools.tool`" if callable(tool) else ""
                raise SettingsError(f"`tools` of an agent takes tools of LangChain, got {tool!r}{hint}")
        names = [tool.name for tool in self.tools]
        if double := next((name for name, count in Counter(names).items() if count > 1), None):
            raise SettingsError(
                f"`tools` of an agent has two tools called {double!r}; a model tells them by their names"
            )
        if brought := next((name for name in names if name in _BROUGHT), None):
            raise SettingsError(f"`tools` of an agent has {brought!r}, which the graph brings; leave it out")

    def _check_history(self) -> None:
        for migration in self.migrations:
            if not callable(migration):
                raise SettingsError(f"`migrations` of an agent takes functions over its state, got {migration!r}")
        if not isinstance(self.renamed_tools, Mapping):
            raise SettingsError(f"`renamed_tools` of an agent maps old names to new ones, got {self.renamed_tools!r}")
        names = {tool.name for tool in self.tools}
        for old, new in self.renamed_tools.items():
            if new not in names or old in names:
                reason = f"has a tool {old!r} still" if old in names else f"has no tool {new!r}"
                raise SettingsError(f"`renamed_tools` says that {old!r} is called {new!r} now, and the agent {reason}")

    def _check_summary_sections(self) -> None:
        if not self.summary_sections:
            raise SettingsError("`summary_sections` of an agent is empty; leave it out for the usual headings")
        for section in self.summary_sections:
            if not isinstance(section, str) or not section.strip() or "\n" in section:
                raise SettingsError(f"`summary_sections` of an agent takes headings of one line, got {section!r}")
        folded = Counter(section.strip().casefold() for section in self.summary_sections)
        if double := next((name for name, count in folded.items() if count > 1), None):
            raise SettingsError(f"`summary_sections` of an agent has {double!r} twice")
