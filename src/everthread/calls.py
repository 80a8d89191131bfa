"""The calls of a thread: what each one sent to the model, made again from the transcript, the store and the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.base import BaseStore, GetOp, Item

from everthread.errors import NotFoundError, SettingsError
from everthread.ledger import events, events_of_turns
from everthread.ledger.events import Compacted, Event, Evicted, Masked, PromptAssembled
from everthread.ledger.recipes import Call, calls_of, is_text
from everthread.pages import render
from everthread.state import namespaces
from everthread.state.marks import MARK, is_masked, marks
from everthread.storage.adoption import state_messages
from everthread.storage.open import Storage
from everthread.storage.reading import reader_of, role_of, unknown, unrecorded
from everthread.storage.transcript import brief, message_of, message_text
from everthread.storage.unreadable import readable
from everthread.window.assembly import message_checksum
from everthread.window.prompt_cache import mark_cache
from everthread.window.tokens import counter_for

_TAGS = {
    "whole": "kept",
    "shortened": "masked",
    "memory": "injected",
    "session_notes": "injected",
    "summary_request": "summary",
    "unanswered": "no result",
}

_TURNS_BACK = 80
"""Turns ahead of a call by which its prompt can be told, as a rule: a recipe tells all of it every 64 messages."""

_CHECKSUM = 8
"""Digits of the checksum in the name of a part."""


@dataclass(frozen=True)
class PromptPart:
    """One message of a prompt, or the place of one that is not there any more."""

    id: str
    """Id of a message of the thread; the name of any other text, which begins with `#`."""
    message: BaseMessage | None
    """As it was sent, but for the marks of a provider's cache; None when it cannot be made again."""
    missing: str = ""
    """Why it cannot."""

    @property
    def form(self) -> str:
        """How the prompt shows it.

        `whole` or `shortened` for a message of the thread, `missing`, or for what Everthread adds: `system`, `memory`,
        `summary_request`, `summary`, `session_notes`, `recalled` or `unanswered`.
        """
        if self.message is None:
            return "missing"
        if not is_text(self.id):
            return "whole"
        if is_masked(self.message):
            return "shortened"
        if isinstance(self.message, SystemMessage):
            return "system"
        return str(marks(self.message).get("kind", "unanswered"))

    @property
    def tag(self) -> str:
        """What people read of its form, such as `kept`, `masked` or `injected`."""
        return _TAGS.get(self.form, self.form)

    @property
    def role(self) -> str:
        """Such as `user`; with the name of a tool, `tool search`; empty when it is missing."""
        if self.message is None:
            return ""
        role = role_of(self.message)
        return f"{role} {self.message.name}" if role == "tool" and self.message.name else role

    @property
    def text(self) -> str:
        """What it says, calls of tools included; empty when it is missing."""
        return "" if self.message is None else message_text(self.message)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        value: dict[str, Any] = {"id": self.id, "form": self.form}
        if self.message is None:
            return {**value, "missing": self.missing}
        data = brief(self.message)["data"]
        kwargs = {name: one for name, one in data.pop("additional_kwargs", {}).items() if name != MARK}
        return {**value, "role": role_of(self.message), **data, **({"additional_kwargs": kwargs} if kwargs else {})}


@dataclass(frozen=True)
class PromptChange:
    """One difference between the prompts of two calls."""

    kind: Literal["came", "left", "changed"]
    before: PromptPart | None
    after: PromptPart | None
    why: str = ""
    """What the ledger says of it; empty when it says nothing."""


