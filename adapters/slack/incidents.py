"""Rendering of incidents in Slack: the message, and the details in its thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from adapters.slack import blocks
from adapters.slack.blocks import (
    LINE,
    NAME,
    Block,
    Rendered,
    badge,
    control_elements,
    dotted,
    fallback,
    second,
    small_text,
)
from adapters.slack.mrkdwn import bold, code, escape, link, prose
from core.incidents.incident_details import DetailsSection, Entry, incident_details
from core.incidents.incident_layout import Line, Mood
from core.incidents.incident_layout import Link as Page
from core.incidents.incident_view import format_on_call, incident_view
from core.model.findings import AskedTeam
from core.model.incident import Incident
from core.model.messages import I_AM_UNSURE, IS_IT_YOURS, ON_CALL, OR, PING, IncidentMessage, OwnerPing, OwnerQuestion

ICONS = {Mood.CRITICAL: "🔴", Mood.WARNING: "🟡", Mood.INFO: "🔵", Mood.RESOLVED: "✅"}

# Characters, including escapes. Details in total stay below blocks.MAX_MESSAGE.
TEXT = 700  # per line of the message
LINES = 7_000  # for all lines
PAGE = 300  # per link, including its address
ENTRY = 250
QUOTE = 160
DETAILS = 11_000
SECTION = 1_400


def incident_message(message: IncidentMessage) -> Rendered:
    view = incident_view(message)
    lines = [escape(view.state, TEXT), *map(_line, view.lines)]
    actions = control_elements(view.buttons, view.judging, view.more)
    return Rendered(
        fallback([view.summary]),
        [
            blocks.header(f"{ICONS[view.mood]} {view.headline}"),
            *blocks.sections(lines, "lines", LINES),
            *small_text(escape(view.progress, TEXT)),
            *([blocks.actions(actions)] if actions else []),
        ],
    )


def details_blocks(incident: Incident) -> list[Block]:
    """Return the details, for the thread or for a window."""
    shown: list[Block] = []
    room = DETAILS
    for section in incident_details(incident):
        text = "\n".join(_section(section))
        room -= len(text)
        if room < 0:
            break
        shown.append(blocks.section(text))
    return shown or [blocks.section("Nothing is known yet.")]


def details_message(incident: Incident) -> Rendered:
    return Rendered(fallback([f"Details: {incident.title}"]), details_blocks(incident))


def _line(line: Line) -> str:
    label = f"*{line.label}*  " if line.label else ""
    phrase = prose(line.text, TEXT)
    text = f"_{phrase}_" if line.subtle and phrase else phrase
    return label + dotted(text, code(line.code, TEXT), *map(_page, line.links), escape(line.badge, NAME))


def _page(page: Page) -> str:
    return link(page.url, page.text, PAGE)


def _section(section: DetailsSection) -> Iterator[str]:
    yield dotted(bold(section.title, ENTRY), escape(section.badge, NAME))
    yield blocks.listing([_entry(entry) for entry in section.entries], section.noun, SECTION)


def _entry(entry: Entry) -> str:
    at = second(entry.at) if entry.at is not None else ""
    source = _page(entry.link) if entry.link is not None else ""
    quote = code(entry.quote, QUOTE)
    text = dotted(at, source, prose(entry.text, ENTRY))
    return f"• {text}" + (f": {quote}" if quote else "")


USER_GROUP = re.compile(r"^S[A-Z0-9]{2,20}$")  # other ids, such as those of channels, mention nobody


def owner_call(message: OwnerPing | OwnerQuestion) -> Rendered:
    text = _ping(message) if isinstance(message, OwnerPing) else f"{is_it_theirs(message.teams)} {I_AM_UNSURE}"
    return Rendered(text, [blocks.section(text)])


def is_it_theirs(teams: Iterable[tuple[AskedTeam, str]]) -> str:
    """Return the question to teams, each with its mention, or without one by name only."""
    return IS_IT_YOURS.format(team=OR.join(_candidate(team, mention) for team, mention in teams))


def _ping(ping: OwnerPing) -> str:
    on_call = f"{ON_CALL}: {escape(', '.join(ping.on_call), LINE)}" if ping.on_call else ""
    return dotted(f"{_called(ping.team_name, ping.mention)}: {PING}", badge(ping.badge), on_call)


def _candidate(team: AskedTeam, mention: str) -> str:
    on_call = escape(format_on_call(team), LINE)
    return _called(team.team_name, mention) + (f" ({on_call})" if on_call else "")


def _called(team_name: str, mention: str) -> str:
    return f"<!subteam^{mention}>" if USER_GROUP.match(mention) else bold(team_name, NAME)
