"""Greetings and overviews: `help`, `status`, `incidents` and `home`, each of what its audience may read.

`status` shows open incidents and the freshness of the knowledge; `home` a person's own page, as a page of the chat or as a
message.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.incidents.incident_view import format_owner
from core.incidents.readable import NONE_OPEN, visible
from core.model.conversation import PUBLIC, Audience, Question
from core.model.incident import Incident, IncidentState
from core.model.messages import Home, KnownSource, Notice
from core.model.team import Team
from core.model.text import counted
from core.ports import Ingestion
from handlers.common.ports import Ports
from handlers.incidents.post_handover import open_windows
from handlers.questions.closed_chats import find_closed_chats

SHOWN_INCIDENTS = 5
MAX_READ = 1_000  # latest open incidents that are counted
WHICH_SERVICE = (
    "Which service is it? Say “rca SERVICE is slow” or paste the error after “rca”, and I look for the cause."
)


async def show_status(question: Question, ports: Ports) -> None:
    """Post the status.

    Incidents of other private channels are neither named nor counted, and sources are shown only to workspace members.
    Silenced incidents are listed. The reason why a source cannot be read is not shown, because it may name confidential
    things.
    """
    lines = await open_incidents(question.audience, ports)
    if PUBLIC in question.audience.readers:
        async with ports.store.transaction() as transaction:
            ingestions = await transaction.ingestions.all()
        lines += [
            *await find_closed_chats(ports.store),
            f"{counted(await ports.knowledge.index.count(), 'passage')} indexed.",
            *map(format_source, ingestions),
        ]
    await ports.poster.post_once(f"status:{question.id}", question.place, Notice("\n".join(lines)))


async def show_incidents(question: Question, ports: Ports) -> None:
    """Post the open incidents. Whoever says that something is wrong is asked for the service."""
    lines = await open_incidents(question.audience, ports)
    prompt = [WHICH_SERVICE] if question.text else []
    await ports.poster.post_once(f"incidents:{question.id}", question.place, Notice("\n".join([*lines, *prompt])))


async def open_incidents(audience: Audience, ports: Ports) -> list[str]:
    """Return a line on how many incidents are open, one for each of the latest, and one for each maintenance window."""
    async with ports.store.transaction() as transaction:
        latest = await transaction.incidents.latest_open(MAX_READ)
    opened = visible(latest, audience, await ports.chats.channels_of(latest))
    windows = await open_windows(audience, ports)
    return [*format_incidents(opened), *(f"Maintenance: {window}" for window in windows)]


def format_incidents(opened: Sequence[Incident]) -> list[str]:
    """Return a line on how many incidents are open, and one for each of the first."""
    lines = [f"{counted(len(opened), 'open incident')}:" if opened else NONE_OPEN]
    lines += [f"• {incident.title} ({_format_state(incident)})" for incident in opened[:SHOWN_INCIDENTS]]
    return [*lines, f"• and {len(opened) - SHOWN_INCIDENTS} more"] if len(opened) > SHOWN_INCIDENTS else lines


def _format_state(incident: Incident) -> str:
    since = f"since {incident.started_at:%Y-%m-%d %H:%M} UTC"
    owner = incident.taken_by or format_owner(incident)
    silenced = f"silenced by {incident.silenced.silenced_by}" if incident.silenced is not None else ""
    part = "part of another incident" if incident.part_of is not None else ""
    return ", ".join(filter(None, (since, owner, silenced, part, "flapping" if incident.flapping else "")))


def format_source(ingestion: Ingestion) -> str:
    """Return how many documents of a source are indexed, and when it was last read."""
    if ingestion.finished_at is None:
        return f"• {ingestion.source}: first import, {counted(ingestion.documents, 'document')} so far"
    failed = ", could not be read since" if ingestion.failure else ""
    left_out = f", {len(ingestion.left_out)} left out" if ingestion.left_out else ""
    read = f"read {ingestion.finished_at:%Y-%m-%d %H:%M} UTC"
    return f"• {ingestion.source}: {counted(ingestion.documents, 'document')}{left_out}, {read}{failed}"


HELLO = (
    "Hello, I’m Plumbline. Ask me about CI/CD and operations; I answer from your documents, with links. "
    "Say “help” to see what else I can do. I post only when asked, or when an incident belongs to this channel."
)
ABOUT = "Ask me about CI/CD and operations. I answer from your documents, with links. Ask follow-up questions in the thread."

EVERYWHERE = (
    "how do I roll back a canary?",
    "incidents: what is open now; status: the same, and when each source was last read",
    "triage …: who should own a pasted alert; rca …: why it probably fired, or why a linked build failed",
    "update SERVICE: a draft for people outside the teams about its open incident",
    "maintenance payment-gateway 2h new ledger: post nothing about it for that long; maintenance: list the open windows",
    "settings: show the settings of this channel; quiet 22:00-07:00 Europe/Berlin: set its quiet hours",
    "adopt, adopt on: answer the alerts that other bots post in this channel, in their threads; adopt off, adopt reset",
    "home: your open incidents, my sources and my settings, as far as you may read them",
    "help: this message",
)
ABOUT_AN_INCIDENT = (
    "triage: who should own this incident",
    "rca: why it probably broke",
    "update: a draft for people outside the teams, which you edit and send to a channel",
    "questions about it: what changed? who is on call? what does the runbook say? show me the logs; postmortem",
    "mute this alert for 2 h: post nothing new about it for that long; unmute: end that",
    "root cause: …; fix: …; owner: …: after it ended, a note that I learn from",
)
ABOUT_AN_ANSWER = ("correct: …: the right answer instead of my last one here; once confirmed, I answer with it",)
IN_A_THREAD = "In the thread of an incident or an answer, “help” lists what else I can do there."


async def show_help(question: Question, ports: Ports) -> None:
    """Show the available commands, starting with those for this thread."""
    async with ports.store.transaction() as transaction:
        incident = await transaction.incidents.in_thread(question.place)
        turns = await transaction.conversations.history(question.place, 1)
    here = (*(ABOUT_AN_INCIDENT if incident else ()), *(ABOUT_AN_ANSWER if turns else ()))
    lines = [ABOUT, *(f"• {line}" for line in (*here, *EVERYWHERE)), *(() if here else (IN_A_THREAD,))]
    await ports.poster.post_once(f"help:{question.id}", question.place, Notice("\n".join(lines)))


async def say_hello(question: Question, ports: Ports) -> None:
    """Introduce the bot, when it is added or greeted."""
    await ports.poster.post_once(f"hello:{question.id}", question.place, Notice(HELLO))


MAX_SEEN = 200  # latest incidents searched for open ones
SHOWN = 8  # entries per list
MAX_TITLE = 120  # characters

MINE, OTHERS, KNOWN, SET = "Your open incidents", "Other open incidents", "What I know", "Settings"
NONE_MINE = "None."


async def home_of(names: Sequence[str], audience: Audience, ports: Ports) -> Home:
    """Return the home page of the person known by `names`. Only `audience` reads it.

    Sources and settings are shown to workspace members, not to guests.
    """
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(MAX_SEEN)
        ingestions = await transaction.ingestions.all()
    channels = await ports.chats.channels_of(recent)
    folded = {name.casefold() for name in names if name}
    opened = [each for each in visible(recent, audience, channels) if each.state is IncidentState.OPEN]
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
    owner = incident.findings.likely_owner
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
    owner = incident.findings.likely_owner
    whose = f", {owner.team_name}" if owner is not None else ""
    return f"• {title} ({incident.severity} since {incident.started_at:%Y-%m-%d %H:%M} UTC{whose})"


def _source(source: KnownSource) -> str:
    failed = "" if source.is_read else ", could not be read since"
    return f"• {source.name}: {counted(source.documents, 'document')}, read {source.read_at:%Y-%m-%d %H:%M} UTC{failed}"
