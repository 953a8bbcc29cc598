"""An incident in Teams: the one message that is edited as work goes on, and the details in its thread."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from adapters.teams.elements import (
    MAX_SUMMARY,
    SPACE,
    Card,
    Element,
    Room,
    Run,
    button,
    card,
    container,
    dotted,
    heading,
    labelled,
    line,
    link_button,
    listing,
    note,
    prose,
    refreshed,
    run,
    titled,
)
from adapters.teams.owner_calls import is_it_theirs
from adapters.teams.suggestions import suggestion_buttons, suggestions
from core.confidence.badge import Badge
from core.incident import (
    Evidence,
    Explanation,
    Hypothesis,
    Incident,
    IncidentState,
    Severity,
    SimilarIncident,
    Stage,
    TimelineEntry,
)
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
    RelatedIncident,
    Verdict,
)

# The colour repeats what the words say, so that it may be missed.
SEVERITY_STYLES = {Severity.CRITICAL: "attention", Severity.WARNING: "warning", Severity.INFO: "accent"}
SEVERITY_SIGNS = {Severity.CRITICAL: "▲", Severity.WARNING: "◆", Severity.INFO: "●"}

PROGRESS = {
    Stage.TRIAGING: "✓ posted · ◐ finding the owner … · ○ looking for the cause",
    Stage.EXPLAINING: "✓ posted · ✓ owner · ◐ looking for the cause …",
}
CAUSE_BEFORE_EXPLANATION = {
    Stage.TRIAGING: "next",
    Stage.EXPLAINING: "looking for the cause …",
    Stage.DONE: "could not be determined",
}

STILL_LOOKING = "✓ posted · ✓ owner · ✓ cause · ◐ {progress}"

MAX_NAMES = 3  # on-call people or candidate teams shown
MAX_NAME = 80  # characters


def incident_card(message: IncidentMessage, room: Room) -> Card:
    incident = message.incident
    body = [
        container(_header(incident, room), style=_style(incident), bleed=True),
        *_description(incident, room),
        *_grouping(message, room),
        *labelled("Owner", [] if is_put_off(incident) else _owner(incident, asks=message.asks_owner)),
        *labelled("Taken by", line([run(incident.taken_by, MAX_NAME, weight="Bolder")])),
        *labelled("Acknowledged", _acknowledged(incident)),
        *labelled("Cause", [] if is_put_off(incident) else _cause(incident, room, asks=message.asks_cause)),
        *labelled("Next check", _next_check(incident, room)),
        *suggestions(incident, room),
        *note("" if is_put_off(incident) else _progress(incident), MAX_SUMMARY),
        *_footnotes(incident, room),
    ]
    summary = " · ".join(filter(None, (f"{_state(incident)}: {incident.title}", _owner_name(incident))))
    shown = card(body, _buttons(incident, room), summary)
    return refreshed(shown) if incident.state is IncidentState.OPEN else shown


def details_card(incident: Incident, room: Room) -> Card:
    explanation = incident.explanation or Explanation((), (), (), ())
    body = [
        *titled("Why this owner", _owner_reasons(incident, room)),
        *titled("How the teams voted", listing(votes_told(incident), room, "votes", lambda each: _bullet(each, room))),
        *titled("Severity and duplicates", _suggestions(incident, room)),
        *_hypotheses(explanation, room),
        *titled("Ruled out", listing(explanation.ruled_out, room, "of them", lambda each: _bullet(each, room))),
        *titled("Similar incidents", listing(explanation.similar, room, "of them", lambda each: _similar(each, room))),
        *titled("Timeline (UTC)", listing(explanation.timeline, room, "entries", lambda each: _entry(each, room))),
        *titled("What the model did", listing(_steps(explanation), room, "steps", lambda each: _bullet(each, room))),
        *_unavailable(explanation, room),
    ]
    return card(body, (), f"Details: {incident.title}")


# --- the one message -------------------------------------------------------------------------------------------------


def _style(incident: Incident) -> str:
    return "good" if incident.state is IncidentState.RESOLVED else SEVERITY_STYLES[incident.severity]


def _state(incident: Incident) -> str:
    return "Resolved" if incident.state is IncidentState.RESOLVED else incident.severity.capitalize()


def _header(incident: Incident, room: Room) -> list[Element]:
    if incident.resolved_at is not None:
        state = f"✓ Resolved {_minute(incident.resolved_at)} · {incident.severity} since {_minute(incident.started_at)}"
    else:
        firing = "firing again, first" if incident.reopened_count else "firing since"
        state = f"{SEVERITY_SIGNS[incident.severity]} {_state(incident)} · {firing} {_minute(incident.started_at)}"
    return [
        *line([run(state, 120, weight="Bolder", size="Small")]),
        *line([run(incident.title, min(room.characters, 300), weight="Bolder", size="Large")]),
        *line(dotted([_code(incident.service, MAX_NAME)], [run(_counts(incident), 80, size="Small")])),
    ]


def _counts(incident: Incident) -> str:
    if incident.alert_count <= 1:
        return ""
    if incident.alert_count > len(incident.alerts) or not incident.firing_count:
        return f"{incident.alert_count:,} alerts".replace(",", " ")
    return f"{incident.firing_count} of {incident.alert_count} alerts firing"


def _description(incident: Incident, room: Room) -> list[Element]:
    description = next((alert.description for alert in incident.alerts if alert.description), "")
    return line([run(description, min(room.characters, 400))], "Medium")


def _owner(incident: Incident, *, asks: bool) -> list[Element]:
    proposal = incident.owner
    if proposal is None:
        unknown = "finding the owner …" if incident.stage is Stage.TRIAGING else "could not be determined"
        return line([run(unknown, MAX_NAME, italic=True)])
    if proposal.owner is None:
        unclear = unclear_told(proposal)
        question = line(is_it_theirs(proposal.asked)) if proposal.asked else []
        nearest = _names(not_asked_label(proposal), [candidate.team_name for candidate in proposal.not_asked])
        return [*line(dotted([run(unclear, MAX_NAME)], _badge(proposal.badge))), *question, *nearest]
    team = proposal.owner.team_name
    named = run(IS_IT_YOURS.format(team=team) if asks else team, len(IS_IT_YOURS) + MAX_NAME, weight="Bolder")
    shown = dotted([named], _badge(proposal.badge))
    unknown = ON_CALL_UNKNOWN.format(name=proposal.on_call_unknown)
    return [*line(shown), *_names(ON_CALL, [unknown] if proposal.on_call_unknown else proposal.on_call)]


def _acknowledged(incident: Incident) -> list[Element]:
    said = incident.acknowledged
    if said is None:
        return []
    return line([run(" · ".join(filter(None, (said.by, f"in {incident.source}", _minute(said.at)))), 2 * MAX_NAME)])


def _names(label: str, names: Sequence[str]) -> list[Element]:
    if not names:
        return []
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    shown = ", ".join(run(name, MAX_NAME)["text"] for name in names[:MAX_NAMES])
    return note(f"{label}: {shown}{more}", 400)


def _cause(incident: Incident, room: Room, *, asks: bool) -> list[Element]:
    explanation = incident.explanation
    if explanation is None:
        doing = [run(CAUSE_BEFORE_EXPLANATION[incident.stage], MAX_NAME, italic=True)]
        return line(dotted(doing, [_code(incident.progress, MAX_NAME)] if incident.progress else []))
    if explanation.cause is None:
        return line([run("no culprit found", MAX_NAME)])
    cause = explanation.told
    said = prose(COULD_IT_BE.format(cause=cause) if asks else cause, min(room.characters, 400))
    return line(dotted(said, _badge(explanation.badge)))


def _progress(incident: Incident) -> str:
    if incident.explanation is not None and incident.stage is not Stage.DONE and incident.progress:
        return STILL_LOOKING.format(progress=incident.progress[:MAX_NAME])
    return PROGRESS.get(incident.stage, "")


def _next_check(incident: Incident, room: Room) -> list[Element]:
    cause = incident.explanation.cause if incident.explanation is not None else None
    return line(prose(cause.next_check, min(room.characters, 400))) if cause is not None else []


def _footnotes(incident: Incident, room: Room) -> list[Element]:
    notes: list[Element] = []
    if incident.owner is not None:
        notes += note(incident.owner.note, min(room.characters, MAX_SUMMARY))
        notes += note(f"Owner: {incident.owner.badge.explanation}", MAX_SUMMARY)
    if incident.explanation is not None:
        if incident.explanation.badge is not None:
            notes += note(f"Cause: {incident.explanation.badge.explanation}", MAX_SUMMARY)
        notes += _unavailable(incident.explanation, room)
    return notes


def _grouping(message: IncidentMessage, room: Room) -> list[Element]:
    """What it belongs to, what belongs to it, and what else is out of the ordinary."""
    shown: list[Element] = []
    if message.leader is not None and message.incident.absorbed is not None:
        led = run(message.leader.title, min(room.characters, 200), url=message.leader.url, weight="Bolder")
        reason = run(absorbed_because(message.incident.absorbed), min(room.characters, 200))
        shown += labelled("Part of", line(dotted([led], [reason])))
    if message.parts:
        named = listing(message.parts[:MAX_PARTS], room, "incidents", lambda part: _part(part, room))
        shown += labelled("Explains", [*line([run(parts_counted(message.parts), MAX_SUMMARY)]), *named])
    for said in standing(message.incident):
        shown += note(said, min(room.characters, MAX_SUMMARY))
    return shown


def _part(part: RelatedIncident, room: Room) -> list[Element]:
    title = run(part.title, min(room.characters, 120), url=part.url)
    return line(dotted([title], [run(part_told(part), MAX_NAME, isSubtle=True)]))


def _buttons(incident: Incident, room: Room) -> list[Element]:
    offered = [(verdict, incident.id) for verdict in taking_verdict(incident)]
    if incident.owner is not None and incident.owner.owner is not None:
        owner = incident.owner.prediction_id
        offered += [(Verdict.OWNER_RIGHT, owner), (Verdict.OWNER_WRONG, owner)]
    if incident.explanation is not None and incident.explanation.prediction_id is not None:
        cause = incident.explanation.prediction_id
        offered += [(Verdict.CAUSE_RIGHT, cause), (Verdict.CAUSE_WRONG, cause)]
    offered += suggestion_buttons(incident, room)
    if incident.owner is not None:
        offered.append((Verdict.HAND_OVER, incident.id))
    offered += [(verdict, incident.id) for verdict in grouping_verdict(incident)]
    if incident.owner is not None:
        offered.append((Verdict.WHY_OWNER, incident.owner.prediction_id))
    if incident.explanation is not None and incident.explanation.prediction_id is not None:
        offered.append((Verdict.WHY_CAUSE, incident.explanation.prediction_id))
    source = next((alert.url for alert in incident.alerts if alert.url), "")
    return [*(button(verdict, subject) for verdict, subject in offered), *link_button("Open alert", source)]


def _owner_name(incident: Incident) -> str:
    owner = incident.owner.owner if incident.owner is not None else None
    return f"Owner: {owner.team_name}" if owner is not None else ""


# --- the details -----------------------------------------------------------------------------------------------------


def _owner_reasons(incident: Incident, room: Room) -> list[Element]:
    return listing(owner_story(incident), room, "reasons", lambda each: _bullet(each, room))


def _suggestions(incident: Incident, room: Room) -> list[Element]:
    return listing(suggestions_told(incident), room, "of them", lambda each: _bullet(each, room))


def _hypotheses(explanation: Explanation, room: Room) -> list[Element]:
    if not explanation.hypotheses:
        return [heading("No culprit found")]
    badges = (explanation.badge, *[None] * (len(explanation.hypotheses) - 1))
    numbered = [*zip(range(1, len(badges) + 1), explanation.hypotheses, badges, strict=True)]
    shown = Room(min(room.entries, 3), room.characters)
    return listing(numbered, shown, "hypotheses", lambda each: [_hypothesis(*each, room)])


def _hypothesis(number: int, hypothesis: Hypothesis, badge: Badge | None, room: Room) -> Element:
    title = [run(f"{number}.", 4, weight="Bolder"), SPACE, *prose(hypothesis.cause, room.characters, weight="Bolder")]
    quoted = Room(min(room.entries, 5), min(room.characters, 300))
    elements = [
        *line(dotted(title, [_code(hypothesis.service, MAX_NAME)], _badge(badge))),
        *listing(hypothesis.evidence, quoted, "lines of evidence", lambda each: _evidence(each, quoted)),
        *titled(
            "Speaks against it",
            listing(hypothesis.contradicting, quoted, "lines", lambda each: _evidence(each, quoted)),
        ),
        *labelled("Disproof", line(prose(hypothesis.disproof, quoted.characters))),
        *labelled("Next check", line(prose(hypothesis.next_check, quoted.characters))),
        *labelled("Responsible", line([run(hypothesis.responsibility, MAX_NAME)] if hypothesis.responsibility else [])),
    ]
    return container(elements, separator=number > 1, spacing="Medium")


def _steps(explanation: Explanation) -> list[str]:
    steps = explanation.trajectory.steps if explanation.trajectory is not None else ()
    return [step.told for step in steps]


def _evidence(evidence: Evidence, room: Room) -> list[Element]:
    at = f"{evidence.at.astimezone(UTC):%m-%d %H:%M:%S}" if evidence.at else ""
    small: dict[str, Any] = {"size": "Small", "isSubtle": True}
    where = dotted(
        [run(evidence.kind.capitalize(), 30, **small)],
        [run(evidence.source, MAX_NAME, url=evidence.url, **small)],
        [run(at, 20, **small)],
    )
    return [*line(where), *line([_code(evidence.quote, room.characters)], "None")]


def _similar(incident: SimilarIncident, room: Room) -> list[Element]:
    title = run(f"{incident.id} {incident.title}", min(room.characters, 200), url=incident.url, weight="Bolder")
    facts = [("owner", incident.owner), ("cause", incident.root_cause), ("fix", incident.fix)]
    told = [line([run(f"{name}: {value}", room.characters, size="Small")], "None") for name, value in facts if value]
    return [*line([title]), *(element for elements in told for element in elements)]


def _entry(entry: TimelineEntry, room: Room) -> list[Element]:
    at = _code(f"{entry.at.astimezone(UTC):%H:%M:%S}", 10)
    return line([at, SPACE, SPACE, run(entry.text, min(room.characters, 300), size="Small")], "None")


def _bullet(text: str, room: Room) -> list[Element]:
    return line([run("•", 1), SPACE, *prose(text, min(room.characters, 300))])


def _unavailable(explanation: Explanation, room: Room) -> list[Element]:
    names = "; ".join(explanation.unavailable)
    return note(f"Could not be read: {names}", min(room.characters, 400)) if names else []


def _badge(badge: Badge | None) -> list[Run]:
    return [run(badge.text, MAX_NAME, weight="Bolder", size="Small", color="Accent")] if badge else []


def _code(text: str, limit: int) -> Run:
    return run(text, limit, fontType="Monospace", size="Small")


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
