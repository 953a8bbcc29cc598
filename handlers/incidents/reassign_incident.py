"""Decisions of people about incidents: take one, give it to another team, reject its owner, merge and separate.

Each reassignment is stored as a hop on the incident, labels the proposal, and trains the next triage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.model.audit import Act, audit_entry
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import Audience, Channel
from core.model.findings import OwnerProposal, Relation, RelationKind, TeamScore
from core.model.incident import Hop, Incident, may_see_incident
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, HandoverRequest, JoinRequest, Notice
from core.model.team import Team, current_team
from core.ports import Store, Transaction
from handlers.common.ports import Ports
from handlers.common.record_prediction import record_prediction
from handlers.common.stored_incident import (
    change_incident,
    find_incident,
    read_incident,
    save_next,
    update_incident,
)
from handlers.incidents.arrange_incident import JOINING, separate
from handlers.incidents.investigate_incident import triage_again_task
from handlers.incidents.open_incident import ask_to_present, present_task
from handlers.incidents.ping_owner import find_on_call
from handlers.incidents.present_incident import MAX_PARTS, parts_of

ENGINE = "person"  # a reassignment is a claim too, and its accuracy is counted
VERSION = "reassignment-1"
CERTAIN = Evaluation(1.0, 1.0)
MAX_REASON = 300  # characters kept
MAX_HOPS = 20  # after this many, people have to settle it

PICK_TEAM = "Pick the team that should own it, then press “Reassign”. If you don’t know, press “Not ours”."
OVERTAKEN = "Nothing was changed, because it has already been reassigned since you were asked. If it isn’t theirs either, press “Reassign…” again."
TEAM_UNKNOWN = (
    "Nothing was changed, because it has no owner and I don’t know which team you belong to. "
    "Pick the team that should own it, or ask the person who works on it to press “Take”."
)
TOO_MANY_HOPS = f"Nothing was changed, because it has already been reassigned {MAX_HOPS} times. Please agree on an owner in the thread."

TAKEN = "Nothing was changed, because {person} already has it. Press “Take over” above to take it."
TAKEN_OVER = "{person} took it over from {before}."


async def ask_for_owner(feedback: Feedback, ports: Ports) -> None:
    """Post the reassignment menu, once for each hop and claim in a place, unless the platform opens a form.

    Does nothing for an incident that is not stored.
    """
    incident, _ = await pressed_incident(feedback, ports.store)
    if incident is None or feedback.in_form:
        return
    request = handover_request(incident, ports.company.teams)
    where = f"{feedback.place.platform}:{feedback.place.channel}:{feedback.place.thread or ''}"
    intent = f"handover:{incident.id}:{len(incident.hops)}:{request.claim}@{where}"
    await ports.poster.post_once(intent, feedback.place, request)


async def reassign_incident(feedback: Feedback, ports: Ports) -> None:
    """Give the incident to the picked team, or after `not ours` let the remaining teams negotiate.

    “Not ours” refers to the owner shown when the person was asked; if the owner has changed since, nothing is changed,
    and a notice says so. If several teams were asked, it refers to the person's own team; if that is unknown, nothing
    is changed. A repetition of an earlier statement, by anyone, changes nothing and pings nobody.
    """
    incident, claim = await pressed_incident(feedback, ports.store)
    if incident is None:
        return
    is_picked = feedback.verdict is ButtonAction.REASSIGN
    # The team may have been renamed since it was offered.
    given = current_team(feedback.choice, ports.company.teams) if is_picked else None
    hop = _hop(feedback, incident, given, ports.company.teams)
    refusal = _refusal(feedback, incident, claim, hop)
    if refusal is not None:
        await ports.poster.post_once(f"{refusal[0]}:{feedback.id}", feedback.place, refusal[1])
        return
    if not _is_known(feedback, incident):  # a known one means that the step ran before and was interrupted
        is_said = _is_said(hop, incident, ports.company.teams)
        if not is_said or incident.hops[-1].person != hop.person:  # people do not confirm their own statement
            await _label(feedback, incident, given, ports)
        if is_said:
            return
        incident = await _hand_over(incident, hop, given, ports)
        if not _is_known(feedback, incident):
            return  # another person said the same at the same time
    async with ports.store.transaction() as transaction:
        await transaction.tasks.add(present_task(incident) if given else triage_again_task(incident))
        await transaction.audit.add(
            audit_entry(
                f"reassigned:{feedback.id}",
                feedback.at,
                Act.REASSIGNED,
                feedback.person,
                incident.id,
                place=feedback.place,
                detail=f"{hop.turned_away or 'nobody'} → {hop.given_to or 'nobody yet'}",
            )
        )


async def pressed_incident(feedback: Feedback, store: Store) -> tuple[Incident | None, Prediction | None]:
    """Return the incident that a press is about, and the owner claim that it refers to, if it refers to one.

    There is no incident for pasted text, which is not stored and cannot be reassigned.
    """
    async with store.transaction() as transaction:
        named = await transaction.predictions.get(feedback.subject)
        claim = named if named is not None and named.kind is PredictionKind.OWNER else None
        return await transaction.incidents.get(claim.subject if claim is not None else feedback.subject), claim


def _refusal(feedback: Feedback, incident: Incident, claim: Prediction | None, hop: Hop) -> tuple[str, Notice] | None:
    """Return the notice that nothing is changed, with the name of its reason; None if something is changed.

    `claim` is the owner claim that “not ours” refers to. What an interrupted run of this step changed is not refused.
    """
    is_new, person, owner = not _is_known(feedback, incident), feedback.person, incident.findings.likely_owner
    is_outdated = claim is not None and claim.value != (owner.team_id if owner else "")
    refusals = (
        (is_new and is_outdated and feedback.verdict is ButtonAction.NOT_OURS, "overtaken", OVERTAKEN, person),
        (feedback.verdict is ButtonAction.REASSIGN and not hop.given_to, "pick-one", PICK_TEAM, person),
        (is_new and not (hop.turned_away or hop.given_to), "speaks-for", TEAM_UNKNOWN, person),
        (is_new and len(incident.hops) >= MAX_HOPS, "too-many-hops", TOO_MANY_HOPS, None),
    )
    return next(((name, Notice(text, only_for=reader)) for applies, name, text, reader in refusals if applies), None)


def _is_known(feedback: Feedback, incident: Incident) -> bool:
    return (feedback.person.name_or_id, feedback.at) in [(hop.person, hop.at) for hop in incident.hops]


def _hop(feedback: Feedback, incident: Incident, given: Team | None, teams: Sequence[Team]) -> Hop:
    owner = incident.findings.likely_owner
    turned_away = owner.team_id if owner is not None else _asked_team_of(feedback, incident, teams)
    if given is not None and (owner is None or turned_away in (given.id, *given.aliases)):
        turned_away = ""
    reason = " ".join(feedback.text.split())[:MAX_REASON]
    readers = tuple(sorted(feedback.audience.disclosed_to))
    return Hop(turned_away, given.id if given else "", feedback.person.name_or_id, reason, feedback.at, readers)


def _asked_team_of(feedback: Feedback, incident: Incident, teams: Sequence[Team]) -> str:
    """Return the id of the one candidate team that the person belongs to; empty if there is none or more than one."""
    person, team_ids = feedback.person.name_or_id, list[str]()
    for candidate in incident.findings.owner.asked if incident.findings.owner is not None else ():
        team = current_team(candidate.team_id, teams)
        if person in candidate.on_call or (team is not None and person in team.people):
            team_ids.append(candidate.team_id)
    return team_ids[0] if len(team_ids) == 1 else ""


def _is_said(hop: Hop, incident: Incident, teams: Sequence[Team]) -> bool:
    """Return whether the incident is already given to that team, or already turned away by this one."""
    if not hop.given_to:
        return hop.turned_away in incident.turned_away
    given = current_team(incident.given_to, teams)
    return given is not None and given.id == hop.given_to


async def _label(feedback: Feedback, incident: Incident, given: Team | None, ports: Ports) -> None:
    """Label the proposal wrong, unless the incident was given to the proposed team."""
    if incident.findings.owner is None or incident.findings.owner.owner is None:
        return
    right = given is not None and given == current_team(incident.findings.owner.owner.team_id, ports.company.teams)
    async with ports.store.transaction() as transaction:
        if await transaction.predictions.get(incident.findings.owner.prediction_id) is not None:
            await transaction.predictions.label(
                Outcome(
                    incident.findings.owner.prediction_id,
                    right,
                    feedback.person.key,
                    feedback.at,
                    feedback.text[:MAX_REASON],
                )
            )


async def _hand_over(incident: Incident, hop: Hop, given: Team | None, ports: Ports) -> Incident:
    owner = await _given(incident, hop, given, ports) if given else None

    def handed_over(latest: Incident) -> Incident:
        if _is_said(hop, latest, ports.company.teams):
            return latest
        return replace(
            latest.with_findings(owner=owner or latest.findings.owner), hops=(*latest.hops, hop), taken_by=""
        )

    return await update_incident(incident.id, handed_over, ports.store)


async def _given(incident: Incident, hop: Hop, given: Team, ports: Ports) -> OwnerProposal:
    """Return the proposal for a person's choice."""
    people, unknown = await find_on_call(given, ports.company.schedules, ports.clock.now())
    prediction_id, badge = await record_prediction(
        PredictionKind.OWNER,
        incident.id,
        given.id,
        CERTAIN,
        ports,
        engine=ENGINE,
        estimator_version=VERSION,
        group=given.id,
        hop=len(incident.hops) + 1,
    )
    owner = TeamScore(given.id, given.name, 1.0, (f"{hop.person} gave it to {given.name}",))
    others = incident.findings.owner.candidates if incident.findings.owner is not None else ()
    rest = tuple(replace(each, score=0.0) for each in others if each.team_id != given.id)
    votes = incident.findings.owner.votes if incident.findings.owner is not None else ()
    return OwnerProposal(owner, (owner, *rest), people, badge, prediction_id, votes, on_call_unknown=unknown)


