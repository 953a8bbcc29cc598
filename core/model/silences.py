"""Routes, silences and maintenance windows: where alerts are posted, which are not, and for how long.

Channel settings that people set by command: quiet hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from core.model.alert import NO_ADOPTION, Adoption, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import PUBLIC, Channel, PersonName, Place, Platform, Words
from core.model.errors import ConfigurationError, MalformedInput
from core.model.incident import Incident, Silenced
from core.model.team import Route, Team
from core.model.text import name_key

MAINTENANCE = "maintenance"  # the source of silences that people declare
MUTE = "a mute in its thread"  # the source of silences of one alert
ALERT_GROUP = "alert group"  # the fact by which an alert is muted; no label's name has a space
MAX_PATTERN = 500  # characters of a regular expression
GROUP = frozenset("(\\")  # rejected, because their run time cannot be bounded without parsing
REPEAT = re.compile(r"[*+?{]")
MAX_REPEATS = 3  # per alternative: run time grows with the value's length to this power

Facts = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label, as in Alertmanager. A missing label is empty.

    One of `values` must be present (`is_equal`), or none may be. With `is_pattern`, they are regular expressions for
    the whole value; expressions with groups, escapes or many repetitions never match, so they silence nothing.
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
            is_match = any(re.fullmatch(pattern, value) for pattern in patterns for value in given)
        except re.error:
            return False
        return is_match is self.is_equal


def _is_quick(pattern: str) -> bool:
    """Return whether an untrusted expression has a bounded run time on any value."""
    if len(pattern) > MAX_PATTERN or not GROUP.isdisjoint(pattern):
        return False
    alternatives = pattern.split("|") if "[" not in pattern else [pattern]  # a bar in brackets is literal
    return all(len(REPEAT.findall(each)) <= MAX_REPEATS for each in alternatives)


@dataclass(frozen=True, slots=True)
class Silence:
    """A silence of the alerts that match all of `matchers`, from `starts_at` to `ends_at` (exclusive).

    `by` names the system that keeps it, `reason` and `author` are untrusted. `readers` may know of it. `title` names what
    is silenced, empty if the matchers say it. The end is told at `place`, if there is one.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    by: str = MAINTENANCE
    reason: Words = ""
    author: PersonName = ""
    readers: frozenset[str] = frozenset({PUBLIC})
    title: Words = ""
    place: Place | None = None

    def covers(self, facts: Facts, at: datetime) -> bool:
        in_time = self.starts_at <= at < self.ends_at
        return in_time and bool(self.matchers) and all(matcher.matches(facts) for matcher in self.matchers)

    @property
    def description(self) -> str:
        """Return what is silenced in one line."""
        return self.title or ", ".join(f"{each.name} {' or '.join(sorted(each.values))}" for each in self.matchers)


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """A weekly maintenance window on the `days` (Monday is 0) in `zone`, from `begins` to `ends`.

    If `ends` is not later than `begins`, the window ends on the next day.
    """

    matchers: tuple[Matcher, ...]
    days: frozenset[int]
    begins: time
    ends: time
    zone: ZoneInfo
    reason: str = ""

    def occurrences(self, at: datetime) -> list[Silence]:
        """Return the occurrences that may cover `at`: those of its day and of the day before."""
        today = at.astimezone(self.zone).date()
        silences: list[Silence] = []
        for day in (today - timedelta(days=1), today):
            if day.weekday() in self.days:
                until = day if self.ends > self.begins else day + timedelta(days=1)
                begins = datetime.combine(day, self.begins, self.zone)
                ends = datetime.combine(until, self.ends, self.zone)
                silences.append(
                    Silence(f"weekly:{begins.isoformat()}", self.matchers, begins, ends, reason=self.reason)
                )
        return silences


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The maintenance windows of plumbline.yaml."""

    once: tuple[Silence, ...] = ()
    weekly: tuple[WeeklyWindow, ...] = ()

    def at(self, now: datetime) -> list[Silence]:
        """Return the windows that may be open at `now`."""
        return [*self.once, *(each for window in self.weekly for each in window.occurrences(now))]


def alert_facts(alert: Alert, source: str, teams: Sequence[Team]) -> Facts:
    """Return the facts that silences and routes match: the alert's labels, and `source`, `service`, `severity` and
    `team`.
    """
    ours = {
        "source": {source},
        "service": {alert.service},
        "severity": {str(alert.severity)},
        "team": {team.id for team in teams if name_key(alert.service) in map(name_key, team.services)},
    }
    labels = {name: {value} for name, value in alert.labels.items()}
    return {name: frozenset(labels.get(name, set()) | ours.get(name, set())) for name in labels | ours}


def silenced_now(
    incident: Incident, silences: Iterable[Silence], teams: Sequence[Team], at: datetime
) -> Silenced | None:
    """Return the reason not to post an incident now: silences cover all of its firing alerts.

    None if a firing alert is not covered, or was only counted. The result lasts until the first of the silences ends.
    """
    candidates = list(silences)
    firing = [alert for alert in incident.alerts if alert.status is AlertStatus.FIRING]
    if not firing or incident.also_firing or incident.unseen_count:
        return None
    covering: list[Silence] = []
    for alert in firing:
        facts = {**alert_facts(alert, incident.source, teams), ALERT_GROUP: frozenset({incident.group_key})}
        silence = max(
            (each for each in candidates if each.covers(facts, at)), key=lambda each: each.ends_at, default=None
        )
        if silence is None:
            return None
        covering.append(silence)
    first = min(covering, key=lambda silence: silence.ends_at)
    if not first.reason or PUBLIC not in first.readers:  # a private reason is not repeated elsewhere
        return Silenced(first.by, first.description, first.ends_at)
    return Silenced(first.by, first.reason, first.ends_at, tuple(sorted(first.readers)), first.author)


def routing_facts(delivery: AlertDelivery, teams: Sequence[Team]) -> Facts:
    """Return the facts that routes match, for the incident that a delivery with a firing alert opens.

    They are its labels, and in addition `source`, `service`, `severity` (normalised) and `team` (ids of the teams that
    own the service).
    """
    return alert_facts(delivery.first_firing, delivery.source, teams)


def incident_places(
    facts: Facts, routes: Sequence[Route], channels: Sequence[Channel], platforms: Sequence[Platform]
) -> tuple[Place, ...]:
    """Return the places of the first matching route: `incident_place`, then the places of `also`."""
    main = incident_place(facts, routes, channels, platforms)
    route = next(route for route in routes if _main_place(route, facts, channels, platforms) == main)
    others = (place for name in route.also for place in _places(name, channels, platforms))
    return tuple(dict.fromkeys((main, *others)))


def incident_place(
    facts: Facts, routes: Sequence[Route], channels: Sequence[Channel], platforms: Sequence[Platform]
) -> Place:
    """Return the first available channel of the first matching route, by the order of `platforms`.

    Raises ConfigurationError if no route leads to a channel on an enabled platform.
    """
    main = (_main_place(route, facts, channels, platforms) for route in routes)
    if (place := next(filter(None, main), None)) is not None:
        return place
    names = {name: " or ".join(sorted(values)) for name, values in sorted(facts.items()) if any(values)}
    raise ConfigurationError(
        f"No route in plumbline.yaml leads an incident with {names} to a channel on "
        f"{' or '.join(platforms)}: add a route without `match` as the last one."
    )


def _main_place(route: Route, facts: Facts, channels: Sequence[Channel], platforms: Sequence[Platform]) -> Place | None:
    if not route.matches(facts):
        return None
    places = [place for name in route.channels for place in _places(name, channels, platforms)]
    return min(places, key=lambda place: platforms.index(place.platform), default=None)


def _places(name: str, channels: Sequence[Channel], platforms: Sequence[Platform]) -> list[Place]:
    """Return a channel's place on every platform that has it, in the order of the platforms."""
    ids = next((channel.ids for channel in channels if name_key(channel.name) == name_key(name)), dict[Platform, str]())
    return [Place(platform, ids[platform]) for platform in platforms if platform in ids]


