"""Rank the possible causes of an incident: its own workspace's changes, and causes without a change.

A change is eligible by time and ranked by content: whether the services that it reaches moved after it and not before,
whether the trouble begins there, and whether the new errors and metrics mention what it touched. A cause without a
change is a hypothesis with its own evidence. All compete: the probability of one rises as those of the others fall
(conditional logit, McFadden 1974), with the fitted weights of `knowledge.toml`. COE and RCE of a named cause come from
the evidence of the investigation (LM-PACE, sections 3.2 and 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp, inf, log, log1p

from core.confidence.calibrator import PROBABLE, badge_for
from core.model.badge import Evaluation, Strength
from core.model.findings import EvidenceKind, Hypothesis, Origin
from core.rca.changes import Revision, is_inert
from core.rca.cluster.faults import ObjectFault
from core.rca.failures import FITTED, Kind
from core.rca.incident_signals import CauseCandidate, IncidentSignals, View, sign_terms
from core.rca.no_change import not_ours
from core.rca.observations import CHANGES, Observations, Rebuttal
from core.rca.signals import CLEAR, Signal, combined

JUST_BEFORE = timedelta(minutes=1)  # by which an effect may seem to precede a change: clocks and scrapes differ
CREEP_LEEWAY = timedelta(minutes=12)  # uncertainty of the start of a slow rise
PASSED_ON = 0.3  # weight of a sign that names another service as its origin
WEIGHTS: Mapping[str, float] = FITTED["causes"]  # of features in [0, 1], or of the logarithm of a small number
CONNECTING = ("own", "callers", "creep", "words", "kinds")
"""Features of which a change needs one if the incident has no service; otherwise only its time would count."""
BROUGHT = 0.5  # log-odds that a change has over the fault that it can have brought about
VAGUE = (Origin.SERVICE, Origin.EXTERNAL, Origin.PLATFORM)
"""Origins of causes that a fault of the same service tells better; the two last, if it is in the same log."""
TOLD = 0.45  # weight of a fault that only a log tells, and no object, which may be an effect of another one
MIN_PLACE = 0.3  # place of a workload, below which its faults have nothing to do with the incident
UNKNOWN = 1.0  # log-odds of an unobserved cause


def cause_candidates(incident_signals: IncidentSignals, observations: Observations) -> list[CauseCandidate]:
    """Return every possible cause, best first; those with score 0 are ruled out."""
    view = View(incident_signals, observations)
    changed = [_changed(view, revision) for revision in view.eligible]
    eligible = [
        each
        for each, revision in zip(changed, view.eligible, strict=True)
        if incident_signals.reaches(revision.live)
        and (incident_signals.incident.service or any(map(each.features.get, CONNECTING)))
    ]
    weighed = _with_faults(
        [
            replace(each, odds=sum(WEIGHTS[name] * value for name, value in each.features.items()))
            for each in (*eligible, *(_placed(each, view) for each in not_ours(view)))
        ],
        view,
    )
    most = max([UNKNOWN, *(each.odds for each in weighed)])
    # The faults of one object are parts of one cause, and no rivals.
    rivals = {
        each.service if each.fault and not each.change else id(each): each.odds
        for each in sorted(weighed, key=lambda each: each.odds)
    }
    total = exp(UNKNOWN - most) + sum(exp(odds - most) for odds in rivals.values())
    ranked = [replace(each, score=exp(each.odds - most) / total) for each in weighed]
    return [
        *sorted(ranked, key=lambda candidate: (-candidate.score, candidate.change is None, candidate.service)),
        *(each for each in changed if each not in eligible),
        *(_ruled_out(view, revision) for revision in view.revisions if revision not in view.eligible),
    ]


def _placed(candidate: CauseCandidate, view: View) -> CauseCandidate:
    """Return a cause without a change, which counts less in an object that an incident without a service does not name."""
    if view.incident_signals.incident.service:
        return candidate
    weight = view.incident_signals.place_weight(candidate.service)
    return replace(candidate, features={**candidate.features, "evidence": candidate.features["evidence"] * weight**2})


def _with_faults(candidates: Sequence[CauseCandidate], view: View) -> list[CauseCandidate]:
    """Return the candidates with the faults of objects.

    A fault is why its workload is in trouble, so that it takes the place of a cause inside that service. A change in the
    service before it, which can make such a failure, is why the fault is there, and has its evidence too.
    """
    weighed = list(candidates)
    suffering = {each.name for each in view.incident_signals.faults if each.evidence is not EvidenceKind.LOG}
    for fault in view.incident_signals.faults:
        place = 1.0 if fault.kind != "app" else view.incident_signals.place_weight(fault.name)
        if fault.kind == "app" and not view.incident_signals.is_linked(fault.name):
            unlinked = Rebuttal(
                f"{fault.trouble}, but nothing that was read links it to the incident", is_checked=False
            )
            weighed.append(CauseCandidate(fault.name, Origin.OTHER, None, (), unlinked, {}, fault=fault, odds=-inf))
        if place < MIN_PLACE:
            continue
        signs = [each for each in view.trouble(fault.name) if each.subject == fault.fault.id]
        rest = [each for each in view.trouble(fault.name) if each.subject != fault.fault.id and not each.kinds]
        is_told = fault.evidence is EvidenceKind.LOG and fault.name not in suffering
        weight = place * (TOLD * place * view.origin.get(fault.name, 0.0) if is_told else 1.0)
        features = {"none": 1.0, "evidence": fault.strength * weight}
        replaced = [each for each in weighed if _is_told_by(each, fault)]
        own_odds = sum(WEIGHTS[name] * value for name, value in features.items())
        odds = max([own_odds, *(each.odds for each in replaced)])
        origin = Origin.OTHER if fault.kind == "app" else Origin.PLATFORM
        weighed = [each for each in weighed if each not in replaced]
        own = CauseCandidate(
            fault.name,
            origin,
            None,
            (*signs, *rest),
            Rebuttal("others explain more"),
            features,
            fault=fault,
            odds=odds,
        )
        brought = _brought(weighed, fault, view)
        if brought is None:
            weighed.append(own)
        else:
            joined = replace(brought, fault=brought.fault or fault, odds=max(brought.odds, odds + BROUGHT))
            weighed = [joined if each is brought else each for each in weighed]
    return weighed


def _is_told_by(candidate: CauseCandidate, fault: ObjectFault) -> bool:
    """Return whether a fault tells better what a candidate without a change says of the same service."""
    is_accused = all(each.service != fault.name for each in candidate.signals)  # by others, which do not know why
    vague = VAGUE if fault.evidence is EvidenceKind.LOG or is_accused else VAGUE[:1]
    return candidate.fault is None and candidate.origin in vague and candidate.service == fault.name


def _brought(candidates: Sequence[CauseCandidate], fault: ObjectFault, view: View) -> CauseCandidate | None:
    """Return the likeliest change that can have brought a fault about; None if no change can."""
    return max(
        (
            each
            for each in candidates
            if each.revision is not None
            and fault.name in each.revision.live
            and fault.fault.kind in view.brought[view.eligible.index(each.revision)]
            and not each.features["inert"]
            and (fault.at is None or each.revision.at <= fault.at + JUST_BEFORE)
        ),
        key=lambda each: each.odds,
        default=None,
    )


def first_failing(incident_signals: IncidentSignals, observations: Observations) -> str:
    """Return the service in which trouble begins most clearly and first; empty if there is no trouble."""
    origin = View(incident_signals, observations).origin
    return max(origin, key=lambda service: origin[service], default="")


def _changed(view: View, revision: Revision) -> CauseCandidate:
    incident_signals, place = view.incident_signals, view.eligible.index(revision)
    services = tuple(revision.live)
    above = view.above(services)
    own, followed = _effect(view, revision.live)
    upper, followed_above = _effect(view, dict.fromkeys(above, revision.at), blaming=frozenset(services))
    shared = _shared(view, place)
    kinds = _kinds(view, place)
    service = max(services, key=lambda name: view.origin.get(name, 0.0), default=revision.change.service)
    gap = incident_signals.first_sign - revision.live.get(service, revision.at)
    features = {
        "own": own,
        "callers": max(0.0, upper - own),
        "creep": _creeps_since(view, revision),
        "words": log1p(sum(shared.values())),
        "kinds": kinds,
        "gap": log1p(max(timedelta(), gap) / timedelta(minutes=10)),
        "inert": float(is_inert(revision.change)),
        "misfit": float(bool(revision.change.diff) and not view.fits(place)),
    }
    signs = next(
        (signs for effect, signs in ((own, followed), (upper, followed_above)) if effect > CLEAR),
        followed or followed_above or tuple(signal for signal, named, _ in view.signs if not named.isdisjoint(shared)),
    )
    return CauseCandidate(
        service,
        Origin.CHANGE,
        revision,
        tuple(  # first those that share words with the change, then clear ones, then log messages
            sorted(
                signs,
                key=lambda signal: (
                    not shared.keys() & sign_terms(signal),
                    signal.strength < CLEAR,
                    signal.evidence.kind is not EvidenceKind.LOG,
                ),
            )
        ),
        _objection(view, revision, features),
        features,
        tuple(sorted(shared, key=lambda term: (-shared[term], term))),
    )


def _effect(
    view: View, live: Mapping[str, datetime], blaming: frozenset[str] = frozenset()
) -> tuple[float, tuple[Signal, ...]]:
    """Return the strength of the movement of services after a time, in [0, 1], and its signs, the strongest first.

    Signs that name another service as their origin count little; with `blaming`, only those that name one of these
    count.
    """
    weighed: list[tuple[float, Signal]] = []
    for service, at in live.items():
        for signal in view.trouble(service):
            blamed = view.blamed[id(signal)]
            if signal.since < at - JUST_BEFORE or (blaming and not blamed & blaming):
                continue
            passed_on = not blaming and view.is_passed_on(signal)
            weighed.append((signal.strength * (PASSED_ON if passed_on else 1.0), signal))
    weighed.sort(key=lambda each: (-each[0], each[1].since))
    return combined(weight for weight, _ in weighed[:3]), tuple(signal for _, signal in weighed)


def _creeps_since(view: View, revision: Revision) -> float:
    """Return the strength, in [0, 1], of a slow rise of its services' metrics that began when a change came into force."""
    return max(
        (
            signal.strength * exp(-abs(signal.since - at) / CREEP_LEEWAY)
            for service, at in revision.live.items()
            for signal in view.trouble(service)
            if signal.creeps
        ),
        default=0.0,
    )


