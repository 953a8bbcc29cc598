"""The pages of the local page: its chat, with live updates as server-sent events and people's input, and the operator's
incidents, sources, documents, and predictions with their outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from uuid import uuid4

from aiohttp import web

from adapters.console.console import (
    MAX_PASTE,
    MAX_TEXT,
    Console,
    PageNotFound,
    Retry,
    comment_text,
    fingerprint,
    number_of,
    page_of,
    question_text,
    read_form,
    see_other,
)
from adapters.console.document import joined, render_document
from adapters.console.messages import ConsoleMessage, Content, Cursor, PageReader, PersonMessage, decode, encode
from adapters.signing_in.guard import HEADERS, UNKNOWN, VISITOR, Guard
from core.confidence.measures import LATEST, Quality, measure_drift, measure_quality
from core.incidents.incident_details import gaps_by_tool
from core.incidents.postmortem import MAX_DRAFT, Postmortem, as_markdown, draft_postmortem, worth_a_postmortem
from core.model.audit import Act, audit_entry
from core.model.badge import Calibrator, Drift, Estimator, Outcome, Prediction, PredictionKind, Verdict
from core.model.conversation import OPERATOR, PUBLIC, Audience, Place, Platform, Question, channel_audience
from core.model.errors import MalformedInput, Unauthorized, Unavailable
from core.model.findings import TimelineEntry
from core.model.incident import Incident, IncidentState
from core.model.message_view import Feedback
from core.model.messages import FILING_ACTIONS, ButtonAction, IncidentMessage, Message
from core.ports import Transaction
from core.rca.observations import investigation_intent
from core.views import message_view

SHOWN_PREDICTIONS = 100  # per kind
SHOWN = 100  # audit entries per page
SHOWN_LETTERS = 100


@dataclass(frozen=True, slots=True)
class Record:
    """The latest judged claims of an estimator, its current calibrator, and the quality of its percentages.

    `quality` is None while no claim was judged, `drift` while there are too few.
    """

    estimator: Estimator
    right: int
    wrong: int
    calibrator: Calibrator | None
    quality: Quality | None
    drift: Drift | None


@dataclass(frozen=True, slots=True)
class LabelledPrediction:
    """A prediction with its label, and with the question that it answers if it was asked on this page."""

    prediction: Prediction
    outcome: Outcome | None
    question: str = ""


class Operations:
    def __init__(self, console: Console, retry: Retry) -> None:
        """Create the handlers. `retry` retries a dead letter by its intent, and returns False if there is none."""
        self._console = console
        self._retry = retry

    async def incidents(self, request: web.Request) -> web.Response:
        """Handle `GET /incidents`: open ones first, then resolved ones, each newest first."""
        recent = await self._console.recent_incidents(request)
        incidents = sorted(recent, key=lambda incident: incident.state is not IncidentState.OPEN)
        return self._console.page(
            request,
            "incidents.html",
            incidents=incidents,
            recent=recent,
            closed=await self._console.closed_chats(),
            gaps=gaps_by_tool(recent),
            now=self._console.clock.now(),
        )

    async def incident(self, request: web.Request) -> web.Response:
        """Handle `GET /incidents/ID`."""
        incident = await self._incident(request)
        return self._console.page(
            request,
            "incident.html",
            incident=incident,
            timeline=_timeline(incident),
            labels=await self._console.labels(),
            recent=await self._console.recent_incidents(request),
            has_postmortem=worth_a_postmortem(incident),
        )

    async def postmortem(self, request: web.Request) -> web.Response:
        """Handle `GET /incidents/ID/postmortem`."""
        incident, draft = await self._draft(request)
        rendered = await asyncio.to_thread(render_document, as_markdown(draft), title=draft.title)
        return self._console.page(request, "postmortem.html", incident=incident, draft=draft, rendered=rendered)

    async def postmortem_file(self, request: web.Request) -> web.Response:
        """Handle `GET /incidents/ID/postmortem.md`: the postmortem as a file."""
        incident, draft = await self._draft(request)
        name = "".join(c if c.isascii() and c.isalnum() else "-" for c in incident.id)
        disposition = {"Content-Disposition": f'attachment; filename="postmortem-{name}.md"'}
        return web.Response(text=as_markdown(draft), content_type="text/markdown", headers=disposition)

    async def _draft(self, request: web.Request) -> tuple[Incident, Postmortem]:
        incident = await self._incident(request)
        if not worth_a_postmortem(incident):
            raise PageNotFound("This incident is not over, or it has no cause, owner or note to report.")
        return incident, draft_postmortem(incident)

    async def _incident(self, request: web.Request) -> Incident:
        incident = await self._console.incident(request.match_info["incident_id"], request)
        if incident is None:
            raise PageNotFound("There is no such incident.")
        return incident

    async def sources(self, request: web.Request) -> web.Response:
        """Handle `GET /sources`."""
        return self._console.page(
            request,
            "sources.html",
            sources=await self._console.sources_status(),
            passages=await self._console.count_passages(),
            now=self._console.clock.now(),
        )

    async def document(self, request: web.Request) -> web.Response:
        """Handle `GET /documents/ID?channel=…&quote=…`: show what the person may read; with the token, what the channel
        may, or public documents without one.
        """
        channel = request.query.get("channel")
        of_channel = await self._console.audience(channel, request) if channel else Audience()
        audience = request[VISITOR].audience or of_channel
        passages = await self._console.document(request.match_info["document_id"], audience)
        if not passages:
            raise PageNotFound("There is no such document, or this channel may not read it.")
        first = passages[0]
        # In a thread: a large document takes tens of milliseconds, which would delay acknowledgements.
        rendered = await asyncio.to_thread(
            render_document,
            joined(passages),
            title=first.title,
            quote=request.query.get("quote", ""),
            channel=channel,
        )
        return self._console.page(
            request, "document.html", document=first, rendered=rendered, public=PUBLIC in first.readers
        )

    async def predictions(self, request: web.Request) -> web.Response:
        """Handle `GET /predictions?kind=…&outcome=right|wrong|open`."""
        kind, outcome = request.query.get("kind", ""), request.query.get("outcome", "")
        async with self._console.store.transaction() as transaction:
            claims = [
                LabelledPrediction(prediction, label)
                for each in PredictionKind
                for prediction, label in await transaction.predictions.recent(each, SHOWN_PREDICTIONS)
            ]
            judged = [await _judged(transaction, each) for each in await transaction.predictions.estimators()]
        # In a thread: measuring takes tenths of a second after a new label, which would delay acknowledgements.
        records = [await asyncio.to_thread(_record, *each) for each in judged]
        claims.sort(key=lambda claim: claim.prediction.made_at, reverse=True)
        shown = [
            claim for claim in claims if kind in ("", claim.prediction.kind) and outcome in ("", _result(claim.outcome))
        ][:SHOWN_PREDICTIONS]
        claims = [replace(claim, question=await self._question(claim.prediction, request)) for claim in shown]
        titles = {incident.id: incident.title for incident in await self._console.recent_incidents(request)}
        if request[VISITOR].audience is not None:
            claims = [claim for claim in claims if claim.question or claim.prediction.subject in titles]
        return self._console.page(
            request, "predictions.html", records=records, claims=claims, titles=titles, kind=kind, outcome=outcome
        )

    async def _question(self, prediction: Prediction, request: web.Request) -> str:
        """Return the question that was asked on this page; empty for others, and in channels that the visitor may not read."""
        platform, _, message_id = prediction.subject.partition(":")
        if prediction.kind is not PredictionKind.ANSWER or platform != Platform.CONSOLE or not message_id.isdecimal():
            return ""
        message = await self._console.messages.get(int(message_id))
        channels = [channel.ids[Platform.CONSOLE] for channel in await self._console.channels(request)]
        content = decode(message.kind, message.payload) if message and message.channel in channels else None
        return content.text if isinstance(content, PersonMessage) else ""

    async def record(self, request: web.Request, act: Act) -> None:
        """Record an act, with the client's address, which is all that tells those apart who hold the token.

        Of the query, only the channel is stored, because the rest may quote documents.
        """
        channel = request.query.get("channel")
        async with self._console.store.transaction() as transaction:
            await transaction.audit.add(
                audit_entry(
                    f"console:{uuid4().hex}",
                    self._console.clock.now(),
                    act,
                    request.get(VISITOR, UNKNOWN).person,
                    request.path + (f"?channel={channel}" if channel else ""),
                    documents=tuple(
                        request.match_info[name] for name in ("document_id",) if name in request.match_info
                    ),
                    detail=request.remote or "",
                )
            )

    async def audit(self, request: web.Request) -> web.Response:
        """Handle `GET /audit?act=…&before=NUMBER`."""
        act = _act(request.query.get("act", ""))
        before = number_of(request.query["before"]) if "before" in request.query else None
        async with self._console.store.transaction() as transaction:
            entries = await transaction.audit.latest(SHOWN + 1, before, act)
        return self._console.page(
            request,
            "audit.html",
            entries=entries[:SHOWN],
            older=entries[SHOWN - 1].number if len(entries) > SHOWN else None,
            acts=list(Act),
            act=act,
        )

    async def dead_letters(self, request: web.Request) -> web.Response:
        """Handle `GET /dead-letters`: show them, newest first."""
        async with self._console.store.transaction() as transaction:
            letters = await transaction.dead_letters.latest(SHOWN_LETTERS)
            count = await transaction.dead_letters.count()
        return self._console.page(request, "dead_letters.html", letters=letters, count=count)

    async def retry(self, request: web.Request) -> web.Response:
        """Handle `POST /console/dead-letters` with an `intent`."""
        if not await self._retry((await read_form(request)).get("intent", "")):
            raise PageNotFound("There is no such dead letter. It may have been retried already.")
        return see_other("/dead-letters")


Judged = tuple[Verdict, ...]


async def _judged(transaction: Transaction, estimator: Estimator) -> tuple[Estimator, Judged, Calibrator | None]:
    predictions = transaction.predictions
    judged = await predictions.verdicts(estimator, LATEST)
    return estimator, tuple(judged), await predictions.calibrator(estimator)


def _record(estimator: Estimator, judged: Judged, calibrator: Calibrator | None) -> Record:
    right = sum(correct for _, correct in judged)
    return Record(estimator, right, len(judged) - right, calibrator, measure_quality(judged), measure_drift(judged))


def _result(outcome: Outcome | None) -> str:
    return "open" if outcome is None else "right" if outcome.correct else "wrong"


def _timeline(incident: Incident) -> list[TimelineEntry]:
    """Return the timeline of the investigation, merged with the events that the bot observed."""
    explained = incident.findings.explanation.timeline if incident.findings.explanation else ()
    entries = list(explained) or [TimelineEntry(incident.started_at, f"Alert: {incident.title}")]
    entries.append(TimelineEntry(incident.opened_at, "The alert arrived here."))
    if incident.resolved_at:
        ended = f"{incident.end.text}." if incident.is_uncured else "The last alert was resolved."
        entries.append(TimelineEntry(incident.resolved_at, ended))
    return sorted(entries, key=lambda entry: entry.at)


def _act(name: str) -> Act | None:
    try:
        return Act(name) if name else None
    except ValueError:
        raise MalformedInput("There is no such act in the audit log: choose one on the page.") from None


THREADS = 50  # per page; a link leads to older ones
AWAITED = timedelta(minutes=2)  # how long a question without a reply is shown as in progress
SEND_TIMEOUT = 20.0  # seconds for a browser to accept data
STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message with its decoded content."""

    message: ConsoleMessage
    content: Content


