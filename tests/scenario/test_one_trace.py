"""From the webhook to the post: one correlation id in every log line, and one trace."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bot import tracing
from bot.config.settings import Settings
from bot.telemetry import configure_logging
from core.model.errors import ConfigurationError
from core.model.running import new_correlation
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import is_done
from tests.scenario.webhooks import alert

in_the_session = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Every span that ends."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("plumbline"))
    yield exporter
    provider.shutdown()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The log as JSON, of our own code and of libraries."""
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging("json")
    structlog.configure(cache_logger_on_first_use=False)
    yield stream
    root.handlers, root.level = handlers, level
    structlog.configure(**configured)


@in_the_session
async def test_everything_that_a_webhook_leads_to_has_its_id(
    bot: RunningBot, spans: InMemorySpanExporter, lines: io.StringIO
) -> None:
    incident_id = await bot.deliver("one trace", alert("trace-1", service="mail"))
    assert incident_id is not None
    done = await bot.incident(incident_id, is_done)
    await bot.deliver("another group", alert("trace-2", service="chart"))
    assert done["id"] == incident_id
    async with asyncio.timeout(10):
        # The incident is done some moments before its workflow, and an exporter tells nobody of what it was given.
        while "investigate_incident" not in _names(spans):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    ended = spans.get_finished_spans()
    request = next(span for span in ended if span.name == "POST /webhooks/{source}")
    mine = [span for span in ended if _trace(span) == _trace(request)]
    names = {span.name for span in mine}
    assert {"investigate_incident", "present", "triage", "explain", "console post", "console edit"} <= names
    assert all(span.parent is not None for span in mine if span is not request)
    assert {_trace(span) for span in ended if span.name.startswith("POST")} > {_trace(request)}


@in_the_session
async def test_a_log_line_of_a_workflow_has_the_id_of_the_request(bot: RunningBot, lines: io.StringIO) -> None:
    bot.slack.refuse(500, method="chat.postMessage", times=1)
    body = {"check": {"name": "disk", "id": "trace-d1", "state": "firing"}, "where": {"service": "till"}}
    async with bot.session.post(f"{bot.address}webhooks/generic", json=body) as response:
        incident_id = (await response.json())["incident"]
    await bot.incident(incident_id, is_done)
    logged = [json.loads(line) for line in lines.getvalue().splitlines() if line.startswith("{")]
    (waits,) = [line for line in logged if line["event"] == "step waits"][:1]
    assert len(waits["correlation"]) == 32


def test_what_was_asked_for_by_nobody_has_an_id_of_its_own() -> None:
    with (
        tracing.work_span("nightly", None),
        structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as events,
    ):
        structlog.get_logger().info("something")
    assert len(events[0]["correlation"]) == 32


def test_the_id_of_a_request_is_that_of_the_work_whatever_happens_between(spans: InMemorySpanExporter) -> None:
    asked = new_correlation()
    with tracing.work_span("work", asked, subject="i1"), tracing.span("part"):
        pass
    part, work = spans.get_finished_spans()
    assert _trace(part) == _trace(work) == asked.trace_id
    assert work.parent is not None
    assert f"{work.parent.span_id:016x}" == asked.span_id


def test_a_collector_without_the_extra_is_a_mistake_in_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings = Settings.model_validate({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    with pytest.raises(ConfigurationError, match=r"install plumbline-bot\[otel\]"), tracing.tracing(settings):
        pass


def _names(spans: InMemorySpanExporter) -> set[str]:
    return {span.name for span in spans.get_finished_spans()}


def _trace(span: ReadableSpan) -> str:
    context = span.get_span_context()
    return f"{context.trace_id:032x}" if context else ""
