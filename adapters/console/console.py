"""Rendering of HTML, and what the pages of the local page share.

The templates escape everything; only `document.py` generates markup from text.

Static files of the page (styles, scripts, logo) are held in memory. Posted forms have limits and clear errors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from adapters.console.document import document_url, folded, render_inline, render_statement
from adapters.console.messages import ConsoleMessages, Live, PersonMessage
from adapters.http import line_of, read_body
from adapters.signing_in.guard import VISITOR
from core import views
from core.confidence.calibrator import MIN_OUTCOMES
from core.confidence.measures import reliability
from core.incidents.handover import closed_chats
from core.incidents.incident_details import TIMELINE, incident_details
from core.incidents.incident_view import claimed_owner, format_duration, format_owner, incident_view
from core.model import message_view, messages
from core.model.answer import Citation
from core.model.badge import PredictionKind
from core.model.conversation import Audience, Channel, Place, Platform, channel_audience, channel_reader, cut_message
from core.model.document import Passage
from core.model.errors import InputTooLarge, MalformedInput, PlumblineError
from core.model.incident import Incident, Stage
from core.model.messages import ButtonAction, IncidentMessage
from core.ports import Clock, Inbox, Store

MAX_BODY = 64 * 1024  # bytes; 4 000 characters of any script have at most 48 000 bytes, percent-encoded
MAX_FIELDS = 10
RESOLVE = "/resolve"  # suffix of a sample incident's name that resolves it
MAX_TEXT = 4_000  # characters of a comment
MAX_PASTE = 1024 * 1024  # bytes of the form with a message, of which `cut_message` keeps the beginning and the end

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_IN_AN_ADDRESS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


async def read_form(request: web.Request, limit: int = MAX_BODY) -> dict[str, str]:
    """Return the fields of a form of at most `limit` bytes. Raises MalformedInput, InputTooLarge."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise MalformedInput("The local page accepts only forms. Send application/x-www-form-urlencoded.")
    too_large = InputTooLarge(f"The form is over {limit // 1024} KiB: send less text.")
    body = await read_body(request.content, limit, too_large)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError:
        raise MalformedInput("The form cannot be read: it is not UTF-8, or has too many fields.") from None


def question_text(form: dict[str, str]) -> str:
    """Return the text of a form without control characters, and without the middle of a long one. Raises MalformedInput."""
    text = _CONTROL.sub("", form.get("text", "").replace("\r\n", "\n")).strip()
    if not text:
        raise MalformedInput("The message is empty: write a question first.")
    return cut_message(text)


def comment_text(form: dict[str, str], limit: int = MAX_TEXT) -> str:
    """Return the text of a form as `question_text` does, if it has at most `limit` characters. Raises MalformedInput."""
    text = question_text(form)
    if len(text) > limit:
        raise InputTooLarge(f"The message has {len(text)} characters. Shorten it to at most {limit}.")
    return text


def page_of(form: dict[str, str]) -> str:
    """Return the page that contained the form, if it is one of ours; otherwise the first page.

    Raises MalformedInput for a page with control characters: a line end would begin another header, and browsers drop
    tabs, which would make `/<TAB>/elsewhere.example` another site.
    """
    page = form.get("page", "/")
    if _NOT_IN_AN_ADDRESS.search(page):
        raise MalformedInput("The form’s page address contains control characters. Load the page and try again.")
    return page if page.startswith("/") and not page.startswith(("//", "/\\")) else "/"


def see_other(page: str) -> web.Response:
    """Redirect the browser after a form was accepted, so that a reload does not submit it again."""
    return web.Response(status=303, headers={"Location": page})


RECENT_INCIDENTS = 50
SEARCHED_INCIDENTS = 150  # for those that a person may see
RECENT_PREDICTIONS = 100  # per kind, whose labels are shown on the buttons

MAX_DIGITS = 18  # in a number that databases accept

Replay = Callable[[], Awaitable[None]]
Retry = Callable[[str], Awaitable[bool]]


