"""The entries of the audit log: who saw and did what. They name ids, and hold no text that anybody wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.model.conversation import Person, Place
from core.model.errors import MalformedInput

PLUMBLINE = "plumbline"  # the actor of what happens by itself
MAX_ACTOR = 300  # characters
MAX_SUBJECT = 500  # characters
MAX_DETAIL = 200  # characters
MAX_DOCUMENTS = 50  # ids kept of one entry

_SPAN = re.compile(r"(\d{1,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Act(StrEnum):
    """The acts that are recorded. The value is stored."""

    ASKED = "asked"
    NOTED = "noted"  # what somebody said in an incident's thread is read for its cause
    CALLED = "called"  # an agent called a tool; `detail` is the tool
    ANSWERED = "answered"  # a person was shown something of the named documents
    PRESSED = "pressed"  # a button; `detail` is the verdict
    REASSIGNED = "reassigned"  # `detail`: from which team to which
    PROPOSED = "proposed"  # a correction
    CONFIRMED = "confirmed"  # a correction, which is answered with from then on
    VIEWED = "viewed"  # a page of the console
    EXPORTED = "exported"  # something left the console as a file
    LOGGED_IN = "logged in"
    REFUSED = "refused"  # a wrong console token
    CONFIGURED = "configured"  # the bot started with this configuration; `subject` is its digest
    RETAINED = "retained"  # a run of the retention policy; `detail` counts what was deleted
    RETRIED = "retried"  # an operator had something tried again
    DROPPED = "dropped"  # an operator gave a dead letter up


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """`key` is what makes the entry one: what is recorded twice under a key, by a step that ran twice, is there once.

    `actor` is `PLATFORM:ID`, or PLUMBLINE. `subject` is the id of what it was about, `place` where in a chat it was,
    empty for none, `documents` the ids of those that were shown. `detail` is a word or two of our own vocabulary.
    """

    key: str
    at: datetime
    act: Act
    actor: str
    subject: str
    place: str = ""
    documents: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NumberedEntry:
    """An entry and its position: later ones have higher numbers."""

    number: int
    entry: AuditEntry


def audit_entry(
    key: str,
    at: datetime,
    act: Act,
    actor: Person | str,
    subject: str,
    *,
    place: Place | None = None,
    documents: tuple[str, ...] = (),
    detail: str = "",
) -> AuditEntry:
    """An entry within its bounds. What comes from outside is cut, and freed of control characters."""
    return AuditEntry(
        key=key,
        at=at,
        act=act,
        actor=_bounded(actor_of(actor), MAX_ACTOR),
        subject=_bounded(subject, MAX_SUBJECT),
        place=_bounded(_spot(place), MAX_SUBJECT),
        documents=tuple(_bounded(each, MAX_SUBJECT) for each in documents[:MAX_DOCUMENTS]),
        detail=_bounded(detail, MAX_DETAIL),
    )


def actor_of(actor: Person | str) -> str:
    """A person by platform and id: names change, and are not needed to tell who it was."""
    return actor if isinstance(actor, str) else f"{actor.platform}:{actor.id}"


def since(text: str, now: datetime) -> datetime:
    """The moment that `--since` means: a span (`90m`, `24h`, `7d`, `2w`), a day, or a time with a zone.

    A day or a time without a zone is UTC's. Raises MalformedInput.
    """
    if span := _SPAN.fullmatch(text):
        return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedInput(f"{text[:50]!r} is not a time. Use 24h, 7d, 2026-03-14 or 2026-03-14T09:30Z.") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=now.tzinfo)


def _spot(place: Place | None) -> str:
    if place is None:
        return ""
    return ":".join(part for part in (place.platform, place.workspace, place.channel, place.thread) if part)


def _bounded(text: str, limit: int) -> str:
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"
