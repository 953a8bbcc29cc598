"""Loki, over its HTTP API: https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-within-a-range-of-time"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from adapters.tools.http import Http
from core.ports import LogLine, TimeWindow

PAGE = 5_000  # records of one answer: the server's own limit unless it was raised
MAX_PAGES = 8  # read of one service
MAX_LINE = 8_192  # characters kept of one record
LEVEL_LABELS = ("level", "detected_level", "severity")
_NAMES = "FATAL|CRITICAL|PANIC|SEVERE|ERROR|ERR|WARNING|WARN|INFO|NOTICE|DEBUG|TRACE"
# `level=error`, `"severity": "error"`, `[error]` or the bare word in capitals; an error in a sentence is none.
_LEVEL = re.compile(rf"""(?i:\b(?:level|lvl|severity)["']?\s*[=:]\s*["']?({_NAMES})\b|\[({_NAMES})\])|\b({_NAMES})\b""")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Stream(BaseModel):
    stream: dict[str, str]
    values: list[tuple[int, str] | tuple[int, str, dict[str, object]]]


class _Data(BaseModel):
    resultType: Literal["streams"]
    result: list[_Stream]


class _Answer(BaseModel):
    status: Literal["success"]
    data: _Data


_ANSWER = TypeAdapter(_Answer)
_Record = tuple[int, str, str]  # time in ns, level, text


class Loki:
    """LogReader over one Loki. `selectors` maps a service to the labels of its streams; another one is not known."""

    def __init__(self, name: str, http: Http, selectors: Mapping[str, Mapping[str, str]]) -> None:
        self._name = name
        self._http = http
        self._selectors = selectors

    @property
    def name(self) -> str:
        return self._name

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        labels = self._selectors.get(service)
        if labels is None or limit <= 0:
            return []
        found = await self._records(_selector(labels), window, limit)
        newest = sorted(found)[-limit:]
        return [LogLine(service, _time(at), level, text) for at, level, text in newest]

    async def check(self) -> None:
        """Raises ToolUnavailable when Loki refuses a query."""
        for labels in self._selectors.values():
            await self._page(_selector(labels), 0, 1, 1)

    async def _records(self, selector: str, window: TimeWindow, limit: int) -> set[_Record]:
        """Page by page back in time; records of the same nanosecond stand on two pages and are counted once."""
        found: set[_Record] = set()
        end = _nanoseconds(window.end)
        for _ in range(MAX_PAGES):
            size = min(PAGE, limit)
            page = await self._page(selector, _nanoseconds(window.start), end, size)
            more = page - found
            found |= more
            if not more or len(page) < size or len(found) >= limit:
                break
            end = min(at for at, _, _ in page) + 1
        return found

    async def _page(self, selector: str, start: int, end: int, size: int) -> set[_Record]:
        answer = await self._http.parsed(
            "loki/api/v1/query_range",
            _ANSWER,
            {"query": selector, "start": str(start), "end": str(end), "limit": str(size), "direction": "backward"},
        )
        return {
            (value[0], level_of(stream.stream, value[1]), value[1][:MAX_LINE])
            for stream in answer.data.result
            for value in stream.values
            if start <= value[0] < end
        }


def _selector(labels: Mapping[str, str]) -> str:
    """The only query there is; the values come from plumbline.yaml and are quoted."""
    quoted = {
        label: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for label, value in labels.items()
    }
    return "{" + ",".join(f'{label}="{value}"' for label, value in quoted.items()) + "}"


def level_of(labels: Mapping[str, str], text: str) -> str:
    """The level that the labels name, else the first one at the beginning of the text, else INFO."""
    named = next((labels[label] for label in LEVEL_LABELS if labels.get(label, "unknown") != "unknown"), "")
    if not named:
        match = _LEVEL.search(text[:200])
        named = next(name for name in match.groups() if name) if match else "INFO"
    return {"ERR": "ERROR"}.get(named.upper(), named.upper())


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1_000


def _time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1_000)
