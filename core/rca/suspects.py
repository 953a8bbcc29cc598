"""Possible causes, weighed against each other: what was changed, and what is no change of ours.

A change is eligible by time and chosen by content: whether the services that it reaches moved after it and not before,
whether the trouble arises there, and whether what it touched is what the new errors, spans and metrics speak of. That
nobody's change did it is a hypothesis with evidence of its own. All compete: the chances of one rise as those of the
others fall (conditional logit, McFadden 1974), by weights that `tests/evaluation/fit_causes.py` fits.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import exp, log, log1p

from core.knowledge.terms import terms
from core.model.incident import EvidenceKind, Origin
from core.ports import Change
from core.rca.dependencies import callers
from core.rca.failures import Kind, brought_about_by, kinds_of
from core.rca.observations import Observations
from core.rca.revisions import Revision, is_setting, revisions
from core.rca.scene import SLACK, UNMAPPED_WEIGHT, UNRELATED_WEIGHT, Scene
from core.rca.signals import CLEAR, Signal, combined

EFFECT = timedelta(minutes=40)  # after a change, in which its signs lose 63 % of their weight
JUST_BEFORE = timedelta(minutes=1)  # of a change, from which a sign may be its effect: clocks and scrapes differ
CREEP_SLACK = timedelta(minutes=12)  # by which the beginning of a slow rise can be made out
TOGETHER = timedelta(minutes=4)  # within which services begin to suffer at once
OPERATED, AT_WORK = 0.6, timedelta(minutes=15)  # evidence of work on a store or host, and how near the first sign
SAME_RECORD = 0.8  # of the records of a message that must name one thing for it to be to blame
MIN_RECORDS = 3  # of a message, without which nothing is said of what they name
MAX_SAID = 2_000  # characters of a change's diff and detail that are compared
USUAL = 0.3  # how much a word counts that is logged on calm days too
ARISES = 0.3  # of the origin's weight, from which trouble arises in a service too
ACCUSED = 0.6  # how much it counts that another service says that its trouble comes from one
PASSED_ON = 0.3  # how much a sign counts for a service that says that it comes from another one
NEAR, AWAY = 0.6, 0.2  # how much a sign in a caller or callee, and one elsewhere, counts for a change, against its own

WEIGHTS: Mapping[str, float] = {
    "own": 2.9,
    "callers": 2.3,
    "callees": 3.5,
    "creep": 2.5,
    "older": -2.0,
    "origin": 1.4,
    "covers": 1.0,
    "words": 2.9,
    "kinds": 3.0,
    "gap": -0.7,
    "setting": 0.8,
    "none": 1.3,
    "evidence": 8.0,
}
"""Log-odds for each feature, all of which are in [0, 1] or the logarithm of a small number."""

UNKNOWN = 1.0  # log-odds of a cause of which nothing was seen: what does not reach it, is not named

_GENERIC = frozenset(
    terms(
        "error errors fail failed failure exception request requests response call calls service server client value null "
        "none true false return self this new add fix update change test tests data get set post put import def class "
        "const let var func public private void string int http https src main java app com internal lib py ts go js sql "
        "yaml yml json log info warn debug timeout failing message index id name type list code run start end handle"
    )
)
"""Terms that changes and errors share without speaking of the same thing."""

_NUMBER = re.compile(r"(?<![\w.])\d{2,}")
_FOREIGN = re.compile(
    r"(?:(?<=//)(?P<url>(?:[a-z0-9-]+\.){1,5}[a-z]{2,16})(?![\w.-])"
    r"|(?<![\w@.$/-])(?!com\.|org\.|net\.|io\.)(?P<host>(?:[a-z0-9-]+\.){1,4}"
    r"(?:com|net|org|io|dev|cloud|app|co|eu|us|uk|de|fr|ai|example))(?![\w(]|\.\w))",
    re.IGNORECASE,
)
"""A host as part of an address, or by itself with a top-level domain that no file name ends in."""
_OURS = re.compile(r"\.(?:internal|local|svc|cluster|lan|intra|corp)\b|localhost", re.IGNORECASE)
_PROVIDER = re.compile(
    r"\b(?:third[- ]party|(?:external|upstream|payment|cloud|sms|e?mail|identity) provider|vendor|status ?page|"
    r"stripe|paypal|adyen|braintree|twilio|sendgrid|mailgun|auth0|okta|cloudflare|fastly|akamai|plaid|"
    r"(?:aws|amazon) \w+|s3|dynamodb|sqs|google (?:maps|cloud|pubsub)|azure|openai|github)\b",
    re.IGNORECASE,
)
_RECORD = re.compile(
    r"(?<![\w.:-])(?!(?:line|port|code|error|errno|status|version|after|than|of|limit|length|size|exceeds|over|in|took)\b)"
    r"([a-z_]{1,24}[-_#=/ ][a-z]{0,4}-?\d{4,18}(?:-\w+)*|\d{6,18}|[0-9a-f]{8}-[0-9a-f-]{20,27})"
    r"(?! ?(?:ms|s|sec\w*|min\w*|[kmg]i?b|bytes|calls|requests|rows|%)\b)(?!\d|[.:]\d)",
    re.IGNORECASE,
)
"""What names one record: a word and a number, a long number, or a UUID; no duration, size or count."""

_NODE = re.compile(r"\b(?:node|host|vm|ip|rack|worker)[-_][a-z0-9][a-z0-9.-]*\b", re.IGNORECASE)
_RATE = re.compile(r"requests?(?:_|\b)|\brps\b|\bqps\b|\btps\b|_rps\b|_qps\b|throughput|traffic|hits", re.IGNORECASE)
_NO_RATE = re.compile(r"error|fail|reject|time|latency|duration|5xx|4xx|size|in_?flight|queue|pending", re.IGNORECASE)
_OPERATION = re.compile(
    r"\b(?:backup|pg_dump|batch|cron(?:job)?|vacuum|compaction|re-?index\w*|fail-?over|drain\w*|reboot\w*|maintenance|"
    r"nightly|snapshot|bulk (?:import|export|load))\b",
    re.IGNORECASE,
)
"""What is done to hosts and stores in operation, which logs mention and do not complain of."""
_STORE = re.compile(
    r"postgres|mysql|mariadb|redis|kafka|rabbit|mongo|elastic|\bdb\b|-db\b|sql|cache|broker", re.IGNORECASE
)
_METRIC_KINDS = (
    (re.compile(r"memory|heap|rss|\bgc", re.IGNORECASE), Kind.MEMORY),
    (re.compile(r"pool|connection", re.IGNORECASE), Kind.POOL),
    (re.compile(r"cpu|queue|lag|pending|backlog|threads", re.IGNORECASE), Kind.LOAD),
    (re.compile(r"latency|duration|response_time|_ms\b", re.IGNORECASE), Kind.TIMEOUT),
    (re.compile(r"disk|iops|volume", re.IGNORECASE), Kind.DISK),
    (re.compile(r"lock|deadlock", re.IGNORECASE), Kind.LOCK),
    (re.compile(r"open_?f|fds?\b|descriptors", re.IGNORECASE), Kind.LIMIT),
)
_CLEAR_OF_OURS = {
    Origin.PLATFORM: frozenset({Kind.DISK, Kind.HOST, Kind.STORE, Kind.PLACEMENT}),
    Origin.EXTERNAL: frozenset({Kind.CERTIFICATE, Kind.QUOTA}),
}
_EXPIRED = re.compile(
    r"expired|expiry|quota|plan\b|licen[cs]e|subscription|(?:daily|monthly|request) limit", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A possible cause in a service. `revision` is None for what is no change of ours; then `origin` says what it is.

    `score` in [0, 1] is its chance among the suspects, `odds` its log-odds before that. `signals` are the signs that
    followed, the most telling first; `shared` the words that a change and the signs have in common, the rarest first;
    `subject` the outside host, the record or the node that is to blame. `objection` says what speaks against it.
    """

    service: str
    origin: Origin
    revision: Revision | None
    signals: tuple[Signal, ...]
    objection: str
    features: Mapping[str, float]
    shared: tuple[str, ...] = ()
    subject: str = ""
    odds: float = 0.0
    score: float = 0.0

    @property
    def change(self) -> Change | None:
        return self.revision.change if self.revision else None


