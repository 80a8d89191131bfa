"""Messages as the database has them, read without LangChain, whose import takes longer than most commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from everthread.state.marks import is_masked, is_synthetic, marks, sequence
from everthread.state.reducer import Message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

M = TypeVar("M", bound=Message)

_ROLES = {"user": "human", "assistant": "ai"}

_KINDS = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document"), "file"),
    "video": "video",
}
"""What a content block that is no text is called, by its type at any provider."""


@dataclass(frozen=True)
class StoredMessage:
    """A message with LangChain's names for its fields."""

    type: str
    """`human`, `ai`, `tool` or `system`; `remove` for a write that removes one."""
    content: Any = ""
    """A text, or a list of content blocks."""
    id: str | None = None
    name: str | None = None
    additional_kwargs: dict[str, Any] = field(default_factory=dict)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """Each with `id`, `name` and `args`."""
    tool_call_id: str | None = None
    """Of a tool's result: the call that it answers."""
    status: str | None = None
    """Of a tool's result: `success` or `error`."""
    usage_metadata: dict[str, Any] | None = None
    """Of a reply: its tokens, as the provider reported them."""
    response_metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Take what LangChain takes as a message: its fields as JSON, role and content, or the user's text.

        Fields may be under `data`, as `messages_to_dict` gives them.

        Raises:
            ValueError, TypeError, LookupError, AttributeError: it is no message.
        """
        if isinstance(value, str):
            return cls("human", value)
        if isinstance(value, Mapping) and isinstance(value.get("data"), Mapping):
            value = {**value["data"], "type": value["type"]}
        fields = value if isinstance(value, Mapping) else dict(zip(("role", "content"), value, strict=True))
        kind = str(fields.get("type") or fields["role"]).removesuffix("MessageChunk").lower()
        tool = {"tool_call_id": fields.get("tool_call_id"), "status": fields.get("status", "success")}
        message = cls(
            _ROLES.get(kind, kind),
            fields.get("content") or "",
            fields.get("id"),
            fields.get("name"),
            fields.get("additional_kwargs") or {},
            fields.get("tool_calls") or [],
            **tool if kind == "tool" else {},
            usage_metadata=fields.get("usage_metadata"),
            response_metadata=fields.get("response_metadata") or {},
        )
        # What cannot be shown or sorted later is found here.
        message_text(message), sequence(message)
        return message

    @property
    def text(self) -> str:
        """The text of all blocks."""
        blocks = [self.content] if isinstance(self.content, str) else self.content
        return "".join(block if isinstance(block, str) else _text(block) for block in blocks)

    @property
    def attachments(self) -> list[str]:
        """What it brings beside text, such as `image` or `file report.pdf`."""
        blocks = self.content if isinstance(self.content, list) else []
        return [_described(block) for block in blocks if isinstance(block, Mapping) and block.get("type") in _KINDS]

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Copy the message with other fields, as LangChain's do."""
        return replace(self, **(update or {}))


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _described(block: Mapping[str, Any]) -> str:
    """Return the kind of a block, with its name or its address when that is short."""
    inner = block.get(str(block["type"]))
    fields = {**block, **inner} if isinstance(inner, Mapping) else {**block, "url": block.get("url") or inner}
    name = fields.get("filename") or fields.get("name") or fields.get("title") or fields.get("url")
    kind = _KINDS[str(block["type"])]
    return f"{kind} {name[:80]}" if isinstance(name, str) and not name.startswith("data:") else kind


def message_text(message: "BaseMessage | StoredMessage") -> str:
    """Return what a message says, tool calls included, as plain text."""
    text = str(message.text)
    calls = "\n".join(map(call_text, getattr(message, "tool_calls", ())))
    return "\n".join(filter(None, (text, calls))) if calls else text


def call_text(call: Mapping[str, Any]) -> str:
    """Return a tool call as code has it, such as `search(city='Rome')`."""
    return f"{call['name']}({', '.join(f'{name}={value!r}' for name, value in call['args'].items())})"


def whole_thread(archived: Mapping[str, M], offloaded: set[str], working_set: Sequence[M]) -> list[M]:
    """Return every message of a thread, oldest first: what was archived and what is still in state.

    A masked message is given in full, from the archive. A long tool result is archived before its step is saved; one
    whose step never was, since a crash came in between, is left out: no later message names it as its predecessor.

    Args:
        archived: messages of the transcript by id.
        offloaded: ids of those that were archived while they stayed in the state.
    """
    by_id = dict(archived)
    for message in working_set:
        if not is_synthetic(message) and not (is_masked(message) and message.id in by_id):
            by_id[str(message.id)] = message
    uncertain = offloaded - {str(message.id) for message in working_set}
    # One by one from the end: the second result of a round names the first.
    while unsaved := uncertain - {marks(message).get("previous") for message in by_id.values()}:
        uncertain -= unsaved
        by_id = {name: message for name, message in by_id.items() if name not in unsaved}
    return sorted(by_id.values(), key=sequence)
