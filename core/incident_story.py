"""What is told of an incident line by line, the same on every platform: its owner, its standing, its parts."""

from __future__ import annotations

from collections.abc import Sequence

from core.incident import Absorption, AskedTeam, Hop, Incident, IncidentState, OwnerProposal, Vote
from core.messages import (
    A_PERSON_DECIDES,
    LESS_LIKELY,
    NEAREST,
    NOT_CLEAR,
    ON_CALL,
    ON_CALL_UNKNOWN,
    RelatedIncident,
    Verdict,
)


def owner_story(incident: Incident) -> tuple[str, ...]:
    """What speaks for the owner, and how people sent the incident on. Untrusted."""
    owner = incident.owner.owner if incident.owner is not None else None
    names = _names(incident)
    return (*(owner.reasons if owner is not None else ()), *(_hop(hop, names) for hop in incident.hops))


MAX_ON_CALL = 3  # people of a team that is asked who are named


def unclear_told(proposal: OwnerProposal) -> str:
    """That nobody can be named."""
    return NOT_CLEAR if proposal.asked else A_PERSON_DECIDES


def not_asked_label(proposal: OwnerProposal) -> str:
    """What the teams are called that are not asked, where nobody can be named."""
    return LESS_LIKELY if proposal.asked else NEAREST


def on_call_told(team: AskedTeam) -> str:
    """“on call: Asha Brandt”, also that it is unknown; empty where nobody is. Untrusted."""
    missing = len(team.on_call) - MAX_ON_CALL
    people = ", ".join(team.on_call[:MAX_ON_CALL]) + (f" and {missing} more" if missing > 0 else "")
    told = ON_CALL_UNKNOWN.format(name=team.on_call_unknown) if team.on_call_unknown else people
    return f"{ON_CALL.lower()}: {told}" if told else ""


def suggested_severity(incident: Incident) -> str:
    """“looks critical”, or by whom it was said; empty where nothing is suggested."""
    suggestion = incident.suggested_severity
    if incident.severity_by:
        return f"{incident.severity}, says {incident.severity_by}"
    return f"looks {suggestion.severity}" if suggestion is not None else ""


def suggested_duplicate(incident: Incident) -> str:
    """Of which incident it is probably another sign, or surely; empty where nothing is suggested. Untrusted."""
    suggestion = incident.suggested_duplicate
    if suggestion is None:
        return ""
    sure = "of" if incident.duplicate_of else "probably of"
    return f"{sure} {suggestion.title} ({suggestion.incident_id})"


def suggestions_told(incident: Incident) -> tuple[str, ...]:
    """What speaks for the suggested severity and duplicate, line by line. Untrusted."""
    told: list[str] = []
    if severity := incident.suggested_severity:
        told += [f"Looks {severity.severity}: {each}" for each in severity.evidence]
    if duplicate := incident.suggested_duplicate:
        told += [f"Duplicate of {duplicate.incident_id}: {each}" for each in duplicate.evidence]
    return tuple(told)


def votes_told(incident: Incident) -> tuple[str, ...]:
    """Every vote of the negotiations and its reason, the last round first. Untrusted."""
    votes = incident.owner.votes if incident.owner is not None else ()
    names = _names(incident)
    return tuple(_vote(vote, names) for vote in sorted(votes, key=lambda vote: (-vote.hop, -vote.round)))


def _names(incident: Incident) -> dict[str, str]:
    """Team id → what the teams that took part are called."""
    if incident.owner is None:
        return {}
    voters = {vote.voter: vote.voter_name for vote in incident.owner.votes if vote.voter_name}
    return voters | {candidate.team_id: candidate.team_name for candidate in incident.owner.candidates}


def _hop(hop: Hop, names: dict[str, str]) -> str:
    told = f"Not {names.get(hop.turned_away, hop.turned_away)}'s" if hop.turned_away else "Sent on"
    given = f", given to {names.get(hop.given_to, hop.given_to)}" if hop.given_to else ""
    reason = f": {hop.reason}" if hop.reason else ""
    return f"{told}, says {hop.person}{given}{reason}"


