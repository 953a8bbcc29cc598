"""Conversion of Word documents (`.docx`) to HTML: headings, lists, tables, code, links and notes.

The format is Office Open XML (ECMA-376, part 1, section 17); a document is a ZIP archive of XML files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from adapters.sources.front_matter import Properties, properties_from
from core.model.errors import MalformedInput

MAX_XML = 20_000_000  # bytes of one XML file in the archive
DAMAGED = "The Word document is damaged or encrypted."
CODE = "Code"  # the style that text in a typewriter's font gets
STYLES = f"""
p[style-name='Title'] => h1:fresh
p[style-name='{CODE}'] => pre:separator('\\n')
r[style-name='{CODE}'] => code
strike => s
p[style-name='List Bullet 2'] => ul|ol > li > ul > li:fresh
p[style-name='List Number 2'] => ul|ol > li > ol > li:fresh
"""

_MONOSPACE = re.compile(r"consolas|courier|menlo|monaco|mono\b|source code", re.IGNORECASE)
_CODE_STYLE = re.compile(r"\bcode\b|preformatted|^plain text$", re.IGNORECASE)


def word_html(content: bytes) -> tuple[Properties, str]:
    """Return the properties and the text of a document as HTML.

    Raises MalformedInput for a file that is damaged or encrypted, or whose properties speak of access and are not
    understood, such as the sensitivity labels of Microsoft Purview.
    """
    import mammoth

    try:
        with ZipFile(BytesIO(content)) as archive:
            files = {name: _checked(archive, name) for name in archive.namelist() if name.endswith((".xml", ".rels"))}
        document = mammoth.convert_to_html(
            BytesIO(content),
            style_map=STYLES,
            include_embedded_style_map=False,
            transform_document=mammoth.transforms.paragraph(_with_code),
            convert_image=_without_image,
            ignore_empty_paragraphs=False,
        )
    except (BadZipFile, zlib.error, EOFError, LookupError, ValueError, RuntimeError, OSError) as error:
        raise MalformedInput(DAMAGED) from error
    return properties_from(_stated(files)), document.value


def _checked(archive: ZipFile, name: str) -> bytes:
    """Return a file of the archive.

    Raises MalformedInput if it is no well-formed XML, so that no property is missed, or declares entities, as no Word
    does.
    """
    with archive.open(name) as file:
        written = file.read(MAX_XML + 1)
    if len(written) > MAX_XML:
        raise MalformedInput(f"The Word document has more than {MAX_XML} bytes of XML.")
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(written, True)
    except expat.ExpatError as error:
        raise MalformedInput(DAMAGED) from error
    return written


def _refuse(*_: object) -> None:
    raise MalformedInput(DAMAGED)


def _stated(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the document's own properties, by name: those that people add, its status, its category and its date."""
    from bs4 import BeautifulSoup

    custom, core = (BeautifulSoup(files.get(f"docProps/{name}.xml", b""), "xml") for name in ("custom", "core"))
    stated = {str(each.get("name") or ""): each.get_text().strip() for each in custom("property")}
    for tag, name in (("cp:contentStatus", "status"), ("cp:category", "category"), ("dcterms:modified", "updated")):
        if (element := core.find(tag)) and (text := element.get_text().strip()):
            stated.setdefault(name, text)
    return {name: value for name, value in stated.items() if value}


def _with_code(paragraph: Any) -> Any:
    """Return a paragraph whose text in a typewriter's font has the style of code; itself, if it is nothing else."""
    from mammoth.documents import Run, Text
    from mammoth.transforms import get_descendants_of_type, run

    def shown(each: Any) -> str:
        return "".join(text.value for text in get_descendants_of_type(each, Text))

    runs = [each for each in get_descendants_of_type(paragraph, Run) if shown(each).strip()]
    if _CODE_STYLE.search(paragraph.style_name or "") or (runs and all(map(_is_code, runs))):
        plain = run(lambda each: each.copy(style_name=None, is_bold=False, is_italic=False))(paragraph)
        return plain.copy(style_name=CODE, numbering=None)
    return run(lambda each: each.copy(style_name=CODE) if _is_code(each) else each)(paragraph)


def _is_code(run: Any) -> bool:
    return bool(_MONOSPACE.search(run.font or ""))


def _without_image(_image: Any) -> list[Any]:
    return []
