"""The signs around an incident, by service and in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.model.incident import Incident
from core.ports import LogLine
from core.rca.dependencies import callees, callers, metric_origins
from core.rca.log_lines import grouped
from core.rca.metric_expert import metric_signals
from core.rca.observations import Observations, suspect_from
from core.rca.signals import CLEAR, Signal, combined, message_signals

SURE = 0.9  # combined strength of the signs in the incident's service from which its trouble has begun
SLACK = timedelta(minutes=3)  # by which an effect may seem to precede its cause, because of buckets, scrapes and clocks
STEP_WEIGHT = 0.95  # per call, of a cause further away
CALLER_WEIGHT = 0.35  # of a cause in a caller, which can only cause too much load
UNRELATED_WEIGHT = 0.1  # of a cause in a service that the graph does not connect
UNMAPPED_WEIGHT = 0.5  # of a cause in another service while the graph does not know the incident's own


@dataclass(frozen=True, slots=True)
class IncidentSignals:
    """The signs around an incident. `by_service` maps a service to its signs, `distances` a callee to the calls to it.

    `first_sign` is the start of the trouble in the incident's service, or of the incident if no tool shows it.
    `origins` maps a service to the share of the trouble, in [0, 1], that begins there by its metrics.
    """

    incident: Incident
    dependencies: Mapping[str, tuple[str, ...]]
    by_service: Mapping[str, tuple[Signal, ...]]
    distances: Mapping[str, int]
    first_sign: datetime
    origins: Mapping[str, float]

    def trouble(self, service: str) -> float:
        """Return the combined strength, in [0, 1], of the trouble in a service."""
        return combined(signal for signal in self.by_service.get(service, ()) if signal.trouble)

    def began(self, service: str) -> datetime | None:
        """Return when the first clear trouble in a service began."""
        clear = [
            signal.since for signal in self.by_service.get(service, ()) if signal.trouble and signal.strength >= CLEAR
        ]
        return min(clear, default=None)

    def explained_by(self, service: str) -> tuple[str, float]:
        """Return the callee whose earlier trouble best explains that of `service`, and how well it does, in [0, 1]."""
        began = self.began(service) or self.first_sign
        earlier = [
            (self.trouble(callee) * STEP_WEIGHT ** (distance - 1) * precedes(since, began), callee)
            for callee, distance in callees(service, self.dependencies).items()
            if (since := self.began(callee)) is not None
        ]
        weight, callee = max(earlier, default=(0.0, ""))
        return callee, weight * (1 - self.origins.get(service, 0.0))

    def place_weight(self, service: str) -> float:
        """Return how plausible a cause in this service is for a symptom in the incident's, in [0, 1]."""
        if service == self.incident.service:
            return 1.0
        if service in self.distances:
            return STEP_WEIGHT ** self.distances[service]
        if service in callers(self.incident.service, self.dependencies):
            return CALLER_WEIGHT
        return UNRELATED_WEIGHT if self.incident.service in self.dependencies else UNMAPPED_WEIGHT


def precedes(cause: datetime, effect: datetime) -> float:
    """Return how well the times of a cause and an effect agree: 1 in the right order, 0 if reversed by SLACK."""
    return max(0.0, 1 - max(timedelta(), cause - effect) / SLACK)


def survey(observations: Observations) -> IncidentSignals:
    """Return the signs in logs and metrics, compared with the time before."""
    incident = observations.incident
    signs = [*_log_signals(observations), *metric_signals(observations.series, _metrics_suspect_from(observations))]
    services = dict.fromkeys(signal.service for signal in signs)
    signals = {service: tuple(signal for signal in signs if signal.service == service) for service in services}
    return IncidentSignals(
        incident=incident,
        dependencies=observations.dependencies,
        by_service=signals,
        distances=callees(incident.service, observations.dependencies),
        first_sign=_first_sign(signals.get(incident.service, ()), incident.started_at),
        origins=metric_origins(
            observations.series, observations.dependencies, incident.service, _metrics_suspect_from(observations)
        ),
    )


def _log_signals(observations: Observations) -> list[Signal]:
    first = min((line.at for line in observations.logs), default=observations.until)
    by_service: defaultdict[str, list[LogLine]] = defaultdict(list)
    for line in observations.logs:
        by_service[line.service].append(line)
    signals: list[Signal] = []
    for service, lines in by_service.items():
        # If the earliest records were not read, a message is not new only because it was not seen before.
        known_from = min(line.at for line in lines) if service in observations.cut else first
        suspect = suspect_from(known_from, observations.incident)
        signals += message_signals(
            grouped(sorted(lines, key=lambda line: line.at)), known_from, suspect, observations.until
        )
    return signals


def _metrics_suspect_from(observations: Observations) -> datetime:
    first = min((series.times[0] for series in observations.series if series.times), default=observations.until)
    return suspect_from(first, observations.incident)


def _first_sign(signals: Sequence[Signal], started_at: datetime) -> datetime:
    """Return the time from which trouble was SURE. Neither a single weak sign nor a slow rise must move it."""
    clear = sorted(
        (signal for signal in signals if signal.trouble and signal.strength >= CLEAR and not signal.creeps),
        key=lambda signal: signal.since,
    )
    for index, signal in enumerate(clear):
        if combined(clear[: index + 1]) >= SURE:
            return min(signal.since, started_at)
    return min(clear[0].since, started_at) if clear else started_at
