"""Every reader of files reads text with a byte order mark, in UTF-16, and with halves of surrogate pairs."""

from __future__ import annotations

import codecs
import json
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from adapters.catalogues.codeowners import read_codeowners
from adapters.catalogues.section import FolderFiles
from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.folder import FolderSource
from adapters.sources.slack_history import SlackExportSource
from adapters.text_files import decoded
from adapters.tools.files import ChangeFiles, LogFiles, MetricFiles, TraceFiles
from bot.config.section import read_document
from bot.config.workspace import load_workspace
from core.model.document import Document
from core.model.text import json_text
from core.ports import TimeWindow
from tests.cases import every_case
from tests.fakes.documents import everything

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
WINDOW = TimeWindow(datetime(2026, 3, 14, tzinfo=UTC), datetime(2026, 3, 15, tzinfo=UTC))
THREAD: dict[str, Any] = {
    "id": "t-1",
    "channel": "till",
    "readers": ["public"],
    "author": "Asha",
    "text": "Größe \ud83d?",
}
MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    return request.param


def write(path: Path, text: str, encoding: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(MARKS.get(encoding, b"") + text.encode(encoding))
    return path


async def test_code_owners(tmp_path: Path, encoding: str) -> None:
    write(tmp_path / "CODEOWNERS", "* @acme/till\n", encoding)
    (code,) = (await read_codeowners(FolderFiles(tmp_path), frozenset())).code
    assert [rule.owners for rule in code.rules_for("src/a.py")] == [("@acme/till",)]


async def test_a_catalogue_in_yaml(tmp_path: Path, encoding: str) -> None:
    write(tmp_path / "a.yaml", "kind: Größe\n", encoding)
    assert await FolderFiles(tmp_path).read(lambda _: True) == {PurePosixPath("a.yaml"): "kind: Größe\n"}


async def test_json_lines_with_half_a_pair(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "x.jsonl", json.dumps(THREAD | {"at": "2026-02-01T08:00:00Z"}), encoding)
    documents = [each async for each in ChatThreadSource("docs", path).documents() if isinstance(each, Document)]
    assert [document.text for document in documents] == ["Message: Größe \ufffd?"]


async def test_an_export_with_half_a_pair(tmp_path: Path, encoding: str) -> None:
    for name, rows in (
        ("channels.json", [{"id": "C1", "name": "till"}]),
        ("till/1.json", [{"ts": "1769940000.000100", "user": "U1", "text": "slow \ude00"}]),
    ):
        write(tmp_path / name, json.dumps(rows), encoding)
    documents = [each async for each in SlackExportSource("docs", tmp_path).documents() if isinstance(each, Document)]
    assert [document.text for document in documents] == ["Message: slow \ufffd"]


async def test_front_matter(tmp_path: Path, encoding: str) -> None:
    write(tmp_path / "a.md", "---\ntitle: Größe\nreaders: [channel:till]\n---\nText.", encoding)
    (found,) = [each for each in await everything(FolderSource("docs", tmp_path)) if isinstance(each, Document)]
    assert (found.title, found.text, found.readers) == ("Größe", "Text.", {"channel:till"})


async def test_logs(tmp_path: Path, encoding: str) -> None:
    write(tmp_path / "logs/till.log", "2026-03-14T09:00:00Z ERROR till Größe\n  at pay\n", encoding)
    (line,) = await LogFiles("logs", tmp_path).lines("till", WINDOW, 10)
    assert line.text == "Größe\n  at pay"


async def test_metrics(tmp_path: Path, encoding: str) -> None:
    write(tmp_path / "metrics/till.csv", "timestamp,p99\n2026-03-14T09:00:00Z,4\n", encoding)
    (series,) = await MetricFiles("metrics", tmp_path).series("till", WINDOW)
    assert (series.metric, series.values) == ("p99", (4.0,))


async def test_changes_with_half_a_pair(tmp_path: Path, encoding: str) -> None:
    row = {"id": "d1", "at": "2026-03-14T09:00:00Z", "kind": "deploy", "title": "Größe \udc00"}
    write(tmp_path / "changes.jsonl", json.dumps(row), encoding)
    assert [change.title for change in await ChangeFiles("changes", tmp_path).changes(WINDOW)] == ["Größe \ufffd"]


async def test_traces_with_half_a_pair(tmp_path: Path, encoding: str) -> None:
    def resource(service: str, **span: Any) -> dict[str, Any]:
        attributes = [{"key": "service.name", "value": {"stringValue": service}}]
        began = str(int(WINDOW.start.timestamp() * 1e9))
        spans = [{"traceId": "t", "startTimeUnixNano": began, "name": "\ud83d"} | span]
        return {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": spans}]}

    calls = [resource("till", spanId="a"), resource("größe", spanId="b", parentSpanId="a")]
    write(
        tmp_path / "x.jsonl",
        json.dumps({"resourceSpans": calls}, ensure_ascii=False).encode("utf-8", "replace").decode(),
        encoding,
    )
    assert await TraceFiles("traces", tmp_path).dependencies(WINDOW) == {"till": ("größe",)}


def test_the_configuration(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "plumbline.yaml", "teams:\n  - id: till\n    name: Größe\n", encoding)
    assert [team.name for team in load_workspace(path).teams] == ["Größe"]


def test_a_team_s_document(tmp_path: Path, encoding: str) -> None:
    assert read_document("till", write(tmp_path / "till.md", "Größe", encoding)) == "Größe"


@every_case(
    ("written", "valid"),
    [
        (r'"\ud83d"', r'"\ufffd"'),
        (r'"\uDE00\uD83D"', r'"\ufffd\ufffd"'),
        (r'"\ud83d\ude00"', r'"\ud83d\ude00"'),
        (r'"\\ud83d"', r'"\\ud83d"'),
        (r'"\\\ud83d\n"', r'"\\\ufffd\n"'),
    ],
)
def test_only_half_a_pair_is_replaced(written: str, valid: str) -> None:
    assert json_text(written) == valid


def test_bytes_of_no_encoding_are_replaced_and_the_rest_is_read() -> None:
    assert decoded(b"a \xff b") == "a \ufffd b"
