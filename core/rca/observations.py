"""All that was read of the systems around an incident, before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.model.incident import Gap, Incident, SimilarIncident
from core.ports import Change, FailedBuild, LogLine, Series, Span, TimeWindow
from core.rca.revisions import is_commit
from core.rca.tool_outputs.clues import ToolOutput

LOOK_BACK = timedelta(minutes=90)  # of logs, metrics and traces before the start, at least
LONGEST_LOOK_BACK = timedelta(hours=8)  # of them, where a change is as old
BEFORE_CHANGE = timedelta(minutes=45)  # of them before the oldest change, to compare with
LOOK_AHEAD = timedelta(minutes=10)  # of logs and metrics after the start
SUSPECT = timedelta(minutes=30)  # before the start, in which the fault can have begun; the time before is the baseline
CHANGES_BACK = timedelta(hours=24)  # of changes before the start
COMMITS_BACK = timedelta(hours=72)  # of commits: what was deployed today may have been written before


@dataclass(frozen=True, slots=True)
class Observations:
    """`logs` and `series` of the services in `services`, `spans` and `changes` of all, up to `until`.

    `outputs` are what tools returned as free text, and `builds` the failed builds that the incident is about.
    `cut` are the services with so many log records that the earliest were not read. `gaps` are what could not
    be read. All texts are untrusted.
    """

    incident: Incident
    until: datetime
    services: tuple[str, ...]
    logs: tuple[LogLine, ...]
    series: tuple[Series, ...]
    changes: tuple[Change, ...]
    dependencies: Mapping[str, tuple[str, ...]]
    similar: tuple[SimilarIncident, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cut: frozenset[str] = frozenset()
    outputs: tuple[ToolOutput, ...] = ()
    builds: tuple[FailedBuild, ...] = ()
    spans: tuple[Span, ...] = ()


def signal_window(
    incident: Incident, now: datetime, changes: Iterable[Change] = (), services: Collection[str] = ()
) -> TimeWindow:
    """Return what to read of logs, metrics and traces: back to before the oldest change of the services, within bounds."""
    until = min(now, incident.started_at + LOOK_AHEAD)
    longest = incident.started_at - LONGEST_LOOK_BACK
    of_services = (
        change.at - BEFORE_CHANGE
        for change in changes
        if change.at >= longest
        and (not change.touched or not services or any(each in services for each in change.touched))
    )
    start = min(of_services, default=incident.started_at)
    start = max(longest, min(start, incident.started_at - LOOK_BACK))
    return TimeWindow(start, max(until, incident.started_at + timedelta(seconds=1)))


def change_window(incident: Incident, now: datetime) -> TimeWindow:
    """Return what to read of changes."""
    return TimeWindow(incident.started_at - COMMITS_BACK, signal_window(incident, now).end)


def graph_window(incident: Incident, now: datetime) -> TimeWindow:
    """Return what to read of traces, to know which service calls which."""
    return TimeWindow(incident.started_at - CHANGES_BACK, signal_window(incident, now).end)


def of_late(changes: Iterable[Change], incident: Incident) -> list[Change]:
    """Return the changes of CHANGES_BACK, and the commits of COMMITS_BACK."""
    return [change for change in changes if is_commit(change) or change.at >= incident.started_at - CHANGES_BACK]


def suspect_from(first: datetime, incident: Incident) -> datetime:
    """Where the baseline ends: SUSPECT before the start, later if there is too little before that.

    `first` is the time of the first observation; the baseline is at least a third of the time from there.
    """
    return max(incident.started_at - SUSPECT, first + (incident.started_at - first) / 3)
