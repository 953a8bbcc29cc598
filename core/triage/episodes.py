"""Incidents as what teaches whether one needs a person: how it began, how it fired again, and what people did."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.model.alert import Severity
from core.model.incident import Incident

AT_ONCE = timedelta(minutes=1)  # after an incident was opened; later merges were not known when it was judged
MAX_TEXT = 1_000  # characters of an alert in which its value is looked for
_COMPARISON = re.compile(
    r"(?<![\w.])(?P<value>\d{1,12}(?:\.\d{1,6})?)\s?[%\w/]{0,8},?\s?\(?"
    r"(?:(?:(?:is|are)\s)?(?:>=?|above|over|more than|greater ?than|exceeds|(?P<below><=?|below|under|less ?than|lower ?than)))\s?"
    r"(?:the threshold of |threshold )?(?P<limit>\d{1,12}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Episode:
    """An incident as training data.

    `alert` names its alert or group. `needed` tells whether a person was needed, None if unknown; it is known from
    `ended_at` on. `again` are the times at which it fired again. `has_parent`: it may be part of an open incident.
    `excess` is how many times the alert's threshold its value was, None if it does not say.
    """

    id: str
    alert: str
    service: str
    severity: Severity
    began_at: datetime
    ended_at: datetime | None = None
    needed: bool | None = None
    deploying: bool = False
    has_parent: bool = False
    again: tuple[datetime, ...] = ()
    excess: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.service, self.alert

    @property
    def firings(self) -> tuple[datetime, ...]:
        """Return when it fired, each time once."""
        return self.began_at, *self.again


def needed_person(incident: Incident) -> bool | None:
    """Return whether people acted on an incident; None if it is open, ended without a cure, or before anybody was notified.

    They act if they take, acknowledge, reassign, comment on or file it, set its severity, or note how it ended. An
    incident that ended while held back has no known outcome, because holding back must not prove itself right.
    """
    acted = (
        incident.taken_by,
        incident.hops,
        incident.notes,
        incident.severity_by,
        incident.resolution,
        incident.filings,
        any(alert.acknowledged is not None and not alert.acknowledged.withdrawn for alert in incident.alerts),
    )
    if any(acted):
        return True
    was_told = incident.silenced is None and not incident.is_held_back(incident.updated_at)
    return False if incident.is_cured and was_told else None


def episode_of(incident: Incident) -> Episode:
    """Return a stored incident as training data: as it was when it began, and with its outcome.

    An incident that was never judged has no record of that: its alerts give the severity, and a deployment is unknown.
    """
    page, merge, alert = incident.findings.page, incident.part_of, incident.alerts[0] if incident.alerts else None
    begun = [each.severity for each in incident.alerts if each.starts_at <= incident.opened_at]
    severity = min(begun, key=[*Severity].index, default=incident.severity)
    has_parent = (
        merge is not None and not merge.person and (merge.at or incident.opened_at) - incident.opened_at <= AT_ONCE
    )
    if page is not None:
        severity, has_parent = page.severity, page.has_parent
    return Episode(
        incident.id,
        alert.name if alert is not None and alert.name else incident.group_key,
        incident.service,
        severity,
        incident.opened_at,
        incident.resolved_at,
        needed_person(incident),
        page is not None and page.deploying,
        has_parent,
        incident.reopenings,
        excess_in(f"{alert.summary}\n{alert.description}") if alert is not None else None,
    )


def excess_in(text: str) -> float | None:
    """Return how many times the threshold a stated value is, as in “p99 is 4 s (> 2 s)”, or the reverse for a lower limit."""
    match = _COMPARISON.search(text[:MAX_TEXT])
    if match is None:
        return None
    value, limit = float(match["value"]), float(match["limit"])
    if match["below"]:
        value, limit = limit, value
    return value / limit if value > 0 and limit > 0 else None