def _shared(view: View, place: int) -> dict[str, float]:
    """Return the terms that a change and the signs have in common, with their weights."""
    words = view.words[place]
    weights: dict[str, float] = {}
    for signal, named, _ in view.signs:
        for term in sorted(words & named):  # in one order, so that replicas store equal explanations
            weights[term] = max(weights.get(term, 0.0), view.rarity[term] * signal.strength)
    return weights


def _kinds(view: View, place: int) -> float:
    """Return the share of the observed kinds of failure that the change can cause, in [0, 1], rare ones counting more."""
    weights: dict[Kind, float] = {}
    for signal, _, kinds in view.signs:
        for kind in sorted(kinds):
            weights[kind] = max(weights.get(kind, 0.0), signal.strength)
    brought = view.brought[place]
    total = sum(weights.values())
    return (
        sum(weight * view.kind_rarity[kind] for kind, weight in weights.items() if kind in brought) / total
        if total
        else 0.0
    )


def _objection(view: View, revision: Revision, features: Mapping[str, float]) -> Rebuttal:
    """Return the argument against a change. Where it is that nothing happened, it names the data that was read."""
    gap = in_minutes(view.incident_signals.first_sign - revision.at)
    service = next(iter(revision.live), revision.change.service)
    if revision.at > view.incident_signals.first_sign:
        return Rebuttal(_late(view, revision))
    if features["inert"]:
        return Rebuttal("it changes only comments, logging, tests, documents or formatting")
    callee, explained = view.incident_signals.explained_by(service)
    if explained > CLEAR and view.incident_signals.trouble(service):
        return Rebuttal(f"{callee} explains the trouble in {service}, and {gap} passed before the first sign")
    checked = view.observations.coverage(tuple(revision.live) or view.observations.services, revision.at)
    if not max(features["own"], features["callers"]):
        return checked.without("nothing unusual")
    if not view.incident_signals.reaches(revision.live):
        return Rebuttal(
            f"nothing that was read links {service} to {view.incident_signals.incident.service}", is_checked=False
        )
    return Rebuttal(
        f"{gap} passed between it and the first sign, and little that was read connects them{checked.caveat}",
        checked.is_whole,
    )


