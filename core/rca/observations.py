"""The data read from the systems around an incident, and from pasted text, before any conclusion.

A sentence about what did not happen rests on a `Coverage` of the data that was read, and names it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from core.model.alert import Alert
from core.model.findings import Gap, GapReason, SimilarIncident
from core.model.incident import Incident
from core.model.text import WORD
from core.ports import Change, FailedBuild, LogLine, Series, TimeWindow
from core.rca.failing_lines import is_build_log
from core.rca.tool_outputs import PASTED, OutputForm, ToolOutput, blocks, prose_of, records_of, said_by

LOGS, METRICS, CHANGES = "logs", "metrics", "changes"  # kinds of data
OUTPUTS = "outputs of tools"
UNREAD = "Not read: "  # begins a line of a tool's output on what it could not read
LOOK_BACK = timedelta(minutes=90)  # minimum of logs, metrics and traces before the start
LONGEST_LOOK_BACK = timedelta(hours=8)  # maximum of them, if there are old changes
BEFORE_CHANGE = timedelta(minutes=45)  # of them before the oldest change, for comparison
LOOK_AHEAD = timedelta(minutes=10)  # of logs and metrics after the start
SUSPECT = timedelta(minutes=30)  # before the start, when the fault may have begun; earlier data is the baseline
CHANGES_BACK = timedelta(hours=24)  # of changes, and of traces, before the start
COMMITS_BACK = timedelta(hours=72)  # of commits, because they may be deployed later
EDGE = timedelta(minutes=10)  # at most, between the ends of a time span and the data that covers it


class Rebuttal(NamedTuple):
    """An argument against a cause. `is_checked`: everything that it could rest on was read."""

    text: str
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Coverage:
    """The services whose data cover a time span, by kind of data; in words, what does not cover it, and why.

    A kind of which something could not be read is not in `read`; `is_whole`: there is none of these.
    """

    read: Mapping[str, str]
    unread: tuple[str, ...]
    is_whole: bool

    def without(self, trouble: str) -> Rebuttal:
        """Return “{trouble} in the logs of api after it; not checked: metrics of api”, or only what was not checked."""
        if not self.read:
            return Rebuttal(self.caveat.removeprefix("; "), is_checked=False)
        same = len(set(self.read.values())) == 1
        kinds = {" and ".join(self.read): next(iter(self.read.values()))} if same else self.read
        places = " and ".join(f"the {kind} of {names}" for kind, names in kinds.items())
        return Rebuttal(f"{trouble} in {places} after it{self.caveat}", self.is_whole)

    @property
    def caveat(self) -> str:
        """Return “; not checked: metrics of api”; empty if everything was read."""
        return f"; not checked: {', '.join(self.unread)}" if self.unread else ""


@dataclass(frozen=True)
class Observations:
    """The `logs` and `series` of `services`, and the `changes` of all services, up to `until`.

    `outputs` are the free-text outputs of tools, and `builds` the failed builds that the incident is about. `cut` are
    services with so many log records that the earliest were not read. `gaps` are the systems that could not be read. `firing`
    are the alerts of what the incident's own say that it does not answer, by its name.
    All texts are untrusted.
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
    firing: Mapping[str, Alert] = field(default_factory=dict[str, Alert])

    @cached_property
    def records(self) -> tuple[LogLine, ...]:
        """Return the logs, with the log records in the outputs of tools."""
        read = (record for output in self.outputs for record in records_of(output, self.incident.service, self.until))
        return (*self.logs, *read)

    @cached_property
    def prose(self) -> str:
        """Return what the alert says, or what a person wrote around the text that they pasted."""
        own = self.incident.description
        parts = [prose_of(own) if self.incident.source == QUESTION else own]
        return "\n".join([*parts, *(said_by(output) for output in self.outputs if output.is_record)])

    def unread(self, kind: str) -> tuple[str, ...]:
        """Return what a kind of data lacks, in words. A gap of an unknown kind may be one of any."""
        return tuple(dict.fromkeys(gap.text for gap in self.gaps if kind in (gap.kinds or _possible_kinds(gap))))

    def is_whole(self, *kinds: str) -> bool:
        """Return whether all of these kinds of data was read that the systems have which are set up."""
        return not any(
            (gap.reason.is_failure or gap.reason is GapReason.LEFT_OUT)
            and not (gap.kinds or _possible_kinds(gap)).isdisjoint(kinds)
            for gap in self.gaps
        )

    @cached_property
    def _spans(self) -> Mapping[str, Mapping[str, tuple[datetime, datetime]]]:
        """Return the time spans that the logs and all metrics of each service cover."""
        logs: dict[str, tuple[datetime, datetime]] = {}
        for line in self.logs:
            first, last = logs.get(line.service, (line.at, line.at))
            logs[line.service] = (min(first, line.at), max(last, line.at))
        metrics: dict[str, tuple[datetime, datetime]] = {}
        for one in self.series:
            if one.times:
                first, last = metrics.get(one.service, (one.times[0], one.times[-1]))
                metrics[one.service] = (max(first, one.times[0]), min(last, one.times[-1]))
        return {LOGS: logs, METRICS: metrics}

    def covered(self, kind: str, services: Collection[str], since: datetime) -> set[str]:
        """Return the services of which a kind of data was read from `since` to the start of the incident."""
        until = max(since, self.incident.started_at - EDGE)
        spans = self._spans[kind]
        return {
            each for each in services if each in spans and spans[each][0] <= since + EDGE and spans[each][1] >= until
        }

    def coverage(self, services: Sequence[str], since: datetime) -> Coverage:
        """Return what was read of services from `since` to the start of the incident."""
        read: dict[str, str] = {}
        unread: list[str] = []
        for kind in (LOGS, METRICS):
            covered = self.covered(kind, services, since)
            if covered and self.is_whole(kind):
                read[kind] = ", ".join(service for service in services if service in covered)
            missing = [service for service in services if service not in covered]
            if missing or not services:
                unread.append(f"{kind} of {', '.join(missing) or 'any service'}")
            unread += [text for text in self.unread(kind) if text not in unread]
        return Coverage(read, tuple(unread), self.is_whole(LOGS, METRICS))


