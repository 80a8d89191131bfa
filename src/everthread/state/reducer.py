"""What the messages channel does with writes, for any kind of message: LangChain's, or those read back without it."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from everthread.state.marks import MARK, is_answer, is_recalled, marks, sequence


class Message(Protocol):
    """A message as LangChain has it, as far as the reducer asks."""

    @property
    def id(self) -> str | None:
        """The same at every write of the message; None before the first."""

    @property
    def type(self) -> str:
        """`human`, `ai`, `tool`, `system` or `remove`."""

    @property
    def name(self) -> str | None:
        """Who speaks, or the tool."""

    @property
    def content(self) -> Any:
        """A text, or a list of content blocks."""

    @property
    def additional_kwargs(self) -> dict[str, Any]:
        """What providers are not sent, such as our marks."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Copy it with other fields."""


M = TypeVar("M", bound=Message)

REMOVE_ALL = "__remove_all__"
"""Id of the `RemoveMessage` that removes everything: LangGraph's `REMOVE_ALL_MESSAGES`."""

_LARGEST = 10**4_000
"""Python refuses to write a longer integer in decimals."""

_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def reduced(messages: list[M], writes: Iterable[M]) -> list[M]:
    """Apply writes to messages, one after the other; see `state.messages.reduce_messages`.

    Args:
        messages: the working set, oldest first; the list may be changed.
        writes: messages, and those of type `remove`.
    """
    # The state may come from a plain `add_messages` channel, whose messages have no place yet.
    last = _last_own(messages)
    if last is not None and sequence(last) < 0:
        messages = _stamped(messages)
    indexes = _indexes(messages)
    for message in writes:
        if message.type == "remove":
            if message.id == REMOVE_ALL:
                messages, indexes = [], {}
            elif message.id in indexes:
                del messages[indexes[message.id]]
                indexes = _indexes(messages)
        elif is_recalled(message):
            messages = [kept for kept in messages if kept.id != message.id]
            question = _indexes(messages).get(marks(message).get("before"))
            if question is not None:
                messages.insert(question, message)
            indexes = _indexes(messages)
        elif message.id not in indexes and (asked := _retried(message, messages)) is not None:
            messages[indexes[asked.id]] = _new_again(asked)
        elif message.id is not None and message.id in indexes:
            index = indexes[message.id]
            messages[index] = _replacing(message, messages[index])
        else:
            appended = _appended(message, _last_own(messages))
            indexes[appended.id] = len(messages)
            messages.append(appended)
    return messages


def _indexes(messages: Sequence[M]) -> dict[str | None, int]:
    return {message.id: index for index, message in enumerate(messages)}


def clean(text: str) -> str:
    """Replace what breaks stores and providers: NUL characters and lone surrogates."""
    if "\x00" in text:
        text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _last_own(messages: Sequence[M]) -> M | None:
    """Return the last message that has a place in the thread."""
    return next((message for message in reversed(messages) if not is_recalled(message)), None)


def _stamped(messages: list[M]) -> list[M]:
    stamped: list[M] = []
    for message in messages:
        stamped.append(_appended(message, stamped[-1] if stamped else None))
    return stamped


def _retried(message: M, messages: Sequence[M]) -> M | None:
    """Return the unanswered question that a message repeats word for word, as when a client sends it again.

    The half of the rule of `graph.resend` that goes by text, for messages whose id the client did not choose: none, or
    the random one that a guarded run (`graph.run`) or LangGraph gave it. Two messages with ids of their own are two.
    """
    if message.type != "human" or not (message.id is None or _RANDOM_ID.fullmatch(message.id)):
        return None
    if not messages or is_answer(messages[-1]):
        return None
    asked = next((earlier for earlier in reversed(messages) if earlier.type == "human"), None)
    if asked is None or clean_content(message.content) != asked.content or message.name != asked.name:
        return None
    return asked


def _new_again(message: M) -> M:
    """Return a question without its date, so that the run answers it; a turn that was counted is not counted again."""
    kept = {key: value for key, value in marks(message).items() if key != "at"}
    if "at" in marks(message):
        kept["counted"] = True
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MARK: kept}})


def _appended(message: M, last: M | None) -> M:
    # A message that has a place keeps it when those ahead of it are gone: one that a caller puts back after
    # `REMOVE_ALL_MESSAGES`, or of parallel calls whose turn was given up a later result without an earlier one.
    seq = max(sequence(last) + 1 if last is not None else 0, sequence(message))
    previous = last.id if last is not None else marks(message).get("previous")
    content = clean_content(message.content)
    kwargs = {**message.additional_kwargs, MARK: {**marks(message), "seq": seq, "previous": previous}}
    name = _identifier(message.type, content, seq, previous) if message.id is None else message.id
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs, "id": name})


def _replacing(message: M, old: M) -> M:
    content = clean_content(message.content)
    # Other words under a known id are a new question; the same words are the one that has its answer.
    is_same = content == old.content
    merged = {key: value for key, value in marks(old).items() if is_same or key in ("seq", "previous")} | marks(message)
    kwargs = {**message.additional_kwargs, MARK: merged}
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs})


def _identifier(kind: str, content: Any, seq: int, previous: str | None) -> str:
    identity = f"{previous}\x00{seq}\x00{kind}\x00{content!r}"
    return "m-" + hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:24]


def clean_content(content: Any) -> Any:
    """Clean any content: a text, blocks, or nested values; an integer that 64 bits cannot hold becomes text."""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        return [clean_content(block) for block in content]
    if isinstance(content, dict):
        return {clean_content(key): clean_content(value) for key, value in content.items()}
    if isinstance(content, int) and not -(2**63) <= content < 2**64:
        return str(content) if abs(content) < _LARGEST else hex(content)
    return content


def words_of(content: str | list[Any]) -> tuple[str, list[Any]]:
    """Return the text of a message and its other blocks, cleaned: the same of a text and of a block that has it."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else clean_content(content)
    texts = [one if isinstance(one, str) else one.get("text") for one in blocks if _is_text(one)]
    text = "".join(one for one in texts if isinstance(one, str))
    return clean(text).strip(), [one for one in blocks if not _is_text(one)]


def _is_text(block: str | dict[str, Any]) -> bool:
    return isinstance(block, str) or block.get("type") == "text"
