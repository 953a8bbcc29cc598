"""What an incident's message says and offers, decided once for every chat: the chats only draw it.

The message is read in ten seconds on a phone: what is broken, who has it, the likely cause in a sentence, and what to do
next. Everything else is a menu away.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from core.model.incident import (
    AskedTeam,
    Explanation,
    Incident,
    IncidentState,
    OwnerProposal,
    Severity,
    SeveritySuggestion,
    Stage,
)
from core.model.messages import (
    COULD_IT_BE,
    IS_IT_YOURS,
    ON_CALL,
    ON_CALL_UNKNOWN,
    OR,
    VERDICT_LABELS,
    IncidentMessage,
    RelatedIncident,
    Verdict,
)
from core.rca.pasted import QUESTION

PHONE_WIDTH = 45  # characters of one line on a phone
PHONE_LINES = 12  # of a message without its controls: what a phone shows at once
MAX_CONTROLS = 4  # in sight, the menu of the others not counted

MAX_HEADLINE = 130  # characters
MAX_NAME = 48  # characters of a team, a person or a service
MAX_LINK = 45  # characters of the title of another incident
MAX_TEXT = 400  # characters of a line, before it is made to fit a phone
MAX_COMMAND = 200  # characters of a command; a longer one is not shown, since half a command does harm
LEADING_WORDS = frozenset(
    "a an and at by for from in of on or that the to with".split()
)  # no cut ends with one of these
MAX_ON_CALL = 3  # people of a team who are named
MAX_PARTS = 3  # incidents that are named in the message of the one that leads them
SAYS_SEVERITY = frozenset({"severity", "priority", "urgency", "level"})  # labels with which an alert says its own

WEB = ("http://", "https://")
RIGHT_OR_WRONG = "Right or wrong?"
MORE = "More"


class Mood(StrEnum):
    """What colour and sign a message has."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Link:
    """A page that a line names. `incident_id` is that of another incident, empty for any other page. Untrusted."""

    text: str
    url: str
    incident_id: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph: `label`, then `text` (Markdown, untrusted), then `code` (verbatim, to be copied), then links.

    `badge` says how sure a claim is. A `subtle` line is an aside.
    """

    label: str
    text: str
    badge: str = ""
    code: str = ""
    links: tuple[Link, ...] = ()
    subtle: bool = False

    @property
    def plain(self) -> str:
        """Return the line as it is read, without any markup."""
        said = (self.text.replace("`", ""), self.code, " ".join(link.text for link in self.links), self.badge)
        return " ".join(filter(None, (self.label, " · ".join(filter(None, said)))))


@dataclass(frozen=True, slots=True)
class Control:
    """A button or an entry of a menu: what it says, and what is pressed; a page to open where `url` is not empty."""

    label: str
    verdict: Verdict | None = None
    subject: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and the controls that say whether it is right."""

    claim: str
    controls: tuple[Control, ...]


@dataclass(frozen=True, slots=True)
class IncidentView:
    """The message of an incident.

    `progress` says what is being done, empty once nothing is. `buttons` are in sight, `judging` is one menu in sight
    with a part for each claim (RIGHT_OR_WRONG), `more` is behind the menu that every platform has for the rest.
    """

    mood: Mood
    headline: str
    state: str
    lines: tuple[Line, ...]
    progress: str
    buttons: tuple[Control, ...]
    judging: tuple[Judged, ...]
    more: tuple[Control, ...]

    @property
    def summary(self) -> str:
        """Return the line that stands in for the message in a notification or a screen reader."""
        told = [line for line in self.lines if line.label in (OWNER, CAUSE)]
        return " · ".join((self.headline, self.state, *(f"{line.label}: {line.text}" for line in told))).replace(
            "`", ""
        )

    @property
    def phone_lines(self) -> int:
        """Return how many lines of PHONE_WIDTH characters its words take, controls not counted."""
        return sum(map(_wrapped, (self.headline, self.state, *(line.plain for line in self.lines), self.progress)))

    @property
    def in_sight(self) -> int:
        """Return the number of controls in sight, the menu of the others not counted."""
        return len(self.buttons) + bool(self.judging)

    @property
    def subjects(self) -> dict[Verdict, str]:
        """Return what can be pressed, and the id that each press is about."""
        judged = [control for each in self.judging for control in each.controls]
        offered = (*self.buttons, *judged, *self.more)
        return {control.verdict: control.subject for control in offered if control.verdict is not None}


