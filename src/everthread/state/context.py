"""The dials of a run, validated when they are set."""

import dataclasses
import difflib
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from everthread.errors import SettingsError
from everthread.state import namespaces

PolicyName = Literal["sliding_window", "head_tail", "token_budget", "salience", "summarize"]
"""How messages leave the working set; see docs/window.md.

`window.eviction.plan_trim` evicts by them and asks `window.policies` which turns; for `summarize`, `nodes.summarize`
compacts before that is needed.
"""

DistillationMode = Literal["tool", "turn", "session"]
"""When session notes are made; see docs/memory.md."""

Distiller = Literal["rules", "model"]
"""Who reads the user's messages for notes in `turn` and `session`; see docs/memory.md."""

Guard = Literal["rules", "model"]
"""Who has to allow a note: the rules, or the rules and a model; see docs/guard.md."""

RecallThreads = Literal["this", "mine"]
"""Which threads recall searches; see docs/recall.md."""

_MODEL = re.compile(r"offline|[\w-]{1,60}:\S+")

LARGEST_WINDOW = 1_000_000_000
"""A hundred times what any model takes; far above it, sizes are no longer exact as floats."""

POLICIES: tuple[str, ...] = get_args(PolicyName)


@dataclass(frozen=True)
class Context:
    """Dials of one run; JSON-friendly, frozen, checked on creation.

    Raises:
        SettingsError: a value is out of range or two values contradict each other.
    """

    __pydantic_config__ = ConfigDict(title="Context", use_attribute_docstrings=True)

    user_id: str = "local"
    """Whose profile and notes are used. Any non-empty text without NUL or lone surrogates; every character counts."""

    model: str | None = None
    """`provider:name` for this run only; None keeps the graph's model."""

    window: int | None = None
    """Input limit of the model in tokens, from 256 to a billion; None takes the model's own profile."""

    max_output_tokens: int | None = None
    """Reply reserve in tokens, at least 1; None: an eighth of the window, at most 4,096. Sent to the model when set."""

    safety_fraction: float | None = None
    """Share of the budget that is used, in (0, 1]; None: 0.95 when counts are exact or anchored, else 0.60 to 0.80."""

    policy: PolicyName = "summarize"
    """How messages leave the working set."""

    high_watermark: float = 0.75
    """Share of the budget at which compaction starts, in (0, 1); at 1 it would fire only after a call had failed."""

    low_watermark: float = 0.40
    """Share of the budget down to which eviction and compaction go, in (0, 1), below `high_watermark`."""

    keep_last_turns: int = 3
    """Turns kept word for word by `summarize` and `sliding_window`, at least 1."""

    keep_last_messages: int = 20
    """Messages kept by `head_tail`, at least 1; the cut moves forward to a legal point."""

    context_limit: int | None = None
    """Turns above which `summarize` compacts whatever the tokens, above `keep_last_turns`; None: tokens only."""

    tool_output_tokens: int = 2000
    """Tool results above this many tokens keep head, tail and a handle; at least 64."""

    recall_tokens: int = 1000
    """Tokens for evicted messages that the current question needs, placed just before it and kept; 0 recalls none."""

    recall_threads: RecallThreads = "this"
    """Where recall looks: in `this` thread, or in all threads of the user (`mine`)."""

    notes_tokens: int = 600
    """Tokens for long-term notes and for session notes in the prompt, each; 0 injects none."""

    distillation: tuple[DistillationMode, ...] = ("tool",)
    """When session notes are made: `tool` (the model asks), `turn` (after each turn), `session` (at its end)."""

    distiller: Distiller = "rules"
    """Who reads for notes in `turn` and `session`: `rules`, or beside them the `model` that writes summaries."""

    guard: Guard = "rules"
    """Who has to allow a note before it is kept: the `rules`, or after them also the `model` that writes summaries."""

    opinion_seconds: float = 30.0
    """How long one request of `guard` and of `distiller` to a model may take, in seconds, above 0."""

    keep_checkpoints: int | None = 10
    """Turns that stay travelable, at least 1: older checkpoints are pruned after a turn; None keeps all."""

    ledger_turns: int | None = 1000
    """Turns whose events are kept, at least 1; those about notes stay as long as the thread. None keeps all."""

    prompt_cache: bool | None = None
    """Mark the prompt for the provider's cache (`cache_control`); None: for Anthropic's models, which need it."""

    learn_from_refetches: bool = False
    """Mask a tool result last, and let `salience` evict its turn late, when the same call was made a second time."""

    pins: tuple[str, ...] = ()
    """Sentences that are in every prompt, word for word."""

    def __post_init__(self) -> None:
        for name in ("distillation", "pins"):
            value = getattr(self, name)
            if not isinstance(value, Iterable):
                raise SettingsError(f"`{name}` takes a list of texts, got {value!r}; leave it out for the default")
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        self._check_names()
        self._check_sizes()
        self._check_fractions()

    def _check_names(self) -> None:
        namespaces.checked("user_id", self.user_id)
        if self.model is not None and not (isinstance(self.model, str) and _MODEL.fullmatch(self.model)):
            raise SettingsError(
                f"`model` is {self.model!r}; use `offline` or `provider:name`, such as `openai:gpt-5-mini`"
            )
        choices = {"distiller": Distiller, "guard": Guard, "recall_threads": RecallThreads, "policy": PolicyName}
        for name, kind in choices.items():
            if getattr(self, name) not in get_args(kind):
                known = ", ".join(f"`{one}`" for one in get_args(kind))
                raise SettingsError(f"`{name}` is {getattr(self, name)!r}; choose one of {known}")
        if not isinstance(self.learn_from_refetches, bool):
            raise SettingsError(f"`learn_from_refetches` must be true or false, got {self.learn_from_refetches!r}")
        if self.prompt_cache is not None and not isinstance(self.prompt_cache, bool):
            raise SettingsError(f"`prompt_cache` must be true, false or none, got {self.prompt_cache!r}")
        for pin in self.pins:
            if not isinstance(pin, str) or not pin.strip():
                raise SettingsError(f"`pins` takes non-empty sentences, got {pin!r}")
        for mode in self.distillation:
            if mode not in get_args(DistillationMode):
                raise SettingsError(f"`distillation` has {mode!r}; choose from {', '.join(get_args(DistillationMode))}")

    def _check_sizes(self) -> None:
        at_least = {
            "window": 256,
            "max_output_tokens": 1,
            "keep_last_turns": 1,
            "keep_last_messages": 1,
            "context_limit": 2,
            "tool_output_tokens": 64,
            "recall_tokens": 0,
            "notes_tokens": 0,
            "keep_checkpoints": 1,
            "ledger_turns": 1,
        }
        for name, least in at_least.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingsError(f"`{name}` must be a whole number of at least {least}, got {value!r}")
        if self.window is not None and self.window > LARGEST_WINDOW:
            raise SettingsError(f"`window` is at most {LARGEST_WINDOW:,} tokens; no model takes more")
        if self.window is not None and self.max_output_tokens is not None and self.max_output_tokens >= self.window:
            raise SettingsError(
                f"`max_output_tokens` ({self.max_output_tokens:,}) leaves no room in a `window` of {self.window:,}; "
                f"lower it below {self.window:,}"
            )
        if self.context_limit is not None and self.keep_last_turns >= self.context_limit:
            raise SettingsError(
                f"`keep_last_turns` ({self.keep_last_turns}) must be below `context_limit` ({self.context_limit}): "
                "keeping as many turns as trigger a summary would summarise nothing"
            )

        if not _is_number(self.opinion_seconds) or not 0 < self.opinion_seconds <= threading.TIMEOUT_MAX:
            raise SettingsError(
                f"`opinion_seconds` must be a number of seconds above 0, at most {threading.TIMEOUT_MAX:,.0f}, got "
                f"{self.opinion_seconds!r}"
            )

    def _check_fractions(self) -> None:
        for name in ("high_watermark", "low_watermark"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 < value < 1:
                raise SettingsError(f"`{name}` must be a fraction between 0 and 1, both excluded, got {value!r}")
        if self.low_watermark >= self.high_watermark:
            raise SettingsError(
                f"`low_watermark` ({self.low_watermark}) must be below `high_watermark` ({self.high_watermark})"
            )
        if self.safety_fraction is not None and (
            not _is_number(self.safety_fraction) or not 0 < self.safety_fraction <= 1
        ):
            raise SettingsError(f"`safety_fraction` must be in (0, 1], got {self.safety_fraction!r}")

    @classmethod
    def from_mapping(cls, values: dict[str, Any]) -> "Context":
        """Make a context from JSON-like values and refuse names that are not dials.

        Raises:
            SettingsError: an unknown name or a value out of range.
        """
        dials = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - dials)
        if unknown:
            close = difflib.get_close_matches(unknown[0], dials, n=1)
            guess = f" (did you mean {close[0]!r}?)" if close else ""
            raise SettingsError(f"unknown dial {unknown[0]!r}{guess}; the dials are {', '.join(sorted(dials))}")
        return cls(**values)


