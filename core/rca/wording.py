"""Word hypotheses as an on-call engineer would.

A cause is one sentence: what changed and when, what it did, and what followed. Each part may be missing. Times are in UTC, as in
the message around it. All times, numbers and statements come from the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.knowledge.terms import terms
from core.model.findings import BlamedChange, Evidence, EvidenceKind, Hypothesis, Origin, SimilarIncident
from core.model.language_model import Responsibility
from core.rca.cause_candidates import CauseCandidate, in_minutes
from core.rca.changes import ChangedSetting, Revision, active_lines, settings
from core.rca.dependencies import callees
from core.rca.failures import responsibility_of
from core.rca.incident_signals import IncidentSignals, contradicting
from core.rca.no_change import ALERT, SENTENCE_END
from core.rca.observations import Observations, no_change
from core.rca.signals import Signal

MAX_EVIDENCE = 6  # lines shown for one hypothesis
MAX_TITLE = 160  # characters of a change's title
MAX_DETAIL = 160  # characters of a sentence of a change's detail, or of a line of its diff
LIKE_CAUSE = 0.3  # share of a past root cause's words that a hypothesis must contain to be supported by it
MAX_LINE = 80  # characters of a line of a diff in a sentence

DID = {
    "commit": "changed the code of",
    "config": "changed the configuration of",
    "deploy": "was deployed to",
    "flag": "switched a flag of",
    "infrastructure": "changed the infrastructure of",
    "migration": "migrated the database of",
    "rotation": "rotated a key of",
}
"""Verb phrases for the kinds of changes, after the title of a change."""

PLATFORM_CHANGES = frozenset({"infrastructure", "rotation"})  # kinds of changes made outside of a service

NEXT_CHECKS = {
    "config": "Check what {id} set; if {service} needs another value, revert it.",
    "flag": "Switch {id} back for part of the traffic, and watch the effect.",
    "migration": "Look for locks and slow statements that {id} left in the database of {service}.",
    "rotation": "Check that everything that trusts {service} has the new key or secret of {id}.",
    "infrastructure": "Compare the hosts and network paths of {service} that {id} touched with the others.",
}
"""The next check, by kind of change."""
ROLL_BACK = "Roll back {id} on one instance of {service}, and watch the effect."

NO_CHANGE = {
    Origin.EXTERNAL: (
        "{subject}, on which {service} depends, is failing",
        "Check the status of {subject}, also with a manual call from {service}.",
    ),
    Origin.LOAD: (
        "{service} gets more requests than usual",
        "Find out who sends the requests. Scale out {service}, or limit the requests.",
    ),
    Origin.DATA: (
        "every error of {service} is about {subject}",
        "Set {subject} aside, and check whether {service} processes the rest.",
    ),
    Origin.PLATFORM: (
        "{service} or what it runs on is in trouble",
        "Check the nodes, disks and databases of {service} and of the other services in trouble.",
    ),
}
"""By origin: the beginning of the cause, and the next check."""
AFFECTED = "what is affected"  # in place of the service, if an incident names none

_SQUARE = str.maketrans("()", "[]")  # inside the parentheses of a cause, which the message may leave out as a whole

EVENT = "Kubernetes "  # begins a log line that is an event about a pod


def hypothesis(candidate: CauseCandidate, incident_signals: IncidentSignals, observations: Observations) -> Hypothesis:
    """Return a candidate as a hypothesis: the cause in a sentence, evidence, disproof and next check."""
    revision = candidate.revision
    cause = (
        _changed(revision, candidate, incident_signals)
        if revision
        else _unchanged(candidate, incident_signals, no_change(observations))
    )
    return Hypothesis(
        cause=cause,
        service=candidate.service,
        score=candidate.score,
        evidence=_evidence(candidate, incident_signals, observations.similar, cause),
        disproof=_disproof(candidate, incident_signals),
        next_check=_next_check(candidate),
        responsibility=_responsibility(candidate, incident_signals),
        contradicting=contradicting(candidate.service, revision.at if revision else None, incident_signals),
        origin=candidate.origin,
        change=BlamedChange(
            id=revision.change.id,
            kind=revision.change.kind,
            title=revision.change.title,
            author=revision.change.author,
            at=revision.at,
            services=tuple(revision.live),
            deploys=tuple(each.id for each in revision.shipped_by),
        )
        if revision
        else None,
        subject=candidate.subject,
        seconds_to_first_sign=max(0.0, (incident_signals.first_sign - revision.at).total_seconds())
        if revision
        else None,
    )


def named(revision: Revision, incident_signals: IncidentSignals) -> str:
    """Return “config CHG-7 of api at 09:19 UTC”, with the date if it is not the incident's."""
    change, at = revision.change, revision.at.astimezone(UTC)
    day = "" if at.date() == incident_signals.incident.started_at.astimezone(UTC).date() else f"{at:%Y-%m-%d} "
    services = f" of {', '.join(revision.live)}" if revision.live else ""
    shipped = f" ({revision.shipped_by[0].name})" if revision.shipped_by else ""
    return f"{change.name}{shipped}{services} at {day}{at:%H:%M} UTC"