class PageNotFound(PlumblineError):
    """An address of the local page refers to something that does not exist, or that this channel may not read."""


@dataclass(frozen=True, kw_only=True)
class Console:
    """The ports and settings of the local page.

    `document` returns the passages of a document that an audience may read now. `channels_now` returns the channels as they
    are now; those without one of these reader names count as private.
    """

    messages: ConsoleMessages
    live: Live
    inbox: Inbox
    store: Store
    count_passages: Callable[[], Awaitable[int]]
    document: Callable[[str, Audience], Awaitable[Sequence[Passage]]]
    sources_status: Callable[[], Awaitable[Sequence[SourceStatus]]]
    all_channels: Sequence[Channel]
    channels_now: Callable[[Iterable[str]], Awaitable[Sequence[Channel]]]
    workspace_name: str
    clock: Clock
    examples: Sequence[str] = ()
    replays: Mapping[str, Replay] = field(default_factory=dict[str, Replay])

    @cached_property
    def renderer(self) -> Renderer:
        return Renderer(self.clock.now, self.workspace_name)

    async def channels(self, request: web.Request) -> list[Channel]:
        """Return the channels with an id on this page that the visitor may read."""
        here = [channel for channel in self.all_channels if Platform.CONSOLE in channel.ids]
        now = await self._now(request, (channel_reader(place) for channel in here for place in channel.places))
        places = {channel.name: Place(Platform.CONSOLE, channel.ids[Platform.CONSOLE]) for channel in here}
        return [
            channel for channel in now if channel.name in places and request[VISITOR].sees(places[channel.name], now)
        ]

    async def channel(self, channel_id: str, request: web.Request) -> Channel:
        """Return the channel with this id. Raises PageNotFound, also if the visitor may not read it."""
        for channel in await self.channels(request):
            if channel.ids[Platform.CONSOLE] == channel_id:
                return channel
        raise PageNotFound("There is no such channel on this page: choose one from the list on the left.")

    async def audience(self, channel_id: str, request: web.Request) -> Audience:
        """Return the audience of a channel. Raises PageNotFound as `channel` does."""
        return channel_audience(Place(Platform.CONSOLE, channel_id), [await self.channel(channel_id, request)])

    async def recent_incidents(self, request: web.Request) -> list[Incident]:
        """Return the latest incidents that the visitor may see, each as far as the visitor may read it."""
        limit = RECENT_INCIDENTS if request[VISITOR].audience is None else SEARCHED_INCIDENTS
        async with self.store.transaction() as transaction:
            recent = await transaction.incidents.recent(limit)
        now = await self._now(request, (name for incident in recent for name in incident.reader_names))
        shown = (request[VISITOR].shown(incident, now) for incident in recent)
        return [*islice((incident for incident in shown if incident is not None), RECENT_INCIDENTS)]

    async def incident(self, incident_id: str, request: web.Request) -> Incident | None:
        """Return an incident as `recent_incidents` does; None if there is none that the visitor may see."""
        async with self.store.transaction() as transaction:
            incident = await transaction.incidents.get(incident_id)
        now = await self._now(request, incident.reader_names if incident is not None else ())
        return request[VISITOR].shown(incident, now) if incident is not None else None

    async def _now(self, request: web.Request, readers: Iterable[str]) -> Sequence[Channel]:
        """Return the channels as they are now. Who sees everything need not wait for the chats."""
        return await self.channels_now(readers) if request[VISITOR].audience is not None else self.all_channels

    def page(self, request: web.Request, template: str, **values: object) -> web.Response:
        html = self.renderer.page(template, visitor=request.get(VISITOR), **values)
        return web.Response(text=html, content_type="text/html")

    async def closed_chats(self) -> list[str]:
        async with self.store.transaction() as transaction:
            return closed_chats(await transaction.dead_letters.waiting())

    async def labels(self) -> dict[str, bool]:
        """Return whether each of the latest judged predictions was right, by id."""
        async with self.store.transaction() as transaction:
            recent = [await transaction.predictions.recent(kind, RECENT_PREDICTIONS) for kind in PredictionKind]
        return {
            prediction.id: outcome.correct
            for predictions in recent
            for prediction, outcome in predictions
            if outcome is not None
        }


