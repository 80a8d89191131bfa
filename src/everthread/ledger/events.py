"""Events: what was decided, as typed values.

Events hold ids, counts and reasons, never the text of a message or of a note.
"""

from typing import Annotated, Any, Literal, Required

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict


class Recipe(TypedDict, total=False):
    """What a prompt is made of, told from the prompt of its parent call; see `ledger.recipes`.

    A part is named by eight digits of its checksum and its message id, or by `#` and the digest of a text that the
    transcript does not have.
    """

    call: Required[str]
    """Name of the call in its thread."""
    parent: str
    """Name of the call that was answered before on this branch; none for the first call."""
    adds: list[str]
    """Parts that stand behind those of the parent; missing in a recipe that `shows` all."""
    shows: list[str]
    """All parts, in order: where the parent's prompt changed ahead of its end, and every now and then."""
    tools: str
    """Text with the names of the bound tools; with `shows` only, like what follows."""
    model: str
    altered: bool
    """Other middlewares added to the prompt or changed it on its way to the model; missing when none did."""
    marks: int
    """Marks for the provider's cache that the prompt might have; none for a prompt without."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at: str = ""
    """Time of the decision, ISO 8601 in UTC; set when the event is recorded."""
    turn: int = 0
    """User turns of the thread so far."""
    thread_id: str = ""
    """Whose ledger it is in; set when the event is recorded."""


class _ByHand(_Event):
    """An event that a person can be behind."""

    actor: str = ""
    """Who asked for it, as a user id; empty when nobody did."""


class PromptAssembled(_Event):
    """A prompt was built and is about to be sent."""

    event: Literal["prompt_assembled"] = "prompt_assembled"
    window: int
    """Input limit of the model in tokens."""
    budget: int
    """Tokens for the history."""
    tokens: int
    """Tokens of the whole prompt, tool schemas included."""
    breakdown: dict[str, int]
    """Tokens by category: system, profile, notes, summary, session_notes, recalled, tools, history,
    reply_reserve, safety, free. They add up to `window`."""
    cacheable_tokens: int
    """Tokens at the head that are the same as in the thread's previous prompt."""
    accuracy: Literal["exact", "anchored", "estimated"]
    messages: int
    head_moved: str = ""
    """Why the head is not the same as in the previous prompt; empty when it is."""
    attempt: int = 0
    """Refusals of this prompt so far."""
    recipe: Recipe | None = None
    """What it is made of; None in events of older versions."""
    watermarks: tuple[int, int] | None = None
    """Tokens of the history down to which evictions go, and above which they begin; None in older events."""


class Evicted(_Event):
    """Messages left the working set; the transcript has them."""

    event: Literal["evicted"] = "evicted"
    policy: str
    reason: str
    message_ids: list[str]
    tokens_before: int
    """Of the messages of the working set; summary and session notes count against the watermark as well."""
    tokens_after: int
    budget: int
    """Tokens that the history may take."""


class Masked(_ByHand):
    """A message of the working set keeps a few words and a handle; the transcript has the full text."""

    event: Literal["masked"] = "masked"
    reason: str
    message_id: str
    handle: str
    tokens_before: int
    tokens_after: int
    budget: int = 0
    """Tokens that the history may take; 0 in events of older versions."""


class Offloaded(_Event):
    """A tool result was over its limit when it came: the working set never had more than head, tail and a handle."""

    event: Literal["offloaded"] = "offloaded"
    reason: str
    message_id: str
    handle: str
    tokens_before: int
    tokens_after: int
    limit: int
    """The dial `tool_output_tokens`."""


class Compacted(_Event):
    """A span became part of the summary."""

    event: Literal["compacted"] = "compacted"
    reason: str
    message_ids: list[str]
    tokens_before: int
    """Of the messages of the working set; summary and session notes count against the watermark as well."""
    tokens_after: int
    summary_tokens: int
    version: int
    writer: str
    budget: int = 0
    """Tokens that the history may take; 0 in events of older versions."""
    rules_left_out: int = 0
    """The user's own rules that the summary has had no room for, in all."""


class Injected(_Event):
    """Memory was resolved for the prompt."""

    event: Literal["injected"] = "injected"
    changed: bool = False
    """False when the rendered blocks are the same as in the last run."""
    profile: bool = False
    note_ids: list[str] = []
    """Long-term notes in the block at the head of the prompt."""
    asked_note_ids: list[str] = []
    """Long-term notes that did not fit there and stand ahead of the question that brought them."""
    session_note_ids: list[str] = []
    tokens: int = 0
    """Of profile and the block at the head."""


