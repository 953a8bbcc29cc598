"""The calls between services, from traces in files: `<root>/**/*.json` or `.jsonl`, as the OpenTelemetry Collector writes them.

https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import AliasPath, BaseModel, Field, ValidationError

from adapters.text_files import decoded
from adapters.tools.service_files import FolderFiles
from adapters.tools.trace_graph import graph_of
from core.model.errors import ToolUnavailable
from core.model.lenient_json import json_text
from core.ports import TimeWindow

SUFFIXES = (".json", ".jsonl")
MAX_FILE = 64 * 1024 * 1024  # bytes; of a longer file, the last ones are read
MAX_FILES = 200
SERVICE = "service.name"  # attribute of a resource, by OpenTelemetry's semantic conventions


class _Attribute(BaseModel):
    key: str
    value: str = Field("", validation_alias=AliasPath("value", "stringValue"))


class _Span(BaseModel):
    traceId: str
    spanId: str
    parentSpanId: str = ""
    startTimeUnixNano: int = 0


class _Scope(BaseModel):
    spans: list[_Span] = []


class _ResourceSpans(BaseModel):
    attributes: list[_Attribute] = Field([], validation_alias=AliasPath("resource", "attributes"))
    scopeSpans: list[_Scope] = []


class _Traces(BaseModel):
    resourceSpans: list[_ResourceSpans]


class _Call(NamedTuple):
    """The service that was called, and the one that called it, empty if none is known."""

    at: datetime
    caller: str
    service: str


class TraceFiles:
    """DependencyReader over a folder.

    A span whose parent belongs to another service is a call by that service.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = FolderFiles(root, SUFFIXES, _read)

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        return await asyncio.to_thread(self._dependencies, window)

    async def check(self) -> None:
        """Raise ToolUnavailable if the folder does not exist."""
        await asyncio.to_thread(self._files.paths)

    def _dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        calls: list[_Call] = []
        for path in self._files.paths()[-MAX_FILES:]:
            try:
                calls += [call for call in self._files.content(path) if window.start <= call.at < window.end]
            except OSError as error:
                raise ToolUnavailable(f"The traces in {path} cannot be read: {error.strerror}.") from error
        return graph_of((call.caller, call.service) for call in calls)


def _read(path: Path) -> list[_Call]:
    """Return the calls in a file. A line that is not a trace is skipped."""
    found = [(service, span) for traces in _lines(path) for service, span in _within(traces)]
    service_of = {(span.traceId, span.spanId): service for service, span in found}
    return [
        _Call(
            datetime.fromtimestamp(span.startTimeUnixNano / 1e9, UTC),
            service_of.get((span.traceId, span.parentSpanId), ""),
            service,
        )
        for service, span in found
    ]


def _lines(path: Path) -> Iterator[_Traces]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_FILE))
        lines = decoded(file.read(MAX_FILE)).split("\n")
    for line in lines:
        try:
            yield _Traces.model_validate_json(json_text(line))
        except ValidationError:
            continue


def _within(traces: _Traces) -> Iterator[tuple[str, _Span]]:
    for resource in traces.resourceSpans:
        if service := next((each.value for each in resource.attributes if each.key == SERVICE), ""):
            yield from ((service, span) for scope in resource.scopeSpans for span in scope.spans)
