"""Traces that follow a request through all processes to the chat, and metrics that are read on request.

A task carries the id of the request that created it. Spans are sent to an OpenTelemetry collector if one is configured;
the id is in every log line in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import structlog
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapters.llama.server import Watch
from adapters.model_queue import ModelStatus
from bot.config.settings import Settings
from core.confidence.measures import LATEST, measure_drift
from core.model.badge import Drift, Estimator
from core.model.errors import ConfigurationError, StoreUnavailable
from core.model.language_model import ModelReply, ModelRequest
from core.model.running import Correlation, correlated, new_correlation, parse_correlation
from core.ports import Backlog, Clock, Ingestion, Store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

KEY = "correlation"  # the key in a log line and in a workflow's payload

Workflows = TypeVar("Workflows")
Workflow = Callable[[Workflows, str, dict[str, Any]], Awaitable[None]]

tracer = trace.get_tracer("plumbline")

GEN_AI = "https://opentelemetry.io/schemas/1.41.0"  # version of the semantic conventions for models, agents and tools
gen_ai_tracer = trace.get_tracer("plumbline", schema_url=GEN_AI)


@contextmanager
def tracing(settings: Settings) -> Generator[None]:
    """Send spans to the configured collector, if any, until the block ends. Raises ConfigurationError."""
    provider = _provider(settings.otlp_endpoint) if settings.otlp_endpoint else None
    try:
        yield
    finally:
        if provider is not None:
            provider.shutdown()


def _provider(endpoint: str) -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT needs the OpenTelemetry SDK: install plumbline-bot[otel]."
        ) from None
    provider = TracerProvider(resource=Resource.create({"service.name": "plumbline"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    trace.set_tracer_provider(provider)
    return provider


@contextmanager
def request_span(name: str) -> Generator[None]:
    """Begin a trace for an external request. Trace headers of the sender are ignored."""
    nothing_before = trace.set_span_in_context(trace.INVALID_SPAN)
    with (
        tracer.start_as_current_span(name, context=nothing_before, kind=SpanKind.SERVER),
        _bound(_current_correlation() or new_correlation()),
    ):
        yield


@contextmanager
def work_span(name: str, asked_for_by: Correlation | None, **attributes: str) -> Generator[None]:
    """Continue the trace of the request that created this work, possibly in another process."""
    origin = asked_for_by or new_correlation()
    parent = SpanContext(int(origin.trace_id, 16), int(origin.span_id, 16), is_remote=True, trace_flags=TraceFlags(1))
    context = trace.set_span_in_context(NonRecordingSpan(parent))
    with (
        tracer.start_as_current_span(name, context=context, kind=SpanKind.CONSUMER, attributes=attributes),
        _bound(_current_correlation() or origin),
    ):
        yield


@contextmanager
def span(name: str, **attributes: str) -> Generator[None]:
    """Trace a part of the current work."""
    with tracer.start_as_current_span(name, attributes=attributes):
        yield


def model_calls(url: str) -> Watch:
    """Return a watch that traces each call of the model at this address, without prompts and replies.

    Names are those of version 1.41.0 of the semantic conventions:
    https://github.com/open-telemetry/semantic-conventions/blob/v1.41.0/docs/gen-ai/gen-ai-spans.md
    """
    server = urlsplit(url)
    fixed = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "llama.cpp",
        "server.address": server.hostname or "",
        "server.port": server.port or (443 if server.scheme == "https" else 80),
    }

    @contextmanager
    def watch(model: str, request: ModelRequest) -> Generator[Callable[[Sequence[ModelReply]], None]]:
        with gen_ai_tracer.start_as_current_span(
            f"chat {model}",
            kind=SpanKind.CLIENT,
            attributes=fixed
            | {
                "gen_ai.request.model": model,
                "gen_ai.request.max_tokens": request.max_tokens,
                "gen_ai.request.temperature": request.temperature,
                "gen_ai.request.seed": request.seed,
                "gen_ai.output.type": "text" if request.schema is None else "json",
            },
            record_exception=False,  # its message may quote the model
            set_status_on_exception=False,
        ) as span:

            def report(replies: Sequence[ModelReply]) -> None:
                span.set_attribute("gen_ai.usage.input_tokens", sum(reply.prompt_tokens for reply in replies[:1]))
                span.set_attribute("gen_ai.usage.output_tokens", sum(reply.generated_tokens for reply in replies))
                span.set_attribute(
                    "gen_ai.response.finish_reasons", ["stop" if reply.complete else "length" for reply in replies]
                )

            try:
                yield report
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    return watch


@contextmanager
def agent_operation(operation: str, name: str) -> Generator[None]:
    """Trace the work of an agent, or the execution of a tool by one, without what it says, in the names of `model_calls`."""
    kind = "tool" if operation == "execute_tool" else "agent"
    with gen_ai_tracer.start_as_current_span(
        f"{operation} {name}",
        attributes={"gen_ai.operation.name": operation, f"gen_ai.{kind}.name": name},
        record_exception=False,  # its message may quote the system that was read
        set_status_on_exception=False,
    ):
        yield


def traced(workflow: Workflow[Workflows]) -> Workflow[Workflows]:
    """Wrap a workflow so that it continues the trace of its request."""

    @wraps(workflow)
    async def run(self: Workflows, subject: str, payload: dict[str, Any]) -> None:
        with work_span(workflow.__name__, parse_correlation(str(payload.get(KEY, ""))), subject=subject):
            await workflow(self, subject, payload)

    return run


@contextmanager
def _bound(correlation: Correlation) -> Generator[None]:
    with correlated(correlation), structlog.contextvars.bound_contextvars(**{KEY: correlation.trace_id}):
        yield


def _current_correlation() -> Correlation | None:
    """Return the current span's correlation; None if spans are not recorded."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return Correlation(trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id))


