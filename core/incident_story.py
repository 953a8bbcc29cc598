"""How an incident came to its owner, line by line, the same on every platform."""

from __future__ import annotations

from core.incident import Hop, Incident, Vote


def owner_story(incident: Incident) -> tuple[str, ...]:
    """What speaks for the owner, and how people sent the incident on. Untrusted."""
    owner = incident.owner.owner if incident.owner is not None else None
    names = _names(incident)
    return (*(owner.reasons if owner is not None else ()), *(_hop(hop, names) for hop in incident.hops))


def votes_told(incident: Incident) -> tuple[str, ...]:
    """Every vote of the negotiation and its reason, the last round first. Untrusted."""
    votes = incident.owner.votes if incident.owner is not None else ()
    names = _names(incident)
    return tuple(_vote(vote, names) for vote in sorted(votes, key=lambda vote: -vote.round))


def _names(incident: Incident) -> dict[str, str]:
    candidates = incident.owner.candidates if incident.owner is not None else ()
    return {candidate.team_id: candidate.team_name for candidate in candidates}


def _hop(hop: Hop, names: dict[str, str]) -> str:
    told = f"Not {names.get(hop.turned_away, hop.turned_away)}'s" if hop.turned_away else "Sent on"
    given = f", given to {names.get(hop.given_to, hop.given_to)}" if hop.given_to else ""
    reason = f": {hop.reason}" if hop.reason else ""
    return f"{told}, says {hop.person}{given}{reason}"


def _vote(vote: Vote, names: dict[str, str]) -> str:
    choice = names.get(vote.choice, vote.choice) if vote.choice else "nobody"
    return f"Round {vote.round}, {names.get(vote.voter, vote.voter)} for {choice}: {vote.reason}"
