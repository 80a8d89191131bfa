"""Spans and metrics for OpenTelemetry, when the program has configured it; otherwise nothing happens.

Whoever configures OpenTelemetry has imported it, so this module never imports it itself: a program
without it pays one look into a dictionary for each event. Names follow the semantic conventions for
generative AI (`gen_ai.*`) where they have one; what they do not know is under `everthread.*`.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage

__all__ = ["Call", "tell"]

_NAME = "everthread"

_IDS = ("event", "at", "thread_id")


def tell(value: Mapping[str, Any]) -> None:
    """Tell an event: a span of no length with its figures, and one more of its kind in a counter.

    Args:
        value: the event as JSON.
    """
    kind = str(value["event"])
    if (tracer := _tracer()) is not None:
        tracer.start_span(f"everthread {kind}", attributes=_attributes(value)).end()
    if (meter := _meter()) is not None:
        counter = meter.create_counter("everthread.events", unit="{event}", description="Decisions in the ledger.")
        counter.add(1, {"everthread.event": kind})


@dataclass(frozen=True)
class Call:
    """One call of a model, from before it is sent to its reply or failure."""

    thread_id: str
    model: str
    provider: str
    prompt_tokens: int
    """By our own count; the provider's own figure takes its place once it is known."""
    began: int = 0
    """Nanoseconds since 1970."""

    @classmethod
    def begin(cls, thread_id: str, model: str, provider: str, prompt_tokens: int) -> "Call":
        """Note when a call begins."""
        return cls(thread_id, model, provider, prompt_tokens, time.time_ns())

    def end(self, reply: AIMessage | None = None, error: BaseException | None = None) -> None:
        """Tell the call: a span `chat MODEL`, its tokens and how long it took."""
        tracer, meter = _tracer(), _meter()
        if tracer is None and meter is None:
            return
        ended = time.time_ns()
        named = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model,
            **({"error.type": type(error).__name__} if error is not None else {}),
        }
        usage = reply.usage_metadata if reply is not None else None
        tokens = {"input": usage["input_tokens"], "output": usage["output_tokens"]} if usage else {}
        if tracer is not None:
            self._span(tracer, named, tokens, ended, error)
        if meter is not None:
            _measure(meter, named, tokens, (ended - self.began) / 1e9)

    def _span(
        self, tracer: Any, named: Mapping[str, str], tokens: Mapping[str, int], ended: int, error: BaseException | None
    ) -> None:
        trace = sys.modules["opentelemetry.trace"]
        span = tracer.start_span(
            f"chat {self.model}",
            kind=trace.SpanKind.CLIENT,
            start_time=self.began,
            attributes={
                **named,
                "gen_ai.conversation.id": self.thread_id,
                "everthread.prompt_tokens": self.prompt_tokens,
                **{f"gen_ai.usage.{name}_tokens": count for name, count in tokens.items()},
            },
        )
        if error is not None:
            # Not the error's text: a provider may quote the prompt in it.
            span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
        span.end(end_time=ended)


def _measure(meter: Any, named: Mapping[str, str], tokens: Mapping[str, int], seconds: float) -> None:
    usage = meter.create_histogram("gen_ai.client.token.usage", unit="{token}", description="Tokens of a call.")
    for name, count in tokens.items():
        usage.record(count, {**named, "gen_ai.token.type": name})
    duration = meter.create_histogram("gen_ai.client.operation.duration", unit="s", description="Length of a call.")
    duration.record(seconds, dict(named))


def _attributes(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of an event; lists become their length, since ids are too many for a span."""
    told: dict[str, Any] = {"gen_ai.conversation.id": value.get("thread_id", "")}
    for name, known in value.items():
        if name in _IDS:
            continue
        if isinstance(known, str | bool | int | float):
            told[f"everthread.{name}"] = known
        elif name == "breakdown":
            told |= {f"everthread.tokens.{part}": size for part, size in known.items()}
        elif isinstance(known, list | dict):
            told[f"everthread.{name}.count"] = len(known)
    return told


def _tracer() -> Any:
    """Return a tracer of the configured provider; None when there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer(_NAME, _version())


def _meter() -> Any:
    metrics = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    provider = metrics.get_meter_provider()
    # The provider that stands in until one is configured has no public name.
    if isinstance(provider, metrics.NoOpMeterProvider) or type(provider).__name__ == "_ProxyMeterProvider":
        return None
    return provider.get_meter(_NAME, _version())


def _version() -> str:
    # The package itself names the storages, which whoever imports a node must not import.
    return str(sys.modules[_NAME].__dict__["__version__"])
