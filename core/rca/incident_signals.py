"""The signs around an incident, by service and in time: in logs and metrics, and the faults of objects that hurt.

Their measures, and those of the changes, are computed once and shared by all candidate causes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import exp, log

from core.knowledge.terms import holds_run, terms, word_parts
from core.model.findings import Evidence, EvidenceKind, Origin
from core.model.incident import Incident
from core.model.log_levels import level_named
from core.ports import Change, LogLine
from core.rca.changes import Revision, active_lines, is_inert, makes, revisions
from core.rca.cluster.faults import ObjectFault
from core.rca.cluster.findings import findings
from core.rca.cluster.reading import read
from core.rca.cluster.state import Cluster, Complaint, stem
from core.rca.dependencies import callees, callers, metric_origins, sign_of
from core.rca.failures import UNANSWERED, Kind, kinds_of
from core.rca.log_lines import grouped, quote_of
from core.rca.observations import LOOK_BACK, Observations, Rebuttal, suspect_from
from core.rca.signals import CLEAR, TIMES, TROUBLE, Signal, combined, is_harm, measures, message_signals, metric_signals
from core.rca.tool_outputs import LEAST, MOSTLY

SURE = 0.9  # combined strength of the signs in the incident's service from which its trouble has begun
LEEWAY = timedelta(
    minutes=3
)  # by which an effect may seem to precede its cause, because of buckets, scrapes and clocks
FAR, ELSEWHERE = (
    0.7,
    0.3,
)  # of a cause in an object that the text of the incident does not name; if one that it names suffers
UNNAMED = 0.5  # closeness of any object to a text that names none, and of a service of which no graph tells
NEAR = 0.3  # share of a name's words that an incident must contain to be about it


@dataclass(frozen=True, slots=True)
class IncidentSignals:
    """The signs around an incident. `by_service` maps a service to its signs, `distances` a callee to the calls to it.

    `first_sign` is the start of the trouble in the incident's service, or of the incident if no tool shows it.
    `origins` maps a service to the share of the trouble, in [0, 1], that begins there by its metrics, and `closeness` the
    names of objects to how close they are to the text of an incident without a service, in [0, 1]. `faults` are those of
    the objects, the most certain first. `linked` are the words of the log and the environment of what the incident is
    about, among which are the names of what it depends on; None if its log was not read. `addresses` are the names of
    services by their addresses in the cluster.
    """

    incident: Incident
    dependencies: Mapping[str, tuple[str, ...]]
    by_service: Mapping[str, tuple[Signal, ...]]
    distances: Mapping[str, int]
    first_sign: datetime
    origins: Mapping[str, float]
    faults: tuple[ObjectFault, ...] = ()
    closeness: Mapping[str, float] = field(default_factory=dict[str, float])
    linked: frozenset[str] | None = None
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])

    def trouble(self, service: str) -> float:
        """Return the combined strength, in [0, 1], of the trouble in a service."""
        return combined(signal.strength for signal in self.by_service.get(service, ()) if signal.trouble)

    def began(self, service: str) -> datetime | None:
        """Return when the first clear trouble in a service began."""
        return next((signal.since for signal in _clear(self.by_service.get(service, ()))), None)

    def explained_by(self, service: str) -> tuple[str, float]:
        """Return the callee whose earlier trouble best explains that of `service`, and how well it does, in [0, 1]."""
        began = self.began(service) or self.first_sign
        earlier = [
            (self.trouble(callee) * precedes(since, began), callee)
            for callee in callees(service, self.dependencies)
            if (since := self.began(callee)) is not None
        ]
        weight, callee = max(earlier, default=(0.0, ""))
        return callee, weight * (1 - self.origins.get(service, 0.0))

    @property
    def suffers(self) -> bool:
        """Return whether something that was read shows trouble in the incident's own service, if it has one."""
        return not self.incident.service or self.trouble(self.incident.service) >= CLEAR

    def reaches(self, services: Collection[str]) -> bool:
        """Return whether trouble that begins in one of these services can be what the incident is about.

        That of a caller, or of a service of which the graph says nothing, is another incident unless the incident's own
        service suffers too, or its alert names that service, if only in part: `edge-prod` may be what deploys as `edge`.
        """
        if self.suffers or not services or not {self.incident.service, *self.distances}.isdisjoint(services):
            return True
        own, text = (
            word_parts(self.incident.service),
            word_parts(f"{self.incident.service} {self.incident.description}"),
        )
        names = [word_parts(service) for service in services]
        return any(holds_run(text, name) or holds_run(name, own) for name in names)

    def is_linked(self, service: str) -> bool:
        """Return whether a cause in this service can reach what the incident is about, as far as was read."""
        return self.linked is None or bool(
            service in self.linked
            or self.closeness.get(service)
            or service == self.incident.service
            or service in self.distances
            or service in callers(self.incident.service, self.dependencies)
        )

    def place_weight(self, service: str) -> float:
        """Return how plausible a cause in this service is for a symptom in the incident's, in [0, 1]."""
        if service == self.incident.service or service in self.distances:
            return 1.0
        if not self.is_linked(service):
            return 0.0
        if not self.incident.service:
            near = self.closeness.get(service, 0.0 if self.closeness else UNNAMED)
            is_troubled = any(self.closeness[name] == 1.0 for name in self.closeness.keys() & self.by_service.keys())
            far = ELSEWHERE if is_troubled else FAR
            return far + (1 - far) * near
        may_reach = service in callers(self.incident.service, self.dependencies)
        return 0.0 if self.incident.service in self.dependencies and not may_reach else UNNAMED


