"""Messages that leave a thread's state and do not go to its transcript: those of a branch that is left, and edits.

The prompts that showed them can be made again all the same. Nothing else reads them, so that no other branch sees them.
"""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langgraph.store.base import PutOp

from everthread.state import namespaces
from everthread.state.marks import is_masked, is_synthetic, marks, sequence
from everthread.storage.transcript import brief
from everthread.window.assembly import message_checksum


def left_messages(
    thread_id: str, before: Sequence[BaseMessage], after: Sequence[BaseMessage], turn: int
) -> list[PutOp]:
    """Prepare the writes that keep messages which one state has and the next one has not, or with other words.

    Of an edited message both versions are kept: the transcript has one of each id, and a branch that begins before the
    edit has the other one.

    Args:
        before: messages of the newest state.
        after: those of the state that takes its place.
        turn: user turns of the thread so far.
    """
    old, new = ({_name(one): one for one in messages if _is_own(one)} for messages in (before, after))
    edited = {message.id for message in old.values()} & {one.id for name, one in new.items() if name not in old}
    gone = {name: message for name, message in old.items() if name not in new}
    kept = {**gone, **{name: message for name, message in new.items() if name not in old and message.id in edited}}
    space = namespaces.prompts(thread_id)
    return [
        PutOp(space, name, {"message": brief(message), "turn": turn}, index=False) for name, message in kept.items()
    ]


def removed_links_operations(
    thread_id: str, before: Sequence[BaseMessage], after: Sequence[BaseMessage]
) -> list[PutOp]:
    """Prepare the writes that keep the links of messages which an edit takes out: later ones lead to earlier ones."""
    stays, space = {message.id for message in after}, namespaces.removed(thread_id)
    gone = [one for one in before if _is_own(one) and one.id not in stays and sequence(one) >= 0]
    links = {str(one.id): {"seq": sequence(one), "previous": marks(one).get("previous")} for one in gone}
    return [PutOp(space, name, link, index=False) for name, link in links.items()]


def _is_own(message: BaseMessage) -> bool:
    """Tell whether a message is the thread's, in full."""
    return not is_synthetic(message) and not is_masked(message)


def _name(message: BaseMessage) -> str:
    """Name a message as recipes do."""
    return f"{message_checksum(message).hex()}{message.id}"
