"""Parts of sample messages. The fields given to each function replace the usual ones."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.confidence.measures import explained
from core.model.alert import Alert, AlertStatus, Severity
from core.model.answer import Answer, Citation, Excerpt, Sentence
from core.model.badge import (
    Badge,
    BadgeExplanation,
    BadgeReference,
    Drift,
    Estimator,
    Evaluation,
    Prediction,
    PredictionKind,
    Strength,
)
from core.model.conversation import Person, Place, Placement, Platform
from core.model.document import CuratedAnswer
from core.model.findings import (
    AskedTeam,
    Evidence,
    EvidenceKind,
    Explanation,
    Findings,
    Hypothesis,
    OwnerProposal,
    SimilarIncident,
    TeamScore,
    TimelineEntry,
)
from core.model.incident import Incident, IncidentState, Stage
from core.model.language_model import Action, Ending, Finding, Responsibility, Step, Trajectory
from core.model.messages import (
    DriftAlarm,
)

START = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
CALIBRATED = Badge(Strength.STRONG, 0.86, outcomes=120, fitted_at=datetime(2026, 3, 1, tzinfo=UTC))
UNCALIBRATED = Badge(Strength.MODERATE, outcomes=7)
STRONG = Badge(Strength.STRONG, outcomes=7)
HANDBOOK = "https://handbook.marigold-ferries.example/deployment"


# --- answers ---------------------------------------------------------------------------------------------------------


def citation(number: int = 1, title: str = "Rolling back", heading: str = "During a canary", url: str = "") -> Citation:
    return Citation(
        number=number,
        document_id="handbook/deployment/rolling-back.md",
        passage_id=f"handbook/deployment/rolling-back.md#{number}",
        title=title,
        heading=heading,
        anchor="during-a-canary",
        url=url or f"{HANDBOOK}/rolling-back#during-a-canary",
        quote="Run `slipway rollback SERVICE`; it returns the canary to 0 % within 90 seconds.",
        updated_at=datetime(2026, 2, 11, tzinfo=UTC),
    )


def answer(**fields: object) -> Answer:
    """An answer of two sentences with two sources."""
    usual = Answer(
        question_id="slack:C0ASK:1773480600.000100",
        question="How do I roll back a canary?",
        sentences=(
            Sentence("Run `slipway rollback SERVICE`; it returns the canary to 0 % within 90 seconds.", (1,)),
            Sentence("During the freeze the release captain must agree first.", (1, 2)),
        ),
        citations=(citation(), citation(2, "Change freeze", "Exceptions", f"{HANDBOOK}/change-freeze#exceptions")),
        engine="evidence",
        badge=CALIBRATED,
        prediction_id="answer-1",
    )
    return replace(usual, **fields)


def excerpt_answer(**fields: object) -> Answer:
    """An excerpt with a table, as the documents are quoted without a model, and another that may answer."""
    text = (
        "## During a canary\n\nRun `slipway rollback SERVICE`.\n\n| Stage | Share |\n|---|---|\n| canary 1 | 5 % |\n"
        "| canary 2 | 25 % |"
    )
    excerpts = (Excerpt(text, "Run `slipway rollback SERVICE`.", 1),)
    further = (Excerpt("Roll-backs are never frozen.", "Roll-backs are never frozen.", 2),)
    return answer(
        **(
            {"sentences": (), "excerpts": excerpts, "further": further, "tentative": True, "badge": UNCALIBRATED}
            | fields
        )
    )


def closest_matches(**fields: object) -> Answer:
    """Three short quotes to choose from, because none of them is certain."""
    quoted = (
        "Run `slipway rollback SERVICE`. It returns the canary to 0 % within 90 seconds.",
        "Roll-backs are never frozen.",
        "The release captain may roll back by hand, once the canary is at 100 %.",
    )
    sources = (
        citation(),
        citation(2, "Change freeze", "Exceptions", f"{HANDBOOK}/change-freeze#exceptions"),
        citation(3, "Release captains", "What they may do", f"{HANDBOOK}/captains#what-they-may-do"),
    )
    quotes = tuple(Excerpt(text, text.split(". ")[0], number) for number, text in enumerate(quoted, start=1))
    return excerpt_answer(**({"excerpts": quotes[:1], "further": quotes[1:], "citations": sources} | fields))


def abstention(**fields: object) -> Answer:
    """An honest "I don't know" with the two nearest documents."""
    return answer(**({"sentences": (), "badge": None, "prediction_id": None} | fields))


# --- incidents -------------------------------------------------------------------------------------------------------


def alert(number: int = 1, status: AlertStatus = AlertStatus.FIRING) -> Alert:
    return Alert(
        fingerprint=f"f{number:07}",
        name="PaymentGatewayLatencyHigh",
        status=status,
        severity=Severity.CRITICAL,
        starts_at=START,
        service="payment-gateway",
        summary="payment-gateway p99 latency above 2 s",
        description="p99 of POST /charges is 4.8 s on north; booking-api reports timeouts.",
        labels={"alertname": "PaymentGatewayLatencyHigh", "cluster": "north"},
    )


def owner(**fields: object) -> OwnerProposal:
    payments = TeamScore(
        "payments", "Payments", 0.8, ("It runs payment-gateway.", "It fixed 11 of 12 similar incidents.")
    )
    usual = OwnerProposal(
        owner=payments,
        candidates=(payments, TeamScore("bookings", "Bookings", 0.2)),
        on_call=("Asha Brandt", "Mateo Silvestri"),
        badge=CALIBRATED,
        prediction_id="owner-1",
    )
    return replace(usual, **fields)


def asked_teams() -> tuple[AskedTeam, ...]:
    return (
        AskedTeam("payments", "Payments", ("Asha Brandt", "Mateo Silvestri")),
        AskedTeam("bookings", "Bookings", (), "PagerDuty"),
    )


def unclear_owner(**fields: object) -> OwnerProposal:
    """Nobody could be named: two teams are asked, and a third one is near."""
    candidates = (*owner().candidates, TeamScore("fleet", "Fleet", 0.1))
    return owner(**({"owner": None, "candidates": candidates, "on_call": (), "asked": asked_teams()} | fields))


def hypothesis(number: int = 1) -> Hypothesis:
    return Hypothesis(
        cause="A configuration change lowered the maximum pool size of payment-gateway from 40 to 4.",
        service="payment-gateway",
        score=0.9 / number,
        evidence=(
            Evidence(
                EvidenceKind.CHANGE,
                "config-4711",
                "hikari.maximumPoolSize: 40 -> 4",
                START - timedelta(minutes=11),
                "https://git.marigold-ferries.example/config/4711",
            ),
            Evidence(
                EvidenceKind.LOG,
                "payment-gateway",
                "HikariPool-1 - Connection is not available, request timed out after 30000ms",
                START - timedelta(minutes=2),
            ),
        ),
        disproof="Latency stays high although the pool has free connections.",
        next_check="Set the pool size back to 40 in overlays/north and watch the wait time.",
    )


def explanation(**fields: object) -> Explanation:
    usual = Explanation(
        hypotheses=(hypothesis(), hypothesis(2)),
        ruled_out=("Deployment of web-store 11.2: it calls nothing that is slow.",),
        similar=(
            SimilarIncident(
                "INC-0042",
                "payment-gateway runs out of connections",
                "payments",
                "The pool was sized for staging.",
                "Pool size back to 40.",
                0.81,
            ),
        ),
        timeline=(
            TimelineEntry(START - timedelta(minutes=11), "config-4711 applied to payment-gateway"),
            TimelineEntry(START, "PaymentGatewayLatencyHigh fires"),
        ),
        badge=STRONG,
        prediction_id="cause-1",
    )
    return replace(usual, **fields)


TRAJECTORY = Trajectory(
    (Step("", Action("The pool looks small.", "read_logs", {"service": "payment-gateway"}), "", "obs_1a2b3c"),),
    Ending.FINALISED,
    Finding("", "The pool is too small.", "Raise it.", "payment-gateway", Responsibility.OWN_CODE, ()),
    model="qwen3-32b",
)


def model_s() -> Hypothesis:
    """A cause that a language model found."""
    return replace(
        hypothesis(),
        cause="A batch job holds all 4 connections of payment-gateway for minutes.",
        next_check="",
        solution="Stop the batch job, and run it against the replica.",
        found_by="qwen3-32b",
    )


def found_by_model() -> Explanation:
    return explanation(hypotheses=(model_s(),), engine="qwen3-32b", trajectory=TRAJECTORY)


def disagreed() -> Explanation:
    """Causes of two engines that disagree: the evidence engine's is the likelier."""
    other = replace(model_s(), badge=STRONG, prediction_id="cause-2")
    return explanation(hypotheses=(hypothesis(), other), trajectory=TRAJECTORY)


