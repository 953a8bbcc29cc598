"""The clock of this machine, and cron expressions, as APScheduler's triggers read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger


class SystemClock:
    """Implements `core.ports.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)


# The ages of times that are searched, shortest first, so that a frequent time is not followed through a whole year.
SEARCHED = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366))


class Cron:
    """The local times that match minute, hour, day of the month, month and weekday."""

    def __init__(self, expression: str, zone: str = "UTC") -> None:
        """Read an expression. Raises ValueError if it is none, or matches no time."""
        self._trigger = _trigger(expression, ZoneInfo(zone))
        if self._next(datetime.now(UTC)) is None:
            raise ValueError(f"{expression} never comes")

    def latest(self, now: datetime, age: timedelta) -> datetime | None:
        """Return the latest time until `now` in local time; None if it is older than `age`."""
        for searched in SEARCHED:
            due = self._next(now - min(searched, age))
            if due is None or due > now:
                continue
            while (later := self._next(due.astimezone(UTC) + timedelta(microseconds=1))) is not None and later <= now:
                due = later
            return due
        return None

    def _next(self, since: datetime) -> datetime | None:
        """Return the first time from `since` on, which is in UTC, because arithmetic forgets which 2:30 is meant."""
        return self._trigger.get_next_fire_time(None, since)


def _trigger(expression: str, zone: ZoneInfo) -> CronTrigger:
    from apscheduler.triggers.cron import CronTrigger

    fields = expression.split()
    if len(fields) == 5 and fields[4][0].isdecimal():
        raise ValueError("name weekdays, as in mon-fri, because 0 is Sunday to some and Monday to others")
    try:
        return CronTrigger.from_crontab(expression, zone)
    except ValueError as error:
        raise ValueError(f"{expression} is not a cron expression, such as 30 2 * * mon-fri: {error}") from error
