"""PagerDuty's schedules, REST API v2: https://developer.pagerduty.com/api-reference/ (list all of the on-calls)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from pydantic import AwareDatetime, BaseModel, TypeAdapter

from adapters.http import Http
from core.model.errors import ToolUnavailable

PAGE = 100  # entries per request; the maximum of PagerDuty
MAX_PAGES = 5  # of one team's schedules; more is a configuration error
MOMENT = timedelta(minutes=1)  # length of the requested range, which must not be empty


class _User(BaseModel):
    summary: str = ""


class _Entry(BaseModel):
    user: _User
    escalation_level: int = 1
    start: AwareDatetime | None = None  # both are null for a person who is always on call
    end: AwareDatetime | None = None


class _Page(BaseModel):
    oncalls: list[_Entry]
    more: bool = False


_PAGE = TypeAdapter(_Page)


@dataclass(frozen=True, slots=True)
class PagerDutyIds:
    """Ids of the schedules and escalation policies (at least one) of a team."""

    schedules: tuple[str, ...] = ()
    escalation_policies: tuple[str, ...] = ()


class PagerDuty:
    """Implements `core.ports.OnCall`."""

    def __init__(self, name: str, http: Http, teams: Mapping[str, PagerDutyIds]) -> None:
        self.name = name
        self._http = http
        self.teams = frozenset(teams)
        self._of_team = teams

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        ids = self._of_team.get(team_id)
        if ids is None:
            return ()
        entries = [entry for entry in await self._entries(ids, at) if _is_on_duty(entry, at)]
        ranked = sorted(entries, key=lambda entry: entry.escalation_level)
        return tuple(dict.fromkeys(entry.user.summary for entry in ranked if entry.user.summary))

    async def check(self) -> None:
        """Raise ToolUnavailable if the token, its permissions or the connection are wrong."""
        await self._http.parsed("oncalls?limit=1", _PAGE)

    async def _entries(self, ids: PagerDutyIds, at: datetime) -> list[_Entry]:
        moment = at.astimezone(UTC)
        asked = [("schedule_ids[]", each) for each in ids.schedules]
        asked += [("escalation_policy_ids[]", each) for each in ids.escalation_policies]
        asked += [("since", moment.isoformat()), ("until", (moment + MOMENT).isoformat()), ("limit", str(PAGE))]
        found: list[_Entry] = []
        for number in range(MAX_PAGES):
            page = await self._http.parsed(f"oncalls?{urlencode([*asked, ('offset', str(number * PAGE))])}", _PAGE)
            found += page.oncalls
            if not page.more:
                return found
        raise ToolUnavailable(f"{self.name} has more than {MAX_PAGES * PAGE} people on call for one team.")


def _is_on_duty(entry: _Entry, at: datetime) -> bool:
    return (entry.start is None or entry.start <= at) and (entry.end is None or at < entry.end)