def incident(**fields: object) -> Incident:
    """An incident of one alert that has just arrived: nobody knows the owner or the cause yet."""
    usual = Incident(
        id="incident-1",
        source="alertmanager",
        group_key='{}:{alertname="PaymentGatewayLatencyHigh"}',
        title="payment-gateway p99 latency above 2 s",
        severity=Severity.CRITICAL,
        service="payment-gateway",
        labels={"alertname": "PaymentGatewayLatencyHigh"},
        alerts=(alert(),),
        alert_count=1,
        delivery_count=1,
        started_at=START,
        opened_at=START + timedelta(seconds=5),
        updated_at=START + timedelta(seconds=5),
        placement=Placement(Place(Platform.SLACK, "C0INC")),
    )
    return with_fields(usual, **fields)


def with_fields(subject: Incident, **fields: object) -> Incident:
    """The incident with these fields, which may be those of its findings and of its placement."""
    for name, kind in (("placement", Placement), ("findings", Findings)):
        own = {each.name: fields.pop(each.name) for each in dataclasses.fields(kind) if each.name in fields}
        subject = replace(subject, **{name: replace(getattr(subject, name), **own)})
    return replace(subject, **fields)


def explained_incident(**fields: object) -> Incident:
    """An incident whose owner and cause were found."""
    return incident(**({"stage": Stage.DONE, "owner": owner(), "explanation": explanation()} | fields))


