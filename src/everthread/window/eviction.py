"""Plan what leaves the working set so that the prompt holds its budget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, ToolMessage

from everthread.errors import BudgetError
from everthread.state.context import Context
from everthread.state.marks import is_kept
from everthread.window.masking import STUB_IDENTIFIERS, STUB_TOKENS, mask, stubs
from everthread.window.policies import BY_SIZE, head_tail, sliding_window, token_budget
from everthread.window.tokens import TokenCounter
from everthread.window.turns import Turn, anchor_of, opens_turn, split

_ANCHOR_SHARE = 0.25
"""An anchor above this share of the budget is shortened, so that it never costs the recent turns."""

ANCHOR_CHARACTERS = 200
"""What is left of a shortened anchor (BEHAVIOUR §1)."""


BY_COUNT = ("sliding_window", "head_tail")
"""Policies that evict whatever the size."""

_LONGEST_STUB = STUB_TOKENS + STUB_IDENTIFIERS + 40
"""A result of this many tokens wins nothing as a stub."""

_SMALLEST_SHARE = 60
"""Tokens below which the results of the newest round are not cut any further."""

UNANSWERED = 200
"""Tokens that answers to cut-off calls may add to the prompt; below this distance the exact sum is taken."""


_SUFFIX = ("token_budget", "summarize")
"""Policies that keep the newest turns, so that what is too old goes unseen."""

_COUNTED = 1_000
"""Messages that leave unseen and are still counted for the event."""

_CHARACTERS_PER_TOKEN = 4

_STRETCH = 64
"""Messages that are counted together."""


@dataclass
class Plan:
    """What trim does to the working set; empty when it fits."""

    tokens_before: int = 0
    """Of the whole working set; an estimate when more than a thousand messages leave at once."""
    tokens_after: int = 0
    evicted: list[BaseMessage] = field(default_factory=list)
    masked: dict[str, BaseMessage] = field(default_factory=dict)
    """Stand-ins by message id."""
    reason: str = ""


def plan_trim(messages: Sequence[BaseMessage], *, room: int, context: Context, counter: TokenCounter) -> Plan:
    """Plan what leaves the working set; nothing does while it fits.

    Args:
        messages: the working set, oldest first.
        room: tokens that the messages may take.
        context: policy and watermarks.
        counter: counts tokens.

    Raises:
        BudgetError: the newest message of the user, the anchor and the newest tool round do not fit.
    """
    if context.policy in BY_COUNT:
        return Planner(messages, budget=room, context=context, counter=counter).run()
    sizes = _Sizes(messages, counter)
    used = sizes.total_up_to(room - UNANSWERED)
    if used is not None:
        return Plan(tokens_before=used, tokens_after=used)
    hopeless = _hopeless(messages, sizes, room) if context.policy in _SUFFIX else 0
    anchor = _anchored(messages, hopeless)
    plan = Planner(
        [*anchor, *messages[hopeless:]],
        budget=room,
        context=context,
        counter=counter,
        sizes=[*counter.sizes(anchor), *sizes.since(hopeless)],
    )
    return _with_prefix(plan.run(), messages[:hopeless], counter)


class _Sizes:
    """Sizes of messages: the newest are counted first, a stretch at a time, each once and none that nobody asks for."""

    def __init__(self, messages: Sequence[BaseMessage], counter: TokenCounter) -> None:
        self._messages = messages
        self._counter = counter
        self._known: list[list[int]] = []

    def stretches(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the place of each stretch and its sizes, the newest stretch first."""
        for number, end in enumerate(range(len(self._messages), 0, -_STRETCH)):
            begin = max(end - _STRETCH, 0)
            if number == len(self._known):
                self._known.append(self._counter.sizes(self._messages[begin:end]))
            yield begin, self._known[number]

    def total_up_to(self, limit: int) -> int | None:
        """Return the tokens of all messages; None as soon as they are over the limit."""
        used = 0
        for _, sizes in self.stretches():
            used += sum(sizes)
            if used > limit:
                return None
        return used

    def since(self, place: int) -> list[int]:
        """Return the sizes of the messages from a place on."""
        found: list[int] = []
        for begin, sizes in self.stretches():
            found = sizes[max(place - begin, 0) :] + found
            if begin <= place:
                break
        return found


def _hopeless(messages: Sequence[BaseMessage], sizes: _Sizes, room: int) -> int:
    """Return how many of the oldest messages can never stay, even with every tool result as a stub.

    Only the newest messages are looked at: a thread that comes from elsewhere may have ten thousand.
    """
    left = room
    for begin, stretch in sizes.stretches():
        for place, size in zip(range(begin + len(stretch) - 1, begin - 1, -1), reversed(stretch), strict=True):
            left -= STUB_TOKENS if size > STUB_TOKENS and isinstance(messages[place], ToolMessage) else size
            if left < 0 and opens_turn(messages[place]):
                return place
    return 0


