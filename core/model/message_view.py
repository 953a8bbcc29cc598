"""The vocabulary in which core says what a message shows and offers, and what people press in it.

Each chat has one renderer of it.

Texts are untrusted, and verbatim unless they are called Markdown. Renderers escape them, and shorten what a chat
refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from core.model.answer import Citation, Sentence
from core.model.badge import Badge
from core.model.conversation import Audience, MessageReference, Person, Place
from core.model.messages import BUTTON_LABELS, ButtonAction

RIGHT_OR_WRONG = "Right or wrong?"  # the menu of judgements
MORE = "More"  # the menu of the other controls
NO_MODEL = "no language model"


class Mood(StrEnum):
    """A state that a chat shows by a sign or a colour. The text says it too."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
    RESOLVED = "resolved"
    ENDED = "ended"  # without a cure
    THANKS = "thanks"
    ATTENTION = "attention"


@dataclass(frozen=True, slots=True)
class Link:
    """A linked page. `incident_id` is that of another incident; empty for any other page."""

    text: str
    url: str
    incident_id: str = ""


@dataclass(frozen=True, slots=True)
class TeamMention:
    """A team within a text, notified by its `id` on the platform; with an empty id, it is only named."""

    name: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph, or an entry of a list: `label`, `at`, `source`, text, `code`, `links`, then the `badge` of the claim.

    The text is `text`, which is Markdown, or `verbatim` pieces, which keep the spaces at their ends. `code` is to be
    copied, and `quote` is the evidence, below the line. A line is less important than those around it (`is_subtle`), or
    grey text of its own (`is_small`).
    """

    text: str = ""
    label: str = ""
    badge: Badge | None = None
    code: str = ""
    links: tuple[Link | Citation, ...] = ()
    is_subtle: bool = False
    is_small: bool = False
    verbatim: tuple[str | TeamMention, ...] = ()
    source: Link | None = None
    at: datetime | None = None
    quote: str = ""
    mood: Mood | None = None

    @property
    def plain(self) -> str:
        """Return the line on one line without any markup."""
        words = self.text.replace("`", "") + "".join(map(piece_text, self.verbatim))
        parts = (words, self.code, " ".join(map(link_text, self.links)), self.badge.text if self.badge else "")
        return " ".join(filter(None, (self.label, " · ".join(filter(None, parts)))))


def piece_text(piece: str | TeamMention) -> str:
    """Return a piece of a text as plain text."""
    return piece if isinstance(piece, str) else piece.name


def link_text(link: Link | Citation) -> str:
    """Return the text of a link."""
    return link.text if isinstance(link, Link) else link.name


def verbatim(text: str, *, is_small: bool = False, mood: Mood | None = None) -> Line:
    """Return a line of plain text."""
    return Line(verbatim=(text,), is_small=is_small, mood=mood)


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines of which only the first may be shown, with the number of the others, which are called `noun`.

    `title` is Markdown, and `badge` that of the claim in it. `left_out` more lines are not even listed here. A chapter
    (`is_chapter`) has a large title.
    """

    title: str
    entries: tuple[Line, ...]
    noun: str = "of them"
    badge: Badge | None = None
    is_bulleted: bool = True
    is_small: bool = False
    left_out: int = 0
    is_chapter: bool = False