OWNER, CAUSE, NEXT, LAST_TIME = "Owner", "Cause", "Next", "Last time"

SHORTEST = 20  # characters below which a text that is cut says nothing
LAST_TIME_LINES = 2  # of a phone that the fix of last time keeps
LEFT = 0.5  # of a text, which its first clauses must hold to stand for it
_ASIDE = re.compile(r"\(([^()]{30,})\)")
_BRACKETS = re.compile(r" \([^()]*\)")
_CLAUSE_END = re.compile(r"(?<!…)(?<!\. Or)(?<!about as likely)[,;:.](?= )")


def incident_view(message: IncidentMessage) -> IncidentView:
    """Decide what an incident's message says and offers."""
    incident = message.incident
    view = IncidentView(
        mood=Mood.RESOLVED if incident.state is IncidentState.RESOLVED else Mood(incident.severity),
        headline=_cut(incident.title, MAX_HEADLINE),
        state=_state(incident),
        lines=tuple(_lines(message)),
        progress=_progress(incident),
        buttons=tuple(_buttons(incident)),
        judging=tuple(_judging(incident)),
        more=tuple(_more(incident)),
    )
    return _fitted(view)


# --- what it says ----------------------------------------------------------------------------------------------------


def _state(incident: Incident) -> str:
    severity = str(incident.severity).capitalize()
    said = f"{severity}, says {_cut(incident.severity_by, MAX_NAME)}," if incident.severity_by else severity
    began = _minute(incident.started_at, incident.opened_at)
    if incident.resolved_at is not None:
        lasted = duration_told(incident.resolved_at - incident.started_at)
        state = f"Resolved {_minute(incident.resolved_at, incident.opened_at)} after {lasted}"
    else:
        state = f"{said} again, first {began}" if incident.reopened_count else f"{said} since {began}"
    return " · ".join(filter(None, (state, _cut(incident.service, MAX_NAME), _alerts(incident))))


def _alerts(incident: Incident) -> str:
    if incident.alert_count <= 1:
        return ""
    if incident.alert_count > len(incident.alerts) or not incident.firing_count:
        return f"{incident.alert_count:,} alerts".replace(",", " ")
    return f"{incident.firing_count} of {incident.alert_count} alerts firing"


def _lines(message: IncidentMessage) -> Iterator[Line]:
    incident = message.incident
    yield from _grouping(message)
    description = next((alert.description for alert in incident.alerts if alert.description), "")
    if incident.explanation is None and description != incident.title:
        yield from _line("", description)
    if not is_put_off(incident):
        yield from _owner(incident, asks=message.asks_owner)
        yield from _cause(incident, asks=message.asks_cause)
        yield from _next(incident)
    if incident.acknowledged is not None:
        by = f"by {incident.acknowledged.by} " if incident.acknowledged.by else ""
        at = _minute(incident.acknowledged.at, incident.opened_at)
        yield from _line("", f"Acknowledged {by}in {incident.source} {at}", subtle=True)
    yield from _suggested(incident)


def _grouping(message: IncidentMessage) -> Iterator[Line]:
    """What it belongs to, what belongs to it, and what else is out of the ordinary."""
    incident, leader, parts = message.incident, message.leader, message.parts
    if leader is not None and incident.absorbed is not None:
        yield Line("Part of", "", links=(_link(leader),))
        said = f"{incident.absorbed.person} says so" if incident.absorbed.person else incident.absorbed.reason
        yield from _line("", said, subtle=True)
    if parts:
        yield Line("Explains", parts_counted(parts), links=tuple(_link(part) for part in parts[:MAX_PARTS]))
    elif incident.suggested_parent is not None and incident.absorbed is None:
        parent = incident.suggested_parent
        title = _cut(parent.title, MAX_NAME)
        yield Line("May be part of", _cut(parent.reason, MAX_TEXT), links=(Link(title, "", parent.incident_id),))
    for said in standing(incident):
        yield from _line("", said, subtle=True)


def _link(other: RelatedIncident) -> Link:
    return Link(_cut(other.title, MAX_LINK), other.url, other.incident_id)


