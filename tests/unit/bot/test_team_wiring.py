"""plumbline.yaml → teams, schedules and catalogues."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.config.workspace import Workspace, load_workspace
from bot.evaluation.triage import as_incident
from bot.wiring.catalogues import open_on_call, with_catalogues
from core.model.alert import Severity
from core.model.conversation import Platform
from core.model.errors import ConfigurationError
from core.model.findings import PastIncident
from core.model.team import Rota
from core.triage.managers import Enrichment
from core.triage.owner_model import IncidentHistory
from tests.fakes.hosts import opened_host
from tests.fakes.triage import propose_owner

START = "channels:\n  - {name: help, console: help}\nteams:\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plumbline.yaml"


def workspace(file: Path, text: str) -> Workspace:
    file.write_text(START + text, encoding="utf-8")
    return load_workspace(file)


def test_on_call_is_a_name_names_or_people_who_take_turns(file: Path) -> None:
    one, some, turns = workspace(
        file,
        "  - {id: a, name: A, on_call: Ada}\n"
        "  - {id: b, name: B, on_call: [Bo, Cleo]}\n"
        "  - {id: c, name: C, on_call: {people: [Di, Ed], start: 2026-01-05T09:00:00Z, days: 0, hours: 12}}\n",
    ).teams
    assert (one.on_call, one.rota) == (("Ada",), None)
    assert (some.on_call, some.rota) == (("Bo", "Cleo"), None)
    assert turns.on_call == ("Di", "Ed")
    assert turns.rota == Rota(("Di", "Ed"), datetime(2026, 1, 5, 9, tzinfo=UTC), timedelta(hours=12))


def test_a_rota_keeps_to_the_clocks_of_its_time_zone(file: Path) -> None:
    rota = "{people: [Di, Ed], start: 2026-01-05T09:00:00+01:00, timezone: Europe/Berlin}"
    (team,) = workspace(file, f"  - {{id: a, name: A, on_call: {rota}}}\n").teams
    assert team.rota is not None
    assert team.rota.start.tzinfo == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "  - {id: a, name: A, on_call: {people: [Di], start: 2026-01-05T09:00:00Z, timezone: Mars}}\n",
            "is not a time zone",
        ),
        ("  - {id: a, name: A, on_call: {people: [], start: 2026-01-05T09:00:00Z}}\n", "line 4"),
        ("  - {id: a, name: A, on_call: {people: [Di], start: 2026-01-05T09:00:00}}\n", "timezone"),
        ("  - {id: a, name: A, on_call: {people: [Di], start: 2026-01-05T09:00:00Z, days: 0}}\n", "at least one hour"),
        ("  - {id: a, name: A, mention: {teams: ada@acme.example, teams_tag: AbC=}}\n", "either a person"),
        ("  []\ncatalogues: [{kind: backstage}]\n", "either a folder"),
        ("  []\ncatalogues: [{kind: backstage, source: docs}]\n", "no git_repository source docs"),
    ],
)
def test_mistakes_are_named_with_their_line(file: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        workspace(file, text)


def test_a_tag_of_teams_can_be_what_pings_a_team(file: Path) -> None:
    (team,) = workspace(file, "  - {id: a, name: A, mention: {teams_tag: MjQz+/A=}}\n").teams
    assert team.mentions == {Platform.TEAMS: "tag:MjQz+/A="}


def test_former_ids_are_those_that_team_had_before(file: Path) -> None:
    (team,) = workspace(file, "  - {id: a, name: A, formerly: [x]}\n").teams
    assert team.aliases == ("x",)


SCHEDULES = """\
  - {id: a, name: A, on_call: Ada}
  - {id: b, name: B}
