"""The text and buttons of an incident's message, the same for every chat; the adapters only render it.

The message is read in ten seconds on a phone: what is broken, who has it, the likely cause in a sentence, and what to
do next. Everything else is a menu away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.incidents.folding import format_count
from core.incidents.incident_layout import (
    CAUSE,
    EXPLAINS,
    HELPED,
    NEXT,
    OR_CAUSE,
    OWNER,
    cut,
    fitted,
)
from core.incidents.posted_alerts import is_of_bot
from core.incidents.runbook import filled_command
from core.model.alert import Severity
from core.model.answer import EVIDENCE
from core.model.badge import SURE, Badge
from core.model.findings import AskedTeam, Explanation, GapReason, Hypothesis, OwnerProposal, RelationKind
from core.model.incident import Incident, IncidentState, Stage
from core.model.message_view import Control, Judged, Line, Link, MessageView, Mood, button
from core.model.messages import (
    COULD_IT_BE,
    IS_IT_YOURS,
    ON_CALL,
    ON_CALL_UNKNOWN,
    OR,
    ButtonAction,
    IncidentMessage,
    RelatedIncident,
)
from core.model.text import counted
from core.rca.observations import QUESTION

MAX_HEADLINE = 130  # characters
MAX_NAME = 48  # characters of a team, a person or a service
MAX_MODEL = 20  # characters of the name of a language model
MAX_LINK = 45  # characters of the title of another incident
MAX_TEXT = 400  # characters of a line, before it is made to fit a phone
MAX_COMMAND = 200  # characters of a command; a longer one is not shown, because half a command does harm
MAX_ON_CALL = 3  # people of a team who are named
MAX_NOT_READ = 2  # parts of a tool that could not be read; more are counted
MAX_REASONS = 3  # for the judgement whether a person is needed
NEEDED, UNCERTAIN = 0.7, 0.3  # probabilities from which a person is probably needed, and from which one may be
MAX_PARTS = 3  # parts that are named in the parent's message

MAY_BE_OVER = "Whether it is over is unknown."

WEB = ("http://", "https://")


def incident_view(message: IncidentMessage) -> MessageView:
    """Return the text and buttons of an incident's message."""
    incident = message.incident
    view = MessageView(
        "incident",
        summary="",
        parts=tuple(_lines(message)),
        headline=cut(incident.title, MAX_HEADLINE),
        state=_state(incident),
        mood=Mood.RESOLVED if incident.is_cured else Mood.ENDED if incident.is_uncured else Mood(incident.severity),
        incident_id=incident.id,
        progress=_progress(incident),
        buttons=tuple(_buttons(incident)),
        judging=tuple(_judging(incident)),
        more=tuple(_more(message)),
        by_model=is_by_model(incident),
        is_live=incident.state is IncidentState.OPEN,
        times=incident_times(incident),
    )
    shown = fitted(view)
    claims = (f"{line.label}: {line.text}" for line in shown.lines if line.label in (OWNER, CAUSE))
    return replace(shown, summary=" · ".join((shown.headline, shown.state, *claims)).replace("`", ""))


def incident_times(incident: Incident) -> tuple[datetime, ...]:
    """Return the times that messages about an incident may name."""
    causes = incident.findings.explanation.hypotheses if incident.findings.explanation is not None else ()
    times = [
        incident.started_at,
        incident.resolved_at,
        incident.acknowledged.at if incident.acknowledged is not None else None,
        incident.silenced.until if incident.silenced is not None else None,
        *(each.change.at for each in causes if each.change is not None),
        *(evidence.at for each in causes for evidence in each.evidence),
    ]
    return tuple(each for each in times if each is not None)


def is_by_model(incident: Incident) -> bool:
    """Return whether a language model wrote some of the findings."""
    return incident.findings.explanation is not None and incident.findings.explanation.engine != EVIDENCE


# --- what it says ----------------------------------------------------------------------------------------------------