def standing(incident: Incident) -> tuple[str, ...]:
    """Return what is out of the ordinary about an incident, line by line. Untrusted."""
    lines: list[str] = []
    if incident.flapping:
        lines.append(f"Flapping: it fired again {incident.reopened_count} times. Nobody is called anew.")
    if incident.silenced is not None:
        until = f"{incident.silenced.until:%Y-%m-%d %H:%M} UTC"
        reason = f": {incident.silenced.reason}" if incident.silenced.reason else ""
        lines.append(f"Silenced by {incident.silenced.silenced_by} until {until}{reason}")
    if incident.cut_short:
        lines.append(incident.cut_short)
    return tuple(lines)


def _owner(incident: Incident, *, asks: bool) -> Iterator[Line]:
    proposal = incident.owner
    taken = f"taken by {_cut(incident.taken_by, MAX_NAME)}" if incident.taken_by else ""
    if proposal is None:
        unknown = "looking …" if incident.stage is Stage.TRIAGING else "nobody was found"
        yield Line(OWNER, taken or unknown)
        return
    if proposal.owner is None:
        near = ", ".join(_cut(team.team_name, MAX_NAME) for team in proposal.not_asked[:MAX_ON_CALL])
        alone = "A person should decide." + (f" Nearest: {near}" if near else "")
        yield from _line(OWNER, taken or f"not clear. {is_it_theirs(proposal.asked) if proposal.asked else alone}")
    else:
        team = _cut(proposal.owner.team_name, MAX_NAME)
        if is_checking(incident):
            yield Line(OWNER, " · ".join(filter(None, (f"checking: {team}?", taken))))
        else:
            named = IS_IT_YOURS.format(team=team) if asks else team
            on_call = _on_call(proposal.on_call, proposal.on_call_unknown)
            yield Line(OWNER, " · ".join(filter(None, (named, taken or on_call))), badge=proposal.badge.text)
    yield from _line("", proposal.note, subtle=True)


def is_checking(incident: Incident) -> bool:
    """Whether the owner stands there before the evidence is in: then it is no claim yet."""
    said_by_person = incident.owner is not None and incident.owner.owner is not None and bool(incident.given_to)
    return incident.stage is not Stage.DONE and incident.explanation is None and not said_by_person


def _on_call(people: Sequence[str], unknown: str) -> str:
    """“on call: Asha Brandt”, also that it is unknown; empty where nobody is. Untrusted."""
    missing = len(people) - MAX_ON_CALL
    named = ", ".join(_cut(each, MAX_NAME) for each in people[:MAX_ON_CALL])
    named += f" and {missing} more" if missing > 0 else ""
    told = ON_CALL_UNKNOWN.format(name=_cut(unknown, MAX_NAME)) if unknown else named
    return f"{ON_CALL.lower()}: {told}" if told else ""


def on_call_told(team: AskedTeam) -> str:
    """Return “on call: Asha Brandt”, also that it is unknown; empty where nobody is. Untrusted."""
    return _on_call(team.on_call, team.on_call_unknown)


def is_it_theirs(teams: Sequence[AskedTeam]) -> str:
    """Return the question to the teams of which one may own an incident. Untrusted."""
    named = [(_cut(team.team_name, MAX_NAME), on_call_told(team)) for team in teams]
    return IS_IT_YOURS.format(team=OR.join(f"{name} ({on_call})" if on_call else name for name, on_call in named))


def _cause(incident: Incident, *, asks: bool) -> Iterator[Line]:
    explanation = incident.explanation
    if explanation is None:
        if incident.stage is Stage.DONE:
            yield Line(CAUSE, "was not looked for")
        return
    if explanation.cause is None:
        yield from _line(CAUSE, f"none found{_not_read(explanation)}")
    else:
        said = explanation.told.rstrip(".")
        badge = explanation.badge.text if explanation.badge is not None else ""
        yield from _line(CAUSE, COULD_IT_BE.format(cause=said) if asks else said, badge=badge)
    if explanation.rechecked_after is not None:
        yield from _line("", f"Re-checked after {explanation.rechecked_after.person}'s note", subtle=True)


def _not_read(explanation: Explanation) -> str:
    """What the search for a cause did not see, where it found none."""
    tools = ", ".join(dict.fromkeys(gap.tool for gap in explanation.gaps))
    return f"; could not read {tools}" if tools else ""


