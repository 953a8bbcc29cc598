"""Hypotheses in the words that an on-call engineer would use."""

from __future__ import annotations

from datetime import UTC

from core.incident import Evidence, EvidenceKind, Hypothesis, SimilarIncident
from core.knowledge.terms import terms
from core.ports import Change
from core.rca.cause_sentence import changed_sentence, clock_time, telling, troubled_sentence
from core.rca.contradictions import contradicting
from core.rca.responsibility import responsibility_of
from core.rca.scene import Scene
from core.rca.suspects import Suspect, traced_file
from core.rca.trajectory import Responsibility

MAX_EVIDENCE = 6  # lines shown for one hypothesis
LIKE_CAUSE = 0.3  # share of a past root cause's words in a hypothesis, from which it supports it

PLATFORM_CHANGES = frozenset({"infrastructure", "rotation"})  # kinds that are made for services and not within them

NEXT_CHECKS = {
    "config": "Compare the value before and after {id} with what {service} needs; if it is wrong, revert it.",
    "deploy": "Roll {service} back to the version before {id} in one place, and see whether the signs stop there.",
    "flag": "Switch the flag of {id} back for a small share of the traffic, and see whether the signs stop there.",
    "migration": "Look at the locks and slow statements that {id} left behind in {service}.",
    "rotation": "Check that everything that trusts {service} has received the new key or secret of {id}.",
    "infrastructure": "Compare the hosts and network paths of {service} that {id} touched with those that it did not.",
}
"""What to look at next, by kind of change."""


def hypothesis(suspect: Suspect, scene: Scene, similar: tuple[SimilarIncident, ...]) -> Hypothesis:
    """A suspect with its cause in a sentence, its evidence, what would disprove it, and what to check next."""
    change = suspect.change
    if change is not None:
        cause = changed_sentence(change, suspect.signals, scene.incident, scene.first_sign)
    else:
        cause = troubled_sentence(suspect.service, suspect.signals, scene.incident)
    return Hypothesis(
        cause=cause,
        service=suspect.service,
        score=suspect.score,
        evidence=_evidence(suspect, scene, similar, cause),
        disproof=_disproof(suspect, scene),
        next_check=_next_check(suspect),
        responsibility=_responsibility(suspect, scene),
        contradicting=contradicting(suspect.service, change.at if change else None, scene),
    )


def named(change: Change, scene: Scene) -> str:
    """“config CHG-7 of api at 09:19 UTC”, with the date where it is not the incident's."""
    return f"{change.kind} {change.id} of {change.service} at {clock_time(change.at, scene.incident.started_at)}"


def _evidence(suspect: Suspect, scene: Scene, similar: tuple[SimilarIncident, ...], cause: str) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if suspect.change:
        change = suspect.change
        quote = f"{change.title}: {telling(change.detail, suspect.signals)}" if change.detail else change.title
        source = f"{change.kind} {change.id} by {change.author or 'unknown'}"
        found.append(Evidence(EvidenceKind.CHANGE, source, quote, change.at, change.url))
        if file := traced_file(scene, change):
            found.append(
                Evidence(EvidenceKind.CHANGE, f"files of {change.id}, and in the stack trace", file, change.at)
            )
    found += [signal.evidence for signal in suspect.signals if signal.trouble][:3]
    if suspect.service in scene.distances:
        path = f"{scene.incident.service} depends on {suspect.service}"
        found.append(Evidence(EvidenceKind.TOPOLOGY, "service dependencies", path))
        symptoms = sorted(scene.signals.get(scene.incident.service, ()), key=lambda signal: -signal.strength)
        found += [signal.evidence for signal in symptoms if signal.trouble][:1]
    words = frozenset(terms(f"{cause}\n{suspect.service}"))
    for past in similar:
        known = frozenset(terms(past.root_cause))
        if known and len(known & words) >= LIKE_CAUSE * len(known):
            source = f"{past.id}: {past.title}"
            found.append(Evidence(EvidenceKind.PAST_INCIDENT, source, past.root_cause, url=past.url))
    return tuple(found[:MAX_EVIDENCE])


def _disproof(suspect: Suspect, scene: Scene) -> str:
    if suspect.change:
        before = f"{suspect.change.at.astimezone(UTC):%H:%M} UTC"
        return f"A sign of the same trouble before {before}, or no relief after {suspect.change.id} is undone."
    if suspect.service == scene.incident.service:
        return f"The same signs in {suspect.service} on a day without an incident."
    return f"{suspect.service} recovers and {scene.incident.service} does not."


def _responsibility(suspect: Suspect, scene: Scene) -> Responsibility | None:
    """Who can put it right; for the incident's own service that nobody changed, what it complains of tells, if anything."""
    if suspect.change is not None and suspect.change.kind in PLATFORM_CHANGES:
        return Responsibility.PLATFORM
    if suspect.service != scene.incident.service:
        return Responsibility.DEPENDENCY
    if suspect.change is not None:
        return Responsibility.OWN_CODE
    return responsibility_of("\n".join(signal.evidence.quote for signal in suspect.signals))


def _next_check(suspect: Suspect) -> str:
    if suspect.change is None:
        return f"Look at {suspect.service} from {min(signal.since for signal in suspect.signals):%H:%M} on, earliest sign first."
    template = NEXT_CHECKS.get(suspect.change.kind, "Undo {id} in {service}, and see whether the signs stop.")
    return template.format(id=suspect.change.id, service=suspect.service)
