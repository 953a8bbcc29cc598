"""The weekly digest: incidents by cause and owner, how quickly and how rightly both were found, and missing pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from core.incidents.handover import PostLine, cut_lines, entry, first_entries
from core.incidents.incident_layout import cut
from core.incidents.incident_view import format_duration, format_owner
from core.knowledge.terms import distinct_terms
from core.model.explanation import Origin
from core.model.incident import Incident, IncidentState
from core.model.layout import counted
from core.model.prediction import PredictionKind

MAX_LISTED = 6  # causes, owners and missing pages with a line of their own
MAX_QUESTION = 120  # characters
ALIKE = 0.4  # share of their terms that two questions have in common if the same page would answer both

CAUSES = {
    Origin.CHANGE: "a change",
    Origin.EXTERNAL: "an external system",
    Origin.LOAD: "load",
    Origin.DATA: "data",
    Origin.PLATFORM: "the platform",
    Origin.SERVICE: "a failure in the service",
    Origin.BUILD: "a build",
    Origin.OTHER: "something else",
}
NO_CAUSE = "no cause found"
CALM = "There was no incident, and no question stayed unanswered."


@dataclass(frozen=True, slots=True)
class MissingPage:
    """Questions that nobody answered and that one page would, oldest first. `owner` may write it; empty if unknown."""

    questions: tuple[str, ...]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Week:
    """The part of a period that a channel may read. All texts are untrusted.

    `to_owner` and `to_cause` are the times from the start of an incident to the claim. `judged` are the outcomes of the
    claims that people judged, by kind.
    """

    length: timedelta
    incidents: Sequence[Incident]
    to_owner: Sequence[timedelta]
    to_cause: Sequence[timedelta]
    judged: dict[PredictionKind, Sequence[bool]]
    missing: Sequence[MissingPage]


def missing_pages(questions: Iterable[str]) -> list[MissingPage]:
    """Return the pages that would answer these questions: those with many questions first."""
    groups: list[list[str]] = []
    for question in questions:
        near = (group for group in groups if any(_are_alike(question, other) for other in group))
        if (group := next(near, None)) is not None:
            group.append(question)
        else:
            groups.append([question])
    return [MissingPage(tuple(group)) for group in sorted(groups, key=len, reverse=True)]


def _are_alike(one: str, other: str) -> bool:
    ours, theirs = distinct_terms(one), distinct_terms(other)
    return bool(ours & theirs) and len(ours & theirs) >= ALIKE * len(ours | theirs)


def format_digest(week: Week) -> list[PostLine]:
    """Return the lines of a digest."""
    days = max(round(week.length / timedelta(days=1)), 1)
    lines = [f"Digest of the last {days} days." if days > 1 else "Digest of the last day."]
    whole = [each for each in week.incidents if each.part_of is None]
    if whole:
        still_open = sum(each.state is IncidentState.OPEN for each in whole)
        uncured = f", {count} ended without a cure" if (count := sum(each.is_uncured for each in whole)) else ""
        lines += [
            f"{counted(len(whole), 'incident')}, {still_open} still open{uncured}.",
            f"By cause: {_tally(_cause(each) for each in whole)}.",
            f"By owner: {_tally(format_owner(each) for each in whole)}.",
        ]
        if times := [each for each in (_time("owner", week.to_owner), _time("cause", week.to_cause)) if each]:
            lines.append(f"Median time to {' and to '.join(times)}.")
    if right := [_right(kind, outcomes) for kind, outcomes in week.judged.items() if outcomes]:
        lines.append(f"Right, of those that people judged: {', '.join(right)}.")
    if not (whole or week.missing):
        lines.append(CALM)
    post = [PostLine(line) for line in lines]
    if week.missing:
        heading = PostLine("Missing pages, by the questions that nobody could answer:", count=0)
        post += [heading, *first_entries([entry(_missing(each)) for each in week.missing], MAX_LISTED)]
    return cut_lines(post)


def _cause(incident: Incident) -> str:
    cause = incident.findings.cause
    return CAUSES[cause.origin] if cause is not None else NO_CAUSE


def _tally(names: Iterable[str]) -> str:
    counts = Counter(names).most_common()
    more = sum(count for _, count in counts[MAX_LISTED:])
    return ", ".join(
        [*(f"{name} {count}" for name, count in counts[:MAX_LISTED]), *([f"others {more}"] if more else [])]
    )


def _time(what: str, times: Sequence[timedelta]) -> str:
    if not times:
        return ""
    return f"{what}: {format_duration(timedelta(seconds=median(each.total_seconds() for each in times)))}"


def _right(kind: PredictionKind, outcomes: Sequence[bool]) -> str:
    return f"{sum(outcomes)} of {counted(len(outcomes), str(kind), kind.plural)}"


def _missing(page: MissingPage) -> str:
    first, *others = page.questions
    similar = f" and {counted(len(others), 'similar question')}" if others else ""
    whose = f": {page.owner} may know" if page.owner else ""
    return f"“{cut(first, MAX_QUESTION)}”{similar}{whose}"
