"""Files of every format, whole and hostile."""

from __future__ import annotations

from io import BytesIO
from random import Random
from zipfile import ZIP_DEFLATED, ZipFile

from core.model.document import Document
from core.ports import ChangingSource, KnowledgeSource, LeftOut

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
FORMATS = {5: "bullet", 6: "decimal"}  # of the lists, by number
STYLES = {"berschrift1": "heading 1", "Titel": "Title", "HTMLVorformatiert": "HTML Preformatted"}


def word(body: str, **files: str) -> bytes:
    """Return a Word document with this XML as its body, as a German Word writes it. `files` are further ones by name."""
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in STYLES.items()
    )
    kinds = "".join(
        f'<w:abstractNum w:abstractNumId="{number}">'
        + "".join(f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="{sign}"/></w:lvl>' for level in range(9))
        + "</w:abstractNum>"
        for number, sign in FORMATS.items()
    )
    lists = "".join(f'<w:num w:numId="{number}"><w:abstractNumId w:val="{number}"/></w:num>' for number in FORMATS)
    link = f'<Relationship Id="rId4" Type="{RELATIONS}/hyperlink" Target="https://wiki.example/freeze" TargetMode="External"/>'
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    parts = {
        "word/document.xml": f'<w:document xmlns:w="{WORD}" xmlns:r="{RELATIONS}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{WORD}">{kinds}{lists}</w:numbering>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}">{link}</Relationships>',
    } | files
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content.encode("utf-8", "replace"))
    return out.getvalue()


def pdf(*pages: str, title: str = "", contents: str = "") -> bytes:
    """Return a PDF file with a line of text on each page. `contents` are further entries of each page's stream."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} >>")
        objects.append(f"<< /Length {len(content)} {contents} >>\nstream\n{content}\nendstream")
    objects.append(f"<< /Title ({title}) /ModDate (D:20260201100000Z) >>")
    body, places = "%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    )
    return f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def slow_page() -> bytes:
    """Return a page of HTML, within the limit of bytes, that takes many seconds and much memory to parse."""
    return b"<b>x</b>" * 249_000


VAULT = "channel:vault"
_STATED = f"\nreaders: {VAULT}\n"
_META = f'\n<meta name="readers" content="{VAULT}">\n'
_MARKDOWN = (
    f"---\ntitle: Drain a node{_STATED}updated: 2026-02-24\n---\n# Drain\n\n| step | who |\n| --- | --- |\n| a | b |\n\n"
    "1. Run `drain --all`.\n   ```sh\n   drain --all\n   ```\n2. [Wait](https://docs.example/wait).\n\n> Never *twice*.\n"
)
_HTML = (
    f"<!DOCTYPE html><html><head><title>Drain</title>{_META}</head><body><h1>Drain</h1><p hidden>no</p>"
    "<table><tr><th rowspan=2>a</th><td>b</td></tr><tr><td colspan=3>c</td></tr></table><pre>drain --all<br></pre>"
    "<ul><li>one<ol><li>two</ol></ul><svg><title>x</title></svg><!-- note --><p>Gr&ouml;&szlig;e &#xD800;</p></body></html>"
)
_WORD = (
    '<w:p><w:pPr><w:pStyle w:val="Titel"/></w:pPr><w:r><w:t>Drain</w:t></w:r></w:p><w:p><w:pPr><w:numPr><w:numId w:val="5"/>'
    '</w:numPr></w:pPr><w:hyperlink r:id="rId4"><w:r><w:rPr><w:b/></w:rPr><w:t>drain --all</w:t></w:r></w:hyperlink></w:p>'
    '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/><w:vMerge w:val="restart"/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>'
)
_PROPERTY = f'<Properties xmlns="urn:x"><property name="Readers"><lpwstr>{VAULT}</lpwstr></property></Properties>'
_HOSTILE = (
    *("---", "+++", "----", "...", "\n---\n", "--- # x\n", ";;;", "{", "}", "[", "&a [*a]", "<<: *x", "!!python/object:os", "%YAML 1.1\n"),
    *("<![foo[bar]]>", "<!--", "-->", "<", "<a", "</", "<script>", "<textarea>", "<plaintext>", "<table>", "<td rowspan=99999>"),
    *('<meta charset="idna">', '<meta charset="utf-7">', '<meta charset="utf-16">', "&#0;", "&#xD800;", "]]>", "<?", "<body hidden>"),
    *("\ufeff", "\u200b", "\x00", "\x85", "\u2028", "\r", "\r\n", "\f", "\x1b", "\udc80", "\u202e", "\u0301" * 50, "a" * 3_000),
    *("`" * 200, "*" * 500, "[" * 300, "(" * 300, "> " * 100, "| " * 300, "- " * 200, "#" * 300, "~~~", "```", "\t" * 200, "=" * 500),
    *("/Filter /JBIG2Decode", "/Filter [/LZWDecode /Odd]", "/Encrypt << /V 9 >>", "/Kids [2 0 R]", "/Length 99999999", "endstream", "endobj"),
    *("xref", "startxref\n0\n", "<< /Type /Page >>", "/Contents 2 0 R", "/Parent 4 0 R", "999999 0 R", "(((", "<</", "/MediaBox [0 0 1e99 -1]"),
)  # fmt: skip
_ENCODINGS = (*["utf-8"] * 12, "utf-8-sig", "utf-16", "utf-16-le", "utf-32")


def mutated(number: int) -> tuple[str, bytes, bool]:
    """Return the suffix and the content of a file that is damaged at random, and whether it still names its readers.

    The same number gives the same file. What names the readers is left whole, on a line of its own: everything around
    it is damaged.
    """
    chance = Random(number)
    suffix = chance.choice((".md", ".html", ".pdf", ".docx"))
    if suffix == ".docx":
        return suffix, word(_damaged(_WORD, chance), **{"docProps/custom.xml": _PROPERTY}), True
    if suffix == ".pdf":
        content = pdf("Open the till.", "", "Close the drawer.", title="The till").decode()
        return suffix, _damaged(content, chance).encode("latin-1", "replace"), False
    whole, stated = (_MARKDOWN, _STATED) if suffix == ".md" else (_HTML, _META)
    before, _, after = whole.partition(stated)
    text = _damaged(before, chance) + stated + _damaged(after, chance)
    if chance.random() < 0.2:
        text = text.replace("\n", chance.choice(("\r", "\r\n", "\x85", "\u2028")))
    content = text.encode(chance.choice(_ENCODINGS), "replace")
    return suffix, content + chance.choice((*[b""] * 8, b"\xff", b"\x80\x81")), True


def _damaged(text: str, chance: Random) -> str:
    for _ in range(chance.randint(0, 6)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 40))
        match chance.randint(0, 5):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + text[start:end] * chance.randint(2, 60) + text[end:]
            case 2:
                other = chance.randint(0, len(text))
                text = text[:other] + text[start:end] + text[other:]
            case _:
                text = text[:start] + chance.choice(_HOSTILE) * chance.choice((1, 1, 1, 30)) + text[start:]
    return text


async def everything(source: KnowledgeSource | ChangingSource) -> list[Document | LeftOut]:
    """Whatever a source holds and leaves out, read from the start."""
    if not isinstance(source, ChangingSource):
        return [each async for each in source.documents()]
    return [each async for part in source.changes("", frozenset()) for each in (*part.documents, *part.left_out)]
