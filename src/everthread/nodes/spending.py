"""Keep the calls of a run inside what may be spent: reserve each one, ask at a limit, count what it took.

Where nothing is set, nothing is done: no read, no write.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from everthread.errors import SettingsError, SpendError
from everthread.ledger.events import ModelCalled, SpendGranted, SpendRefused
from everthread.ledger.record import record, recorded
from everthread.memory.text.consent import approves
from everthread.models.calls import ModelCall, ModelCalls
from everthread.models.identity import provider as provider_of
from everthread.models.identity import tokenizer_name
from everthread.models.wrapped import ChatModel, chat_models, input_limit
from everthread.nodes.deps import NodeDeps, context_of
from everthread.nodes.failures import classify
from everthread.nodes.nested import own_store
from everthread.nodes.sizes import PromptSize, calibration_of
from everthread.spend.counters import Counters, Over, Reservation
from everthread.spend.prices import PriceList
from everthread.spend.usage import Usage, reported_usage
from everthread.state import Context, Spend, State, namespaces
from everthread.state.marks import ended_at_limit, marked
from everthread.state.spend import is_amount
from everthread.window.budget import UNKNOWN_WINDOW, reply_reserve, safety_fraction_for
from everthread.window.calibration import Calibration
from everthread.window.tokens import TokenCounter, counter_for

_MAY_BE_BILLED = frozenset({"timeout", "dropped"})
"""Failures of a call that the provider may have answered."""

_SCHEMA_TOKENS = 500
"""For the schema of a structured reply, which is sent along."""

_AMOUNT = re.compile(
    r"(?P<before>[$€£]|[A-Z]{3})?\s{0,3}"
    # `1,000` is a thousand, `0,50` a half.
    r"(?:(?P<thousands>[1-9]\d{0,2}(?:,\d{3}){1,2}(?:\.\d{1,6})?)|(?P<plain>\d{1,9}(?:[.,]\d{1,6})?))"
    r"\s{0,3}(?P<after>[$€£]|[A-Za-z]{3})?"
)
_SIGNS = {"$": {"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN"}, "€": {"EUR"}, "£": {"GBP"}}
_SPANS = {"thread": "in this thread", "user_day": "today"}

NodeT = TypeVar("NodeT", bound=Callable[..., ModelCalls[Any]])
T = TypeVar("T")


def metered(node: NodeT) -> NodeT:
    """Count the calls of a node that works behind the reply, and refuse those that would pass a limit.

    Nobody is asked there: the node gets a `SpendError` in the place of a reply, and does without.
    """

    @wraps(node)
    def run(state: State, runtime: Runtime[Context], deps: NodeDeps, **options: Any) -> ModelCalls[Any]:
        calls = node(state, runtime, deps, **options)
        account = Account.of(state, runtime, deps)
        return (yield from calls if account is None else account.made(calls, node.__name__))

    return cast(NodeT, run)


def limit_reply(text: str, state: State) -> AIMessage:
    """Return the reply of a turn that ends at a limit."""
    name = f"refused-{state.get('turns', 0)}-{len(state.get('messages', []))}"
    return marked(AIMessage(text, id=name), refused=True)


@dataclass(frozen=True)
class Account:
    """What the calls of a run are counted on."""

    counters: Counters
    spend: Spend
    deps: NodeDeps
    state: State
    context: Context
    task_id: str
    write: Any

    @classmethod
    def of(cls, state: State, runtime: Runtime[Context], deps: NodeDeps) -> "Account | None":
        """Return the account of a run; None when nothing is counted.

        Raises:
            SettingsError: there is a limit, and no store or thread on which to count.
        """
        spend = deps.agent.spend
        if spend is None:
            return None
        here: Any = runtime
        if here.store is None or here.execution_info is None or here.execution_info.thread_id in (None, "none"):
            # Inside another graph a node may have a thread of its own, which keeps nothing.
            here = get_runtime()
        store, info = own_store(here), here.execution_info
        configurable = ensure_config().get("configurable", {})
        thread_id = configurable.get("thread_id")
        if thread_id is None and info is not None:
            thread_id = info.thread_id
        if store is None or not namespaces.is_named(thread_id):
            if spend.limits:
                raise SettingsError("`spend` has a limit, so the run needs a store and a `thread_id` to count on")
            return None
        context = context_of(runtime)
        currency = deps.prices.currency if deps.prices is not None else Counters.currency
        counters = Counters(store, context.user_id, str(thread_id), currency)
        return cls(counters, spend, deps, state, context, info.task_id if info else "", here.stream_writer)

    def reply(self, size: PromptSize, tokens: int) -> "Reservation | str":
        """Reserve the call that answers; ask while it would pass a limit.

        Returns:
            The reservation; or the reply of a turn that ends here.

        Raises:
            SettingsError: there is a limit, and the model has no price.
            GraphInterrupt: somebody is asked.
        """
        model = self.deps.model_for(self.context)
        reserve = size.budget.reply_reserve
        inputs = min(_at_most(tokens, calibration_of(self.state, model), size.counter), size.budget.window)
        most = self._most(model.chat, model.provider, model.name, inputs, reserve)
        if most is None:
            raise SettingsError(no_price(model.provider, model.name))
        call = {"model": model.name, "purpose": "reply", "most": round(most, 9), "input_tokens": inputs}
        call |= {"output_tokens": reserve, "is_bound": self.context.max_output_tokens is not None}
        ask = partial(self._question, call=call)
        for answered in range(1_000):
            outcome = self.counters.reserve(
                self.spend.limits,
                most,
                purpose="reply",
                model=model.name,
                ask=(self.task_id, answered, ask) if self.spend.asks else None,
            )
            if isinstance(outcome, Reservation):
                return outcome
            over, question = outcome
            if question is None:
                return self._ended(self._question(over, call), "limit")
            granted = self._granted(interrupt(question), question)
            if not granted:
                return self._ended(question, "user")
            self._grant(granted, answered)
        raise SpendError("a thousand grants were not enough for one call")

    def _grant(self, granted: Mapping[str, float], answered: int) -> None:
        """Raise limits, with the event, unless an earlier run of this task has."""
        event = SpendGranted(amounts=dict(granted), currency=self._currency)
        puts, tell = recorded(self.counters.thread_id, [event], write=self.write, turn=self._turn)
        name, asked = f"{self.task_id}-{answered}", (self.task_id, answered)
        if self.counters.grant(granted, name, asked=asked, operations=puts):
            tell()

    def made(self, calls: ModelCalls[T], purpose: str) -> ModelCalls[T]:
        """Make the calls of a generator that fit, one after the other; see `metered`."""
        try:
            call = next(calls)
            while True:
                try:
                    reservation = self._reserved(call, purpose)
                except SpendError as refused:
                    call = calls.throw(refused)
                    continue
                try:
                    reply = yield call
                except Exception as error:  # noqa: BLE001 - the node decides what a failure means
                    self.failed(reservation, error)
                    call = calls.throw(error)
                else:
                    self.settle(reservation, reply, call.prompt, *self.deps.summarizer_name)
                    call = calls.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    def settle(
        self, made: Reservation, reply: object, prompt: Sequence[BaseMessage], provider: str, name: str, call: str = ""
    ) -> None:
        """Count a call that was answered.

        Args:
            reply: what came back; the message, or with it what a client has parsed.
            prompt: what was sent, counted where the provider reports nothing.
        """
        message: Any = reply.get("raw") if isinstance(reply, Mapping) else reply
        usage = reported_usage(getattr(message, "usage_metadata", None))
        if usage is None or not usage.total_input:
            # Some servers report the reply alone, and no prompt is empty.
            counter = counter_for(name)
            output = counter.message(message) if isinstance(message, BaseMessage) else 0
            usage = replace(usage or Usage(output=output), input=sum(counter.sizes(prompt)), is_counted=True)
        # A fallback or a router may have answered with another model than the one that was asked.
        metadata = getattr(message, "response_metadata", None) or {}
        answered = str(metadata.get("model_name") or metadata.get("model") or name)
        cost = self._prices.cost(provider, answered, usage)
        if cost is None:
            answered, cost = name, self._prices.cost(provider, name, usage)
        event = ModelCalled(
            purpose=made.purpose,
            model=answered,
            input=usage.input,
            cached=usage.cached,
            cache_write=usage.cache_write,
            output=usage.output,
            reasoning=usage.reasoning,
            by="count" if usage.is_counted else "provider",
            cost=cost,
            currency=self._currency,
            call=call,
            response=str(metadata.get("id") or getattr(message, "id", None) or ""),
        )
        puts, tell = recorded(self.counters.thread_id, [event], write=self.write, turn=self._turn)
        self.counters.settle(made, usage, cost, model=answered, operations=puts)
        tell()

    def failed(self, made: Reservation, error: Exception) -> None:
        """Take back the reservation of a call that failed, unless the provider may have answered it."""
        failure = classify(error)
        if failure is None or failure.kind not in _MAY_BE_BILLED:
            self.counters.release(made)

    def _reserved(self, call: ModelCall, purpose: str) -> Reservation:
        """Reserve a call behind the reply.

        Raises:
            SpendError: it is not to be made.
        """
        provider, name = self.deps.summarizer_name
        counter = counter_for(name)
        tokens = sum(counter.sizes(call.prompt)) + _SCHEMA_TOKENS
        window = input_limit(self.deps.summarizer) or UNKNOWN_WINDOW
        inputs, reserve = _at_most(tokens, Calibration(), counter), reply_reserve(window, None)
        most = self._most(self.deps.summarizer, provider, name, inputs, reserve)
        messages = self.state.get("messages", [])
        if most is None:
            raise self._not_made(purpose, name, "price", no_price(provider, name))
        if messages and ended_at_limit(messages[-1]):
            raise self._not_made(purpose, name, "user", "the turn ended at a limit")
        outcome = self.counters.reserve(self.spend.limits, most, purpose=purpose, model=name)
        if isinstance(outcome, Reservation):
            return outcome
        over, _ = outcome
        raise self._not_made(purpose, name, "limit", _reason_of(over, most, self._currency), most)

    def _not_made(self, purpose: str, model: str, by: Any, reason: str, most: float = 0.0) -> SpendError:
        self._record_refusal(purpose, model, by, reason, most)
        return SpendError(reason)

    def _ended(self, question: Mapping[str, Any], by: Any) -> str:
        reason = str(question["reason"])
        call = question["next_call"]
        self._record_refusal("reply", call["model"], by, reason, call["most"])
        return f"I stopped here: {reason}. Nothing more was asked of the model."

    def _question(self, over: Sequence[Over], call: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an interrupt asks."""
        reason = _reason_of(over, call["most"], self._currency)
        grants = {one.limit: self._usual_grant(one, call["most"]) for one in over}
        more = " and ".join(f"{amount:,.2f} {self._currency} more {_SPANS[name]}" for name, amount in grants.items())
        return {
            "type": "spend",
            "summary": f"{reason[:1].upper()}{reason[1:]}. Spend up to {more}? Answer yes, no or an amount.",
            "reason": reason,
            "limits": [one.as_json() for one in over],
            "next_call": dict(call),
            "currency": self._currency,
            "grant": grants,
        }

    def _usual_grant(self, over: Over, most: float) -> float:
        """Return what a plain yes adds: enough for the next call in any case."""
        missing = over.spent + over.under_way + most - over.allowed
        return max(self.spend.grant or over.size, math.ceil(missing * 100) / 100)

    def _granted(self, answer: object, question: Mapping[str, Any]) -> dict[str, float]:
        """Return what an answer grants, by limit; empty when it grants nothing. What is no clear yes is none."""
        if isinstance(answer, Mapping):
            answer = answer.get("grant")
        if isinstance(answer, str) and (amount := amount_of(answer, self._currency)) is not None:
            answer = amount
        if isinstance(answer, bool | str):
            is_yes = answer if isinstance(answer, bool) else approves(answer)
            return dict(question["grant"]) if is_yes else {}
        if is_amount(answer) and answer > 0:
            return dict.fromkeys(question["grant"], float(answer))
        return {}

    def _most(self, chat: ChatModel, provider: str, name: str, inputs: int, outputs: int) -> float | None:
        """Return what a call costs at the most, by the dearest model that may answer it.

        A fallback without a price counts like the model that is asked, which is how `settle` counts its reply.

        Args:
            chat: the model, with its fallbacks.
            provider: of the model that is asked first.
            name: of that model.
            inputs: tokens of the prompt.
            outputs: tokens of the reply.

        Returns:
            None when there is a limit and nobody knows the price.
        """
        price = self._prices.find(provider, name)
        if price is None:
            return None if self.spend.limits else 0.0
        fallbacks = [self._prices.find(provider_of(one), tokenizer_name(one) or "") for one in chat_models(chat)[1:]]
        return max(one.for_input(inputs).most(inputs, outputs) for one in (price, *fallbacks) if one is not None)

    def _record_refusal(self, purpose: str, model: str, by: Any, reason: str, most: float) -> None:
        event = SpendRefused(purpose=purpose, model=model, by=by, reason=reason, most=most)
        record(self.counters.store, self.counters.thread_id, [event], write=self.write, turn=self._turn)

    @property
    def _turn(self) -> int:
        return self.state.get("turns", 0)

    @property
    def _prices(self) -> PriceList:
        return cast(PriceList, self.deps.prices)

    @property
    def _currency(self) -> str:
        return str(self._prices.currency)


