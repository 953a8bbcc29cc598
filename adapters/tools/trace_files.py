"""The calls between services, from OpenTelemetry traces in files: `<root>/**/*.json` or `.jsonl`.

A file has a document a line, as the OpenTelemetry Collector writes them, or documents over several lines, or an array.
https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, cast

from pydantic import AliasChoices, AliasGenerator, AliasPath, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from adapters.edge import Items, typed
from adapters.section import Host
from adapters.text_files import decoded
from adapters.tools.section import FilesTool, ParsedFiles, Tools, kept, refuse_gaps
from core.model.findings import Gap, GapReason
from core.model.text import json_text
from core.ports import Partial, PartialGraph, TimeWindow

SUFFIXES = (".json", ".jsonl")
MAX_FILE = 64 * 1024 * 1024  # bytes; of a longer file, the last ones are read
MAX_FILES = 200
SERVICE = "service.name"  # attribute of a resource, by OpenTelemetry's semantic conventions
LATEST = 253_402_300_799 * 10**9  # the last nanosecond of datetime's years that is a whole second
STRING = ("stringValue", "string_value")
SPANS = (
    "resourceSpans",
    "resource_spans",
    "batches",
    AliasPath("trace", "resourceSpans"),
    AliasPath("trace", "batches"),
)
"""Names of the list of spans: OTLP's, and those of Grafana Tempo."""
_DOCUMENT = re.compile(rb"\r?\n(?=[{\[])")  # the lines within a document are indented


class _Otlp(BaseModel):
    """A message of OTLP, with names as in JSON or as in its protocol definition."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(to_camel(name), name))
    )


class _Attribute(_Otlp):
    key: str
    value: str = Field("", validation_alias=AliasChoices(*(AliasPath("value", each) for each in STRING)))


class _Span(_Otlp):
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    start_time_unix_nano: int = Field(0, ge=0, le=LATEST)


class _Scope(_Otlp):
    spans: Items[_Span] = []


class _ResourceSpans(_Otlp):
    attributes: Items[_Attribute] = Field([], validation_alias=AliasPath("resource", "attributes"))
    scope_spans: Items[_Scope] = []


class _Traces(_Otlp):
    resource_spans: Items[_ResourceSpans] = Field(validation_alias=AliasChoices(*SPANS))


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
        self._files = ParsedFiles(root, SUFFIXES, _read)

    async def dependencies(self, window: TimeWindow) -> PartialGraph:
        paths = (await asyncio.to_thread(self._files.paths))[-MAX_FILES:]
        calls = await kept(self.name, [(str(path), asyncio.to_thread(self._within, path, window)) for path in paths])
        return PartialGraph(graph_of((call.caller, call.service) for call in calls), calls.gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if the folder does not exist, or a file in it cannot be read or holds no traces."""
        always = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
        refuse_gaps((await self.dependencies(always)).gaps)

    def _within(self, path: Path, window: TimeWindow) -> list[_Call]:
        calls = self._files.content(path)
        return Partial((call for call in calls if window.start <= call.at < window.end), calls.gaps)


def _read(path: Path) -> Partial[_Call]:
    """Return the calls in a file, with a gap for what in it is no trace."""
    values = (each for value in _values(path) for each in (value if isinstance(value, list) else [value]))
    documents = typed(cast("Iterator[object]", values), _Traces.model_validate)
    spans = [each for traces in documents for each in _spans(traces)]
    service_of = {(span.trace_id, span.span_id): service for service, span in spans}
    calls = [
        _Call(
            datetime.fromtimestamp(span.start_time_unix_nano / 1e9, UTC),
            service_of.get((span.trace_id, span.parent_span_id or ""), ""),
            service,
        )
        for service, span in spans
    ]
    if spans or not (documents or documents.gaps):
        return Partial(calls, documents.gaps)
    return Partial(gaps=[Gap("", GapReason.LEFT_OUT, f"no span with a {SERVICE} in it; expected OpenTelemetry's JSON")])


def _values(path: Path) -> Iterator[object]:
    """Yield the JSON values in a file, and None for each that cannot be read."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_FILE))
        text = json_text(decoded(file.read(MAX_FILE))).encode("utf-8", "replace")
    whole = _value(text)
    for document in [] if whole is not None else _DOCUMENT.split(text):
        value = _value(document)
        yield from [value] if value is not None else map(_value, filter(bytes.strip, document.splitlines()))
    yield from [whole] if whole is not None else []


def _value(text: bytes) -> object:
    try:
        return from_json(text.rstrip(b", \t\r\n"))  # a line may be one of an array that was cut
    except ValueError:
        return None


def _spans(traces: _Traces) -> Iterator[tuple[str, _Span]]:
    for resource in traces.resource_spans:
        if service := next((each.value for each in resource.attributes if each.key == SERVICE), ""):
            yield from ((service, span) for scope in resource.scope_spans for span in scope.spans)


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the services that each caller calls, sorted by name. Calls of a service to itself are left out."""
    graph: dict[str, set[str]] = {}
    for caller, callee in calls:
        if caller and callee and caller != callee:
            graph.setdefault(caller, set()).add(callee)
    return {caller: tuple(sorted(callees)) for caller, callees in sorted(graph.items())}


class TraceFilesTool(FilesTool):
    kind: Literal["trace_files"]
    name: str = "trace files"

    def open(self, host: Host) -> Tools:
        return Tools(graphs=(TraceFiles(self.name, self.path),))