def precedes(cause: datetime, effect: datetime) -> float:
    """Return how well the times of a cause and an effect agree: 1 in the right order, 0 if reversed by LEEWAY."""
    return max(0.0, 1 - max(timedelta(), cause - effect) / LEEWAY)


MAX_CONTRADICTING = 3  # lines
EXPLAINS = 0.3  # share of a service's trouble, in [0, 1], that a callee must explain to count against the service


def contradicting(service: str, since: datetime | None, incident_signals: IncidentSignals) -> tuple[Evidence, ...]:
    """Return the evidence against a cause in `service` that began at `since` (None: with the service's own trouble).

    First comes trouble in that service and in the incident's that is older than the cause, because no cause follows its
    effect; then trouble of a callee that would explain that of the service as well.
    """
    signs = incident_signals.by_service
    symptoms = _clear([*signs.get(service, ()), *signs.get(incident_signals.incident.service, ())])
    older = [signal for signal in symptoms if since is not None and signal.since < since - LEEWAY]
    callee, explained = incident_signals.explained_by(service)
    if explained >= EXPLAINS:
        older += _clear(signs.get(callee, ()))[:1]
    return tuple(dict.fromkeys(signal.evidence for signal in older))[:MAX_CONTRADICTING]


def _clear(signals: Iterable[Signal]) -> list[Signal]:
    """Return the signs that show trouble on their own, oldest first."""
    return sorted(
        (signal for signal in signals if signal.trouble and signal.strength >= CLEAR), key=lambda signal: signal.since
    )