def changed_dials(context: Context) -> dict[str, Any]:
    """Return the dials of a context that are not the defaults."""
    values = {dial.name: getattr(context, dial.name) for dial in dataclasses.fields(Context)}
    return {name: value for name, value in values.items() if value != getattr(Context, name)}


def named_user(context: object, configurable: Mapping[str, Any]) -> Any:
    """Return the user whom a run's context of any kind names, or else its `configurable`; None when neither does."""
    user_id = context.get("user_id") if isinstance(context, Mapping) else getattr(context, "user_id", None)
    return user_id or configurable.get("user_id")


def named_dials(context: object, configurable: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dials that a context of an app's own sets, which is the user alone.

    Raises:
        SettingsError: neither it nor `configurable` names one.
    """
    user_id = named_user(context, configurable)
    if not user_id:
        raise SettingsError(
            f"the context of this run, of type {type(context).__name__}, names no user: give it a `user_id`"
        )
    return {"user_id": user_id}


def no_user() -> SettingsError:
    """Return the error of a run whose user has to be known."""
    return SettingsError(
        'no user: pass {"configurable": {"thread_id": "…", "user_id": "…"}} as config, or a context with `user_id`'
    )


def set_dials(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dials that a run of somebody else's agent sets by `configurable["everthread"]`.

    Raises:
        SettingsError: it is no mapping, or one of them is no dial or out of range.
    """
    dials = configurable.get("everthread")
    if dials is None:
        return {}
    if not isinstance(dials, Mapping) or "user_id" in dials:
        raise SettingsError(f"`configurable[\"everthread\"]` takes dials, such as {{'window': 16_000}}, got {dials!r}")
    Context.from_mapping(dict(dials))
    return dict(dials)


def fixed_context(fixed: Mapping[str, Any]) -> type[Context]:
    """Return a `Context` whose runs have some dials fixed, for clients who may not set these.

    Args:
        fixed: dials and their values. A run that sets one to another value is refused.

    Raises:
        SettingsError: there is no such dial, or its value is out of range.
    """
    if not fixed:
        return Context
    values = Context.from_mapping(dict(fixed))

    @dataclass(frozen=True)
    class FixedContext(Context):
        __doc__ = Context.__doc__

        def __post_init__(self) -> None:
            super().__post_init__()
            for name in fixed:
                value = getattr(values, name)
                if getattr(self, name) not in (value, getattr(Context, name)):
                    raise SettingsError(f"`{name}` is fixed by this deployment, so a run cannot set it; leave it out")
                object.__setattr__(self, name, value)
            super().__post_init__()

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
            return handler.generate_schema(Context)  # pydantic reads the docstrings of a class's own fields only

    return FixedContext


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
