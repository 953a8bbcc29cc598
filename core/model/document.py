"""Documents from knowledge sources, with their passages, and corrected answers from people.

A correction is proposed, then confirmed and indexed as a document with an expiry date.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from core.model.conversation import OPERATOR, PUBLIC, Person
from core.model.text import PAGE_CONTENT, PAGE_TITLE, missing_parts

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
    contains the vectors of its chunks in order, one byte a dimension (see `core.knowledge.passages`); empty if there are
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


SOURCE = "curated"  # the name of the source and the family of its documents
MAX_TEXT = 3_000  # characters of an answer; the limit of a Slack input field
MAX_QUESTION = 300  # characters of the question in the title
ATTESTED = " · "  # separates the question and the attestation in the title
LIFETIME = timedelta(days=180)  # default period from confirmation to expiry


@dataclass(frozen=True, slots=True)
class CuratedAnswer:
    """An answer from a person. `question` and `text` are redacted.

    It becomes a document when confirmed: `confirmed_by`, `confirmed_at` and `expires_at` are set together. `readers`
    are the reader names that may see it, taken from the place where it was written.
    """

    id: str
    question: str
    text: str
    author: Person
    readers: frozenset[str]
    proposed_at: datetime
    confirmed_by: Person | None = None
    confirmed_at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def attestation(self) -> str:
        """Return who confirmed it, when, and until when it is valid; empty for a proposal."""
        if self.confirmed_by is None:
            return ""
        since, until = f"{self.confirmed_at:%Y-%m-%d}", f"{self.expires_at:%Y-%m-%d}"
        return f"Confirmed by {display_name(self.confirmed_by)} on {since}, expires {until}"

    @property
    def is_confirmed(self) -> bool:
        return self.confirmed_by is not None


def answer_id(event: str) -> str:
    """Return an id derived from a chat event id, without revealing the person that the event id may name."""
    return hashlib.blake2b(event.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def may_confirm(answer: CuratedAnswer, person: Person) -> bool:
    """Return whether this person may confirm the proposal: anybody but the author.

    The author may confirm where nobody else can: in a direct message, and with the token of the local page.
    """
    is_alone = person.key == OPERATOR.key or all(reader.startswith("person:") for reader in answer.readers)
    return person.key != answer.author.key or is_alone


def confirmed(answer: CuratedAnswer, person: Person, at: datetime, lifetime: timedelta) -> CuratedAnswer:
    return replace(answer, confirmed_by=person, confirmed_at=at, expires_at=at + lifetime)


def document(answer: CuratedAnswer) -> Document:
    """Return a confirmed answer as a document. Its title contains the attestation, so every citation shows it."""
    return Document(
        id=f"{SOURCE}/{answer.id}",
        source=SOURCE,
        family=SOURCE,
        title=f"{answer.question}{ATTESTED}{answer.attestation}",
        text=answer.text,
        updated_at=answer.confirmed_at,
        readers=answer.readers,
    )


def is_curated(document_id: str) -> bool:
    return document_id.startswith(f"{SOURCE}/")


def question_of(title: str) -> str:
    """Return the question from the title of a curated document."""
    return title.rpartition(ATTESTED)[0]


def display_name(person: Person) -> str:
    """Return the name shown to others. With the token of the local page, it is nobody's."""
    name = "the operator" if person.key == OPERATOR.key else person.name_or_id
    return " ".join(name.split())
