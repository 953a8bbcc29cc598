"""The reader of a system that a definition describes: its logs, metrics, changes, and calls between services."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise, zip_longest
from math import ceil
from typing import Any, NamedTuple, TypeVar

from adapters.http import line_of, typed, unread
from adapters.readers.definition import Calls, ChangeOutcome, Changes, Definition, Logs, Metrics, Reading, Spans
from adapters.readers.pages import CUT, MAX_QUOTE, Pages, ReadPage
from adapters.readers.values import (
    JsonItem,
    Samples,
    Services,
    Unaskable,
    Values,
    amount,
    filled,
    first_word,
    is_counter,
    is_name,
    joined,
    moment,
    name_of,
    strings,
    text_in,
    text_of,
    texts,
)
from adapters.tools.files import graph_of
from adapters.tools.section import MAX_LINE, MAX_TITLE, Part, answers, chosen, clipped, detailed, kept
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.model.log_levels import level_of
from core.ports import Change, LogLine, Partial, PartialGraph, Series, TimeWindow, gap_of

FILLED = 0.8  # share of the last full page's duration that is expected to fit into one page
MAX_QUOTED = 5  # records of one page without a time that is understood
MAX_CALLS = 10_000  # pairs of services
MAX_SPANS = 200_000
MAX_CHANGES = 500
SHORT = 12  # characters of a revision that is an id
EARLIER = timedelta(hours=6)  # between the creation of a change and its success
MIN_STEP = timedelta(seconds=15)  # between points
MAX_POINTS = 240  # per series
T = TypeVar("T")
_Record = tuple[datetime, str, str, str]  # with its time as it is written, level, text


class _Span(NamedTuple):
    trace: str
    span: str
    parent: str
    service: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Reader:
    """LogReader, MetricReader, ChangeReader and DependencyReader, as far as the definition describes these data.

    `services` maps a service to its name in the system, or to its labels there.
    """

    name: str
    pages: Pages
    definition: Definition
    services: Services

    async def check(self) -> None:
        """Raise ToolUnavailable if the system refuses a request."""
        if self.definition.check is not None:
            await self.pages.send(self.definition.check, {})
            return
        now = datetime.now(UTC)
        window = TimeWindow(now - timedelta(minutes=1), now)
        for service in self.services or ("plumbline",):
            of_project = self.definition.values_of(str(self.services.get(service, service)))
            for reading in self.definition.readings:
                await self.pages.page(reading, {**of_project, **self._values(window, service), "limit": 1})

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        logs = self.definition.logs
        if logs is None or limit <= 0 or not self._is_known(service):
            return []
        try:
            by_time = logs.paging is not None and logs.paging.by == "time"
            records = await (self._backwards if by_time else self._latest)(logs, service, window, limit)
        except Unaskable:
            return []
        newest = sorted(records)[-limit:]
        return Partial((LogLine(service, at, level, text) for at, _, level, text in newest), records.gaps)

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        metrics = self.definition.metrics
        if metrics is None or not self._is_known(service):
            return []
        values = self._values(window, service)
        try:
            samples = await self._all("series", metrics, values, lambda item: _samples(metrics, item, window))
        except Unaskable:
            return []
        rows = chosen(_together(samples), metrics.most, f"{self.name}: series", lambda each: each.metric)
        counters, gaps = await self._counters(metrics, {row.metric for row in rows}, values)
        return Partial(joined(service, rows, metrics.hidden, counters), (*samples.gaps, *rows.gaps, *gaps))

    async def _counters(
        self, metrics: Metrics, names: Collection[str], values: Values
    ) -> tuple[dict[str, bool | None], list[Gap]]:
        """Return whether each metric that is named like a counter is one; None if its type is not known."""
        named = [name for name in names if metrics.counters and name.endswith(metrics.counters)]
        if metrics.types is None or not named:
            return dict.fromkeys(named, True), []
        (types,) = await answers([("", self.pages.types(metrics.types, values))])
        if isinstance(types, ToolUnavailable):
            return {}, [gap_of(f"{self.name}: types of metrics", types)]
        return {name: is_counter(name, types) for name in named}, []

    async def changes(self, window: TimeWindow) -> list[Change]:
        whole, projects = self.definition.changes, defaultdict[str, list[str]](list)
        parts: list[Part[Change]] = []
        for service, name in self.services.items():
            projects[text_of(name)].append(service)
        if whole is not None:
            names = {name: owners[-1] for name, owners in projects.items()}
            made = partial(_change, whole, names)
            parts.append(("changes", self._all("changes", whole, self._values(window), made)))
        for part, changes in (("commits", self.definition.commits), ("deployments", self.definition.deployments)):
            if changes is not None:
                parts += [
                    (f"{part} of {project}", self._of_project(part, changes, project, owners, window))
                    for project, owners in projects.items()
                ]
        read = await kept(self.name, parts)
        inside = [each for each in read if window.start <= each.at < window.end]
        latest = sorted(inside, key=lambda change: change.at, reverse=True)
        last = chosen(latest, MAX_CHANGES, f"{self.name}: changes", lambda change: change.id)
        return Partial(reversed(last), (*read.gaps, *last.gaps))

    async def _of_project(
        self, part: str, changes: Changes, project: str, owners: Sequence[str], window: TimeWindow
    ) -> Partial[Change]:
        """Return the changes of a project. One that several services share has the service that it names, if any.

        A change with files names none: its paths show which ones it affects.
        """
        values = {**self._values(window), **self.definition.values_of(project)}
        read = await self._all(f"{part} of {project}", changes, values, partial(_change, changes, {}))
        named = owners if changes.files is None or len(owners) == 1 else []
        by_id = {each.id: replace(each, service=_owner(each, named)) for each in read}
        return Partial(by_id.values(), read.gaps)

    async def _of_window(self, part: str, changes: Changes, page: ReadPage, values: Values) -> ReadPage:
        """Return the items of a page that may be of the window, the first of them with their details."""
        items, is_cut = Partial(page.items, page.gaps), page.is_cut
        if (listed := changes.listed) is not None:
            times = await self.pages.mapped(page, lambda item: (moment(listed.first(item)), item))
            recent = [(at, item) for at, item in times if at >= values["start"] - EARLIER]
            items = Partial((item for at, item in recent if at < values["end"]), times.gaps)
            is_cut = is_cut and len(recent) == len(times)
        if (details := changes.details) is not None:
            first = chosen(items, details.most, f"{self.name}: {details.name} of {part}", partial(_name, changes))
            given = [
                (f"{details.name} of {_name(changes, item)}", item, self.pages.detailed(changes, details, item, values))
                for item in first
            ]
            complete = await detailed(self.name, given)
            items = Partial([*complete, *items[details.most :]], (*first.gaps, *complete.gaps))
        return replace(page, items=items, gaps=items.gaps, is_cut=is_cut)

    async def dependencies(self, window: TimeWindow) -> PartialGraph:
        calls, spans, values = self.definition.calls, self.definition.spans, self._values(window)
        if calls is not None:
            pairs = await self._all("calls", calls, values, lambda item: _call(calls, item))
            distinct = chosen(list(dict.fromkeys(pairs)), MAX_CALLS, f"{self.name}: calls", " → ".join)
            return PartialGraph(graph_of(distinct), (*pairs.gaps, *distinct.gaps))
        if spans is None:
            return PartialGraph({})
        read = await self._all("spans", spans, values, lambda item: _span(spans, item))
        spans_read = chosen(read, MAX_SPANS, f"{self.name}: spans", lambda each: each.service)
        return PartialGraph(graph_of(_between(spans_read, window)), spans_read.gaps)

    def _is_known(self, service: str) -> bool:
        return service in self.services or (self.definition.services == "any" and is_name(service))

    def _values(self, window: TimeWindow, service: str = "") -> Values:
        length = window.end - window.start
        return {
            "start": window.start,
            "end": window.end,
            "length": length,
            "step": max(MIN_STEP, length / MAX_POINTS),
            "service": self.services.get(service, service),
        }

    async def _all(
        self, part: str, reading: Reading, values: Values, made: Callable[[JsonItem], T | None]
    ) -> Partial[T]:
        """Return what is made of the items of all pages, or of those before the first that cannot be read."""
        results = Partial[T]()
        try:
            with unread():  # whose gaps those of the pages are
                async for page in self.pages.every(reading, values):
                    whole = await self._of_window(part, reading, page, values) if isinstance(reading, Changes) else page
                    items = await self.pages.mapped(whole, made)
                    results += items
                    results.gaps += self._named(part, [*items.gaps, *([CUT] if whole.is_cut else [])])
        except ToolUnavailable as error:
            if not results:
                raise
            results.gaps += (gap_of(f"{self.name}: {part}", error),)
        return results

    def _named(self, part: str, gaps: Iterable[Gap]) -> tuple[Gap, ...]:
        tool = f"{self.name}: "
        names = ((gap, f"{part} of {gap.tool}" if gap.tool else part) for gap in gaps)
        return tuple(gap if gap.tool.startswith(tool) else replace(gap, tool=f"{tool}{name}") for gap, name in names)

    async def _latest(self, logs: Logs, service: str, window: TimeWindow, limit: int) -> Partial[_Record]:
        """Read records from the latest on, page by page."""
        values = {**self._values(window, service), "limit": limit}
        latest = Partial[_Record]()
        try:
            async for page in self.pages.every(logs, values):
                records = await self._records(logs, page, window)
                latest += records
                latest.gaps += records.gaps
                if len(latest) >= limit:
                    break
                if page.is_cut:
                    latest.gaps += self._named("records", [CUT])
        except ToolUnavailable as error:
            if not latest:
                raise
            latest.gaps += (gap_of(f"{self.name}: records", error),)
        return latest

    async def _backwards(self, logs: Logs, service: str, window: TimeWindow, limit: int) -> Partial[_Record]:
        """Read records backwards in time without gaps. Records on two pages are counted once.

        A full page shows the rate of records, from which further time spans are chosen and requested concurrently.
        Raises ToolUnavailable if nothing could be read.
        """
        assert logs.paging is not None
        start, end = window.start, window.end
        size, length, left = min(logs.paging.size, limit), end - start, logs.paging.most
        read, gaps, part = set[_Record](), set[Gap](), f"{self.name}: records"
        while left and start < end and len(read) < limit:
            count = min(left, ceil((limit - len(read)) / size)) if read else 1
            edges = [*(edge for number in range(count) if (edge := end - number * length) > start), start]
            stretches = list(pairwise(edges))
            calls = (self._stretch(logs, service, TimeWindow(low, high), size) for high, low in stretches)
            pages = await answers([("records", each) for each in calls])
            left -= len(pages)
            before = len(read)
            for (high, low), outcome in zip(stretches, pages, strict=True):
                end = low
                if isinstance(outcome, ToolUnavailable):
                    if not read:
                        raise outcome
                    gaps.add(gap_of(f"{part} from {low:%H:%M:%S} to {high:%H:%M:%S}", outcome))
                    continue
                page, is_full = outcome
                read.update(page)
                gaps.update(page.gaps)
                if is_full and page:  # the older part of this span is missing
                    end = min(record[0] for record in page) + timedelta.resolution
                    length = max(timedelta.resolution, FILLED * (high - end))
                    break
            if len(read) == before:
                break
        if not left and start < end and len(read) < limit:
            gaps.add(Gap(part, GapReason.LEFT_OUT, f"those before {end:%H:%M:%S}"))
        return Partial(read, gaps)

    async def _stretch(self, logs: Logs, service: str, window: TimeWindow, size: int) -> tuple[Partial[_Record], bool]:
        """Return the records of a time span, and whether there may be more of them."""
        page = await self.pages.page(logs, {**self._values(window, service), "limit": size})
        records = await self._records(logs, page, window)
        return Partial(set(records), records.gaps), len(page.items) >= size

    async def _records(self, logs: Logs, page: ReadPage, window: TimeWindow) -> Partial[_Record]:
        """Return the records of a page within a window, with a gap that quotes those whose time cannot be read."""
        read = await self.pages.mapped(page, partial(_record, logs, filled([*logs.text_fields], self.pages.settings)))
        untimed = [each for each in read if isinstance(each, str)]
        quoted = f"the times of {len(untimed)} of {len(page.items)} cannot be read: {'; '.join(untimed[:MAX_QUOTED])}"
        gaps = (*read.gaps, *([Gap("", GapReason.LEFT_OUT, quoted)] if untimed else []))
        inside = (each for each in read if not isinstance(each, str) and window.start <= each[0] < window.end)
        return Partial(inside, self._named("records", gaps))


def _record(logs: Logs, fields: Sequence[str], item: JsonItem) -> _Record | str:
    """Return a record, or a quotation of one whose time cannot be read. Raises ValueError for any other."""
    written = next((at for path in logs.at if (at := path.first(item)) is not None), None)
    members = logs.labels.first(item) if logs.labels is not None else None
    text = texts(logs.text, item) or next(filter(None, (text_in(members, name) for name in fields)), "")
    labels = strings(members)
    if not text and not (logs.blank and logs.text[0].first(item) == ""):
        raise ValueError(f"a record has no text, only {', '.join(labels) or 'a time'}")
    if logs.level is not None and (level := text_of(logs.level.first(item))):
        labels["level"] = level
    try:
        at = moment(written)
    except ValueError:
        if not text or not isinstance(written, str):
            raise
        return line_of(f"{text} ({written})"[:MAX_LINE], MAX_QUOTE)
    return at, text_of(written), level_of(labels, text), text[:MAX_LINE]


def _samples(metrics: Metrics, item: JsonItem, window: TimeWindow) -> Samples:
    labels = strings(metrics.labels.first(item)) if metrics.labels is not None else {}
    name = (text_of(metrics.name.first(item)) if metrics.name is not None else "") or metrics.title
    if not name and not labels:
        raise ValueError("a series has no name")
    return Samples(name, labels, {at: value for at, value in _points(metrics, item) if at < window.end.timestamp()})


def _points(metrics: Metrics, item: JsonItem) -> Partial[tuple[float, float]]:
    if metrics.times is not None and metrics.values is not None:
        pairs = zip(metrics.times.elements(item), metrics.values.elements(item), strict=True)
        return typed(pairs, lambda pair: (moment(pair[0]).timestamp(), amount(pair[1])))
    at, value = metrics.at, metrics.value
    assert at is not None
    assert value is not None
    points = [item] if metrics.points is None else map(JsonItem, metrics.points.elements(item))
    return typed(points, lambda point: (moment(at.first(point)).timestamp(), amount(value.first(point))))


def _together(samples: Sequence[Samples]) -> list[Samples]:
    """Return the samples of each metric and its labels together."""
    merged: dict[tuple[str, frozenset[tuple[str, str]]], Samples] = {}
    for each in samples:
        key = each.metric, frozenset(each.labels.items())
        earlier = merged.get(key)
        merged[key] = each if earlier is None else each._replace(points={**earlier.points, **each.points})
    return list(merged.values())


def _change(changes: Changes, names: Mapping[str, str], item: JsonItem) -> Change | None:
    name = name_of(changes.service.first(item)) if changes.service is not None else ""
    if names and name and name not in names:
        return None
    id_, title = texts(changes.id, item), texts(changes.title, item).partition("\n")[0]
    at = moment(next(filter(None, (path.first(item) for path in changes.at)), None))
    if not id_:
        raise ValueError("a change has no id")
    if changes.outcome is not None:
        success, is_known = _success(changes.outcome, item, at)
        if success is None:
            return None
        at, title = success, title if is_known else f"{title}, whose success is not known"
    revision = text_of(changes.revision.first(item)) if changes.revision is not None else ""
    revisions = [text_of(each) for each in changes.revisions.all(item)] if changes.revisions is not None else []
    sources = changes.sources.all(item) if changes.sources is not None else []
    shipped = [
        f"{texts(changes.source, JsonItem(source))} at {of_source}".strip()
        for source, of_source in zip_longest(sources, revisions, fillvalue="")
    ]
    listed = typed([changes.files] if changes.files is not None else [], lambda path: path.elements(item))
    files = typed([each for files in listed for each in files], lambda each: _file(changes, JsonItem(each)))
    return clipped(
        Change(
            id=id_[: MAX_TITLE if id_ != revision else SHORT],
            at=at,
            kind=changes.kind,
            service=names.get(name, name),
            author=texts(changes.author, item),
            title=title.replace(" refs/heads/", " "),
            detail="\n".join(filter(None, [texts(changes.detail, item).removeprefix(title).strip(), *shipped])),
            files=tuple(path for path, _ in files),
            diff="\n".join(f"--- a/{path}\n+++ b/{path}\n{patch}" for path, patch in files if patch),
            url=text_of(changes.url.first(item)) if changes.url is not None else "",
            revision=revision or next(iter(revisions), ""),
            commits=tuple(revisions),
        )
    )


def _success(outcome: ChangeOutcome, item: JsonItem, at: datetime) -> tuple[datetime | None, bool]:
    """Return when a change was first made, and whether that is known; None if it was not. `at` is its own time."""
    states = typed(outcome.states.all(item), lambda each: _state(outcome, JsonItem(each)))
    made = [moment(when) if when else at for state, when in states if state == outcome.done]
    if made:
        return min(made), True
    return (None, True) if states and not states.gaps else (at, False)


def _file(changes: Changes, item: JsonItem) -> tuple[str, str] | None:
    """Return the path of a file and what was changed in it; None for a folder."""
    if any(path.first(item) is True for path in changes.folder):
        return None
    if not (path := first_word(changes.path, item)):
        raise ValueError("a file has no path")
    return path.lstrip("/"), texts(changes.patch, item)


def _state(outcome: ChangeOutcome, item: JsonItem) -> tuple[str, Any]:
    if not (state := name_of(outcome.state.first(item))):
        raise ValueError("it has no state")
    return state, outcome.at.first(item)


def _owner(change: Change, owners: Sequence[str]) -> str:
    """Return the service that a change names, or the only one of its project."""
    named = [owner for owner in owners if len(owners) == 1 or owner in f"{change.title} {change.detail}"]
    return max(named, key=len, default="")


def _name(changes: Changes, item: JsonItem) -> str:
    return texts(changes.id, item)[:SHORT]


def _call(calls: Calls, item: JsonItem) -> tuple[str, str]:
    caller, callee = calls.caller.first(item), calls.callee.first(item)
    if not isinstance(caller, str) or not isinstance(callee, str):
        raise ValueError("a call has no two services")  # noqa: TRY004  # of an answer, not of a caller
    return caller, callee


def _span(spans: Spans, item: JsonItem) -> _Span:
    trace, span, parent, service = (
        name_of(path.first(item)) for path in (spans.trace, spans.span, spans.parent, spans.service)
    )
    if not (trace and span and service):
        raise ValueError("a span has no trace, id or service")
    return _Span(trace, span, parent, service, moment(spans.at.first(item)))


def _between(spans: Sequence[_Span], window: TimeWindow) -> Iterator[tuple[str, str]]:
    """Yield the caller and the callee of each span of the window whose parent is known."""
    service_of = {(each.trace, each.span): each.service for each in spans}
    inside = (each for each in spans if window.start <= each.at < window.end)
    return ((service_of.get((each.trace, each.parent), ""), each.service) for each in inside)
