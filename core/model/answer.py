"""An answer: an excerpt of a document or cited sentences, or an honest "I don't know" with the nearest documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from core.model.badge import Badge
from core.model.conversation import NameFirst
from core.model.text import counted

EVIDENCE = "evidence"  # the engine that uses no language model
RECORDS = "records"  # the engine of an answer from the workspace's own records

MONTH = timedelta(days=30.44)
YEAR = timedelta(days=365.25)


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source. `anchor` is the heading's link target within the document, `quote` is verbatim.

    `stale_for` is the time since its last change, if that is longer than the limit of its source (see `HelpDesk`).
    `restricted` is True if not every member of the workspace may read the document. `missing` are the parts that it lacks,
    as Markdown.
    """

    number: int
    document_id: str
    passage_id: str
    title: str
    heading: str
    anchor: str
    url: str
    quote: str
    updated_at: datetime | None = None
    stale_for: timedelta | None = None
    restricted: bool = False
    missing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the title and the heading, once if they are equal."""
        return " › ".join(dict.fromkeys(filter(None, (self.title, self.heading))))

    @property
    def updated(self) -> str:
        """Return the day of the last change, in words; empty if unknown."""
        return f"updated {self.updated_at:%Y-%m-%d}" if self.updated_at else ""

    @property
    def staleness(self) -> str:
        """Return a note on a stale source; empty for a fresh one."""
        if self.stale_for is None:
            return ""
        count, unit = next(
            (self.stale_for // length, unit)
            for length, unit, least in ((YEAR, "year", 2), (MONTH, "month", 1), (timedelta(days=1), "day", 0))
            if self.stale_for >= least * length
        )
        return f"stale: last changed {counted(count, unit)} ago"

    @property
    def deep_link(self) -> str:
        """Return the address of the heading; empty if the document has no address."""
        return self.url + (
            f"#{quote(self.anchor, safe='', errors='replace')}"
            if self.url and self.anchor and "#" not in self.url
            else ""
        )


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement of an answer, and the numbers of its citations."""

    text: str
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A contiguous piece of a document, as Markdown, that answers or may answer a question.

    `marked` is the sentence, list item or table row of `text` that answers, verbatim; empty if none stands out, as in
    code. `citation` is the number of its source.
    """

    text: str
    marked: str
    citation: int


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Sources that state different values for the same thing, newest first. Each quote is the source's statement.

    `is_replaced` is True if the newest forbids or replaces a command of the other.
    """

    sources: tuple[Citation, ...]
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class Contact:
    """A team that may know. `channel` is the name of its channel; empty if there is none to name."""

    team_name: str
    channel: str = ""
    people: tuple[NameFirst, ...] = ()

    @property
    def text(self) -> str:
        places = ", ".join(filter(None, (self.channel and f"#{self.channel}", *self.people)))
        return f"{self.team_name} ({places})" if places else self.team_name


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, as it is shown.

    The evidence engine shows `excerpts`: one, or one for each part of a question. Below them `further` offers up to
    two other excerpts that may answer: whole if the evidence engine is not certain, else each as one line with its link. A
    language model composes `sentences` instead. Both are empty when Plumbline abstains; `citations` then name the nearest
    documents.

    A `tentative` answer is below the certainty from which answers are shown without a hedge. `conflicts` are contradictions
    by other documents, `contacts` the teams to ask if Plumbline abstains.

    `engine` is `evidence`, or the name of the language model that composed it. `lead` is what the bot says first, such as
    what failed in a paste, and `note` its remark on the answer; both are usually empty. While a language model still works
    on it, `stop_id` is the id by which a button stops that; empty otherwise.
    """

    question_id: str
    question: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    engine: str
    badge: Badge | None = None
    prediction_id: str | None = None
    note: str = ""
    lead: str = ""
    tentative: bool = False
    conflicts: tuple[Contradiction, ...] = ()
    contacts: tuple[Contact, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    further: tuple[Excerpt, ...] = ()
    stop_id: str = ""

    @property
    def abstained(self) -> bool:
        return not (self.sentences or self.excerpts)

    @property
    def quotes(self) -> tuple[Excerpt, ...]:
        """Return the excerpts to choose from, the likeliest first; empty if one is certain, or a model chose it."""
        return (*self.excerpts, *self.further) if self.tentative and self.engine == EVIDENCE and self.further else ()

    @property
    def is_composed(self) -> bool:
        """Return whether a language model wrote the sentences. An excerpt that a model chose was written by people."""
        return bool(self.sentences) and self.engine not in (EVIDENCE, RECORDS)

    @property
    def text(self) -> str:
        """Return all that the answer says, as Markdown, without its sources; empty for an abstention."""
        return "\n\n".join(each.text for each in self.excerpts) or " ".join(each.text for each in self.sentences)
