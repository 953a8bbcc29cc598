"""Documents from knowledge sources, and their passages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.model.conversation import PUBLIC
from core.model.layout import PAGE_CONTENT, PAGE_TITLE, missing_parts

IN_PART = "+"  # the end of the hash of a document that lacks a part, so that such documents are found by it


class DocumentKind(StrEnum):
    PAGE = "page"  # a runbook, guide or manual
    THREAD = "thread"  # a chat message with all its replies, in order
    INCIDENT = "incident"  # a past incident with its cause and fix


class AnchorStyle(StrEnum):
    """The publishing platform's form of link targets of headings."""

    SLUG = "slug"  # code forges and static sites: `#roll-back-by-hand`
    HYPHENS = "confluence cloud"  # `#Roll-back-by-hand`
    WITH_TITLE = "confluence server"  # `#Canaries-Rollbackbyhand`: the page's title and the heading


@dataclass(frozen=True, slots=True)
class Document:
    """A document from any source.

    - `id`: unique and stable across sources (`SOURCE/path`).
    - `text`: Markdown, whose headings can be linked to.
    - `family`: the manual or collection that the document belongs to; a claim does not mix evidence of two families
      (Evidence-Chain RAG).
    - `url`: the web address, empty if only the local page shows the document.
    - `readers`: the reader names that may see it (see `Audience`).
    - `anchors`: the style of links to headings at `url`.
    - `part_urls`: the address of each part of a thread, one for every part of `text` between blank lines, or none.
    - `people`: the names, user names and e-mail addresses of each person who wrote it or may be named in it. They are
      used only to remove them from the text (see `core.knowledge.redactor`).
    """

    id: str
    source: str
    family: str
    title: str
    text: str
    kind: DocumentKind = DocumentKind.PAGE
    url: str = ""
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] = frozenset({PUBLIC})
    people: tuple[tuple[str, ...], ...] = ()
    part_urls: tuple[str, ...] = ()
    anchors: AnchorStyle = AnchorStyle.SLUG

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the parts that its text lacks, such as those that another page holds, as Markdown."""
        return missing_parts(self.text)

    @property
    def content_hash(self) -> str:
        """Return a hash that changes exactly when something visible to readers, or the readers, change.

        It ends with IN_PART if parts of the document are missing.
        """
        parts = (
            self.family,
            self.title,
            self.text,
            self.kind,
            self.url,
            self.owner,
            self.updated_at.isoformat() if self.updated_at else "",
            *sorted(self.readers),
            *self.part_urls,
        )
        digest = hashlib.blake2b("\x00".join(parts).encode(), digest_size=16).hexdigest()
        return digest + (IN_PART if self.missing else "")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document, short enough to be ranked and quoted.

    `text` is Markdown without the title prefix; `heading` is the nearest heading above its first line. `number` counts
    from 1 within the document. `content_hash` is that of the whole document. `repeats` contains, for that heading and
    then for each heading in `text`, the number of earlier headings with the same text; empty if all are 0. `meaning`
    contains the vectors of its chunks in order, one byte a dimension (see `core.knowledge.markdown`); empty if there are
    none. `missing` are the parts that the whole document lacks.
    """

    id: str
    document_id: str
    number: int
    title: str
    heading: str
    text: str
    family: str
    kind: DocumentKind
    url: str
    owner: str
    updated_at: datetime | None
    readers: frozenset[str]
    content_hash: str
    part_urls: tuple[str, ...] = ()
    anchors: AnchorStyle = AnchorStyle.SLUG
    repeats: tuple[int, ...] = ()
    meaning: bytes = b""
    missing: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """Return the prefix of the indexed text: title and number (Ericsson chatbot, section V-A)."""
        numbered = f"{self.title}\nPassage {self.number}\n"
        return f"{PAGE_TITLE}{numbered}{PAGE_CONTENT}\n" if self.kind is DocumentKind.PAGE else numbered

    @property
    def indexed_text(self) -> str:
        """Return the text that is indexed."""
        return f"{self.prefix}{self.text}"