def number_of(text: str) -> int:
    """Return a message id or an entry number from an address. Raises PageNotFound if it is invalid."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise PageNotFound("There is no such message on this page.")
    return int(text)


STALE_AFTER = timedelta(hours=24)  # a source that was last read longer ago is marked as old


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of a source.

    `read_at` is the time of the last attempt, None before the first one has ended; `failure` says why it failed, empty
    if it did not. `left_out` names documents that could not be indexed, and why.
    """

    name: str
    reads: str
    documents: int
    read_at: datetime | None
    failure: str = ""
    left_out: tuple[str, ...] = ()

    def condition(self, now: datetime) -> str:
        """Return `failing`, `never read`, `first import`, `old` or `fresh`."""
        if self.failure:
            return "failing"
        if self.read_at is None:
            return "first import" if self.documents else "never read"
        return "old" if now - self.read_at > STALE_AFTER else "fresh"


TEMPLATES = Path(__file__).with_name("templates")

LIST_ITEM = re.compile(r"(?:-|\d{1,3}[.)]) ")
MAX_ITEMS = 20  # items shown of an untrusted list
MAX_LINES = 200  # lines shown of a text

THANKS = {
    ButtonAction.STOP: "I’m stopping.",
    ButtonAction.ASK_A_PERSON: "I asked for a person in the thread.",
    ButtonAction.TAKE_IT: "It’s yours, unless somebody else took it first.",
    ButtonAction.TAKE_OVER: "It’s yours.",
    ButtonAction.HAND_OVER: "Pick the team in the thread.",
    ButtonAction.SEPARATE: "It is a separate incident again.",
    ButtonAction.BELONGS: "Pick the incident in the thread.",
    ButtonAction.JOIN: "Merged.",
    ButtonAction.JOIN_SUGGESTED: "Merged.",
    ButtonAction.REASSIGN: "Thanks, reassigned.",
    ButtonAction.NOT_OURS: "Thanks, I’ll keep looking.",
    ButtonAction.DETAILS: "The details are in the thread.",
    ButtonAction.CREATE_ISSUE: "The draft is in the thread.",
    ButtonAction.PUBLISH_POSTMORTEM: "The draft is in the thread.",
    ButtonAction.FILE: "I’m filing it; the thread will link to it.",
    ButtonAction.WRITE_UPDATE: "The draft is in the thread.",
    ButtonAction.SEND_UPDATE: "I’m sending it; the thread will say so.",
    ButtonAction.CORRECTION: "Thanks, proposed in the thread.",
    ButtonAction.CONFIRM: "Thanks, confirmed.",
}


STATIC = Path(__file__).with_name("static")
STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def static_files() -> dict[str, bytes]:
    """Return the content of each file by name."""
    return {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in STATIC_TYPES}


def static_url(name: str) -> str:
    """Return the address of a file. It changes with the content, so that browsers may cache the file for good."""
    return f"/console/static/{name}?v={_version(name)}"


@cache
def _version(name: str) -> str:
    return hashlib.blake2b(static_files()[name], digest_size=6).hexdigest()


