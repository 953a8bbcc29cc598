"""The contract of LogReader, over the fake, folders of log files and a Loki on loopback."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.readers.reader import Reader as DefinedReader
from adapters.tools import log_files
from adapters.tools.log_files import LogFiles
from core.model.errors import ToolUnavailable
from core.model.log_levels import level_of
from core.ports import LogLine, LogReader, TimeWindow
from tests.fakes.readers import reader as opened
from tests.fakes.tool_servers import FakeLoki, reached
from tests.fakes.tools import BrokenTool, FakeLogReader

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))

Reader = Callable[[Sequence[LogLine]], LogReader]


SELECTORS = {"api": {"app": "api"}, "other": {"app": "other"}}


@pytest.fixture
async def loki() -> AsyncIterator[tuple[FakeLoki, DefinedReader]]:
    fake = FakeLoki()
    async with reached(fake) as http:
        yield fake, opened("loki", http, SELECTORS)


@pytest.fixture(params=["fake", "files", "loki"])
def reader(request: pytest.FixtureRequest, tmp_path: Path, loki: tuple[FakeLoki, DefinedReader]) -> Reader:
    def over_http(lines: Sequence[LogLine]) -> LogReader:
        loki[0].lines = lines
        return loki[1]

    def files(lines: Sequence[LogLine]) -> LogReader:
        folder = tmp_path / "live" / "logs"
        folder.mkdir(parents=True)
        for service in {line.service for line in lines}:
            written = [as_written(line) for line in lines if line.service == service]
            (folder / f"{service}.log").write_text("\n".join(written) + "\n", encoding="utf-8")
        return LogFiles("files", tmp_path)

    return {"fake": FakeLogReader, "files": files, "loki": over_http}[request.param]


def as_written(line: LogLine) -> str:
    return f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03d}Z {line.level} {line.service} {line.text}"


def line(seconds: float, text: str = "GET /fares 200", service: str = "api", level: str = "INFO") -> LogLine:
    return LogLine(service, START + timedelta(seconds=seconds), level, text)


async def test_the_records_of_the_service_within_the_window_come_oldest_first(reader: Reader) -> None:
    early, first, last, late = line(-1), line(0), line(3599.999), line(3600)
    other = line(5, service="other")
    assert await reader([early, first, other, last, late]).lines("api", HOUR, 10) == [first, last]


async def test_of_too_many_records_the_last_ones_are_kept(reader: Reader) -> None:
    lines = [line(second, f"request {second}") for second in range(20)]
    assert await reader(lines).lines("api", HOUR, 3) == lines[-3:]


async def test_a_stack_trace_is_one_record(reader: Reader) -> None:
    trace = line(1, "Unhandled\n    at Pool.take(Pool.java:7)\n    Caused by: TimeoutException: 3000 ms", level="ERROR")
    assert await reader([trace, line(2)]).lines("api", HOUR, 10) == [trace, line(2)]


async def test_an_unknown_service_has_no_records(reader: Reader) -> None:
    assert await reader([line(1)]).lines("nobody", HOUR, 10) == []


async def test_a_window_deep_inside_a_large_file_is_found_whole(reader: Reader) -> None:
    lines = [line(second / 10, f"request {second} of a long day {'x' * 60}") for second in range(30_000)]
    window = TimeWindow(START + timedelta(seconds=1_700), START + timedelta(seconds=1_710))
    assert await reader(lines).lines("api", window, 1_000) == lines[17_000:17_100]


async def test_a_window_before_or_after_everything_is_empty(reader: Reader) -> None:
    logs = reader([line(second / 10, "x" * 80) for second in range(3_000)])
    assert await logs.lines("api", TimeWindow(START - timedelta(hours=2), START - timedelta(hours=1)), 10) == []
    assert await logs.lines("api", TimeWindow(START + timedelta(hours=2), START + timedelta(hours=3)), 10) == []


@pytest.mark.parametrize("broken", ["fake", "files"])
async def test_a_tool_that_cannot_be_read_says_so(broken: str, tmp_path: Path) -> None:
    logs: LogReader = BrokenTool() if broken == "fake" else LogFiles("files", tmp_path / "missing")
    with pytest.raises(ToolUnavailable):
        await logs.lines("api", HOUR, 10)


@pytest.mark.parametrize("service", ["../secret", "..", "", "a/../../secret", "*", "secret\x00"])
async def test_a_service_name_cannot_lead_out_of_the_folder(service: str, tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_text(as_written(line(1, service="secret")) + "\n", encoding="utf-8")
    (tmp_path / "root" / "logs").mkdir(parents=True)
    (tmp_path / "root" / "logs" / "api.log").write_text(as_written(line(1)) + "\n", encoding="utf-8")
    assert await LogFiles("files", tmp_path / "root").lines(service, HOUR, 10) == []


async def test_what_is_no_record_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    content = b"\xff\xfe not a record\n  nor this\n" + as_written(line(1, "caf\u00e9")).encode() + b"\n\n}{\n\xc3\n"
    (tmp_path / "logs" / "api.log").write_bytes(content)
    assert await LogFiles("files", tmp_path).lines("api", HOUR, 10) == [line(1, "caf\u00e9")]


async def test_loki_is_read_page_by_page_and_no_record_twice(loki: tuple[FakeLoki, DefinedReader]) -> None:
    fake, logs = loki
    logs = opened("loki", logs.pages.http, SELECTORS, page=7)
    fake.most, fake.lines = 7, [line(number // 3, f"request {number:02d}") for number in range(30)]
    assert [each.text for each in await logs.lines("api", HOUR, 100)] == [each.text for each in fake.lines]
    assert len(fake.requests) > 4


@pytest.mark.parametrize("seed", range(8))
async def test_what_is_read_of_loki_at_once_leaves_no_gap_however_the_records_lie(
    seed: int, loki: tuple[FakeLoki, DefinedReader]
) -> None:
    fake, logs = loki
    chance = random.Random(seed)
    logs = opened("loki", logs.pages.http, SELECTORS, page=5)
    bursts = [chance.uniform(0, 3_500) for _ in range(3)]
    at = sorted(chance.choice(bursts) + chance.expovariate(0.1) for _ in range(60))
    fake.most, fake.lines = 5, [line(seconds, f"request {number:02d}") for number, seconds in enumerate(at)]
    read = [each.text for each in await logs.lines("api", HOUR, 20)]
    assert read == [each.text for each in fake.lines if each.at < HOUR.end][-len(read) :]
    assert len(read) >= 10


async def test_a_selector_is_no_query_that_a_name_can_change(loki: tuple[FakeLoki, DefinedReader]) -> None:
    fake, logs = loki
    assert await logs.lines('x"} |= `secret', HOUR, 10) == []
    assert fake.requests == []


async def test_loki_that_refuses_is_unavailable(loki: tuple[FakeLoki, DefinedReader]) -> None:
    fake, logs = loki
    for status in (401, 429, 500):
        fake.refuse(status)
        with pytest.raises(ToolUnavailable, match=r"refuses the token|HTTP status"):
            await logs.lines("api", HOUR, 10)


@pytest.mark.parametrize(
    ("labels", "text", "level"),
    [
        ({"level": "warn"}, "ERROR", "WARN"),
        ({"detected_level": "unknown"}, "ERROR boom", "ERROR"),
        ({}, 'time=1 level=error msg="boom"', "ERROR"),
        ({}, '{"severity": "critical", "msg": "boom"}', "CRITICAL"),
        ({}, "[warn] boom", "WARN"),
        ({}, "2026-03-14 ERR boom", "ERROR"),
        ({}, "GET /error 200 without an error", "INFO"),
        ({}, "", "INFO"),
    ],
)
def test_the_level_is_read_from_the_labels_or_the_text(labels: dict[str, str], text: str, level: str) -> None:
    assert level_of(labels, text) == level


@pytest.mark.parametrize(("length", "limit"), [(10, 50), (400, 50), (3_000, 50), (10, 100_000), (400, 3), (3_000, 1)])
@pytest.mark.parametrize("cut", [0, 1, 7])
async def test_the_last_records_of_a_long_log_are_the_same_however_it_is_read(
    tmp_path: Path, length: int, limit: int, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "MAX_KEPT", 0)
    monkeypatch.setattr(log_files, "NEAR", 2_048)
    draw = random.Random(length * limit)
    lines = [
        line(second, "x" * draw.randrange(length) + "\n    at Pool.take" * (second % 3)) for second in range(2_000)
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "api.log").write_text("\n".join(map(as_written, lines)) + "\n")
    window = TimeWindow(START + timedelta(seconds=100), START + timedelta(seconds=1_900 - cut * 200))
    expected = [each for each in lines if window.start <= each.at < window.end][-limit:]
    assert await LogFiles("files", tmp_path).lines("api", window, limit) == expected


async def test_a_few_last_records_of_many_are_read_without_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    whole = log_files._records

    def counted(*arguments: Any) -> Iterator[LogLine]:
        nonlocal read
        for record in whole(*arguments):
            read += 1
            yield record

    monkeypatch.setattr(log_files, "_records", counted)
    (tmp_path / "logs").mkdir()
    lines = (as_written(line(second / 60)) for second in range(200_000))
    (tmp_path / "logs" / "api.log").write_text("\n".join(lines) + "\n")
    assert len(await LogFiles("files", tmp_path).lines("api", HOUR, 1_000)) == 1_000
    assert read < 10_000


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ('{"level":50,"msg":"refused"}', "ERROR"),
        ("E0611 23:04:18.000101 7 leader.go:330] lost lease", "ERROR"),
        ('{"SeverityNumber":13,"Body":"slow"}', "WARN"),
    ],
)
async def test_loki_reads_the_level_of_a_record_without_a_label(
    text: str, level: str, loki: tuple[FakeLoki, DefinedReader]
) -> None:
    loki[0].lines = [line(1, text, level="unknown")]
    assert [found.level for found in await loki[1].lines("api", HOUR, 10)] == [level]


@pytest.mark.parametrize(
    ("column", "text", "level"),
    [
        ("err", "refused", "ERROR"),
        ("50", "refused", "ERROR"),
        ("EMERG", "dying", "FATAL"),
        ("stderr", '{"@l":"Warning","@m":"slow"}', "WARN"),
        ("-", "E0611 23:04:18.000101 7 leader.go:330] lost lease", "ERROR"),
    ],
)
async def test_a_log_file_states_its_levels_in_any_form(column: str, text: str, level: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "api.log").write_text(as_written(line(1, text, level=column)) + "\n", encoding="utf-8")
    assert [found.level for found in await LogFiles("files", tmp_path).lines("api", HOUR, 10)] == [level]
