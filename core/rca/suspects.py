"""Possible causes, weighed against each other: what was changed, and what is no change of ours.

A change is eligible by time and chosen by content: whether the services that it reaches moved after it and not before,
whether the trouble arises there, and whether what it touched is what the new errors and metrics speak of. That
nobody's change did it is a hypothesis with evidence of its own. All compete: the chances of one rise as those of the
others fall (conditional logit, McFadden 1974), by weights that `tests/evaluation/fit_causes.py` fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp, log1p

from core.model.incident import EvidenceKind, Origin
from core.rca.failures import Kind
from core.rca.no_change import not_ours
from core.rca.observations import Observations
from core.rca.revisions import Revision, is_setting
from core.rca.scene import SLACK, Scene
from core.rca.signals import CLEAR, Signal
from core.rca.view import Suspect, View, combined_weight, sign_terms

JUST_BEFORE = timedelta(minutes=1)  # of a change, from which a sign may be its effect: clocks and scrapes differ
CREEP_SLACK = timedelta(minutes=12)  # by which the beginning of a slow rise can be made out
PASSED_ON = 0.3  # how much a sign counts for a service that says that it comes from another one
WEIGHTS: Mapping[str, float] = {
    "own": 2.9,
    "callers": 2.3,
    "callees": 3.5,
    "creep": 2.5,
    "older": -2.0,
    "origin": 1.4,
    "words": 2.9,
    "kinds": 3.0,
    "gap": -0.7,
    "setting": 0.8,
    "none": 1.3,
    "evidence": 8.0,
}
"""Log-odds for each feature, all of which are in [0, 1] or the logarithm of a small number."""
CONNECTING = ("own", "callers", "callees", "creep", "words", "kinds")
"""Features of which an incident without a service needs one: without any, only the time speaks for a change."""
UNKNOWN = 1.0  # log-odds of a cause of which nothing was seen: what does not reach it, is not named


def suspects(scene: Scene, observations: Observations) -> list[Suspect]:
    """Return every possible cause, best first; those with score 0 are ruled out."""
    view = View(scene, observations)
    changed = [_changed(view, revision) for revision in view.eligible]
    eligible = [each for each in changed if scene.incident.service or any(map(each.features.get, CONNECTING))]
    weighed = [
        replace(each, odds=sum(WEIGHTS[name] * value for name, value in each.features.items()))
        for each in (*eligible, *not_ours(view))
    ]
    most = max([UNKNOWN, *(each.odds for each in weighed)])
    total = exp(UNKNOWN - most) + sum(exp(each.odds - most) for each in weighed)
    ranked = [replace(each, score=exp(each.odds - most) / total) for each in weighed]
    ruled_out = [_ruled_out(view, revision) for revision in view.revisions if revision not in view.eligible]
    return [
        *sorted(ranked, key=lambda suspect: (-suspect.score, suspect.change is None, suspect.service)),
        *(each for each in changed if each not in eligible),
        *ruled_out,
    ]


def first_failing(scene: Scene, observations: Observations) -> str:
    """Return the service in which trouble arises most clearly and first; empty where none shows."""
    origin = View(scene, observations).origin
    return max(origin, key=lambda service: origin[service], default="")


def _changed(view: View, revision: Revision) -> Suspect:
    scene, place = view.scene, view.eligible.index(revision)
    services = tuple(revision.live)
    above, below = view.around(services)
    own, followed = _effect(view, revision.live)
    upper, followed_above = _effect(view, dict.fromkeys(above, revision.at), blaming=frozenset(services))
    lower, followed_below = _loaded(view, revision, below)
    older = max((_older(view, service, at) for service, at in revision.live.items()), default=0.0)
    shared = _shared(view, place)
    kinds = _kinds(view, place)
    gap = scene.first_sign - revision.at
    origin = max((view.origin.get(service, 0.0) for service in services), default=0.0)
    features = {
        "own": own,
        "callers": max(0.0, upper - own),
        "callees": lower,
        "creep": _creeps_since(view, revision),
        "older": max(0.0, older - CLEAR) / (1 - CLEAR),
        "origin": origin,
        "words": log1p(sum(shared.values())),
        "kinds": kinds,
        "gap": log1p(max(timedelta(), gap) / timedelta(minutes=10)),
        "setting": float(not revision.shipped_by and is_setting(revision.change)),
    }
    signs = next(
        (
            signs
            for effect, signs in ((own, followed), (lower, followed_below), (upper, followed_above))
            if effect > CLEAR
        ),
        followed
        or followed_above
        or followed_below
        or tuple(signal for signal, named, _ in view.signs if not named.isdisjoint(shared)),
    )
    service = max(services, key=lambda name: view.origin.get(name, 0.0), default=revision.change.service)
    return Suspect(
        service,
        Origin.CHANGE,
        revision,
        _most_telling(signs, frozenset(shared)),
        _objection(view, revision, features),
        features,
        tuple(sorted(shared, key=lambda term: -shared[term])),
    )


def _effect(
    view: View, live: Mapping[str, datetime], blaming: frozenset[str] = frozenset()
) -> tuple[float, tuple[Signal, ...]]:
    """Return how clearly the services moved after a time, in [0, 1], and the signs of it, the most telling first.

    What is said to come from another service counts little, or with `blaming`, only what is said to come from one of those.
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
    return combined_weight([weight for weight, _ in weighed[:3]]), tuple(signal for _, signal in weighed)


