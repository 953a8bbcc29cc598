"""The contract of ChangeReader, over the fake and folders of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.tools.files import ChangeFiles
from core.model.errors import ToolUnavailable
from core.ports import Change, ChangeReader, TimeWindow
from tests.fakes.tools import BrokenTool, FakeChangeReader

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))

Reader = Callable[[Sequence[Change]], ChangeReader]


@pytest.fixture(params=["fake", "files"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    def files(changes: Sequence[Change]) -> ChangeReader:
        (tmp_path / "live").mkdir()
        lines = [json.dumps({**asdict(change), "at": change.at.isoformat()}) for change in changes]
        (tmp_path / "live" / "changes.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
        return ChangeFiles("files", tmp_path)

    return FakeChangeReader if request.param == "fake" else files


def change(id_: str, minutes: float, service: str = "api") -> Change:
    at = START + timedelta(minutes=minutes)
    return Change(id_, at, "config", service, "Asha", "Pool size", "40 to 4", ("values.yaml",), "https://git.example/1")


async def test_the_changes_of_all_services_within_the_window_come_oldest_first(reader: Reader) -> None:
    before, first, last, after = change("A", -1), change("B", 0), change("C", 59, "other"), change("D", 60)
    assert await reader([after, last, first, before]).changes(HOUR) == [first, last]


async def test_a_window_without_a_change_is_empty(reader: Reader) -> None:
    assert await reader([change("A", -1)]).changes(HOUR) == []


@pytest.mark.parametrize("broken", ["fake", "files"])
async def test_a_tool_that_cannot_be_read_says_so(broken: str, tmp_path: Path) -> None:
    tool: ChangeReader = BrokenTool() if broken == "fake" else ChangeFiles("files", tmp_path / "missing")
    with pytest.raises(ToolUnavailable):
        await tool.changes(HOUR)


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": "A"}', '{"id":"A","at":"2026-03-14","kind":"k","service":"s","title":"t"}']
)
async def test_a_wrong_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "changes.jsonl").write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ToolUnavailable, match=r"Line 2 of .*changes\.jsonl"):
        await ChangeFiles("files", tmp_path).changes(HOUR)