class Recalled(_ByHand):
    """Archived messages were picked for the current question, or because the model or a person asked for them."""

    event: Literal["recalled"] = "recalled"
    by: Literal["question", "tool", "hand"] = "question"
    message_ids: list[str]
    """In the order of the conversation; of messages of other threads the thread and the place."""
    threads: list[str] = []
    """The other threads of the user that messages are from."""
    scores: list[float] = []
    """Relevance of each; only the order means something."""
    tokens: int
    """Of the block in the prompt, or of the tool's result."""
    searched: int
    """Messages that the search found."""


class NoteSaved(_Event):
    """A session note was written."""

    event: Literal["note_saved"] = "note_saved"
    note_id: str
    scope: str
    kind: str
    by: Literal["tool", "turn", "session"]
    message_ids: list[str]
    guard: Literal["rules", "model"] = "rules"
    """Who allowed it: the rules, or the rules and a model."""


class NoteBlocked(_Event):
    """The guard refused a note; its text is nowhere in the event."""

    event: Literal["note_blocked"] = "note_blocked"
    category: str
    """`unreadable` when nobody could judge it."""
    rule: str
    """Name of the rule; of a note that a model did not judge, why."""
    message_ids: list[str]
    guard: Literal["rules", "model"] = "rules"
    """Who refused it: the rules, or a model after them."""

    @property
    def is_unjudged(self) -> bool:
        """Tell whether it was refused because the model that was asked about it gave no answer."""
        return self.guard == "model" and self.category == "unreadable"


class NoteOverruled(_Event):
    """The user has just said otherwise than these notes; the notes stay, and the user wins for now."""

    event: Literal["note_overruled"] = "note_overruled"
    note_ids: list[str]
    message_id: str


class Consolidated(_Event):
    """Session notes became long-term notes or were dropped."""

    event: Literal["consolidated"] = "consolidated"
    added: list[str] = []
    merged: list[str] = []
    superseded: list[str] = []
    dropped: dict[str, str] = {}
    """Note id to reason."""
    expired: dict[str, str] = {}
    """Note id to reason; these notes are deleted."""
    marked: list[tuple[str, str]] = []
    """Pairs of notes that may contradict each other; both stay."""
    kept: dict[str, str] = {}
    """Session note id to why it is a session note still."""
    planner: str


class NoteMerged(_Event):
    """A note says what another one says, and confirms it."""

    event: Literal["note_merged"] = "note_merged"
    note_id: str
    into: str


class NoteSuperseded(_Event):
    """A note was replaced by another one about the same subject; it stays as history."""

    event: Literal["note_superseded"] = "note_superseded"
    note_id: str
    by: str


class NotePromoted(_Event):
    """A note became a field of the profile, or the field was taken back."""

    event: Literal["note_promoted"] = "note_promoted"
    note_id: str
    field: str
    taken_back: bool = False


class NoteExpired(_Event):
    """A note came to its end and was deleted."""

    event: Literal["note_expired"] = "note_expired"
    note_id: str
    reason: str


class NoteChanged(_ByHand):
    """A person changed a note by hand."""

    event: Literal["note_changed"] = "note_changed"
    note_id: str
    action: Literal["edit", "confirm", "retract", "forget"]
    dependents: list[str] = []
    """What rests on the same words and has to be looked at: note ids, and `summary VERSION` of this thread."""


class Steered(_ByHand):
    """A person asked for something about the prompts of this thread."""

    event: Literal["steered"] = "steered"
    action: Literal["bring_back", "pin", "mask", "withdraw", "fork", "compact", "end"]
    """`withdraw` takes back one of the first three, such as a pin."""
    message_ids: list[str] = []
    steer_id: str = ""
    """Of what was asked for, which `withdraw` names."""
    call: str = ""
    """The call that a fork goes on from."""
    left_call: str = ""
    """The newest call of the branch that a fork leaves; forking from it goes back."""


class Erased(_Event):
    """Notes that this thread had in its prompt are gone for good, with a thread that was erased."""

    event: Literal["erased"] = "erased"
    note_ids: list[str] = []
    """Deleted: they came from the erased thread alone."""
    kept_ids: list[str] = []
    """Notes that were said elsewhere too and lost these sources."""