def _changed(revision: Revision, candidate: CauseCandidate, incident_signals: IncidentSignals) -> str:
    """Return “`pool.size` was lowered from 40 to 4 at 09:19 (C-1); 2 min later …”, or the change in its own words.

    The title comes first, and then the line of its diff that speaks most of the symptoms. It names no person.
    """
    change, incident = revision.change, incident_signals.incident
    service = candidate.service if candidate.service in revision.live else change.service
    when = _clock(revision.at, incident.started_at)
    setting = telling_setting(revision, candidate.signals)
    title = " ".join(change.title.split()).removeprefix(f"{service}:").strip().rstrip(".").translate(_SQUARE)
    if setting is not None:
        of = f" of {service}" if service else ""
        sentence = (
            f"`{setting.name}`{of} was {setting.moved} from {setting.before} to {setting.after} at {when} ({change.id})"
        )
    else:
        did = DID.get(change.kind, f"made a change ({change.kind}) to")
        named = (
            f"“{title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + '…'}”"
            if title
            else f"A {change.kind} without a title"
        )
        sentence = f"{named} {did} {service or incident.service} at {when} ({change.id})"
        sentence += _effect(revision, candidate)
    restated = f" from {setting.before} to {setting.after}" if setting is not None else "\n"
    followed = [each for each in candidate.signals if not each.what.endswith(restated)] or candidate.signals
    # Metrics go before logs, because they give a size.
    signs = sorted((each for each in followed if each.trouble), key=lambda each: each.evidence.kind is EvidenceKind.LOG)
    if not signs:
        return f"{sentence}; {_later(incident_signals.first_sign - revision.at)} the first sign showed."
    later = _later(signs[0].since - revision.at) if signs[0].evidence.at else "then"
    return f"{sentence}; {later} {_in_words(signs[0], incident.service)}."


def _effect(revision: Revision, candidate: CauseCandidate) -> str:
    """Return “: it removed `if total is None: return`”, or the telling sentence of its detail; empty if it has neither."""
    gone, come = (
        [line[1:].strip() for line in _moved_lines(revision, candidate) if line.startswith(sign)] for sign in "-+"
    )
    parts = [
        f"{verb} `{lines[0] if len(lines[0]) <= MAX_LINE else lines[0][: MAX_LINE - 1].rstrip() + '…'}`"
        for verb, lines in (("removed", gone), ("added", come))
        if lines
    ]
    if parts:
        return f": it {' and '.join(parts)}"
    detail = _best_sentence(revision.change.detail, candidate).translate(_SQUARE)
    return f": {detail}" if _speaks_of(detail, candidate) > _speaks_of(revision.change.title, candidate) else ""


def with_person(best: Hypothesis, clean: Callable[[str], str]) -> Hypothesis:
    """Return a cause with the cleaned author of its change, who is named only if the evidence is strong."""
    author = clean(" ".join(best.change.author.split())) if best.change is not None else ""
    if best.change is None or not author:
        return best
    return replace(best, cause=best.cause.replace(f"({best.change.id})", f"({best.change.id}, by {author})", 1))


def telling_setting(revision: Revision, signals: Sequence[Signal]) -> ChangedSetting | None:
    """Return the setting of a change that shares most words with the signs, or the first one if none does.

    None if neither its text nor its diff names a setting.
    """
    signs = frozenset(term for signal in signals for term in signal.terms)
    return max(
        settings(revision.change), key=lambda setting: len(signs.intersection(terms(setting.name))), default=None
    )