def amount_of(text: str, currency: str) -> float | None:
    """Return the amount of money that a reply names, such as `2.50` or `2.50 USD`; None when it says anything else.

    Args:
        text: the reply.
        currency: that of the prices; an amount in another one is none.
    """
    said = _AMOUNT.fullmatch(text.strip())
    if said is None:
        return None
    named = [_SIGNS.get(name, {name.upper()}) for name in (said["before"], said["after"]) if name]
    if not all(currency.upper() in one for one in named):
        return None
    return float(said["thousands"].replace(",", "") if said["thousands"] else said["plain"].replace(",", "."))


def no_price(provider: str, name: str) -> str:
    """Say what to do about a model without a price."""
    return (
        f"`spend` has a limit, and the model {name!r} of {provider or 'its provider'} has no price; add one to a file "
        'of your own: `Spend(prices="prices.yaml")` or EVERTHREAD_PRICES'
    )


def _at_most(tokens: int, calibration: Calibration, counter: TokenCounter) -> int:
    """Return what the provider counts at the most for a prompt of so many tokens of ours."""
    margin = safety_fraction_for(calibration.accuracy, counter)
    return math.ceil(calibration.apply(tokens) / margin)


def _reason_of(over: Sequence[Over], most: float, currency: str) -> str:
    """Say what is spent, and what the next call costs."""
    parts = []
    for one in over:
        under_way = f" and {_money(one.under_way)} are under way" if one.under_way else ""
        span = _SPANS[one.limit]
        parts.append(f"{_money(one.spent)} of {one.allowed:,.2f} {currency} are spent {span}{under_way}")
    return f"{', '.join(parts)}, and the next call costs up to {_money(most)} {currency}"


def _money(amount: float) -> str:
    """Write an amount; a small one with the digits that tell something."""
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}"
