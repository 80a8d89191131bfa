"""Mask a long text: its head, its tail, what was left out, and a handle to read it back."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from langchain_core.messages import BaseMessage

from everthread.state.marks import MessageT, marked, marks
from everthread.window.identifiers import merged, within
from everthread.window.remembered import Remembered
from everthread.window.tokens import TokenCounter

HEAD_SHARE = 0.50
"""Share of the limit that the head gets (BEHAVIOUR §3: half from the head, a quarter from the tail)."""

TAIL_SHARE = 0.25
"""Share of the limit that the tail gets; the marker has the rest."""

STUB_TOKENS = 24
"""Size of a masked result that is no longer of the current turn."""

STUB_IDENTIFIERS = 100
"""Tokens for the identifiers of what a stub leaves out: a later call may need one of them."""


def handle_of(message_id: str) -> str:
    """Derive the handle under which the full text of a message can be read."""
    return "h" + hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()[:8]


def handles_in(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the handles that a prompt shows."""
    return [str(marks(message)["handle"]) for message in messages if "handle" in marks(message)]


def mask(message: MessageT, limit: int, counter: TokenCounter) -> MessageT:
    """Copy a message with its text cut to about `limit` tokens and a handle to the rest.

    A message that was masked before is cut further and keeps its handle.
    """
    handle = str(marks(message).get("handle") or handle_of(str(message.id)))
    full_tokens = int(marks(message).get("tokens") or 0) or counter.text(str(message.text))
    text = masked_text(str(message.text), limit, counter, handle=handle, full_tokens=full_tokens)
    return marked(message.model_copy(update={"content": text}), handle=handle, tokens=full_tokens)


def stub(message: MessageT, counter: TokenCounter) -> MessageT:
    """Copy an old result as a stub: a few words, a handle, and the identifiers of what is left out."""
    short = mask(message, STUB_TOKENS, counter)
    shown = str(short.text)
    kept = " ".join(
        entry.text for entry in within(merged([], [message]), STUB_IDENTIFIERS, counter, is_shown=shown.__contains__)
    )
    return short.model_copy(update={"content": f"{shown}\nMentions: {kept}"}) if kept else short


@lru_cache(maxsize=8)
def stubs(counter: TokenCounter) -> Remembered[tuple[BaseMessage, int]]:
    """Return what gives the stub of a message and its size, and remembers both."""

    # A compaction that is put off is planned again after the next turn, over the same results.
    def sized(message: BaseMessage) -> tuple[BaseMessage, int]:
        short = stub(message, counter)
        return short, counter.message(short)

    return Remembered(sized, across_runs=False)


def masked_text(text: str, limit: int, counter: TokenCounter, *, handle: str, full_tokens: int) -> str:
    """Return head, marker and tail of a text.

    Args:
        text: the text to cut.
        limit: tokens of the result, about; the marker itself takes some thirty.
        counter: counts tokens.
        handle: what `read_tool_output` takes.
        full_tokens: size of the complete text.
    """
    head = _head(text, int(limit * HEAD_SHARE), counter)
    tail = _tail(text[len(head) :], int(limit * TAIL_SHARE), counter)
    shown = counter.text(head) + counter.text(tail)
    marker = (
        f"[… {max(full_tokens - shown, 0):,} of {full_tokens:,} tokens left out; "
        f'read_tool_output(handle="{handle}") returns them …]'
    )
    return "\n".join(part for part in (head.rstrip(), marker, tail.lstrip()) if part)


def _head(text: str, tokens: int, counter: TokenCounter) -> str:
    end = counter.head(text, tokens)
    if end == len(text):
        return text
    return text[: _border(text, end)]


def _tail(text: str, tokens: int, counter: TokenCounter) -> str:
    size = counter.tail(text, tokens)
    start = len(text) - size
    found = text.find("\n", start)
    if 0 <= found < start + size // 2:
        return text[found + 1 :]
    found = text.find(" ", start)
    return text[found + 1 :] if 0 <= found < start + size // 2 else text[start:]


def _border(text: str, end: int) -> int:
    """Move a cut back to the end of a line or of a word, unless that costs half of the text."""
    for separator in ("\n", "},", "],", ", ", " "):
        found = text.rfind(separator, end // 2, end)
        if found > 0:
            return found + len(separator)
    return end
