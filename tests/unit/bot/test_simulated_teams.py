"""What the product makes of a simulated model that plays the agents of triage."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.choice import Skill
from core.model_calls.metered_model import Limits, MeteredModel
from core.triage.agents import Dispute, Session, TeamDocuments, nothing_monitored, settled_by_model
from core.triage.managers import Enrichment, gather
from core.triage.negotiate import negotiate
from core.triage.owner_model import IncidentHistory
from tests.benchmarks.simulated_teams import SimulatedTeams
from tests.fakes.incidents import bare_incident

TEAMS = [Team(f"t{number}", f"Team {number}", f"## We own\n\nword{number} cables.\n") for number in range(7)]
COUNT = 21
OWNERS = {f"the {number} th thing is odd": f"t{number % 7}" for number in range(COUNT)}


def right_owners(right: float, skill: Skill) -> int:
    async def owner_of(text: str) -> str:
        incident = replace(bare_incident(text, id=text), service="")
        evidence = gather(incident, TEAMS, IncidentHistory(()), Enrichment())
        dispute = Dispute(incident, negotiate(evidence), evidence)
        session = Session(MeteredModel(SimulatedTeams(OWNERS, right), Limits(calls=1_000)), ModelRequest(()))
        settled = await settled_by_model(dispute, session, skill, TeamDocuments(), nothing_monitored)
        owner = settled.verdict.owner
        return owner.team_id if owner else ""

    async def count() -> int:
        found = await asyncio.gather(*map(owner_of, OWNERS), return_exceptions=True)  # a malformed one raises
        return sum(said == owner for said, owner in zip(found, OWNERS.values(), strict=True))

    return asyncio.run(count())


def test_the_better_the_model_the_more_incidents_reach_their_team() -> None:
    counts = [right_owners(right, Skill(0.75, 0.75)) for right in (0.0, 0.5, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] == 0, "without evidence, a model that understands nothing names nobody rightly"
    assert counts[-1] == COUNT
