"""The contract of DependencyReader, over Jaeger, Zipkin and files of traces."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.tools.files import TraceFiles
from core.model.errors import ToolUnavailable
from core.ports import DependencyReader, TimeWindow
from tests.fakes.readers import reader as opened_reader
from tests.fakes.tool_servers import FakeToolServer, reached

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
DAY = TimeWindow(START - timedelta(days=1), START)
Calls = Sequence[tuple[str, str]]
CALLS: Calls = (("shop", "stock"), ("shop", "cart"), ("cart", "stock"), ("cart", "cart"), ("shop", "stock"))


class FakeTraces(FakeToolServer):
    """Jaeger and Zipkin, each at its own path."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Calls = ()

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/dependencies", self._jaeger), web.get("/api/v2/dependencies", self._zipkin)]

    async def _jaeger(self, request: web.Request) -> web.Response:
        return web.json_response({"data": self._links(request) or None, "total": 0, "errors": None})

    async def _zipkin(self, request: web.Request) -> web.Response:
        return web.json_response(self._links(request))

    def _links(self, request: web.Request) -> list[dict[str, object]]:
        end, lookback = int(request.query["endTs"]), int(request.query["lookback"])
        assert (end, lookback) == (round(START.timestamp() * 1000), 24 * 3600 * 1000)
        return [{"parent": parent, "child": child, "callCount": 3} for parent, child in self.calls]


Reader = Callable[[Calls], Awaitable[DependencyReader]]


@pytest.fixture(params=["jaeger", "zipkin", "files"])
async def reader(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reader]:
    async with AsyncExitStack() as stack:

        async def opened(calls: Calls) -> DependencyReader:
            if request.param == "files":
                (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, written(calls))), encoding="utf-8")
                return TraceFiles("traces", tmp_path)
            fake = FakeTraces()
            fake.calls = calls
            http = await stack.enter_async_context(reached(fake))
            return opened_reader(request.param, http, name="traces")

        yield opened


def span(service: str, trace: int, number: int, parent: int = 0, at: datetime = START - timedelta(hours=1)) -> Any:
    told = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "startTimeUnixNano": str(round(at.timestamp() * 1e9)),
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [told]}]}]}


def written(calls: Calls) -> list[Any]:
    """Each call as a trace of two spans, the callee's first, as collectors write what ends first."""
    return [
        line
        for number, (caller, callee) in enumerate(calls, start=1)
        for line in (span(callee, number, 2, parent=1), span(caller, number, 1))
    ]


async def test_who_calls_whom_is_read_each_pair_once_and_no_service_calls_itself(reader: Reader) -> None:
    found = await reader(CALLS)
    assert found.name == "traces"
    assert await found.dependencies(DAY) == {"cart": ("stock",), "shop": ("cart", "stock")}


async def test_where_nothing_was_traced_nobody_calls_anybody(reader: Reader) -> None:
    assert await (await reader(())).dependencies(DAY) == {}


@pytest.mark.parametrize("kind", ["jaeger", "zipkin"])
async def test_a_server_that_refuses_says_so(kind: str) -> None:
    fake = FakeTraces()
    fake.refuse(500)
    async with reached(fake) as http:
        with pytest.raises(ToolUnavailable):
            await opened_reader(kind, http).dependencies(DAY)


async def test_what_is_no_trace_or_of_another_time_is_skipped(tmp_path: Path) -> None:
    late = [span("shop", 1, 1, at=START), span("till", 1, 2, parent=1, at=START)]
    orphan = [span("cart", 2, 9, parent=8)]
    nameless = [span("", 3, 1), span("cart", 3, 2, parent=1)]
    lines = [
        *map(json.dumps, [*late, *orphan, *nameless, *written([("shop", "stock")])]),
        "{",
        '{"resourceSpans": 7}',
        "",
    ]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.json").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "a.txt").write_text(json.dumps(written(CALLS)[0]), encoding="utf-8")
    assert await TraceFiles("traces", tmp_path).dependencies(DAY) == {"shop": ("stock",)}


async def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match="gone"):
        await TraceFiles("traces", tmp_path / "gone").check()


def array(documents: list[Any]) -> str:
    return json.dumps(documents)


def pretty(documents: list[Any]) -> str:
    return "\n".join(json.dumps(each, indent=2) for each in documents)


def array_of_lines(documents: list[Any]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, documents)) + "\n]\n"


