"""Which service calls which, from traces in files: `<root>/**/*.json` or `.jsonl`, as the OpenTelemetry Collector writes them.

https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError

from adapters.tools.trace_graph import graph_of
from core.errors import ToolUnavailable
from core.ports import TimeWindow

SUFFIXES = (".json", ".jsonl")
MAX_FILE = 64 * 1024 * 1024  # bytes; of a longer file, the last ones
MAX_FILES = 200
MAX_SPANS = 1_000_000
SERVICE = "service.name"  # attribute of a resource, by OpenTelemetry's semantic conventions


class _Value(BaseModel):
    stringValue: str = ""


class _Attribute(BaseModel):
    key: str
    value: _Value = _Value()


class _Resource(BaseModel):
    attributes: list[_Attribute] = []


class _Span(BaseModel):
    traceId: str
    spanId: str
    parentSpanId: str = ""
    startTimeUnixNano: int = 0


class _Scope(BaseModel):
    spans: list[_Span] = []


class _ResourceSpans(BaseModel):
    resource: _Resource = _Resource()
    scopeSpans: list[_Scope] = []


class _Traces(BaseModel):
    resourceSpans: list[_ResourceSpans]


class TraceFiles:
    """DependencyReader over a folder: a span whose parent belongs to another service is a call of that service."""

    def __init__(self, name: str, root: Path) -> None:
        self._name = name
        self._root = root

    @property
    def name(self) -> str:
        return self._name

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        return await asyncio.to_thread(self._dependencies, window)

    async def check(self) -> None:
        """Raises ToolUnavailable when the folder does not exist."""
        await asyncio.to_thread(self._files)

    def _dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        service_of: dict[tuple[str, str], str] = {}
        parents: list[tuple[tuple[str, str], str]] = []
        for service, span in self._spans(window):
            service_of[span.traceId, span.spanId] = service
            if span.parentSpanId:
                parents.append(((span.traceId, span.parentSpanId), service))
            if len(service_of) >= MAX_SPANS:
                break
        return graph_of((service_of[parent], service) for parent, service in parents if parent in service_of)

    def _spans(self, window: TimeWindow) -> Iterator[tuple[str, _Span]]:
        for path in self._files():
            for traces in _read(path):
                for resource in traces.resourceSpans:
                    service = _service(resource.resource)
                    spans = (span for scope in resource.scopeSpans for span in scope.spans)
                    yield from ((service, span) for span in spans if service and _within(span, window))

    def _files(self) -> list[Path]:
        if not self._root.is_dir():
            raise ToolUnavailable(
                f"The folder {self._root} does not exist: correct the path of this tool in plumbline.yaml."
            )
        return sorted(path for path in self._root.glob("**/*") if path.suffix in SUFFIXES)[-MAX_FILES:]


def _read(path: Path) -> Iterator[_Traces]:
    """The requests in a file, one a line; a line that is none is skipped."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MAX_FILE))
            lines = file.read(MAX_FILE).splitlines()
    except OSError as error:
        raise ToolUnavailable(f"The traces in {path} cannot be read: {error.strerror}.") from error
    for line in lines:
        try:
            yield _Traces.model_validate_json(line)
        except ValidationError:
            continue


def _service(resource: _Resource) -> str:
    return next((each.value.stringValue for each in resource.attributes if each.key == SERVICE), "")


def _within(span: _Span, window: TimeWindow) -> bool:
    return window.start.timestamp() <= span.startTimeUnixNano / 1e9 < window.end.timestamp()
