"""Each call of a language model is a span, named as in a fixed version of OpenTelemetry's conventions, if that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from bot import tracing
from bot.config.settings import Settings
from bot.tracing import TokenTally, agent_operation
from bot.wiring.application import llama_server
from core.model.errors import ModelUnavailable
from core.model.language_model import ChatMessage, ModelRequest, Role
from core.model_calls.metered_model import MeteredModel
from core.rca.agent.controller import Investigation
from tests.fakes.investigation import SERVICES, FakeTool, call, finalise
from tests.fakes.language_model import ScriptedModel
from tests.fakes.llama_server import FakeLlamaServer, fake_llama_server

SECRET = "the invoice of Ada Quist"
QUESTION = ModelRequest((ChatMessage(Role.USER, SECRET),), max_tokens=64, seed=7)
ON = Settings.model_validate({"OTEL_SEMCONV_STABILITY_OPT_IN": "http, gen_ai_latest_experimental"})


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "gen_ai_tracer", provider.get_tracer("plumbline", schema_url=tracing.GEN_AI))
    yield exporter
    provider.shutdown()


async def asked(fake: FakeLlamaServer, settings: Settings, tally: TokenTally) -> None:
    async with aiohttp.ClientSession() as session:
        await llama_server(fake.url, settings, session, tally.add).generate(QUESTION)


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_a_call_is_a_span_with_its_model_and_tokens_and_without_its_prompt(spans: InMemorySpanExporter) -> None:
    tally = TokenTally()
    async with fake_llama_server("native") as fake:
        await asked(fake, ON, tally)
        server = urlsplit(fake.url)
    (span,) = spans.get_finished_spans()
    model = attributes(span)["gen_ai.request.model"]
    assert (span.name, span.kind) == (f"chat {model}", SpanKind.CLIENT)
    assert attributes(span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "llama.cpp",
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": 64,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": tally.prompt,
        "gen_ai.usage.output_tokens": tally.generated,
        "server.address": server.hostname,
        "server.port": server.port,
    }
    assert tally.prompt > 0 < tally.generated
    assert SECRET not in span.to_json()
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.41.0"


async def test_a_call_that_fails_says_how_and_not_what_was_said(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> None:
        raise ModelUnavailable(f"it answered {SECRET}")

    monkeypatch.setattr("adapters.llama.completion.GrowingReplies.add", nothing)
    async with fake_llama_server("native") as fake:
        with suppress(ModelUnavailable):
            await asked(fake, ON, TokenTally())
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "ModelUnavailable"
    assert SECRET not in span.to_json()


@pytest.mark.parametrize("opt_in", ["", "http,database"])
async def test_without_the_opt_in_no_call_is_a_span(opt_in: str, spans: InMemorySpanExporter) -> None:
    async with fake_llama_server("native") as fake:
        await asked(fake, Settings.model_validate({"OTEL_SEMCONV_STABILITY_OPT_IN": opt_in}), TokenTally())
    assert spans.get_finished_spans() == ()


async def test_the_work_of_an_agent_is_a_span_around_those_of_its_tools(spans: InMemorySpanExporter) -> None:
    looks = [call(service="api"), call(service="db"), finalise()]
    model = ScriptedModel(lambda _: looks.pop(0), context=100_000)
    run = Investigation(
        MeteredModel(model),
        (FakeTool(says=SECRET), FakeTool("read_metrics")),
        SERVICES,
        QUESTION,
        trace=agent_operation,
    )
    with agent_operation("invoke_agent", "investigator"):
        await run.run("api answers 503.")
    *tools, agent = spans.get_finished_spans()
    assert agent.context is not None
    assert [each.name for each in tools] == ["execute_tool read_logs"] * 2
    assert all(each.parent and each.parent.span_id == agent.context.span_id for each in tools)
    assert attributes(tools[0]) == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_logs"}
    assert attributes(agent) == {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "investigator"}
    assert not any(SECRET in each.to_json() for each in (*tools, agent))
