"""Spans and metrics for OpenTelemetry.

Without `opentelemetry-api` nothing happens; with it, nothing until the program configures a provider, as its
documentation says. Names follow the semantic conventions for generative AI (`gen_ai.*`) where they have one; what they
do not know is under `everthread.*`.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage

try:
    from opentelemetry import metrics, trace
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

_IDS = ("event", "at", "thread_id")


class Instruments:
    """What spans and figures are written with."""

    def __init__(self, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        """Take the providers of the program, now or once it has configured them, unless there are others."""
        self.tracer = trace.get_tracer("everthread", tracer_provider=tracer_provider)
        meter = metrics.get_meter("everthread", meter_provider=meter_provider)
        self.events = meter.create_counter("everthread.events", "{event}", "Decisions in the ledger.")
        self.tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of a call.")
        self.duration = meter.create_histogram("gen_ai.client.operation.duration", "s", "Length of a call.")


instruments = Instruments() if _INSTALLED else None


def tell(value: Mapping[str, Any]) -> None:
    """Tell an event: a span of no length with its figures, and one more of its kind in a counter.

    Args:
        value: the event as JSON.
    """
    if instruments is None:
        return
    kind = str(value["event"])
    span = instruments.tracer.start_span(f"everthread {kind}")
    if span.is_recording():
        span.set_attributes(_attributes(value))
    span.end()
    instruments.events.add(1, {"everthread.event": kind})


@dataclass(frozen=True)
class Call:
    """One call of a model, from just before it is sent to its reply or failure."""

    thread_id: str
    model: str
    provider: str
    prompt_tokens: int
    """By our own count; the provider's own figure stands beside it once it is known."""
    began: int = field(default_factory=time.time_ns)
    """Nanoseconds since 1970."""

    def end(self, reply: AIMessage | None = None, error: BaseException | None = None) -> None:
        """Tell the call: a span `chat MODEL`, its tokens and how long it took."""
        if instruments is None:
            return
        ended = time.time_ns()
        labels = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model,
            **({"error.type": type(error).__name__} if error is not None else {}),
        }
        usage = reply.usage_metadata if reply is not None else None
        tokens = {"input": usage["input_tokens"], "output": usage["output_tokens"]} if usage else {}
        span = instruments.tracer.start_span(
            f"chat {self.model}",
            kind=trace.SpanKind.CLIENT,
            start_time=self.began,
            attributes={
                **labels,
                "gen_ai.conversation.id": self.thread_id,
                "everthread.prompt_tokens": self.prompt_tokens,
                **{f"gen_ai.usage.{name}_tokens": count for name, count in tokens.items()},
            },
        )
        if error is not None:
            # Not the error's text: a provider may quote the prompt in it.
            span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
        span.end(end_time=ended)
        for name, count in tokens.items():
            instruments.tokens.record(count, {**labels, "gen_ai.token.type": name})
        instruments.duration.record((ended - self.began) / 1e9, labels)


def _attributes(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of an event; lists become their length, since ids are too many for a span."""
    attributes: dict[str, Any] = {"gen_ai.conversation.id": event.get("thread_id", "")}
    for name, value in event.items():
        if name in _IDS:
            continue
        if isinstance(value, str | bool | int | float):
            attributes[f"everthread.{name}"] = value
        elif name == "breakdown":
            attributes |= {f"everthread.tokens.{part}": size for part, size in value.items()}
        elif isinstance(value, list | dict):
            attributes[f"everthread.{name}.count"] = len(value)
    return attributes
