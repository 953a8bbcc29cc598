"""Entries of the audit log. They contain ids, and no text that anybody wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.model.conversation import Person, Place
from core.model.errors import MalformedInput

PLUMBLINE = "plumbline"  # the actor of automatic actions
MAX_ACTOR = 300  # characters
MAX_SUBJECT = 500  # characters
MAX_DETAIL = 200  # characters
MAX_DOCUMENTS = 50  # ids kept per entry

_SPAN = re.compile(r"(\d{1,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Act(StrEnum):
    """The recorded acts. The value is stored."""

    ASKED = "asked"
    NOTED = "noted"  # a remark in an incident's thread was used as evidence of its cause
    CALLED = "called"  # an agent called a tool; `detail` is the tool
    ANSWERED = "answered"  # a person was shown something from the documents
    PRESSED = "pressed"  # a button; `detail` is its name
    REASSIGNED = "reassigned"  # `detail`: from which team to which team
    PROPOSED = "proposed"  # a correction
    FILED = "filed"  # `detail` is the target, `documents` what was written there
    CONFIRMED = "confirmed"  # a correction; from then on it is used as an answer
    VIEWED = "viewed"  # a page of the console
    EXPORTED = "exported"  # a download from the console
    LOGGED_IN = "logged in"
    LOGGED_OUT = "logged out"
    REFUSED = "refused"  # a wrong console token, or an account without the right
    CONFIGURED = "configured"  # the bot started with a configuration; `subject` is its digest
    RETAINED = "retained"  # a run of the retention policy; `detail` contains the counts
    RETRIED = "retried"  # an operator retried something
    DROPPED = "dropped"  # an operator dropped a dead letter


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An audit entry. A second entry with the same `key` is ignored, so a repeated step adds none.

    `actor` is `PLATFORM:ID` or PLUMBLINE. `subject` is the id that the act is about, `place` the place in the chat (may
    be empty), `documents` the ids of the documents shown. `detail` is a word or two from a fixed vocabulary.
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
    """An entry with its position. Later entries have higher numbers."""

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
    """Return an entry. Values from outside are truncated and stripped of control characters."""
    return AuditEntry(
        key=key,
        at=at,
        act=act,
        actor=_bounded(actor if isinstance(actor, str) else actor.key, MAX_ACTOR),  # names change, and are not stored
        subject=_bounded(subject, MAX_SUBJECT),
        place=_bounded(
            ":".join(filter(None, (place.platform, place.workspace, place.channel, place.thread))) if place else "",
            MAX_SUBJECT,
        ),
        documents=tuple(_bounded(each, MAX_SUBJECT) for each in documents[:MAX_DOCUMENTS]),
        detail=_bounded(detail, MAX_DETAIL),
    )


def since(text: str, now: datetime) -> datetime:
    """Return the time that `--since` means: a span (`90m`, `24h`, `7d`, `2w`), a day, or a time with a zone.

    Without a zone, UTC is used. Raises MalformedInput.
    """
    if span := _SPAN.fullmatch(text):
        return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedInput(f"{text[:50]!r} is not a time. Use 24h, 7d, 2026-03-14 or 2026-03-14T09:30Z.") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=now.tzinfo)


def _bounded(text: str, limit: int) -> str:
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"
