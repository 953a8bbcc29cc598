"""Wiring of on-call schedules from plumbline.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aiohttp

from adapters.on_call.opsgenie import Opsgenie
from adapters.on_call.pagerduty import PagerDuty, PagerDutyIds
from adapters.tools.http import Http
from bot.config.settings import named_secret
from bot.config.team_sections import OnCallSection, OpsgenieSection, PagerDutySection
from core.model.errors import ConfigurationError
from core.model.on_call import TeamRotas
from core.model.team import Team
from core.ports import OnCall


def open_on_call(
    sections: Sequence[OnCallSection], teams: Sequence[Team], session: aiohttp.ClientSession
) -> tuple[OnCall, ...]:
    """Return the schedules in the order of plumbline.yaml, with its own rotas last.

    Raises ConfigurationError for a missing token or an unknown team.
    """
    schedules = [open_schedule(section, session) for section in sections]
    known = {team.id for team in teams}
    for schedule in schedules:
        if unknown := sorted(schedule.teams - known):
            raise ConfigurationError(f"{schedule.name} names the team {unknown[0]}, which does not exist.")
    return (*schedules, TeamRotas(teams))


def open_schedule(section: OnCallSection, session: aiohttp.ClientSession) -> PagerDuty | Opsgenie:
    """Open the schedules of one section. Raises ConfigurationError."""
    token = named_secret(section.token_env, section.name)
    match section:
        case PagerDutySection():
            headers = {"Authorization": f"Token token={token}", "Accept": "application/vnd.pagerduty+json;version=2"}
            return PagerDuty(section.name, _http(section, session, headers), _pagerduty(section))
        case OpsgenieSection():
            http = _http(section, session, {"Authorization": f"GenieKey {token}"})
            return Opsgenie(section.name, http, _ids(section.schedules))


def _http(section: OnCallSection, session: aiohttp.ClientSession, headers: Mapping[str, str]) -> Http:
    return Http(f"{section.name} at {section.url}", section.url, session, headers)


def _pagerduty(section: PagerDutySection) -> dict[str, PagerDutyIds]:
    schedules, policies = _ids(section.schedules), _ids(section.escalation_policies)
    return {team: PagerDutyIds(schedules.get(team, ()), policies.get(team, ())) for team in schedules.keys() | policies}


def _ids(given: Mapping[str, str | tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {team: (ids,) if isinstance(ids, str) else ids for team, ids in given.items()}