def _state(incident: Incident) -> str:
    severity = str(incident.severity).capitalize()
    began = _minute(incident.started_at, incident.opened_at)
    if incident.resolved_at is not None:
        lasted = format_duration(incident.resolved_at - incident.started_at)
        how = f"{cut(incident.end.text, MAX_HEADLINE)}," if incident.is_uncured else "Resolved"
        state = f"{how} {_minute(incident.resolved_at, incident.opened_at)} after {lasted}"
    else:
        state = f"{severity} again, first {began}" if incident.reopened_count else f"{severity} since {began}"
    return " · ".join(filter(None, (state, cut(incident.service, MAX_NAME), _alerts(incident), format_count(incident))))


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
    if incident.findings.explanation is None and description != incident.title:
        yield from _line("", description)
    if not is_put_off(incident):
        yield from _owner(incident, asks=message.asks_owner)
        yield from _cause(incident, asks=message.asks_cause)
        yield from _next(message)
    if incident.acknowledged is not None:
        by = f"by {incident.acknowledged.by} " if incident.acknowledged.by else ""
        system = incident.acknowledged.system or incident.source
        yield from _line(
            "", f"Acknowledged {by}in {system} {_minute(incident.acknowledged.at, incident.opened_at)}", subtle=True
        )
    elif paged := ", ".join(dict.fromkeys(alert.paged for alert in incident.alerts if alert.paged)):
        yield from _line("", f"Paged by {incident.source}: {paged}", subtle=True)
    yield from _page(incident)
    if filed := [Link(cut(each.filed.key, MAX_NAME), each.filed.url) for each in incident.filings if each.filed]:
        yield Line(label="Filed", links=tuple(filed))


def _grouping(message: IncidentMessage) -> Iterator[Line]:
    """Yield the parent of the incident, its parts, and notices about its state."""
    incident, parent, parts = message.incident, message.leader, message.parts
    if parent is not None and incident.part_of is not None:
        yield Line(label="Part of", links=(_link(parent),))
        notice = f"merged by {incident.part_of.person}" if incident.part_of.person else incident.part_of.reason
        yield from _line("", notice, subtle=True)
    if parts:
        yield _parts(incident, parts)
    elif (suggested := incident.relation(RelationKind.MAY_BE_PART_OF)) is not None and incident.part_of is None:
        link = Link(cut(suggested.title, MAX_NAME), "", suggested.incident_id)
        yield Line(cut(suggested.reason, MAX_TEXT), "May be part of", links=(link,))
    if incident.is_uncured and (end := incident.end).url:
        yield Line(label="Goes on in", links=(Link(cut(end.into or end.url, MAX_LINK), end.url),))
    for notice in irregularities(incident):
        yield from _line("", notice, subtle=True)


def _parts(incident: Incident, parts: Sequence[RelatedIncident]) -> Line:
    """Return how many parts there are, and their titles or, if they are many, their services, the worst first."""
    label = EXPLAINS if incident.findings.cause is not None else "With it"
    ordered = sorted(parts, key=lambda part: (not part.is_open, [*Severity].index(part.severity)))
    if len(parts) <= MAX_PARTS:
        return Line(parts_counted(parts), label, links=tuple(_link(part) for part in ordered))
    named = {
        str(severity): Counter(
            cut(part.service or part.title, MAX_NAME) for part in ordered if part.severity is severity
        )
        for severity in Severity
    }
    listed = "; ".join(
        f"{severity}: {', '.join(name if n == 1 else f'{name} ({n})' for name, n in services.most_common())}"
        for severity, services in named.items()
        if services
    )
    return Line(f"{parts_counted(parts)}. {listed[:1].upper()}{listed[1:]}", label)


def _link(other: RelatedIncident) -> Link:
    return Link(cut(other.title, MAX_LINK), other.url, other.incident_id)


def irregularities(incident: Incident) -> Iterator[str]:
    """Yield notices about an incident's state: ended without a cure, flapping, silenced, investigation stopped early.

    Untrusted.
    """
    if incident.is_uncured:
        yield f"{incident.end.text}. {MAY_BE_OVER}"
    if incident.flapping:
        yield f"Flapping: it has fired again {incident.reopened_count} times. I won’t ping anyone again."
    if incident.silenced is not None:
        until = f"{incident.silenced.until:%Y-%m-%d %H:%M} UTC"
        reason = f": {incident.silenced.reason}" if incident.silenced.reason else ""
        yield f"Silenced by {incident.silenced.silenced_by} until {until}{reason}"
    if incident.findings.cut_short:
        yield incident.findings.cut_short


