"""The contract of MetricReader, over the fake, folders of CSV files and a Prometheus API on loopback."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import Http
from adapters.readers.reader import Reader as DefinedReader
from adapters.tools.files import MetricFiles
from core.model.errors import ToolUnavailable
from core.ports import MetricReader, Partial, Series, TimeWindow
from core.rca.signals import level
from tests.fakes.readers import reader as opened_reader
from tests.fakes.tools import BrokenTool, FakeMetricReader

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
MINUTES = TimeWindow(START, START + timedelta(minutes=5))

Reader = Callable[[Sequence[Series]], Awaitable[MetricReader]]
Handler = Callable[[web.Request], Awaitable[web.Response]]


async def metadata(request: web.Request) -> web.Response:
    if "hide" in request.headers:
        return web.Response(status=404)
    types = {
        "requests_total": "counter",
        "latency": "summary",
        "jobs": "counter",
        "odd_total": "unknown",
    } | dict.fromkeys(("lag_sum", "depth_count"), "gauge")
    return web.json_response(
        {"status": "success", "data": {name: [{"type": kind, "help": ""}] for name, kind in types.items()}}
    )


@pytest.fixture
async def prometheus_api() -> AsyncIterator[Callable[[Handler], Awaitable[DefinedReader]]]:
    opened: list[TestServer | aiohttp.ClientSession] = []

    async def serve(handler: Handler) -> DefinedReader:
        app = web.Application()
        app.router.add_post("/api/v1/query_range", handler)
        app.router.add_get("/api/v1/metadata", metadata)
        server = TestServer(app)
        await server.start_server()
        session = aiohttp.ClientSession()
        opened.extend([session, server])
        return opened_reader("prometheus", Http("Prometheus", str(server.make_url("")), session))

    yield serve
    for one in opened:
        await one.close()


@pytest.fixture(params=["fake", "files", "prometheus"])
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, prometheus_api: Callable[[Handler], Awaitable[DefinedReader]]
) -> Reader:
    async def fake(series: Sequence[Series]) -> MetricReader:
        return FakeMetricReader(series)

    async def files(series: Sequence[Series]) -> MetricReader:
        folder = tmp_path / "live" / "metrics"
        folder.mkdir(parents=True)
        for service in {one.service for one in series}:
            (folder / f"{service}.csv").write_text(as_csv([one for one in series if one.service == service]), "utf-8")
        return MetricFiles("files", tmp_path)

    async def prometheus(series: Sequence[Series]) -> MetricReader:
        async def handler(request: web.Request) -> web.Response:
            return await answered(request, series)

        return await prometheus_api(handler)

    return {"fake": fake, "files": files, "prometheus": prometheus}[request.param]


def as_csv(series: Sequence[Series]) -> str:
    rows = [",".join(["timestamp", *(one.metric for one in series)])]
    for index, at in enumerate(series[0].times):
        cells = ["" if math.isnan(one.values[index]) else str(one.values[index]) for one in series]
        rows.append(",".join([at.strftime("%Y-%m-%dT%H:%M:%SZ"), *cells]))
    return "\n".join(rows) + "\n"


async def answered(request: web.Request, series: Sequence[Series]) -> web.Response:
    """What Prometheus answers to a selector of one service, over a range with both ends in it."""
    form = await request.post()
    start, end = (datetime.fromisoformat(str(form[name])).timestamp() for name in ("start", "end"))
    found = [one for one in series if f'{{service="{one.service}",' in str(form["query"])]
    rows = [
        {
            "metric": {"__name__": one.metric, "service": one.service, "instance": "10.0.0.1:9404"},
            "values": [
                [at.timestamp(), str(value)]
                for at, value in zip(one.times, one.values, strict=True)
                if start <= at.timestamp() <= end
            ],
        }
        for one in found
    ]
    data = {"resultType": "matrix", "result": [row for row in rows if row["values"]]}
    return web.json_response({"status": "success", "data": data})


def series(service: str, metric: str, values: Sequence[float]) -> Series:
    times = tuple(START + timedelta(seconds=60 * index) for index in range(len(values)))
    return Series(service, metric, times, tuple(values))


async def test_every_metric_of_the_service_is_read(reader: Reader) -> None:
    latency, pending = series("api", "latency_p99", [0.4, 0.5, 2.5]), series("api", "pending", [0.0, 0.0, 12.0])
    tool = await reader([latency, pending, series("other", "pending", [1.0, 1.0, 1.0])])
    assert await tool.series("api", MINUTES) == [latency, pending]


async def test_the_window_holds_its_start_and_not_its_end(reader: Reader) -> None:
    tool = await reader([series("api", "pending", [float(value) for value in range(10)])])
    (found,) = await tool.series("api", MINUTES)
    assert found.values == (0.0, 1.0, 2.0, 3.0, 4.0)


async def test_a_missing_value_is_not_a_number(reader: Reader) -> None:
    tool = await reader([series("api", "pending", [1.0, math.nan, 3.0])])
    (found,) = await tool.series("api", MINUTES)
    assert [math.isnan(value) for value in found.values] == [False, True, False]


async def test_an_unknown_service_has_no_metrics(reader: Reader) -> None:
    tool = await reader([series("api", "pending", [1.0])])
    assert await tool.series("nobody", MINUTES) == []


async def test_a_window_without_a_value_has_no_metrics(reader: Reader) -> None:
    tool = await reader([series("api", "pending", [1.0])])
    assert await tool.series("api", TimeWindow(START - timedelta(hours=1), START)) == []


async def test_a_broken_fake_says_so() -> None:
    with pytest.raises(ToolUnavailable):
        await BrokenTool().series("api", MINUTES)


@pytest.mark.parametrize("content", ["timestamp,pending\nyesterday,1\n", "timestamp,pending\n2026-03-14T09:00:00,1\n"])
async def test_a_metric_file_with_a_wrong_time_is_unavailable(content: str, tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "api.csv").write_text(content, encoding="utf-8")
    with pytest.raises(ToolUnavailable, match=r"api\.csv"):
        await MetricFiles("files", tmp_path).series("api", MINUTES)


async def test_a_metric_folder_that_is_missing_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match="missing"):
        await MetricFiles("files", tmp_path / "missing").series("api", MINUTES)


def plain(status: int, body: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    return handler


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, "boom"),
        (422, '{"status":"error"}'),
        (200, "<html>"),
        (200, '{"status":"success","data":{"resultType":"vector"}}'),
    ],
)
async def test_a_prometheus_that_answers_wrongly_is_unavailable(
    status: int, body: str, prometheus_api: Callable[[Handler], Awaitable[DefinedReader]]
) -> None:
    tool = await prometheus_api(plain(status, body))
    with pytest.raises(ToolUnavailable):
        await tool.series("api", MINUTES)


async def test_a_prometheus_that_is_not_there_is_unavailable() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ToolUnavailable, match="cannot be reached"):
            await opened_reader("prometheus", Http("Prometheus", "http://127.0.0.1:9", session)).series("api", MINUTES)


async def test_an_endless_answer_is_cut_off(
    prometheus_api: Callable[[Handler], Awaitable[DefinedReader]],
) -> None:
    tool = await prometheus_api(plain(200, "x" * 100_000))
    tool = opened_reader("prometheus", replace(tool.pages.http, max_body=1_000))
    with pytest.raises(ToolUnavailable, match="more than 1000 bytes"):
        await tool.series("api", MINUTES)


async def test_a_service_name_cannot_become_part_of_the_query(
    prometheus_api: Callable[[Handler], Awaitable[DefinedReader]],
) -> None:
    queries: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        queries.append(str((await request.post())["query"]))
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": []}})

    tool = await prometheus_api(handler)
    await tool.series('x"} or {job=~".+\\', MINUTES)
    assert r'{service="x\"} or {job=~\".+\\",' in queries[0]


async def test_a_counter_is_given_as_its_rate_over_all_instances(
    prometheus_api: Callable[[Handler], Awaitable[DefinedReader]],
) -> None:
    def row(instance: str, counts: Sequence[int]) -> dict[str, object]:
        metric = {"__name__": "requests_total", "service": "api", "code": "500", "instance": instance}
        return {
            "metric": metric,
            "values": [[START.timestamp() + 60 * i, str(count)] for i, count in enumerate(counts)],
        }

    async def handler(request: web.Request) -> web.Response:
        rows = [row("a", [0, 60, 180]), row("b", [600, 720, 60])]
        return web.Response(text=json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}))

    tool = await prometheus_api(handler)
    (found,) = await tool.series("api", MINUTES)
    assert found.metric == "requests_total/s{code=500}"
    assert found.values == (3.0, 3.0)  # per second: 1 + 2, then 2 + 1 after instance b was restarted


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf"])
async def test_a_counter_has_no_rate_next_to_a_value_that_is_not_finite(
    odd: str, prometheus_api: Callable[[Handler], Awaitable[DefinedReader]]
) -> None:
    values = [[START.timestamp() + 60 * i, value] for i, value in enumerate(["600", odd, "720", "780"])]
    histogram = {"metric": {"__name__": "latency_seconds"}, "histograms": [[START.timestamp(), {"count": "3"}]]}
    rows = [histogram, {"metric": {"__name__": "requests_total"}, "values": values}]

    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}))

    found = await (await prometheus_api(handler)).series("api", MINUTES)
    assert [(each.metric, each.values) for each in found] == [("requests_total/s", (1.0,))]
    assert isinstance(found, Partial)
    assert ["latency_seconds" in gap.detail for gap in found.gaps] == [True]


@pytest.mark.parametrize(
    ("name", "shown", "grows"),
    [
        ("requests_total", "requests_total/s", False),  # the rate does not
        ("jobs_total", "jobs_total/s", False),  # OpenMetrics
        ("latency_count", "latency_count/s", False),
        ("latency_sum", "latency_sum/s", False),
        ("lag_sum", "lag_sum", False),
        ("depth_count", "depth_count", False),
        ("till_total", "till_total", None),
        ("odd_total", "odd_total", None),
        ("latency_total", "latency_total", None),
    ],
)
async def test_a_metric_is_a_counter_by_its_type_and_not_by_its_name(
    name: str, shown: str, *, grows: bool | None, prometheus_api: Callable[[Handler], Awaitable[DefinedReader]]
) -> None:
    given = series("api", name, [5_000.0, 5_100.0, 40.0, 100.0, 160.0])

    async def handler(request: web.Request) -> web.Response:
        return await answered(request, [given])

    (read,) = await (await prometheus_api(handler)).series("api", MINUTES)
    assert (read.metric, read.is_counter) == (shown, grows)
    assert (read.values == given.values) is (shown == name)
    if shown == name:
        assert level(replace(read, values=(1.0, 2.0, 4.0))).tolist()[1:] == (
            [2.0, 4.0] if grows is False else [1.0, 2.0]
        )


async def test_without_the_types_a_value_is_shown_as_it_is(
    prometheus_api: Callable[[Handler], Awaitable[DefinedReader]],
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return await answered(request, [series("api", "requests_total", [5.0, 3.0]), series("api", "busy", [1.0, 2.0])])

    tool = await prometheus_api(handler)
    hidden = replace(tool.pages, http=replace(tool.pages.http, headers={"hide": "types"}))
    read = await replace(tool, pages=hidden).series("api", MINUTES)
    assert [(each.metric, each.values) for each in read] == [("busy", (1.0, 2.0)), ("requests_total", (5.0, 3.0))]
    assert isinstance(read, Partial)
    assert [gap.tool for gap in read.gaps] == ["prometheus: types of metrics"]