async def take_incident(feedback: Feedback, ports: Ports) -> None:
    """Set the person as the assignee, unless another person has the incident and this is not `take over`.

    Does nothing for an incident that is not stored, such as pasted text.
    """
    incident = await find_incident(feedback.subject, ports.store)
    if incident is None:
        return
    person, before = feedback.person.name_or_id, incident.taken_by
    takes_over = feedback.verdict is not ButtonAction.TAKE_IT

    async def tell(notice: Notice) -> None:
        await ports.poster.post_once(f"taken:{feedback.id}", feedback.place, notice)

    async def taken(latest: Incident, transaction: Transaction) -> Incident:
        if latest.taken_by == person or (latest.taken_by and not takes_over):
            return latest
        saved = await save_next(replace(latest, taken_by=person), latest, transaction)
        await transaction.tasks.add(present_task(saved))
        return saved

    if takes_over and before not in ("", person):
        await tell(
            Notice(TAKEN_OVER.format(person=person, before=before))
        )  # first: a repeated step would not know from whom
    incident = await change_incident(feedback.subject, taken, ports.store)
    if incident.taken_by != person:
        await tell(Notice(TAKEN.format(person=incident.taken_by), only_for=feedback.person))


def handover_request(incident: Incident, teams: Sequence[Team]) -> HandoverRequest:
    """Return the reassignment form with every team except the current owner."""
    owner = incident.findings.likely_owner
    standing = current_team(owner.team_id, teams) if owner is not None else None
    others = sorted((team for team in teams if team != standing), key=lambda team: team.name)
    name = owner.team_name if owner else ""
    claim = incident.findings.owner.prediction_id if incident.findings.owner is not None else ""
    return HandoverRequest(incident.id, name, tuple((team.id, team.name) for team in others), claim)


