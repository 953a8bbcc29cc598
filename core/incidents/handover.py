"""Messages about many incidents or for many people: a storm's list, the handover, the weekly digest, an update, and the chats
that take no messages.

An update names no person, no team and no technical detail: a person edits it, and knows what may be said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from statistics import median

from core.incidents.incident_layout import cut
from core.incidents.incident_view import format_duration, format_owner, next_step
from core.knowledge.terms import distinct_terms
from core.model.alert import Severity
from core.model.badge import PredictionKind
from core.model.conversation import Platform
from core.model.findings import Origin
from core.model.incident import Incident, IncidentState
from core.model.text import counted, in_utc
from core.ports import Change, DeadLetter
from core.rca.dependencies import callees

MAX_TITLE = 90  # characters
MAX_REASON = 140  # characters
MAX_HANDOVER_LINES = 8  # lines of a section; the others are counted
MAX_TEXT = 3000  # characters that every chat shows in one message
WEEKDAY, DAY = "%a %H:%M", "%d %B, %H:%M"  # forms of times
FRESH = timedelta(hours=1)  # after its end, an incident may come back

OPEN, HELD, WATCH, CHANGES, ON_CALL = "Open", "Held back", "Watch", "Changes", "On call now"
NOTHING = "Nothing is open, nothing was held back, and nothing changed."


@dataclass(frozen=True, slots=True)
class PostLine:
    """A line of a regular post. Untrusted.

    `incident_id` is that of the incident that it is about, if it is about one. `count` is the number of things that it
    tells of; 0 for a heading. `has_more` says that the rest stands elsewhere. `url` is the page behind it, if it has one.
    """

    text: str
    incident_id: str = ""
    count: int = 1
    has_more: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """The part of an ending shift that a channel may read. All texts are untrusted.

    `incidents` are those that were open in it. `held` are the ids of those that were not posted, with the reason.
    `windows` are the open maintenance windows, `on_call` the people on duty now by team, `unread` the systems whose
    changes could not be read.
    """

    since: datetime
    until: datetime
    incidents: Sequence[Incident]
    held: dict[str, str]
    changes: Sequence[Change]
    windows: Sequence[str]
    on_call: Sequence[tuple[str, str]]
    unread: Sequence[str] = ()


def format_handover(shift: Shift) -> list[PostLine]:
    """Return the lines of a handover."""
    shown = [each for each in shift.incidents if each.id not in shift.held and each.part_of is None]
    opened = sorted(
        (each for each in shown if each.state is IncidentState.OPEN),
        key=lambda each: ([*Severity].index(each.severity), each.started_at),
    )
    watched = [(each, why) for each in shown if (why := _reason_to_watch(each, shift.until))]
    changes = [f"Maintenance: {window}" for window in shift.windows]
    changes += [_change(each) for each in sorted(shift.changes, key=lambda each: each.at, reverse=True)]
    if shift.unread:
        changes.append(f"{', '.join(shift.unread)} could not be read")
    sections = (
        (ON_CALL, [entry(f"{team}: {people}") for team, people in shift.on_call]),
        (OPEN, [entry(_open(each), each) for each in opened]),
        (HELD, [entry(_held(each, shift.held[each.id]), each) for each in shift.incidents if each.id in shift.held]),
        (WATCH, [entry(f"{mark_of(each)} {cut(each.title, MAX_TITLE)}: {why}", each) for each, why in watched]),
        (CHANGES, [entry(each) for each in changes]),
    )
    lines = list(_sections(sections))
    if not any(entries for name, entries in sections if name != ON_CALL):
        lines.append(PostLine(NOTHING))
    return cut_lines([PostLine(f"Handover. The shift began {in_utc(shift.since, WEEKDAY)}.", count=0), *lines])


def entry(text: str, incident: Incident | None = None) -> PostLine:
    """Return a line of a list, which is one line whatever its text."""
    return PostLine(f"• {' '.join(text.split())}", incident.id if incident is not None else "")


def _sections(sections: Sequence[tuple[str, Sequence[PostLine]]]) -> Iterator[PostLine]:
    for name, entries in sections:
        if entries:
            yield PostLine(f"{name}:", count=0)
            yield from first_entries(entries, MAX_HANDOVER_LINES)


def first_entries(entries: Sequence[PostLine], limit: int) -> list[PostLine]:
    """Return the first `limit` lines, and one that counts the others."""
    return [*entries[:limit], *_more(entries[limit:])]


def cut_lines(lines: Sequence[PostLine]) -> list[PostLine]:
    """Return the first lines that every chat shows in one message, and one that counts the others."""
    shown = list(lines)
    while sum(len(line.text) + 1 for line in shown) > MAX_TEXT:
        kept = shown[:-2] if shown[-1].has_more else shown[:-1]
        while kept and (kept[-1].has_more or not kept[-1].count):  # nor a count before a count, nor a heading alone
            kept.pop()
        shown = [*kept, *_more(lines[len(kept) :])]
    return shown


def _more(left_out: Sequence[PostLine]) -> list[PostLine]:
    count = sum(line.count for line in left_out)
    return [PostLine(f"• and {count} more", count=count, has_more=True)] if count else []


def _open(incident: Incident) -> str:
    cause, step = incident.findings.cause, next_step(incident)
    parts = (
        cut(incident.title, MAX_TITLE),
        f"since {in_utc(incident.started_at, WEEKDAY)}",
        cut(incident.taken_by, MAX_TITLE) or format_owner(incident),
        f"possible cause: {cut(cause.short, MAX_REASON)}" if cause is not None else "no cause found",
        f"next: {cut(step, MAX_REASON)}" if step else "",
    )
    return f"{mark_of(incident)} {' · '.join(filter(None, parts))}"


def _held(incident: Incident, why: str) -> str:
    over = f", {_over(incident)} since {incident.resolved_at:%H:%M} UTC" if incident.resolved_at is not None else ""
    return f"{mark_of(incident)} {cut(incident.title, MAX_TITLE)}: {cut(why, MAX_REASON)}{over}"


def _over(incident: Incident) -> str:
    return cut(incident.state_text("over"), MAX_REASON)


def _reason_to_watch(incident: Incident, now: datetime) -> str:
    if incident.flapping:
        return "it fires and resolves again and again"
    if incident.reopened_count and incident.state is IncidentState.OPEN:
        return f"it came back {incident.reopened_count} times" if incident.reopened_count > 1 else "it came back once"
    if incident.resolved_at is None or (incident.is_cured and now - incident.resolved_at > FRESH):
        return ""
    return f"{_over(incident)}{' only' if incident.is_cured else ''} since {incident.resolved_at:%H:%M} UTC"


def _change(change: Change) -> str:
    by = f" by {change.author}" if change.author else ""
    service = f" of {change.service}" if change.service else ""
    return f"{in_utc(change.at)}: {cut(f'{change.kind}{service}{by}: {change.title}', MAX_REASON)}"


MAX_STORM_LINES = 30  # incidents with a line of their own, the worst first; the others are named by their services
MAX_STORM_SERVICES = 30  # services of the others
SHARED = ("cluster", "region", "zone", "node", "namespace")  # labels that say where an incident is
MARKS = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}
OVER, ENDED = "✅", "⚪"

HOW = "An incident leaves this list for a message of its own when it has a cause of its own, or when somebody takes it. If one alone is critical, it has its message in this thread."
EMPTY = "Many alerts at once: each incident that was listed here has its own message now, or is a part of another one."
OVER_HOW = "All of them are over."
ENDED_HOW = "None of them is open. Whether all are over is unknown."


@dataclass(frozen=True, slots=True)
class ListedIncident:
    """An incident in a storm's summary, with the number of its alerts and those of its parts.

    `since` is when it was listed, `url` the address under which more is known of it; empty if there is none.
    """

    incident: Incident
    alert_count: int
    since: datetime
    url: str = ""

    @property
    def is_open(self) -> bool:
        return self.incident.state is IncidentState.OPEN


def storm_summary(
    listed: Sequence[ListedIncident], more: int, dependencies: Mapping[str, tuple[str, ...]]
) -> list[PostLine]:
    """Return the lines of a storm's summary: how many incidents and alerts, what joins them, and each of them.

    They keep their order, the open ones first. `more` were not read and are only counted: none of them is open if one of
    those before them is over. Untrusted.
    """
    if not listed:
        return [PostLine(EMPTY)]
    count, alerts = len(listed) + more, sum(each.alert_count for each in listed) + more
    still_open = sum(each.is_open for each in listed)
    since, at_least = min(each.since for each in listed), "at least " if more and still_open == len(listed) else ""
    head = f"Many alerts at once: {counted(count, 'incident')} with {counted(alerts, 'alert')} since {in_utc(since)}, {at_least}{still_open} still open."
    why = ENDED_HOW if any(each.incident.is_uncured for each in listed) else OVER_HOW
    first = PostLine(f"{head} {_joined([each.incident for each in listed], dependencies)}".rstrip(), count=0)
    last = PostLine(HOW if still_open else why, count=0)
    shown = [_line(each) for each in listed[:MAX_STORM_LINES]]
    while sum(len(line.text) + 1 for line in (first, *shown, last)) > MAX_TEXT:
        shown.pop()
    left = listed[len(shown) :]
    if left or more:
        services = list(dict.fromkeys(cut(each.incident.service or each.incident.title, MAX_TITLE) for each in left))
        named = ", ".join(services[:MAX_STORM_SERVICES])
        shown.append(PostLine(f"• and {len(left) + more} more" + (f": {named}" if named else "")))
    return [first, *shown, last]


def _joined(incidents: Sequence[Incident], dependencies: Mapping[str, tuple[str, ...]]) -> str:
    """Return what most have in common: “All are in zone eu-1.”, “31 of 40 depend on orders-db.”; empty for nothing."""
    traits = Counter(
        f"are in {name} {each.labels[name]}" for each in incidents for name in SHARED if each.labels.get(name)
    )
    traits.update(f"depend on {callee}" for each in incidents for callee in callees(each.service, dependencies))
    trait, number = max(traits.items(), key=itemgetter(1), default=("", 0))
    of_all = "All" if number == len(incidents) else f"{number} of {len(incidents)}"
    return f"{of_all} {cut(trait, MAX_TITLE)}." if number > max(1, len(incidents) / 2) else ""


def _line(listed: ListedIncident) -> PostLine:
    incident = listed.incident
    alerts = f"{listed.alert_count} alerts" if listed.alert_count > 1 else ""
    service = incident.service if incident.service and incident.service not in incident.title else ""
    owner = cut(incident.taken_by, MAX_TITLE) or format_owner(incident)
    parts = (
        cut(incident.title, MAX_TITLE),
        service,
        alerts,
        owner if listed.is_open else cut(incident.state_text("over"), MAX_TITLE),
    )
    return PostLine(f"• {mark_of(incident)} {' · '.join(filter(None, parts))}", incident.id, url=listed.url)


def mark_of(incident: Incident) -> str:
    """Return the sign of an incident's severity, or of its end."""
    return OVER if incident.is_cured else ENDED if incident.is_uncured else MARKS[incident.severity]


