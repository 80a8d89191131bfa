"""Keys of what left the prompt, so that a refetch is noticed with one read and not with a search.

A row per tool result or message of the user that left; it goes when it was needed again, and with the
turns that the ledger forgets.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everthread.ledger.events import Refetch
from everthread.ledger.refetches import call_key, results_by_call, statement_key
from everthread.state import namespaces
from everthread.window.turns import opens_turn

Left = Literal["evicted", "masked", "offloaded"]

_MOST_BLOCKED = 50
"""Refused notes that a new one is compared with."""


def left_operations(
    thread_id: str, left: Sequence[BaseMessage], among: Sequence[BaseMessage], how: Left, turn: int
) -> list[PutOp]:
    """Prepare the writes that remember what leaves the prompt.

    Args:
        left: messages that leave or are masked.
        among: messages that have the calls behind them.
        how: in which way they leave.
    """
    named = {f"call-{name}": message_id for name, message_id in results_by_call(left, among).items()}
    if how == "evicted":
        said = ((statement_key(str(message.text)), str(message.id)) for message in left if opens_turn(message))
        named |= {f"said-{name}": message_id for name, message_id in said if name}
    namespace = _namespace(thread_id)
    return [
        PutOp(namespace, name, {"message_id": message_id, "left": how, "turn": turn}, index=False)
        for name, message_id in named.items()
    ]


def repeated(store: BaseStore, thread_id: str, call: Mapping[str, Any]) -> tuple[Refetch, list[PutOp]] | None:
    """Return the refetch of a tool call that asks again for what has left, and the writes that forget it; or None."""
    item = store.get(_namespace(thread_id), f"call-{call_key(call['name'], call['args'])}")
    if item is None:
        return None
    return _missed(item, "repeated_call", str(call["id"])), [PutOp(item.namespace, item.key, None)]


def restated_reads(thread_id: str, messages: Iterable[BaseMessage]) -> dict[str, GetOp]:
    """Return the reads that tell which of the user's messages say again what has left, by message id."""
    named = {str(message.id): statement_key(str(message.text)) for message in messages if opens_turn(message)}
    return {by: GetOp(_namespace(thread_id), f"said-{name}") for by, name in named.items() if name}


def restated(asked: Iterable[str], found: Sequence[Any], without: Collection[str]) -> tuple[list[Refetch], list[PutOp]]:
    """Return the refetches of the user's messages that say again what has left, and the writes that forget it.

    Args:
        asked: ids of the messages, as `restated_reads` gave them.
        found: what the store answered, in its order.
        without: ids of messages that are not looked at, since they are no news.
    """
    again = {by: item for by, item in zip(asked, found, strict=True) if item is not None and by not in without}
    forgets = [PutOp(item.namespace, item.key, None) for item in again.values()]
    return [_missed(item, "restated", by) for by, item in again.items()], forgets


def _missed(item: Item, why: Literal["repeated_call", "restated"], by: str) -> Refetch:
    left = item.value
    return Refetch(why=why, message_ids=[left["message_id"]], left=left["left"], left_turn=left["turn"], by=by)


def read_back(store: BaseStore, thread_id: str, handle: str, by: str) -> Refetch | None:
    """Return the refetch of a handle that is read; None when there is no such handle."""
    pointer = store.get(namespaces.thread(thread_id, "handles"), handle) if handle else None
    if pointer is None:
        return None
    return Refetch(why="read_back", message_ids=[str(pointer.value["message_id"])], left="masked", by=by)


def restated_blocked(
    store: BaseStore, thread_id: str, message: BaseMessage, working_set: Sequence[BaseMessage]
) -> Refetch | None:
    """Return the refetch of a note that is blocked although the user says it for the second time.

    Only a note that is refused asks for this, so the ledger may be searched.

    Args:
        message: the message that the refused note came from.
        working_set: messages of the working set; others are read from the transcript.
    """
    name = statement_key(str(message.text))
    events = store.search(namespaces.ledger(thread_id), filter={"event": "note_blocked"}, limit=_MOST_BLOCKED)
    earlier = {said: event.value["turn"] for event in events for said in event.value["message_ids"]}
    earlier.pop(str(message.id), None)
    texts = {str(one.id): str(one.text) for one in working_set if str(one.id) in earlier}
    archived = store.batch([GetOp(namespaces.transcript(thread_id), said) for said in earlier if said not in texts])
    for item in archived:
        if isinstance(item, Item):
            content = item.value.get("message", {}).get("data", {}).get("content")
            texts[item.key] = content if isinstance(content, str) else ""
    for said, text in texts.items():
        if name and statement_key(text) == name:
            by = str(message.id)
            return Refetch(why="restated", message_ids=[said], left="blocked", left_turn=earlier[said], by=by)
    return None


def _namespace(thread_id: str) -> namespaces.Namespace:
    return namespaces.thread(thread_id, "left")
