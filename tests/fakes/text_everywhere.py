"""Each thing that Plumbline can say with the same text wherever it may come from outside: at its largest and its worst."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.incidents.postmortem import MAX_TITLE
from core.model import messages
from core.model.answer import Answer, Citation, Contact, Contradiction, Excerpt, Sentence
from core.model.badge import BadgeReference
from core.model.conversation import Person, Platform
from core.model.findings import (
    AskedTeam,
    Evidence,
    EvidenceKind,
    Explanation,
    Gap,
    GapReason,
    Hypothesis,
    OwnerProposal,
    Relation,
    RelationKind,
    Runbook,
    SimilarIncident,
    TeamScore,
    ThreadNote,
    TimelineEntry,
    Vote,
)
from core.model.incident import FilingKind, Hop, Incident, Silenced
from tests.samples.parts import (
    CALIBRATED,
    JUDGED_ANSWER,
    START,
    alert,
    answer,
    badge_explanation,
    citation,
    confirmed,
    drift_alarm,
    explained_incident,
    explanation,
    owner,
    proposed,
)


def everywhere(text: str, count: int = 1) -> dict[str, messages.Message]:
    """Return every message with this text in every field that comes from outside, and `count` of everything that repeats."""
    several = range(1, count + 1)
    said, struck, proposal = _answer(text, several), _incident(text, several), _owner(text, several)
    somebody = Person(Platform.SLACK, text, text)
    answered = {"question": text, "text": "\n".join(text for _ in several), "author": somebody}
    return {
        "proposal": messages.ProposalMessage(proposed(**answered)),
        "proposal that was confirmed": messages.ProposalMessage(confirmed(**answered, confirmed_by=somebody)),
        "answer": messages.AnswerMessage(said),
        "answer out of a document": messages.AnswerMessage(
            replace(
                said,
                sentences=(),
                tentative=True,
                excerpts=tuple(Excerpt(text, text, number) for number in several),
                further=(Excerpt(text, text, 1),),
            )
        ),
        "abstention": messages.AnswerMessage(replace(said, sentences=())),
        "incident": messages.IncidentMessage(struck),
        "incident without an owner": messages.IncidentMessage(
            struck.with_findings(owner=replace(proposal, owner=None))
        ),
        "incident whose owner is unclear": messages.IncidentMessage(
            struck.with_findings(owner=replace(proposal, owner=None, asked=_asked(text, several)))
        ),
        "details": messages.IncidentDetails(struck),
        "incident put as questions": messages.IncidentMessage(struck, asks_owner=True, asks_cause=True),
        "incident whose on-call is unknown": messages.IncidentMessage(
            struck.with_findings(owner=replace(proposal, on_call_unknown=text))
        ),
        "incident that leads others": messages.IncidentMessage(
            replace(struck.with_findings(cut_short=text), silenced=Silenced(text, text, START)),
            parts=tuple(messages.RelatedIncident(text, text, 2, is_open=True, url=text) for _ in several),
        ),
        "incident that is a part of another": messages.IncidentMessage(
            struck.with_relation(Relation(RelationKind.PART_OF, text, text, (text,), START, text)),
            leader=messages.RelatedIncident(text, text, 2, is_open=True, url=text),
        ),
        "badge explanation": messages.BadgeMessage(
            badge_explanation(
                replace(JUDGED_ANSWER, estimator_version=text, calibrator_version=text),
                references=tuple(BadgeReference(text, text) for _ in several),
            )
        ),
        "handover request": messages.HandoverRequest(
            "incident-1", text, tuple((f"team-{number}", text) for number in several)
        ),
        "correction request": messages.CorrectionRequest("answer:evidence:slack:C0ASK:1773480600.000100"),
        "filing request": messages.FilingRequest(
            "incident-1", FilingKind.ISSUE, text[:MAX_TITLE], text, ("Board", *(f"Board {n}" for n in several))
        ),
        "join request": messages.JoinRequest("incident-1", tuple((f"incident-{number}", text) for number in several)),
        "drift alarm": drift_alarm(shown=(0.9,) * 200, correct=(True, False) * 100),
        "ping": messages.OwnerPing(text, "", CALIBRATED, on_call=tuple(text for _ in several)),
        "question to two teams": messages.OwnerQuestion(tuple((team, "") for team in _asked(text, several))),
        "information": messages.Notice(text),
        "thanks": messages.Notice(text, messages.NoticeKind.THANKS),
        "error": messages.Notice(text, messages.NoticeKind.ERROR, text),
    }


def _answer(text: str, several: range) -> Answer:
    cited = replace(
        citation(), title=text, heading=text, quote=text, anchor=text, url=text, document_id=text, passage_id=text
    )
    return answer(
        question=text,
        sentences=tuple(Sentence(text, tuple(several)) for _ in several),
        citations=tuple(replace(cited, number=number) for number in several),
        note=text,
        tentative=True,
        conflicts=tuple(Contradiction((replace(cited, stale_for=timedelta(days=500)), cited)) for _ in several),
        contacts=tuple(Contact(text, text, (text,)) for _ in several),
    )


def _owner(text: str, several: range) -> OwnerProposal:
    team = TeamScore(text, text, 0.8, tuple(text for _ in several))
    return owner(
        owner=team,
        candidates=tuple(team for _ in several),
        on_call=tuple(text for _ in several),
        votes=tuple(Vote(number, text, text, text, voter_name=text) for number in several),
        note=text,
        precedents=tuple(SimilarIncident(text, text, text, text, text, 0.5, text, same_cause=True) for _ in several),
    )


def _asked(text: str, several: range) -> tuple[AskedTeam, ...]:
    people = tuple(text for _ in several)
    return (AskedTeam("payments", text, people), AskedTeam("bookings", text, (), text))


def _explanation(text: str, several: range) -> Explanation:
    return explanation(
        hypotheses=tuple(
            Hypothesis(
                text, text, 0.5, tuple(Evidence(EvidenceKind.LOG, text, text, START, text) for _ in several), text, text
            )
            for _ in several
        ),
        ruled_out=tuple(text for _ in several),
        similar=tuple(SimilarIncident(text, text, text, text, text, 0.5, text) for _ in several),
        timeline=tuple(TimelineEntry(START, text) for _ in several),
        gaps=tuple(Gap(text, GapReason.FAILED, text) for _ in several),
        rechecked_after=ThreadNote(text, text, START),
    )


def _incident(text: str, several: range) -> Incident:
    alerts = tuple(
        replace(alert(number), name=text, service=text, summary=text, description=text, labels={text: text}, url=text)
        for number in several
    )
    return explained_incident(
        title=text,
        service=text,
        labels={text: text},
        alerts=alerts,
        alert_count=len(several),
        taken_by=text,
        owner=_owner(text, several),
        explanation=_explanation(text, several),
        hops=tuple(Hop(text, text, text, text, START) for _ in several),
        relations=(Relation(RelationKind.MAY_BE_PART_OF, text, text, (text,)),),
        runbook=Runbook(text, Citation(1, text, text, text, text, text, text, text), text, text),
        notes=tuple(ThreadNote(text, text, START) for _ in several),
    )
