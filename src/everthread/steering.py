"""Steer the prompts to come by hand: bring a message back, mask a tool result, pin a sentence or a message.

What is asked for is kept in the store and done with the thread's next question, by the nodes that trim and recall, so
it works the same for graphs of `build_graph` and for agents with the middleware, whatever is running meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph.store.base import PutOp

from everthread.errors import NotFoundError, SettingsError
from everthread.ledger.events import PromptAssembled, Steered
from everthread.ledger.record import events_of_turns, now, record
from everthread.memory.guard import check, phrase
from everthread.memory.rendering import quotable
from everthread.state import namespaces
from everthread.state.marks import is_masked, is_synthetic, marks
from everthread.state.records import items
from everthread.state.steering import Steering, steer_id, steering_of
from everthread.storage.adoption import state_messages
from everthread.storage.open import Storage
from everthread.storage.reading import record_of, role_of, unknown
from everthread.storage.transcript import archived_by_id, message_text
from everthread.window.tokens import counter_for

__all__ = [
    "ACTIONS",
    "Steering",
    "abring_back",
    "amask_result",
    "apin_message",
    "apin_sentence",
    "asteering",
    "awithdraw",
    "bring_back",
    "mask_result",
    "pin_message",
    "pin_sentence",
    "steering",
    "withdraw",
]

_PINNED_SHARE = 0.25
"""Share of the newest prompt's budget that all pins by hand may take together."""

_PINNED_TOKENS = 1_000
"""What they may take in a thread whose ledger has no prompt."""

_ATTACKS = ("instruction_payload", "system_rule", "policy_override", "exfil_link", "unreadable")
"""What is never pinned of a message, since it would stand in every prompt."""


def steering(storage: Storage, thread_id: str) -> list[Steering]:
    """Return what is pinned, and what waits for the thread's next question, the oldest first.

    Raises:
        NotFoundError: there is no such thread.
    """
    _session(storage, thread_id)
    return [one for one in _every(storage, thread_id) if one.action == "pin" or one.is_waiting]


def bring_back(storage: Storage, thread_id: str, message_id: str, *, actor: str = "") -> Steering:
    """Let the next question's prompt have a message that left it, or one in full that it has masked.

    It stays until a compaction or eviction, as what is recalled does. A message of another branch of the thread is not
    shown. What takes more than half of the budget is cut, with a handle to the rest.

    Args:
        message_id: the message, which the transcript has.
        actor: who asks for it, for the ledger; empty names the thread's user.

    Returns:
        What was asked for; `withdraw` takes it back while it waits.

    Raises:
        NotFoundError: there is no such thread, or no such message in its transcript.
        SettingsError: the prompt has it in full.
    """
    here = _in_state(storage, thread_id).get(message_id)
    if here is not None and not is_masked(here):
        raise SettingsError("the prompt has this message in full; pin it to keep it there")
    if not archived_by_id(storage.store, thread_id, [message_id]):
        raise NotFoundError(f"the transcript of thread {thread_id!r} has no message {message_id!r}")
    return _ask(storage, thread_id, Steering("", "bring_back", message_id), actor)


def mask_result(storage: Storage, thread_id: str, message_id: str, *, actor: str = "") -> Steering:
    """Let the next question's prompt have a tool result as a few words and a handle; `bring_back` undoes it.

    Args:
        message_id: the tool's message.
        actor: as for `bring_back`.

    Raises:
        NotFoundError: there is no such thread, or its prompt has no such message.
        SettingsError: it is no tool result, or masked already.
    """
    message = _in_state(storage, thread_id).get(message_id)
    if message is None:
        raise NotFoundError(f"the prompt of thread {thread_id!r} has no message {message_id!r}")
    if message.type != "tool" or is_masked(message):
        kind = "masked already" if is_masked(message) else "no tool result; only those are masked"
        raise SettingsError(f"message {message_id!r} is {kind}")
    return _ask(storage, thread_id, Steering("", "mask", message_id), actor)


def pin_sentence(storage: Storage, thread_id: str, text: str, *, actor: str = "") -> Steering:
    """Keep a sentence in every prompt of a thread, word for word, as an instruction of the user.

    Args:
        text: the sentence, in the user's own words.
        actor: as for `bring_back`.

    Raises:
        NotFoundError: there is no such thread.
        SettingsError: it is empty, refused by the guard, or all pins together would take too much of the prompt.
    """
    text = " ".join(quotable(text).split())
    if not text:
        raise SettingsError("there is nothing to pin: the sentence is empty")
    if not (verdict := check(text, is_own=True)).allowed:
        raise SettingsError(f"the sentence looks like {phrase(verdict.category)}, which is never pinned")
    return _ask(storage, thread_id, Steering("", "pin", text=text), actor)


def pin_message(storage: Storage, thread_id: str, message_id: str, *, actor: str = "") -> Steering:
    """Keep a message in every prompt of a thread, word for word and with its speaker; also one that left it.

    Args:
        actor: as for `bring_back`.

    Raises:
        NotFoundError: there is no such thread or message.
        SettingsError: it has no text, reads like an attack, or all pins together would take too much of the prompt.
    """
    here = _in_state(storage, thread_id).get(message_id)
    kept = (
        [here] if here is not None and not is_masked(here) else archived_by_id(storage.store, thread_id, [message_id])
    )
    if not kept:
        raise NotFoundError(f"thread {thread_id!r} has no message {message_id!r}")
    message, role = kept[0], role_of(kept[0])
    text = quotable(str(message.text)) or quotable(message_text(message))
    if not text:
        raise SettingsError(f"message {message_id!r} has no text to pin")
    verdict = check(text, is_own=message.type == "human")
    if verdict.category in _ATTACKS:
        raise SettingsError(f"the message looks like {phrase(verdict.category)}, which is never pinned")
    speaker = f"{role} {message.name}" if role == "tool" and message.name else role
    date = str(marks(message).get("at", ""))[:10]
    return _ask(storage, thread_id, Steering("", "pin", message_id, text, speaker, date), actor)