def _possible_kinds(gap: Gap) -> frozenset[str]:
    kinds = frozenset({LOGS, METRICS, CHANGES, OUTPUTS})
    return kinds & {gap.tool} or kinds if gap.reason is GapReason.MISSING else kinds


def signal_window(
    incident: Incident, now: datetime, changes: Iterable[Change] = (), services: Collection[str] = ()
) -> TimeWindow:
    """Return the window for logs, metrics and traces, from before the oldest change of the services, within bounds."""
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


def of_late(changes: Iterable[Change], incident: Incident) -> list[Change]:
    """Return the changes within CHANGES_BACK, and the commits within COMMITS_BACK."""
    return [change for change in changes if change.is_commit or change.at >= incident.started_at - CHANGES_BACK]


def suspect_from(first: datetime, incident: Incident) -> datetime:
    """Return the end of the baseline: SUSPECT before the start, or later if the baseline would be too short.

    `first` is the time of the first observation. The baseline is at least a third of the time from there to the start.
    """
    return max(incident.started_at - SUSPECT, first + (incident.started_at - first) / 3)


QUESTION = "question"  # source of an incident made from pasted text
LEAST_LINES = 2  # of a text that contains more than a question
MAX_LINKS = 5  # followed to builds

BUILD_PAGES = frozenset({"actions", "blue", "job", "_build", "buildConfiguration"})
BUILD_LISTS = frozenset("build builds jobs pipelines runs workflows buildId".split())  # if a number follows

_LINK = re.compile(r"https?://[^\s<>|\"'`]+")
_SEPARATORS = str.maketrans("?&=#", "////")
_BUILD = frozenset(
    "build builds pipeline pipelines workflow workflows ci jenkins compile compiled compiler compiling compilation".split()
)
_FAILED = frozenset("fail fails failed failing failure failures broke broken red error errors".split())


def investigation_intent(question_id: str) -> str:
    """Return the intent of the message with the findings for a question."""
    return f"investigation:{question_id}"


def pasted_build(incident: Incident) -> FailedBuild | None:
    """Return the build whose log was pasted; None if none was."""
    output = pasted_output(incident)
    if output is None or not is_build_log(output.text):
        return None
    if any(block.kind in (OutputForm.TABLE, OutputForm.DESCRIPTION) for block in blocks(output)):
        return None  # `kubectl` tells exit codes, too
    return FailedBuild("", incident.service, incident.service, "", "", output.text)


def pasted_output(incident: Incident) -> ToolOutput | None:
    """Return pasted text as a tool's output; None if only a question was asked."""
    text = incident.alerts[0].description if incident.source == QUESTION and incident.alerts else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return ToolOutput(PASTED, {}, text) if len(lines) >= LEAST_LINES else None


def build_links(incident: Incident) -> tuple[str, ...]:
    """Return the first MAX_LINKS addresses in the alerts, any of which may be a build."""
    texts = [incident.description]
    texts += [text for alert in incident.alerts[:MAX_LINKS] for text in (alert.url, *alert.labels.values())]
    links = [link.rstrip(".,;:)]}>") for text in texts for link in _LINK.findall(text)]
    return tuple(dict.fromkeys(links))[:MAX_LINKS]


def is_build_link(link: str) -> bool:
    """Return whether an address looks like that of a build, by the words between its separators."""
    parts = frozenset(link.translate(_SEPARATORS).split("/"))
    return not BUILD_PAGES.isdisjoint(parts) or (
        not BUILD_LISTS.isdisjoint(parts) and any(part.isdecimal() for part in parts)
    )


def is_about_a_build(incident: Incident) -> bool:
    """Return whether the alerts or the question mention a failed build."""
    text = f"{incident.description}\n{' '.join(incident.labels.values())}"
    words = WORD.findall(text.lower())
    return not _BUILD.isdisjoint(words) and not _FAILED.isdisjoint(words)


def outputs_by_service(observations: Observations) -> Mapping[str, list[ToolOutput]]:
    """Return the outputs by the service in their arguments; those without one belong to the incident's service."""
    grouped: dict[str, list[ToolOutput]] = {}
    for output in observations.outputs:
        named = (value for value in output.arguments.values() if value in observations.services)
        grouped.setdefault(next(named, observations.incident.service), []).append(output)
    return grouped


def no_change(observations: Observations) -> str:
    """Return “no change of ours fits”, as far as changes were read."""
    if unread := observations.unread(CHANGES):
        return f"changes were not checked, or not all ({', '.join(unread)})"
    return "no change of ours fits" if observations.changes else "no change was found"
