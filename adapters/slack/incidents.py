"""Rendering of incidents in Slack: the message, and the details in its thread."""

from __future__ import annotations

from collections.abc import Iterator

from adapters.slack import blocks
from adapters.slack.blocks import Block
from adapters.slack.mrkdwn import bold, code, escape, link, prose
from adapters.slack.parts import NAME, Rendered, context, control_elements, dotted, fallback, second
from core.incidents.incident_details import Entry, Section, incident_details
from core.incidents.incident_layout import Line, Mood
from core.incidents.incident_layout import Link as Page
from core.incidents.incident_view import incident_view
from core.model.incident import Incident
from core.model.messages import IncidentMessage

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
            *context(escape(view.progress, TEXT)),
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
    said = prose(line.text, TEXT)
    text = f"_{said}_" if line.subtle and said else said
    return label + dotted(text, code(line.code, TEXT), *map(_page, line.links), escape(line.badge, NAME))


def _page(page: Page) -> str:
    return link(page.url, page.text, PAGE)


def _section(section: Section) -> Iterator[str]:
    yield dotted(bold(section.title, ENTRY), escape(section.badge, NAME))
    yield blocks.listing([_entry(entry) for entry in section.entries], section.noun, SECTION)


def _entry(entry: Entry) -> str:
    at = second(entry.at) if entry.at is not None else ""
    source = _page(entry.link) if entry.link is not None else ""
    quote = code(entry.quote, QUOTE)
    told = dotted(at, source, prose(entry.text, ENTRY))
    return f"• {told}" + (f": {quote}" if quote else "")