def survey(observations: Observations) -> IncidentSignals:
    """Return the signs in logs and metrics, compared with the time before, and in the objects of a cluster."""
    incident = observations.incident
    ids = frozenset(word for word in _ID.findall(observations.prose) if any(map(str.isdecimal, word)))
    cluster = read(observations.outputs, observations.until)
    logged = [_about(signal, ids) for signal in _log_signals(observations) if not cluster.is_done(signal.service)]
    names = {name for _, name in cluster.resources} | {each.app for each in cluster.resources.values()}
    subjects = "\n".join(output.subject for output in observations.outputs)
    candidates = [*names, *(signal.service for signal in logged)]
    closeness = _closeness(observations.prose, candidates) or _closeness(subjects, candidates)
    cluster.focus = frozenset(
        {incident.service} if incident.service else (name for name in closeness if closeness[name] == 1.0)
    )
    troubled = [signal for signal in logged if signal.trouble and not cluster.is_subject_well(signal.subject)]
    cluster.said += [Complaint("app", each.service, each.evidence.quote, each.evidence.source) for each in troubled]
    cluster.refusals += [
        Complaint("log", each.service, "\n".join(each.texts), each.evidence.source)
        for each in troubled
        if kinds_of("\n".join(each.texts)) & UNANSWERED
    ]
    faults = tuple(findings(cluster))
    first = min((series.times[0] for series in observations.series if series.times), default=observations.until)
    moved = metric_signals(observations.series, suspect := suspect_from(first, incident))
    signs = [*logged, *moved, *(_of_fault(each, incident.started_at) for each in faults if each.kind == "app")]
    signs += [sign_of(name, alert) for name, alert in observations.firing.items()]
    services = dict.fromkeys(signal.service for signal in signs)
    signals = {service: tuple(signal for signal in signs if signal.service == service) for service in services}
    return IncidentSignals(
        incident=incident,
        dependencies=observations.dependencies,
        by_service=signals,
        distances=callees(incident.service, observations.dependencies),
        first_sign=_first_sign(signals.get(incident.service, ()), incident.started_at),
        origins=metric_origins(observations.series, observations.dependencies, incident.service, suspect),
        faults=faults,
        closeness=closeness,
        linked=_linked(cluster, observations),
        addresses=cluster.addresses,
    )


def _linked(cluster: Cluster, observations: Observations) -> frozenset[str] | None:
    logged = [line.text for line in observations.records if line.service in cluster.focus]
    shown = [each for each in cluster.of("Pod", "Workload") if each.app in cluster.focus]
    spoken = "\n".join(
        [*logged, *(value for each in shown for one in each.containers for value in one.environment.values())]
    )
    called = (name for address, name in cluster.addresses.items() if address in spoken)
    return frozenset((*called, *_ID.findall(spoken))) if logged else None


def _about(signal: Signal, ids: frozenset[str]) -> Signal:
    """Return a sign with the record as its evidence that has one of these ids, if any of its records has."""
    text = next((text for text in signal.texts if any(each in text for each in ids)), None) if ids else None
    return signal if text is None else replace(signal, evidence=replace(signal.evidence, quote=quote_of(text)))


def _of_fault(fault: ObjectFault, started_at: datetime) -> Signal:
    """Return a fault of a workload as a sign of trouble in its service."""
    return Signal(
        service=fault.name,
        since=fault.at or started_at,
        strength=fault.strength,
        what=fault.trouble,
        terms=frozenset(terms(f"{fault.cause}\n{fault.quote}")),
        evidence=Evidence(fault.evidence, fault.source, fault.quote, fault.at),
        subject=fault.fault.id,
        kinds=frozenset({fault.fault.kind}),
    )


def _closeness(text: str, names: Iterable[str]) -> dict[str, float]:
    """Return how close each name is to a text, in [0, 1], relative to the nearest; rarer words of a name count more.

    Empty if none is near.
    """
    words = frozenset(terms(text))
    parts_of = {name: frozenset(terms(stem(name))) - _KIND_WORDS for name in dict.fromkeys(names) if name}
    frequency = Counter(
        part for parts in {stem(name): parts for name, parts in parts_of.items()}.values() for part in parts
    )
    raw = {
        name: sum(1 / frequency[part] for part in parts & words) / sum(1 / frequency[part] for part in parts)
        for name, parts in parts_of.items()
        if parts
    }
    best = max(raw.values(), default=0.0)
    return {name: near / best for name, near in raw.items()} if best >= NEAR else {}


_KIND_WORDS = frozenset(
    terms("pod pods deployment service job cronjob node namespace app container default kubernetes")
)