def resolved_incident() -> Incident:
    return explained_incident(
        state=IncidentState.RESOLVED,
        resolved_at=START + timedelta(minutes=32),
        alerts=(alert(status=AlertStatus.RESOLVED),),
        taken_by="Asha Brandt",
    )


# --- corrections -----------------------------------------------------------------------------------------------------


def proposed(**fields: object) -> CuratedAnswer:
    usual = CuratedAnswer(
        id="slack:C0ASK:1773480700.000100",
        question="How do I roll back a canary?",
        text="Run `slipway rollback SERVICE --now`; without the flag it waits for the traffic to drain.",
        author=Person(Platform.SLACK, "U0INES", "Ines Okafor"),
        readers=frozenset({"public"}),
        proposed_at=START,
    )
    return replace(usual, **fields)


def confirmed(**fields: object) -> CuratedAnswer:
    asha = Person(Platform.SLACK, "U0ASHA", "Asha Brandt")
    return proposed(
        **({"confirmed_by": asha, "confirmed_at": START, "expires_at": START + timedelta(days=180)} | fields)
    )


# --- confidence ------------------------------------------------------------------------------------------------------


JUDGED_ANSWER = Prediction(
    "answer:evidence:slack:C0ASK:1773480600.000100",
    PredictionKind.ANSWER,
    "slack:C0ASK:1773480600.000100",
    "Run `slipway rollback SERVICE --now`.",
    Evaluation(0.82, 0.64),
    "evidence",
    "answer-evidence-3",
    START,
    calibrator_version="answer:evidence:answer-evidence-3:20260301T030000",
    references=("handbook/rolling-back", "handbook/change-freeze", "handbook/vault"),
)
UNCALIBRATED_ANSWER = replace(JUDGED_ANSWER, calibrator_version=None, references=())
REFERENCES = (BadgeReference("Rolling back", f"{HANDBOOK}/rolling-back"), BadgeReference("Change freeze"))


def badge_explanation(
    prediction: Prediction = JUDGED_ANSWER,
    badge: Badge = CALIBRATED,
    references: tuple[BadgeReference, ...] = REFERENCES,
    judged: int = 34,
    right: int = 26,
    evidence: tuple[str, ...] = (),
    changes: str = "",
) -> BadgeExplanation:
    """Return the explanation of a badge like which `judged` were judged, and `right` of them right."""
    verdicts = [(badge.probability, number < right) for number in range(judged)]
    return explained(prediction, badge, verdicts, references, evidence, changes)


def drift_alarm(**fields: object) -> DriftAlarm:
    """Badges of 90 % that came true in half of the cases."""
    usual = DriftAlarm(
        Estimator(PredictionKind.OWNER, "evidence", "owner-evidence-5"),
        Drift(error=0.4, limit=0.08, promised=0.9, kept=0.5, outcomes=60),
        shown=(0.9,) * 60,
        correct=(True, False) * 30,
    )
    return replace(usual, **fields)
