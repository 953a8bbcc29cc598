"""Corrected answers from people: proposed, then confirmed and indexed as documents with an expiry date."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.model.conversation import Person, Platform
from core.model.document import Document

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

    The author may confirm where nobody else can: in a direct message and on the local page.
    """
    is_somebody_else = (person.platform, person.id) != (answer.author.platform, answer.author.id)
    is_alone = person.platform == Platform.CONSOLE or all(reader.startswith("person:") for reader in answer.readers)
    return is_somebody_else or is_alone


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
    """Return the name shown to others. The local page has no accounts."""
    name = "the operator" if person.platform == Platform.CONSOLE else person.name_or_id
    return " ".join(name.split())
