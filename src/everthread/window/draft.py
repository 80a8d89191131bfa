"""A working set while its trim or compaction is planned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from everthread.state.marks import was_refetched
from everthread.window.masking import (
    LONGEST_STUB,
    MARKER_TOKENS,
    SMALLEST_STUB,
    is_attachment,
    left_out,
    mask,
    stub,
    without_handle,
)
from everthread.window.tokens import TokenCounter
from everthread.window.turns import Group, anchor_of, split

ANCHOR_CHARACTERS = 200
"""What is left of a shortened anchor (BEHAVIOUR §1)."""


@dataclass
class EvictionPlan:
    """What leaves the working set with a trim or a compaction; empty when nothing has to."""

    evicted: list[BaseMessage] = field(default_factory=list)
    """Messages that go; a compaction folds them into the summary."""
    masked: dict[str, BaseMessage] = field(default_factory=dict)
    """Stand-ins by message id."""
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = ""

    def remaining(self, messages: Iterable[BaseMessage]) -> list[BaseMessage]:
        """Return the messages that stay, as the prompt will show them."""
        gone = {message.id for message in self.evicted}
        return [self.masked.get(str(message.id), message) for message in messages if message.id not in gone]


class Draft:
    """A working set while its plan is made: what leaves, what is masked, and the size of the rest."""

    def __init__(self, messages: Sequence[BaseMessage], counter: TokenCounter, *, reads_back: bool = True) -> None:
        self.turns = split(messages)
        self.evicted: set[str] = set()
        """Ids of what leaves."""
        self.masked: dict[str, BaseMessage] = {}
        self.sizes = _prompt_sizes(messages, [group for turn in self.turns for group in turn.groups], counter)
        self.tokens = self._before = sum(self.sizes.values())
        self._messages, self._counter, self._reads_back = messages, counter, reads_back
        self._anchor = anchor_of(messages)
        system = [message for message in messages[:1] if isinstance(message, SystemMessage)]
        self._pinned = {str(message.id) for message in (*system, self._anchor) if message is not None}

    @property
    def anchor_tokens(self) -> int:
        """Tokens of the anchor as it is now."""
        return 0 if self._anchor is None else self.sizes[str(self._anchor.id)]

    def plan(self, reason: str) -> EvictionPlan:
        """Return the messages that leave, in order, and the stand-ins of those that stay."""
        evicted = [message for message in self._messages if str(message.id) in self.evicted]
        masked = {name: self._shown(stand_in) for name, stand_in in self.masked.items() if name not in self.evicted}
        return EvictionPlan(evicted, masked, self._before, self.tokens, reason)

    def tokens_of(self, messages: Iterable[BaseMessage]) -> int:
        """Return the tokens of messages as they are now."""
        return sum(self.sizes[str(message.id)] for message in messages)

    def beside_anchor(self, messages: Iterable[BaseMessage]) -> int:
        """Return the tokens of messages, the anchor left out."""
        return sum(self.sizes[str(message.id)] for message in messages if message is not self._anchor)

    def least(self, messages: Iterable[BaseMessage]) -> int:
        """Return the tokens of messages if every tool result were a stub."""
        return sum(
            min(size, SMALLEST_STUB) if isinstance(message, ToolMessage) else size
            for message in messages
            for size in (self.sizes[str(message.id)],)
        )

    def evict_turns(self, indices: Iterable[int]) -> None:
        """Let turns go."""
        for index in indices:
            for group in self.turns[index].groups:
                self.evict(group)

    def evict(self, group: Group) -> None:
        """Let a group go, unless it is the anchor or the system message."""
        if str(group.messages[0].id) in self._pinned:
            return
        for message in group.messages:
            self.evicted.add(str(message.id))
            self._resize(str(message.id), 0)

    def mask_results(self, groups: Iterable[Group], target: int) -> None:
        """Put stubs in place of tool results down to a target, the oldest first; what was fetched twice is last."""
        for result in sorted((result for group in groups for result in group.results), key=was_refetched):
            if self.tokens <= target:
                return
            if self.sizes[str(result.id)] > LONGEST_STUB:
                self._replace(stub(as_text(result), self._counter))

    def cut_results(self, group: Group, limit: int) -> None:
        """Cut each result of a group to a limit in tokens."""
        for result in group.results:
            # A masked result has a marker beside its limit; below that nothing is won.
            if self.sizes[str(result.id)] > limit + MARKER_TOKENS:
                shown = self.masked.get(str(result.id), result)
                self._replace(mask(as_text(shown), limit, self._counter))

    def shorten_anchor(self) -> None:
        """Cut an anchor of an earlier turn to its first characters."""
        anchor = self._anchor
        if anchor is None or anchor is self.turns[-1].question:
            return
        if not isinstance(anchor.content, str) or len(anchor.content) > ANCHOR_CHARACTERS:
            self._replace(mask(as_text(anchor), ANCHOR_CHARACTERS // 4, self._counter))

    def _replace(self, stand_in: BaseMessage) -> None:
        self.masked[str(stand_in.id)] = stand_in
        self._resize(str(stand_in.id), self._counter.message(self._shown(stand_in)))

    def _shown(self, stand_in: BaseMessage) -> BaseMessage:
        return stand_in if self._reads_back else without_handle(stand_in)

    def _resize(self, message_id: str, tokens: int) -> None:
        self.tokens += tokens - self.sizes[message_id]
        self.sizes[message_id] = tokens


def _prompt_sizes(messages: Sequence[BaseMessage], groups: Iterable[Group], counter: TokenCounter) -> dict[str, int]:
    """Return the tokens of each message, by id, as a provider gets them.

    A result without a call is not sent, and a call without a result is sent with one that says so.
    """
    sizes = dict(zip((str(message.id) for message in messages), counter.sizes(messages), strict=True))
    for group in groups:
        if group.is_orphan or group.missing:
            first, *results = group.messages
            sent = sum(counter.sizes(group.legal()))
            sizes[str(first.id)] = sent - sum(sizes[str(result.id)] for result in results)
    return sizes


def as_text(message: BaseMessage) -> BaseMessage:
    """Return a message with text as content, which is what a mask can cut; it says how many attachments it had."""
    if isinstance(message.content, str):
        return message
    text, note = str(message.text), left_out(sum(map(is_attachment, message.content)))
    if isinstance(message, ToolMessage):
        # Ahead of the text, where the shortest stub shows it too.
        return message.model_copy(update={"content": f"{note}\n{text}".strip() if text else str(message.content)})
    return message.model_copy(update={"content": f"{text}\n{note}".strip()})