MAX_OFFERED = 25  # incidents offered in one menu

NONE_OPEN = "There is no other open incident here to merge this one into."
PICK_INCIDENT = (
    "Pick the incident to merge this one into, then press “Merge”. It must be open and visible to the same people."
)


async def separate_incident(feedback: Feedback, ports: Ports) -> None:
    """Separate a merged incident and resume its investigation. Does nothing if it is not merged."""

    async def separated(incident: Incident, transaction: Transaction) -> Incident:
        parent = await transaction.incidents.get(incident.part_of.incident_id) if incident.part_of else None
        return await separate(incident, parent, transaction, feedback.at)

    await change_incident(feedback.subject, separated, ports.store)


async def ask_for_parent(feedback: Feedback, ports: Ports) -> None:
    """Offer, in the incident's thread, the open incidents that it may be merged into."""
    incident = await find_incident(feedback.subject, ports.store)
    if incident is None:
        return
    channels = await _current_channels(incident, ports)
    async with ports.store.transaction() as transaction:
        offered = await _candidates(incident, feedback.audience, channels, transaction)
    if offered:
        request = JoinRequest(incident.id, tuple((each.id, each.title) for each in offered[:MAX_OFFERED]))
        await ports.poster.post_once(f"join:{feedback.id}", feedback.place, request)
    else:
        await ports.poster.post_once(f"join:{feedback.id}", feedback.place, Notice(NONE_OPEN, only_for=feedback.person))


