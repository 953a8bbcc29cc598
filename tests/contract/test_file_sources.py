"""Sources that read files: what each promises beside the contract of all sources."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter

from adapters.sources import folder, formats
from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.folder import FolderSource
from adapters.sources.parsing import FileOrigin, documents_of
from adapters.sources.past_incidents import PastIncidentSource, load_past_incidents
from adapters.sources.slack_history import SlackExportSource
from core.model.alert import Severity
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.errors import SourceUnavailable
from core.ports import ChangingSource, KnowledgeSource, LeftOut
from handlers.knowledge.ingest_knowledge import IngestReport, ingest_knowledge
from tests.fakes.documents import everything, pdf
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.store import InMemoryStore

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


GONE: dict[str, Callable[[Path], KnowledgeSource | ChangingSource]] = {
    "folder": lambda path: FolderSource("docs", path / "missing"),
    "chat": lambda path: ChatThreadSource("docs", path / "missing.jsonl"),
    "incidents": lambda path: PastIncidentSource("docs", path / "missing.jsonl"),
    "slack export": lambda path: SlackExportSource("docs", path / "missing.zip"),
}


async def documents(source: KnowledgeSource | ChangingSource) -> list[Document]:
    return [found for found in await everything(source) if isinstance(found, Document)]


async def left_out(folder: Path) -> dict[str, str]:
    """Return why each file of a folder is left out."""
    found = await everything(FolderSource("docs", folder))
    return {each.path: each.reason for each in found if isinstance(each, LeftOut)}


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
        text="Owner: payments\n\n# Text",
        url="https://docs.example/runbooks/a%20b.md",
        owner="payments",
        updated_at=datetime(2026, 2, 24, tzinfo=UTC),
        readers=frozenset({"channel:payments-private", "person:slack:U1"}),
    )


@pytest.mark.parametrize(
    "head",
    [
        "---\r\nreaders: channel:vault\r\n---\r\n",
        "\n---\nreaders: channel:vault\n---\n",
        "---\nReaders: channel:vault\n---\n",
    ],
)
async def test_who_may_read_is_understood_however_the_front_matter_is_written(head: str, tmp_path: Path) -> None:
    [found] = await page(tmp_path, "vault.md", f"{head}Unseal it.")
    assert (found.readers, found.text) == ({"channel:vault"}, "Unseal it.")


@pytest.mark.parametrize(
    "name", ["owner_slack", "owners", "team", "Contact", "contact-email", "support channel", "on_call"]
)
async def test_people_teams_and_channels_in_front_matter_are_text_of_the_page(name: str, tmp_path: Path) -> None:
    [shown] = await page(
        tmp_path, "a.md", f"---\n{name}: ['#harbour', Delivery]\nlayout: wide\n---\n# Cranes\n\nLock them."
    )
    assert "#harbour, Delivery" in shown.text
    assert "wide" not in shown.text
    assert shown.title == "Cranes"


async def test_the_names_of_meta_elements_are_understood_in_any_case(tmp_path: Path) -> None:
    [found] = await page(tmp_path, "vault.html", '<meta name="Readers" content="channel:vault"><p>Unseal it.</p>')
    assert found.readers == {"channel:vault"}


async def test_front_matter_that_makes_no_sense_is_not_quoted_in_the_log(tmp_path: Path) -> None:
    assert await page(tmp_path, "vault.md", "---\ntitle: x\npassword: hunter2: x\n---\nUnseal it.") == []
    assert await left_out(tmp_path) == {"vault.md": "The front matter is not YAML, line 3."}


@pytest.mark.parametrize("front_matter", ["[" * 5_000, "readers: " + "[" * 5_000])
async def test_front_matter_that_nests_too_deep_costs_its_own_document_alone(front_matter: str, tmp_path: Path) -> None:
    await page(tmp_path, "deep.md", f"---\n{front_matter}\n---\nUnseal it.")
    assert [found.id for found in await page(tmp_path, "good.md", "Fine.")] == ["docs/good.md"]


async def test_lists_that_hold_each_other_are_no_title_and_no_readers(tmp_path: Path) -> None:
    lists = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lists += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 8)}]" for number in range(1, 5)]
    [found] = await page(tmp_path, "title.md", "\n".join(["---", *lists, "title: *a4", "---", "Fine."]))
    assert found.title == "title"
    for readers in ("*a4", "[public, *a4]"):
        await page(tmp_path, "readers.md", "\n".join(["---", *lists, f"readers: {readers}", "---", "Fine."]))
    assert [found.id for found in await page(tmp_path, "good.md", "Fine.")] == ["docs/good.md", "docs/title.md"]


async def test_a_file_is_read_in_the_encoding_that_it_says_it_has(tmp_path: Path) -> None:
    html = '<html><head><meta charset="iso-8859-1"><title>Über</title></head><body><p>Größe</p></body></html>'
    [latin] = await page(tmp_path / "latin", "x.html", html.encode("latin-1"))
    assert (latin.title, latin.text) == ("Über", "Größe")
    [wide] = await page(tmp_path / "wide", "x.md", "# Über\n\nGröße".encode("utf-16"))
    assert (wide.title, wide.text) == ("Über", "# Über\n\nGröße")
    nobody_knows = html.replace("iso-8859-1", "rot13").encode("latin-1")
    assert await page(tmp_path / "unknown", "x.html", nobody_knows) == []


async def test_what_stands_in_place_of_a_large_file_is_no_document(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"
    assert await page(tmp_path, "manual.md", pointer) == []


async def test_without_front_matter_the_first_of_the_top_headings_is_the_title_and_everybody_reads(
    tmp_path: Path,
) -> None:
    [found] = await page(tmp_path, "top.md", "Intro\n\n# The `first` one\n\ntext\n\n# Another one")
    assert (found.title, found.family, found.readers) == ("The first one", "docs", frozenset({PUBLIC}))


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("slipway/rollback.md", "## Rolling back\n\nRun it.\n\n### In a hurry\n\nRun it now.", "Rolling back"),
        ("slipway/rollback.md", "A page.\n\n# Rolling back\n\nRun it.", "Rolling back"),
        ("slipway/rollback.md", "## Before you begin\n\nAsk.\n\n## Rolling back\n\nRun it.", "rollback"),
        ("slipway/rollback.md", "Run it.\n\n## See also\n\nThe handbook.", "rollback"),
        ("slipway/_index.md", "Run it.", "slipway"),
        ("README.md", "Run it.", "README"),
    ],
)
async def test_a_page_is_called_by_the_heading_of_all_of_it_or_else_by_its_place(
    path: str, text: str, title: str, tmp_path: Path
) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(text, encoding="utf-8")
    (document,) = await documents(FolderSource("docs", tmp_path))
    assert document.title == title


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
        "---\nreaders: []\n---\nsecret",
        "---\nreaders: {a: b}\n---\nsecret",
        "---\nreaders:\n---\nsecret",
    ],
    ids=["not UTF-8", "not YAML", "no mapping", "no reader", "readers no list", "readers empty"],
)
async def test_a_page_that_makes_no_sense_is_left_out_and_the_others_are_read(
    content: str | bytes, tmp_path: Path
) -> None:
    (tmp_path / "good.md").write_text("# Good\n\ntext", encoding="utf-8")
    assert [document.title for document in await page(tmp_path, "bad.md", content)] == ["Good"]


@pytest.mark.parametrize(
    "stated",
    [
        "yesterday",
        "last Tuesday",
        "03/04/2026",
        "26/03/14",
        "March",
        "Tuesday",
        "2026",
        "Q1",
        "1710374400",
        "14.13.2026",
    ],
)
async def test_a_date_that_names_no_day_or_several_leaves_the_page_undated_and_is_named(
    stated: str, tmp_path: Path
) -> None:
    (tmp_path / "lock.md").write_text(f"---\nupdated: {stated}\n---\n# Lock\n\ntext", encoding="utf-8")
    [document, note] = await everything(FolderSource("docs", tmp_path))
    assert isinstance(document, Document)
    assert isinstance(note, LeftOut)
    assert (document.title, document.updated_at) == ("Lock", None)
    assert note.is_indexed
    assert stated in note.reason


@pytest.mark.parametrize(
    "stated",
    [
        "14/03/2026",
        "March 14th 2026",
        "14 Mar 2026",
        "Sat, 14 Mar 2026",
        "2026/03/14",
        "14.03.2026",
        "03/14/2026",
        "20260314",
    ],
)
async def test_a_date_that_can_name_one_day_only_is_read_in_any_form(stated: str, tmp_path: Path) -> None:
    [found] = await page(tmp_path, "lock.md", f"---\nupdated: {stated}\n---\n# Lock\n\ntext")
    assert found.updated_at == datetime(2026, 3, 14, tzinfo=UTC)


async def test_a_page_over_the_size_limit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_BYTES", 10)
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
        people=(("Asha Brandt",), ("Mateo",)),
    )


async def test_lines_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    rows = [
        "{",
        "[]",
        "[" * 200_000,
        THREAD | {"readers": []},
        THREAD | {"at": "yesterday"},
        "",
        THREAD | {"id": "good"},
    ]
    found = await documents(ChatThreadSource("chat", write_lines(tmp_path / "t.jsonl", *rows)))
    assert [document.id for document in found] == ["chat/good"]


async def test_the_title_of_a_thread_holds_no_part_of_a_password(tmp_path: Path) -> None:
    said = THREAD | {"text": f"postgres://till:{'Otter1' * 20}@db.example/till does not work"}
    [found] = await documents(ChatThreadSource("chat", write_lines(tmp_path / "t.jsonl", said)))
    assert found.title == "#payments-private: postgres://…"


async def test_names_of_people_are_not_part_of_a_thread(tmp_path: Path) -> None:
    [found] = await documents(ChatThreadSource("chat", write_lines(tmp_path / "t.jsonl", THREAD)))
    assert "Asha" not in found.text + found.title


# --- past incidents --------------------------------------------------------------------------------------------------


async def test_an_incident_is_one_document_with_its_cause_and_fix(tmp_path: Path) -> None:
    [found] = await documents(PastIncidentSource("incidents", write_lines(tmp_path / "i.jsonl", INCIDENT)))
    assert (found.kind, found.family, found.owner) == (DocumentKind.INCIDENT, "incidents", "storefront")
    assert found.title == "INC-0001: Search is slow"
    assert found.text.endswith("Root cause: A rebuild ran at noon.\n\nFix: Moved it to the night.")


async def test_files_of_other_formats_are_counted_by_their_ending(tmp_path: Path) -> None:
    for name in ("a.md", "LICENSE", ".hidden/x.erb", "one.erb", "deep/two.ERB", "logo.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("# A page\n\nRead this.")
    read = await everything(FolderSource("docs", tmp_path))
    told = {each.path: each.reason for each in read if isinstance(each, LeftOut)}
    assert told == {
        "*.erb": "2 files of a format that is not read.",
        "*.png": "1 file of a format that is not read.",
    }
    assert [each.id for each in read if isinstance(each, Document)] == ["docs/a.md"]


def test_incidents_are_loaded_as_history_too(tmp_path: Path) -> None:
    [found] = load_past_incidents(write_lines(tmp_path / "i.jsonl", INCIDENT, INCIDENT | {"severity": "loud"}))
    assert (found.id, found.severity, found.reassignments) == ("INC-0001", Severity.WARNING, ("platform",))
    assert found.labels == {"alertname": "SearchSlow"}
    assert found.started_at == datetime(2025, 5, 1, 8, tzinfo=UTC)


# --- PDF -------------------------------------------------------------------------------------------------------------


async def test_each_page_of_a_pdf_is_a_document_with_an_address_of_its_own(tmp_path: Path) -> None:
    found = await page(tmp_path, "manuals/till.pdf", pdf("Open the till.", "", "Close it.", title="The till"))
    assert [(document.id, document.title, document.text) for document in found] == [
        ("docs/manuals/till.pdf#page=1", "The till, page 1", "Open the till."),
        ("docs/manuals/till.pdf#page=3", "The till, page 3", "Close it."),
    ]
    assert found[1].url == "https://docs.example/manuals/till.pdf#page=3"
    assert found[1].updated_at == datetime(2026, 2, 1, 10, tzinfo=UTC)
    assert found[1].family == "manuals"


async def test_a_pdf_without_a_title_is_named_after_its_file(tmp_path: Path) -> None:
    assert [document.title for document in await page(tmp_path, "till.pdf", pdf("x"))] == ["till, page 1"]


async def test_a_word_divided_at_the_end_of_a_line_is_whole_and_an_option_keeps_its_hyphen(tmp_path: Path) -> None:
    content = pdf("A roll-\nback is begun with --dry-\nrun.", "Every rollback ends.")
    first, _ = await page(tmp_path, "till.pdf", content)
    assert first.text == "A rollback is begun with --dry-run."


async def test_a_pdf_whose_date_makes_no_sense_has_none(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=BytesIO(pdf("Open the till.", title="The till")))
    writer.add_metadata({"/ModDate": "yesterday"})
    writer.write(tmp_path / "till.pdf")
    [found] = await documents(FolderSource("docs", tmp_path))
    assert (found.text, found.updated_at) == ("Open the till.", None)


XMP = '<x:xmpmeta xmlns:x="adobe:ns:meta/" xmlns:pdfx="urn:x" xmlns:dc="urn:dc" xmlns:rdf="urn:rdf">{}</x:xmpmeta>'
LABEL = "MSIP_Label_2096f6a2-d2f7-48be-b329-b73aaa526e5d"


@pytest.mark.parametrize(
    ("information", "packet", "is_open"),
    [
        ({f"/{LABEL}_Enabled": "true", f"/{LABEL}_Name": "Finance"}, "", False),
        ({f"/{LABEL}_Enabled": "false", f"/{LABEL}_Name": "Finance"}, "", True),
        ({"/Keywords": "vault; Confidential"}, "", False),
        ({"/Keywords": "vault; access"}, "", True),
        ({"/Audience": "leads"}, "", False),
        ({}, f"<pdfx:{LABEL}_Enabled>true</pdfx:{LABEL}_Enabled>", False),
        ({}, "<dc:subject><rdf:li>Acme Confidential</rdf:li></dc:subject>", False),
        ({}, '<rdf:Description pdfx:Classification="Finance"/>', False),
        ({}, "<dc:rights>All rights reserved</dc:rights><dc:format>application/pdf</dc:format>", True),
    ],
)
async def test_a_pdf_whose_properties_speak_of_access_is_withheld(
    information: dict[str, str], packet: str, is_open: bool, tmp_path: Path
) -> None:
    writer = PdfWriter(clone_from=BytesIO(pdf("Unseal.")))
    writer.add_metadata(information)
    if packet:
        writer.xmp_metadata = XMP.format(packet).encode()
    writer.write(tmp_path / "vault.pdf")
    assert bool(await documents(FolderSource("docs", tmp_path))) == is_open
    assert bool(await left_out(tmp_path)) != is_open


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4 broken", b"no pdf", pdf("x")[:200]])
async def test_a_pdf_that_is_damaged_is_left_out_and_the_others_are_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# Good\n\ntext", encoding="utf-8")
    assert [document.title for document in await page(tmp_path, "bad.pdf", content)] == ["Good"]


async def test_an_encrypted_pdf_is_left_out(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=BytesIO(pdf("Secret.")))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "secret.pdf")
    assert await documents(FolderSource("docs", tmp_path)) == []


async def test_what_no_reader_of_a_page_sees_is_not_said(tmp_path: Path) -> None:
    hidden = (
        "<p hidden>a</p>",
        '<div style="color: red; display : none">b</div>',
        '<p STYLE="visibility:hidden">c</p>',
        "<template>d</template>",
        "<svg><title>Arrow</title><text>e</text></svg>",
    )
    [found] = await page(tmp_path, "x.html", f"<body><p>Seen.</p>{''.join(hidden)}<p style='margin:0'>Too.</p></body>")
    assert (found.title, found.text) == ("x", "Seen.\n\nToo.")


LINES = ("tillctl drain --all", "# wait for it", "tillctl start")
TEXT = "\n".join(LINES)
GUTTERS = {
    "one cell of numbers": (
        '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2\n3</pre></div></td>'
        f'<td class="code"><div><pre><span></span>{TEXT}\n</pre></div></td></tr></table>'
    ),
    "a table within code": (
        '<div class="highlight"><pre class="highlight"><code><table class="rouge-table"><tbody><tr>'
        '<td class="rouge-gutter gl"><pre class="lineno">1\n2\n3\n</pre></td>'
        f'<td class="rouge-code"><pre>{TEXT}\n</pre></td></tr></tbody></table></code></pre></div>'
    ),
    "a row for each line": "<pre><code><table>"
    + "".join(
        f'<tr><td class="hljs-ln-numbers" data-line-number="{at}"></td><td class="hljs-ln-code">{line}</td></tr>'
        for at, line in enumerate(LINES, start=1)
    )
    + "</table></code></pre>",
    "a row for each line outside of code": "<table>"
    + "".join(
        f'<tr><td class="blob-num" data-line-number="{at}">{at}</td><td class="blob-code">{line}</td></tr>'
        for at, line in enumerate(LINES, start=41)
    )
    + "</table>",
    "numbers within the lines": "<pre>"
    + "\n".join(f'<span class="linenos">{at}</span>{line}' for at, line in enumerate(LINES, start=8))
    + "</pre>",
    "numbers in the text": "<pre>" + "\n".join(f"{at}: {line}" for at, line in enumerate(LINES, start=1)) + "</pre>",
    "a list": f'<pre><ol class="linenums">{"".join(f"<li>{line}</li>" for line in LINES)}</ol></pre>',
    "an element for each line": f"<pre><code>{''.join(f'<div>{line}</div>' for line in LINES)}</code></pre>",
    "breaks": f"<p><code>{'<br/>'.join(LINES)}</code></p>",
}


@pytest.mark.parametrize("kind", GUTTERS)
async def test_code_has_one_command_a_line_and_no_numbers(kind: str, tmp_path: Path) -> None:
    [found] = await page(tmp_path, "x.html", f"<title>T</title><p>Restart:</p>{GUTTERS[kind]}")
    assert found.text == f"Restart:\n\n```\n{TEXT}\n```"


async def test_code_in_the_cells_of_a_table_keeps_its_lines_and_the_names_of_its_columns(tmp_path: Path) -> None:
    table = f"<tr><th>When</th><th>Run</th></tr><tr><td>Slow</td><td><pre>{TEXT}</pre></td></tr>"
    [found] = await page(tmp_path, "x.html", f"<title>T</title><table>{table}</table>")
    assert found.text == f"**When:**\n\nSlow\n\n**Run:**\n\n```\n{TEXT}\n```"


@pytest.mark.parametrize(
    "table",
    [
        "<tr><td>1</td><td>the pool</td></tr><tr><td>2</td><td>the gate</td></tr>",
        "<tr><td>1</td><td>Run <code>a</code>, then wait</td></tr><tr><td>2</td><td>Run <code>b</code></td></tr>",
    ],
)
async def test_a_table_of_numbers_and_words_stays_a_table(table: str, tmp_path: Path) -> None:
    [found] = await page(tmp_path, "x.html", f"<title>T</title><table>{table}</table>")
    assert found.text.startswith("| 1 | ")


@pytest.mark.parametrize(
    "furniture",
    [
        '<div role="navigation"><a href="a">Previous page</a></div>',
        '<ul class="breadcrumbs"><li><a href="/">Home</a></li></ul>',
        "<aside>On this site</aside>",
        "<footer>Marigold Ferries, all rights reserved</footer>",
        '<div id="cookie-banner">We use cookies.</div>',
        '<div class="cookie-consent">We use cookies. <button>Accept</button></div>',
        '<p>Was this page helpful?</p><p><a href="#y">Yes</a> <a href="#n">No</a></p>',
        "<p>Was this article helpful? Yes No</p>",
        '<p><a href="https://forge.example/edit/x.md">Edit this page</a></p>',
        '<p><a href="https://forge.example/x.md">✎ Edit on GitHub</a></p>',
        '<div class="pagination-nav"><a rel="next" href="b">The gate</a></div>',
        '<p><a href="a">« Previous</a> <a href="b">Next: the gate »</a></p>',
        '<a href="#main">Skip to main content</a>',
        '<div class="highlight"><button class="copybtn o-tooltip--left">Copy</button></div>',
        '<button class="btn-copy" type="button">Copied!</button>',
        '<span class="clipboard-button">Copy code</span>',
        '<div class="theme-last-updated">Last updated on Jan 1</div>',
    ],
)
async def test_what_a_site_adds_to_each_page_is_left_out(furniture: str, tmp_path: Path) -> None:
    for sign in ("¶", "#", "🔗", "\u200b"):
        permalink = f'<a class="x" href="#reset" title="Permalink">{sign}</a>'
        body = f"{furniture}<h1>Reset{permalink}</h1><p>Run it, see C#.</p><h2>Then {permalink}</h2>{furniture}"
        [found] = await page(tmp_path, "x.html", f"<title>T</title>{body}")
        assert found.text == "# Reset\n\nRun it, see C#.\n\n## Then"


async def test_code_that_a_site_lets_readers_copy_is_kept(tmp_path: Path) -> None:
    body = '<div class="snippet-clipboard-content"><pre class="copy-code">drain --all</pre></div>'
    [found] = await page(tmp_path, "x.html", f"<title>T</title><body>{body}</body>")
    assert "drain --all" in found.text


async def test_advice_beside_the_text_is_kept(tmp_path: Path) -> None:
    body = '<aside class="admonition warning">Drain first.</aside><aside aria-label="Note">Wait.</aside>'
    [found] = await page(tmp_path, "x.html", f"<title>T ¶</title><body>{body}</body>")
    assert (found.title, found.text) == ("T", "Drain first.\n\nWait.")


async def test_html_keeps_every_character_of_an_identifier(tmp_path: Path) -> None:
    html = "<title>T</title><p>kube_pod_status *and* a_b</p><table><tr><td>x_y</td><td>a|b</td></tr></table>"
    [found] = await page(tmp_path, "x.html", html)
    assert found.text.startswith("kube_pod_status *and* a_b")
    assert r"| x_y | a\|b |" in found.text


async def test_readers_of_the_folder_read_what_does_not_say_by_whom_it_may_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext", encoding="utf-8")
    (tmp_path / "b.md").write_text("---\nreaders: [channel:vault]\n---\n# B\n\ntext", encoding="utf-8")
    found = await documents(FolderSource("docs", tmp_path, readers=frozenset({"channel:ops"})))
    assert [document.readers for document in found] == [{"channel:ops"}, {"channel:vault"}]


async def test_a_folder_of_which_nothing_changed_is_neither_parsed_nor_redacted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept.md").write_text("# Kept\n\nOne.")
    (tmp_path / "changed.md").write_text("# Changed\n\nOne.")
    (tmp_path / "gone.md").write_text("# Gone\n\nOne.")
    (tmp_path / "broken.html").write_bytes(b"\xff\xfe\xff")
    parsed, redacted = list[str](), list[str]()

    async def noted(origin: FileOrigin, content: bytes) -> list[Document | LeftOut]:
        parsed.append(str(origin.path))
        return await documents_of(origin, content)

    def redact(document: Document) -> Document:
        redacted.append(document.id)
        return document

    monkeypatch.setattr(folder, "documents_of", noted)
    index, encoders, store = FakePassageIndex(), FakeEncoderStore(), InMemoryStore()

    async def ingested() -> IngestReport:
        parsed.clear()
        redacted.clear()
        source = FolderSource("docs", tmp_path)
        return await ingest_knowledge([source], index, encoders, store=store, redact=redact)

    first = await ingested()
    assert (first.added, len(first.left_out["docs"])) == (3, 1)
    again = await ingested()
    assert (again.added, again.changed, again.removed, again.unchanged) == (0, 0, 0, 3)
    assert (parsed, redacted) == (["broken.html"], []), "what is left out is named each time"
    assert again.left_out == first.left_out
    (tmp_path / "changed.md").write_text("# Changed\n\nTwo.")
    (tmp_path / "gone.md").unlink()
    third = await ingested()
    assert (third.added, third.changed, third.removed, third.unchanged) == (0, 1, 1, 1)
    assert redacted == ["docs/changed.md"]
    monkeypatch.setattr(folder, "parser", lambda: b"of a later version")
    assert (await ingested()).unchanged == 2
    assert len(parsed) == 3, "another parser may make another document of it"