def _owner(incident: Incident, *, asks: bool) -> Iterator[Line]:
    proposal = incident.findings.owner
    taken = f"taken by {cut(incident.taken_by, MAX_NAME)}" if incident.taken_by else ""
    if proposal is None:
        yield Line(taken or ("looking …" if incident.stage is Stage.TRIAGING else "nobody was found"), OWNER)
        return
    if proposal.owner is None:
        near = ", ".join(cut(team.team_name, MAX_NAME) for team in proposal.not_asked[:MAX_ON_CALL])
        alone = "A person should decide." + (f" Nearest: {near}" if near else "")
        yield from _line(OWNER, taken or f"not clear. {is_it_theirs(proposal.asked) if proposal.asked else alone}")
    else:
        team = cut(proposal.owner.team_name, MAX_NAME)
        if is_checking(incident):
            yield Line(" · ".join(filter(None, (f"checking: {team}?", taken))), OWNER)
        else:
            named = IS_IT_YOURS.format(team=team) if asks else team
            on_call = _on_call(proposal.on_call, proposal.on_call_unknown)
            yield Line(" · ".join(filter(None, (named, taken or on_call))), OWNER, badge=proposal.badge)
    yield from _line("", proposal.note, subtle=True)


def is_checking(incident: Incident) -> bool:
    """Return whether the owner is shown before the evidence is in, and is therefore not a claim yet."""
    said_by_person = incident.findings.likely_owner is not None and bool(incident.given_to)
    return incident.stage is not Stage.DONE and incident.findings.explanation is None and not said_by_person


def _on_call(people: Sequence[str], unknown: str) -> str:
    """Return “on call: Asha Brandt”, and which schedule is unknown; empty if nobody is on call. Untrusted."""
    missing = len(people) - MAX_ON_CALL
    named = ", ".join(cut(each, MAX_NAME) for each in people[:MAX_ON_CALL])
    named += f" and {missing} more" if missing > 0 else ""
    lacking = ON_CALL_UNKNOWN.format(name=cut(unknown, MAX_NAME)) if unknown else ""
    listed = "; ".join(filter(None, (named, lacking)))
    return f"{ON_CALL.lower()}: {listed}" if listed else ""


def format_on_call(team: AskedTeam) -> str:
    """Return “on call: Asha Brandt”, or that it is unknown; empty if nobody is on call. Untrusted."""
    return _on_call(team.on_call, team.on_call_unknown)


def is_it_theirs(teams: Sequence[AskedTeam]) -> str:
    """Return the question to the teams that may own an incident. Untrusted."""
    named = [(cut(team.team_name, MAX_NAME), format_on_call(team)) for team in teams]
    return IS_IT_YOURS.format(team=OR.join(f"{name} ({on_call})" if on_call else name for name, on_call in named))


def _cause(incident: Incident, *, asks: bool) -> Iterator[Line]:
    explanation = incident.findings.explanation
    if explanation is None:
        if incident.stage is Stage.DONE:
            yield Line("not investigated", CAUSE)
        return
    if explanation.cause is None:
        yield from _line(CAUSE, f"none found{_not_read(explanation)}")
    else:
        summary = explanation.summary.rstrip(".")
        yield from _line(CAUSE, COULD_IT_BE.format(cause=summary) if asks else summary, badge=explanation.badge)
        yield from _model_s(explanation)
    if explanation.rechecked_after is not None:
        yield from _line("", f"Re-checked after {cut(explanation.rechecked_after.person, MAX_NAME)}’s note")


def _model_s(explanation: Explanation) -> Iterator[Line]:
    """Yield the other cause if the engines disagree, and the part that a language model had in it."""
    first, other, trajectory = explanation.cause, explanation.dissent, explanation.trajectory
    if first is None or trajectory is None:
        return
    name = cut(trajectory.model, MAX_MODEL)
    if other is not None and other.badge is not None:
        engine = name if explanation.engine == EVIDENCE else "the rules"
        yield from _line(OR_CAUSE, f"by {engine}: {other.cause.rstrip('.')}", badge=other.badge)
    if first.found_by:
        yield from _line("", f"Found by the language model {name}.", subtle=True)
    elif first.solution and other is None:
        yield from _line("", f"The language model {name} agrees.", subtle=True)


