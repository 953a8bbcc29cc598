"""The contract of KnowledgeSource, over every source, and what each promises beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.sources import folder
from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.folder import FolderSource
from adapters.sources.past_incidents import PastIncidentSource, load_past_incidents
from core.conversation import PUBLIC
from core.errors import SourceUnavailable
from core.incident import Severity
from core.knowledge.document import Document, DocumentKind
from core.ports import KnowledgeSource

THREAD: dict[str, Any] = {
    "id": "t-1",
    "channel": "payments-private",
    "readers": ["channel:payments-private"],
    "url": "https://chat.example/t-1",
    "author": "Asha Brandt",
    "at": "2026-02-01T08:00:00Z",
    "text": "Settlement is late again?",
    "replies": [
        {"author": "Mateo", "at": "2026-02-01T09:00:00Z", "text": "Second."},
        {"author": "Mateo", "at": "2026-02-01T08:30:00Z", "text": "First."},
    ],
}
INCIDENT: dict[str, Any] = {
    "id": "INC-0001",
    "title": "Search is slow",
    "description": "p95 above 2 s.",
    "service": "search",
    "severity": "warning",
    "environment": "north",
    "started_at": "2025-05-01T08:00:00Z",
    "resolved_at": "2025-05-01T09:00:00Z",
    "owner": "storefront",
    "reassignments": ["platform"],
    "root_cause": "A rebuild ran at noon.",
    "fix": "Moved it to the night.",
    "labels": {"alertname": "SearchSlow"},
}


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def folder_with(tmp_path: Path) -> FolderSource:
    pages = tmp_path / "pages" / "runbooks"
    pages.mkdir(parents=True)
    (pages / "drain.md").write_text("---\ntitle: Draining\nowner: delivery\n---\n# Drain\n\nRun it.", encoding="utf-8")
    return FolderSource("docs", tmp_path / "pages", "https://docs.example/")


SOURCES: dict[str, Callable[[Path], KnowledgeSource]] = {
    "folder": folder_with,
    "chat": lambda path: ChatThreadSource("docs", write_lines(path / "threads.jsonl", THREAD)),
    "incidents": lambda path: PastIncidentSource("docs", write_lines(path / "incidents.jsonl", INCIDENT)),
}
GONE: dict[str, Callable[[Path], KnowledgeSource]] = {
    "folder": lambda path: FolderSource("docs", path / "missing"),
    "chat": lambda path: ChatThreadSource("docs", path / "missing.jsonl"),
    "incidents": lambda path: PastIncidentSource("docs", path / "missing.jsonl"),
}


async def documents(source: KnowledgeSource) -> list[Document]:
    return [document async for document in source.documents()]


@pytest.mark.parametrize("kind", SOURCES)
async def test_every_document_is_named_after_its_source_once(kind: str, tmp_path: Path) -> None:
    found = await documents(SOURCES[kind](tmp_path))
    assert len(found) == len({document.id for document in found}) == 1
    assert found[0].id.startswith("docs/")
    assert found[0].source == "docs"
    assert found[0].title
    assert found[0].readers


@pytest.mark.parametrize("kind", SOURCES)
async def test_an_unchanged_source_yields_the_same_hashes(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    assert [d.content_hash for d in await documents(source)] == [d.content_hash for d in await documents(source)]


@pytest.mark.parametrize("kind", GONE)
async def test_a_source_that_is_gone_is_unavailable_and_not_empty(kind: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable):
        await documents(GONE[kind](tmp_path))


# --- folder ----------------------------------------------------------------------------------------------------------


async def page(tmp_path: Path, name: str, content: str | bytes) -> list[Document]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return await documents(FolderSource("docs", tmp_path, "https://docs.example"))


async def test_front_matter_says_title_owner_date_and_readers(tmp_path: Path) -> None:
    head = "---\ntitle: 'A: b'\nowner: payments\nupdated: 2026-02-24\nreaders: [channel:payments-private, person:slack:U1]\n---\n"
    [found] = await page(tmp_path, "runbooks/a b.md", f"{head}# Text\n")
    assert found == Document(
        id="docs/runbooks/a b.md",
        source="docs",
        family="runbooks",
        title="A: b",
        text="# Text",
        url="https://docs.example/runbooks/a%20b.md",
        owner="payments",
        updated_at=datetime(2026, 2, 24, tzinfo=UTC),
        readers=frozenset({"channel:payments-private", "person:slack:U1"}),
    )


async def test_without_front_matter_the_first_heading_is_the_title_and_everybody_reads(tmp_path: Path) -> None:
    [found] = await page(tmp_path, "top.md", "Intro\n\n## The `first` one\n\ntext")
    assert (found.title, found.family, found.readers) == ("The first one", "docs", frozenset({PUBLIC}))


async def test_html_becomes_markdown_with_its_title_and_meta(tmp_path: Path) -> None:
    html = """<html><head><title>Oversold &amp; full</title><meta name="owner" content="bookings">
    <meta name="readers" content="channel:bookings, public"><style>p {}</style></head>
    <body><script>alert(1)</script><h2>What to do</h2><ol><li>Run <code>seatctl</code></li></ol></body></html>"""
    [found] = await page(tmp_path, "runbooks/oversold.html", html)
    assert (found.title, found.owner) == ("Oversold & full", "bookings")
    assert found.readers == {"channel:bookings", PUBLIC}
    assert found.text == "## What to do\n\n1. Run `seatctl`"


async def test_the_first_line_of_plain_text_is_its_title(tmp_path: Path) -> None:
    [found] = await page(tmp_path, "x/codes.txt", "Exit codes\n\n75 runner lost\n")
    assert (found.title, found.text) == ("Exit codes", "75 runner lost")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe broken",
        "---\ntitle: [\n---\ntext",
        "---\n- a\n---\ntext",
        "---\nupdated: yesterday\n---\ntext",
        "---\nreaders: []\n---\nsecret",
        "---\nreaders: {a: b}\n---\nsecret",
        "---\nreaders:\n---\nsecret",
    ],
    ids=["not UTF-8", "not YAML", "no mapping", "no date", "no reader", "readers no list", "readers empty"],
)
async def test_a_page_that_makes_no_sense_is_left_out_and_the_others_are_read(
    content: str | bytes, tmp_path: Path
) -> None:
    (tmp_path / "good.md").write_text("# Good\n\ntext", encoding="utf-8")
    assert [document.title for document in await page(tmp_path, "bad.md", content)] == ["Good"]


async def test_a_page_over_the_size_limit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_BYTES", 10)
    assert await page(tmp_path, "big.md", "# Title\n\nlonger than that") == []


async def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Secret\n\npassword", encoding="utf-8")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file.md").symlink_to(outside / "secret.md")
    (inside / "folder").symlink_to(outside)
    (inside / "dangling.md").symlink_to(tmp_path / "nowhere.md")
    assert await documents(FolderSource("docs", inside)) == []


async def test_other_files_are_not_documents(tmp_path: Path) -> None:
    assert await page(tmp_path, "picture.png", b"\x89PNG") == []


# --- chat threads ----------------------------------------------------------------------------------------------------


async def test_a_thread_is_one_document_with_its_replies_in_order(tmp_path: Path) -> None:
    [found] = await documents(ChatThreadSource("chat", write_lines(tmp_path / "t.jsonl", THREAD)))
    assert found == Document(
        id="chat/t-1",
        source="chat",
        family="chat",
        title="#payments-private: Settlement is late again?",
        text="Message: Settlement is late again?\n\nThis message has the following responses:\n\nFirst.\n\nSecond.",
        kind=DocumentKind.THREAD,
        url="https://chat.example/t-1",
        updated_at=datetime(2026, 2, 1, 9, tzinfo=UTC),
        readers=frozenset({"channel:payments-private"}),
    )


async def test_lines_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    rows = ["{", "[]", THREAD | {"readers": []}, THREAD | {"at": "yesterday"}, "", THREAD | {"id": "good"}]
    found = await documents(ChatThreadSource("chat", write_lines(tmp_path / "t.jsonl", *rows)))
    assert [document.id for document in found] == ["chat/good"]


async def test_names_of_people_are_not_part_of_a_thread(tmp_path: Path) -> None:
    [found] = await documents(ChatThreadSource("chat", write_lines(tmp_path / "t.jsonl", THREAD)))
    assert "Asha" not in found.text + found.title


# --- past incidents --------------------------------------------------------------------------------------------------


async def test_an_incident_is_one_document_with_its_cause_and_fix(tmp_path: Path) -> None:
    [found] = await documents(PastIncidentSource("incidents", write_lines(tmp_path / "i.jsonl", INCIDENT)))
    assert (found.kind, found.family, found.owner) == (DocumentKind.INCIDENT, "incidents", "storefront")
    assert found.title == "INC-0001: Search is slow"
    assert found.text.endswith("Root cause: A rebuild ran at noon.\n\nFix: Moved it to the night.")


def test_incidents_are_loaded_as_history_too(tmp_path: Path) -> None:
    [found] = load_past_incidents(write_lines(tmp_path / "i.jsonl", INCIDENT, INCIDENT | {"severity": "loud"}))
    assert (found.id, found.severity, found.reassignments) == ("INC-0001", Severity.WARNING, ("platform",))
    assert found.labels == {"alertname": "SearchSlow"}
    assert found.started_at == datetime(2025, 5, 1, 8, tzinfo=UTC)