def _next(incident: Incident) -> Iterator[Line]:
    """What to do next: what the runbook says, else what to look at; and what helped last time."""
    runbook, cause = incident.runbook, incident.explanation.cause if incident.explanation is not None else None
    command = runbook.command if runbook is not None and len(runbook.command) <= MAX_COMMAND else ""
    if runbook is not None and runbook.citation is not None and (runbook.next_action or command):
        cited = runbook.citation
        source = Link("runbook", cited.deep_link or runbook.url)
        yield from _line(NEXT, runbook.next_action, code=command, links=(source,))
    else:
        named = (Link("runbook", runbook.url),) if runbook is not None and runbook.url else ()
        yield from _line(NEXT, cause.next_check if cause is not None else "", links=named)
    if (past := incident.precedent) is not None:
        link = Link(_cut(past.id, MAX_NAME), past.url) if past.url else None
        text = past.fix if link else f"{past.id}: {past.fix}"
        yield from _line(LAST_TIME, text, links=(link,) if link else ())


def _suggested(incident: Incident) -> Iterator[Line]:
    severity, duplicate = shown_severity(incident), incident.suggested_duplicate
    if severity is not None:
        yield Line("Severity", f"looks {severity.severity}", badge=severity.badge.text)
    if duplicate is not None and incident.absorbed is None:
        told = "is a sign of" if incident.duplicate_of else "may be a sign of"
        link = Link(_cut(duplicate.title, MAX_NAME), "", duplicate.incident_id)
        yield Line("Duplicate", told, badge="" if incident.duplicate_of else duplicate.badge.text, links=(link,))


def shown_severity(incident: Incident) -> SeveritySuggestion | None:
    """Return the suggested severity; None where the alert or a person says it already.

    Where the alert says how severe it is, only something worse is news.
    """
    suggestion = incident.suggested_severity
    if suggestion is None or incident.severity_by or suggestion.severity is incident.severity:
        return None
    is_said = any(label.casefold() in SAYS_SEVERITY for alert in incident.alerts for label in alert.labels)
    is_worse = [*Severity].index(suggestion.severity) < [*Severity].index(incident.severity)
    return suggestion if is_worse or not is_said else None


def _progress(incident: Incident) -> str:
    if is_put_off(incident) or incident.stage is Stage.DONE:
        return ""
    doing = f": {_cut(incident.progress, MAX_NAME)}" if incident.progress else ""
    return f"{str(incident.stage).capitalize()}{doing} …"


def is_put_off(incident: Incident) -> bool:
    """Whether it is not looked into for now, since it is silenced or a part of another, and nothing is known of it."""
    is_alone = incident.absorbed is None and incident.silenced is None
    return not is_alone and incident.owner is None and incident.explanation is None


def parts_counted(parts: Sequence[RelatedIncident]) -> str:
    """Return how many incidents are a part of this one, with how many alerts; empty for none."""
    if not parts:
        return ""
    incidents = "1 more incident" if len(parts) == 1 else f"{len(parts)} more incidents"
    alerts = sum(part.alert_count for part in parts)
    still_open = sum(part.is_open for part in parts)
    return f"{incidents} with {alerts} {'alert' if alerts == 1 else 'alerts'}, {still_open} still open"


# --- what it offers --------------------------------------------------------------------------------------------------


def _buttons(incident: Incident) -> Iterator[Control]:
    """In sight. A pasted text is not stored: there is nothing to take, to reassign or to open."""
    if incident.source == QUESTION:
        return
    if incident.state is IncidentState.OPEN:
        yield _pressed(Verdict.TAKE_OVER if incident.taken_by else Verdict.TAKE_IT, incident.id)
    if incident.absorbed is not None:
        yield _pressed(Verdict.SEPARATE, incident.id)
    elif incident.owner is not None:
        yield _pressed(Verdict.HAND_OVER, incident.id)
    if incident.owner is not None or incident.explanation is not None:
        yield _pressed(Verdict.DETAILS, incident.id)