MAX_DIGEST_LINES = 6  # causes, owners and missing pages with a line of their own
MAX_QUESTION = 120  # characters
ALIKE = 0.4  # share of their terms that two questions have in common if the same page would answer both

CAUSE_NAMES = {
    Origin.CHANGE: "a change",
    Origin.EXTERNAL: "an external system",
    Origin.LOAD: "load",
    Origin.DATA: "data",
    Origin.PLATFORM: "the platform",
    Origin.SERVICE: "a failure in the service",
    Origin.BUILD: "a build",
    Origin.OTHER: "something else",
}
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
        post += [heading, *first_entries([entry(_missing(each)) for each in week.missing], MAX_DIGEST_LINES)]
    return cut_lines(post)


def _cause(incident: Incident) -> str:
    cause = incident.findings.cause
    return CAUSE_NAMES[cause.origin] if cause is not None else "no cause found"


def _tally(names: Iterable[str]) -> str:
    counts = Counter(names).most_common()
    more = sum(count for _, count in counts[MAX_DIGEST_LINES:])
    return ", ".join(
        [*(f"{name} {count}" for name, count in counts[:MAX_DIGEST_LINES]), *([f"others {more}"] if more else [])]
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


MAX_UPDATE_SERVICES = 3  # that are named
EFFECT = {
    Severity.CRITICAL: "does not work, or not reliably",
    Severity.WARNING: "may be slower or less reliable than usual",
    Severity.INFO: "works, with a minor problem",
}
NEXT_WORD = {
    Severity.CRITICAL: timedelta(minutes=30),
    Severity.WARNING: timedelta(hours=1),
    Severity.INFO: timedelta(hours=4),
}
CAUSE_SENTENCES = {
    Origin.CHANGE: "A recent change of ours may be the reason, and is being checked.",
    Origin.EXTERNAL: "The reason may lie with a supplier, which is being checked.",
    Origin.LOAD: "The reason may be unusually high demand, which is being checked.",
}
PROBABLE = "We have a probable reason, and are checking it."
TAKEN = "Our experts are working on it."
FINDING = "We are bringing in the experts for it."


def draft_update(incident: Incident, now: datetime) -> tuple[str, str]:
    """Return the title and the text of a draft."""
    thing = _affected(incident)
    since = in_utc(incident.started_at, DAY)
    if incident.resolved_at is not None and incident.is_cured:
        lasted = format_duration(incident.resolved_at - incident.started_at)
        return _title(thing, "works again"), (
            f"What was affected: {thing}, from {since} to {in_utc(incident.resolved_at, DAY)} ({lasted}).\n\n"
            "What was done: the problem is solved, and we are watching that it stays so.\n\n"
            "Next update: none, unless the problem comes back."
        )
    cause = incident.findings.cause
    reason = CAUSE_SENTENCES.get(cause.origin, PROBABLE) if cause is not None else "We are looking for the reason."
    return _title(thing, "we are working on a problem"), (
        f"What is affected: {thing} {EFFECT[incident.severity]}, since {since}.\n\n"
        f"What is being done: {TAKEN if incident.taken_by else FINDING} {reason}\n\n"
        f"Next update: by {in_utc(now + NEXT_WORD[incident.severity], DAY)}, or earlier if something changes."
    )


def _affected(incident: Incident) -> str:
    """Return the affected services as words; a general name if none is known."""
    named = dict.fromkeys(each for each in (incident.service, *(alert.service for alert in incident.alerts)) if each)
    words = [" ".join(name.replace("-", " ").replace("_", " ").split()) for name in named][:MAX_UPDATE_SERVICES]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:]))) or "one of our systems"


def _title(thing: str, state: str) -> str:
    return f"{thing[:1].upper()}{thing[1:]}: {state}"


def closed_chats(waiting: Sequence[DeadLetter]) -> list[str]:
    """Return a sentence for each chat that takes no messages: since when, why, and how many wait, the longest first."""
    chats: dict[Platform, list[DeadLetter]] = {}
    for letter in waiting:
        chats.setdefault(letter.place.platform, []).append(letter)
    return [
        f"{platform.capitalize()} has taken no message in {counted(len({each.place.channel for each in letters}), 'channel')} "
        f"since {letters[0].waiting_since:%Y-%m-%d %H:%M} UTC. {letters[0].reason} Waiting, and posted by itself "
        f"once it does: {counted(len(letters), 'message')}."
        for platform, letters in chats.items()
    ]