def withdraw(storage: Storage, thread_id: str, steer_id: str, *, actor: str = "") -> Steering:
    """Take back what was asked for: unpin, or let something be that waits for the next question.

    Args:
        steer_id: its id, or how it begins, as `steering` lists it.
        actor: as for `bring_back`.

    Raises:
        NotFoundError: there is no such thread, or nothing like it in `steering`.
        SettingsError: several begin so.
    """
    found = [one for one in steering(storage, thread_id) if steer_id and one.id.startswith(steer_id)]
    if not found:
        raise NotFoundError(f"thread {thread_id!r} has nothing pinned or waiting under the id {steer_id!r}")
    if len(found) > 1:
        raise SettingsError(f"{len(found)} of them begin with {steer_id!r}; write more of the id")
    gone = found[0]
    write = PutOp(namespaces.steering(thread_id), gone.id, None)
    _record(storage, thread_id, _session(storage, thread_id), gone, "withdraw", actor, write)
    return gone


ACTIONS: Mapping[str, Callable[..., Steering]] = {
    "bring-back": bring_back,
    "mask": mask_result,
    "pin": pin_sentence,
    "pin-message": pin_message,
    "withdraw": withdraw,
}
"""All of them by the names that they have on the command line and in the dashboard."""


async def asteering(storage: Storage, thread_id: str) -> list[Steering]:
    """Do what `steering` does without blocking the event loop."""
    return await storage.worker.call(steering, storage, thread_id)


async def abring_back(storage: Storage, thread_id: str, message_id: str, *, actor: str = "") -> Steering:
    """Do what `bring_back` does without blocking the event loop."""
    return await storage.worker.call(lambda: bring_back(storage, thread_id, message_id, actor=actor))


async def amask_result(storage: Storage, thread_id: str, message_id: str, *, actor: str = "") -> Steering:
    """Do what `mask_result` does without blocking the event loop."""
    return await storage.worker.call(lambda: mask_result(storage, thread_id, message_id, actor=actor))


async def apin_sentence(storage: Storage, thread_id: str, text: str, *, actor: str = "") -> Steering:
    """Do what `pin_sentence` does without blocking the event loop."""
    return await storage.worker.call(lambda: pin_sentence(storage, thread_id, text, actor=actor))


async def apin_message(storage: Storage, thread_id: str, message_id: str, *, actor: str = "") -> Steering:
    """Do what `pin_message` does without blocking the event loop."""
    return await storage.worker.call(lambda: pin_message(storage, thread_id, message_id, actor=actor))


async def awithdraw(storage: Storage, thread_id: str, steer_id: str, *, actor: str = "") -> Steering:
    """Do what `withdraw` does without blocking the event loop."""
    return await storage.worker.call(lambda: withdraw(storage, thread_id, steer_id, actor=actor))


def _session(storage: Storage, thread_id: str) -> dict[str, Any]:
    session = record_of(storage.store, thread_id)
    if session is None:
        raise unknown(thread_id)
    return session


def _in_state(storage: Storage, thread_id: str) -> dict[str, Any]:
    """Return the messages of the newest state by id, without those of ours."""
    _session(storage, thread_id)
    return {str(one.id): one for one in state_messages(storage, thread_id) if not is_synthetic(one)}


def _every(storage: Storage, thread_id: str) -> Sequence[Steering]:
    return steering_of(items(storage.store, namespaces.steering(thread_id)))


def _ask(storage: Storage, thread_id: str, asked: Steering, actor: str) -> Steering:
    """Keep what is asked for, with its event; asked for twice it is asked for once."""
    asked = replace(asked, id=steer_id(asked.action, asked.message_id or asked.text))
    session, every = _session(storage, thread_id), _every(storage, thread_id)
    earlier = next((one for one in every if one.id == asked.id and (one.action == "pin" or one.is_waiting)), None)
    if earlier is not None:
        return earlier
    if asked.action == "pin":
        pinned = [one.text for one in (*every, asked) if one.action == "pin"]
        _check_room(storage, thread_id, int(session.get("turns") or 0), pinned)
    asked = replace(asked, actor=actor or str(session.get("user_id") or ""), at=now())
    write = PutOp(namespaces.steering(thread_id), asked.id, asked.value(), index=False)
    _record(storage, thread_id, session, asked, asked.action, asked.actor, write)
    return asked


def _check_room(storage: Storage, thread_id: str, turns: int, pinned: Sequence[str]) -> None:
    recent = events_of_turns(storage.store, thread_id, turns, turns)
    budget = next((one.budget for one in reversed(recent) if isinstance(one, PromptAssembled)), 0)
    most = int(budget * _PINNED_SHARE) or _PINNED_TOKENS
    counter = counter_for(None)
    if (tokens := sum(map(counter.text, pinned))) > most:
        raise SettingsError(
            f"all pins together would take {tokens:,} tokens of every prompt, and may take {most:,}; pin a sentence of "
            "it, or bring the message back once"
        )


def _record(
    storage: Storage, thread_id: str, session: Mapping[str, Any], asked: Steering, action: Any, actor: str, write: PutOp
) -> None:
    ids = [asked.message_id] if asked.message_id else []
    event = Steered(action=action, message_ids=ids, steer_id=asked.id, actor=actor or str(session.get("user_id") or ""))
    record(storage.store, thread_id, [event], turn=int(session.get("turns") or 0), operations=[write])
