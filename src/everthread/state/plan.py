"""What the prompts of one turn are made of, beside the messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.messages import HumanMessage, SystemMessage

from everthread.state.context import Context
from everthread.state.notes import Note
from everthread.state.steering import Quote
from everthread.state.summary import Summary


@dataclass(frozen=True)
class PromptPlan:
    """Made once per turn by `inject_memory` and read by every other node and edge.

    It lives in an `UntrackedValue`, so no checkpoint has it: after a resume `NodeRun.plan` makes it again.
    """

    context: Context
    """Dials of the run."""
    today: str
    """ISO date, so that a model can read `next month`."""
    system: SystemMessage
    """Head of the prompt: instructions, memory policy, date, profile, long-term notes."""
    memory: HumanMessage | None = None
    """What else is in the head when the system message is somebody else's: all of the above but the instructions."""
    profile: str = ""
    """Rendered profile; empty when there is none."""
    notes_block: str = ""
    """Rendered long-term notes; empty when there are none."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Tokens of the head: system, profile, notes; `system` has all that the other two have not."""
    notes: tuple[Note, ...] = ()
    """Long-term notes in the head."""
    asked_notes: tuple[Note, ...] = ()
    """Long-term notes that did not fit the head and that the current message brings; shown with what was recalled."""
    session_notes: tuple[Note, ...] = ()
    """Active session notes, oldest first; shown only while their source turn is out of the working set."""
    summary: Summary | None = None
    summary_text: str = ""
    """The summary as the prompt shows it."""
    pins: tuple[str, ...] = ()
    """Sentences that must be in the prompt, word for word."""
    quotes: tuple[Quote, ...] = ()
    """Messages that must be in the prompt: pinned by a person."""
    kept_texts: set[str] = field(default_factory=set, compare=False)
    """Names of texts of this turn's prompts that the store was found to have; it grows with every call."""