def _unchanged(candidate: CauseCandidate, incident_signals: IncidentSignals, checked: str) -> str:
    movements: dict[str, str] = {}  # a metric that moved in two services is named once
    for signal in sorted(candidate.signals, key=lambda signal: signal.service != candidate.service):
        movements.setdefault(signal.subject or signal.what, _in_words(signal, incident_signals.incident.service))
    signs = "; ".join([*movements.values()][:2])
    if candidate.signals and candidate.signals[0].evidence.source == ALERT:
        statement = candidate.signals[0].evidence.quote.rstrip(".")
        return f"The alert states it: {statement}."
    if candidate.fault is not None:
        logged = (each for each in candidate.signals if each.evidence.kind is EvidenceKind.LOG and not each.kinds)
        others = [_in_words(each, candidate.service) for each in logged if not each.evidence.quote.startswith(EVENT)]
        return f"{candidate.fault.cause.rstrip('.')}{''.join(f'; {each}' for each in others[:1])}."
    if candidate.origin in NO_CHANGE:
        subject = candidate.subject or "something outside"  # what it was is in what follows
        statement = NO_CHANGE[candidate.origin][0].format(service=candidate.service, subject=subject)
        return f"{statement}, and {checked}; {signs}."
    if candidate.service == incident_signals.incident.service:
        return f"{candidate.service} itself is in trouble, and {checked}; {signs}."
    if candidate.signals and candidate.signals[0].service != candidate.service:
        return f"{candidate.service} does not answer {candidate.signals[0].service} as it should; {signs}."
    return f"{candidate.service} is in trouble{_relation(candidate.service, incident_signals)}; {signs}."


def _relation(service: str, incident_signals: IncidentSignals) -> str:
    """Return how another service is related to the incident's, as far as the graph of calls tells; empty otherwise."""
    own = incident_signals.incident.service
    if service in incident_signals.distances:
        return f", and {own} depends on it"
    return f", and it depends on {own}" if own in callees(service, incident_signals.dependencies) else ""


def _evidence(
    candidate: CauseCandidate, incident_signals: IncidentSignals, similar: tuple[SimilarIncident, ...], cause: str
) -> tuple[Evidence, ...]:
    evidence: list[Evidence] = []
    if candidate.revision:
        change, at = candidate.revision.change, candidate.revision.at
        detail = _best_sentence(change.detail, candidate)
        source = f"{change.name} by {change.author or 'unknown'}"
        evidence.append(
            Evidence(
                EvidenceKind.CHANGE, source, f"{change.title}: {detail}" if detail else change.title, at, change.url
            )
        )
        if moved := _moved_lines(candidate.revision, candidate):
            evidence.append(Evidence(EvidenceKind.CHANGE, f"diff of {change.id}", "\n".join(moved), at))
    if candidate.fault is not None:
        evidence.append(
            Evidence(candidate.fault.evidence, candidate.fault.source, candidate.fault.quote, candidate.fault.at)
        )
        evidence += [Evidence(EvidenceKind.TOPOLOGY, each.source, each.text) for each in candidate.fault.also]
    evidence += [signal.evidence for signal in candidate.signals if signal.trouble][:3]
    if candidate.service in incident_signals.distances:
        path = f"{incident_signals.incident.service} depends on {candidate.service}"
        evidence.append(Evidence(EvidenceKind.TOPOLOGY, "service dependencies", path))
        symptoms = sorted(
            incident_signals.by_service.get(incident_signals.incident.service, ()), key=lambda signal: -signal.strength
        )
        evidence += [signal.evidence for signal in symptoms if signal.trouble][:1]
    words = frozenset(terms(f"{cause}\n{candidate.service}"))
    for past in similar:
        past_terms = frozenset(terms(past.root_cause))
        if past_terms and len(past_terms & words) >= LIKE_CAUSE * len(past_terms):
            source = f"{past.id}: {past.title}"
            evidence.append(
                Evidence(EvidenceKind.PAST_INCIDENT, source, past.root_cause, url=past.url, quote_by=past.root_cause_by)
            )
    return tuple({(each.source, each.quote): each for each in evidence}.values())[:MAX_EVIDENCE]


