"""Each thing that Plumbline can say, at its smallest and as it usually is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from core.incidents.handover import MissingPage, PostLine, Shift, Week, format_digest, format_handover
from core.model import messages
from core.model.alert import AlertStatus
from core.model.badge import PredictionKind
from core.model.findings import Gap, GapReason, Relation, RelationKind
from core.model.incident import FilingKind, IncidentState, Silenced, Stage
from core.ports import Change
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
    closest_matches,
    confirmed,
    disagreed,
    drift_alarm,
    excerpt_answer,
    found_by_model,
    incident,
    proposed,
    unclear_owner,
)


def _post(lines: Sequence[PostLine]) -> messages.Notice:
    links = tuple(f"{HANDBOOK}/{line.incident_id}" if line.incident_id or line.has_more else "" for line in lines)
    return messages.Notice("\n".join(line.text for line in lines), links=links)


SAMPLES: dict[str, messages.Message] = {
    "answer": messages.AnswerMessage(answered()),
    "answer with an uncalibrated badge": messages.AnswerMessage(answered(badge=UNCALIBRATED)),
    "answer out of a document": messages.AnswerMessage(excerpt_answer(tentative=False)),
    "closest matches": messages.AnswerMessage(closest_matches()),
    "abstention": messages.AnswerMessage(unanswered()),
    "abstention without anything near": messages.AnswerMessage(unanswered(citations=())),
    "incident just arrived": messages.IncidentMessage(incident()),
    "incident with its owner": messages.IncidentMessage(incident(stage=Stage.EXPLAINING, owner=triaged())),
    "incident explained": messages.IncidentMessage(investigated()),
    "incident without an owner": messages.IncidentMessage(
        investigated(owner=triaged(owner=None, asked=(), on_call=()))
    ),
    "incident whose owner is unclear": messages.IncidentMessage(investigated(owner=unclear_owner())),
    "incident without a culprit": messages.IncidentMessage(investigated(explanation=not_found(), runbook=None)),
    "incident that is a storm": messages.IncidentMessage(investigated(alert_count=10_000, taken_by="Asha Brandt")),
    "incident resolved": messages.IncidentMessage(
        investigated(
            state=IncidentState.RESOLVED,
            resolved_at=START + timedelta(minutes=32),
            alerts=(alert(status=AlertStatus.RESOLVED),),
            taken_by="Asha Brandt",
        )
    ),
    "incident that leads others": messages.IncidentMessage(
        investigated(flapping=True, reopened_count=4, cut_short="It was resolved before I looked closer."),
        parts=(
            messages.RelatedIncident("incident-2", "booking-api answers slowly", 12, is_open=True, url=f"{HANDBOOK}/2"),
            messages.RelatedIncident("incident-3", "web-store returns errors", 1, is_open=False),
        ),
    ),
    "incident that is a part of another": messages.IncidentMessage(
        incident(
            relations=(
                Relation(
                    RelationKind.PART_OF, "incident-2", reasons=("payment-gateway depends on pg-payments",), at=START
                ),
            )
        ),
        leader=messages.RelatedIncident(
            "incident-2", "pg-payments is out of connections", 3, is_open=True, url=f"{HANDBOOK}/2"
        ),
    ),
    "incident that is silenced": messages.IncidentMessage(
        incident(silenced=Silenced("maintenance", "new ledger", START + timedelta(hours=2)))
    ),
    "incident that a language model still works on": messages.IncidentMessage(
        investigated(stage=Stage.EXPLAINING, progress="asking the language model", stop_id="incident-1:3")
    ),
    "incident whose cause a language model found": messages.IncidentMessage(investigated(explanation=found_by_model())),
    "incident about whose cause the engines disagree": messages.IncidentMessage(investigated(explanation=disagreed())),
    "details of a disagreement": messages.IncidentDetails(investigated(explanation=disagreed())),
    "details": messages.IncidentDetails(investigated()),
    "details without a culprit": messages.IncidentDetails(
        investigated(explanation=replace(not_found(), gaps=(Gap("loki", GapReason.TIMED_OUT, "no answer within 8 s"),)))
    ),
    "correction request": messages.CorrectionRequest("answer:evidence:slack:C0ASK:1773480600.000100"),
    "handover request": messages.HandoverRequest(
        "incident-1", "Payments", (("bookings", "Bookings"), ("fleet", "Fleet"))
    ),
    "filing request": messages.FilingRequest(
        "incident-1",
        FilingKind.ISSUE,
        "payment-gateway p99 latency above 2 s",
        "## Summary\n\n- Critical incident of payment-gateway. (evidence 1)\n\n## Evidence\n\n### Evidence 1\n\nThe alert",
        ("Payments board", "Platform board"),
    ),
    "stakeholder update": messages.FilingRequest(
        "incident-1",
        FilingKind.UPDATE,
        "Payment gateway: we are working on a problem",
        "What is affected: payment gateway does not work, or not reliably, since 14 March, 09:30 UTC.",
        ("status", "incidents"),
    ),
    "join request": messages.JoinRequest("incident-1", (("incident-2", "booking-api answers slowly"),)),
    "answer while a model still chooses": messages.AnswerMessage(
        answered(badge=None, prediction_id=None, stop_id="slack:C0ASK:1773480600.000100")
    ),
    "handover": _post(
        format_handover(
            Shift(
                START - timedelta(hours=12),
                START + timedelta(minutes=20),
                (
                    investigated(),
                    replace(investigated(id="incident-2", title="Quay screens flicker"), flapping=True),
                    investigated(id="incident-3", title="Disk of the archive is filling"),
                ),
                {"incident-3": "it seemed to need nobody: nobody acted on the last 12"},
                (Change("d-7", START, "deployment", "booking-api", "ada", "booking-api 4.2"),),
                ("ledger, until 2026-03-14 11:00 UTC",),
                (("Payments", "Asha"), ("Fleet", "Kofi, Lena")),
            )
        )
    ),
    "digest": _post(
        format_digest(
            Week(
                timedelta(days=7),
                (
                    investigated(),
                    investigated(id="incident-2", state=IncidentState.RESOLVED),
                    investigated(id="incident-4", explanation=not_found()),
                ),
                (timedelta(seconds=40), timedelta(minutes=2)),
                (timedelta(minutes=3),),
                {PredictionKind.OWNER: (True, True, False), PredictionKind.CAUSE: (True,)},
                (
                    MissingPage(("How do I rotate the ledger key?", "Where is the ledger key rotated?"), "Payments"),
                    MissingPage(("Who refills the printer on quay 4?",)),
                ),
            )
        )
    ),
    "work that can be stopped": messages.Notice(
        "Reading what I found …", messages.NoticeKind.PROGRESS, stop_id="slack:C0ASK:1773480600.000100"
    ),
    "proposal": messages.ProposalMessage(proposed()),
    "proposal that was confirmed": messages.ProposalMessage(confirmed()),
    "incident put as questions": messages.IncidentMessage(investigated(), asks_owner=True, asks_cause=True),
    "badge explanation": messages.BadgeMessage(badge_explanation()),
    "badge explanation without a number": messages.BadgeMessage(
        badge_explanation(UNCALIBRATED_ANSWER, UNCALIBRATED, references=(), judged=7, right=5)
    ),
    "ping": messages.OwnerPing("Payments", "S0PAYMENTS", CALIBRATED),
    "ping of a team without a mention": messages.OwnerPing("Payments", "", CALIBRATED),
    "question to two teams": messages.OwnerQuestion(tuple(zip(asked_teams(), ("S0PAYMENTS", ""), strict=True))),
    "drift alarm": drift_alarm(),
    "information": messages.Notice("Ask me about CI/CD and operations.\n• how do I roll back a canary?"),
    "question about a bot": messages.Notice(
        "Is this an alert? I can’t tell. Your choice holds for all messages of cron like this one; “adopt reset” undoes it.",
        choices=((messages.ButtonAction.IS_ALERT, "4f2a"), (messages.ButtonAction.IS_NO_ALERT, "4f2a")),
    ),
    "offer in a channel": messages.Notice(
        "I read the last 100 messages.\n• Alerts: Alertmanager 28, Zabbix 6\n• Left alone: 41 messages of GitHub, CircleCI\n"
        "May I answer alerts in their own threads, with owner, cause and next step? One answer is in the thread, as an "
        "example. I keep nothing of other messages, and after this one I write only in threads.",
        choices=tuple((each, "channel") for each in messages.ADOPTING[:2]),
    ),
    "thanks": messages.Notice("Noted, thank you.", messages.NoticeKind.THANKS),
    "error": messages.Notice("Something went wrong on my side.", messages.NoticeKind.ERROR, reference="4f2a91bc"),
}