def suspects(scene: Scene, observations: Observations) -> list[Suspect]:
    """Return every possible cause, best first; those with score 0 are ruled out."""
    view = _View(scene, observations)
    eligible = [_changed(view, revision) for revision in view.eligible]
    others = [*_external(view), *_load(view), *_record(view), *_platform(view)]
    others += [each for each in _itself(view) if all(each.service != other.service for other in others)]
    weighed = [
        replace(each, odds=sum(WEIGHTS[name] * value for name, value in each.features.items()) + view.nearness(each))
        for each in (*eligible, *others)
    ]
    most = max([UNKNOWN, *(each.odds for each in weighed)])
    total = exp(UNKNOWN - most) + sum(exp(each.odds - most) for each in weighed)
    ranked = [replace(each, score=exp(each.odds - most) / total) for each in weighed]
    ruled_out = [_ruled_out(view, revision) for revision in view.revisions if revision not in view.eligible]
    return [
        *sorted(ranked, key=lambda suspect: (-suspect.score, suspect.change is None, suspect.service)),
        *ruled_out,
    ]


def first_failing(scene: Scene, observations: Observations) -> str:
    """Return the service in which trouble arises most clearly and first; empty where none shows."""
    origin = _View(scene, observations).origin
    return max(origin, key=lambda service: origin[service], default="")