on_call:
  - {kind: pagerduty, token_env: PD_TOKEN, schedules: {a: P1}, escalation_policies: {b: [P2, P3]}}
  - {kind: opsgenie, url: https://api.eu.opsgenie.com, token_env: OG_TOKEN, schedules: {a: nights}}
"""


async def test_schedules_come_in_the_order_of_the_file_and_the_rotas_last(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"PD_TOKEN": "one", "OG_TOKEN": "two"})
    loaded = workspace(file, SCHEDULES)
    async with opened_host() as host:
        schedules = open_on_call(loaded.on_call, loaded.teams, host)
    assert [schedule.name for schedule in schedules] == ["PagerDuty", "Opsgenie", "plumbline.yaml"]
    assert [schedule.teams for schedule in schedules] == [{"a", "b"}, {"a"}, {"a"}]


@pytest.mark.parametrize("said", ["schedules: {a: P1}", "schedules: {a: nights}", "[P2, P3]"])
def test_a_schedule_without_an_id_is_a_mistake(file: Path, said: str) -> None:
    empty = {"[P2, P3]": "[P2, '']"}.get(said, "schedules: {a: ''}")
    with pytest.raises(ConfigurationError, match="on_call"):
        workspace(file, SCHEDULES.replace(said, empty))


async def test_a_token_that_is_not_set_and_a_team_that_is_none_are_mistakes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_host() as host:
        monkeypatch.setattr(os, "environ", {})
        loaded = workspace(file, SCHEDULES)
        with pytest.raises(ConfigurationError, match="PD_TOKEN"):
            open_on_call(loaded.on_call, loaded.teams, host)
        monkeypatch.setattr(os, "environ", {"PD_TOKEN": "one", "OG_TOKEN": "two"})
        with pytest.raises(ConfigurationError, match="names the team a, which does not exist"):
            open_on_call(loaded.on_call, loaded.teams[1:], host)


async def test_catalogues_complete_the_teams_and_what_they_cannot_say_is_left_out(file: Path) -> None:
    catalogue = file.parent / "catalogue"
    catalogue.mkdir()
    (catalogue / "CODEOWNERS").write_text("/till/ @acme/pay-crew\n/shelf/ @acme/shelf\n")
    (catalogue / "catalog-info.yaml").write_text(
        "kind: Group\n"
        "metadata: {name: shelf, annotations: {plumbline/channel: no-such, plumbline/slack-user-group: everyone}}\n"
        "---\nkind: Component\nmetadata: {name: shop}\nspec: {owner: shelf, dependsOn: ['component:till']}\n"
    )
    loaded = workspace(
        file,
        "  - {id: payments, name: Payments}\n"
        "catalogues:\n"
        "  - {kind: codeowners, path: catalogue, teams: {'@acme/pay-crew': payments}}\n"
        "  - {kind: backstage, path: catalogue}\n"
        "  - {kind: backstage, path: nowhere}\n",
    )
    async with opened_host() as host:
        found = await with_catalogues(loaded, host)
    assert [(team.id, team.channel, dict(team.mentions)) for team in found.teams] == [
        ("payments", "", {}),
        ("shelf", "", {}),
    ]
    assert found.teams[1].services == {"shop"}
    assert found.dependencies == {"shop": ("till",)}
    assert [rule.owners for rule in found.code[0].rules] == [("payments",), ("shelf",)]


async def test_without_catalogues_the_workspace_stays_as_it_is(file: Path) -> None:
    loaded = workspace(file, "  - {id: a, name: A}\n")
    async with opened_host() as host:
        assert await with_catalogues(loaded, host) == loaded


def test_past_incidents_of_a_renamed_team_and_of_merged_ones_speak_for_their_successor(file: Path) -> None:
    teams = workspace(
        file, "  - {id: identity, name: Identity, formerly: [login, keys]}\n  - {id: till, name: Till}\n"
    ).teams
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    past = [
        PastIncident(f"INC-{number}", "unknown kid rejected", "", "", Severity.WARNING, at, owner)
        for number, owner in enumerate(["login", "keys", "identity"])
    ]
    asked = as_incident("unknown kid rejected", "")
    owner = propose_owner(asked, teams, IncidentHistory(past), Enrichment()).owner
    assert owner is not None
    assert owner.team_id == "identity"
    assert owner.reasons == ("owned 3 of the 3 most similar incidents: INC-0, INC-1, INC-2",)
