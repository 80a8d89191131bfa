"""What a thread keeps between super-steps, what callers send, and what nodes return."""

from typing import Annotated, Any, cast

from langgraph.channels import UntrackedValue
from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from everthread.state.messages import Messages, reduce_messages
from everthread.state.plan import PromptPlan


class Conversation(TypedDict, total=False):
    """What nodes of a user's own read of the state: extend it with keys of your own."""

    messages: Messages
    """The bounded working set, not the whole transcript."""


class _Keys(TypedDict, total=False):
    """The keys that are the same in the state and in updates."""

    summary_id: str | None
    """Name of the current summary in the store."""
    summary: Annotated[dict[str, Any] | None, UntrackedValue]
    """The current summary as JSON, read from the store in every run and never written to a checkpoint."""
    end_session: bool
    overflows: int
    """How often the provider refused the current prompt as too long."""
    ceiling: int | None
    """Tokens that the history may take after an overflow; None when there was none in this turn."""
    turns: int
    """User turns so far."""
    prefix: bytes
    """Four bytes per message of the last prompt, to measure what a provider could have cached."""
    call: str
    """Name of the call that `prefix` is of, which the recipe of the next prompt names as its parent."""
    reads_back: bool
    """A handle was shown in this thread, so `read_tool_output` is bound."""
    moved: str
    """Why the head of the next prompt will differ from the last one: what trim, summarize or memory changed."""
    calibration: dict[str, Any] | None
    """What the provider's reports taught about our counts, and for which model."""
    memory_digest: str
    """Digest of the rendered memory of the last run, to tell whether the prompt's head moved."""
    working_set: dict[str, Any] | None
    """Inside another graph, whose messages stay as they are: our own; see `nodes.nested`."""
    plan: Annotated[PromptPlan, UntrackedValue]
    """What the prompts of this turn are made of; made anew in every run and never written to a checkpoint."""


class State(Conversation, _Keys, total=False):
    """The state of one thread."""


class Update(_Keys, total=False):
    """The keys that a node changed."""

    messages: list[Any]
    """Writes to the working set, removals among them; see `reduce_messages`."""
    structured_response: Any
    """Answer of the turn as data, in a graph with `response_format`."""


@with_config(ConfigDict(title="Input", use_attribute_docstrings=True))
class Input(TypedDict, total=False):
    """What a caller sends: a message, the end of the session, or both."""

    messages: Annotated[
        Messages, Field(default=[], title="Messages", description="New messages of the user, usually one.")
    ]
    end_session: Annotated[
        bool,
        Field(
            default=False,
            title="End session",
            description="Consolidate the session notes after this message, or at once when there is none.",
        ),
    ]


@with_config(ConfigDict(title="Output"))
class Output(TypedDict, total=False):
    """What a run returns."""

    messages: Annotated[
        Messages,
        Field(default=[], title="Messages", description="The working set: messages still in the thread's state."),
    ]
    summary: Annotated[
        dict[str, Any] | None,
        UntrackedValue,
        Field(default=None, title="Summary", description="Summary of what left the working set, if anything did."),
    ]
    turns: Annotated[int, Field(default=0, title="Turns", description="User turns of the thread so far.")]


def state_after(state: State, update: Update) -> State:
    """Return the state that an update leads to, for those who run several nodes in one step."""
    messages = reduce_messages(state.get("messages", []), [update.get("messages", [])])
    after: Any = {**state, **update, "messages": messages}
    return cast(State, after)
