"""The shapes of what the API takes and returns; the OpenAPI document is made from them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from everthread.state import Note, namespaces, steering

_MOST = 200

ThreadStatus = Literal["idle", "running", "interrupted", "unfinished"]
RunStatus = Literal["running", "interrupted", "unfinished", "done"]

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Words = Annotated[str, StringConstraints(pattern=r"\S")]
"""Kept as they were written, such as code that begins with blanks."""
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=_MOST)]
Document = dict[str, Any]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class _Response(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class ProblemDetails(_Response):
    """What went wrong, RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    """One sentence."""


class Health(_Response):
    """Whether the server works."""

    status: Literal["ok"]


class Me(_Response):
    """Who the caller is."""

    user_id: str
    method: Literal["key", "token", "local"]


class NewThread(_Request):
    """A thread to create."""

    agent: Identifier | None = None
    """Who answers in it; the server's first agent when left out."""


class Interrupt(_Response):
    """What a run asks before it goes on."""

    id: str
    """Of the answer in `resume`."""
    value: Any
    """What it asks, as the agent put it."""


class ThreadSummary(_Response):
    """A thread in a list."""

    id: str
    agent: str
    turns: int
    first_message: str
    """Its beginning."""
    began: str
    last_activity: str
    session: Literal["open", "ended"]
    status: ThreadStatus
    """`interrupted`: it waits for answers; `unfinished`: its last message has none, and no run goes on."""


class Thread(ThreadSummary):
    """A thread and its state."""

    run_id: str | None
    """The newest run."""
    interrupts: list[Interrupt]
    """In the order of their calls."""


class ThreadPage(_Response):
    """Threads of the caller, the latest activity first."""

    threads: list[ThreadSummary]
    total: int


class PageQuery(_Request):
    """Which part of a list."""

    limit: int = Field(50, ge=1, le=_MOST)
    offset: int = Field(0, ge=0)


class ToolCall(_Response):
    """A call of a tool."""

    id: str | None
    name: str
    args: Document


class Message(_Response):
    """A message of the transcript, in full."""

    id: str
    role: str
    """`user`, `assistant`, `tool` or `system`."""
    content: str
    at: str | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None
    name: str | None = None
    status: str | None = None
    attachments: list[str] = []
    in_prompt: bool
    """Whether the next prompt is made from it, in full or masked."""
    masked: bool


class MessageQuery(_Request):
    """Which messages."""

    limit: int = Field(50, ge=1, le=_MOST)
    before: Identifier | None = None
    """Id of a message: those ahead of it; the newest when left out."""


class MessagePage(_Response):
    """Messages, oldest first."""

    messages: list[Message]
    total: int
    """Messages of the thread, without those of other branches."""
    before: str | None
    """For the page ahead of this one; none when there is none."""


class _RunRequest(_Request):
    context: Document = {}
    """Dials of this run, such as `window`; what the deployment has fixed cannot be set."""
    stream: bool = False
    """Answer with server-sent events."""
    background: bool = False
    """Answer with status 202 as soon as the run has begun."""

    @model_validator(mode="after")
    def _is_one_way(self) -> "_RunRequest":
        if self.stream and self.background:
            raise ValueError("`stream` and `background` exclude each other")
        if "user_id" in self.context:
            raise ValueError("`context` cannot name a user: the key or token of the request does")
        return self


class NewRun(_RunRequest):
    """A message to answer."""

    message: Words | list[Document] = Field(min_length=1)
    """A text, or content blocks as LangChain has them."""
    message_id: Identifier | None = None
    """Of your choice, and the id of the run: sent again, it gets the answer that it has."""

    @model_validator(mode="after")
    def _is_storable(self) -> "NewRun":
        if self.message_id is not None:
            namespaces.checked("message_id", self.message_id)
        return self


class Answers(_RunRequest):
    """Answers to what a run asks."""

    answers: Document = {}
    """By id of the interrupt; left out, a turn that was cut off goes on."""


class Run(_Response):
    """A message and what became of it."""

    id: str
    """That of the message."""
    thread_id: str
    status: RunStatus
    """`interrupted`: it waits for answers; `unfinished`: it was cut off, and `resume` goes on with it."""
    reply: str | None
    reply_id: str | None
    interrupts: list[Interrupt]


class NoteText(_Request):
    """New words for a note."""

    text: Text


class NewNote(NoteText):
    """A note in the user's own words, to be kept for good."""


class SessionNote(_Response):
    """A note of one thread's session."""

    thread_id: str
    note: Note


class NoteList(_Response):
    """What is remembered about the caller."""

    long_term: list[Note]
    session: list[SessionNote]


class NoteChange(_Response):
    """What a correction did."""

    action: str
    notes: list[Note]
    """Those that changed, as they are now."""
    profile_field: str | None
    """Field of the profile that was taken back."""


class NewSteering(_Request):
    """What the prompts to come are to have."""

    action: Literal["bring_back", "mask", "pin"]
    """`mask` takes a tool result."""
    message_id: Identifier | None = None
    """What it is about; left out, `text` is pinned."""
    text: Text | None = None
    """A sentence to pin, in the user's own words."""

    @model_validator(mode="after")
    def _is_about_one(self) -> "NewSteering":
        if (self.message_id is None) == (self.text is None) or (self.text is not None and self.action != "pin"):
            raise ValueError("name a message with `message_id`, or a sentence to pin with `text`")
        return self


class Steering(_Response):
    """One thing that was asked for."""

    id: str
    """To take it back with."""
    action: Literal["bring_back", "mask", "pin"]
    message_id: str | None
    text: str | None
    """What is pinned."""
    at: str

    @classmethod
    def of(cls, asked: steering.Steering) -> "Steering":
        """Return it as a response."""
        names = {"message_id": asked.message_id or None, "text": asked.text or None}
        return cls(id=asked.id, action=asked.action, at=asked.at, **names)


class SteeringList(_Response):
    """What is pinned, and what waits for the next message."""

    steering: list[Steering]


class NewFork(_Request):
    """Where to go on from."""

    call: int | Identifier
    """Its number from 1, from the end when negative, or its name in the ledger."""


class Fork(_Response):
    """A branch that a thread goes on with."""

    thread_id: str
    call: str
    """The call that is made again, or answered otherwise."""
    left_call: str
    """The newest call of the branch that was left; a fork from it comes close to going back."""


class WhyQuery(_Request):
    """What to explain."""

    q: Text
    """Words as they were said, an id of a message or note, or a handle."""


class LedgerQuery(_Request):
    """Which events."""

    kind: str | None = None
    limit: int = Field(50, ge=1, le=1000)
    offset: int = Field(0, ge=0)
    """From the newest."""


class LedgerPage(_Response):
    """Events of a thread, oldest first."""

    events: list[Document]
    total: int


class Context(_Response):
    """What fills the prompt of a thread."""

    prompt: Document | None
    """The newest `prompt_assembled` event: window, budget, tokens by category; none before the first call."""
    messages: list[Message]
    """The working set, from which the next prompt is made, oldest first, with the full text of masked ones."""
    summary: Document | None
    session_notes: list[Note]


class ConfirmForget(_Request):
    """Leave to erase everything of the caller."""

    confirm: str
    """The caller's user id."""