def _anchored(messages: Sequence[BaseMessage], hopeless: int) -> list[BaseMessage]:
    """Return the anchor when it is among the messages that go: it alone stays."""
    anchor = anchor_of(messages[:hopeless]) if hopeless else None
    return [] if anchor is None else [anchor]


def _with_prefix(plan: Plan, prefix: Sequence[BaseMessage], counter: TokenCounter) -> Plan:
    """Add the messages that were never looked at; the size of very many of them is estimated."""
    if not prefix:
        return plan
    anchor = anchor_of(prefix)
    gone = [message for message in prefix if message is not anchor]
    if len(gone) <= _COUNTED:
        plan.tokens_before += sum(counter.sizes(gone))
    else:
        plan.tokens_before += sum(len(message.content) for message in gone) // _CHARACTERS_PER_TOKEN
    plan.evicted = [*gone, *plan.evicted]
    return plan


class Planner:
    """Plan one trim. Every step is skipped once the working set fits.

    Args:
        messages: the working set, oldest first.
        budget: tokens that the working set may take.
        context: policy and watermarks.
        counter: counts tokens.
        sizes: of the messages, when they are known.
    """

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        *,
        budget: int,
        context: Context,
        counter: TokenCounter,
        sizes: Sequence[int] | None = None,
    ) -> None:
        self._counter = counter
        self._stubs = stubs(counter)
        self._context = context
        self._budget = budget
        self._target = int(budget * context.low_watermark)
        self._turns = split(messages)
        self._anchor = anchor_of(messages)
        self._gone: set[str] = set()
        self._messages = messages
        self._all = {str(message.id): message for message in messages}
        # By identity, which an id that stands twice would not tell apart; a stand-in is added when it is made.
        self._known = dict(zip(map(id, messages), counter.sizes(messages) if sizes is None else sizes, strict=True))
        # Sizes by group, kept up to date: every message is counted once.
        self._sizes = list(map(self._measure, self._turns))
        self._tokens = sum(map(sum, self._sizes))
        self.plan = Plan(tokens_before=self._tokens)

    def run(self) -> Plan:
        """Return what has to leave.

        Raises:
            BudgetError: the newest message of the user, the anchor and the newest tool round do not fit.
        """
        self._by_count()
        if self._tokens > self._budget:
            self.plan.reason = "over budget"
            self._mask_earlier_results()
            self._evict_earlier_turns()
            self._mask_current_turn()
            self._shorten_anchor()
            self._evict_current_rounds()
            self._mask_newest_round()
        self.plan.tokens_after = self._tokens
        if self._gone:
            self.plan.evicted = [self._all[key] for one in self._messages if (key := str(one.id)) in self._gone]
            self.plan.masked = {key: value for key, value in self.plan.masked.items() if key not in self._gone}
        if self._tokens > self._budget:
            self._refuse()
        return self.plan

    @property
    def _fits(self) -> bool:
        return self._tokens <= self._budget

    def _by_count(self) -> None:
        """Apply the policies that count turns or messages whatever their size."""
        gone: list[int] = []
        if self._context.policy == "sliding_window":
            gone = sliding_window(self._turns, self._context.keep_last_turns)
        elif self._context.policy == "head_tail":
            gone = head_tail(self._turns, self._context.keep_last_messages)
        for turn in gone:
            self._evict_turn(turn)
        if self._gone:
            self.plan.reason = f"policy {self._context.policy}"

    def _mask_earlier_results(self) -> None:
        earlier = enumerate(self._turns[:-1])
        places = [
            (turn, group)
            for turn, told in earlier
            for group, one in enumerate(told.groups)
            if len(one.messages) > 1 or one.is_orphan
        ]
        # What had to be fetched twice is masked last.
        for missed in (False, True):
            for turn, group in places:
                if self._tokens <= self._target:
                    return
                self._stub_results(turn, group, missed=missed)

    def _evict_earlier_turns(self) -> None:
        if self._fits:
            return
        # The anchor stays; what is left of the target is for turns.
        anchor = self._size(self._anchor) if self._anchor_is_old else 0
        # A policy may hold on to more than fits; then age decides.
        for policy in (BY_SIZE[self._context.policy], token_budget):
            sizes = [sum(groups) for groups in self._sizes]
            if anchor:
                sizes[self._anchor_turn] -= anchor
            for turn in policy(self._turns, sizes, max(self._target - anchor, 0)):
                self._evict_turn(turn)
            if self._fits:
                return

    def _mask_current_turn(self) -> None:
        if self._fits:
            return
        for group in range(len(self._turns[-1].groups) - 1):
            if self._tokens <= self._target:
                return
            self._stub_results(-1, group)

    def _shorten_anchor(self) -> None:
        anchor = self._anchor
        if self._fits or anchor is None or not self._anchor_is_old:
            return
        is_long = not isinstance(anchor.content, str) or len(anchor.content) > ANCHOR_CHARACTERS
        if self._size(anchor) > self._budget * _ANCHOR_SHARE and is_long:
            groups = self._turns[self._anchor_turn].groups
            place = next(place for place, group in enumerate(groups) if group.messages[0] is anchor)
            shortened = mask(_with_text(anchor), ANCHOR_CHARACTERS // 4, self._counter)
            self._replace(self._anchor_turn, place, shortened, self._counter.message(shortened))

    def _evict_current_rounds(self) -> None:
        """Let older tool rounds of the current turn go, the oldest first; question and newest round stay."""
        if self._fits:
            return
        current = self._turns[-1]
        for group in range(1 if current.question else 0, len(current.groups) - 1):
            if self._tokens <= self._target:
                return
            if not current.groups[group].unanswered:
                self._evict(-1, group)

    def _mask_newest_round(self) -> None:
        """Cut the newest results to an equal share of what is left, as often as it takes."""
        share = self._context.tool_output_tokens
        while not self._fits and self._turns[-1].groups[-1].results and share >= _SMALLEST_SHARE:
            share //= 2
            self._mask_results(-1, -1, share)

    def _refuse(self) -> None:
        question = self._turns[-1].groups[0].messages[0]
        raise BudgetError(
            f"what must stay needs {self._tokens:,} tokens but the budget for the conversation is {self._budget:,} "
            f"(the newest message alone has {self._size(question):,}); shorten the message or raise `window` by at "
            f"least {self._tokens - self._budget:,}"
        )

    @property
    def _anchor_is_old(self) -> bool:
        return self._anchor is not None and self._anchor is not self._turns[-1].groups[0].messages[0]

    @property
    def _anchor_turn(self) -> int:
        """Index of the turn that the anchor opens: the first that has a question."""
        return next(index for index, turn in enumerate(self._turns) if turn.question is not None)

    def _current(self, message: BaseMessage) -> BaseMessage:
        return self.plan.masked.get(str(message.id), message)

    def _size(self, message: BaseMessage | None) -> int:
        return 0 if message is None else self._known[id(self._current(message))]

    def _measure(self, turn: Turn) -> list[int]:
        """Return the size of each group of a turn, as a provider gets it."""
        known, sizes = self._known, []
        for group in turn.groups:
            size = 0
            if group.missing:
                # An answer that is missing is no message of the working set.
                size = sum(known.get(id(message)) or self._counter.message(message) for message in group.legal())
            elif not group.is_orphan:
                for message in group.messages:
                    size += known[id(message)]
            sizes.append(size)
        return sizes

    def _evict_turn(self, turn: int) -> None:
        for group in range(len(self._turns[turn].groups)):
            self._evict(turn, group)

    def _evict(self, turn: int, group: int) -> None:
        messages = self._turns[turn].groups[group].messages
        # An anchor is the only message of its group.
        if messages[0] is self._anchor or str(messages[0].id) in self._gone:
            return
        self._tokens -= self._sizes[turn][group]
        self._sizes[turn][group] = 0
        self._gone.update(str(message.id) for message in messages)

    def _stub_results(self, turn: int, group: int, *, missed: bool | None = None) -> None:
        for result in self._turns[turn].groups[group].results:
            if missed is not None and is_kept(result) is not missed:
                continue
            standing = self._current(result)
            if self._is_longer(standing, _LONGEST_STUB):
                self._replace(turn, group, *self._stubs(_with_text(standing)))

    def _mask_results(self, turn: int, group: int, limit: int) -> None:
        for result in self._turns[turn].groups[group].results:
            standing = self._current(result)
            # A masked result is some forty tokens larger than its limit; below that nothing is won.
            if self._is_longer(standing, limit + 40):
                shortened = mask(_with_text(standing), limit, self._counter)
                self._replace(turn, group, shortened, self._counter.message(shortened))

    def _is_longer(self, message: BaseMessage, limit: int) -> bool:
        """Tell whether the text of a message has more tokens than the limit, and is still here."""
        is_gone = bool(self._gone) and str(message.id) in self._gone
        return not is_gone and self._counter.text_of(message, self._known[id(message)]) > limit

    def _replace(self, turn: int, group: int, stand_in: BaseMessage, size: int) -> None:
        key = str(stand_in.id)
        won = self._known[id(self.plan.masked.get(key, self._all[key]))] - size
        self._tokens -= won
        self._sizes[turn][group] -= won
        self._known[id(stand_in)] = size
        self.plan.masked[key] = stand_in


def _with_text(message: BaseMessage) -> BaseMessage:
    """Return a message with text as content, which is what a mask can cut."""
    if isinstance(message.content, str):
        return message
    blocks = sum(not isinstance(block, str) and block.get("type") != "text" for block in message.content)
    text = str(message.text)
    if isinstance(message, ToolMessage):
        return message.model_copy(update={"content": text or str(message.content)})
    return message.model_copy(update={"content": f"{text}\n[{blocks} attachments left out]".strip()})
