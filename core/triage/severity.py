"""Estimate the severity of an incident from similar ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from core.confidence.calibrator import Label
from core.model.alert import Severity
from core.model.incident import Incident
from core.model.past_incident import Neighbour
from core.model.prediction import Evaluation
from core.triage.history import Feature, IncidentHistory, SeverityCounts, features

VERSION = "severity-evidence-1"
NEIGHBOURS = 15  # similar incidents that vote, with the square of their similarity
PRIOR_WEIGHT = 0.3  # of service and labels, in votes of an incident with the same text
NEAR = 0.5  # similarity from which a past incident counts as a repetition
MIN_SIMILARITY = 0.2  # of a past incident; one that is less similar does not vote
MIN_COUNT = 3  # past incidents with the same service or label; with fewer, it does not count
MIN_SHARE = 0.5  # below this, no severity is named
LABELS_INFORM = 0.3  # COE of service and labels alone
SHOWN_INCIDENTS = 3  # named in the evidence
CHECKED = 300  # latest past incidents that the first calibrator is fitted on


@dataclass(frozen=True, slots=True)
class SeverityAssessment:
    """The likeliest severity. The `shares` of all sum to 1; `evidence` gives reasons in words. Untrusted."""

    severity: Severity
    shares: dict[Severity, float]
    evaluation: Evaluation
    evidence: tuple[str, ...]
    references: tuple[str, ...]


def assess_severity(incident: Incident, history: IncidentHistory) -> SeverityAssessment | None:
    """Return the likeliest severity; None if too little is known, or if no severity has half of the votes."""
    text = "\n".join(part for part in (incident.description, incident.service) if part)
    neighbours = history.similar(text, NEIGHBOURS, without=frozenset({incident.id}))
    return _assessed(neighbours, list(features(incident.service, incident.labels)), history.severities)


def severity_labels(history: IncidentHistory) -> list[Label]:
    """Return labels for the latest past incidents, each judged by the incidents that began before it."""
    ordered = sorted(history.incidents, key=lambda past: (past.started_at, past.id))
    before = SeverityCounts.of(ordered[:-CHECKED])
    labels: list[Label] = []
    for past in ordered[-CHECKED:]:
        text = "\n".join(part for part in (past.title, past.description, past.service) if part)
        similar = history.similar(text, 4 * NEIGHBOURS, without=frozenset({past.id}))
        earlier = [neighbour for neighbour in similar if neighbour.incident.started_at < past.started_at]
        assessment = _assessed(earlier[:NEIGHBOURS], list(features(past.service, past.labels)), before)
        before.add(past)
        if assessment is not None:
            labels.append(Label(assessment.evaluation, assessment.severity is past.severity, assessment.severity))
    return labels


def _assessed(
    neighbours: Sequence[Neighbour],
    wanted: Sequence[Feature],
    counts: SeverityCounts,
) -> SeverityAssessment | None:
    counted = [feature for feature in wanted if counts.with_feature(feature).total() >= MIN_COUNT]
    near = [neighbour for neighbour in neighbours if neighbour.similarity >= MIN_SIMILARITY]
    if not near and not counted:
        return None
    votes: defaultdict[Severity, float] = defaultdict(float)
    for neighbour in near:
        votes[neighbour.incident.severity] += neighbour.similarity**2
    by_label = counts.shares(counted)
    total = sum(votes.values()) + PRIOR_WEIGHT
    shares = {each: (votes[each] + PRIOR_WEIGHT * by_label[each]) / total for each in Severity}
    likeliest = max(shares, key=lambda each: shares[each])
    if shares[likeliest] < MIN_SHARE:
        return None
    decides = min(1.0, near[0].similarity / NEAR) if near else 0.0
    coe = 1 - (1 - decides) * (1 - LABELS_INFORM * bool(counted))
    reasons = [_by_text(likeliest, near), _by_features(likeliest, counted, counts)]
    evidence = tuple(text for share, text in sorted(reasons, reverse=True) if share)
    references = tuple(neighbour.incident.id for neighbour in near)
    return SeverityAssessment(likeliest, shares, Evaluation(coe, shares[likeliest]), evidence, references)


def _by_text(severity: Severity, near: Sequence[Neighbour]) -> tuple[float, str]:
    """Return the share of the most similar incidents with this severity, and a sentence about it."""
    alike = [neighbour.incident.id for neighbour in near if neighbour.incident.severity is severity]
    if not alike:
        return 0.0, ""
    named = ", ".join(alike[:SHOWN_INCIDENTS])
    sentence = f"{len(alike)} of the {len(near)} most similar incidents {_were(len(alike))} {severity}: {named}"
    return len(alike) / len(near), sentence


def _by_features(severity: Severity, frequent: Sequence[Feature], counts: SeverityCounts) -> tuple[float, str]:
    """Return the largest share of this severity for a service or label, and a sentence about it."""
    counted = [(feature, counts.with_feature(feature)) for feature in frequent]
    best = max(counted, key=lambda each: each[1][severity] / each[1].total(), default=None)
    if best is None:
        return 0.0, ""
    (name, value), severities = best
    count = severities[severity]
    return (
        count / severities.total(),
        f"{count} of {severities.total()} incidents with {name} {value} {_were(count)} {severity}",
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
