"""Each thing that Plumbline can say, at its smallest and as it usually is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.model.filing import FilingKind
from core.model.incident import (
    AlertStatus,
    Gap,
    GapReason,
    IncidentState,
    Merge,
    Silenced,
    Stage,
)
from core.model.messages import (
    AnswerMessage,
    BadgeMessage,
    CorrectionRequest,
    FilingRequest,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    JoinRequest,
    Message,
    Notice,
    NoticeKind,
    OwnerPing,
    OwnerQuestion,
    ProposalMessage,
    RelatedIncident,
)
from tests.samples.engine import answered, investigated, not_found, triaged, unanswered
from tests.samples.parts import (
    CALIBRATED,
    HANDBOOK,
    START,
    UNCALIBRATED,
    UNCALIBRATED_ANSWER,
    alert,
    asked_teams,
    badge_explanation,
    confirmed,
    drift_alarm,
    excerpt_answer,
    incident,
    proposed,
    suggested_duplicate,
    suggested_severity,
    unclear_owner,
)

SAMPLES: dict[str, Message] = {
    "answer": AnswerMessage(answered()),
    "answer with an uncalibrated badge": AnswerMessage(answered(badge=UNCALIBRATED)),
    "answer out of a document": AnswerMessage(excerpt_answer()),
    "abstention": AnswerMessage(unanswered()),
    "abstention without anything near": AnswerMessage(unanswered(citations=())),
    "incident just arrived": IncidentMessage(incident()),
    "incident with its owner": IncidentMessage(incident(stage=Stage.EXPLAINING, owner=triaged())),
    "incident explained": IncidentMessage(investigated()),
    "incident without an owner": IncidentMessage(investigated(owner=triaged(owner=None, asked=(), on_call=()))),
    "incident whose owner is unclear": IncidentMessage(investigated(owner=unclear_owner())),
    "incident without a culprit": IncidentMessage(investigated(explanation=not_found(), runbook=None)),
    "incident that is a storm": IncidentMessage(investigated(alert_count=10_000, taken_by="Asha Brandt")),
    "incident resolved": IncidentMessage(
        investigated(
            state=IncidentState.RESOLVED,
            resolved_at=START + timedelta(minutes=32),
            alerts=(alert(status=AlertStatus.RESOLVED),),
            taken_by="Asha Brandt",
        )
    ),
    "incident that leads others": IncidentMessage(
        investigated(flapping=True, reopened_count=4, cut_short="It was resolved before I looked closer."),
        parts=(
            RelatedIncident("incident-2", "booking-api answers slowly", 12, is_open=True, url=f"{HANDBOOK}/2"),
            RelatedIncident("incident-3", "web-store returns errors", 1, is_open=False),
        ),
    ),
    "incident that is a part of another": IncidentMessage(
        incident(absorbed=Merge("incident-2", "payment-gateway depends on pg-payments", START)),
        leader=RelatedIncident("incident-2", "pg-payments is out of connections", 3, is_open=True, url=f"{HANDBOOK}/2"),
    ),
    "incident that is silenced": IncidentMessage(
        incident(silenced=Silenced("maintenance", "new ledger", START + timedelta(hours=2)))
    ),
    "details": IncidentDetails(investigated()),
    "details without a culprit": IncidentDetails(
        investigated(explanation=replace(not_found(), gaps=(Gap("loki", GapReason.TIMED_OUT, "no answer within 8 s"),)))
    ),
    "correction request": CorrectionRequest("answer:evidence:slack:C0ASK:1773480600.000100"),
    "handover request": HandoverRequest("incident-1", "Payments", (("bookings", "Bookings"), ("fleet", "Fleet"))),
    "filing request": FilingRequest(
        "incident-1",
        FilingKind.ISSUE,
        "payment-gateway p99 latency above 2 s",
        "## Summary\n\n- Critical incident of payment-gateway. (evidence 1)\n\n## Evidence\n\n### Evidence 1\n\nThe alert",
        ("Payments board", "Platform board"),
    ),
    "join request": JoinRequest("incident-1", (("incident-2", "booking-api answers slowly"),)),
    "answer while a model still chooses": AnswerMessage(answered(badge=None, prediction_id=None)),
    "proposal": ProposalMessage(proposed()),
    "proposal that was confirmed": ProposalMessage(confirmed()),
    "incident put as questions": IncidentMessage(investigated(), asks_owner=True, asks_cause=True),
    "badge explanation": BadgeMessage(badge_explanation()),
    "badge explanation without a number": BadgeMessage(
        badge_explanation(UNCALIBRATED_ANSWER, UNCALIBRATED, references=(), judged=7, right=5)
    ),
    "ping": OwnerPing("Payments", "S0PAYMENTS", CALIBRATED),
    "incident with suggestions": IncidentMessage(
        investigated(suggested_severity=suggested_severity(), suggested_duplicate=suggested_duplicate())
    ),
    "ping of a team without a mention": OwnerPing("Payments", "", CALIBRATED),
    "question to two teams": OwnerQuestion(tuple(zip(asked_teams(), ("S0PAYMENTS", ""), strict=True))),
    "drift alarm": drift_alarm(),
    "information": Notice("Ask me about CI/CD and operations.\n• how do I roll back a canary?"),
    "thanks": Notice("Noted, thank you.", NoticeKind.THANKS),
    "error": Notice("Something went wrong on my side.", NoticeKind.ERROR, reference="4f2a91bc"),
}