def array_that_was_cut(documents: list[Any]) -> str:
    return array_of_lines(documents).removesuffix("\n]\n").removeprefix("[\n") + ","


def one_document(documents: list[Any]) -> str:
    return json.dumps({"resourceSpans": [each for one in documents for each in one["resourceSpans"]]}, indent=4)


def with_nulls(documents: list[Any]) -> str:
    text = "\n".join(map(json.dumps, documents)).replace('"parentSpanId": ""', '"parentSpanId": null, "links": null')
    nothing = {
        "resourceSpans": [{"resource": {"attributes": None}, "scopeSpans": None}, {"scopeSpans": [{"spans": None}]}]
    }
    return f"{text}\n{json.dumps(nothing)}\n{json.dumps({'resourceSpans': None})}"


def batches(documents: list[Any]) -> str:
    return pretty([{"batches": each["resourceSpans"]} for each in documents])


def of_tempo(documents: list[Any]) -> str:
    return pretty([{"trace": each} for each in documents])


def in_snake_case(documents: list[Any]) -> str:
    text = array(documents)
    for name in (
        "resourceSpans",
        "scopeSpans",
        "traceId",
        "parentSpanId",
        "spanId",
        "startTimeUnixNano",
        "stringValue",
    ):
        text = text.replace(f'"{name}"', '"' + "".join(f"_{c.lower()}" if c.isupper() else c for c in name) + '"')
    return text


FORMS = [array, array_of_lines, array_that_was_cut, pretty, one_document, with_nulls, batches, of_tempo, in_snake_case]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
async def test_traces_are_read_in_every_form_that_tools_write(
    form: Callable[[list[Any]], str], mark: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(mark + form(written(CALLS)), encoding="utf-8")
    traces = TraceFiles("traces", tmp_path)
    assert (await traces.dependencies(DAY)) == {"cart": ("stock",), "shop": ("cart", "stock")}
    await traces.check()


@pytest.mark.parametrize(
    "text",
    [
        '{"data": [{"traceID": "1", "spans": []}]}',
        "[1, 2, null]",
        "not JSON",
        '{"resourceSpans": [\n  {"resource": ',
        json.dumps(span("", 1, 1)),
        json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "GET"}]}]}]}, indent=1),
    ],
)
async def test_a_file_that_gives_no_call_is_named_by_the_reader_and_the_check(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(text, encoding="utf-8")
    (tmp_path / "good.jsonl").write_text("\n".join(map(json.dumps, written(CALLS))), encoding="utf-8")
    traces = TraceFiles("traces", tmp_path)
    found = await traces.dependencies(DAY)
    assert found == {"cart": ("stock",), "shop": ("cart", "stock")}
    assert {gap.tool for gap in found.gaps} == {f"traces: {tmp_path / 'odd.json'}"}
    with pytest.raises(ToolUnavailable, match=r"odd\.json: left out \(no span with a service\.name"):
        await traces.check()


async def test_what_in_a_file_of_traces_is_no_trace_is_counted(tmp_path: Path) -> None:
    good = list(map(json.dumps, written(CALLS)))
    far = json.dumps(span("shop", 7, 1)).replace(str(round((START - timedelta(hours=1)).timestamp() * 1e9)), "9" * 30)
    (tmp_path / "a.jsonl").write_text("\n".join([*good, "{", "garbage", far, *good]), encoding="utf-8")
    found = await TraceFiles("traces", tmp_path).dependencies(DAY)
    assert found == {"cart": ("stock",), "shop": ("cart", "stock")}
    (gap,) = found.gaps
    assert gap.detail.startswith(f"3 of {2 * len(good) + 3} in an unexpected format (")


async def test_a_file_in_which_nothing_was_traced_yet_is_no_gap(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n", encoding="utf-8")
    traces = TraceFiles("traces", tmp_path)
    assert (await traces.dependencies(DAY)).gaps == ()
    await traces.check()


async def test_a_file_that_cannot_be_opened_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good.jsonl").write_text("\n".join(map(json.dumps, written(CALLS))), encoding="utf-8")
    (tmp_path / "locked.json").write_text("{}", encoding="utf-8")
    opened = Path.open

    def refusing(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "locked.json":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    found = await TraceFiles("traces", tmp_path).dependencies(DAY)
    assert found == {"cart": ("stock",), "shop": ("cart", "stock")}
    assert [gap.text for gap in found.gaps if "locked.json" in gap.text and "Permission denied" in gap.text]
