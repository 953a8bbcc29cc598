"""The `home` command: post the home page as a message, on platforms without a page for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from core.model.conversation import Audience, Question
from core.model.home import Home, KnownSource
from core.model.incident import Incident
from core.model.messages import Notice
from handlers.questions.post_message import Poster

SHOWN = 8  # entries per list
MAX_TITLE = 120  # characters

MINE, OTHERS, KNOWN, SET = "Your open incidents", "Other open incidents", "What I know", "Settings"
NONE_MINE = "None."

HomeOf = Callable[[Sequence[str], Audience], Awaitable[Home]]


async def post_home(question: Question, *, home_of: HomeOf, poster: Poster) -> None:
    """Post the home page as a message. In a channel, it contains only what everybody there may read."""
    home = await home_of([question.asker.name], question.audience)
    await poster.post_once(f"home:{question.id}", question.place, Notice(format_home(home)))


def format_home(home: Home) -> str:
    """Return the page as lines of Markdown."""
    sources = [f"{home.passages} passages of:", *_first_lines([_source(each) for each in home.sources])]
    sections = (
        (MINE, _first_lines([_incident(each) for each in home.mine]) or [NONE_MINE]),
        (OTHERS, _first_lines([_incident(each) for each in home.others])),
        (KNOWN, sources if home.sources else []),
        (SET, [f"• {name}: {value}" for name, value in home.settings]),
    )
    return "\n".join(line for title, lines in sections if lines for line in (f"**{title}**", *lines))


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
    return f"• {source.name}: {source.documents} documents, read {source.read_at:%Y-%m-%d %H:%M} UTC{failed}"
