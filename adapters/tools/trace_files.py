"""Spans from files: `<root>/**/*.json` or `.jsonl`, as written by the OpenTelemetry Collector.

https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from adapters.tools.service_files import FolderFiles
from adapters.tools.trace_graph import graph_of
from core.model.errors import ToolUnavailable
from core.ports import Span, TimeWindow

SUFFIXES = (".json", ".jsonl")
MAX_FILE = 64 * 1024 * 1024  # bytes; of a longer file, the last ones are read
MAX_FILES = 200
MAX_SPANS = 1_000_000
MAX_TEXT = 300  # characters of a name or message
SERVICE = "service.name"  # resource attribute of OpenTelemetry's semantic conventions
PEERS = ("server.address", "net.peer.name", "peer.service", "http.host", "url.full", "http.url")
"""Attributes of a span that name what it called, the newest name first; of an address, the host counts."""
FAILED = (2, "STATUS_CODE_ERROR")


class _Value(BaseModel):
    stringValue: str = ""


class _Attribute(BaseModel):
    key: str
    value: _Value = _Value()


class _Resource(BaseModel):
    attributes: list[_Attribute] = []


class _Status(BaseModel):
    code: int | str = 0
    message: str = ""


class _Span(BaseModel):
    traceId: str
    spanId: str
    parentSpanId: str = ""
    name: str = ""
    startTimeUnixNano: int = 0
    endTimeUnixNano: int = 0
    status: _Status = _Status()
    attributes: list[_Attribute] = []


class _Scope(BaseModel):
    spans: list[_Span] = []


class _ResourceSpans(BaseModel):
    resource: _Resource = _Resource()
    scopeSpans: list[_Scope] = []


class _Traces(BaseModel):
    resourceSpans: list[_ResourceSpans]


class TraceFiles:
    """DependencyReader and SpanReader over a folder.

    A span whose parent belongs to another service is a call by that service.
    """

    def __init__(self, name: str, root: Path) -> None:
        self._name = name
        self._files = FolderFiles(root, SUFFIXES, _read)

    @property
    def name(self) -> str:
        return self._name

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        spans = await self.spans(window, MAX_SPANS)
        return graph_of((span.caller, span.service) for span in spans)

    async def spans(self, window: TimeWindow, limit: int) -> list[Span]:
        return await asyncio.to_thread(self._spans, window, limit)

    async def check(self) -> None:
        """Raise ToolUnavailable if the folder does not exist."""
        await asyncio.to_thread(self._files.paths)

    def _spans(self, window: TimeWindow, limit: int) -> list[Span]:
        kept: deque[Span] = deque(maxlen=limit)
        for path in self._files.paths()[-MAX_FILES:]:
            try:
                kept.extend(span for span in self._files.content(path) if window.start <= span.at < window.end)
            except OSError as error:
                raise ToolUnavailable(f"The traces in {path} cannot be read: {error.strerror}.") from error
        return sorted(kept, key=lambda span: span.at)


def _read(path: Path) -> list[Span]:
    """Return the spans in a file, with the context of their traces. Invalid lines are skipped."""
    found = [(service, span) for traces in _lines(path) for service, span in _within(traces)]
    service_of = {(span.traceId, span.spanId): service for service, span in found}
    below: defaultdict[tuple[str, str], float] = defaultdict(float)
    for _, span in found:
        below[span.traceId, span.parentSpanId] += _milliseconds(span)
    failing = {(span.traceId, span.parentSpanId) for _, span in found if span.status.code in FAILED}
    return [
        Span(
            service=service,
            operation=span.name[:MAX_TEXT],
            at=datetime.fromtimestamp(span.startTimeUnixNano / 1e9, UTC),
            milliseconds=_milliseconds(span),
            failed=span.status.code in FAILED,
            message=span.status.message[:MAX_TEXT],
            caller=service_of.get((span.traceId, span.parentSpanId), ""),
            peer=_host(_attribute(span.attributes, *PEERS))[:MAX_TEXT],
            failed_below=(span.traceId, span.spanId) in failing,
            below=below.get((span.traceId, span.spanId), 0.0),
        )
        for service, span in found
    ]


def _milliseconds(span: _Span) -> float:
    return max(0, span.endTimeUnixNano - span.startTimeUnixNano) / 1e6


def _lines(path: Path) -> Iterator[_Traces]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_FILE))
        lines = file.read(MAX_FILE).splitlines()
    for line in lines:
        try:
            yield _Traces.model_validate_json(line)
        except ValidationError:
            continue


def _within(traces: _Traces) -> Iterator[tuple[str, _Span]]:
    for resource in traces.resourceSpans:
        if service := _attribute(resource.resource.attributes, SERVICE):
            yield from ((service, span) for scope in resource.scopeSpans for span in scope.spans)


def _host(named: str) -> str:
    return named.partition("://")[2].partition("/")[0].partition(":")[0] if "://" in named else named


def _attribute(attributes: list[_Attribute], *keys: str) -> str:
    known = {each.key: each.value.stringValue for each in attributes}
    return next((known[key] for key in keys if known.get(key)), "")