def _late(view: View, revision: Revision) -> str:
    first = "the first sign" if view.trouble(view.incident_signals.incident.service) else "the start of the alert"
    return f"it came {in_minutes(revision.at - view.incident_signals.first_sign)} after {first}"


def _ruled_out(view: View, revision: Revision) -> CauseCandidate:
    unread = ", ".join(view.observations.unread(CHANGES)) if revision.waits else ""
    why = "no deployment of it before the first sign was read" if revision.waits else _late(view, revision)
    return CauseCandidate(
        next(iter(revision.live), revision.change.service),
        Origin.CHANGE,
        revision,
        (),
        Rebuttal(f"{why}; not checked: {unread}" if unread else why, is_checked=not unread),
        {},
    )


def in_minutes(gap: timedelta) -> str:
    minutes = round(gap.total_seconds() / 60)
    return "less than a minute" if not minutes else f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


VERSION = "cause-evidence-3"
FINDING_VERSION = "cause-finding-1"  # if a language model found it with tools (core/rca/agent)
INTERCEPT = 0.8  # of the logistic curve fitted by `tests/evaluation/fit_causes.py`
UNEXPLAINED = 0.5  # maximum RCE if the cause inside a service is unknown
TIED = 0.6  # share of the first cause's score at which the second is about as likely
NOT_STRONG = 0.89  # maximum RCE if a second cause is about as likely, or nothing shows that it reaches the incident
NEAREST = 0.01  # distance of a clipped score from 0 and 1
FAILED_TOOL_WEIGHT = 0.5  # factor on the COE if a tool could not be read