class Migrated(_Event):
    """The agent has another state schema than the one that ran this thread last."""

    event: Literal["migrated"] = "migrated"
    from_version: int
    """How many of the agent's migrations the state had been through."""
    to_version: int
    kept: list[str] = []
    """State keys that the agent no longer has; their values are kept in the store."""
    restored: list[str] = []
    """Keys that it has again, with the values that were kept."""


class Refetch(_Event):
    """Something was needed again after it had left the prompt: a sign that it should have stayed."""

    event: Literal["regret"] = "regret"
    why: Literal["repeated_call", "read_back", "recall", "restated"]
    message_ids: list[str]
    """What was needed again; for a restatement of something blocked, the message that said it first."""
    left: Literal["evicted", "masked", "offloaded", "blocked"]
    """How it had left."""
    left_turn: int = 0
    """Turn in which it left; 0 when that is not known any more."""
    by: str = ""
    """Id of the message or call that needed it."""


class MemoryFull(_Event):
    """There was no room for these notes; they stay session notes."""

    event: Literal["memory_full"] = "memory_full"
    note_ids: list[str]
    limit: int
    """Active long-term notes that a user may have."""


class Deferred(_Event):
    """A compaction was priced and postponed: it would cost more than it saves, and there is room to wait."""

    event: Literal["deferred"] = "deferred"
    tokens: int
    saved: int
    reread: int
    calls: int


class PinRepaired(_Event):
    """A pinned sentence was no longer in view and was put back."""

    event: Literal["pin_repaired"] = "pin_repaired"
    pins: int


class Overflow(_Event):
    """The provider refused a prompt as too long; the next one is smaller."""

    event: Literal["overflow"] = "overflow"
    attempt: int
    tokens: int
    budget: int
    next_budget: int


class ModelCalled(_Event):
    """A call of a model was answered and counted; only with `Spend`."""

    event: Literal["model_called"] = "model_called"
    purpose: str
    """`reply`, or the step behind it, such as `summarize`."""
    model: str
    input: int
    """Tokens of input that were neither read from the provider's cache nor written to it."""
    cached: int
    cache_write: int
    output: int
    """Tokens of output without reasoning."""
    reasoning: int
    by: Literal["provider", "count"]
    """Who counted the tokens: the provider, or we, where it reports nothing."""
    cost: float | None
    """None when the model has no price."""
    currency: str = "USD"
    call: str = ""
    """Name of its prompt, as the recipe of `prompt_assembled` has it; empty for a call behind the reply."""
    response: str = ""
    """Id that the provider gave its reply, to compare with the provider's own records."""


class SpendRefused(_Event):
    """A call of a model was not made, since it would have passed a limit or somebody said no."""

    event: Literal["spend_refused"] = "spend_refused"
    purpose: str
    model: str
    by: Literal["limit", "user", "price"]
    """`limit`: nobody was asked; `user`: the answer was no; `price`: the model has none."""
    reason: str
    most: float
    """What the call would have cost at the most."""


class SpendGranted(_Event):
    """Somebody raised a limit."""

    event: Literal["spend_granted"] = "spend_granted"
    amounts: dict[str, float]
    """What was added, by limit."""
    currency: str = "USD"


class FallbackUsed(_Event):
    """A step failed and a rule took over; nothing was lost."""

    event: Literal["fallback_used"] = "fallback_used"
    step: str
    reason: str
    used: str


Event = Annotated[
    PromptAssembled
    | Evicted
    | Masked
    | Offloaded
    | Compacted
    | Injected
    | Recalled
    | NoteSaved
    | NoteBlocked
    | NoteOverruled
    | Consolidated
    | NoteMerged
    | NoteSuperseded
    | NotePromoted
    | NoteExpired
    | NoteChanged
    | Steered
    | Erased
    | Migrated
    | Refetch
    | MemoryFull
    | Deferred
    | PinRepaired
    | Overflow
    | ModelCalled
    | SpendRefused
    | SpendGranted
    | FallbackUsed,
    Field(discriminator="event"),
]
"""Any event."""

EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads events from JSON and gives their JSON Schema."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of an event: one of all kinds, told apart by `event`."""
    return EVENTS.json_schema()