def _judging(incident: Incident) -> Iterator[Judged]:
    owner, explanation = _claimed_owner(incident), incident.explanation
    if owner is not None and owner.owner is not None:
        name = _cut(owner.owner.team_name, MAX_NAME)
        yield _judged(f"Owner: {name}", owner.prediction_id, Verdict.OWNER_RIGHT, Verdict.OWNER_WRONG)
    if explanation is not None and explanation.prediction_id is not None:
        yield _judged("Cause", explanation.prediction_id, Verdict.CAUSE_RIGHT, Verdict.CAUSE_WRONG)
    if (severity := shown_severity(incident)) is not None:
        yield _judged("Severity", severity.prediction_id, Verdict.SEVERITY_RIGHT, Verdict.SEVERITY_WRONG)
    if incident.suggested_duplicate is not None and incident.absorbed is None:
        duplicate = incident.suggested_duplicate.prediction_id
        yield _judged("Duplicate", duplicate, Verdict.DUPLICATE_RIGHT, Verdict.DUPLICATE_WRONG)


def _more(incident: Incident) -> Iterator[Control]:
    owner, explanation = _claimed_owner(incident), incident.explanation
    if owner is not None:
        yield _pressed(Verdict.WHY_OWNER, owner.prediction_id)
    if explanation is not None and explanation.prediction_id is not None:
        yield _pressed(Verdict.WHY_CAUSE, explanation.prediction_id)
    if incident.source != QUESTION and incident.state is IncidentState.OPEN and incident.absorbed is None:
        if incident.suggested_parent is not None:
            yield _pressed(Verdict.JOIN_SUGGESTED, incident.id)
        yield _pressed(Verdict.BELONGS, incident.id)
    if incident.absorbed is not None and incident.owner is not None:
        yield _pressed(Verdict.HAND_OVER, incident.id)
    if alert := next((alert.url for alert in incident.alerts if alert.url.startswith(WEB)), ""):
        yield Control("Open alert", url=alert)


def owner_told(incident: Incident) -> str:
    """Return whose an incident is in a few words, for a list: the team, “checking: Boarding?”, or that nobody is named."""
    proposal = incident.owner
    if proposal is None:
        return "no owner yet" if incident.stage is Stage.TRIAGING else "owner unknown"
    if proposal.owner is None:
        return "nobody named"
    team = _cut(proposal.owner.team_name, MAX_NAME)
    return f"checking: {team}?" if is_checking(incident) else team


def is_claimed(incident: Incident) -> bool:
    """Whether an owner is claimed, so that its badge may stand beside it."""
    return _claimed_owner(incident) is not None


def _claimed_owner(incident: Incident) -> OwnerProposal | None:
    """The owner that is claimed; None while it is only being checked, or nobody can be named."""
    owner = incident.owner
    return owner if owner is not None and owner.owner is not None and not is_checking(incident) else None


def _judged(claim: str, prediction: str, right: Verdict, wrong: Verdict) -> Judged:
    return Judged(claim, (_pressed(right, prediction), _pressed(wrong, prediction)))


def _pressed(verdict: Verdict, subject: str) -> Control:
    return Control(VERDICT_LABELS[verdict], verdict, subject)


# --- how it is made to fit -------------------------------------------------------------------------------------------


def _fitted(view: IncidentView) -> IncidentView:
    """The view with less and less of what matters least, until a phone shows all of it at once.

    A command is never cut, and a sentence is cut at the end of a clause if it can be.
    """
    for shorten in (_aside_line, _aside, _last_time, _next_clause, _bare_command, _no_aside, _cause_clause):
        for number in reversed(range(len(view.lines))):
            while view.phone_lines > PHONE_LINES and (shorter := shorten(view.lines[number])) is not None:
                view = replace(view, lines=(*view.lines[:number], shorter, *view.lines[number + 1 :]))
    for kept in ((OWNER, CAUSE), (OWNER,)):  # who is asked and what broke it are cut last, if at all
        while view.phone_lines > PHONE_LINES:
            lengths = [_wrapped(line.text) if line.label not in kept else 0 for line in view.lines]
            number = max(range(len(lengths)), key=lengths.__getitem__, default=-1)
            if number < 0 or not lengths[number] or (shorter := _any(view.lines[number])) is None:
                break
            view = replace(view, lines=(*view.lines[:number], shorter, *view.lines[number + 1 :]))
        if view.phone_lines > PHONE_LINES:  # the details have it, too
            view = replace(view, lines=tuple(line for line in view.lines if line.label != LAST_TIME))
    while view.phone_lines > PHONE_LINES and any(line.subtle for line in view.lines):
        last = max(number for number, line in enumerate(view.lines) if line.subtle)  # the details have it, too
        view = replace(view, lines=(*view.lines[:last], *view.lines[last + 1 :]))
    return view