def _log_signals(observations: Observations) -> list[Signal]:
    """Return the signs in logs. What was not logged before the first record was not there, if all records were read.

    If the earliest were not, a message is not new only because it was not seen before, unless there is hardly another.
    """
    by_service: defaultdict[str, list[LogLine]] = defaultdict(list)
    for line in observations.records:
        by_service[line.service].append(line)
    read = {line.service for line in observations.logs}
    long_ago = observations.incident.started_at - LOOK_BACK
    signals: list[Signal] = []
    for service, lines in by_service.items():
        loud = sum(level_named(line.level) in TROUBLE for line in lines)
        is_whole = service in read - observations.cut
        has_usual = not is_whole and (service in read or (len(lines) >= LEAST and loud < MOSTLY * len(lines)))
        first = min(line.at for line in lines)
        known_from = first if has_usual else min(first, long_ago)
        suspect = suspect_from(known_from, observations.incident)
        signals += message_signals(
            grouped(sorted(lines, key=lambda line: line.at)), known_from, suspect, observations.until
        )
    return signals


def _first_sign(signals: Sequence[Signal], started_at: datetime) -> datetime:
    """Return the time from which trouble was SURE. Neither a single weak sign nor a slow rise must move it."""
    clear = [signal for signal in _clear(signals) if not signal.creeps]
    sure = [each for count, each in enumerate(clear, 1) if combined(one.strength for one in clear[:count]) >= SURE]
    return min([started_at, *(signal.since for signal in (sure or clear)[:1])])


TOGETHER = timedelta(minutes=4)  # within which services begin to suffer at about the same time
MAX_SAID = 2_000  # characters compared of a change's diff and detail
ACCUSED = 0.6  # weight of another service's claim that its trouble comes from a service
_GENERIC = frozenset(
    terms(
        "error errors fail failed failure exception request requests response call calls service server client value null "
        "none true false return self this new add fix update change test tests data get set post put import def class "
        "const let var func public private void string int http https src main java app com internal lib py ts go js sql "
        "yaml yml json log info warn debug timeout failing message index id name type list code run start end handle"
    )
)
"""Terms that changes and errors share without being related."""
_ID = re.compile(r"[\w-]{3,64}")
_NUMBER = re.compile(r"(?<![\w.])\d{2,}")
_SLOW = frozenset({Kind.TIMEOUT, Kind.LOAD, Kind.LOCK})
_MEASURED = (
    ((*TIMES, "time ", "times ", "responsetime", "seconds ", "ms ", "cpu", "queue", "lag ", "pending"), _SLOW),
    (("mem ", "memory", "heap", "rss "), frozenset({Kind.MEMORY})),
    (("pool", "threadpool", "connections "), frozenset({Kind.POOL})),
    (("disk", "volume", "storage"), frozenset({Kind.DISK})),
)
"""The kinds of failure that a metric shows, by the words of its name."""


@dataclass(frozen=True, slots=True)
class CauseCandidate:
    """A possible cause in a service. `revision` is None for a cause without a change; then `origin` gives its kind.

    `score` in [0, 1] is its probability among the candidates, `odds` the log-odds behind it. `signals` are the signs
    that followed, the most telling first; `shared` the words that a change and the signs have in common, the rarest
    first; `subject` the external host, the record or the node to blame. `fault` is the one of an object that it is, or that
    a change brought about. `objection` is the argument against it.
    """

    service: str
    origin: Origin
    revision: Revision | None
    signals: tuple[Signal, ...]
    objection: Rebuttal
    features: Mapping[str, float]
    shared: tuple[str, ...] = ()
    subject: str = ""
    fault: ObjectFault | None = None
    odds: float = 0.0
    score: float = 0.0

    @property
    def change(self) -> Change | None:
        return self.revision.change if self.revision else None