def _not_read(explanation: Explanation) -> str:
    """Return a note on the tools that could not be read, have nothing from that time or are not set up; empty if there are
    none.
    """
    missing = dict.fromkeys(gap.tool for gap in explanation.gaps if gap.reason is GapReason.MISSING)
    parts: dict[str, list[str]] = {}
    passed = dict.fromkeys(gap.detail for gap in explanation.gaps if gap.reason.is_read)
    silent = dict.fromkeys(gap.tool for gap in explanation.gaps if gap.reason is GapReason.OUT_OF_WINDOW)
    unread = [gap for gap in explanation.gaps if not gap.reason.is_read and gap.reason is not GapReason.OUT_OF_WINDOW]
    for system, tool in dict.fromkeys((gap.system, gap.tool) for gap in unread):
        if tool not in missing:
            parts.setdefault(system, []).append(tool)
    others = [
        name
        for system, names in parts.items()
        for name in (names if len(names) <= MAX_NOT_READ else [f"{len(names)} parts of {system}"])
    ]
    notes = (
        ("no failed build:", passed),
        ("could not read", others),
        ("no data from that time in", silent),
        ("not set up:", missing),
    )
    return "".join(f"; {note} {', '.join(tools)}" for note, tools in notes if tools)


def _next(message: IncidentMessage) -> Iterator[Line]:
    """Yield the next action (from the runbook, otherwise what to look at), and what is known of the last time."""
    incident = message.incident
    runbook, explanation = incident.findings.runbook, incident.findings.explanation
    command = filled_command(runbook.command, incident) if runbook is not None else ""
    command = command if len(command) <= MAX_COMMAND else ""
    alert = tuple(Link("alert", each.url) for each in incident.alerts if each.url.startswith(WEB))[:1]
    if runbook is not None and runbook.citation is not None and (runbook.next_action or command):
        source = Link("runbook", runbook.citation.deep_link or runbook.url)
        is_open = runbook.next_action.endswith(":") and not command  # the command that it announces is left out
        action = f"{runbook.next_action[:-1]}." if is_open else runbook.next_action
        yield from _line(NEXT, action, code=command, links=(source, *alert))
    else:
        named = (Link("runbook", runbook.url),) if runbook is not None and runbook.url else ()
        look = next_step(incident) if explanation and explanation.cause else _first_look(incident)
        yield from _line(NEXT, look, links=(*named, *alert))
    past = incident.findings.precedent
    if message.last is not None and (message.note or past is None):
        yield from _line(HELPED, message.note, links=(Link("incident", message.last.url, message.last.incident_id),))
    elif past is not None:
        yield from _line(HELPED, past.fix, links=(Link(cut(past.id, MAX_NAME), past.url),))


def next_step(incident: Incident) -> str:
    """Return what to do about the first cause: act on it if it is sure, else what tells it from its rival. Untrusted.

    Empty without a cause.
    """
    explanation = incident.findings.explanation
    if explanation is None or (first := explanation.cause) is None:
        return ""
    if explanation.is_sure:
        return first.solution or first.next_check
    rival = explanation.dissent or next(iter(explanation.hypotheses[1:]), None)
    return _acquitting(first, rival, incident) if rival is not None else first.reservation


def _acquitting(first: Hypothesis, rival: Hypothesis, incident: Incident) -> str:
    """Return where two causes differ so that an observation acquits one of them: in time, or in place; else the first's
    own check, and that it tells them apart from nothing.
    """
    changes = sorted((each.change for each in (first, rival) if each.change is not None), key=lambda each: each.at)
    if changes and (len(changes) == 1 or changes[0].at < changes[1].at):
        since = _minute(changes[-1].at, incident.opened_at)
        return (
            f"Look at {incident.service or first.service} before {since}: the same trouble acquits {changes[-1].name}."
        )
    if first.service and rival.service and first.service != rival.service:
        return f"Look at {first.service} and {rival.service}, each on its own: the one that is well is acquitted."
    return f"Nothing that I can name tells the two causes apart. {first.reservation}"


