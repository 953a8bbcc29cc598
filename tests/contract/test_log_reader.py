"""The contract of LogReader, over the fake, folders of log files and a Loki on loopback."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from adapters.readers.reader import Reader as DefinedReader
from adapters.tools import files as tool_files
from adapters.tools.files import LogFiles
from core.model.errors import ToolUnavailable
from core.model.log_levels import level_of
from core.ports import LogLine, LogReader, Partial, TimeWindow
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


def test_the_level_is_read_from_the_labels_or_the_text() -> None:
    cases: list[tuple[dict[str, str], str, str]] = [
        ({"level": "warn"}, "ERROR", "WARN"),
        ({"detected_level": "unknown"}, "ERROR boom", "ERROR"),
        ({}, 'time=1 level=error msg="boom"', "ERROR"),
        ({}, '{"severity": "critical", "msg": "boom"}', "CRITICAL"),
        ({}, "[warn] boom", "WARN"),
        ({}, "2026-03-14 ERR boom", "ERROR"),
        ({}, "GET /error 200 without an error", "INFO"),
        ({}, "", "INFO"),
    ]
    for labels, text, level in cases:
        assert level_of(labels, text) == level, (labels, text, level)


@pytest.mark.parametrize(("length", "limit"), [(10, 50), (400, 50), (3_000, 50), (10, 100_000), (400, 3), (3_000, 1)])
@pytest.mark.parametrize("cut", [0, 1, 7])
async def test_the_last_records_of_a_long_log_are_the_same_however_it_is_read(
    tmp_path: Path, length: int, limit: int, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_files, "MAX_KEPT", 0)
    monkeypatch.setattr(tool_files, "NEAR", 2_048)
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
    whole = tool_files._records

    def counted(*arguments: Any) -> Iterator[LogLine]:
        nonlocal read
        for record in whole(*arguments):
            read += 1
            yield record

    monkeypatch.setattr(tool_files, "_records", counted)
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


BERLIN = ZoneInfo("Europe/Berlin")
FORMS = {
    "2026-03-14 10:12:03,412 ERROR api cannot reach ledger": "cannot reach ledger",
    "2026-03-14 10:12:03 ERROR cannot reach ledger": "cannot reach ledger",
    "[2026-03-14 10:12:03.4] ERROR: cannot reach ledger": "cannot reach ledger",
    "2026/03/14 10:12:03 [error] 7#7: cannot reach ledger": "[error] 7#7: cannot reach ledger",
    "2026-03-14T09:12:03+0000 ERROR api cannot reach ledger": "cannot reach ledger",
    "2026-03-14 09:12:03.412 UTC [7] ERROR:  cannot reach ledger": "[7] ERROR:  cannot reach ledger",
    "Mar 14 10:12:03 host api[7]: ERROR cannot reach ledger": None,
    "<163>Mar 14 10:12:03 host api[7]: cannot reach ledger": None,
    "<163>1 2026-03-14T09:12:03.003Z host api 7 ID47 - cannot reach ledger": None,
    '<163>1 2026-03-14T10:12:03.003+01:00 host api 7 ID47 [x@1 a="b"] cannot reach ledger': None,
    "E0314 10:12:03.412345       7 api.go:330] cannot reach ledger": None,
    "[Sat Mar 14 10:12:03.412 2026] [error] cannot reach ledger": None,
    'time=2026-03-14T09:12:03Z level=error msg="cannot reach ledger"': None,
    '10.0.0.7 - - [14/Mar/2026:09:12:03 +0000] "GET /cannot-reach-ledger HTTP/1.1" 500 12 "-" level=error': None,
    '{"level":"error","ts":1773479523.412,"msg":"cannot reach ledger"}': None,
    '{"time":1773479523412,"level":50,"msg":"cannot reach ledger"}': None,
    '{"level":"error","msg":"2025: 2025-01-01 00:00:00 cannot reach ledger","@timestamp":"2026-03-14T09:12:03Z"}': None,
    '{"t":{"$date":"2026-03-14T09:12:03.412+00:00"},"s":"E","c":"NETWORK","id":7,"msg":"cannot reach ledger"}': None,
}
"""The forms of a record at 09:12:03 UTC, which is 10:12:03 in Berlin; and its text, if that is not the whole line."""


def log_of(folder: Path, content: str) -> LogFiles:
    """Return the reader of a settled log of the service `api`, written a day later."""
    path = folder / "logs" / "api.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    written = (START + timedelta(days=1)).timestamp()
    os.utime(path, (written, written))
    return LogFiles("files", folder, BERLIN)


@pytest.mark.parametrize("is_long", [False, True])
async def test_records_in_common_forms_are_read_in_the_zone_of_the_setting(
    is_long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_files, "MAX_KEPT", 0 if is_long else tool_files.MAX_KEPT)
    for number, (written, text) in enumerate(FORMS.items()):
        logs = log_of(tmp_path / f"{number}", f"{written}\n  at Pool.take\nCaused by: timeout\n")
        [record] = read = await logs.lines("api", HOUR, 10)
        assert record.at.replace(microsecond=0) == START + timedelta(minutes=12, seconds=3), written
        assert record.level == "ERROR", written
        assert record.text == f"{text or written}\n  at Pool.take\nCaused by: timeout", written
        assert isinstance(read, Partial)
        assert read.gaps == (), written
        await logs.check()


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize(
    ("content", "unread"),
    [
        ("cannot reach ledger\nagain\n\n", "2 lines"),
        ("14.3. 9:12 cannot reach ledger\n", "1 line"),
        (f"banner\n{as_written(line(1))}\nloose\n", "2 lines"),
        ("2026-13-45 99:99:99 ERROR x\n", "1 line"),
        ('{"level":"error","msg":"no time"}\n', "1 line"),
    ],
)
async def test_lines_without_a_time_are_counted_and_named_and_a_check_says_so(
    content: str, unread: str, is_long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_files, "MAX_KEPT", 0 if is_long else tool_files.MAX_KEPT)
    logs = log_of(tmp_path, content)
    read = await logs.lines("api", HOUR, 10)
    assert isinstance(read, Partial)
    [gap] = read.gaps
    assert gap.system == "files"
    assert f"{unread} without a time that is understood" in gap.text
    with pytest.raises(ToolUnavailable, match=unread):
        await logs.check()


async def test_a_line_without_a_time_is_missing_only_in_a_window_that_it_may_belong_to(tmp_path: Path) -> None:
    logs = log_of(tmp_path, f"{as_written(line(-60))}\nloose\n{as_written(line(1))}\n")
    read = await logs.lines("api", HOUR, 10)
    assert isinstance(read, Partial)
    assert read.gaps == ()
    earlier = await logs.lines("api", TimeWindow(START - timedelta(hours=1), START), 10)
    assert isinstance(earlier, Partial)
    assert len(earlier.gaps) == 1


async def test_a_record_without_a_year_is_of_the_last_one_before_the_file_was_written(tmp_path: Path) -> None:
    logs = log_of(tmp_path, "Dec 31 23:59:59 host api[7]: old\nMar 14 10:12:03 host api[7]: new\n")
    always = TimeWindow(START - timedelta(days=900), START + timedelta(days=900))
    assert [each.at.year for each in await logs.lines("api", always, 10)] == [2025, 2026]


async def test_the_end_of_an_overlong_line_is_no_record(tmp_path: Path) -> None:
    long = f"{'x' * 9_000} {as_written(line(7))}"
    logs = log_of(tmp_path, f"{as_written(line(1, long))}\n{as_written(line(2))}\n")
    first, second = read = await logs.lines("api", HOUR, 10)
    assert isinstance(read, Partial)
    assert (first.at, second, read.gaps) == (line(1).at, line(2), ())
