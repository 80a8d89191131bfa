"""Mark where a provider should cache a prompt: Anthropic caches only up to a mark, and takes four of them."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

from langchain_core.messages import BaseMessage, SystemMessage

from everthread.state.marks import is_recalled, is_synthetic
from everthread.window.turns import anchor_of, question_of

SLOTS: Final = 4
"""Marks that one request may have, with those on tools. Source: Anthropic, "Prompt caching"."""

_CACHE_CONTROL: Final = {"type": "ephemeral"}


def mark_cache(messages: Sequence[BaseMessage], *, slots: int = SLOTS) -> list[BaseMessage]:
    """Return a prompt with `cache_control` where it stays the same for longest, and at its end.

    In the order of what they are worth: the end of the prompt, which the next call repeats; the system message, and
    with it the tools, which outlive every compaction; the end of the last turn, since Anthropic looks for what it
    has cached no more than 20 blocks back and one turn may have more; the end of the stable head, which is the
    anchor with summary and notes.

    Args:
        messages: one prompt, as it is sent; not changed.
        slots: marks that may be set; those that the messages have already are taken off.

    Returns:
        The same messages, the marked ones copied with their content as blocks. What holds no text is not marked, but
        the message before it.
    """
    slots -= sum(map(_marks_on, messages))
    places: list[int] = []
    for wanted in _ends(messages):
        # Only text: an image takes a mark too, but an empty text and what a model thought do not.
        place = next((at for at in range(wanted, -1, -1) if _last_text(messages[at]) is not None), None)
        if place is not None and place not in places and not _marks_on(messages[place]):
            places.append(place)
    chosen = set(places[: max(slots, 0)])
    return [_marked(message) if place in chosen else message for place, message in enumerate(messages)]


def _ends(messages: Sequence[BaseMessage]) -> list[int]:
    """Return the places of the messages that end what stays the same, the most valuable first."""
    system = sum(1 for _ in takewhile(lambda message: isinstance(message, SystemMessage), messages)) - 1
    ends = [len(messages) - 1, system]
    question, anchor = question_of(messages), anchor_of(messages)
    if question is not None and anchor is not None and question is not anchor:
        first = next(place for place, message in enumerate(messages) if message is anchor)
        begin = next(place for place, message in enumerate(messages) if message is question)
        inserted = takewhile(lambda one: is_synthetic(one) and not is_recalled(one), messages[first + 1 : begin])
        ends += [begin - 1, first + sum(1 for _ in inserted)]
    return [end for end in ends if end >= 0]


def _last_text(message: BaseMessage) -> int | None:
    """Return the place of the last block with a text; 0 for content that is a text; None without any."""
    if isinstance(message.content, str):
        return 0 if message.content.strip() else None
    return next(
        (place for place in range(len(message.content) - 1, -1, -1) if _text(message.content[place]).strip()), None
    )


def _text(block: str | dict[str, Any]) -> str:
    return block if isinstance(block, str) else str(block.get("text") or "") if block.get("type") == "text" else ""


def _marks_on(message: BaseMessage) -> int:
    if isinstance(message.content, str):
        return 0
    return sum(isinstance(block, dict) and "cache_control" in block for block in message.content)


def _marked(message: BaseMessage) -> BaseMessage:
    content = message.content
    blocks: list[Any] = [content] if isinstance(content, str) else list(content)
    place = _last_text(message) or 0
    block = blocks[place]
    shown = {"type": "text", "text": block} if isinstance(block, str) else block
    blocks[place] = {**shown, "cache_control": dict(_CACHE_CONTROL)}
    return message.model_copy(update={"content": blocks})