@dataclass
class View:
    """The measures that all candidate causes share, computed once."""

    incident_signals: IncidentSignals
    observations: Observations

    @cached_property
    def revisions(self) -> list[Revision]:
        return revisions(
            self.observations.changes,
            {*self.observations.services, *self.incident_signals.by_service, *self.incident_signals.dependencies},
        )

    @cached_property
    def eligible(self) -> list[Revision]:
        """Return the revisions in force before the first sign, with LEEWAY."""
        return [
            each for each in self.revisions if not each.waits and each.at <= self.incident_signals.first_sign + LEEWAY
        ]

    @cached_property
    def origin(self) -> Mapping[str, float]:
        """Return how clearly trouble begins in each service, in [0, 1], relative to the clearest."""
        certainty = {
            service: self._arising(service) * self._in_time(service) * self._place(service)
            for service in dict.fromkeys((*self.incident_signals.by_service, *self.accusations))
        }
        most = max(certainty.values(), default=0.0)
        return {service: weight / most for service, weight in certainty.items()} if most > 0 else {}

    def _place(self, service: str) -> float:
        """Return how close a service is to the text of an incident without one, in [0, 1], or whether it is linked to the
        service of the incident.
        """
        signals = self.incident_signals
        return float(signals.is_linked(service)) if signals.incident.service else signals.place_weight(service)

    def _arising(self, service: str) -> float:
        """Return the certainty, in [0, 1], that trouble begins in a service.

        It follows from the service's own logs, from those of other services that name it, and from metrics, unless a
        callee explains them or the service's logs name another origin.
        """
        messages = [signal for signal in self.trouble(service) if signal.evidence.kind is not EvidenceKind.METRIC]
        own = combined(signal.strength for signal in messages if not self.is_passed_on(signal))
        passed_on = combined(signal.strength for signal in messages if self.is_passed_on(signal))
        measured = combined(signal.strength for signal in self.trouble(service) if signal not in messages)
        unexplained = (1 - self.incident_signals.explained_by(service)[1]) * (1 - passed_on * (1 - own))
        accused = max((signal.strength for signal in self.accusations.get(service, ())), default=0.0)
        return combined([own, measured * unexplained, ACCUSED * accused])

    @cached_property
    def accusations(self) -> Mapping[str, list[Signal]]:
        """Return, by service, the signs in other services that name it."""
        accusers: defaultdict[str, list[Signal]] = defaultdict(list)
        for signal, _, _ in self.signs:
            for name in self.blamed[id(signal)]:
                accusers[name].append(signal)
        return accusers

    def is_passed_on(self, signal: Signal) -> bool:
        """Return whether a sign names another service as its origin."""
        return bool(self.blamed[id(signal)])

    def _in_time(self, service: str) -> float:
        accusing = (signal.since for signal in self.accusations.get(service, ()) if signal.strength >= CLEAR)
        began = self.incident_signals.began(service) or min(accusing, default=None)
        late = max(timedelta(), began - self.incident_signals.first_sign) if began else TOGETHER
        return exp(-late / TOGETHER)

    @cached_property
    def _names(self) -> re.Pattern[str]:
        names = {*self.incident_signals.by_service, *self.incident_signals.dependencies, *self.observations.services}
        names |= {each.name for each in self.incident_signals.faults if each.kind == "app"}
        names |= {callee for called in self.incident_signals.dependencies.values() for callee in called}
        named = filter(None, names.union(self.incident_signals.addresses))
        listed = sorted(map(re.escape, named), key=len, reverse=True)
        return re.compile(rf"(?<![\w-])(?:{'|'.join(listed) or '(?!)'})(?![\w-])")

    @cached_property
    def blamed(self) -> Mapping[int, frozenset[str]]:
        """Return, by the id of each sign, the other services that it names as its origin."""
        names = self.incident_signals.addresses
        return {
            id(signal): frozenset(names.get(each, each) for each in self._names.findall(signal.evidence.quote))
            - {signal.service}
            for signals in self.incident_signals.by_service.values()
            for signal in signals
        }

    def trouble(self, service: str) -> list[Signal]:
        return [signal for signal in self.incident_signals.by_service.get(service, ()) if signal.trouble]

    def above(self, services: Iterable[str]) -> frozenset[str]:
        """Return the direct callers of services, without these services themselves."""
        own = frozenset(services)
        return frozenset(name for each in own for name in callers(each, self.incident_signals.dependencies)) - own

    @cached_property
    def words(self) -> Mapping[int, frozenset[str]]:
        """Return, by index in `eligible`, the terms of each change, without names of services."""
        names = {
            term
            for service in (*self.incident_signals.by_service, *self.incident_signals.dependencies)
            for term in terms(service)
        }
        return {
            place: _terms(_text_of(revision.change)) - names - {term for name in revision.live for term in terms(name)}
            for place, revision in enumerate(self.eligible)
        }

    @cached_property
    def rarity(self) -> Mapping[str, float]:
        counts = Counter(term for words in self.words.values() for term in words)
        many = len(self.words) + 2
        return {term: log(many / count) / log(many) for term, count in counts.items()}

    @cached_property
    def brought(self) -> Mapping[int, frozenset[Kind]]:
        return {place: makes(revision.change) for place, revision in enumerate(self.eligible)}

    @cached_property
    def shown(self) -> frozenset[Kind]:
        """Return the kinds of failure that are clearly shown, but for those of which others are said to be the origin."""
        return frozenset(
            kind
            for signal, _, kinds in self.signs
            if signal.strength >= CLEAR and not self.is_passed_on(signal)
            for kind in kinds
        )

    def fits(self, place: int) -> bool:
        """Return whether a change can make a failure that is clearly shown; True if none is."""
        return not self.shown or not self.shown.isdisjoint(self.brought[place])

    @cached_property
    def kind_rarity(self) -> Mapping[Kind, float]:
        counts = Counter(kind for kinds in self.brought.values() for kind in kinds)
        many = len(self.brought) + 2
        return {kind: log(many / count) / log(many) for kind, count in counts.items()}

    @property
    def logged(self) -> list[tuple[Signal, frozenset[str], frozenset[Kind]]]:
        """Return the signs of trouble but for the faults of objects, which are causes of their own."""
        return [each for each in self.signs if not each[0].kinds]

    @cached_property
    def signs(self) -> list[tuple[Signal, frozenset[str], frozenset[Kind]]]:
        """Return every sign of trouble with its terms and kinds."""
        return [
            (signal, sign_terms(signal), kinds_shown(signal))
            for signals in self.incident_signals.by_service.values()
            for signal in signals
            if signal.trouble
        ]


