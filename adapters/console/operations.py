"""Pages for operators: incidents, sources, documents, and predictions with their outcomes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from uuid import uuid4

from aiohttp import web

from adapters.console.console import Console, PageNotFound, Retry, number_of
from adapters.console.document import joined, render_document
from adapters.console.forms import read_form, see_other
from adapters.console.messages import PersonMessage, decode
from adapters.signing_in.guard import UNKNOWN, VISITOR
from core.confidence.measures import LATEST, Quality, measure_drift, measure_quality
from core.incidents.incident_details import gaps_by_tool
from core.incidents.postmortem import Postmortem, as_markdown, draft_postmortem, worth_a_postmortem
from core.model.audit import Act, audit_entry
from core.model.badge import Calibrator, Drift, Estimator, Outcome, Prediction, PredictionKind, Verdict
from core.model.conversation import PUBLIC, Audience, Platform
from core.model.errors import MalformedInput
from core.model.findings import TimelineEntry
from core.model.incident import Incident, IncidentState
from core.ports import Transaction

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