@dataclass
class _View:
    """What all suspects are judged by, worked out once."""

    scene: Scene
    observations: Observations

    @cached_property
    def revisions(self) -> list[Revision]:
        names = {*self.observations.services, *self.scene.signals, *self.scene.dependencies}
        return revisions(self.observations.changes, names)

    @cached_property
    def eligible(self) -> list[Revision]:
        """Those in force before the first sign, with SLACK."""
        return [each for each in self.revisions if not each.waits and each.at <= self.scene.first_sign + SLACK]

    @cached_property
    def origin(self) -> Mapping[str, float]:
        """How far trouble arises in each service, against the one where it does most, in [0, 1]."""
        found = {
            service: self._arising(service) * self._in_time(service)
            for service in dict.fromkeys((*self.scene.signals, *self._accusations))
        }
        most = max(found.values(), default=0.0)
        return {service: weight / most for service, weight in found.items()} if most > 0 else {}

    def _arising(self, service: str) -> float:
        """How sure it is that trouble arises in a service, in [0, 1].

        By what it says of itself, by what its callers say of it, and by metrics, as far as no callee explains them and it
        does not say that its trouble comes from elsewhere.
        """
        said = [signal for signal in self.trouble(service) if signal.evidence.kind is not EvidenceKind.METRIC]
        own = combined(signal for signal in said if not self.is_passed_on(signal))
        passed_on = combined(signal for signal in said if self.is_passed_on(signal))
        measured = combined(signal for signal in self.trouble(service) if signal not in said)
        unexplained = (1 - self.scene.explained_by(service)[1]) * (1 - passed_on * (1 - own))
        accused = max((signal.strength for signal in self._accusations.get(service, ())), default=0.0)
        return combined_weight([own, measured * unexplained, ACCUSED * accused])

    @cached_property
    def _accusations(self) -> Mapping[str, list[Signal]]:
        """Service → the signs elsewhere that name it."""
        found: defaultdict[str, list[Signal]] = defaultdict(list)
        for signals in self.scene.signals.values():
            for signal in signals:
                if signal.trouble:
                    for name in self.blamed[id(signal)]:
                        found[name].append(signal)
        return found

    def arises(self, signal: Signal) -> float:
        """How far trouble arises where a sign is, or where it says that it comes from, in [0, 1]."""
        return max(self.origin.get(name, 0.0) for name in (signal.service, *self.blamed[id(signal)]))

    def is_passed_on(self, signal: Signal) -> bool:
        """Whether a sign says that it comes from another service."""
        return bool(self.blamed[id(signal)])

    def _in_time(self, service: str) -> float:
        accusing = (signal.since for signal in self._accusations.get(service, ()) if signal.strength >= CLEAR)
        began = self.scene.began(service) or min(accusing, default=None)
        late = max(timedelta(), began - self.scene.first_sign) if began else TOGETHER
        return exp(-late / TOGETHER)

    def nearness(self, suspect: Suspect) -> float:
        """Return what a suspect loses, in log-odds, if nothing connects its service with that of the incident."""
        if not suspect.service:
            return 0.0
        weight = self.scene.place_weight(suspect.service)
        return log(weight) if weight in (UNRELATED_WEIGHT, UNMAPPED_WEIGHT) else 0.0

    @cached_property
    def _names(self) -> re.Pattern[str]:
        names = {*self.scene.signals, *self.scene.dependencies, *self.observations.services}
        names |= {callee for called in self.scene.dependencies.values() for callee in called}
        listed = sorted((re.escape(name) for name in names if name), key=len, reverse=True)
        return re.compile(rf"(?<![\w-])(?:{'|'.join(listed) or '(?!)'})(?![\w-])")

    @cached_property
    def blamed(self) -> Mapping[int, frozenset[str]]:
        """The id of each sign → the other services that it names as where it comes from."""
        return {
            id(signal): frozenset(self._names.findall(signal.evidence.quote)) - {signal.service}
            for signals in self.scene.signals.values()
            for signal in signals
        }

    def busier(self, service: str) -> float:
        """How sure it is that a service gets more requests than usual, in [0, 1]."""
        return max(
            (each.strength for each in self.scene.signals.get(service, ()) if _is_more_requests(each)), default=0.0
        )

    def trouble(self, service: str) -> list[Signal]:
        return [signal for signal in self.scene.signals.get(service, ()) if signal.trouble]

    def around(self, services: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """The direct callers and callees of services, without those themselves."""
        own = frozenset(services)
        above = frozenset(name for each in own for name in callers(each, self.scene.dependencies)) - own
        below = frozenset(name for each in own for name in self.scene.dependencies.get(each, ())) - own
        return above, below

    @cached_property
    def words(self) -> Mapping[int, frozenset[str]]:
        """Place among the eligible → the terms of what was changed; names of services do not count."""
        names = {term for service in (*self.scene.signals, *self.scene.dependencies) for term in terms(service)}
        return {
            place: _terms(_said(revision)) - names - {term for name in revision.live for term in terms(name)}
            for place, revision in enumerate(self.eligible)
        }

    @cached_property
    def rarity(self) -> Mapping[str, float]:
        counts = Counter(term for said in self.words.values() for term in said)
        many = len(self.words) + 2
        return {term: log(many / count) / log(many) for term, count in counts.items()}

    @cached_property
    def brought(self) -> Mapping[int, frozenset[Kind]]:
        return {place: brought_about_by(_said(revision)) for place, revision in enumerate(self.eligible)}

    @cached_property
    def kind_rarity(self) -> Mapping[Kind, float]:
        counts = Counter(kind for kinds in self.brought.values() for kind in kinds)
        many = len(self.brought) + 2
        return {kind: log(many / count) / log(many) for kind, count in counts.items()}

    @cached_property
    def signs(self) -> list[tuple[Signal, frozenset[str], frozenset[Kind]]]:
        """Every sign of trouble with its terms and kinds."""
        return [
            (signal, _sign_terms(signal), _sign_kinds(signal))
            for signals in self.scene.signals.values()
            for signal in signals
            if signal.trouble
        ]


# Changes.


def _changed(view: _View, revision: Revision) -> Suspect:
    scene, place = view.scene, view.eligible.index(revision)
    services = tuple(revision.live)
    above, below = view.around(services)
    own, followed = _effect(view, revision.live)
    upper, followed_above = _effect(view, dict.fromkeys(above, revision.at), blaming=frozenset(services))
    lower, followed_below = _loaded(view, revision, below)
    older = max((_older(view, service, at) for service, at in revision.live.items()), default=0.0)
    shared = _shared(view, place, services, above | below)
    kinds = _kinds(view, place, services, above | below)
    gap = scene.first_sign - revision.at
    origin = max((view.origin.get(service, 0.0) for service in services), default=0.0)
    features = {
        "own": own,
        "callers": max(0.0, upper - own),
        "callees": lower,
        "creep": _creeps_since(view, revision),
        "older": max(0.0, older - CLEAR) / (1 - CLEAR),
        "origin": origin,
        "covers": sum(view.origin.get(service, 0.0) for service in services) / max(sum(view.origin.values()), 1e-9),
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
        followed or followed_above or followed_below,
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
    view: _View, live: Mapping[str, datetime], blaming: frozenset[str] = frozenset()
) -> tuple[float, tuple[Signal, ...]]:
    """How clearly the services moved after a time and soon, in [0, 1], and the signs of it, the most telling first.

    What is said to come from another service counts little, or with `blaming`, only what is said to come from one of those.
    """
    weighed: list[tuple[float, Signal]] = []
    for service, at in live.items():
        for signal in view.trouble(service):
            blamed = view.blamed[id(signal)]
            if signal.since < at - JUST_BEFORE or (blaming and not blamed & blaming):
                continue
            passed_on = not blaming and view.is_passed_on(signal)
            delay = max(timedelta(), signal.since - at)
            weighed.append((signal.strength * exp(-delay / EFFECT) * (PASSED_ON if passed_on else 1.0), signal))
    weighed.sort(key=lambda each: (-each[0], each[1].since))
    return combined_weight([weight for weight, _ in weighed[:3]]), tuple(signal for _, signal in weighed)


def _most_telling(signals: Iterable[Signal], shared: frozenset[str]) -> tuple[Signal, ...]:
    """Those that speak of what was changed first, and of the others those that a log tells in words."""
    return tuple(
        sorted(
            signals,
            key=lambda signal: (
                not shared & _sign_terms(signal),
                signal.strength < CLEAR,
                signal.evidence.kind is not EvidenceKind.LOG,
            ),
        )
    )


def combined_weight(weights: Sequence[float]) -> float:
    left = 1.0
    for weight in weights:
        left *= 1 - min(weight, 1.0)
    return 1 - left


def _loaded(view: _View, revision: Revision, below: Iterable[str]) -> tuple[float, tuple[Signal, ...]]:
    """How clearly callees suffer after a change because their caller asks more of them, in [0, 1]."""
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


def _older(view: _View, service: str, at: datetime) -> float:
    """How sure it is that a service was in trouble of its own before a change, in [0, 1]."""
    earlier = (
        signal.strength
        for signal in view.trouble(service)
        if signal.since < at - (CREEP_SLACK if signal.creeps else SLACK) and not view.is_passed_on(signal)
    )
    return max(earlier, default=0.0)


def _creeps_since(view: _View, revision: Revision) -> float:
    """How clearly a metric of its services began to rise slowly when a change came into force, in [0, 1]."""
    return max(
        (
            signal.strength * exp(-abs(signal.since - at) / CREEP_SLACK)
            for service, at in revision.live.items()
            for signal in view.trouble(service)
            if signal.creeps
        ),
        default=0.0,
    )


def _shared(view: _View, place: int, services: Sequence[str], near: frozenset[str]) -> dict[str, float]:
    """The terms that a change and the signs have in common, with how much each says."""
    said = view.words[place]
    found: dict[str, float] = {}
    for signal, sign_terms, _ in view.signs:
        closeness = 1.0 if signal.service in services else NEAR if signal.service in near else AWAY
        for term in said & sign_terms:
            usual = USUAL if term in view.scene.usual_terms else 1.0
            found[term] = max(found.get(term, 0.0), view.rarity[term] * closeness * signal.strength * usual)
    return found


def _kinds(view: _View, place: int, services: Sequence[str], near: frozenset[str]) -> float:
    """How far the change can have brought about failures of the kinds that are seen, in [0, 1], rare ones counting more."""
    weights: dict[Kind, float] = {}
    for signal, _, kinds in view.signs:
        closeness = 1.0 if signal.service in services else NEAR if signal.service in near else AWAY
        for kind in kinds:
            weights[kind] = max(weights.get(kind, 0.0), closeness * signal.strength)
    brought = view.brought[place]
    total = sum(weights.values())
    return (
        sum(weight * view.kind_rarity[kind] for kind, weight in weights.items() if kind in brought) / total
        if total
        else 0.0
    )


def _said(revision: Revision) -> str:
    """What a change says of what it changes: its texts, its paths, and the lines that it takes away or adds."""
    parts: list[str] = []
    for change in revision.content:
        moved = "\n".join(
            line[1:] for line in change.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
        )
        parts += [change.title, change.detail[:MAX_SAID], " ".join(change.files)[:MAX_SAID], moved[:MAX_SAID]]
    return "\n".join(parts)


def _terms(text: str) -> frozenset[str]:
    words = frozenset(term for term in terms(text) if len(term) > 2 and not term.isdigit())
    return (words - _GENERIC) | frozenset(_NUMBER.findall(text))


def _sign_terms(signal: Signal) -> frozenset[str]:
    frames = " ".join(f"{frame.symbol} {frame.path}" for frame in signal.frames)
    said = "\n".join([signal.evidence.quote, signal.subject, *signal.texts[:1]])
    return _terms(f"{said[:MAX_SAID]}\n{frames}")


def _sign_kinds(signal: Signal) -> frozenset[Kind]:
    if signal.evidence.kind is EvidenceKind.METRIC:
        return frozenset(kind for pattern, kind in _METRIC_KINDS if pattern.search(signal.subject))
    return kinds_of(signal.evidence.quote)


def _objection(view: _View, revision: Revision, features: Mapping[str, float]) -> str:
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


def _ruled_out(view: _View, revision: Revision) -> Suspect:
    late = revision.at - view.scene.first_sign
    why = (
        "it was not deployed before the first sign"
        if revision.waits
        else f"it came {_minutes(late)} after the first sign"
    )
    service = next(iter(revision.live), revision.change.service)
    return Suspect(service, Origin.CHANGE, revision, (), why, {})


# What is no change of ours.


def _other(service: str, origin: Origin, evidence: float, signals: Sequence[Signal], subject: str = "") -> Suspect:
    features = {"none": 1.0, "evidence": evidence}
    return Suspect(service, origin, None, tuple(signals), "its signs are weak", features, subject=subject)


def _external(view: _View) -> list[Suspect]:
    """Errors that name a host that is not ours, or say that something of a provider's expired or is used up."""
    found: defaultdict[str, list[Signal]] = defaultdict(list)
    named: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for signal, _, kinds in view.signs:
        text = "\n".join([signal.evidence.quote, *signal.texts])
        named_there = (match["url"] or match["host"] for match in _FOREIGN.finditer(text))
        hosts = [each for each in named_there if _is_foreign(each, view)]
        ran_out = bool(kinds & _CLEAR_OF_OURS[Origin.EXTERNAL]) and _EXPIRED.search(text) is not None
        if hosts or ran_out or _PROVIDER.search(text):
            found[signal.service].append(signal)
            named[signal.service].update(hosts)
    return [
        _other(
            service,
            Origin.EXTERNAL,
            _weight(view, signals),
            _strongest(signals),
            max(named[service], key=lambda host: named[service][host], default=""),
        )
        for service, signals in found.items()
    ]


def _weight(view: _View, signals: Iterable[Signal]) -> float:
    """The strength of signs together, each as far as trouble arises where it points to, in [0, 1]."""
    return combined_weight([signal.strength * view.arises(signal) for signal in signals])


def _is_foreign(host: str, view: _View) -> bool:
    if _OURS.search(host) or _STORE.search(host):
        return False
    parts = set(host.lower().split("."))
    return not parts & {service.lower() for service in (*view.scene.signals, *view.scene.dependencies)}


def _load(view: _View) -> list[Suspect]:
    """More requests than usual in most services, from before the first sign."""
    measured = {one.service for one in view.observations.series if _is_rate(one.metric)}
    risen = [
        signal
        for signals in view.scene.signals.values()
        for signal in signals
        if _is_more_requests(signal) and signal.since <= view.scene.first_sign + SLACK
    ]
    services = {signal.service for signal in risen}
    if not services:
        return []
    service = max(view.origin, key=lambda name: view.origin[name], default=view.scene.incident.service)
    share = len(services) / len(measured)
    strength = max(signal.strength for signal in risen)
    return [
        _other(
            service,
            Origin.LOAD,
            strength * share,
            [*sorted(risen, key=lambda signal: -signal.strength), *_strongest(view.trouble(service))],
        )
    ]


def _is_rate(metric: str) -> bool:
    return _RATE.search(metric) is not None and _NO_RATE.search(metric) is None


def _is_more_requests(signal: Signal) -> bool:
    return signal.evidence.kind is EvidenceKind.METRIC and signal.rises and _is_rate(signal.subject)


def _record(view: _View) -> list[Suspect]:
    """Errors that are all about one record, tenant or message."""
    found: list[Suspect] = []
    for signal, _, _ in view.signs:
        if signal.evidence.kind is not EvidenceKind.LOG or len(signal.texts) < MIN_RECORDS:
            continue
        named = Counter(name.strip() for text in signal.texts for name in set(_RECORD.findall(text.partition("\n")[0])))
        name, count = max(named.items(), key=lambda item: item[1], default=("", 0))
        if count >= SAME_RECORD * len(signal.texts):
            evidence = _weight(view, [signal]) * count / len(signal.texts)
            found.append(_other(signal.service, Origin.DATA, evidence, [signal], name))
    return found


def _platform(view: _View) -> list[Suspect]:
    """A disk, a store or a node that fails, or services that begin to suffer at once and have nothing to do with each other."""
    wanted = _CLEAR_OF_OURS[Origin.PLATFORM]
    failing: defaultdict[str, list[Signal]] = defaultdict(list)
    for signal, _, kinds in view.signs:
        if kinds & wanted:
            failing[min(view.blamed[id(signal)], default=signal.service)].append(signal)
    found = [
        _other(service, Origin.PLATFORM, _weight(view, signals), _strongest(signals), service)
        for service, signals in failing.items()
    ]
    found += [
        _other(service, Origin.PLATFORM, OPERATED * view.origin.get(service, 0.0), [signal], service)
        for service, signals in view.scene.signals.items()
        for signal in signals
        if not signal.trouble
        and _OPERATION.search(signal.evidence.quote)
        and abs(signal.since - view.scene.first_sign) <= AT_WORK
    ][:1]
    together = _together(view)
    if len(together) > 2:
        found = [each for each in found if each.service not in together]
        signals = [
            _strongest(signal for signal in view.trouble(service) if not view.is_passed_on(signal))[0]
            for service in together
        ]
        hosts = Counter(host for signal in signals for host in set(_NODE.findall(signal.evidence.quote)))
        host = max(hosts, key=lambda name: hosts[name], default="")
        found.append(_other(together[0], Origin.PLATFORM, 1 - 0.6 ** (len(together) - 1), signals, host))
    return found


def _together(view: _View) -> list[str]:
    """Services in which trouble of their own began at once, in order of when."""
    began = {
        service: min(own)
        for service, weight in view.origin.items()
        if weight > ARISES
        and (own := [signal.since for signal in view.trouble(service) if not view.is_passed_on(signal)])
    }
    first = min(began.values(), default=view.scene.first_sign)
    return sorted((each for each, at in began.items() if at - first <= TOGETHER), key=lambda each: began[each])


def _itself(view: _View) -> list[Suspect]:
    """The services in which trouble arises, for whatever reason."""
    found: list[Suspect] = []
    for service, weight in view.origin.items():
        signals = _strongest(view.trouble(service))
        telling = [signal for signal in signals if _beyond_the_symptom(view.scene, signal)]
        if telling and weight > ARISES:
            evidence = 0.3 * weight * max(signal.strength for signal in telling)
            found.append(_other(service, Origin.SERVICE, evidence, signals))
    return found


def _beyond_the_symptom(scene: Scene, signal: Signal) -> bool:
    """In the incident's own service a metric that moved is the symptom; only what its log or its spans say is more."""
    return signal.service != scene.incident.service or signal.evidence.kind is not EvidenceKind.METRIC


def _strongest(signals: Iterable[Signal]) -> list[Signal]:
    """Those that are clear before the others, of them what a log says before what was measured, the strongest first."""
    return sorted(
        signals,
        key=lambda signal: (
            signal.strength < CLEAR,
            signal.evidence.kind is not EvidenceKind.LOG,
            -signal.strength,
            signal.since,
        ),
    )


def _minutes(gap: timedelta) -> str:
    minutes = round(gap.total_seconds() / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
