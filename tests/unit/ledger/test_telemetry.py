"""Spans and metrics, when OpenTelemetry is configured."""

import runpy
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from everthread.ledger import telemetry
from everthread.ledger.telemetry import Call

REPLY = AIMessage("Hi.", usage_metadata={"input_tokens": 12, "output_tokens": 3, "total_tokens": 15})


class Seen:
    """An SDK of one test's own: nothing global is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trace_sdk = pytest.importorskip("opentelemetry.sdk.trace")
        export = pytest.importorskip("opentelemetry.sdk.trace.export")
        memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        metrics_sdk = pytest.importorskip("opentelemetry.sdk.metrics")
        reading = pytest.importorskip("opentelemetry.sdk.metrics.export")
        self.exporter = memory.InMemorySpanExporter()
        self.reader = reading.InMemoryMetricReader()
        tracers = trace_sdk.TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(export.SimpleSpanProcessor(self.exporter))
        meters = metrics_sdk.MeterProvider([self.reader], shutdown_on_exit=False)
        monkeypatch.setattr(telemetry, "instruments", telemetry.Instruments(tracers, meters))

    @property
    def spans(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    @property
    def metrics(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        found = [one for part in data.resource_metrics for scope in part.scope_metrics for one in scope.metrics]
        return {one.name: list(one.data.data_points) for one in found}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def test_an_event_is_a_span_with_its_figures_and_without_ids(seen: Seen) -> None:
    telemetry.tell({"event": "evicted", "thread_id": "t", "turn": 4, "budget": 900, "message_ids": ["a", "b"]})

    (span,) = seen.spans
    assert span.name == "everthread evicted"
    assert dict(span.attributes) == {
        "gen_ai.conversation.id": "t",
        "everthread.turn": 4,
        "everthread.budget": 900,
        "everthread.message_ids.count": 2,
    }


def test_events_are_counted_by_kind(seen: Seen) -> None:
    for kind in ("evicted", "evicted", "masked"):
        telemetry.tell({"event": kind})

    counted = {point.attributes["everthread.event"]: point.value for point in seen.metrics["everthread.events"]}
    assert counted == {"evicted": 2, "masked": 1}


def test_a_call_is_a_client_span_by_the_semantic_conventions(seen: Seen) -> None:
    Call("t", "gpt-5-mini", "openai", 11).end(REPLY)

    (span,) = seen.spans
    assert span.name == "chat gpt-5-mini"
    assert span.kind.name == "CLIENT"
    assert span.attributes["gen_ai.operation.name"] == "chat"
    assert span.attributes["gen_ai.provider.name"] == "openai"
    assert span.attributes["gen_ai.usage.input_tokens"] == 12


def test_tokens_and_time_of_a_call_are_histograms(seen: Seen) -> None:
    Call("t", "gpt-5-mini", "openai", 11).end(REPLY)

    metrics = seen.metrics
    usage = {point.attributes["gen_ai.token.type"]: point.sum for point in metrics["gen_ai.client.token.usage"]}
    assert usage == {"input": 12, "output": 3}
    assert metrics["gen_ai.client.operation.duration"][0].count == 1


def test_a_failed_call_says_which_error_and_not_its_text(seen: Seen) -> None:
    Call("t", "m", "p", 1).end(error=RuntimeError("your prompt was: secret"))

    (span,) = seen.spans
    assert span.attributes["error.type"] == "RuntimeError"
    assert "secret" not in span.to_json()


def test_nothing_happens_until_somebody_configures_it() -> None:
    pytest.importorskip("opentelemetry.trace")

    telemetry.tell({"event": "evicted"})
    Call("t", "m", "p", 1).end(REPLY)

    assert telemetry.instruments is not None
    assert not telemetry.instruments.tracer.start_span("any").is_recording()


def test_nothing_happens_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    module = runpy.run_path(telemetry.__file__)
    module["tell"]({"event": "evicted"})
    module["Call"]("t", "m", "p", 1).end(REPLY)

    assert module["instruments"] is None
