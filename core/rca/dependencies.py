"""The graph of calls between services, and the service in which a symptom originates, by that graph and metrics alone.

A fault in a callee explains a symptom in its callers.

Latency and failures add up along calls: a caller's loss is its own plus those of its callees, times the calls per
request. So each service has a share in the symptom's excess, which is found by regressing its own excess on the
symptom's, point by point, with ordinary operation as one more point. Movements count and levels hardly do, because
levels drift. The more often ordinary operation shows as large a share by chance, the less a share counts. The origin is
a service with a large share that no callee passes on, along a path of services with such a share.

Alerts name dependencies themselves by what they say does not answer, as in “connection to orders-db refused”.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms, word_parts
from core.model.alert import Alert
from core.model.findings import Evidence, EvidenceKind
from core.model.incident import Incident
from core.ports import Series
from core.rca.failures import UNANSWERED, kinds_of
from core.rca.signals import FAILURES, TIMES, Signal, is_rate, level, measures

MAX_DISTANCE = 3  # most calls between a symptom and its cause


def service_of(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> str:
    """Return the incident's service; if there is none, the first known one in its labels or text; empty if none."""
    if incident.service:
        return incident.service
    services = {*dependencies, *(callee for called in dependencies.values() for callee in called)}
    words = [*incident.labels.values(), *(word.strip(".,:;()'\"") for word in incident.description.split())]
    return next((word for word in words if word in services), "")


