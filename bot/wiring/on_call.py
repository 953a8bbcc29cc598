"""Wiring of on-call schedules from plumbline.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aiohttp

from adapters.http import Http, Token, basic
from adapters.on_call.atlassian import JiraServiceManagement, Opsgenie
from adapters.on_call.pagerduty import PagerDuty, PagerDutyIds
from bot.config.settings import named_secret
from bot.config.team_sections import JiraServiceManagementSection, OnCallSection, OpsgenieSection, PagerDutySection
from core.model.errors import ConfigurationError
from core.model.team import Team, TeamRotas
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


def open_schedule(
    section: OnCallSection, session: aiohttp.ClientSession
) -> PagerDuty | JiraServiceManagement | Opsgenie:
    """Open what one section describes. Raises ConfigurationError."""
    token, system = named_secret(section.token_env, section.name), f"{section.name} at {section.url}"
    match section:
        case PagerDutySection():
            headers = {"Accept": "application/vnd.pagerduty+json;version=2"}
            http = Http(system, section.url, session, Token(f"Token token={token}"), headers)
            return PagerDuty(section.name, http, _pagerduty(section))
        case JiraServiceManagementSection():
            http = Http(system, section.url, session, basic(section.email, token))
            return JiraServiceManagement(section.name, http, section.cloud_id, _ids(section.schedules))
        case OpsgenieSection():
            http = Http(system, section.url, session, Token(f"GenieKey {token}"))
            return Opsgenie(section.name, http, _ids(section.schedules))


def _pagerduty(section: PagerDutySection) -> dict[str, PagerDutyIds]:
    schedules, policies = _ids(section.schedules), _ids(section.escalation_policies)
    return {team: PagerDutyIds(schedules.get(team, ()), policies.get(team, ())) for team in schedules.keys() | policies}


def _ids(given: Mapping[str, str | tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {team: (ids,) if isinstance(ids, str) else ids for team, ids in given.items()}
