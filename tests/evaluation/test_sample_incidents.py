"""The sample company's live incidents: the right owner and the right cause, or honestly none."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path

import pytest

from adapters.alerts.alertmanager import parse
from adapters.sources.past_incidents import load_past_incidents
from adapters.tools.change_files import ChangeFiles
from adapters.tools.log_files import LogFiles
from adapters.tools.metric_files import MetricFiles
from bot.workspace import Workspace, load_workspace
from core.conversation import Place, Platform
from core.folding import open_from
from core.incident import Incident, PastIncident, Severity
from core.triage.enrichment import Enrichment
from core.triage.history import IncidentHistory
from core.triage.negotiate import propose_owner
from handlers.explain_incident import explain_incident
from handlers.observe_incident import Readers, observe_incident
from handlers.triage_incident import triage_incident
from tests.fakes.clock import FakeClock
from tests.fakes.predictions import FakePredictionStore

COMPANY = Path(__file__).parents[2] / "bot" / "sample_company"
NAMES = ("connection-pool", "check-in-storm", "position-lag")


@dataclass(frozen=True, slots=True)
class Expected:
    owner: str
    keywords: list[list[str]]
    ruled_out: list[str]


@cache
def company() -> Workspace:
    return load_workspace(COMPANY / "plumbline.yaml")


@cache
def past_incidents() -> tuple[PastIncident, ...]:
    return tuple(load_past_incidents(COMPANY / "incidents.jsonl"))


def expected(name: str) -> Expected:
    written = json.loads((COMPANY / "live" / name / "expected.json").read_text("utf-8"))
    return Expected(written["owner"], written["keywords"], written["ruled_out"])


def alerted(name: str) -> Incident:
    body = (COMPANY / "live" / name / "alert.json").read_bytes()
    began = datetime.fromisoformat(json.loads(body)["alerts"][0]["startsAt"])
    delivery = parse(body, began + timedelta(seconds=5))
    return open_from(delivery, "I-1", Place(Platform.CONSOLE, "incidents"))


async def investigated(name: str, seconds_after: float) -> Incident:
    """The owner from the text, then the cause, then the owner in the light of it: as the workflow does."""
    incident = alerted(name)
    clock = FakeClock(incident.started_at + timedelta(seconds=seconds_after))
    store, history, live = FakePredictionStore(), IncidentHistory(past_incidents()), COMPANY / "live"
    incident = await triage_incident(incident, teams=company().teams, history=history, store=store, clock=clock)
    incident = await explain_incident(
        incident,
        Readers(
            [LogFiles("logs", live)],
            [MetricFiles("metrics", live)],
            [ChangeFiles("changes", live)],
            company().dependencies,
        ),
        history=history,
        store=store,
        clock=clock,
    )
    return await triage_incident(incident, teams=company().teams, history=history, store=store, clock=clock)


@pytest.mark.parametrize("seconds_after", [5, 180, 360])
@pytest.mark.parametrize("name", NAMES)
async def test_the_right_owner_is_named_and_only_what_is_to_blame_is_not_ruled_out(
    name: str, seconds_after: float
) -> None:
    found = await investigated(name, seconds_after)
    assert found.owner is not None
    assert found.owner.owner is not None
    assert found.owner.owner.team_id == expected(name).owner
    assert found.explanation is not None
    ruled_out = "\n".join(found.explanation.ruled_out)
    assert [change for change in expected(name).ruled_out if change not in ruled_out] == []


@pytest.mark.parametrize("name", [name for name in NAMES if expected(name).keywords])
async def test_the_right_cause_comes_first(name: str) -> None:
    found = (await investigated(name, 5)).explanation
    assert found is not None
    assert found.cause is not None
    cause = found.cause.cause.lower()
    assert [words for words in expected(name).keywords if not any(word.lower() in cause for word in words)] == []
    assert len(found.cause.cause.split()) <= 60


async def test_no_culprit_is_invented_where_there_is_none() -> None:
    found = (await investigated("position-lag", 5)).explanation
    assert found is not None
    assert found.hypotheses == ()
    assert found.badge is None


async def test_the_text_alone_misleads_where_a_service_shouts_about_another_ones_fault() -> None:
    incident = alerted("check-in-storm")
    verdict = propose_owner(incident, company().teams, IncidentHistory(past_incidents()), Enrichment())
    assert verdict.owner is None or verdict.owner.team_id != expected("check-in-storm").owner


async def test_what_the_teams_see_of_themselves_changes_the_owner_where_the_text_alone_misleads() -> None:
    """Before anybody looked for the cause, and without a language model."""
    incident = alerted("check-in-storm")
    clock, live = FakeClock(incident.started_at + timedelta(seconds=180)), COMPANY / "live"
    history = IncidentHistory(past_incidents())
    readers = Readers(
        [LogFiles("logs", live)], [MetricFiles("metrics", live)], [ChangeFiles("changes", live)], company().dependencies
    )
    found = await triage_incident(
        incident,
        teams=company().teams,
        history=history,
        store=FakePredictionStore(),
        clock=clock,
        observe=partial(observe_incident, readers=readers, history=history, clock=clock),
    )
    assert found.owner is not None
    assert found.owner.owner is not None
    assert found.owner.owner.team_id == expected("check-in-storm").owner


def test_the_owner_of_past_incidents_is_found_at_the_first_hop_more_often_than_by_service_alone() -> None:
    history, teams = IncidentHistory(past_incidents()), company().teams
    owners = {service: team.id for team in teams for service in team.services}
    by_service = sum(owners.get(past.service) == past.owner for past in past_incidents())
    proposed = sum(first_hop(past, history) == past.owner for past in past_incidents())
    assert proposed > by_service
    assert proposed >= 0.8 * len(past_incidents())


def first_hop(past: PastIncident, history: IncidentHistory) -> str:
    """The first candidate for a past incident that the history does not hold."""
    text = replace(
        alerted("position-lag"),
        id=past.id,
        title=f"{past.title}\n{past.description}",
        service=past.service,
        severity=Severity.WARNING,
        alerts=(),
        labels={},
    )
    return propose_owner(text, company().teams, history, Enrichment()).candidates[0].team_id


def test_no_rule_names_a_service_of_the_sample_company() -> None:
    services = {service for team in company().teams for service in team.services if "-" in service}
    core = Path(__file__).parents[2] / "core"
    code = "\n".join(path.read_text("utf-8") for folder in ("rca", "triage") for path in (core / folder).glob("*.py"))
    assert [service for service in services if service in code] == []