@dataclass(frozen=True, slots=True)
class Thread:
    root: ShownMessage
    replies: tuple[ShownMessage, ...]
    awaited: bool


class ConversationPage:
    """Handlers of the conversation page."""

    def __init__(self, console: Console, guard: Guard) -> None:
        self._console = console
        self._guard = guard

    async def show(self, request: web.Request) -> web.Response:
        """Handle `GET /?channel=ID&before=MESSAGE`."""
        channels = await self._console.channels(request)
        if not channels:
            raise PageNotFound("This page has no channel for you: give one a `console` id in plumbline.yaml.")
        channel_id = request.query.get("channel") or channels[0].ids[Platform.CONSOLE]
        channel = await self._console.channel(channel_id, request)
        before = number_of(request.query["before"]) if "before" in request.query else None
        messages = await self._console.messages.page(channel_id, THREADS + 1, before)
        threads = self._threads(messages)
        return self._console.page(
            request,
            "conversation.html",
            channels=channels,
            channel=channel,
            channel_id=channel_id,
            threads=threads[-THREADS:],
            older=threads[-THREADS].root.message.id if len(threads) > THREADS else None,
            latest=before is None,
            cursor=Cursor().after(messages),
            labels=await self._console.labels(),
            incidents=await self._console.recent_incidents(request),
            closed=await self._console.closed_chats(),
            examples=self._console.examples,
            replays=list(self._console.replays),
        )

    async def as_json(self, request: web.Request) -> web.Response:
        """Handle `GET /console/messages.json?channel=ID`: return the latest threads with every message as stored."""
        channel_id = request.query.get("channel", "")
        await self._console.channel(channel_id, request)
        shown = [
            {field.name: getattr(message, field.name) for field in fields(message)} | {"at": message.at.isoformat()}
            for message in await self._console.messages.page(channel_id, THREADS)
        ]
        return web.json_response({"channel": channel_id, "messages": shown})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Handle `GET /console/live?channel=ID&after=CURSOR&incidents=FINGERPRINT`: stream server-sent events."""
        channel = request.query.get("channel")
        if channel is not None:
            await self._console.channel(channel, request)
        cursor = Cursor.parse(request.headers.get("Last-Event-ID") or request.query.get("after", "0.0"))
        feed = Feed(self._console, channel, cursor, request.query.get("incidents", ""), request)
        response = web.StreamResponse(headers=HEADERS | STREAM_HEADERS)
        with self._console.live.reader() as reader:
            await response.prepare(request)
            try:
                async for data in feed.events(reader):
                    await self._guard.visitor(request)
                    async with asyncio.timeout(SEND_TIMEOUT):
                        await response.write(data)
            except (TimeoutError, ConnectionResetError, Unavailable, Unauthorized, PageNotFound):
                # Too slow, gone, store unavailable, or no longer allowed: the browser reconnects and requests the changes it missed.
                return response
        return response

    async def say(self, request: web.Request) -> web.Response:
        """Handle `POST /console/messages` (channel, text, optional thread): store the message and submit it as a
        question.
        """
        form = await read_form(request, MAX_PASTE)
        channel_id, text = form.get("channel", ""), question_text(form)
        audience = await self._console.audience(channel_id, request)
        person = request[VISITOR].person
        thread = await self._root(channel_id, form["thread"]) if form.get("thread") else None
        at = self._console.clock.now()
        kind, payload = encode(PersonMessage("You" if person == OPERATOR else person.name_or_id, text))
        message_id = await self._console.messages.append(channel_id, thread, kind, payload, f"person:{uuid4().hex}", at)
        self._console.live.notify()
        place = Place(Platform.CONSOLE, channel_id, str(message_id if thread is None else thread))
        await self._console.inbox.ask(Question(f"console:{message_id}", text, person, place, audience, at))
        return _done(request, f"/?channel={channel_id}#m-{message_id}")

    async def judge(self, request: web.Request) -> web.Response:
        """Handle `POST /console/feedback` (verdict, and the message or incident that it is about)."""
        form = await read_form(request)
        page = page_of(form)
        message, place = await self._judged(form, request)
        try:
            verdict = ButtonAction(form.get("verdict", ""))
        except ValueError:
            raise MalformedInput("There is no such button. Reload the page.") from None
        subjects = message_view(message).subjects
        if isinstance(message, IncidentMessage):  # the handler checks what plumbline.yaml allows
            subjects |= dict.fromkeys(FILING_ACTIONS, message.incident.id)
        if verdict not in subjects:
            raise MalformedInput("This button no longer applies. Reload the page.")
        at = self._console.clock.now()
        limit = MAX_DRAFT if verdict in (ButtonAction.FILE, ButtonAction.SEND_UPDATE) else MAX_TEXT
        text = comment_text(form, limit) if verdict is ButtonAction.CORRECTION or form.get("text", "").strip() else ""
        choice = form.get("choice", "")
        audience = channel_audience(place, await self._console.channels(request))
        await self._console.inbox.press(
            Feedback(
                f"console:{uuid4().hex}",
                verdict,
                subjects[verdict],
                request[VISITOR].person,
                place,
                at,
                text,
                audience,
                choice,
                title=form.get("title", ""),
            )
        )
        if "HX-Request" not in request.headers:
            return see_other(page)
        html = self._console.renderer.fragment("_feedback.html", "judged", form, subjects, verdict)
        return web.Response(text=html, content_type="text/html")

    async def replay(self, request: web.Request) -> web.Response:
        """Handle `POST /console/replays` (name): replay a sample incident."""
        form = await read_form(request)
        page = page_of(form)
        replay = self._console.replays.get(form.get("name", ""))
        if replay is None:
            raise PageNotFound("There is no such sample incident to replay.")
        await replay()
        return _done(request, page)

    def _threads(self, messages: Sequence[ConsoleMessage]) -> list[Thread]:
        replies: dict[int, list[ShownMessage]] = {message.id: [] for message in messages if message.thread is None}
        for message in messages:
            if message.thread in replies:
                replies[message.thread].append(_shown(message))
        since = self._console.clock.now() - AWAITED
        return [
            Thread(_shown(message), tuple(replies[message.id]), not replies[message.id] and message.at > since)
            for message in messages
            if message.thread is None
        ]

    async def _root(self, channel_id: str, thread: str) -> int:
        message = await self._console.messages.get(number_of(thread))
        if message is None or message.channel != channel_id:
            raise PageNotFound("The thread to reply to is not in this channel. Reload the page.")
        return message.root

    async def _judged(self, form: dict[str, str], request: web.Request) -> tuple[Message, Place]:
        """Return the message of a button, and the place for a reply to it. Raises PageNotFound."""
        asked_for = form.get("incident")
        if asked_for is None:
            message = await self._console.messages.get(number_of(form.get("message", "")))
        elif (incident := await self._console.incident(asked_for, request)) is not None:
            return IncidentMessage(incident), incident.placement.thread or incident.placement.place
        else:  # an incident of a question is not in the store
            message = await self._console.messages.find(investigation_intent(asked_for))
        content = decode(message.kind, message.payload) if message is not None else None
        is_incident = isinstance(content, IncidentMessage)
        if (
            message is None
            or content is None
            or isinstance(content, PersonMessage)
            or is_incident == (asked_for is None)
        ):
            raise PageNotFound("There is no such answer or incident.")
        await self._console.channel(message.channel, request)
        return content, Place(Platform.CONSOLE, message.channel, str(message.root))


def _shown(message: ConsoleMessage) -> ShownMessage:
    return ShownMessage(message, decode(message.kind, message.payload))


def _done(request: web.Request, page: str) -> web.Response:
    """Return an empty response, because changes arrive live. A browser without JavaScript is redirected to the page."""
    return web.Response(status=204) if "HX-Request" in request.headers else see_other(page)


TICK = 10.0  # seconds between events without news, which also keeps the connection alive
SETTLE = 0.05  # seconds in which changes of a burst are collected
MAX_CHANGES = 200  # messages sent one by one; a page that missed more is reloaded


class Feed:
    """Follows a channel and the list of incidents; without a channel, only the incidents."""

    def __init__(
        self, console: Console, channel: str | None, cursor: Cursor, incidents: str, request: web.Request
    ) -> None:
        """Create the feed for a visitor. `incidents` is the fingerprint of the list that the page shows."""
        self._console = console
        self._channel = channel
        self._cursor = cursor
        self._incidents = incidents
        self._request = request

    async def events(self, reader: PageReader) -> AsyncIterator[bytes]:
        """Yield the changes each time the reader is woken, until it is closed."""
        while not reader.closed:
            yield b"".join([event async for event in self._news()]) or b": nothing new\n\n"
            await reader.news(TICK)
            await asyncio.sleep(SETTLE)

    async def _news(self) -> AsyncIterator[bytes]:
        if self._channel is not None:
            await self._console.channel(self._channel, self._request)  # it may have turned private
            changed = await self._console.messages.changed(self._channel, self._cursor.revision, MAX_CHANGES)
            if changed:
                yield await self._changes(self._channel, changed)
        incidents = await self._console.recent_incidents(self._request)
        if (state := fingerprint(incidents)) != self._incidents:
            self._incidents = state
            yield event("incidents", self._console.renderer.fragment("_sidebar.html", "open_incidents", incidents))

    async def _changes(self, channel: str, changed: list[ConsoleMessage]) -> bytes:
        if len(changed) == MAX_CHANGES:
            latest = await self._console.messages.page(channel, MAX_CHANGES)
            self._cursor = self._cursor.after([*changed, *latest])
            return event("reload", "", str(self._cursor))
        labels = await self._console.labels()
        fragments = [
            self._console.renderer.fragment(
                "_message.html",
                "update",
                message,
                decode(message.kind, message.payload),
                labels,
                message.id > self._cursor.message_id,
            )
            for message in sorted(changed, key=lambda message: message.id)
        ]
        self._cursor = self._cursor.after(changed)
        # One event for all changes, so that a broken connection delivers all or none.
        return event("message", "".join(fragments), str(self._cursor))


def event(name: str, data: str, event_id: str = "") -> bytes:
    """Return a server-sent event. The browser sends the id back when it reconnects."""
    lines = [f"event: {name}", *([f"id: {event_id}"] if event_id else [])]
    lines += [f"data: {line}" for line in data.splitlines() or [""]]
    return ("\n".join(lines) + "\n\n").encode()
