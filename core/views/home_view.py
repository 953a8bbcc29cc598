"""The view of a person's own page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from core.incidents.incident_view import format_owner, is_claimed
from core.model.incident import Incident
from core.model.layout import counted
from core.model.message_view import Line, Link, Listing, MessageView, Mood, Part, verbatim
from core.model.messages import Home, KnownSource

MAX_INCIDENTS = 10  # per list
MAX_SOURCES = 40
MAX_SETTINGS = 20

MINE = "Your open incidents"
NONE_OF_MINE = "You and your team have no open incidents."
OTHERS = "Other open incidents"
KNOWN = "What I know"
SETTINGS = "Settings"
CAN = "What you can say to me"
NOT_YOURS = "Only members of this workspace can see my sources and settings."


def home_view(home: Home, urls: Mapping[str, str]) -> MessageView:
    """Return the page. `urls` has the address of the message of each incident by its id."""
    return MessageView("home", "", tuple(_parts(home, urls)))


def _parts(home: Home, urls: Mapping[str, str]) -> Iterator[Part]:
    yield _incidents(MINE, home.mine, urls) if home.mine else _chapter(MINE, (Line(NONE_OF_MINE),), is_bulleted=False)
    if home.others:
        yield _incidents(OTHERS, home.others, urls)
    if home.sources or home.passages:
        indexed = Line(f"{counted(home.passages, 'passage')} indexed.")
        left_out = max(0, len(home.sources) - MAX_SOURCES)
        yield _chapter(KNOWN, (indexed, *map(_source, home.sources[:MAX_SOURCES])), "sources", left_out)
    elif not home.settings:
        yield Line(NOT_YOURS, is_small=True)
    if home.settings:
        lines = tuple(verbatim(f"{name}: {value}") for name, value in home.settings[:MAX_SETTINGS])
        yield _chapter(SETTINGS, lines, "settings")
    if home.can:
        yield _chapter(CAN, tuple(map(Line, home.can)), "lines")


def _chapter(
    title: str, lines: tuple[Line, ...], noun: str = "lines", left_out: int = 0, *, is_bulleted: bool = True
) -> Listing:
    return Listing(title, lines, noun, left_out=left_out, is_chapter=True, is_bulleted=is_bulleted)


def _incidents(title: str, incidents: tuple[Incident, ...], urls: Mapping[str, str]) -> Listing:
    lines = tuple(_incident(each, urls.get(each.id, "")) for each in incidents[:MAX_INCIDENTS])
    return _chapter(title, lines, "incidents", max(0, len(incidents) - MAX_INCIDENTS))


def _incident(incident: Incident, url: str) -> Line:
    owner = f"owner {format_owner(incident)}" if incident.findings.owner is not None else ""
    taken = f"taken by {incident.taken_by}" if incident.taken_by else ""
    facts = (str(incident.severity).capitalize(), taken or owner, _minute(incident.started_at))
    badge = (
        incident.findings.owner.badge
        if incident.findings.owner is not None and is_claimed(incident) and not taken
        else None
    )
    return Line(
        verbatim=(" · ".join(filter(None, facts)),),
        badge=badge,
        source=Link(incident.title, url, incident.id),
        mood=Mood(incident.severity),
    )


def _source(source: KnownSource) -> Line:
    read = f"read {_minute(source.read_at)}" if source.read_at is not None else "first import in progress"
    failed = "" if source.is_read else "⚠️ could not be read since"
    facts = (counted(source.documents, "document"), read, failed)
    return Line(" · ".join(filter(None, facts)), label=source.name)


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