async def join_incident(feedback: Feedback, ports: Ports) -> None:
    """Merge the incident into the picked one, or into the suggested one if none was picked."""
    refused = False
    channels = await _current_channels(await read_incident(feedback.subject, ports.store), ports)

    async def joined(incident: Incident, transaction: Transaction) -> Incident:
        nonlocal refused
        candidates = {each.id: each for each in await _candidates(incident, feedback.audience, channels, transaction)}
        suggested = incident.relation(RelationKind.MAY_BE_PART_OF)
        parent = candidates.get(feedback.choice or (suggested.incident_id if suggested is not None else ""))
        refused = parent is None
        if parent is None:
            return incident
        merge = Relation(RelationKind.PART_OF, parent.id, at=feedback.at, person=feedback.person.name_or_id)
        free = incident.without_relation(RelationKind.APART_FROM, parent.id)
        merged = free.without_relation(RelationKind.MAY_BE_PART_OF).with_relation(merge)
        part = await save_next(merged, incident, transaction)
        before = await transaction.incidents.get(incident.part_of.incident_id) if incident.part_of else None
        for each in (part, parent, before):
            if each is not None:
                await ask_to_present(each, transaction, feedback.at)
        return part

    async with ports.store.lock(JOINING):
        await change_incident(feedback.subject, joined, ports.store)
    if refused:
        await ports.poster.post_once(
            f"pick-one:{feedback.id}", feedback.place, Notice(PICK_INCIDENT, only_for=feedback.person)
        )


async def _current_channels(incident: Incident, ports: Ports) -> Sequence[Channel]:
    """Return the channels as they are now, for an incident and those that it may be merged into."""
    async with ports.store.transaction() as transaction:
        latest = await transaction.incidents.latest_open(MAX_PARTS)
    return await ports.chats.channels_of([incident, *latest])


async def _candidates(
    incident: Incident, audience: Audience, channels: Sequence[Channel], transaction: Transaction
) -> list[Incident]:
    """Return the open incidents with the same readers, visible to this audience, that are not part of this incident.

    The newest come first.
    """
    parts, own = await parts_of(incident, transaction, MAX_PARTS), incident.placement.audience(channels)
    below = {incident.id, *(each.id for each in parts)}
    return [
        other
        for other in await transaction.incidents.latest_open(MAX_PARTS)
        if other.id not in below
        and other.silenced is None
        and own.shares_with(other.placement.audience(channels))
        and may_see_incident(audience, other, channels)
    ]