CALIBRATION_EVERY = timedelta(minutes=15)  # expensive to compute, and slow to change
DATABASE_TIMEOUT = 5.0  # seconds for the database to answer

Samples = Iterable[tuple[Sequence[str], float]]  # the values of the labels, and the metric's value


@contextmanager
def registered(collector: Collector, registry: CollectorRegistry = REGISTRY) -> Generator[None]:
    """Register a collector until the block ends."""
    registry.register(collector)
    try:
        yield
    finally:
        registry.unregister(collector)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _gauges(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, float(value))
    return family


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures read at one time."""

    at: datetime
    backlog: Backlog
    dead_letters: int
    ingestions: Sequence[Ingestion]


class StoreCollector(Collector):
    """A collector of the latest figures. While the database is unavailable, only that is reported."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._drifts: dict[Estimator, Drift] = {}
        self._calibrated_at: datetime | None = None

    async def refresh(self) -> None:
        """Read the figures. Figures that the database does not return in time are not shown."""
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT):
                async with self._store.transaction() as transaction:
                    self._snapshot = Snapshot(
                        self._clock.now(),
                        await transaction.tasks.backlog(),
                        await transaction.dead_letters.count(),
                        await transaction.ingestions.all(),
                    )
                await self._read_calibration()
        except (StoreUnavailable, TimeoutError):
            self._snapshot = None

    async def _read_calibration(self) -> None:
        now = self._clock.now()
        if self._calibrated_at is not None and now - self._calibrated_at < CALIBRATION_EVERY:
            return
        self._calibrated_at = now
        async with self._store.transaction() as transaction:
            judged = {
                estimator: tuple(await transaction.predictions.verdicts(estimator, LATEST))
                for estimator in await transaction.predictions.estimators()
            }
        for estimator, verdicts in judged.items():
            drift = await asyncio.to_thread(measure_drift, verdicts)
            if drift is not None:
                self._drifts[estimator] = drift

    def collect(self) -> Iterable[Metric]:
        yield _gauge("plumbline_database_up", "1 if the last query of the database succeeded", bool(self._snapshot))
        if self._snapshot is not None:
            yield from _queue(self._snapshot)
            yield from _sources(self._snapshot)
        labels = ("kind", "engine", "version")
        for name, text, of in (
            ("error", "Expected calibration error of the latest judged badges", attrgetter("error")),
            ("error_limit", "The largest such error that chance explains", attrgetter("limit")),
            ("outcomes", "Judged badges that were measured", attrgetter("outcomes")),
        ):
            yield _gauges(
                f"plumbline_calibration_{name}",
                text,
                labels,
                (((each.kind, each.engine, each.version), of(drift)) for each, drift in self._drifts.items()),
            )


