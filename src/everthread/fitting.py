"""Fit messages into a window in one call: for those who want only that, without a graph and without storage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast, get_args

from langchain_core.messages import (
    BaseMessage,
    MessageLikeRepresentation,
    SystemMessage,
    ToolMessage,
)

from everthread.errors import BudgetError, SettingsError
from everthread.models.identity import tokenizer_name
from everthread.models.wrapped import ChatModel, check_chat_model, input_limit
from everthread.state import Context
from everthread.state.marks import marks
from everthread.state.messages import as_messages, reason
from everthread.window.assembly import Parts, assemble, reserved
from everthread.window.budget import Budget, reply_reserve, safety_fraction_for
from everthread.window.eviction import plan_trim
from everthread.window.tokens import TokenCounter, counter_for
from everthread.window.tool_schemas import Tool
from everthread.window.turns import question_of, split

FitPolicy: TypeAlias = Literal["token_budget", "sliding_window", "head_tail", "salience"]
"""How turns leave: every policy of `Context` but `summarize`, which needs a model and a place for its summaries."""


def fit(
    messages: Iterable[MessageLikeRepresentation],
    *,
    window: int | None = None,
    model: ChatModel | str | None = None,
    counter: TokenCounter | None = None,
    tools: Sequence[Tool] = (),
    policy: FitPolicy = "token_budget",
    pins: Sequence[str] = (),
    max_output_tokens: int | None = None,
    safety_fraction: float | None = None,
    low_watermark: float = 0.40,
    keep_last_turns: int = 3,
    keep_last_messages: int = 20,
) -> list[BaseMessage]:
    """Return the messages that one call of a model should get, within its window; pure, nothing is stored.

    Old tool results are masked first, then whole turns leave, the oldest first. The system message, the user's first
    and newest message, the newest tool round and the pins always stay, and no tool call loses its result. Whether the
    whole history is passed each time, or what the last call returned with the new messages behind it, the head moves
    only when something has to leave.

    Args:
        messages: the conversation, oldest first, a system message in front or not; not changed.
        window: input limit in tokens, from 256 to a billion; None takes that of `model`.
        model: a chat model, or a name such as `gpt-5-mini`, by which tokens are counted; None estimates them.
        counter: counts tokens instead, from `everthread.window.tokens.counter_for`.
        tools: as they are bound to the model: their schemas take room too.
        policy: which turns leave.
        pins: sentences that must be in the result word for word; those that no message shows any more come in a
            message of their own behind the user's first one.
        max_output_tokens: reply reserve; None: an eighth of the window, at most 4,096.
        safety_fraction: share of the budget that is used, in (0, 1]; None: 0.95 for exact counts, 0.60 to 0.80 for
            estimates.
        low_watermark: share of the budget down to which eviction goes, in (0, 1).
        keep_last_turns: turns that `sliding_window` keeps.
        keep_last_messages: messages that `head_tail` keeps.

    Returns:
        The messages that stay, the same objects, with stand-ins for those that were shortened and answers for calls
        that have none.

    Raises:
        SettingsError: an argument is not usable, or no message is the user's.
        BudgetError: what has to stay is over the budget; the message says by how much.
    """
    if policy not in get_args(FitPolicy):
        raise SettingsError(f"`policy` is {policy!r}; choose one of {', '.join(get_args(FitPolicy))}")
    chat = None if model is None or isinstance(model, str) else check_chat_model(model)
    limit = window or (chat and input_limit(chat))
    if not limit:
        raise SettingsError("say how many tokens the model takes in: `fit(messages, window=…)`")
    if counter is None:
        counter = counter_for(tokenizer_name(chat) if chat is not None else str(model or ""))
    if not isinstance(counter, TokenCounter):
        raise SettingsError(
            f"`counter` must be one of `everthread.window.tokens.counter_for(name)`, got {counter!r}; leave it out to "
            "count as `model` does"
        )
    context = Context(
        window=limit,
        policy=policy,
        pins=cast("tuple[str, ...]", pins),
        max_output_tokens=max_output_tokens,
        safety_fraction=safety_fraction,
        # Only eviction is done here, which has no upper watermark.
        high_watermark=_above(low_watermark),
        low_watermark=low_watermark,
        keep_last_turns=keep_last_turns,
        keep_last_messages=keep_last_messages,
    )
    if isinstance(messages, str | Mapping | BaseMessage):
        raise SettingsError(
            f'`fit` takes a list of messages, such as `state["messages"]`, got one {type(messages).__name__}'
        )
    given = as_messages(messages)
    # A block of pins from an earlier call is made again.
    rest = [message for message in given if marks(message).get("kind") != "session_notes"]
    system = rest.pop(0) if rest and isinstance(rest[0], SystemMessage) else None
    if question_of(rest) is None:
        raise SettingsError("`messages` has no message of a user, so there is nothing to answer")
    head = system if isinstance(system, SystemMessage) else SystemMessage("")
    budget = Budget(
        window=limit,
        reply_reserve=reply_reserve(limit, max_output_tokens),
        fixed={"system": counter.messages([head]), "tools": _tool_tokens(tools, counter)},
        safety_fraction=safety_fraction or safety_fraction_for(counter.accuracy, counter),
    ).check()
    parts = Parts(system=head, working_set=rest, pins=context.pins)
    left = _evicted(rest, budget.tokens - reserved(parts, counter), context, counter)
    prompt = assemble(replace(parts, working_set=left), budget, counter).messages
    return prompt if system is not None else prompt[1:]


def _above(low_watermark: object) -> float:
    """Return a high watermark that any low one is below; one that is no fraction is refused with the other dials."""
    if isinstance(low_watermark, int | float) and 0 < low_watermark < 1:
        return max(0.75, (1 + low_watermark) / 2)
    return 0.75


def _tool_tokens(tools: Sequence[Tool], counter: TokenCounter) -> int:
    """Return the tokens of all schemas.

    Raises:
        SettingsError: one is no tool.
    """
    try:
        return counter.tools(tools)
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"`tools` cannot be read: {reason(error)}; give them as they are bound to the model: tools of LangChain, "
            "functions, classes or OpenAI's JSON"
        ) from error


def _evicted(messages: Sequence[BaseMessage], room: int, context: Context, counter: TokenCounter) -> list[BaseMessage]:
    """Return what is left of a conversation, evicting where its own calls would have had to.

    Planned for the newest call alone, every call would evict a little more and move the head of the prompt.
    """
    originals = {f"{place}": message for place, message in enumerate(messages)}
    named = [message.model_copy(update={"id": name}) for name, message in originals.items()]
    groups = [group for turn in split(named) for group in turn.groups]
    left: list[BaseMessage] = []
    masked: set[str] = set()
    used = 0
    for place, group in enumerate(groups):
        left += group.messages
        used += sum(counter.sizes(group.legal()))
        is_newest = place == len(groups) - 1
        if not (is_newest or (used > room and _is_called_after(group.messages))):
            continue
        try:
            plan = plan_trim(left, room=room, context=context, counter=counter, reads_back=False)
        except BudgetError:
            if is_newest:
                raise
            continue  # an earlier prompt that could not fit is of no concern now
        left = plan.remaining(left)
        masked |= plan.masked.keys()
        used = plan.tokens_after
    return [
        message.model_copy(update={"id": originals[str(message.id)].id})
        if str(message.id) in masked
        else originals[str(message.id)]
        for message in left
    ]


def _is_called_after(group: Sequence[BaseMessage]) -> bool:
    """Tell whether the model was called with this group as the newest."""
    return group[-1].type == "human" or isinstance(group[-1], ToolMessage)
