"""Plan what leaves the working set so that the prompt holds its budget."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, ToolMessage

from everthread.errors import BudgetError
from everthread.state.context import Context
from everthread.window.masking import STUB_TOKENS, mask
from everthread.window.policies import BY_SIZE, head_tail, sliding_window, token_budget
from everthread.window.tokens import TokenCounter
from everthread.window.turns import Group, Turn, anchor_of, split

_ANCHOR_SHARE = 0.25
"""An anchor above this share of the budget is shortened, so that it never costs the recent turns."""

ANCHOR_CHARACTERS = 200
"""What is left of a shortened anchor (BEHAVIOUR §1)."""


_BY_COUNT = ("sliding_window", "head_tail")
"""Policies that evict whatever the size."""

_UNANSWERED = 200
"""Tokens that answers to cut-off calls may add to the prompt; below this distance the exact sum is taken."""


@dataclass
class Plan:
    """What trim does to the working set; empty when it fits."""

    tokens_before: int = 0
    tokens_after: int = 0
    evicted: list[BaseMessage] = field(default_factory=list)
    masked: dict[str, BaseMessage] = field(default_factory=dict)
    """Stand-ins by message id."""
    reason: str = ""


def plan_trim(
    messages: Sequence[BaseMessage],
    *,
    room: int,
    room_after: int,
    context: Context,
    counter: TokenCounter,
) -> Plan:
    """Plan what leaves the working set; nothing does while it fits.

    Args:
        messages: the working set, oldest first.
        room: tokens that the messages may take as things stand.
        room_after: tokens that they may take once something has left, when the summary has grown.
        context: policy and watermarks.
        counter: counts tokens.

    Raises:
        BudgetError: the newest message of the user, the anchor and the newest tool round do not fit.
    """
    used = sum(map(counter.message, messages))
    if used <= room - _UNANSWERED and context.policy not in _BY_COUNT:
        return Plan(tokens_before=used, tokens_after=used)
    planner = Planner(messages, budget=room_after, context=context, counter=counter)
    if planner.tokens <= room:
        # Only the policies that count turns have anything to do.
        planner = Planner(messages, budget=room, context=context, counter=counter)
    return planner.run()


class Planner:
    """Plan one trim. Every step is skipped once the working set fits.

    Args:
        messages: the working set, oldest first.
        budget: tokens that the working set may take.
        context: policy and watermarks.
        counter: counts tokens.
    """

    def __init__(
        self, messages: Sequence[BaseMessage], *, budget: int, context: Context, counter: TokenCounter
    ) -> None:
        self._counter = counter
        self._context = context
        self._budget = budget
        self._target = int(budget * context.low_watermark)
        self._turns = split(messages)
        self._anchor = anchor_of(messages)
        self._gone: set[str] = set()
        self._order = [str(message.id) for message in messages]
        self._all = {str(message.id): message for message in messages}
        self._tokens = sum(turn.tokens(counter.message) for turn in self._turns)
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
        self.plan.evicted = [self._all[key] for key in self._order if key in self._gone]
        self.plan.masked = {key: value for key, value in self.plan.masked.items() if key not in self._gone}
        if self._tokens > self._budget:
            self._refuse()
        return self.plan

    @property
    def tokens(self) -> int:
        """Tokens of the working set, as the plan leaves it so far."""
        return self._tokens

    @property
    def _fits(self) -> bool:
        return self._tokens <= self._budget

    def _by_count(self) -> None:
        """Apply the policies that count turns or messages whatever their size."""
        turns = self._turns
        gone: list[int] = []
        if self._context.policy == "sliding_window":
            gone = sliding_window(turns, self._context.keep_last_turns)
        elif self._context.policy == "head_tail":
            gone = head_tail(turns, self._context.keep_last_messages)
        for index in gone:
            self._evict(turns[index].groups)
        if self._gone:
            self.plan.reason = f"policy {self._context.policy}"

    def _mask_earlier_results(self) -> None:
        for turn in self._turns[:-1]:
            for group in turn.groups:
                if self._tokens <= self._target:
                    return
                self._mask_results(group, STUB_TOKENS)

    def _evict_earlier_turns(self) -> None:
        if self._fits:
            return
        # The anchor stays; what is left of the target is for turns.
        budget = self._target - self._size(self._anchor) if self._anchor_is_old else self._target
        # A policy may hold on to more than fits; then age decides.
        for policy in (BY_SIZE[self._context.policy], token_budget):
            turns = [self._view(turn) for turn in self._turns]
            for index in policy(turns, max(budget, 0), self._counter.message):
                self._evict(self._turns[index].groups)
            if self._fits:
                return

    def _mask_current_turn(self) -> None:
        if self._fits:
            return
        for group in self._turns[-1].groups[:-1]:
            if self._tokens <= self._target:
                return
            self._mask_results(group, STUB_TOKENS)

    def _shorten_anchor(self) -> None:
        anchor = self._anchor
        if self._fits or anchor is None or not self._anchor_is_old:
            return
        if self._size(anchor) > self._budget * _ANCHOR_SHARE and len(str(anchor.text)) > ANCHOR_CHARACTERS:
            self._replace(anchor, mask(anchor, ANCHOR_CHARACTERS // 4, self._counter.text))

    def _evict_current_rounds(self) -> None:
        """Let older tool rounds of the current turn go, the oldest first; question and newest round stay."""
        if self._fits:
            return
        current = self._turns[-1]
        for group in current.groups[1 if current.question else 0 : -1]:
            if self._tokens <= self._target:
                return
            if not group.unanswered:
                self._evict((group,))

    def _mask_newest_round(self) -> None:
        """Cut the newest results to an equal share of what is left, as often as it takes."""
        group = self._turns[-1].groups[-1]
        share = self._context.tool_output_tokens
        while not self._fits and group.results and share >= STUB_TOKENS // 2:
            share //= 2
            self._mask_results(group, share)

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

    def _current(self, message: BaseMessage) -> BaseMessage:
        return self.plan.masked.get(str(message.id), message)

    def _size(self, message: BaseMessage | None) -> int:
        return 0 if message is None else self._counter.message(self._current(message))

    def _view(self, turn: Turn) -> Turn:
        """Return a turn as it stands: masked, without what is gone, and without the anchor, which stays."""
        groups = []
        for group in turn.groups:
            left = tuple(
                self._current(message)
                for message in group.messages
                if str(message.id) not in self._gone and not (self._anchor_is_old and message is self._anchor)
            )
            if left:
                groups.append(Group(left))
        return Turn(tuple(groups))

    def _evict(self, groups: Sequence[Group]) -> None:
        for group in groups:
            # An anchor is the only message of its group.
            if group.messages[0] is self._anchor or str(group.messages[0].id) in self._gone:
                continue
            standing = Group(tuple(self._current(message) for message in group.messages))
            self._tokens -= sum(self._counter.message(message) for message in standing.legal())
            self._gone.update(str(message.id) for message in group.messages)

    def _mask_results(self, group: Group, limit: int) -> None:
        for result in group.results:
            if str(result.id) in self._gone:
                continue
            standing = self._current(result)
            # A masked result is some forty tokens larger than its limit; below that nothing is won.
            if self._counter.text(str(standing.text)) > limit + 40:
                self._replace(result, mask(_with_text(standing), limit, self._counter.text))

    def _replace(self, message: BaseMessage, stand_in: BaseMessage) -> None:
        self._tokens += self._counter.message(stand_in) - self._size(message)
        self.plan.masked[str(message.id)] = stand_in


def _with_text(message: BaseMessage) -> BaseMessage:
    """Return a tool result with text as content, which is what a mask can cut."""
    if isinstance(message, ToolMessage) and not isinstance(message.content, str):
        return message.model_copy(update={"content": str(message.text) or str(message.content)})
    return message
