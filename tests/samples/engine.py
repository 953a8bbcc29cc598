"""The engine's results for sample inputs, so that a sample message says no more than a real one would."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from core.answering import find
from core.knowledge.retriever import RankedPassage, Retrieval
from core.knowledge.terms import terms
from core.model.alert import Severity
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.document import DocumentKind, Passage
from core.model.findings import Explanation, OwnerProposal, PastIncident, Runbook
from core.model.incident import Stage
from core.model.team import Team
from core.ports import Change, LogLine, Series
from core.rca.explain import explain
from core.rca.observations import Observations
from core.triage.managers import from_explanation, gather
from core.triage.negotiate import negotiate
from core.triage.owner_model import IncidentHistory
from tests.samples.parts import (
    HANDBOOK,
    START,
    UNCALIBRATED,
    answer,
    citation,
    explanation,
    incident,
    owner,
)

if TYPE_CHECKING:
    from core.model.answer import Answer
    from core.model.incident import Incident

BEGAN = START - timedelta(minutes=9)  # the trouble
PAGE = """# Rolling back

## During a canary

Run `slipway rollback SERVICE`; it returns the canary to 0 % within 90 seconds.

During the freeze the release captain must agree first.
"""
PAYMENTS = "# Payments\n\nWe own payment-gateway and its connection pool (HikariPool, hikari.maximumPoolSize)."
TEAMS = (
    Team("payments", "Payments", PAYMENTS, frozenset({"payment-gateway"})),
    Team("bookings", "Bookings", "# Bookings\n\nWe own booking-api and its timeouts.", frozenset({"booking-api"})),
)


def answered(**fields: object) -> Answer:
    """The answer to a question about a page."""
    question = "How do I roll back a canary?"
    said = _found(question, known=1.0, lexical=9.0)
    usual = {"question": question, "sentences": (), "excerpts": said.excerpts, "citations": said.citations}
    return answer(**(usual | fields))


def unanswered(**fields: object) -> Answer:
    """Answer that is shown where the nearest page does not answer."""
    question = "Who feeds the harbour cat at weekends?"
    said = _found(question, known=0.0, lexical=0.1)
    usual = {"question": question, "sentences": (), "citations": said.citations, "badge": None, "prediction_id": None}
    return answer(**(usual | fields))


def _found(question: str, *, known: float, lexical: float) -> Answer:
    """The engine's answer to a question for which retrieval found the page with this lexical score."""
    passage = Passage(
        id="handbook/deployment/rolling-back.md#1",
        document_id="handbook/deployment/rolling-back.md",
        number=1,
        title="Rolling back",
        heading="During a canary",
        text=PAGE,
        family="handbook",
        kind=DocumentKind.PAGE,
        url=f"{HANDBOOK}/rolling-back",
        owner="Delivery",
        updated_at=citation().updated_at,
        readers=frozenset({"public"}),
        content_hash="1",
    )
    weights = dict.fromkeys(terms(question), 1.0)
    retrieval = Retrieval(
        [RankedPassage(passage, lexical=lexical, dense=0.0, score=1.0)], weights, known=known, attainable=9.0
    )
    asked = Question(
        "sample",
        question,
        Person(Platform.CONSOLE, "operator"),
        Place(Platform.CONSOLE, "ask"),
        Audience(frozenset({PUBLIC})),
        START,
    )
    said, _ = find.answer(asked, question, retrieval)
    return said


@cache
def found() -> Explanation:
    """The explanation of an outage after a change of the connection pool."""
    found, _ = explain(_observations())
    return replace(found, badge=UNCALIBRATED, prediction_id="cause-1")


@cache
def not_found() -> Explanation:
    """The explanation where nothing was changed and nothing is unusual."""
    seen = _observations()
    ordinary = tuple(line for line in seen.logs if line.level == "INFO")
    found, _ = explain(replace(seen, logs=ordinary, series=(), changes=()))
    return found


def triaged(**fields: object) -> OwnerProposal:
    """The owner of that outage, in the light of its cause."""
    verdict = negotiate(
        gather(incident(), TEAMS, _history(), from_explanation(incident(explanation=found()), {}, TEAMS))
    )
    usual = {"owner": verdict.owner, "candidates": verdict.candidates, "votes": verdict.votes}
    return owner(**(usual | fields))


def investigated(**fields: object) -> Incident:
    """Return the outage once its owner and its cause were found, with what its runbook says."""
    runbook = Runbook(
        url=f"{HANDBOOK}/payment-gateway-latency",
        citation=replace(citation(), title="PaymentGatewayLatencyHigh", url=f"{HANDBOOK}/payment-gateway-latency"),
        next_action="Set the pool size back and let harbour-sync apply it.",
        command="harbour-config revert config-4711",
    )
    usual = {"stage": Stage.DONE, "owner": triaged(), "explanation": found(), "runbook": runbook}
    return incident(**(usual | fields))


def _observations() -> Observations:
    before = range(-90, 1)
    traffic = [
        LogLine(
            service, START + timedelta(minutes=minute, seconds=second), "INFO", f"POST /charges 200 in {41 + second} ms"
        )
        for service in ("payment-gateway", "booking-api")
        for minute in before
        for second in (0, 20, 40)
    ]
    waiting = [
        LogLine("payment-gateway", BEGAN + timedelta(seconds=5 * count), "ERROR", f"{NO_CONNECTION} rid={count}")
        for count in range(100)
    ]
    times = tuple(START + timedelta(minutes=minute) for minute in before)
    pending = tuple(0.0 if at < BEGAN else 61.0 for at in times)
    return Observations(
        incident=incident(),
        until=START,
        services=("payment-gateway", "booking-api"),
        logs=tuple(sorted((*traffic, *waiting), key=lambda line: line.at)),
        series=(Series("payment-gateway", "hikaricp_connections_pending", times, pending),),
        changes=(
            Change(
                "config-4711",
                START - timedelta(minutes=11),
                "config",
                "payment-gateway",
                "Mateo Silvestri",
                "payment-gateway: new layout of the north overlay",
                "Keys sorted. Diff: hikari.maximumPoolSize 40 -> 4.",
                url="https://git.marigold-ferries.example/config/4711",
            ),
            Change("deploy-11.2", START - timedelta(hours=3), "deploy", "web-store", "Ines Okafor", "web-store 11.2"),
        ),
        dependencies={"booking-api": ("payment-gateway",)},
        similar=explanation().similar,
    )


NO_CONNECTION = "HikariPool-1 - Connection is not available, request timed out after 30000ms"


def _history() -> IncidentHistory:
    return IncidentHistory(
        [
            PastIncident(
                id=f"INC-{number:04}",
                title="payment-gateway runs out of connections",
                description="p99 latency of payment-gateway is high, HikariPool-1 has no connection.",
                service="payment-gateway",
                severity=Severity.CRITICAL,
                started_at=START - timedelta(days=number),
                owner="payments",
                root_cause="The pool was sized for staging.",
                fix="Pool size back to 40.",
            )
            for number in range(1, 6)
        ]
    )