def _queue(snapshot: Snapshot) -> Iterable[Metric]:
    backlog = snapshot.backlog
    age = (snapshot.at - backlog.oldest).total_seconds() if backlog.oldest else 0.0
    yield _gauge("plumbline_tasks_waiting", "Accepted events whose work has not begun", backlog.waiting)
    yield _gauge("plumbline_tasks_oldest_seconds", "Age of the oldest waiting event", max(age, 0.0))
    yield _gauge("plumbline_tasks_under_way", "Accepted events whose work is in progress", backlog.under_way)
    yield _gauge("plumbline_dead_letters", "Messages that a chat refused until a person acts", snapshot.dead_letters)


def _sources(snapshot: Snapshot) -> Iterable[Metric]:
    def age(ingestion: Ingestion) -> float:
        """Return seconds; 0 during the first import."""
        return max((snapshot.at - (ingestion.finished_at or snapshot.at)).total_seconds(), 0.0)

    rows: Iterable[tuple[str, str, Callable[[Ingestion], float]]] = (
        ("age_seconds", "Time since a source was last read completely", age),
        ("failing", "1 if the last attempt to read a source failed", lambda each: bool(each.failure)),
        ("documents", "Documents indexed from a source", lambda each: each.documents),
    )
    for name, text, of in rows:
        yield _gauges(
            f"plumbline_source_{name}", text, ["source"], (((each.source,), of(each)) for each in snapshot.ingestions)
        )


@dataclass(slots=True)
class TokenTally:
    """Token counts since start: prompt tokens, those served from a cache, and reply tokens."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0

    def add(self, reply: ModelReply) -> None:
        self.prompt += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.generated += reply.generated_tokens


class ModelCollector(Collector):
    """Collector of the model's queue, slots, state and tokens."""

    def __init__(self, status: Callable[[], ModelStatus], tally: TokenTally) -> None:
        self._status = status
        self._tally = tally

    def collect(self) -> Iterable[Metric]:
        status, tally = self._status(), self._tally
        waiting = (((urgency.name.lower(),), count) for urgency, count in status.waiting.items())
        yield _gauges("plumbline_model_waiting", "Requests waiting for the model", ["urgency"], waiting)
        for name, text, value in (
            ("slots_busy", "Requests the server works on", status.busy),
            ("slots", "Requests the server can work on at once", status.slots),
            ("up", "1 if the server is used, 0 while it is left alone after failures", status.up),
        ):
            yield _gauges(f"plumbline_model_{name}", text, ["server"], [((status.address,), value)])
        requests = CounterMetricFamily(
            "plumbline_model_requests", "Requests to the server by outcome", labels=["server", "outcome"]
        )
        for outcome, count in status.outcomes.items():
            requests.add_metric([status.address, outcome.value], count)
        yield requests
        for name, text, tokens in (
            ("prompt_tokens", "Tokens of prompts", tally.prompt),
            ("cached_prompt_tokens", "Tokens of prompts that came from a cache", tally.cached),
            ("generated_tokens", "Tokens of replies", tally.generated),
        ):
            yield CounterMetricFamily(f"plumbline_model_{name}", text, value=tokens)
        share = tally.cached / tally.prompt if tally.prompt else 0.0
        yield _gauge("plumbline_model_cached_prompt_share", "Share of prompt tokens served from a cache", share)
