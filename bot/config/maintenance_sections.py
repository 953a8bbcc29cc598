"""The `maintenance` section of plumbline.yaml: planned windows in which alerts are not posted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, Field, model_validator

from bot.config.section import Section
from bot.config.time_zone_name import TimeZoneName
from core.model.silences import Maintenance, Matcher, Silence, WeeklyWindow

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
    once = tuple(
        Silence(f"plumbline.yaml:{number}", each.matchers, each.starts, each.ends, reason=each.reason)
        for number, each in enumerate(sections, 1)
        if each.starts is not None and each.ends is not None
    )
    weekly = tuple(
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
    )
    return Maintenance(once, weekly)
