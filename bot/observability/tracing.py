"""Traces and correlation ids that follow a request through all processes to the chat.

A task carries the id of the request that created it. Spans are sent to an OpenTelemetry collector if one is configured;
the id is in every log line in any case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import structlog
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from adapters.llama.server import Watch
from bot.config.settings import Settings
from core.model.correlation import Correlation, correlated, new_correlation, parse_correlation
from core.model.errors import ConfigurationError
from core.model.language_model import ModelReply, ModelRequest

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

KEY = "correlation"  # the key in a log line and in a workflow's payload

Workflows = TypeVar("Workflows")
Workflow = Callable[[Workflows, str, dict[str, Any]], Awaitable[None]]

tracer = trace.get_tracer("plumbline")

GEN_AI = "https://opentelemetry.io/schemas/1.37.0"  # version of the semantic conventions for model calls
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
            "OTEL_EXPORTER_OTLP_ENDPOINT needs the OpenTelemetry SDK: install plumbline[otel]."
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

    Names are those of version 1.37.0 of the semantic conventions:
    https://github.com/open-telemetry/semantic-conventions/blob/v1.37.0/docs/gen-ai/gen-ai-spans.md
    """
    server = urlsplit(url)
    fixed = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "llama.cpp"}
    place = {
        "server.address": server.hostname or "",
        "server.port": server.port or (443 if server.scheme == "https" else 80),
    }

    @contextmanager
    def watch(model: str, request: ModelRequest) -> Generator[Callable[[Sequence[ModelReply]], None]]:
        parameters = {
            "gen_ai.request.model": model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.seed": request.seed,
            "gen_ai.output.type": "text" if request.schema is None else "json",
        }
        with gen_ai_tracer.start_as_current_span(
            f"chat {model}",
            kind=SpanKind.CLIENT,
            attributes=fixed | place | parameters,
            record_exception=False,  # its message may quote the model
            set_status_on_exception=False,
        ) as span:

            def report(replies: Sequence[ModelReply]) -> None:
                span.set_attribute("gen_ai.usage.input_tokens", sum(reply.prompt_tokens for reply in replies[:1]))
                span.set_attribute("gen_ai.usage.output_tokens", sum(reply.generated_tokens for reply in replies))
                reasons = ["stop" if reply.complete else "length" for reply in replies]
                span.set_attribute("gen_ai.response.finish_reasons", reasons)

            try:
                yield report
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    return watch


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
