"""Possible causes: changes before the first sign, and services in trouble of their own. Scored against the scene."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import exp

from core.incident import EvidenceKind
from core.knowledge.terms import terms
from core.ports import Change
from core.rca.dependencies import callees
from core.rca.scene import SLACK, Scene, precedes
from core.rca.signals import Signal
from core.rca.stack_traces import same_file

RECENCY = timedelta(minutes=45)  # before the first sign, in which a change loses 63 % of its weight
EFFECT = timedelta(minutes=10)  # after a change, in which its own service's signs lose 63 % of their weight
EXPLAINED_AWAY = 0.8  # of a suspect's score, when a callee's earlier trouble explains all of its service's
BASE, EFFECT_SHARE, WORDS_SHARE = 0.4, 0.4, 0.2  # of a change's score: being there, its effect, its words in the signs
SERVICE_WEIGHT = 0.65  # of a service in trouble to which nothing was done, against a change that fits wholly
OWN_SERVICE_WEIGHT = 0.55  # of the incident's own: that it is in trouble says where it shows, and hardly why
ENOUGH_WORDS = 2.0  # rare words shared by a change and the signs that make them speak of the same thing


@dataclass(frozen=True, slots=True)
class Suspect:
    """`change` is None for a service in trouble that nobody changed. `objection` says what speaks against it."""

    service: str
    score: float
    change: Change | None
    signals: tuple[Signal, ...]
    objection: str


def suspects(scene: Scene, changes: Sequence[Change]) -> list[Suspect]:
    """Every possible cause, best first."""
    rarity = _rarity(changes)
    found = [_changed(scene, change, rarity) for change in changes]
    found += [_troubled(scene, service) for service in scene.signals if scene.trouble(service)]
    return sorted(found, key=lambda suspect: (-suspect.score, suspect.change is None, suspect.service))


def _changed(scene: Scene, change: Change, rarity: Mapping[str, float]) -> Suspect:
    gap = scene.first_sign - change.at
    if gap < -SLACK:
        return Suspect(change.service, 0.0, change, (), f"it came {_minutes(-gap)} after the first sign")
    place = scene.place_weight(change.service)
    callee, explained = scene.explained_by(change.service)
    own = [signal for signal in scene.signals.get(change.service, ()) if signal.since >= change.at - SLACK]
    after = sorted(own, key=lambda signal: -_effect(signal, change))
    blamed = 0.0 if change.service == scene.incident.service else scene.blamed(change.service)
    effect = max([blamed, *(_effect(signal, change) for signal in own if signal.trouble)])
    words = 1.0 if traced_file(scene, change) else _shared_words(scene, change, rarity)
    score = (
        place
        * exp(-max(timedelta(), gap) / RECENCY)
        # A change that shows at once in its own service needs no other explanation.
        * (1 - EXPLAINED_AWAY * explained * (1 - effect))
        * (BASE + EFFECT_SHARE * effect + WORDS_SHARE * words)
    )
    return Suspect(
        change.service, score, change, tuple(after), _objection(scene, change, gap, callee, explained, effect)
    )


def traced_file(scene: Scene, change: Change) -> str:
    """The first file of a change that a stack trace among the signs of its service or of a caller leads through."""
    traced = [
        frame.path
        for service, signals in scene.signals.items()
        if service == change.service or change.service in callees(service, scene.dependencies)
        for signal in signals
        if signal.trouble
        for frame in signal.frames
    ]
    return next((file for file in change.files if any(same_file(path, file) for path in traced)), "")


def _effect(signal: Signal, change: Change) -> float:
    delay = max(timedelta(), signal.since - change.at)
    return signal.strength * exp(-delay / EFFECT)


def _objection(scene: Scene, change: Change, gap: timedelta, callee: str, explained: float, effect: float) -> str:
    if scene.place_weight(change.service) < 0.2:
        return f"{scene.incident.service} does not call {change.service}, directly or through others"
    if explained > 0.5 and scene.trouble(change.service):
        return (
            f"what shows in {change.service} is explained by {callee}, and {_minutes(gap)} passed before the first sign"
        )
    if effect < 0.2:
        return f"nothing unusual shows in {change.service} in the minutes after it"
    return f"{_minutes(gap)} passed between it and the first sign"


def _troubled(scene: Scene, service: str) -> Suspect:
    callee, explained = scene.explained_by(service)
    own = sorted(
        (signal for signal in scene.signals[service] if signal.trouble),
        key=lambda signal: (-signal.strength, signal.since),
    )
    telling = _beyond_the_symptom(scene, service, own)
    weight = OWN_SERVICE_WEIGHT if service == scene.incident.service else SERVICE_WEIGHT
    sure = max((signal.strength for signal in telling), default=0.0)
    in_time = precedes(min(signal.since for signal in own), scene.first_sign)
    score = weight * sure * in_time * scene.place_weight(service) * (1 - EXPLAINED_AWAY * explained)
    if not telling:
        objection = "it shows nothing but the symptom itself"
    elif not in_time:
        objection = "its trouble began after the first sign"
    elif explained > 0.5:
        objection = f"its trouble is explained by that of {callee}, which began no later"
    else:
        objection = "its signs are weak"
    return Suspect(service, score, None, tuple(own), objection)


def _beyond_the_symptom(scene: Scene, service: str, own: Sequence[Signal]) -> Sequence[Signal]:
    """In the incident's own service a metric that moved is the symptom; only what its log says is more than that."""
    if service != scene.incident.service:
        return own
    return [signal for signal in own if signal.evidence.kind is EvidenceKind.LOG]


def _shared_words(scene: Scene, change: Change, rarity: Mapping[str, float]) -> float:
    """How far the change and the signs of trouble use the same words, in [0, 1]; names of services do not count."""
    names = {term for service in scene.signals for term in terms(service)} | set(terms(change.service))
    signs = {
        term for signals in scene.signals.values() for signal in signals if signal.trouble for term in signal.terms
    }
    return min(1.0, sum(rarity[term] for term in (_words(change) & signs) - names) / ENOUGH_WORDS)


def _rarity(changes: Sequence[Change]) -> dict[str, float]:
    """Term → 1 if a single change uses it, less the more do."""
    counts = Counter(term for change in changes for term in _words(change))
    return {term: 1 / count for term, count in counts.items()}


def _words(change: Change) -> frozenset[str]:
    return frozenset(
        term for term in terms(f"{change.title}\n{change.detail}\n{' '.join(change.files)}") if len(term) > 2
    )


def _minutes(gap: timedelta) -> str:
    minutes = round(gap.total_seconds() / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
