"""Channel settings that people set by command: quiet hours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from core.model.alert import Severity
from core.model.errors import MalformedInput

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