def _text_of(change: Change) -> str:
    """Return the text of a change: title, detail, paths, and its active lines; empty if it has only inert ones."""
    if is_inert(change):
        return ""
    parts = (change.detail, " ".join(change.files), "\n".join(text for _, text in active_lines(change.diff)))
    return "\n".join([change.title, *(part[:MAX_SAID] for part in parts)])


def _terms(text: str) -> frozenset[str]:
    words = frozenset(term for term in terms(text) if len(term) > 2 and not term.isdigit())
    return (words - _GENERIC) | frozenset(_NUMBER.findall(text))


def sign_terms(signal: Signal) -> frozenset[str]:
    frames = " ".join(f"{frame.symbol} {frame.path}" for frame in signal.frames)
    text = "\n".join([signal.evidence.quote, signal.subject, *signal.texts[:1]])
    return _terms(f"{text[:MAX_SAID]}\n{frames}")


def kinds_shown(signal: Signal) -> frozenset[Kind]:
    """Return the kinds of failure that a sign reports, or that its metric measures."""
    if signal.kinds:
        return signal.kinds
    if signal.evidence.kind is not EvidenceKind.METRIC:
        return kinds_of(signal.evidence.quote)
    return next((kinds for beginnings, kinds in _MEASURED if measures(signal.subject, beginnings)), frozenset[Kind]())


def is_felt(signal: Signal) -> bool:
    """Return whether a sign is felt by those who call: a log message, or a metric of failures, of time or of what is short."""
    is_loud = signal.evidence.kind is not EvidenceKind.METRIC or is_harm(signal.subject)
    return is_loud or (bool(kinds_shown(signal)) and "cpu" not in signal.subject.lower())  # what is in use is not felt
