"""Silences and maintenance windows: which alerts nobody wants to be told of, and how long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.model.conversation import PUBLIC
from core.model.incident import Alert, AlertStatus, Incident, Silenced
from core.model.team import Team

MAINTENANCE = "maintenance"  # what silences an incident when people do, and no monitoring system
MAX_PATTERN = 500  # characters of a regular expression that is tried
GROUP = re.compile(r"[(\\]")  # what they repeat cannot be told without parsing them
REPEAT = re.compile(r"[*+?{]")
MAX_REPEATS = 3  # in one alternative: the time grows with the length of a value to the power of these

Facts = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a label, as Alertmanager's. A label that is not there is empty.

    `values` are those of which one must be there (`is_equal`) or none may be. With `is_pattern` they are regular
    expressions for the whole value; one with groups, escapes or many repetitions is not tried: then nothing is silenced.
    """

    name: str
    values: frozenset[str]
    is_equal: bool = True
    is_pattern: bool = False

    def matches(self, facts: Facts) -> bool:
        given = facts.get(self.name) or frozenset({""})
        if not self.is_pattern:
            return self.values.isdisjoint(given) is not self.is_equal
        patterns = [pattern for pattern in self.values if _is_quick(pattern)]
        if len(patterns) < len(self.values):
            return False
        try:
            found = any(re.fullmatch(pattern, value) for pattern in patterns for value in given)
        except re.error:
            return False
        return found is self.is_equal


def _is_quick(pattern: str) -> bool:
    """Return whether an expression that somebody else wrote takes a bounded time on any value."""
    if len(pattern) > MAX_PATTERN or GROUP.search(pattern):
        return False
    alternatives = pattern.split("|") if "[" not in pattern else [pattern]  # in brackets, a bar parts nothing
    return all(len(REPEAT.findall(each)) <= MAX_REPEATS for each in alternatives)


@dataclass(frozen=True, slots=True)
class Silence:
    """From `starts_at` to `ends_at` (exclusive) nobody wants to be told of alerts that meet all of `matchers`.

    `by` names the system that keeps it, `reason` says why and `author` who wants it; both are untrusted. `readers` are
    who may know of it.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    by: str = MAINTENANCE
    reason: str = ""
    author: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})

    def covers(self, facts: Facts, at: datetime) -> bool:
        in_time = self.starts_at <= at < self.ends_at
        return in_time and bool(self.matchers) and all(matcher.matches(facts) for matcher in self.matchers)

    @property
    def told(self) -> str:
        """Return the matchers of the silence, in one line."""
        return ", ".join(f"{each.name} {' or '.join(sorted(each.values))}" for each in self.matchers)


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """A maintenance window that comes back every week, on the `days` (Monday is 0) in `zone`.

    It begins at `begins` and ends at `ends`, on the next day where that is not later.
    """

    matchers: tuple[Matcher, ...]
    days: frozenset[int]
    begins: time
    ends: time
    zone: ZoneInfo
    reason: str = ""

    def occurrences(self, at: datetime) -> list[Silence]:
        """Those that may cover `at`: of its day and of the day before."""
        today = at.astimezone(self.zone).date()
        found: list[Silence] = []
        for day in (today - timedelta(days=1), today):
            if day.weekday() in self.days:
                until = day if self.ends > self.begins else day + timedelta(days=1)
                begins = datetime.combine(day, self.begins, self.zone)
                ends = datetime.combine(until, self.ends, self.zone)
                found.append(Silence(f"weekly:{begins.isoformat()}", self.matchers, begins, ends, reason=self.reason))
        return found


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The maintenance windows of plumbline.yaml."""

    once: tuple[Silence, ...] = ()
    weekly: tuple[WeeklyWindow, ...] = ()

    def at(self, now: datetime) -> list[Silence]:
        """Those that may be open at `now`."""
        return [*self.once, *(each for window in self.weekly for each in window.occurrences(now))]


def alert_facts(alert: Alert, source: str, teams: Sequence[Team]) -> Facts:
    """Return the facts that silences and routes may match: an alert's labels, and our `source`, `service`,
    `severity` and `team`.
    """
    ours = {
        "source": {source},
        "service": {alert.service},
        "severity": {str(alert.severity)},
        "team": {team.id for team in teams if alert.service in team.services},
    }
    labels = {name: {value} for name, value in alert.labels.items()}
    return {name: frozenset(labels.get(name, set()) | ours.get(name, set())) for name in labels | ours}


def silenced_now(
    incident: Incident, silences: Iterable[Silence], teams: Sequence[Team], at: datetime
) -> Silenced | None:
    """Why an incident is not to be posted at this time: silences cover each of its alerts that fire.

    None where one that fires is not covered, or is not known because it was only counted. It lasts until the first of
    the silences ends.
    """
    known = list(silences)
    firing = [alert for alert in incident.alerts if alert.status is AlertStatus.FIRING]
    if not firing or incident.also_firing or incident.unseen_count:
        return None
    covering: list[Silence] = []
    for alert in firing:
        facts = alert_facts(alert, incident.source, teams)
        silence = max((each for each in known if each.covers(facts, at)), key=lambda each: each.ends_at, default=None)
        if silence is None:
            return None
        covering.append(silence)
    first = min(covering, key=lambda silence: silence.ends_at)
    reason = first.reason if PUBLIC in first.readers else ""  # what was said in private is told nobody else
    return Silenced(first.by, reason or first.told, first.ends_at)