def _aside_line(line: Line) -> Line | None:
    return _any(line) if line.label not in (OWNER, CAUSE, NEXT, LAST_TIME) else None


def _aside(line: Line) -> Line | None:
    """What stands in brackets is said in fewer words."""
    aside = _ASIDE.search(line.text)
    if aside is None or line.label == OWNER:
        return None
    named, _, more = aside[1].partition(": ")
    return replace(line, text=line.text.replace(aside[1], named if more else _cut(aside[1], SHORTEST), 1))


def _last_time(line: Line) -> Line | None:
    return _clause(line) or _any(line) if line.label == LAST_TIME and _wrapped(line.plain) > LAST_TIME_LINES else None


def _next_clause(line: Line) -> Line | None:
    return _clause(line) if line.label == NEXT else None


def _bare_command(line: Line) -> Line | None:
    """Half an instruction misleads; the command and the link to the runbook do not."""
    return replace(line, text="") if line.label == NEXT and line.code and line.text else None


def _no_aside(line: Line) -> Line | None:
    text = _BRACKETS.sub("", line.text) if line.label == CAUSE else line.text
    return replace(line, text=text) if text != line.text else None


def _cause_clause(line: Line) -> Line | None:
    return _clause(line) if line.label == CAUSE else None


def _clause(line: Line) -> Line | None:
    """The line without its last clause; None if that leaves too little of it."""
    ends = [match.start() for match in _CLAUSE_END.finditer(line.text)]
    end = max((end for end in ends if end >= len(line.text) * LEFT), default=None)
    return replace(line, text=_even(line.text[:end] + "…")) if end is not None else None


def _any(line: Line) -> Line | None:
    """The line with so much less text that it takes one line less on a phone; None if it cannot be cut so far."""
    wanted = _wrapped(line.plain) - 1
    for limit in range(len(line.text) - 1, SHORTEST - 1, -1):
        shorter = replace(line, text=_even(_cut(line.text, limit)))
        if _wrapped(shorter.plain) <= wanted:
            return shorter
    return None


def _even(text: str) -> str:
    """The text without marks of code, if one of them is alone."""
    return text if text.count("`") % 2 == 0 else text.replace("`", "")


@lru_cache(maxsize=1024)  # the same lines are counted each time that one of them was shortened
def _wrapped(text: str) -> int:
    return len(textwrap.wrap(text, PHONE_WIDTH))


def _line(
    label: str,
    text: str,
    *,
    badge: str = "",
    code: str = "",
    links: tuple[Link, ...] = (),
    subtle: bool = False,
) -> Iterator[Line]:
    """A line, none that says nothing."""
    said = _cut(text, MAX_TEXT)
    if said or code or links:
        yield Line(label, said, badge, code, links, subtle)


def _cut(text: str, limit: int) -> str:
    """One line of at most `limit` characters; of a huge text no more is looked at than could be shown."""
    head = text[: 4 * limit]
    line = " ".join(head.split())
    if len(line) <= limit and len(head) == len(text):
        return line
    whole = line[:limit].rsplit(" ", 1)[0] if " " in line[limit // 2 : limit] else line[: limit - 1]
    words = whole[: limit - 1].split(" ")
    while len(words) > 1 and words[-1].casefold() in LEADING_WORDS:
        words.pop()
    return f"{' '.join(words).rstrip(' ,;.:')}…"


def _minute(at: datetime, day: datetime) -> str:
    """The time of the day, with its date where that is not `day`'s."""
    at, day = at.astimezone(UTC), day.astimezone(UTC)
    if at.date() == day.date():
        return f"{at:%H:%M} UTC"
    year = "" if at.year == day.year else f" {at.year}"
    return f"{at.day} {at:%b}{year} {at:%H:%M} UTC"


def duration_told(length: timedelta) -> str:
    """Return a length of time in its largest two units."""
    minutes = max(0, int(length.total_seconds())) // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"
