"""Find the people on call for a team, and ping the probable owner of an incident in its thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import structlog

from core.model.badge import Policy
from core.model.conversation import Place
from core.model.errors import ToolUnavailable
from core.model.findings import AskedTeam
from core.model.incident import Incident, IncidentState, Stage
from core.model.messages import OwnerPing, OwnerQuestion
from core.model.team import Team, TeamRotas, current_team
from core.ports import OnCall, Partial
from handlers.common.ports import Ports

Duty = Callable[[AskedTeam], Awaitable[AskedTeam]]

DEADLINE = 3.0  # seconds that a schedule may take

log = structlog.get_logger()


async def ping_owner(incident: Incident, ports: Ports) -> None:
    """Ping the owner in the incident's thread if the badge is as high as the policy requires, once for each owner.

    If the policy allows pings at all, a team that a person assigned is pinged on every assignment. If no owner is
    named, the candidate teams are pinged in one message, once for each hop and pair, if the policy allows it and the
    cause analysis is done. Incidents that are closed, taken, silenced or merged are skipped. A team without a mention
    on the platform is named in plain text. The on-call schedule is read at this moment, because quiet hours or a shift
    change may have passed since triage.
    """
    message = incident.placement.message
    is_off = incident.state is not IncidentState.OPEN or incident.taken_by or incident.silenced or incident.part_of
    if message is None or is_off:
        return
    thread = message.thread
    call = _owner_call(incident, thread, ports.paging.policy, ports.company.teams) or _question(
        incident, thread, ports.paging.policy, ports.company.teams
    )
    if call is None or await ports.poster.is_posted(call[0]):
        return
    duty = partial(_on_duty, teams=ports.company.teams, schedules=ports.company.schedules, at=ports.clock.now())
    await ports.poster.post_once(call[0], thread, await _with_on_call(call[1], incident, duty))


async def _with_on_call(ping: OwnerPing | OwnerQuestion, incident: Incident, duty: Duty) -> OwnerPing | OwnerQuestion:
    """Return the message with the people who are on call now."""
    if isinstance(ping, OwnerQuestion):
        teams = await asyncio.gather(*(duty(team) for team, _ in ping.teams))
        return OwnerQuestion(tuple(zip(teams, (mention for _, mention in ping.teams), strict=True)))
    owner = incident.findings.likely_owner
    return replace(ping, on_call=(await duty(AskedTeam(owner.team_id, owner.team_name))).on_call) if owner else ping


async def _on_duty(
    candidate: AskedTeam, *, teams: Sequence[Team], schedules: Sequence[OnCall], at: datetime
) -> AskedTeam:
    """Return the team with its current on-call people; unchanged if the team no longer exists."""
    team = current_team(candidate.team_id, teams)
    if team is None:
        return candidate
    people, unknown = await find_on_call(team, schedules, at)
    return replace(candidate, on_call=people, on_call_unknown=unknown)


def _owner_call(
    incident: Incident, thread: Place, policy: Policy, teams: Sequence[Team]
) -> tuple[str, OwnerPing] | None:
    proposal = incident.findings.owner
    if proposal is None or proposal.owner is None:
        return None
    is_given = incident.given_to == proposal.owner.team_id
    may_ping = policy.pings(proposal.badge) or (is_given and policy.ping_owner_above is not None)
    team = current_team(proposal.owner.team_id, teams)
    if team is None or not may_ping:
        return None
    ping = OwnerPing(
        team.name, team.mentions.get(thread.platform, ""), proposal.badge, proposal.prediction_id, proposal.on_call
    )
    again = f":{len(incident.hops)}" if is_given else ""
    return f"ping:{incident.id}:{proposal.owner.team_id}{again}", ping


def _question(
    incident: Incident, thread: Place, policy: Policy, teams: Sequence[Team]
) -> tuple[str, OwnerQuestion] | None:
    candidates = incident.findings.owner.asked if incident.findings.owner is not None else ()
    # While the cause is still being analysed, it may yet identify the owner.
    if not candidates or not policy.ping_two_when_unsure or incident.stage is not Stage.DONE:
        return None
    today = [(each, current_team(each.team_id, teams)) for each in candidates]
    pair = "+".join(sorted(each.team_id for each in candidates))
    return f"ping-two:{incident.id}:{len(incident.hops)}:{pair}", OwnerQuestion(
        tuple((each, team.mentions.get(thread.platform, "") if team else "") for each, team in today)
    )


async def find_on_call(team: Team, schedules: Sequence[OnCall], at: datetime) -> tuple[tuple[str, ...], str]:
    """Return the people on call, and the names of the schedules that failed to answer (empty if all answered).

    The first of `schedules` that covers the team is asked; otherwise the rota in plumbline.yaml.
    """
    schedule = next((each for each in schedules if team.id in each.teams), TeamRotas((team,)))
    try:
        async with asyncio.timeout(DEADLINE):
            people = await schedule.people(team.id, at)
    except (ToolUnavailable, TimeoutError) as error:
        log.warning("on-call schedule not read", team=team.id, reason=str(error) or "too slow")
        return (), schedule.name
    gaps = people.gaps if isinstance(people, Partial) else ()
    for gap in gaps:
        log.warning("on-call schedule not read", team=team.id, reason=f"{gap.tool}: {gap.detail}")
    return tuple(people), ", ".join(gap.tool for gap in gaps)