def _first_look(incident: Incident) -> str:
    """Return where to begin without a cause: at the service in which the symptoms began."""
    first = incident.findings.explanation.first_failing if incident.findings.explanation is not None else ""
    return f"Look at {cut(first, MAX_NAME)} first: the symptoms began there." if first else ""


def _page(incident: Incident) -> Iterator[Line]:
    """Yield the judgement whether a person is needed, until somebody responds. Requires a percentage."""
    page = incident.findings.page
    is_answered = bool(incident.taken_by) or incident.acknowledged is not None or incident.part_of is not None
    if page is None or page.badge.probability is None or is_answered or incident.state is not IncidentState.OPEN:
        return
    claim, badge = page_claim(page.badge, incident.severity)
    if page.from_prior and (badge.probability or 0.0) < UNCERTAIN:
        return  # “may need a person” would be said of almost every incident of the first days
    shown = None if page.from_prior else badge  # a percentage would say that incidents of this company were counted
    yield from _line("", f"{claim}: {', '.join(page.evidence[:MAX_REASONS])}", badge=shown, subtle=True)


def page_claim(badge: Badge, severity: Severity) -> tuple[str, Badge]:
    """Return the claim that an incident needs a person or can wait, by a calibrated badge, and the claim's own badge.

    A critical incident can never wait. To call nobody is the worse mistake, so that waiting has to be surer.
    """
    needed = badge.probability or 0.0
    if needed <= 1 - SURE and severity is not Severity.CRITICAL:
        return "Can probably wait", replace(badge, probability=1 - needed)
    return ("Probably needs a person" if needed >= NEEDED else "May need a person"), badge


def _progress(incident: Incident) -> str:
    if incident.part_of is not None or incident.silenced is not None:
        return ""
    doing = cut(incident.progress, MAX_NAME)
    if incident.stage is Stage.DONE:  # it is investigated again
        return f"{doing[:1].upper()}{doing[1:]} …" if incident.stop_id and doing else ""
    return ": ".join(filter(None, (str(incident.stage).capitalize(), doing))) + " …"


def is_put_off(incident: Incident) -> bool:
    """Return whether it is silenced or part of another incident, and therefore not investigated so far."""
    is_alone = incident.part_of is None and incident.silenced is None
    return not is_alone and incident.findings.owner is None and incident.findings.explanation is None


def parts_counted(parts: Sequence[RelatedIncident]) -> str:
    """Return a text with the number of parts, their alerts and how many are open; empty for no parts."""
    if not parts:
        return ""
    incidents = counted(len(parts), "more incident")
    alerts = counted(sum(part.alert_count for part in parts), "alert")
    return f"{incidents} with {alerts}, {sum(part.is_open for part in parts)} still open"


# --- what it offers --------------------------------------------------------------------------------------------------


def _buttons(incident: Incident) -> Iterator[Control]:
    """Yield the visible buttons. A pasted text is not stored, so it cannot be taken, reassigned or opened.

    While a language model works, the button that stops it takes the place of the details.
    """
    if incident.source != QUESTION:
        yield from _stored_buttons(incident)
    if _is_stoppable(incident):
        yield button(ButtonAction.STOP, incident.stop_id)


def _stored_buttons(incident: Incident) -> Iterator[Control]:
    if incident.state is IncidentState.OPEN:
        yield button(ButtonAction.TAKE_OVER if incident.taken_by else ButtonAction.TAKE_IT, incident.id)
    if incident.part_of is not None:
        yield button(ButtonAction.SEPARATE, incident.id)
    elif incident.findings.owner is not None:
        yield button(ButtonAction.HAND_OVER, incident.id)
    if _has_details(incident) and not _is_stoppable(incident):
        yield button(ButtonAction.DETAILS, incident.id)


def _is_stoppable(incident: Incident) -> bool:
    """Return whether a language model works on the incident that a button can stop."""
    return bool(incident.stop_id and _progress(incident))


def _has_details(incident: Incident) -> bool:
    return incident.findings.owner is not None or incident.findings.explanation is not None


