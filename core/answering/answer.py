"""An answer: cited sentences, or an honest "I don't know" with the nearest documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from core.confidence.badge import Badge

MONTH = timedelta(days=30.44)
YEAR = timedelta(days=365.25)


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source. `anchor` is the heading's link target within the document, `quote` is verbatim.

    `stale_for` is the time since its last change, if that is longer than the limit of its source (see `HelpDesk`).
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

    @property
    def staleness(self) -> str:
        """What to say of a stale source; empty for a fresh one."""
        if self.stale_for is None:
            return ""
        count, unit = divmod(self.stale_for, MONTH)[0], "month"
        if self.stale_for >= 2 * YEAR:
            count, unit = divmod(self.stale_for, YEAR)[0], "year"
        elif not count:
            count, unit = self.stale_for.days, "day"
        return f"stale: last changed {count} {unit}{'' if count == 1 else 's'} ago"

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
class Conflict:
    """Sources that state different values for the same thing, newest first; the quote of each is what it states."""

    sources: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Contact:
    """A team that may know. `channel` is the name of the channel it is reached in, empty if there is none to name."""

    team_name: str
    channel: str = ""
    people: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        places = [f"#{self.channel}"] if self.channel else []
        return f"{self.team_name} ({', '.join([*places, *self.people])})" if places or self.people else self.team_name


@dataclass(frozen=True, slots=True)
class Answer:
    """`sentences` is empty when Plumbline abstains; `citations` then name the nearest documents.

    A `tentative` answer is the nearest that there is and not given as certain: other documents come about as close, the
    evidence is not strong, or it holds no such thing as was asked for.
    `conflicts` are what other documents say against it, `contacts` whom to ask when Plumbline abstains.

    `engine` is `evidence`, or the name of the language model that composed it. `note` is a line of ours about how the
    answer was made; usually empty.
    """

    question_id: str
    question: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    engine: str
    badge: Badge | None = None
    prediction_id: str | None = None
    note: str = ""
    tentative: bool = False
    conflicts: tuple[Conflict, ...] = ()
    contacts: tuple[Contact, ...] = ()

    @property
    def abstained(self) -> bool:
        return not self.sentences