class Renderer:
    """Renders the templates. `now` returns the time, for ages and to omit today's date."""

    def __init__(self, now: Callable[[], datetime], workspace_name: str) -> None:
        self._now = now
        self._workspace_name = workspace_name

    def page(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(values)

    def fragment(self, template: str, macro: str, *arguments: Any) -> str:
        """Render one macro of a template."""
        return str(getattr(self._environment.get_template(template).module, macro)(*arguments))

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "inline": render_inline,
            "statement": render_statement,
            "time": self._time,
            "day": self._day,
            "ago": self._ago,
            "duration": format_duration,
            "web_url": web_url,
            "fingerprint": fingerprint,
            "one_line": line_of,
        }
        environment.tests["list_item"] = lambda text: LIST_ITEM.match(text) is not None
        environment.tests |= {name: partial(_is, kind) for name, kind in TESTS.items()}
        environment.globals |= WORDING | FUNCTIONS | {"workspace_name": self._workspace_name, "visitor": None}
        return environment

    def _time(self, at: datetime) -> Markup:
        """Return a time in short form, with the full time as a tooltip."""
        at, today = at.astimezone(UTC), self._now().astimezone(UTC).date()
        day = "" if at.date() == today else f"{at.day} {at:%b} " if at.year == today.year else f"{at.day} {at:%b %Y} "
        return _time_element(at, f"{day}{at:%H:%M}")

    def _day(self, at: datetime) -> Markup:
        at = at.astimezone(UTC)
        return _time_element(at, f"{at.day} {at:%b}" if at.year == self._now().year else f"{at.day} {at:%b %Y}")

    def _ago(self, at: datetime) -> Markup:
        age = self._now() - at
        return _time_element(
            at.astimezone(UTC), "just now" if age < timedelta(minutes=1) else f"{format_duration(age)} ago"
        )


def thanks(verdict: ButtonAction) -> str:
    """Return the text that replaces the buttons once one was pressed."""
    if verdict in messages.CORRECT:
        return f"Thanks, noted: {messages.BUTTON_LABELS[verdict].lower()}."
    return "The explanation is in the thread." if verdict in messages.WHY_ACTIONS else THANKS[verdict]


def _is(kind: type | UnionType, content: object) -> bool:
    return isinstance(content, kind)


def reliability_rows(shown: Sequence[float], correct: Sequence[bool]) -> list[list[float]]:
    """Return of each range of probabilities the mean, the share that was right, its 95 % interval, and the number.

    Needs at least one prediction.
    """
    bins = reliability(np.array(shown), np.array(correct, dtype=np.float64))
    return np.column_stack((bins.confidence, bins.accuracy, *bins.interval, bins.counts)).tolist()


def web_url(url: str) -> str:
    """Return the address if it is a web address; empty for `javascript:` and other schemes."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in ("http", "https") and parts.netloc else ""


def fingerprint(incidents: Sequence[Incident]) -> str:
    """Return a digest that changes with any of these incidents, and with their selection."""
    state = "\n".join(f"{incident.id} {incident.revision}" for incident in incidents)
    return hashlib.blake2b(state.encode(), digest_size=8).hexdigest()


def _time_element(at: datetime, text: str) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), f"{at:%Y-%m-%d %H:%M:%S} UTC", text
    )


TESTS: dict[str, type | UnionType] = {
    "person": PersonMessage,
    "citation": Citation,
    "line": message_view.Line,
    "listing": message_view.Listing,
    "statements": message_view.Statements,
    "sources": message_view.Sources,
    "picker": message_view.Picker,
    "text_field": message_view.TextField,
    "field": message_view.Picker | message_view.TextField,
}

# Names available in the templates: wording and limits, in capitals, and functions.
WORDING = {
    "BUTTON_LABELS": messages.BUTTON_LABELS,
    "CORRECT": messages.CORRECT,
    "MAX_ITEMS": MAX_ITEMS,
    "MAX_LINES": MAX_LINES,
    "MAX_TEXT": MAX_TEXT,
    "MIN_OUTCOMES": MIN_OUTCOMES,
    "MORE": message_view.MORE,
    "RESOLVE": RESOLVE,
    "RIGHT_OR_WRONG": message_view.RIGHT_OR_WRONG,
    "Stage": Stage,
    "TIMELINE": TIMELINE,
    "Verdict": ButtonAction,
}
FUNCTIONS = {
    "static": static_url,
    "message_view": views.message_view,
    "incident_view": lambda incident: incident_view(IncidentMessage(incident)),
} | {
    each.__name__: each
    for each in (claimed_owner, document_url, folded, format_owner, incident_details, reliability_rows, thanks)
}
