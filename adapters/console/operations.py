"""The pages for operators: incidents, sources, documents, and what became of Plumbline's claims."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from aiohttp import web

from adapters.console.console import Console, PageNotFound
from adapters.console.document import joined, render_document
from adapters.console.payload import PersonMessage, decode
from core.confidence.calibrator import Calibrator
from core.confidence.prediction import Estimator, Outcome, Prediction, PredictionKind
from core.conversation import PUBLIC, Audience, Platform
from core.incident import Incident, IncidentState, TimelineEntry
from core.ports import Transaction

SHOWN_PREDICTIONS = 100  # of each kind


@dataclass(frozen=True, slots=True)
class Record:
    """How often an estimator's claims were judged, and the calibrator in use."""

    estimator: Estimator
    right: int
    wrong: int
    calibrator: Calibrator | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A prediction, its label, and the question that it answers if that was asked on this page."""

    prediction: Prediction
    outcome: Outcome | None
    question: str = ""


class Operations:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def incidents(self, request: web.Request) -> web.Response:
        """`GET /incidents`: the open ones first, then the resolved ones, each newest first."""
        recent = await self._console.recent_incidents()
        incidents = sorted(recent, key=lambda incident: incident.state is not IncidentState.OPEN)
        return self._page("incidents.html", incidents=incidents, recent=recent, now=self._console.clock.now())

    async def incident(self, request: web.Request) -> web.Response:
        """`GET /incidents/ID`"""
        async with self._console.store.transaction() as transaction:
            incident = await transaction.incidents.get(request.match_info["incident_id"])
        if incident is None:
            raise PageNotFound("There is no such incident.")
        return self._page(
            "incident.html",
            incident=incident,
            timeline=_timeline(incident),
            labels=await self._console.labels(),
            recent=await self._console.recent_incidents(),
        )

    async def sources(self, request: web.Request) -> web.Response:
        """`GET /sources`"""
        return self._page(
            "sources.html",
            sources=await self._console.sources_status(),
            passages=await self._console.index.count(),
            now=self._console.clock.now(),
        )

    async def document(self, request: web.Request) -> web.Response:
        """`GET /documents/ID?channel=…&quote=…`: as far as that channel may read it; without one, what is public."""
        channel = request.query.get("channel")
        audience = self._console.audience(channel) if channel else Audience()
        passages = await self._console.index.passages_of(request.match_info["document_id"], audience.readers)
        if not passages:
            raise PageNotFound("There is no such document, or this channel may not read it.")
        first = passages[0]
        # A large document takes tens of milliseconds, in which the chats must still be acknowledged.
        rendered = await asyncio.to_thread(
            render_document,
            joined(passages),
            title=first.title,
            quote=request.query.get("quote", ""),
            channel=channel,
        )
        return self._page("document.html", document=first, rendered=rendered, public=PUBLIC in first.readers)

    async def predictions(self, request: web.Request) -> web.Response:
        """`GET /predictions?kind=…&outcome=right|wrong|open`"""
        kind, outcome = request.query.get("kind", ""), request.query.get("outcome", "")
        async with self._console.store.transaction() as transaction:
            claims = [
                Claim(prediction, label)
                for each in PredictionKind
                for prediction, label in await transaction.predictions.recent(each, SHOWN_PREDICTIONS)
            ]
            records = [await _record(transaction, each) for each in await transaction.predictions.estimators()]
        claims.sort(key=lambda claim: claim.prediction.made_at, reverse=True)
        shown = [
            claim for claim in claims if kind in ("", claim.prediction.kind) and outcome in ("", _became(claim.outcome))
        ][:SHOWN_PREDICTIONS]
        claims = [replace(claim, question=await self._question(claim.prediction)) for claim in shown]
        titles = {incident.id: incident.title for incident in await self._console.recent_incidents()}
        return self._page("predictions.html", records=records, claims=claims, titles=titles, kind=kind, outcome=outcome)

    async def _question(self, prediction: Prediction) -> str:
        platform, _, message_id = prediction.subject.partition(":")
        if prediction.kind is not PredictionKind.ANSWER or platform != Platform.CONSOLE or not message_id.isdecimal():
            return ""
        message = await self._console.messages.get(int(message_id))
        content = decode(message.kind, message.payload) if message else None
        return content.text if isinstance(content, PersonMessage) else ""

    def _page(self, template: str, **values: object) -> web.Response:
        return web.Response(text=self._console.renderer.page(template, **values), content_type="text/html")


async def _record(transaction: Transaction, estimator: Estimator) -> Record:
    labelled = await transaction.predictions.labelled(estimator)
    right = sum(outcome.correct for _, outcome in labelled)
    return Record(estimator, right, len(labelled) - right, await transaction.predictions.calibrator(estimator))


def _became(outcome: Outcome | None) -> str:
    return "open" if outcome is None else "right" if outcome.correct else "wrong"


def _timeline(incident: Incident) -> list[TimelineEntry]:
    """What the investigation found, and what Plumbline itself saw."""
    explained = incident.explanation.timeline if incident.explanation else ()
    entries = list(explained) or [TimelineEntry(incident.started_at, f"Alert: {incident.title}")]
    entries.append(TimelineEntry(incident.opened_at, "The alert arrived here."))
    if incident.resolved_at:
        entries.append(TimelineEntry(incident.resolved_at, "The last alert was resolved."))
    return sorted(entries, key=lambda entry: entry.at)
