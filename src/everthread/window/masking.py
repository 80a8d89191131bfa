"""Mask a long text: its head, its tail, what was left out, and a handle to read it back."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.state.marks import MARK, MessageT, handle_of, marked, marks
from everthread.window.identifiers import mentioned_in, within
from everthread.window.tokens import TokenCounter

HEAD_SHARE = 0.50
"""Share of the limit that the head gets (BEHAVIOUR §3: half from the head, a quarter from the tail)."""

TAIL_SHARE = 0.25
"""Share of the limit that the tail gets; the marker has the rest."""

STUB_TOKENS = 24
"""Size of a masked result that is no longer of the current turn."""

STUB_IDENTIFIERS = 100
"""Tokens for the identifiers of what a stub leaves out: a later call may need one of them."""

SMALLEST_STUB = STUB_TOKENS + 10
"""Size of a stub at the least: the marker alone takes some thirty tokens."""

MARKER_TOKENS = 44
"""Size of the marker at the most, with its handle."""

LONGEST_STUB = STUB_TOKENS + STUB_IDENTIFIERS + MARKER_TOKENS
"""Size of a stub at the most, with its marker; a tool result of no more tokens wins nothing as a stub."""


_IMAGES = ("image", "image_url")
"""Blocks whose tokens do not grow with their data."""


def handles_in(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the handles that a prompt shows."""
    return [str(marks(message)["handle"]) for message in messages if "handle" in marks(message)]


def mask(message: MessageT, limit: int, counter: TokenCounter) -> MessageT:
    """Copy a message with its text cut to about `limit` tokens and a handle to the rest.

    A message that was masked before is cut further and keeps its handle. Images stay, behind the text; ahead of it
    is said how many other blocks left.
    """
    handle, full_tokens = _reference(message, counter)
    text = masked_text(str(message.text), limit, counter, handle=handle, full_tokens=full_tokens)
    return _stand_in(message, text, handle, full_tokens)


def stub(message: MessageT, counter: TokenCounter) -> MessageT:
    """Copy an old result as a stub: a few words, a handle, and the identifiers of what is left out."""
    handle, full_tokens = _reference(message, counter)
    return _stand_in(message, _stub_text(str(message.text), counter, handle, full_tokens), handle, full_tokens)


def _reference(message: BaseMessage, counter: TokenCounter) -> tuple[str, int]:
    """Return handle and size of the full text of a message that may have been masked before."""
    earlier = marks(message)
    handle = earlier.get("handle") or handle_of(str(message.id))
    return str(handle), int(earlier.get("tokens") or 0) or counter.text(str(message.text))


def _stand_in(message: MessageT, text: str, handle: str, full_tokens: int) -> MessageT:
    content: str | list[Any] = text
    if isinstance(message.content, list) and (attachments := sum(map(is_attachment, message.content))):
        images = [one for one in message.content if not isinstance(one, str) and one.get("type") in _IMAGES]
        shown = f"{left_out(attachments - len(images))}\n{text}".strip()
        content = [{"type": "text", "text": shown}, *images] if images else shown
    return marked(message.model_copy(update={"content": content}), handle=handle, tokens=full_tokens)


def left_out(attachments: int) -> str:
    """Return what is said of attachments that a message had."""
    return f"[{attachments} attachment{'' if attachments == 1 else 's'} left out]" if attachments else ""


def is_attachment(block: str | Mapping[str, Any]) -> bool:
    """Tell whether a block of a message's content is no text, such as an image."""
    return not isinstance(block, str) and block.get("type") != "text"


# A compaction that is put off is planned again after every turn, over the same results.
@lru_cache(maxsize=256)
def _stub_text(text: str, counter: TokenCounter, handle: str, full_tokens: int) -> str:
    short = masked_text(text, STUB_TOKENS, counter, handle=handle, full_tokens=full_tokens)
    kept = within(mentioned_in(text), STUB_IDENTIFIERS, counter, is_shown=short.__contains__)
    return f"{short}\nMentions: {' '.join(entry.text for entry in kept)}" if kept else short


def masked_text(text: str, limit: int, counter: TokenCounter, *, handle: str, full_tokens: int) -> str:
    """Return head, marker and tail of a text.

    Args:
        limit: tokens of the result, about; the marker itself takes some thirty.
        handle: what `read_tool_output` takes.
        full_tokens: size of the complete text.
    """
    head = _head(text, int(limit * HEAD_SHARE), counter)
    tail = _tail(text[len(head) :], int(limit * TAIL_SHARE), counter)
    shown = counter.text(head) + counter.text(tail)
    marker = f"[… {max(full_tokens - shown, 0):,} of {full_tokens:,} tokens left out{_way_back(handle)} …]"
    return "\n".join(part for part in (head.rstrip(), marker, tail.lstrip()) if part)


def without_handle(message: MessageT) -> MessageT:
    """Copy a masked message for a model that has no way back to the full text."""
    text = str(message.content).replace(_way_back(str(marks(message).get("handle"))), "")
    kept = {name: value for name, value in marks(message).items() if name not in ("handle", "tokens")}
    return message.model_copy(update={"content": text, "additional_kwargs": {**message.additional_kwargs, MARK: kept}})


def _way_back(handle: str) -> str:
    return f'; read_tool_output(handle="{handle}") returns them'


def _head(text: str, tokens: int, counter: TokenCounter) -> str:
    end = counter.head(text, tokens)
    if end == len(text):
        return text
    return text[: _border(text, end)]


def _tail(text: str, tokens: int, counter: TokenCounter) -> str:
    size = counter.tail(text, tokens)
    start = len(text) - size
    for separator in ("\n", " "):
        end = text.find(separator, start, start + size // 2)
        if end >= 0:
            return text[end + 1 :]
    return text[start:]


def _border(text: str, end: int) -> int:
    """Move a cut back to the end of a line or of a word, unless that costs half of the text."""
    for separator in ("\n", "},", "],", ", ", " "):
        place = text.rfind(separator, end // 2, end)
        if place > 0:
            return place + len(separator)
    return end