def united(graphs: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return the union of the graphs, with the calls of the first graph first."""
    callers = dict.fromkeys(caller for graph in graphs for caller in graph)
    return {
        caller: tuple(dict.fromkeys(callee for graph in graphs for callee in graph.get(caller, ())))
        for caller in callers
    }


def callees(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return every direct or indirect callee of `service`, with the number of calls to it, at least 1."""
    distances: dict[str, int] = {service: 0}
    frontier = [service]
    for distance in range(1, MAX_DISTANCE + 1):
        frontier = [callee for caller in frontier for callee in dependencies.get(caller, ()) if callee not in distances]
        distances |= dict.fromkeys(frontier, distance)
        frontier = list(dict.fromkeys(frontier))
    del distances[service]
    return distances


def callers(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the direct callers of `service`, in order of the configuration."""
    return [caller for caller, called in dependencies.items() if service in called]


def neighbourhood(service: str, dependencies: Mapping[str, tuple[str, ...]], limit: int) -> list[str]:
    """Return the services to read for a symptom in `service`: itself, its callees nearest first, its direct callers."""
    return list(dict.fromkeys([service, *callees(service, dependencies), *callers(service, dependencies)]))[:limit]


CHANCE = 0.05  # share of ordinary periods with as large a share from which it is not a sign
TIE = 1e-3  # of a share, to order services that pass on all of it
_NOTHING: NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Points at equal time steps, by service: `values` of one metric for which higher is worse, and `requests` served.

    A missing value is NaN: nothing was served then. Unknown `requests` are assumed to equal the symptom's.
    """

    values: Mapping[str, NDArray[np.float64]]
    requests: Mapping[str, NDArray[np.float64]]


def origins(
    dependencies: Mapping[str, tuple[str, ...]], symptom: str, usual: Telemetry, now: Telemetry
) -> dict[str, float]:
    """Return the share of trouble that originates in each service that the symptom's calls reach, largest first.

    `usual` is a longer period of ordinary operation at the same steps as `now`; both contain the symptom's values.
    """
    shares = _shares(symptom, usual, now)
    shares[symptom] = 1.0
    reach = _reach(dependencies, symptom, shares)
    by_service: dict[str, float] = {}
    for service, through in reach.items():
        share = shares.get(service, 0.0)
        callees = set(dependencies.get(service, ())) - {service}
        handed_on = sum(min(shares.get(callee, 0.0), share) for callee in callees)
        by_service[service] = through * (max(0.0, share - handed_on) + TIE * share)
    return dict(sorted(by_service.items(), key=lambda item: (-item[1], item[0])))


def _shares(symptom: str, usual: Telemetry, now: Telemetry) -> dict[str, float]:
    """Return each other service's share in the symptom's excess, in [0, 1], reduced if it may be due to chance."""
    excess = _excess(symptom, symptom, usual, now)
    points = np.append(excess, 0.0)  # ordinary operation is a point without excess
    centred = points - points.mean()
    spread = float(centred @ points)
    if spread <= 0.0:
        return {}
    weights = centred[:-1] / spread
    shares: dict[str, float] = {}
    for service in [each for each in now.values if each != symptom]:
        share = float(weights @ _excess(service, symptom, usual, now))
        shares[service] = min(max(share, 0.0), 1.0) * max(
            0.0, 1 - _chance(service, symptom, usual, weights, share) / CHANCE
        )
    return shares


def _chance(service: str, symptom: str, usual: Telemetry, weights: NDArray[np.float64], share: float) -> float:
    """Return how often an ordinary period of this length shows at least this share; 1 if there is none to compare with."""
    if np.isnan(usual.values.get(service, _NOTHING)).all():
        return 1.0
    ordinary = _excess(service, symptom, usual, usual)
    stretches = np.lib.stride_tricks.sliding_window_view(ordinary, len(weights)) @ weights
    return float((stretches >= share).mean())


def _excess(service: str, symptom: str, usual: Telemetry, now: Telemetry) -> NDArray[np.float64]:
    """Return a service's loss beyond its usual median, per request of the symptom's service, by point."""
    values = now.values[service]
    ordinary = usual.values.get(service, _NOTHING)
    ordinary = ordinary[~np.isnan(ordinary)]
    calls = np.ones_like(values)
    served, of_symptom = now.requests.get(service, _NOTHING), now.requests.get(symptom, _NOTHING)
    if not np.isnan(served).all() and not np.isnan(of_symptom).all():
        calls = np.divide(served, of_symptom, out=np.zeros_like(values), where=of_symptom > 0)
    return np.nan_to_num((values - (np.median(ordinary) if ordinary.size else 0.0)) * calls)


def _reach(dependencies: Mapping[str, tuple[str, ...]], symptom: str, shares: Mapping[str, float]) -> dict[str, float]:
    """Return, for each service that the symptom's calls reach, the smallest share on the best path to it."""
    reach = {symptom: 1.0}
    waiting = [symptom]
    while waiting:
        caller = waiting.pop()
        for callee in dependencies.get(caller, ()):
            through = min(reach[caller], shares.get(callee, 0.0))
            if through > reach.get(callee, -1.0):
                reach[callee] = through
                waiting.append(callee)
    return reach


# The words of a metric that counts requests, and not other traffic such as the hits of a cache.
COUNTS_REQUESTS = frozenset("http grpc server request requests total count rate per second minute".split())
MIN_STRETCHES = 2  # times that the examined period must fit into the time before it


def metric_origins(
    series: Sequence[Series], dependencies: Mapping[str, tuple[str, ...]], symptom: str, suspect: datetime
) -> dict[str, float]:
    """Return the share of the symptom's trouble that originates in each service, in [0, 1], by the clearest metric.

    Series with one name and the same times are compared; the latest part, from `suspect` at the earliest, with the time
    before it. A service with an unmeasured callee, which may be the origin, is left out.
    """
    largest: dict[str, float] = {}
    counts = [one for one in series if is_rate(one.metric) and COUNTS_REQUESTS.issuperset(word_parts(one.metric))]
    for own in series:
        if own.service != symptom or not measures(own.metric, TIMES + FAILURES):  # which add up along calls
            continue
        losses = [one for one in series if one.metric == own.metric and one.times == own.times]
        requests = [one for one in counts if one.times == own.times]
        split = sum(at < suspect for at in own.times)
        latest = max(split, len(own.times) - split // MIN_STRETCHES)
        if split > 0 and latest < len(own.times):
            usual, now = (_telemetry(losses, requests, part) for part in (slice(split), slice(latest, None)))
            for service, share in origins(dependencies, symptom, usual, now).items():
                if now.values.keys() >= {service, *dependencies.get(service, ())}:
                    largest[service] = max(share, largest.get(service, 0.0))
    return largest


def _telemetry(losses: Sequence[Series], requests: Sequence[Series], part: slice) -> Telemetry:
    return Telemetry(
        {one.service: level(one)[part].astype(np.float64) for one in losses},
        {one.service: level(one)[part].astype(np.float64) for one in requests},
    )


PLACES = (
    "instance",
    "server",
    "target",
    "host",
    "hostname",
    "node",
)  # labels of what an alert without a service is about
_NAME = re.compile(r"[A-Za-z][\w-]{1,62}")


FIRING = 0.9  # strength of an alert of what others say does not answer


def names_of(other: Incident | Alert) -> tuple[str, ...]:
    """Return the names with which the alerts of others mention what this one is about."""
    places = (other.labels.get(label, "").partition(":")[0].partition(".")[0] for label in PLACES)
    return (other.service,) if other.service else tuple(places)


def unanswering(incident: Incident) -> frozenset[str]:
    """Return the words of an incident's alerts, other than its service, among which are the names of what does not answer."""
    return _unanswering(incident.description) - {incident.service}


@lru_cache(maxsize=1_000)
def _unanswering(text: str) -> frozenset[str]:
    return frozenset(name for line in text.splitlines() if kinds_of(line, UNANSWERED) for name in _NAME.findall(line))


def sign_of(service: str, alert: Alert) -> Signal:
    """Return an alert of another service as a sign of trouble there."""
    title = alert.summary or alert.name
    return Signal(
        service,
        alert.starts_at,
        FIRING,
        f"has the alert “{title}”",
        frozenset(terms(title)),
        Evidence(EvidenceKind.LOG, f"an alert of {service}", title, alert.starts_at, alert.url),
    )
