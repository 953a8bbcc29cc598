from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.model.incident import Incident
from core.model.team import Team
from core.rca.observations import Observations
from core.triage.managers import TeamFinding
from handlers.incidents.triage_incident import TeamMonitoring
from tests.fakes.outage import errors, incident, observations, traffic

SHOP = Team("sales", "Sales", services=frozenset({"shop"}))
LOGIN = Team("identity", "Identity", services=frozenset({"login"}))
IDLE = Team("idle", "Idle")
SILENT = replace(observations([]), logs=(), series=(), changes=(), gaps=(Gap("Loki", GapReason.TIMED_OUT),))


def monitoring(of: Incident, *found: Observations) -> tuple[TeamMonitoring, list[str]]:
    """What is read, and from which service it was looked at."""
    seen: list[str] = []
    answers = list(found)

    async def observe(asked: Incident) -> Observations:
        seen.append(asked.service)
        return replace(answers[0], incident=asked) if len(answers) == 1 else answers.pop(0)

    return TeamMonitoring(of, observe), seen


async def test_trouble_that_begins_in_a_teams_own_service_is_its_finding_with_what_its_logs_say() -> None:
    both = observations(
        [traffic("login"), traffic("shop"), errors("login", "token rejected", -6), errors("shop", "upstream 401", -3)]
    )
    look, seen = monitoring(incident(), both)
    mine, theirs = await look.finding(LOGIN), await look.finding(SHOP)
    assert mine.services.keys() == {"login"}
    assert "token rejected" in mine.text
    assert theirs.services.get("shop", 0.0) < mine.services["login"]
    assert "token rejected" not in theirs.text
    assert seen == ["shop"]


async def test_a_team_without_services_finds_nothing() -> None:
    look, seen = monitoring(incident(), SILENT)
    found = await look.finding(IDLE)
    assert (found.services, found.text, seen) == ({}, "", [])


async def test_where_no_tool_can_be_read_the_manager_fails_and_reads_again_when_it_is_asked_again() -> None:
    back = observations([traffic("shop"), errors("shop", "pool is empty", -4)])
    look, seen = monitoring(incident(), SILENT, back)
    with pytest.raises(ToolUnavailable, match="Loki: timed out"):
        await look.finding(SHOP)
    assert (await look.finding(SHOP)).services.keys() == {"shop"}
    assert seen == ["shop", "shop"]


async def test_where_the_incident_names_no_service_of_the_team_its_own_is_looked_at() -> None:
    nowhere = replace(observations([]), services=())
    elsewhere = observations([traffic("login"), errors("login", "token rejected", -4)])
    look, seen = monitoring(incident(service="", title="orders are rejected"), nowhere, elsewhere)
    found = await look.finding(LOGIN)
    assert seen == ["", "login"]
    assert found.services.keys() == {"login"}


async def test_trouble_at_the_same_time_that_has_nothing_to_do_with_the_incident_is_none_of_it() -> None:
    elsewhere = observations([traffic("login"), errors("login", "token rejected", -4)])
    look, _ = monitoring(incident(service="", title="the coffee machine is empty"), elsewhere)
    assert await look.finding(LOGIN) == TeamFinding()
