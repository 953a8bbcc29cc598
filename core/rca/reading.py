"""The data that was read around a time. A sentence about what did not happen rests on it, and names it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from core.rca.observations import CHANGES, LOGS, METRICS, Observations

EDGE = timedelta(minutes=10)  # at most, between the ends of a time span and the data that covers it


@dataclass(frozen=True, slots=True)
class ReadingCoverage:
    """The services whose data cover a time span, by kind of data; in words, what does not cover it, and why."""

    read: Mapping[str, str]
    unread: tuple[str, ...]

    def without(self, trouble: str) -> str:
        """Return “{trouble} in the logs of api after it; not checked: metrics of api”, or only what was not checked."""
        if not self.read:
            return self.caveat.removeprefix("; ")
        same = len(set(self.read.values())) == 1
        kinds = {" and ".join(self.read): next(iter(self.read.values()))} if same else self.read
        places = " and ".join(f"the {kind} of {names}" for kind, names in kinds.items())
        return f"{trouble} in {places} after it{self.caveat}"

    @property
    def caveat(self) -> str:
        """Return “; not checked: metrics of api”; empty if everything was read."""
        return f"; not checked: {', '.join(self.unread)}" if self.unread else ""


@dataclass
class Coverage:
    """The time spans that the logs and all metrics of each service cover."""

    observations: Observations

    @cached_property
    def _spans(self) -> Mapping[str, Mapping[str, tuple[datetime, datetime]]]:
        logs: dict[str, tuple[datetime, datetime]] = {}
        for line in self.observations.logs:
            first, last = logs.get(line.service, (line.at, line.at))
            logs[line.service] = (min(first, line.at), max(last, line.at))
        metrics: dict[str, tuple[datetime, datetime]] = {}
        for one in self.observations.series:
            if one.times:
                first, last = metrics.get(one.service, (one.times[0], one.times[-1]))
                metrics[one.service] = (max(first, one.times[0]), min(last, one.times[-1]))
        return {LOGS: logs, METRICS: metrics}

    def read(self, kind: str, services: Collection[str], since: datetime) -> set[str]:
        """Return the services of which a kind of data was read from `since` to the start of the incident."""
        until = max(since, self.observations.incident.started_at - EDGE)
        spans = self._spans[kind]
        return {
            each for each in services if each in spans and spans[each][0] <= since + EDGE and spans[each][1] >= until
        }

    def reading(self, services: Sequence[str], since: datetime) -> ReadingCoverage:
        """Return what was read of services from `since` to the start of the incident."""
        read: dict[str, str] = {}
        unread: list[str] = []
        for kind in (LOGS, METRICS):
            covered = self.read(kind, services, since)
            if covered:
                read[kind] = ", ".join(service for service in services if service in covered)
            missing = [service for service in services if service not in covered]
            if missing or not services:
                unread.append(f"{kind} of {', '.join(missing) or 'any service'}")
            unread += [text for text in self.observations.unread(kind) if text not in unread]
        return ReadingCoverage(read, tuple(unread))


def no_change(observations: Observations) -> str:
    """Return “no change of ours fits”, as far as changes were read."""
    if unread := observations.unread(CHANGES):
        return f"changes were not checked, or not all ({', '.join(unread)})"
    return "no change of ours fits" if observations.changes else "no change was found"