UTC = "UTC"
MESSAGES_PER_MINUTE = 3  # new ones about incidents in a channel, if plumbline.yaml says nothing else

_QUIET = re.compile(
    r"(?P<start>\d{1,2}:\d{2})\s*(?:-|–|to)\s*(?P<end>\d{1,2}:\d{2})"
    r"(?:\s+(?P<zone>(?!except\b)[A-Za-z][\w+-]*(?:/[\w+-]+){0,2}))?"
    r"(?:\s+except\s+(?P<severity>[a-z]+))?",
    re.IGNORECASE,
)
_RANKS = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}

HOW = "For example, say “quiet 22:00-07:00 Europe/Berlin”, “quiet 22:00-07:00 except warning” or “quiet off”."


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Daily quiet hours from `start` to `end` (exclusive) in `zone`, an IANA name. They may span midnight.

    Incidents of severity `loud` and above are posted anyway.
    """

    start: time
    end: time
    zone: str = UTC
    loud: Severity = Severity.CRITICAL

    def cover(self, at: datetime) -> bool:
        """Return whether a time (with a zone) is within the quiet hours."""
        clock = at.astimezone(ZoneInfo(self.zone)).time()
        return self.start <= clock < self.end if self.start < self.end else clock >= self.start or clock < self.end

    def hold(self, severity: Severity, at: datetime) -> bool:
        """Return whether an incident of this severity is held at a time (with a zone)."""
        return self.cover(at) and _RANKS[severity] > _RANKS[self.loud]

    def left(self, at: datetime) -> timedelta:
        """Return the time until the quiet hours end. May be off by one hour at a daylight-saving change."""
        local = at.astimezone(ZoneInfo(self.zone))
        ends = local.replace(hour=self.end.hour, minute=self.end.minute, second=0, microsecond=0)
        return (ends if ends > local else ends + timedelta(days=1)) - local

    def __str__(self) -> str:
        return f"{self.start:%H:%M} to {self.end:%H:%M} {self.zone}"


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """The settings of one channel."""

    quiet: QuietHours | None = None
    adoption: Adoption = NO_ADOPTION


def parse_quiet_hours(text: str) -> QuietHours | None:
    """Parse the argument of the `quiet` command: hours, or None for `off`.

    Raises MalformedInput with a hint for the user.
    """
    if text.strip().lower() == "off":
        return None
    match = _QUIET.fullmatch(text.strip())
    if match is None:
        raise MalformedInput(f"I don’t understand these quiet hours. {HOW}")
    try:
        start, end = (datetime.strptime(match[name], "%H:%M").time() for name in ("start", "end"))  # noqa: DTZ007 -- a time of day
    except ValueError:
        raise MalformedInput(f"Times of day go from 00:00 to 23:59. {HOW}") from None
    if start == end:
        raise MalformedInput(f"Quiet hours must begin and end at different times. {HOW}")
    return QuietHours(start, end, _zone(match["zone"] or UTC), _severity(match["severity"]))


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise MalformedInput(f"There is no time zone “{name[:40]}”. Use a name such as Europe/Berlin or UTC.") from None


def _severity(name: str | None) -> Severity:
    try:
        return Severity(name.lower()) if name else Severity.CRITICAL
    except ValueError:
        names = ", ".join(Severity)
        raise MalformedInput(f"There is no severity “{str(name)[:40]}”. After “except”, use one of {names}.") from None