@dataclass(frozen=True)
class SentPrompt:
    """What one call of a thread sent to the model."""

    number: int
    """From 1, over all branches of the thread, as far back as its ledger goes; 0 when not all of it was read."""
    name: str
    parent: int | None
    """Number of the call before it on its branch; None for the first one, and when the ledger has lost that one."""
    event: PromptAssembled
    """When it was, with its tokens."""
    model: str
    tools: tuple[str, ...] | None
    """Names of the bound tools, in order; None when they are not known."""
    parts: tuple[PromptPart, ...] | None
    """None when the ledger does not tell what it was made of."""
    messages: tuple[BaseMessage, ...]
    """As they were sent, without what is missing."""
    is_altered: bool
    """Other middlewares added to it or changed it on its way to the model, which is not shown."""
    problems: tuple[str, ...]
    """What could not be made again, and why; empty when all of it is as it was sent."""

    @property
    def is_exact(self) -> bool:
        """Whether nothing is missing."""
        return not self.problems

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        if self.parts is None:
            return render("nothing.html", text=f"Call {self.number}: {'; '.join(self.problems)}")
        return render("prompt.html", sent=self)

    def sizes(self) -> tuple[int | None, ...]:
        """Return the tokens of each part by our own count for the call's model; None for one that is missing."""
        counter = counter_for(self.model)
        return tuple(None if one.message is None else counter.message(one.message) for one in self.parts or ())

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object, each message with all that a provider got of it."""
        parts = zip(self.parts or (), self.sizes(), strict=True)
        return {
            "number": self.number,
            "call": self.name,
            "parent": self.parent,
            "model": self.model,
            "tools": None if self.tools is None else list(self.tools),
            "exact": self.is_exact,
            "altered": self.is_altered,
            "problems": list(self.problems),
            "prompt": self.event.model_dump(mode="json", exclude={"recipe"}),
            "parts": None if self.parts is None else [{**one.as_json(), "tokens": size} for one, size in parts],
        }


def prompt_at(storage: Storage, thread_id: str, call: int | str = -1) -> SentPrompt:
    """Return the prompt of a call, message by message as the model got it.

    It is made from what was kept, also after its messages have left the state, were pruned or are on a branch that was
    left. Nothing is guessed: each message is checked against the checksum that was taken when it was sent, and what is
    erased, changed or lost is named.

    Args:
        call: its number from 1, from the end when it is negative, or its name in the ledger.

    Raises:
        NotFoundError: there is no such thread or call.
        SettingsError: `call` is neither a number nor a name.
    """
    history = _History.read(storage, thread_id)
    return history.sent(history.call(call))


def prompt_in_turn(
    storage: Storage, thread_id: str, call: str, turn: int | None = None
) -> tuple[SentPrompt, SentPrompt | None]:
    """Return the prompt of a call and that of the call before it on its branch, from one reading of the ledger.

    Args:
        turn: its turn. When it is given, no more is read of a long ledger than the call takes, and `number` and
            `parent`, which count from the beginning, are 0 and None.

    Raises:
        NotFoundError: there is no such thread or call.
    """
    if turn is not None and turn > _TURNS_BACK:
        history = _History.read(storage, thread_id, (turn - _TURNS_BACK, turn))
        found = next((one for one in reversed(history.calls) if one.name == call), None)
        sent, before = history.with_parent(found) if found is not None else (None, None)
        if found and sent and found.parts is not None and (before is not None or not found.parent):
            return replace(sent, number=0, parent=None), before and replace(before, number=0, parent=None)
    history = _History.read(storage, thread_id)
    return history.with_parent(history.call(call))


async def aprompt_at(storage: Storage, thread_id: str, call: int | str = -1) -> SentPrompt:
    """Do what `prompt_at` does without blocking the event loop."""
    return await storage.worker.call(prompt_at, storage, thread_id, call)


def sent_prompts(storage: Storage, thread_id: str, *, newest: int | None = None) -> list[SentPrompt]:
    """Return the prompts of the calls that the ledger has, oldest first; see `prompt_at`.

    Args:
        newest: only so many, the newest; None returns all.

    Raises:
        NotFoundError: there is no such thread.
    """
    history = _History.read(storage, thread_id)
    first = 0 if newest is None else max(len(history.calls) - newest, 0)
    return [history.sent(call) for call in history.calls[first:]]


async def asent_prompts(storage: Storage, thread_id: str, *, newest: int | None = None) -> list[SentPrompt]:
    """Do what `sent_prompts` does without blocking the event loop."""
    return await storage.worker.call(lambda: sent_prompts(storage, thread_id, newest=newest))


def prompt_changes(before: SentPrompt, after: SentPrompt, recorded: Iterable[Event] = ()) -> list[PromptChange]:
    """Return what differs between the prompts of two calls, in the order of the later one; what left comes first.

    Args:
        before: as a rule the parent of the later call.
        after: the later call.
        recorded: events of the thread, which say why a message left or was masked.
    """
    old, new = ({_identity(part): part for part in sent.parts or ()} for sent in (before, after))
    reasons = _reasons(recorded, before.event.at, after.event.at)
    left = [PromptChange("left", part, None, reasons.get(name, "")) for name, part in old.items() if name not in new]
    came: list[PromptChange] = []
    for name, part in new.items():
        earlier = old.get(name)
        if earlier is None:
            came.append(PromptChange("came", None, part))
        elif earlier.id != part.id or earlier.form != part.form:
            came.append(PromptChange("changed", earlier, part, reasons.get(name, "")))
    return [*left, *came]


def _identity(part: PromptPart) -> str:
    """Return what a part is in any form: the id of its message; of what Everthread adds, its kind."""
    if part.message is None or not is_text(part.id):
        return part.id
    return str(part.message.id or part.form)


def _reasons(recorded: Iterable[Event], after: str, until: str) -> dict[str, str]:
    """Return why messages left or were masked between two times, by their ids."""
    reasons: dict[str, str] = {}
    for event in recorded:
        if not after <= event.at <= until:
            continue
        if isinstance(event, Evicted):
            reasons |= dict.fromkeys(event.message_ids, f"evicted: {event.reason}")
        elif isinstance(event, Compacted):
            reasons |= dict.fromkeys(event.message_ids, f"folded into summary {event.version}: {event.reason}")
        elif isinstance(event, Masked):
            reasons[event.message_id] = f"masked: {event.reason}"
    return reasons


@dataclass(frozen=True)
class _History:
    """The calls of a thread, and where their messages are."""

    thread_id: str
    calls: Sequence[Call]
    working_set: Mapping[str, BaseMessage]
    store: BaseStore

    @classmethod
    def read(cls, storage: Storage, thread_id: str, turns: tuple[int, int] | None = None) -> "_History":
        # Runs take an id of any type, such as a UUID, by its text.
        thread_id = str(thread_id)
        # The store of a run may be asked from any thread; so is the checkpointer.
        recorded: Sequence[Event] = (
            events_of_turns(storage.store, thread_id, *turns) if turns else events(storage.store, thread_id)
        )
        if not recorded and storage.store.get(namespaces.SESSIONS, thread_id) is None:
            raise unknown(thread_id) if reader_of(storage).is_ours(thread_id) else unrecorded(thread_id)
        working_set = {str(message.id): message for message in state_messages(storage, thread_id)}
        return cls(thread_id, calls_of(recorded), working_set, storage.store)

    def call(self, wanted: int | str) -> Call:
        """Return a call by number or name."""
        if not isinstance(wanted, str | int):
            raise SettingsError(f"a call is its number or its name in the ledger, got {wanted!r}")
        if isinstance(wanted, str):
            found = next((call for call in reversed(self.calls) if call.name == wanted), None)
        else:
            place = wanted - 1 if wanted > 0 else len(self.calls) + wanted
            found = self.calls[place] if wanted and 0 <= place < len(self.calls) else None
        if not self.calls:
            raise NotFoundError(
                f"the ledger of thread {self.thread_id!r} has no calls: none was made yet, or none is kept any more"
            )
        if found is None:
            raise NotFoundError(
                f"thread {self.thread_id!r} has no call {wanted!r}; its ledger has 1 to {len(self.calls):,}"
            )
        return found

    def with_parent(self, call: Call) -> tuple[SentPrompt, SentPrompt | None]:
        """Make the prompt of a call again, and that of the call before it."""
        sent = self.sent(call)
        return sent, None if sent.parent is None else self.sent(self.call(sent.parent))

    def sent(self, call: Call) -> SentPrompt:
        """Make the prompt of a call again."""
        earlier = (self.calls[place] for place in range(call.number - 2, -1, -1) if call.parent)
        parent = next((one.number for one in earlier if one.name == call.parent), None)
        problems = (call.problem,) if call.problem else ()
        is_altered = call.event.recipe is not None and call.event.recipe.get("altered", False)
        sent = SentPrompt(call.number, call.name, parent, call.event, call.model, None, None, (), is_altered, problems)
        if call.parts is None:
            return sent
        records = self._records([*call.parts, call.tools])
        parts = tuple(self._part(name, records) for name in call.parts)
        messages = [part.message for part in parts if part.message is not None]
        missing = [f"{part.id}: {part.missing}" for part in parts if part.missing]
        tools = records[call.tools].value.get("tools") if call.tools in records else None
        if tools is None:
            missing.append("the names of its tools are not kept any more")
        return replace(
            sent,
            tools=None if tools is None else tuple(map(str, tools)),
            parts=parts,
            messages=tuple(mark_cache(messages, slots=call.marks) if call.marks else messages),
            problems=tuple(missing),
        )

    def _records(self, names: Sequence[str]) -> dict[str, Item]:
        """Return what the store has of the parts of a prompt, by name; what the transcript has, by the message's id."""
        prompts, transcript = namespaces.prompts(self.thread_id), namespaces.transcript(self.thread_id)
        ids = [name[_CHECKSUM:] for name in names if not is_text(name)]
        reads = [*(GetOp(prompts, name) for name in names), *(GetOp(transcript, name) for name in ids)]
        found: list[Any] = self.store.batch(reads) if reads else []
        return {item.key: item for item in found if item is not None}

    def _part(self, name: str, records: Mapping[str, Item]) -> PromptPart:
        if is_text(name):
            record = records.get(name)
            if record is None:
                return PromptPart(name, None, "not kept any more")
            if "erased" in record.value:
                return PromptPart(name, None, f"erased on {str(record.value['erased'])[:10]}")
            read = list(readable([record], message_of))
            return PromptPart(name, read[0]) if read else PromptPart(name, None, "its record cannot be read")
        checksum, message_id = name[:_CHECKSUM], name[_CHECKSUM:]
        stored = (records[key] for key in (name, message_id) if key in records)
        candidates = list(readable(stored, message_of))
        if message_id in self.working_set:
            candidates.append(self.working_set[message_id])
        for message in candidates:
            if message_checksum(message).hex() == checksum:
                return PromptPart(message_id, message)
        why = "its words were changed since" if candidates else "it left the state and is not in the transcript"
        return PromptPart(message_id, None, why)