def evaluate_cause(
    hypotheses: Sequence[Hypothesis], incident_signals: IncidentSignals, observations: Observations
) -> Evaluation:
    """Return the evaluation of the first of `hypotheses`, which are named, ranked, and at least one.

    COE is the share of four kinds of data that were available: logs or other tool outputs, metrics, changes, and
    symptoms. RCE is how often a first cause with this score was right on simulated incidents. A cause in another service
    is not strong if only the graph or the alert says that it reaches the incident's, in which nothing that was read shows
    trouble.
    """
    is_tied = len(hypotheses) > 1 and hypotheses[1].score >= TIED * hypotheses[0].score
    is_inferred = hypotheses[0].service != observations.incident.service and not incident_signals.suffers
    most = UNEXPLAINED if hypotheses[0].origin is Origin.SERVICE else NOT_STRONG if is_tied or is_inferred else 1.0
    return Evaluation(
        coe=_coverage(incident_signals, observations),
        rce=min(most, 1 / (1 + exp(-(INTERCEPT + log_odds(hypotheses[0].score))))),
    )


def _coverage(incident_signals: IncidentSignals, observations: Observations) -> float:
    """Return the share of the kinds of data that were available, less if a tool could not be read."""
    service = observations.incident.service
    available = (
        any(line.service == service for line in observations.logs) or bool(observations.outputs or observations.builds),
        any(series.service == service for series in observations.series),
        bool(observations.changes),
        bool(incident_signals.by_service or observations.outputs or observations.builds),
    )
    weight = FAILED_TOOL_WEIGHT if any(gap.reason.is_failure for gap in observations.gaps) else 1.0
    return sum(available) / len(available) * weight


def is_unsure(evaluation: Evaluation | None) -> bool:
    """Return whether a model is asked: there is no cause, or the evidence for the first one is not strong."""
    return evaluation is None or badge_for(evaluation, None, scale=PROBABLE).strength is not Strength.STRONG


def evaluate_finding(
    hypothesis: Hypothesis, incident_signals: IncidentSignals, observations: Observations
) -> Evaluation:
    """Return the evaluation of a cause that a language model found: RCE is its score.

    It is never strong, because no plan has checked it; only people's verdicts on such findings make it so.
    """
    return Evaluation(coe=_coverage(incident_signals, observations), rce=min(hypothesis.score, NOT_STRONG))


def evaluate_ranking(
    ranked: Sequence[Hypothesis], before: Evaluation, incident_signals: IncidentSignals, observations: Observations
) -> Evaluation:
    """Return the evaluation of the first ranked cause, with at most the RCE of `before`, the evidence engine's.

    A model's choice makes no badge stronger; only people's verdicts on its choices do.
    """
    measured = evaluate_cause(ranked, incident_signals, observations)
    return replace(measured, rce=min(measured.rce, before.rce))


def log_odds(score: float) -> float:
    """Return the log-odds of the first cause's score, as far as scores are told apart."""
    inside = min(max(score, NEAREST), 1 - NEAREST)
    return log(inside / (1 - inside))