def _disproof(candidate: CauseCandidate, incident_signals: IncidentSignals) -> str:
    if candidate.revision:
        before = f"{candidate.revision.at.astimezone(UTC):%H:%M} UTC"
        return f"The same trouble before {before}, or where {candidate.revision.change.id} has not arrived."
    if candidate.service == incident_signals.incident.service:
        return f"The same signs in {candidate.service or AFFECTED} on a day without an incident."
    return f"{candidate.service} recovers and {incident_signals.incident.service} does not."


def _responsibility(candidate: CauseCandidate, incident_signals: IncidentSignals) -> Responsibility | None:
    """Return the side that can fix the cause. Without a change, the signs of the incident's own service decide."""
    change = candidate.change
    if change is None and candidate.fault is not None:
        is_elsewhere = (
            incident_signals.incident.service not in ("", candidate.service) and candidate.fault.kind == "app"
        )
        is_platform = candidate.fault.fault.who is Responsibility.PLATFORM
        return Responsibility.DEPENDENCY if is_elsewhere and not is_platform else candidate.fault.fault.who
    if change is not None and change.kind in PLATFORM_CHANGES:
        return Responsibility.PLATFORM
    if candidate.origin is Origin.EXTERNAL or candidate.service != incident_signals.incident.service:
        return Responsibility.DEPENDENCY
    if candidate.origin is Origin.PLATFORM:
        return Responsibility.PLATFORM
    if change is not None:
        return Responsibility.OWN_CODE
    return responsibility_of("\n".join(signal.evidence.quote for signal in candidate.signals))


def _next_check(candidate: CauseCandidate) -> str:
    if candidate.revision is not None:
        template = NEXT_CHECKS.get(candidate.revision.change.kind, ROLL_BACK)
        return template.format(id=candidate.revision.change.id, service=candidate.service or "it")
    if (fault := candidate.fault) is not None:
        return fault.fault.next_check.format(name=fault.name, detail=fault.detail)
    if candidate.origin in NO_CHANGE:
        subject = candidate.subject or "the external systems"
        return NO_CHANGE[candidate.origin][1].format(service=candidate.service or AFFECTED, subject=subject)
    first = min(signal.since for signal in candidate.signals)
    return f"Look at {candidate.service} from {first:%H:%M} UTC onwards, the earliest sign first."


def _in_words(signal: Signal, service: str) -> str:
    """Return a sign in words. A metric names its service if that is not `service`."""
    if signal.evidence.kind is EvidenceKind.LOG:
        return f"{signal.service} {signal.what}"
    if signal.subject and signal.service != service:
        return signal.what.replace(signal.subject, f"{signal.subject} of {signal.service}", 1)
    return signal.what


def _best_sentence(detail: str, candidate: CauseCandidate) -> str:
    """Return the sentence of a change's detail that shares most words with the signs, or the first one if none does."""
    best = max(SENTENCE_END.split(" ".join(detail.split())), key=lambda sentence: _speaks_of(sentence, candidate))
    return best.rstrip(".;") if len(best) <= MAX_DETAIL else best[: MAX_DETAIL - 1] + "…"


def _moved_lines(revision: Revision, candidate: CauseCandidate) -> tuple[str, ...]:
    """Return the removed and the added line of a change's diff that share most words with the signs."""
    lines = active_lines(revision.change.diff)
    moved = ([f"{sign}{text}" for sign, text in lines if sign == wanted] for wanted in "-+")
    return tuple(max(each, key=lambda line: _speaks_of(line, candidate))[:MAX_DETAIL] for each in moved if each)


def _speaks_of(text: str, candidate: CauseCandidate) -> int:
    words = frozenset(terms(text))
    seen = {term for signal in candidate.signals for term in signal.terms}
    return len(words.intersection(candidate.shared)) * 10 + len(words & seen)


def _clock(at: datetime, day: datetime) -> str:
    """Return the time in UTC: “09:19”, or “09:19 on 2 March” if the date is not that of `day`."""
    at, day = at.astimezone(UTC), day.astimezone(UTC)
    year = "" if at.year == day.year else f" {at.year}"
    return f"{at:%H:%M}" if at.date() == day.date() else f"{at:%H:%M} on {at.day} {at:%B}{year}"


def _later(delay: timedelta) -> str:
    return f"{in_minutes(delay)} later" if delay > timedelta(seconds=30) else "at once"
