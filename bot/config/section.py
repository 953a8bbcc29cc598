"""The sections of plumbline.yaml that belong to no adapter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from adapters.clock import Cron
from adapters.section import Section
from core.model.silences import Maintenance, Matcher, Silence, WeeklyWindow


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name} is not a time zone, such as Europe/Berlin") from error
    return name


TimeZoneName = Annotated[str, AfterValidator(_time_zone)]
"""An IANA time zone name."""


def _matching(expression: str) -> str:
    Cron(expression)
    return expression


CronExpression = Annotated[str, AfterValidator(_matching)]
"""Minute, hour, day of the month, month and weekday, all of which must match."""


class PostSection(Section):
    """A recurring post in a channel. `cron` is in the zone of the schedules, unless it has its own."""

    channel: Annotated[str, Field(min_length=1)]
    cron: CronExpression
    timezone: TimeZoneName | None = None


class HandoverSection(PostSection):
    cron: CronExpression = "0 9 * * *"


class DigestSection(PostSection):
    cron: CronExpression = "0 9 * * mon"


class SchedulesSection(Section):
    """The times of recurring work, as cron expressions in `timezone`.

    Handovers and digests are posted in the channels that are named. Among replicas it is done once. What was missed is
    made up for once, and an hour that the clocks repeat counts once.
    """

    timezone: TimeZoneName = "UTC"
    ingestion: CronExpression = "0 2 * * *"
    recalibration: CronExpression = "0 3 * * *"
    retention: CronExpression = "0 4 * * *"
    handovers: tuple[HandoverSection, ...] = ()
    digests: tuple[DigestSection, ...] = ()


Days = Annotated[int, Field(ge=1, le=36_500)]


class RetentionSection(Section):
    """Days for which data is kept, counted from its end; `None` keeps it forever. Active data is never deleted.

    - `events`: tasks, deliveries and finished workflows. An event that is sent again later counts as new.
    - `conversations`: messages to and from the bot, including the local page.
    - `incidents`: resolved incidents, with the record of all posts.
    - `predictions`: the claims that badges are calibrated with. Deleting them deletes calibration data.
    """

    events: Days = 30
    conversations: Days | None = 90
    incidents: Days | None = 730
    dead_letters: Days | None = 90
    build_failures: Days | None = 365
    predictions: Days | None = None
    audit: Days | None = 365


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class MaintenanceSection(Section):
    """A maintenance window: once, from `starts` to `ends`; or weekly on `days`, from `begins` to `until` in `timezone`.

    `match` selects alerts as in a route: by labels, `source`, `service`, `severity` or `team`.
    """

    match: Annotated[dict[str, str | tuple[str, ...]], Field(min_length=1)]
    starts: AwareDatetime | None = None
    ends: AwareDatetime | None = None
    days: tuple[Day, ...] = ()
    begins: time | None = None
    until: time | None = None
    timezone: TimeZoneName = "UTC"
    reason: str = ""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        once = self.starts is not None and self.ends is not None and self.starts < self.ends
        weekly = bool(self.days) and self.begins is not None and self.until is not None
        if once == weekly:
            raise ValueError("give `starts` and a later `ends` with their offsets, or `days`, `begins` and `until`")
        return self

    @property
    def matchers(self) -> tuple[Matcher, ...]:
        values = {name: (value,) if isinstance(value, str) else value for name, value in self.match.items()}
        return tuple(Matcher(name, frozenset(accepted)) for name, accepted in values.items())


def maintenance_of(sections: Sequence[MaintenanceSection]) -> Maintenance:
    """Return the maintenance windows of the sections."""
    return Maintenance(
        once=tuple(
            Silence(f"plumbline.yaml:{number}", each.matchers, each.starts, each.ends, reason=each.reason)
            for number, each in enumerate(sections, 1)
            if each.starts is not None and each.ends is not None
        ),
        weekly=tuple(
            WeeklyWindow(
                each.matchers,
                frozenset(DAYS.index(day) for day in each.days),
                each.begins,
                each.until,
                ZoneInfo(each.timezone),
                each.reason,
            )
            for each in sections
            if each.begins is not None and each.until is not None
        ),
    )
