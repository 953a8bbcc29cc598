"""An incident in Slack: the one message that is edited as work goes on, and the details in its thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapters.slack import blocks
from adapters.slack.blocks import Block, listing
from adapters.slack.mrkdwn import bold, code, escape, link, prose
from adapters.slack.owner_calls import is_it_theirs
from adapters.slack.parts import (
    LINE,
    NAME,
    Rendered,
    badge,
    context,
    dotted,
    fallback,
    feedback_buttons,
    minute,
    second,
    section,
    titled,
)
from adapters.slack.suggestions import suggestion_buttons, suggestions
from core.confidence.badge import Badge
from core.incident import Evidence, Explanation, Hypothesis, Incident, IncidentState, Severity, SimilarIncident, Stage
from core.incident_story import (
    MAX_PARTS,
    absorbed_because,
    grouping_verdict,
    is_put_off,
    not_asked_label,
    owner_story,
    part_told,
    parts_counted,
    standing,
    suggestions_told,
    taking_verdict,
    unclear_told,
    votes_told,
)
from core.messages import (
    COULD_IT_BE,
    IS_IT_YOURS,
    ON_CALL,
    ON_CALL_UNKNOWN,
    IncidentMessage,
    Verdict,
)

SEVERITY_ICONS = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟡", Severity.INFO: "🔵"}
RESOLVED_ICON = "✅"

CAUSE_BEFORE_EXPLANATION = {
    Stage.TRIAGING: "_next_",
    Stage.EXPLAINING: "_looking for the cause …_",
    Stage.DONE: "could not be determined",
}

STILL_LOOKING = "_still looking …_"  # while a cause stands there already

MAX_NAMES = 3  # on-call people or candidate teams shown
MAX_HYPOTHESES = 3  # shown in full

# Characters, escapes included; the parts of the details together stay below blocks.MAX_MESSAGE.
SHORT_LINE = 150
EVIDENCE_SOURCE = 300
EVIDENCE_QUOTE = 160
EVIDENCE = 800
CONTRADICTING = 400
PART = 300  # of one incident that belongs to another, its address included
REASONS = 600
VOTES = 900
RULED_OUT = 1_000
SIMILAR = 1_600
TIMELINE = 1_400
UNAVAILABLE = 400


def incident_message(message: IncidentMessage) -> Rendered:
    incident = message.incident
    icon, state = _state(incident)
    return Rendered(
        fallback([f"{state}: {incident.title}", _owner_name(incident), _cause_text(incident)]),
        [
            blocks.header(f"{icon} {state} · {incident.title}"),
            blocks.section("\n".join(_happening(incident))),
            *section("\n".join(_grouping(message))),
            *_findings(message),
            *suggestions(incident),
            *context("\n".join(_footnotes(incident))),
            *_buttons(incident),
        ],
    )


def incident_details(incident: Incident) -> Rendered:
    explanation = incident.explanation or Explanation((), (), (), ())
    timeline = [f"{second(entry.at)}  {prose(entry.text, SHORT_LINE)}" for entry in explanation.timeline]
    return Rendered(
        fallback([f"Details: {incident.title}", _cause_text(incident)]),
        [
            *titled("Why this owner", _owner_reasons(incident), "reasons", REASONS),
            *titled("How the teams voted", [f"• {prose(each, LINE)}" for each in votes_told(incident)], "votes", VOTES),
            *titled(
                "Severity and duplicates",
                [f"• {prose(each, LINE)}" for each in suggestions_told(incident)],
                "",
                REASONS,
            ),
            *_hypotheses(explanation),
            *titled("Ruled out", [f"• {prose(each, LINE)}" for each in explanation.ruled_out], "", RULED_OUT),
            *titled("Similar incidents", [_similar(each) for each in explanation.similar], "", SIMILAR),
            *titled("Timeline (UTC)", timeline, "entries", TIMELINE),
            *titled("What the model did", _steps(explanation), "steps", TIMELINE),
            *context(_unavailable(explanation)),
        ],
    )


# --- the one message -------------------------------------------------------------------------------------------------


def _state(incident: Incident) -> tuple[str, str]:
    if incident.state is IncidentState.RESOLVED:
        return RESOLVED_ICON, "Resolved"
    return SEVERITY_ICONS[incident.severity], incident.severity.capitalize()


def _happening(incident: Incident) -> Iterable[str]:
    state = f"*Firing{' again*, first' if incident.reopened_count else '* since'} {minute(incident.started_at)}"
    if incident.resolved_at is not None:
        state = f"*Resolved* {minute(incident.resolved_at)} · {incident.severity} since {minute(incident.started_at)}"
    name = next((alert.name for alert in incident.alerts if alert.name != incident.title), "")
    yield dotted(state, code(incident.service, NAME), code(name, NAME), _counts(incident))
    description = next((alert.description for alert in incident.alerts if alert.description), "")
    if description:
        yield prose(description, LINE)


def _counts(incident: Incident) -> str:
    if incident.alert_count <= 1:
        return ""
    if incident.alert_count > len(incident.alerts) or not incident.firing_count:
        return f"{incident.alert_count:,} alerts".replace(",", " ")
    return f"{incident.firing_count} of {incident.alert_count} alerts firing"


def _owner(incident: Incident, *, asks: bool) -> Iterable[str]:
    proposal = incident.owner
    if proposal is None:
        yield f"*Owner*  {'_finding the owner …_' if incident.stage is Stage.TRIAGING else 'could not be determined'}"
    elif proposal.owner is None:
        yield f"*Owner*  {dotted(unclear_told(proposal), badge(proposal.badge))}"
        if proposal.asked:
            yield is_it_theirs((team, "") for team in proposal.asked)
        yield from _names(not_asked_label(proposal), [candidate.team_name for candidate in proposal.not_asked])
    else:
        team = escape(proposal.owner.team_name, NAME)
        named = IS_IT_YOURS.format(team=team) if asks else team
        yield f"*Owner*  {dotted(named, badge(proposal.badge))}"
        unknown = ON_CALL_UNKNOWN.format(name=proposal.on_call_unknown)
        yield from _names(ON_CALL, [unknown] if proposal.on_call_unknown else proposal.on_call)
    if proposal is not None and proposal.note:
        yield f"_{escape(proposal.note, LINE)}_"
    if incident.taken_by:
        yield f"*Taken by*  {escape(incident.taken_by, NAME)}"
    if incident.acknowledged is not None:
        by, at = incident.acknowledged.by, incident.acknowledged.at
        yield f"*Acknowledged*  {dotted(escape(by, NAME), f'in {escape(incident.source, NAME)}', minute(at))}"


def _names(label: str, names: Sequence[str]) -> Iterable[str]:
    if names:
        shown = ", ".join(escape(name, NAME) for name in names[:MAX_NAMES])
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        yield f"{label}: {shown}{more}"


def _cause(incident: Incident, *, asks: bool) -> Iterable[str]:
    explanation = incident.explanation
    if explanation is None:
        yield f"*Cause*  {dotted(CAUSE_BEFORE_EXPLANATION[incident.stage], code(incident.progress, NAME))}"
    elif explanation.cause is None:
        yield "*Cause*  no culprit found"
    else:
        cause = prose(explanation.told, LINE).rstrip(".")
        named = COULD_IT_BE.format(cause=cause) if asks else cause
        yield f"*Cause*  {dotted(named, badge(explanation.badge))}"
        if explanation.cause.next_check:
            yield f"*Next check*  {prose(explanation.cause.next_check, LINE)}"
    if explanation is not None and incident.stage is not Stage.DONE and incident.progress:
        yield dotted(STILL_LOOKING, code(incident.progress, NAME))


def _findings(message: IncidentMessage) -> list[Block]:
    """Owner and cause; nothing while they are not looked for."""
    incident = message.incident
    if is_put_off(incident):
        return []
    return [
        blocks.section("\n".join(_owner(incident, asks=message.asks_owner))),
        blocks.section("\n".join(_cause(incident, asks=message.asks_cause))),
    ]


def _grouping(message: IncidentMessage) -> Iterable[str]:
    """What it belongs to, what belongs to it, and what else is out of the ordinary."""
    incident, leader = message.incident, message.leader
    if leader is not None and incident.absorbed is not None:
        reason = escape(absorbed_because(incident.absorbed), LINE)
        yield f"*Part of*  {dotted(link(leader.url, leader.title, PART), reason)}"
    if message.parts:
        yield f"*Explains*  {parts_counted(message.parts)}"
        for part in message.parts[:MAX_PARTS]:
            yield f"• {dotted(link(part.url, part.title, PART), part_told(part))}"
    for said in standing(incident):
        yield f"_{escape(said, LINE)}_"


def _footnotes(incident: Incident) -> Iterable[str]:
    owner = incident.owner.badge.explanation if incident.owner is not None else ""
    badge_of_cause = incident.explanation.badge if incident.explanation is not None else None
    cause = badge_of_cause.explanation if badge_of_cause is not None else ""
    for of, explanation in (("Owner and cause", owner),) if owner == cause else (("Owner", owner), ("Cause", cause)):
        if explanation:
            yield f"{of}: {escape(explanation, LINE)}"
    if incident.explanation is not None and incident.explanation.unavailable:
        yield _unavailable(incident.explanation)


def _buttons(incident: Incident) -> list[Block]:
    offered = [(verdict, incident.id) for verdict in taking_verdict(incident)]
    if incident.owner is not None and incident.owner.owner is not None:
        owner = incident.owner.prediction_id
        offered += [(Verdict.OWNER_RIGHT, owner), (Verdict.OWNER_WRONG, owner)]
    if incident.explanation is not None and incident.explanation.prediction_id is not None:
        cause = incident.explanation.prediction_id
        offered += [(Verdict.CAUSE_RIGHT, cause), (Verdict.CAUSE_WRONG, cause)]
    offered += suggestion_buttons(incident)
    if incident.owner is not None:
        offered.append((Verdict.HAND_OVER, incident.id))
    offered += [(verdict, incident.id) for verdict in grouping_verdict(incident)]
    if incident.owner is not None:
        offered.append((Verdict.WHY_OWNER, incident.owner.prediction_id))
    if incident.explanation is not None and incident.explanation.prediction_id is not None:
        offered.append((Verdict.WHY_CAUSE, incident.explanation.prediction_id))
    return feedback_buttons(offered)


# --- the details -----------------------------------------------------------------------------------------------------


def _owner_reasons(incident: Incident) -> list[str]:
    return [f"• {prose(each, LINE)}" for each in owner_story(incident)]


def _hypotheses(explanation: Explanation) -> list[Block]:
    if not explanation.hypotheses:
        return [blocks.section("*No culprit found.*")]
    shown = [
        blocks.section("\n".join(_hypothesis(number, hypothesis, explanation.badge if number == 1 else None)))
        for number, hypothesis in enumerate(explanation.hypotheses[:MAX_HYPOTHESES], 1)
    ]
    missing = len(explanation.hypotheses) - len(shown)
    return [*shown, *context(f"_and {missing} more hypotheses_" if missing else "")]


def _hypothesis(number: int, hypothesis: Hypothesis, shown_badge: Badge | None) -> Iterable[str]:
    title = f"{number}. {bold(hypothesis.cause.rstrip('.'), LINE)}"
    yield dotted(title, code(hypothesis.service, NAME), badge(shown_badge))
    if hypothesis.evidence:
        yield listing([_evidence(each) for each in hypothesis.evidence], "lines of evidence", EVIDENCE)
    if hypothesis.contradicting:
        yield "Speaks against it:"
        yield listing([_evidence(each) for each in hypothesis.contradicting], "lines", CONTRADICTING)
    if hypothesis.disproof:
        yield f"Would disprove it: {prose(hypothesis.disproof, LINE)}"
    if hypothesis.next_check:
        yield f"Next check: {prose(hypothesis.next_check, LINE)}"
    if hypothesis.responsibility:
        yield f"Responsible: {hypothesis.responsibility}"


def _steps(explanation: Explanation) -> list[str]:
    steps = explanation.trajectory.steps if explanation.trajectory is not None else ()
    return [f"{number}. {escape(step.told, SHORT_LINE)}" for number, step in enumerate(steps, 1)]


def _evidence(evidence: Evidence) -> str:
    source = link(evidence.url, evidence.source, EVIDENCE_SOURCE)
    return f"• {dotted(evidence.kind, source, second(evidence.at) if evidence.at else '')}: " + code(
        evidence.quote, EVIDENCE_QUOTE
    )


def _similar(incident: SimilarIncident) -> str:
    title = link(incident.url, f"{incident.id} {incident.title}", LINE)
    facts = (("Cause", incident.root_cause), ("Fix", incident.fix))
    told = [f"{name}: {prose(value, SHORT_LINE)}" for name, value in facts if value]
    return "\n".join([f"• {dotted(title, escape(incident.owner, NAME))}", *told])


def _owner_name(incident: Incident) -> str:
    owner = incident.owner.owner if incident.owner is not None else None
    return f"Owner: {owner.team_name}" if owner is not None else ""


def _cause_text(incident: Incident) -> str:
    cause = incident.explanation.cause if incident.explanation is not None else None
    return f"Cause: {cause.cause}" if cause is not None else ""


def _unavailable(explanation: Explanation) -> str:
    names = escape("; ".join(explanation.unavailable), UNAVAILABLE)
    return f"Could not be read: {names}" if names else ""
