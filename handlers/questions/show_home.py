"""A person's home page, from what they may read: as a page of the chat, or with the `home` command as a message."""

from __future__ import annotations

from collections.abc import Sequence

from core.incidents.readable import visible
from core.model.conversation import PUBLIC, Audience, Question
from core.model.incident import Incident, IncidentState
from core.model.layout import counted
from core.model.messages import Home, KnownSource, Notice
from core.model.team import Team
from handlers.common.ports import Ports
from handlers.questions.show_help import ABOUT, EVERYWHERE

LOOKED_AT = 200  # latest incidents searched for open ones
SHOWN = 8  # entries per list
MAX_TITLE = 120  # characters

MINE, OTHERS, KNOWN, SET = "Your open incidents", "Other open incidents", "What I know", "Settings"
NONE_MINE = "None."


async def home_of(names: Sequence[str], audience: Audience, ports: Ports) -> Home:
    """Return the home page of the person known by `names`. Only `audience` reads it.

    Sources and settings are shown to workspace members, not to guests.
    """
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        ingestions = await transaction.ingestions.all()
    folded = {name.casefold() for name in names if name}
    opened = [
        incident for incident in visible(recent, audience, ports.chats.channels) if incident.state is IncidentState.OPEN
    ]
    mine = [incident for incident in opened if _belongs_to(incident, folded, ports.company.teams)]
    belongs = PUBLIC in audience.readers
    return Home(
        mine=tuple(mine),
        others=tuple(incident for incident in opened if incident not in mine),
        passages=await ports.knowledge.index.count() if belongs else 0,
        sources=tuple(
            KnownSource(each.source, each.documents, each.finished_at, not each.failure)
            for each in (ingestions if belongs else ())
        ),
        settings=tuple(ports.settings) if belongs else (),
        can=(ABOUT, *EVERYWHERE),
    )


def _belongs_to(incident: Incident, names: set[str], teams: Sequence[Team]) -> bool:
    """Return whether one of these names took the incident, or is on call for the proposed team of an untaken one."""
    if incident.taken_by:
        return incident.taken_by.casefold() in names
    owner = incident.owner.owner if incident.owner is not None else None
    team = next((team for team in teams if owner is not None and team.id == owner.team_id), None)
    return team is not None and any(name.casefold() in names for name in team.on_call)


async def post_home(question: Question, ports: Ports) -> None:
    """Post the home page as a message. In a channel, it contains only what everybody there may read."""
    home = await home_of([question.asker.name], question.audience, ports)
    await ports.poster.post_once(f"home:{question.id}", question.place, Notice(format_home(home)))


def format_home(home: Home) -> str:
    """Return the page as lines of text."""
    sources = [f"{counted(home.passages, 'passage')} indexed.", *_first_lines([_source(each) for each in home.sources])]
    sections = (
        (MINE, _first_lines([_incident(each) for each in home.mine]) or [NONE_MINE]),
        (OTHERS, _first_lines([_incident(each) for each in home.others])),
        (KNOWN, sources if home.sources or home.passages else []),
        (SET, [f"• {name}: {value}" for name, value in home.settings]),
    )
    return "\n".join(line for title, lines in sections if lines for line in (f"{title}:", *lines))


def _first_lines(lines: Sequence[str]) -> list[str]:
    missing = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"• and {missing} more"] if missing > 0 else [])]


def _incident(incident: Incident) -> str:
    title = incident.title if len(incident.title) <= MAX_TITLE else f"{incident.title[: MAX_TITLE - 1]}…"
    owner = incident.owner.owner if incident.owner is not None else None
    whose = f", {owner.team_name}" if owner is not None else ""
    return f"• {title} ({incident.severity} since {incident.started_at:%Y-%m-%d %H:%M} UTC{whose})"


def _source(source: KnownSource) -> str:
    failed = "" if source.is_read else ", could not be read since"
    return f"• {source.name}: {counted(source.documents, 'document')}, read {source.read_at:%Y-%m-%d %H:%M} UTC{failed}"
