"""An answer: cited sentences, or an honest "I don't know" with the nearest documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from core.confidence.badge import Badge


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source. `anchor` is the heading's link target within the document, `quote` is verbatim."""

    number: int
    document_id: str
    passage_id: str
    title: str
    heading: str
    anchor: str
    url: str
    quote: str
    updated_at: datetime | None = None

    @property
    def deep_link(self) -> str:
        """The address of the very heading; empty if the document has no address."""
        if not self.url or not self.anchor or "#" in self.url:
            return self.url
        return f"{self.url}#{quote(self.anchor, safe='', errors='replace')}"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement of an answer and the numbers of the citations that support it (at least one)."""

    text: str
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`sentences` is empty when Plumbline abstains; `citations` then name the nearest documents.

    `engine` is `evidence`, or the name of the language model that composed it.
    """

    question_id: str
    question: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    engine: str
    badge: Badge | None = None
    prediction_id: str | None = None

    @property
    def abstained(self) -> bool:
        return not self.sentences
