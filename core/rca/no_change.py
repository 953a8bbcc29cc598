"""Causes without a change: a provider, the load, one record, the platform, or the service itself."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from core.knowledge.phrases import pattern_of
from core.model.findings import Evidence, EvidenceKind, Origin
from core.rca.cluster.findings import SAYINGS
from core.rca.failures import UNANSWERED, Kind
from core.rca.incident_signals import (
    LEEWAY,
    CauseCandidate,
    View,
    is_felt,
    kinds_shown,
)
from core.rca.observations import Rebuttal
from core.rca.signals import CLEAR, Signal, combined, is_rate

SAME_RECORD = 0.8  # of the records of a message that must name one thing, for it to be blamed
MIN_RECORDS = 3  # of a message, to consider the things that they name
TOO_LITTLE = Rebuttal("what was read of it shows too little trouble")
ARISES = 0.3  # of the origin's weight, from which trouble also begins in a service
_FOREIGN = re.compile(
    r"(?:(?<=//)(?P<url>(?:[a-z0-9-]+\.){1,5}[a-z]{2,16})(?![\w.-])"
    r"|(?<![\w@.$/-])(?!com\.|org\.|net\.|io\.)(?P<host>(?:[a-z0-9-]+\.){1,4}"
    r"(?:com|net|org|io|dev|cloud|app|co|eu|us|uk|de|fr|ai|example))(?![\w(]|\.\w))",
    re.IGNORECASE,
)
"""Matches a host in an address, or alone with a top-level domain that is not a file extension."""
_OURS = frozenset("internal local svc cluster lan intra corp".split())  # in the domain of a host of our own
_STORES = (
    "postgres",
    "sql",
    "mariadb",
    "redis",
    "kafka",
    "rabbit",
    "mongo",
    "elastic",
    "cache",
    "broker",
    "localhost",
)  # as of a store
_INSIDE = re.compile(
    r"(?<![\d.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))(?:\.\d{1,3}){2}(?![\d.])"
)
"""Matches an address of a private network (RFC 1918, RFC 6598)."""
_RECORD = re.compile(
    r"(?<![\w.:-])(?!(?:line|port|code|error|errno|time|status|version|after|than|of|limit|length|size|exceeds|over|in|took)\b)"
    r"([a-z_]{1,24}[-_#=/ ](?!\d{4}-\d\d-\d\d)[a-z]{0,4}-?\d{4,18}(?:-\w+)*|\d{6,18}|[0-9a-f]{8}-[0-9a-f-]{20,27})"
    r"(?! ?(?:ms|s|sec\w*|min\w*|[kmg]i?b|bytes|calls|requests|rows|%)\b)(?!\d|[.:]\d)",
    re.IGNORECASE,
)
"""Matches the name of one record: a word and a number, a long number, or a UUID; not a duration, size or count."""
_BRACKETED = re.compile(r"\[[^\[\]]{1,60}\]")
ALERT = "the alert"  # source of what it states
STATES = ("create", "pod", "place")  # where words are said that explain an alert if it contains them
STATED = 0.9  # certainty of what an alert states about itself
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")
_EXPLAINS_ITSELF = re.compile(
    r"(?P<ended>\b(?:certificate|licen[cs]e|token|credentials?|secret|api key|subscription|domain)\b.{0,60}"
    r"\b(?:expired|has ended|was revoked)\b|\b(?:quota|plan|daily limit|monthly limit)\b.{0,60}"
    r"\b(?:exceeded|exhausted|reached|used up)\b)"
    r"|\b(?:disk|volume|filesystem|file system|partition|inodes?)\b.{0,60}\b(?:is full|are full|used up|exhausted)\b"
    r"|no space left on|\bunschedulable\b|\b\d{1,4}/\d{1,4} nodes are available",
    re.IGNORECASE,
)
"""Matches an alert that states its cause."""
_CLEAR_OF_OURS = {
    Origin.PLATFORM: frozenset({Kind.DISK, Kind.HOST, Kind.STORE, Kind.PLACEMENT}),
    Origin.EXTERNAL: frozenset({Kind.CERTIFICATE, Kind.QUOTA}),
}
_EXPIRED = re.compile(
    pattern_of(
        "(expired | expiry | ended | revoked | quota | licence | license | subscription | (daily | monthly | request) limit)"
    )
    + r"|plan\b",
    re.IGNORECASE,
)


def not_ours(view: View) -> list[CauseCandidate]:
    """Return every cause without a change for which there is evidence."""
    causes = [*_stated(view), *_external(view), *_load(view), *_record(view), *_platform(view)]
    return [*causes, *(each for each in _itself(view) if all(each.service != other.service for other in causes))]


def _other(
    service: str, origin: Origin, evidence: float, signals: Sequence[Signal], subject: str = ""
) -> CauseCandidate:
    return CauseCandidate(
        service, origin, None, tuple(signals), TOO_LITTLE, {"none": 1.0, "evidence": evidence}, subject=subject
    )


def _stated(view: View) -> list[CauseCandidate]:
    """Return the cause that the alert itself states, if it explains itself, such as an expired certificate."""
    incident = view.incident_signals.incident
    for sentence in SENTENCE_END.split(view.observations.prose):
        match = _EXPLAINS_ITSELF.search(sentence)
        if not (match or any(one.words.search(sentence) for where in STATES for _, one in SAYINGS[where])):
            continue
        statement = " ".join(sentence.split())
        sign = Signal(
            incident.service,
            incident.started_at,
            STATED,
            f"says “{statement}”",
            frozenset(),
            Evidence(EvidenceKind.LOG, ALERT, statement, incident.started_at),
        )
        origin = Origin.EXTERNAL if match and match["ended"] else Origin.PLATFORM
        return [_other(incident.service, origin, STATED, [sign])]
    return []


def _external(view: View) -> list[CauseCandidate]:
    """Return causes by errors that name an external host, or an expired or exhausted resource of a provider."""
    signals_of: defaultdict[str, list[Signal]] = defaultdict(list)
    named: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for signal, _, kinds in view.logged:
        if signal.is_warning and not kinds:
            continue  # it does not say what fails
        text = "\n".join([signal.evidence.quote, *signal.texts])
        # Of a record with an address inside, as a proxy writes it, that is what was called, and the host what was asked for.
        is_inside = _INSIDE.search(text) is not None
        named_there = (match["url"] or match["host"] for match in _FOREIGN.finditer(text))
        hosts = [each for each in named_there if not is_inside and _is_foreign(each, view)]
        ran_out = bool(kinds & _CLEAR_OF_OURS[Origin.EXTERNAL]) and _EXPIRED.search(text) is not None
        if hosts or ran_out:
            signals_of[signal.service].append(signal)
            named[signal.service].update(hosts)
    return [
        _other(
            service,
            Origin.EXTERNAL,
            _weight(view, signals),
            _strongest(signals),
            max(named[service], key=lambda host: named[service][host], default=""),
        )
        for service, signals in signals_of.items()
    ]


def _weight(view: View, signals: Iterable[Signal]) -> float:
    """Return the combined strength of signs, each weighted by the trouble that begins in its service, or in one that it names
    as its origin, in [0, 1].
    """
    return combined(
        each.strength * max(view.origin.get(name, 0.0) for name in (each.service, *view.blamed[id(each)]))
        for each in signals
    )


def _is_foreign(host: str, view: View) -> bool:
    name = host.lower()
    services = {each.lower() for each in (*view.incident_signals.by_service, *view.incident_signals.dependencies)}
    is_ours = (
        any(store in name for store in _STORES)
        or "db" in name.replace("-", ".").split(".")
        or not _OURS.isdisjoint(name.partition(".")[2].replace("-", ".").split("."))
    )
    return not is_ours and services.isdisjoint(name.split("."))


def _load(view: View) -> list[CauseCandidate]:
    """Return the load as a cause, if services get more requests than usual since before the first sign."""
    measured = {one.service for one in view.observations.series if is_rate(one.metric)}
    risen = [
        signal
        for signals in view.incident_signals.by_service.values()
        for signal in signals
        if signal.evidence.kind is EvidenceKind.METRIC
        and signal.rises
        and is_rate(signal.subject)
        and signal.since <= view.incident_signals.first_sign + LEEWAY
    ]
    services = {signal.service for signal in risen}
    suffering = [each for name in services for each in view.trouble(name) if is_felt(each)]
    if not services or not suffering:  # what copes with more requests is well
        return []
    service = max(view.origin, key=lambda name: view.origin[name], default=view.incident_signals.incident.service)
    return [
        _other(
            service,
            Origin.LOAD,
            max(signal.strength for signal in risen) * len(services) / len(measured),
            [*sorted(risen, key=lambda signal: -signal.strength), *_strongest(view.trouble(service))],
        )
    ]


def _record(view: View) -> list[CauseCandidate]:
    """Return causes by errors that are all about one record, tenant or message."""
    causes: list[CauseCandidate] = []
    for signal, _, _ in view.logged:
        is_log = signal.evidence.kind is EvidenceKind.LOG and not signal.is_warning
        if kinds_shown(signal) & _CLEAR_OF_OURS[Origin.PLATFORM] or not is_log or len(signal.texts) < MIN_RECORDS:
            continue
        heads = [_BRACKETED.sub("", text.partition("\n")[0]) for text in signal.texts]  # without the names of threads
        named = Counter(name.strip() for head in heads for name in set(_RECORD.findall(head)))
        name, count = max(named.items(), key=lambda item: item[1], default=("", 0))
        if count >= SAME_RECORD * len(signal.texts):
            weight = _weight(view, [signal]) * count / len(signal.texts)
            causes.append(_other(signal.service, Origin.DATA, weight, [signal], name))
    return causes


def _platform(view: View) -> list[CauseCandidate]:
    """Return causes by signs of a failing disk, store or node."""
    wanted = _CLEAR_OF_OURS[Origin.PLATFORM]
    failing: defaultdict[str, list[Signal]] = defaultdict(list)
    for signal, _, kinds in view.logged:
        if kinds & wanted:
            failing[min(view.blamed[id(signal)], default=signal.service)].append(signal)
    return [
        _other(service, Origin.PLATFORM, _weight(view, signals), _strongest(signals), service)
        for service, signals in failing.items()
    ]


def _itself(view: View) -> list[CauseCandidate]:
    """Return the services in which trouble begins, for an unknown reason."""
    causes: list[CauseCandidate] = []
    for service, weight in view.origin.items():
        accused = [each for each in view.accusations.get(service, ()) if kinds_shown(each) & UNANSWERED]
        signals = _strongest(view.trouble(service) or accused)
        errors = [each for each in (*signals, *accused) if not each.is_warning]
        # Those beyond the symptom, which a metric of the incident's own service shows.
        distinctive = [
            each
            for each in errors
            if each.service != view.incident_signals.incident.service or each.evidence.kind is not EvidenceKind.METRIC
        ]
        if distinctive and weight > ARISES:
            evidence = 0.3 * weight * max(signal.strength for signal in distinctive)
            causes.append(_other(service, Origin.SERVICE, evidence, signals))
    return causes


def _strongest(signals: Iterable[Signal]) -> list[Signal]:
    """Return the signals sorted: clear ones first, then log messages before metrics, then the strongest."""
    return sorted(
        signals,
        key=lambda signal: (
            signal.strength < CLEAR,
            signal.evidence.kind is not EvidenceKind.LOG,
            -signal.strength,
            signal.since,
        ),
    )
