"""Answers that people gave when Plumbline's was wrong: proposed, confirmed, and then a document with an expiry date."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.model.conversation import Person, Platform
from core.model.document import Document

SOURCE = "curated"  # the name of the source, and the family of its documents
MAX_TEXT = 3_000  # characters of an answer: what an input field of Slack takes
MAX_QUESTION = 300  # characters of the question that stands in the title
ATTESTED = " · "  # between the question and who vouches for its answer
LIFETIME = timedelta(days=180)  # after its confirmation, unless plumbline.yaml says otherwise


@dataclass(frozen=True, slots=True)
class CuratedAnswer:
    """An answer that somebody gave. `question` and `text` hold no names, addresses or secrets.

    It is no document before somebody confirmed it: `confirmed_by`, `confirmed_at` and `expires_at` are set together.
    `readers` are the reader names that may see it: those of the place where it was said.
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
        """Return who vouches for it, since when and until when; empty for a proposal."""
        if self.confirmed_by is None:
            return ""
        since, until = f"{self.confirmed_at:%Y-%m-%d}", f"{self.expires_at:%Y-%m-%d}"
        return f"Confirmed by {display_name(self.confirmed_by)} on {since}, expires {until}"

    @property
    def is_confirmed(self) -> bool:
        return self.confirmed_by is not None


def answer_id(event: str) -> str:
    """The id of what was said in this event of a chat, which may name who said it: the id does not."""
    return hashlib.blake2b(event.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def may_confirm(answer: CuratedAnswer, person: Person) -> bool:
    """Return whether this person's word makes the proposal a document: four eyes see more than two.

    Where nobody else is there to confirm, in a direct message and on the local page, its author may.
    """
    is_somebody_else = (person.platform, person.id) != (answer.author.platform, answer.author.id)
    is_alone = person.platform is Platform.CONSOLE or all(reader.startswith("person:") for reader in answer.readers)
    return is_somebody_else or is_alone


def confirmed(answer: CuratedAnswer, person: Person, at: datetime, lifetime: timedelta) -> CuratedAnswer:
    return replace(answer, confirmed_by=person, confirmed_at=at, expires_at=at + lifetime)


def document(answer: CuratedAnswer) -> Document:
    """The document of a confirmed answer; its title says who vouches for it, so that every citation does."""
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
    """The question that the document with this title answers."""
    return title.rpartition(ATTESTED)[0]


def display_name(person: Person) -> str:
    """How a person is named to others; the local page knows no accounts."""
    name = "the operator" if person.platform is Platform.CONSOLE else person.name or person.id
    return " ".join(name.split())