def _vote(vote: Vote, names: dict[str, str]) -> str:
    choice = names.get(vote.choice, vote.choice) if vote.choice else "nobody"
    round_told = f"Hop {vote.hop}, round {vote.round}" if vote.hop else f"Round {vote.round}"
    return f"{round_told}, {names.get(vote.voter, vote.voter)} for {choice}: {vote.reason}"


MAX_STANDING = 200  # bytes of one of its lines
MAX_PARTS = 5  # incidents that are named in the message of the one that leads them


def guidance_told(incident: Incident) -> tuple[str, ...]:
    """Return the next action from the runbook and what fixed the same cause before, line by line. Untrusted."""
    lines: list[str] = []
    if (runbook := incident.runbook) is not None:
        cited = runbook.citation
        named = f"{cited.title}, {cited.heading}" if cited is not None else runbook.url
        said = ": ".join(each for each in (runbook.next_action, runbook.command) if each)
        lines.append(f"Runbook ({named}) says: {said}" if said else f"Runbook: {named}")
    if (past := incident.precedent) is not None:
        lines.append(f"{past.id} had a cause like this one, and was fixed by: {past.fix}")
    return tuple(lines)


def standing(incident: Incident) -> tuple[str, ...]:
    """What is out of the ordinary about an incident, line by line. Untrusted."""
    lines: list[str] = []
    if incident.flapping:
        lines.append(f"Flapping: it fired again {incident.reopened_count} times. Nobody is called anew.")
    if incident.silenced is not None:
        until = f"{incident.silenced.until:%Y-%m-%d %H:%M} UTC"
        reason = f": {incident.silenced.reason}" if incident.silenced.reason else ""
        lines.append(f"Silenced by {incident.silenced.silenced_by} until {until}{reason}")
    if incident.cut_short:
        lines.append(incident.cut_short)
    if (parent := incident.suggested_parent) is not None:
        lines.append(f"May be part of {parent.title} ({parent.incident_id}): {parent.reason}")
    if incident.explanation is not None and (note := incident.explanation.rechecked_after) is not None:
        lines.append(f"Re-checked after {note.person}'s note: {note.text}")
    return tuple(each.encode()[:MAX_STANDING].decode(errors="ignore") for each in (*lines, *guidance_told(incident)))


def absorbed_because(absorption: Absorption) -> str:
    """Why an incident is a part of another one. Untrusted."""
    return f"{absorption.person} says so" if absorption.person else absorption.reason


def parts_counted(parts: Sequence[RelatedIncident]) -> str:
    """How many incidents are a part of this one, with how many alerts; empty for none."""
    if not parts:
        return ""
    incidents = "1 more incident" if len(parts) == 1 else f"{len(parts)} more incidents"
    alerts = sum(part.alert_count for part in parts)
    still_open = sum(part.is_open for part in parts)
    return f"{incidents} with {alerts} {'alert' if alerts == 1 else 'alerts'}, {still_open} still open"


def part_told(part: RelatedIncident) -> str:
    """One of them, in a few words after its title."""
    alerts = f"{part.alert_count} {'alert' if part.alert_count == 1 else 'alerts'}"
    return alerts if part.is_open else f"{alerts}, resolved"


def taking_verdict(incident: Incident) -> tuple[Verdict, ...]:
    """The button with which a person takes it, none for one that is over."""
    if incident.state is not IncidentState.OPEN:
        return ()
    return (Verdict.TAKE_OVER,) if incident.taken_by else (Verdict.TAKE_IT,)


def grouping_verdict(incident: Incident) -> tuple[Verdict, ...]:
    """Return the buttons that say which incidents belong together, none for one that is over and stands for itself."""
    if incident.absorbed is not None:
        return (Verdict.SEPARATE,)
    if incident.state is not IncidentState.OPEN:
        return ()
    return (Verdict.JOIN_SUGGESTED, Verdict.BELONGS) if incident.suggested_parent else (Verdict.BELONGS,)


def is_put_off(incident: Incident) -> bool:
    """Whether it is not looked into for now, since it is silenced or a part of another, and nothing is known of it."""
    is_alone = incident.absorbed is None and incident.silenced is None
    return not is_alone and incident.owner is None and incident.explanation is None