@dataclass(frozen=True, slots=True)
class Statements:
    """The text of an answer: pieces of Markdown, each with the numbers of its sources among those `cited`.

    `title` says how sure it is; empty if certain. `marked` are the sentences of it that answer, verbatim, if there is
    more text.
    """

    sentences: tuple[Sentence, ...]
    cited: tuple[Citation, ...] = ()
    title: str = ""
    marked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Cited documents, numbered if the text refers to them, and quoted unless the text repeats them.

    Small ones are grey text below the message, without quotes where there is little room.
    """

    citations: tuple[Citation, ...]
    title: str = ""
    noun: str = "sources"
    mood: Mood | None = None
    is_numbered: bool = True
    is_quoted: bool = True
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    """A table of how many were right of what was shown with each range of probabilities."""

    title: str
    shown: tuple[float, ...]
    correct: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Picker:
    """A list of `options` (values and names) to pick one from; if `is_picked`, the first one until then."""

    label: str
    options: tuple[tuple[str, str], ...]
    is_picked: bool = False


@dataclass(frozen=True, slots=True)
class TextField:
    """A field for at most `limit` characters, which contains `value`. `name` is what its input is called."""

    name: str
    label: str
    limit: int
    value: str = ""
    is_multiline: bool = True
    is_optional: bool = False


Part = Line | Listing | Statements | Sources | ReliabilityTable | Picker | TextField
P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class Control:
    """A button or a menu entry: its label, and its action; if `url` is not empty, it opens that page instead."""

    label: str
    verdict: ButtonAction | None = None
    subject: str = ""
    url: str = ""


def button(verdict: ButtonAction, subject: str) -> Control:
    """Return the button of an action on a prediction or an incident."""
    return Control(BUTTON_LABELS[verdict], verdict, subject)


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and the controls to judge it."""

    claim: str
    controls: tuple[Control, ...]


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message: a head, its parts, the current activity, and its controls.

    - `kind`: names it for a style sheet. `title` is that of a window with it.
    - `summary`: stands in for the message in a notification or a screen reader.
    - `headline`, `state`, `mood`: the head, of an incident. `incident_id` is that of the stored one.
    - `steps` are done, `progress` is the current activity; empty if there is none.
    - `buttons` are visible, `judging` is one visible menu with a part for each claim, `more` is behind a menu.
    - `engine`: the name of the engine of an answer. `by_model`: a language model wrote some of the text.
    - `is_live`: it changes while people look at it.
    - `times`: those that its texts name in UTC (see `with_times`), which a chat shows in the zone of each reader.
    """

    kind: str
    summary: str
    parts: tuple[Part, ...]
    title: str = ""
    headline: str = ""
    state: str = ""
    mood: Mood | None = None
    incident_id: str = ""
    progress: str = ""
    steps: tuple[str, ...] = ()
    buttons: tuple[Control, ...] = ()
    judging: tuple[Judged, ...] = ()
    more: tuple[Control, ...] = ()
    engine: str = ""
    by_model: bool = False
    is_live: bool = False
    times: tuple[datetime, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.all(Line)

    def all(self, kind: type[P]) -> tuple[P, ...]:
        """Return the parts of a type."""
        return tuple(part for part in self.parts if isinstance(part, kind))

    @property
    def subjects(self) -> dict[ButtonAction, str]:
        """Return the available actions, each with the id that it refers to."""
        judged: Sequence[Control] = [control for each in self.judging for control in each.controls]
        offered = (*self.buttons, *judged, *self.more)
        return {control.verdict: control.subject for control in offered if control.verdict is not None}


NOBODY = Audience(frozenset())


@dataclass(frozen=True, slots=True)
class Feedback:
    """A pressed button.

    - `id`: the idempotency key of the chat event.
    - `subject`: a prediction id for a verdict, a curated answer's id for `confirm`, otherwise an incident id. For
      `reassign` and `not ours`, it is the owner prediction that the person was asked about, if there was one.
    - `place`: the place of a reply (the message's thread); `audience`: its readers.
    - `text`: the text typed above the button; `choice`: the id that was picked there; `title`: the title typed in a form
      that has one. All are untrusted.
    - `in_form`: the platform asks for details in its own form, so no message has to.
    """

    id: str
    verdict: ButtonAction
    subject: str
    person: Person
    place: Place
    at: datetime
    text: str = ""
    audience: Audience = NOBODY
    choice: str = ""
    in_form: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Reaction:
    """A positive or negative reaction to one of our messages, or its removal.

    `id` is the idempotency key of the chat event. `message` has the platform, the channel and the message's id; its
    thread may be missing. `comment` is what the person typed with it, untrusted.
    """

    id: str
    message: MessageReference
    approves: bool
    person: Person
    at: datetime
    taken_back: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A time in UTC, and its name in a text: the time of day, after its date or alone."""

    at: datetime
    name: str
    has_date: bool


def with_times(text: str, times: Sequence[datetime], shown: Callable[[NamedTime], str]) -> str:
    """Return a text in which each of these times that it names is as `shown` writes it. The first of a name counts."""
    # Most texts name no time, and an incident may have hundreds.
    named = {each.name: each for at in reversed(times) for each in _named(at.astimezone(UTC))} if "UTC" in text else {}
    name = max((name for name in named if name in text), key=len, default="")
    if not name:
        return text
    return shown(named[name]).join(with_times(piece, times, shown) for piece in text.split(name))


def _named(at: datetime) -> list[NamedTime]:
    days = (f"{at:%Y-%m-%d} ", f"{at.day} {at:%b} {at.year} ", f"{at.day} {at:%b} ", "")
    return [NamedTime(at, f"{day}{at:%H:%M} UTC", bool(day)) for day in days]