def _most_telling(signals: Iterable[Signal], shared: frozenset[str]) -> tuple[Signal, ...]:
    """Return the signals sorted: first those that speak of what was changed, then those that a log tells in words."""
    return tuple(
        sorted(
            signals,
            key=lambda signal: (
                not shared & sign_terms(signal),
                signal.strength < CLEAR,
                signal.evidence.kind is not EvidenceKind.LOG,
            ),
        )
    )


def _loaded(view: View, revision: Revision, below: Iterable[str]) -> tuple[float, tuple[Signal, ...]]:
    """Return how clearly callees suffer after a change because their caller asks more of them, in [0, 1]."""
    best: tuple[float, tuple[Signal, ...]] = (0.0, ())
    for callee in below:
        effect, signals = _effect(view, {callee: revision.at})
        if effect <= best[0]:
            continue
        busier = view.busier(callee) * (1 - max((view.busier(caller) for caller in revision.live), default=0.0))
        weight = effect * busier
        if weight > best[0]:
            best = (weight, signals)
    return best


def _older(view: View, service: str, at: datetime) -> float:
    """Return how sure it is that a service was in trouble of its own before a change, in [0, 1]."""
    earlier = (
        signal.strength
        for signal in view.trouble(service)
        if signal.since < at - (CREEP_SLACK if signal.creeps else SLACK) and not view.is_passed_on(signal)
    )
    return max(earlier, default=0.0)


def _creeps_since(view: View, revision: Revision) -> float:
    """Return how clearly a metric of its services began to rise slowly when a change came into force, in [0, 1]."""
    return max(
        (
            signal.strength * exp(-abs(signal.since - at) / CREEP_SLACK)
            for service, at in revision.live.items()
            for signal in view.trouble(service)
            if signal.creeps
        ),
        default=0.0,
    )


def _shared(view: View, place: int) -> dict[str, float]:
    """The terms that a change and the signs have in common, with how much each says."""
    said = view.words[place]
    found: dict[str, float] = {}
    for signal, named, _ in view.signs:
        for term in said & named:
            found[term] = max(found.get(term, 0.0), view.rarity[term] * signal.strength)
    return found


def _kinds(view: View, place: int) -> float:
    """Return how far the change can have brought about failures of the kinds that are seen, in [0, 1], rare ones counting more."""
    weights: dict[Kind, float] = {}
    for signal, _, kinds in view.signs:
        for kind in kinds:
            weights[kind] = max(weights.get(kind, 0.0), signal.strength)
    brought = view.brought[place]
    total = sum(weights.values())
    return (
        sum(weight * view.kind_rarity[kind] for kind, weight in weights.items() if kind in brought) / total
        if total
        else 0.0
    )


def _objection(view: View, revision: Revision, features: Mapping[str, float]) -> str:
    gap = _minutes(view.scene.first_sign - revision.at)
    service = next(iter(revision.live), revision.change.service)
    if revision.at > view.scene.first_sign:
        return f"it came {_minutes(revision.at - view.scene.first_sign)} after the first sign"
    callee, explained = view.scene.explained_by(service)
    if features["older"] > CLEAR:
        return f"{service} was in trouble before it"
    if explained > CLEAR and view.scene.trouble(service):
        return f"what shows in {service} is explained by {callee}, and {gap} passed before the first sign"
    if not max(features["own"], features["callers"], features["callees"]):
        return f"nothing unusual shows in {service or 'any service'} after it"
    return f"{gap} passed between it and the first sign, and little connects them"


def _ruled_out(view: View, revision: Revision) -> Suspect:
    late = revision.at - view.scene.first_sign
    why = (
        "it was not deployed before the first sign"
        if revision.waits
        else f"it came {_minutes(late)} after the first sign"
    )
    service = next(iter(revision.live), revision.change.service)
    return Suspect(service, Origin.CHANGE, revision, (), why, {})


def _minutes(gap: timedelta) -> str:
    minutes = round(gap.total_seconds() / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