CAUSES_JUDGED = (
    ("Cause", ButtonAction.CAUSE_RIGHT, ButtonAction.CAUSE_WRONG),
    ("Second cause", ButtonAction.OTHER_CAUSE_RIGHT, ButtonAction.OTHER_CAUSE_WRONG),
)


def _judging(incident: Incident) -> Iterator[Judged]:
    owner, explanation = claimed_owner(incident), incident.findings.explanation
    if owner is not None and owner.owner is not None:
        name = cut(owner.owner.team_name, MAX_NAME)
        yield _judged(f"Owner: {name}", owner.prediction_id, ButtonAction.OWNER_RIGHT, ButtonAction.OWNER_WRONG)
    causes = explanation.claims if explanation is not None else ()
    for (claim, _), (title, right, wrong) in zip(causes, CAUSES_JUDGED, strict=False):
        yield _judged(title, claim, right, wrong)


def _more(message: IncidentMessage) -> Iterator[Control]:
    incident = message.incident
    owner, explanation = claimed_owner(incident), incident.findings.explanation
    if owner is not None:
        yield button(ButtonAction.WHY_OWNER, owner.prediction_id)
    causes = explanation.claims if explanation is not None else ()
    for (claim, _), why in zip(causes, (ButtonAction.WHY_CAUSE, ButtonAction.WHY_OTHER_CAUSE), strict=False):
        yield button(why, claim)
    if _is_stoppable(incident) and incident.source != QUESTION and _has_details(incident):
        yield button(ButtonAction.DETAILS, incident.id)
    if incident.source != QUESTION and incident.state is IncidentState.OPEN and incident.part_of is None:
        if incident.relation(RelationKind.MAY_BE_PART_OF) is not None:
            yield button(ButtonAction.JOIN_SUGGESTED, incident.id)
        yield button(ButtonAction.BELONGS, incident.id)
        if is_of_bot(incident):
            yield button(ButtonAction.IS_NO_ALERT, incident.id)
    if incident.part_of is not None and incident.findings.owner is not None:
        yield button(ButtonAction.HAND_OVER, incident.id)
    for action in message.filing:
        yield button(action, incident.id)
    if incident.source != QUESTION and incident.part_of is None:
        yield button(ButtonAction.WRITE_UPDATE, incident.id)


def format_owner(incident: Incident) -> str:
    """Return the owner in a few words, for a list: the team, “checking: Boarding?”, or that nobody is named."""
    proposal = incident.findings.owner
    if proposal is None:
        return "no owner yet" if incident.stage is Stage.TRIAGING else "owner unknown"
    if proposal.owner is None:
        return "nobody named"
    return ("checking: {}?" if is_checking(incident) else "{}").format(cut(proposal.owner.team_name, MAX_NAME))


def claimed_owner(incident: Incident) -> OwnerProposal | None:
    """Return the claimed owner; None while it is only being checked, or if nobody can be named."""
    owner = incident.findings.owner
    return owner if owner is not None and owner.owner is not None and not is_checking(incident) else None


def _judged(claim: str, prediction: str, right: ButtonAction, wrong: ButtonAction) -> Judged:
    return Judged(claim, (button(right, prediction), button(wrong, prediction)))


def _line(
    label: str,
    text: str,
    *,
    badge: Badge | None = None,
    code: str = "",
    links: tuple[Link, ...] = (),
    subtle: bool = False,
) -> Iterator[Line]:
    """Yield the line, unless it is empty."""
    shortened = cut(text, MAX_TEXT)
    if shortened or code or links:
        yield Line(shortened, label, badge, code, links, is_subtle=subtle)


def _minute(at: datetime, day: datetime) -> str:
    """Return the time of day, with the date if that differs from `day`'s."""
    at, day = at.astimezone(UTC), day.astimezone(UTC)
    if at.date() == day.date():
        return f"{at:%H:%M} UTC"
    year = "" if at.year == day.year else f" {at.year}"
    return f"{at.day} {at:%b}{year} {at:%H:%M} UTC"


def format_duration(length: timedelta) -> str:
    """Return a length of time in its largest two units."""
    if length < timedelta(minutes=1):
        return "less than a minute"
    minutes = int(length.total_seconds()) // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"
