"""Loki, HTTP API: https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-within-a-range-of-time"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Literal

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.http import Http
from adapters.tools.parts import Items, answers, gaps_in
from core.model.errors import ToolUnavailable
from core.model.incident import Gap, GapReason
from core.ports import LogLine, Partial, TimeWindow, gap_of

PAGE = 5_000  # records per response; the server's default limit
MAX_PAGES = 8  # per service
FILLED = 0.8  # share of the last full page's duration that is expected to fit into one page
MAX_LINE = 8_192  # characters per record
LEVEL_LABELS = ("level", "detected_level", "severity")
_NAMES = "FATAL|CRITICAL|PANIC|SEVERE|ERROR|ERR|WARNING|WARN|INFO|NOTICE|DEBUG|TRACE"
# `level=error`, `"severity": "error"`, `[error]` or the bare word in capitals; not "error" within a sentence.
_LEVEL = re.compile(rf"""(?i:\b(?:level|lvl|severity)["']?\s*[=:]\s*["']?({_NAMES})\b|\[({_NAMES})\])|\b({_NAMES})\b""")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Stream(BaseModel):
    stream: dict[str, str]
    values: Items[tuple[int, str] | tuple[int, str, dict[str, object]]]


class _Answer(BaseModel):
    status: Literal["success"]
    kind: Literal["streams"] = Field(validation_alias=AliasPath("data", "resultType"))
    streams: Items[_Stream] = Field(validation_alias=AliasPath("data", "result"))


_ANSWER = TypeAdapter(_Answer)
_Record = tuple[int, str, str]  # time in ns, level, text


class Loki:
    """LogReader over Loki. `selectors` maps a service to the labels of its streams; other services are unknown."""

    def __init__(self, name: str, http: Http, selectors: Mapping[str, Mapping[str, str]]) -> None:
        self.name = name
        self._http = http
        self._selectors = selectors

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        labels = self._selectors.get(service)
        if labels is None or limit <= 0:
            return []
        found, gaps = await self._records(_selector(labels), window, limit)
        newest = sorted(found)[-limit:]
        return Partial((LogLine(service, _time(at), level, text) for at, level, text in newest), gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if Loki refuses a query."""
        for labels in self._selectors.values():
            await self._page(_selector(labels), 0, 1, 1)

    async def _records(self, selector: str, window: TimeWindow, limit: int) -> tuple[set[_Record], set[Gap]]:
        """Read records backwards in time without gaps. Records of the same nanosecond on two pages are counted once.

        A full page shows the rate of records, from which further time spans are chosen and requested concurrently.
        Raises ToolUnavailable if nothing could be read.
        """
        start, end = _nanoseconds(window.start), _nanoseconds(window.end)
        size, length, left = min(PAGE, limit), end - start, MAX_PAGES
        found: set[_Record] = set()
        gaps: set[Gap] = set()
        while left and start < end and len(found) < limit:
            count = min(left, ceil((limit - len(found)) / size)) if found else 1
            edges = [*(edge for number in range(count) if (edge := end - number * length) > start), start]
            stretches = list(pairwise(edges))
            pages = await answers([("records", self._page(selector, low, high, size)) for high, low in stretches])
            left -= len(pages)
            known = len(found)
            for (high, low), page in zip(stretches, pages, strict=True):
                end = low
                if isinstance(page, ToolUnavailable):
                    if not found:
                        raise page
                    gaps.add(gap_of(f"{self.name}: records from {_time(low):%H:%M:%S} to {_time(high):%H:%M:%S}", page))
                    continue
                found.update(page)
                gaps |= {replace(gap, tool=f"{self.name}: records") for gap in page.gaps}
                if len(page) >= size:  # the older part of this span is missing
                    end = min(at for at, _, _ in page) + 1
                    length = max(1, int(FILLED * (high - end)))
                    break
            if len(found) == known:
                break
        if not left and start < end and len(found) < limit:
            gaps.add(Gap(f"{self.name}: records", GapReason.LEFT_OUT, f"those before {_time(end):%H:%M:%S}"))
        return found, gaps

    async def _page(self, selector: str, start: int, end: int, size: int) -> Partial[_Record]:
        answer = await self._http.parsed(
            "loki/api/v1/query_range",
            _ANSWER,
            {"query": selector, "start": str(start), "end": str(end), "limit": str(size), "direction": "backward"},
        )
        found = {
            (value[0], level_of(stream.stream, value[1]), value[1][:MAX_LINE])
            for stream in answer.streams
            for value in stream.values
            if start <= value[0] < end
        }
        return Partial(
            found, (gap for items in (answer.streams, *(s.values for s in answer.streams)) for gap in gaps_in(items))
        )


def _selector(labels: Mapping[str, str]) -> str:
    """Return the only query that is used. The values come from plumbline.yaml and are quoted."""
    quoted = {
        label: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for label, value in labels.items()
    }
    return "{" + ",".join(f'{label}="{value}"' for label, value in quoted.items()) + "}"


def level_of(labels: Mapping[str, str], text: str) -> str:
    """Return the level from the labels, else from the beginning of the text, else INFO."""
    named = next((labels[label] for label in LEVEL_LABELS if labels.get(label, "unknown") != "unknown"), "")
    if not named:
        match = _LEVEL.search(text[:200])
        named = next(name for name in match.groups() if name) if match else "INFO"
    return {"ERR": "ERROR"}.get(named.upper(), named.upper())


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1_000


def _time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1_000)
