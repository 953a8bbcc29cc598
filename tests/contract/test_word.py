"""Word documents: the text that a reader sees, and who may read it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from adapters.sources import formats
from adapters.sources.folder import FolderSource
from adapters.sources.formats import Part, parse
from core.model.document import Document
from core.model.errors import MalformedInput
from core.ports import LeftOut
from tests.cases import every_case
from tests.fakes.documents import WORD, everything
from tests.fakes.documents import word as word_file

PROPERTIES = "http://schemas.openxmlformats.org/officeDocument/2006/custom-properties"


def parsed(body: str, **files: str) -> Part:
    (part,), _ = parse(".docx", word_file(body, **files))
    return part


def run(text: str, style: str = "") -> str:
    return f'<w:r><w:rPr>{style}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, style: str = "", number: int = 0, level: int = 0) -> str:
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>' if number else ""
    content = "".join(each if each.startswith("<") else run(each) for each in runs)
    return f"<w:p><w:pPr>{named}{numbered}</w:pPr>{content}</w:p>"


def cell(*content: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{''.join(map(paragraph, content))}</w:tc>"


def custom(**properties: str) -> dict[str, Any]:
    each = "".join(f'<property name="{name}"><lpwstr>{value}</lpwstr></property>' for name, value in properties.items())
    return {"docProps/custom.xml": f'<Properties xmlns="{PROPERTIES}">{each}</Properties>'}


def test_headings_have_their_level_in_any_language_and_title_is_title() -> None:
    part = parsed(
        paragraph("Drain a node", style="Titel") + paragraph("Before", style="berschrift1") + paragraph("Wait.")
    )
    assert (part.title, part.text) == ("Drain a node", "# Drain a node\n\n# Before\n\nWait.")


def test_lists_are_nested_and_numbered() -> None:
    items = [("one", 5, 0), ("two", 5, 1), ("three", 5, 0), ("first", 6, 0), ("second", 6, 0)]
    text = parsed("".join(paragraph(item, number=number, level=level) for item, number, level in items)).text
    assert text == "- one\n  - two\n- three\n\n1. first\n2. second"


def test_table_repeats_cells_that_are_merged_downwards() -> None:
    header = f"<w:tr>{cell('Service')}{cell('Limit')}</w:tr>"
    restart = '<w:vMerge w:val="restart"/>'
    first = f"<w:tr>{cell('ledger', properties=restart)}{cell('50')}</w:tr>"
    second = f"<w:tr>{cell('', properties='<w:vMerge/>')}{cell('80', 'a|b')}</w:tr>"
    text = parsed(f"<w:tbl>{header}{first}{second}</w:tbl>").text
    assert [line.replace(" ", "") for line in text.splitlines()] == [
        "|Service|Limit|",
        "|---|---|",
        "|ledger|50|",
        r"|ledger|80a\|b|",
    ]


def test_code_keeps_every_character() -> None:
    mono = '<w:rFonts w:ascii="Consolas"/>'
    lines = ("if [[ $a &lt; 3 ]]; then", "  drain &amp;&amp; wait", "fi")
    body = paragraph("Run ", run("drain_node", mono), ".") + "".join(paragraph(run(line, mono)) for line in lines)
    assert parsed(body).text == "Run `drain_node`.\n\n```\nif [[ $a < 3 ]]; then\n  drain && wait\nfi\n```"
    assert parsed(paragraph("kubectl get", style="HTMLVorformatiert")).text == "```\nkubectl get\n```"


def test_links_are_kept_and_deleted_and_struck_out_text_is_not() -> None:
    link = f'<w:hyperlink r:id="rId4">{run("the freeze")}</w:hyperlink>'
    deleted = "<w:del><w:r><w:delText>never</w:delText></w:r></w:del>"
    inserted = f"<w:ins>{run(' now')}</w:ins>"
    struck = run(" old", "<w:strike/>")
    text = parsed(
        paragraph(run("See", "<w:b/>"), " ", link, deleted, inserted, struck, run("!", '<w:b w:val="0"/>'))
    ).text
    assert text == "**See** [the freeze](https://wiki.example/freeze) now!"


@every_case(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"\xd0\xcf\x11\xe0 encrypted",
        word_file("x")[:-40],
        word_file("x").replace(b"word/", b"wort/"),
    ],
)
def test_damaged_document_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedInput):
        parse(".docx", content)


def test_document_that_unpacks_to_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_XML", 10_000)
    with pytest.raises(MalformedInput, match="more than 10000 bytes of XML"):
        parsed(paragraph("x" * 10_000))


def test_document_that_declares_entities_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("heliotrope", encoding="utf-8")
    entities = f'<!DOCTYPE x [<!ENTITY f SYSTEM "{(tmp_path / "secret").as_uri()}"><!ENTITY a "aaaaaaaaaa">'
    names = ["a", *(f"a{level}" for level in range(1, 9))]
    grown = "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in itertools.pairwise(names))
    document = f'{entities}{grown}]><w:document xmlns:w="{WORD}"><w:body>{{}}</w:body></w:document>'
    body = paragraph("&f;&a8;", "Drain.")
    with pytest.raises(MalformedInput):
        parsed("", **{"word/document.xml": document.format(body)})


@pytest.mark.parametrize(
    "properties",
    [
        {"Readers": "everybody in finance"},
        {"MSIP_Label_2096f6a2-d2f7-48be-b329-b73aaa526e5d_Name": "Confidential"},
        {"Confidentiality": "internal"},
    ],
)
def test_document_whose_properties_speak_of_access_is_withheld(properties: dict[str, str]) -> None:
    with pytest.raises(MalformedInput):
        parsed(paragraph("Unseal."), **custom(**properties))


LABELLED = "http://schemas.microsoft.com/office/2020/mipLabelMetadata"
GUID = "2096f6a2-d2f7-48be-b329-b73aaa526e5d"


def labels(**attributes: str) -> dict[str, Any]:
    given = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    label = f'<clbl:label id="{{{GUID}}}" {given}/>'
    return {"docMetadata/LabelInfo.xml": f'<clbl:labelList xmlns:clbl="{LABELLED}">{label}</clbl:labelList>'}


def core(**properties: str) -> dict[str, Any]:
    each = "".join(f"<cp:{name}>{value}</cp:{name}>" for name, value in properties.items())
    return {"docProps/core.xml": f'<cp:coreProperties xmlns:cp="urn:core">{each}</cp:coreProperties>'}


def margin(*content: str) -> dict[str, Any]:
    return {
        "word/header2.xml": f'<w:hdr xmlns:w="{WORD}" xmlns:v="urn:schemas-microsoft-com:vml">{"".join(content)}</w:hdr>'
    }


def control(name: str, content: str) -> str:
    properties = f'<w:sdtPr><w:alias w:val="{name}"/><w:tag w:val="x"/></w:sdtPr>'
    return f"<w:sdt>{properties}<w:sdtContent>{paragraph(content)}</w:sdtContent></w:sdt>"


NAME, ENABLED = f"MSIP_Label_{GUID}_Name", f"MSIP_Label_{GUID}_Enabled"
WITHHELD = {
    "a label": custom(**{ENABLED: "true", NAME: "Confidential - Finance"}),
    "a label of any name": custom(**{NAME: "Secret"}),
    "a label without a name": custom(**{ENABLED: "True"}),
    "a label in the list": labels(enabled="1", method="Standard"),
    "a label in the list, which was off": custom(**{ENABLED: "false"}) | labels(enabled="1", removed="0"),
    "a keyword": core(keywords="vault, Confidential; seals"),
    "a keyword with a value": core(keywords="vault; Classification: Finance"),
    "a category": core(category="Acme Confidential"),
    "a state": core(contentStatus="Draft"),
    "a header": margin(paragraph("Acme"), paragraph("Strictly ", "confidential")),
    "a property in a header": margin(paragraph("Classification: Finance")),
    "a watermark": margin('<v:shape><v:textpath string="CONFIDENTIAL"/></v:shape>'),
    "a control in a header": margin(control("Audience", "leads")),
}
OPEN = {
    "a label that is off": custom(**{ENABLED: "false", NAME: "Secret"}),
    "a label that was removed": labels(enabled="1", removed="1"),
    "a label that is not enabled": labels(enabled="0"),
    "an open label": custom(**{ENABLED: "true", NAME: "Public"}) | labels(enabled="1"),
    "ordinary properties": core(keywords="vault, access", category="Runbook", contentStatus="Final", creator="Asha"),
    "an ordinary header": margin(paragraph("Acme vaults"), control("Title", "Vault")),
}


def test_whatever_a_document_says_of_access_withholds_it_and_names_it() -> None:
    for place, files in WITHHELD.items():
        with pytest.raises(MalformedInput, match="not everybody may read"):
            pytest.fail(f"{place}: {parsed(paragraph('Unseal.'), **files)}")
    with pytest.raises(MalformedInput, match="`Readers list`"):
        parsed(control("Readers list", "leads") + paragraph("Unseal."))
    for place, files in OPEN.items():
        assert parsed(paragraph("Unseal."), **files).readers is None, place


def test_a_label_is_open_by_its_name_or_its_id_if_the_source_says_so() -> None:
    for label, files in (("general", custom(**{NAME: "General"})), (GUID.upper(), labels(enabled="1"))):
        (part,), _ = parse(".docx", word_file(paragraph("Drain."), **files), [label])
        assert part.text == "Drain."
        with pytest.raises(MalformedInput):
            parse(".docx", word_file(paragraph("Drain."), **files), ["Public"])


def test_properties_in_broken_xml_or_with_another_prefix_are_not_missed() -> None:
    whole = custom(Readers="channel:vault")["docProps/custom.xml"]
    with pytest.raises(MalformedInput):
        parsed(paragraph("Unseal."), **{"docProps/custom.xml": whole.replace("</property>", "")})
    prefixed = whole.replace("<", "<x:").replace("<x:/", "</x:").replace("xmlns=", "xmlns:x=")
    assert parsed(paragraph("Unseal."), **{"docProps/custom.xml": prefixed}).readers == {"channel:vault"}


def test_document_names_its_readers_in_a_property() -> None:
    part = parsed(paragraph("Unseal."), **custom(Readers="channel:vault", Department="Payments"))
    assert part.readers == {"channel:vault"}


async def test_folder_reads_word_documents(tmp_path: Path) -> None:
    (tmp_path / "Drain.docx").write_bytes(word_file(paragraph("Run drain.")))
    (tmp_path / "Broken.docx").write_bytes(b"PK")
    found = await everything(FolderSource("docs", tmp_path))
    assert [(each.id, each.title, each.text) for each in found if isinstance(each, Document)] == [
        ("docs/Drain.docx", "Drain", "Run drain.")
    ]
    assert [each for each in found if isinstance(each, LeftOut)] == [
        LeftOut("Broken.docx", "The Word document is damaged or encrypted.")
    ]
