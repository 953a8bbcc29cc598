"""Schedules of Jira Service Management's operations, and of Opsgenie, its predecessor.

https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v2/api-group-schedule-on-calls/
https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-users/ (bulk get users)
https://docs.opsgenie.com/docs/who-is-on-call-api
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.http import Http
from adapters.tools.parts import kept
from core.model.errors import ToolUnavailable
from core.ports import Partial

MAX_PEOPLE = 50  # on call for one team; more is a configuration error


class _OnCallUsers(BaseModel):
    onCallUsers: list[str]


class _Schedule(BaseModel):
    id: str


class _User(BaseModel):
    accountId: str
    displayName: str = ""


class _Users(BaseModel):
    values: list[_User]


class _Reply(BaseModel):
    data: dict[str, object]
    people: list[str] = Field([], validation_alias=AliasPath("data", "onCallRecipients"))


_ON_CALL_USERS = TypeAdapter(_OnCallUsers)
_SCHEDULE = TypeAdapter(_Schedule)
_USERS = TypeAdapter(_Users)
_REPLY = TypeAdapter(_Reply)
_ANY = TypeAdapter(dict[str, object])


class JiraServiceManagement:
    """Implements `core.ports.OnCall`. A team's schedules are read by id, in order; accounts become names through Jira."""

    def __init__(self, name: str, http: Http, cloud_id: str, teams: Mapping[str, tuple[str, ...]]) -> None:
        self.name = name
        self._http = http
        self._schedules = f"jsm/ops/api/{quote(cloud_id, safe='')}/v1/schedules"
        self._users = f"ex/jira/{quote(cloud_id, safe='')}/rest/api/3/user/bulk"
        self.teams = frozenset(teams)
        self._of_team = teams

    async def people(self, team_id: str, at: datetime) -> Sequence[str]:
        asked = {"flat": "true", "date": at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")}

        async def accounts_of(schedule: str) -> list[str]:
            return (await self._http.parsed(f"{self._of(schedule)}/on-calls", _ON_CALL_USERS, asked)).onCallUsers

        listed = await kept(self.name, [(each, accounts_of(each)) for each in self._of_team.get(team_id, ())])
        accounts = tuple(dict.fromkeys(listed))
        if len(accounts) > MAX_PEOPLE:
            raise ToolUnavailable(f"{self.name} has more than {MAX_PEOPLE} people on call for one team.")
        return Partial(await self._named(accounts) if accounts else (), listed.gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if the token, its scopes, a schedule's id or the connection are wrong."""
        for schedules in self._of_team.values():
            for schedule in schedules:
                await self._http.parsed(self._of(schedule), _SCHEDULE)

    async def _named(self, accounts: tuple[str, ...]) -> tuple[str, ...]:
        asked = urlencode([*(("accountId", account) for account in accounts), ("maxResults", str(MAX_PEOPLE))])
        users = (await self._http.parsed(f"{self._users}?{asked}", _USERS)).values
        names = {user.accountId: user.displayName for user in users if user.displayName}
        if unknown := [account for account in accounts if account not in names]:
            raise ToolUnavailable(
                f"{self.name} lists the account {unknown[0][:100]!r} as on call, but Jira has no name for it."
            )
        return tuple(dict.fromkeys(names[account] for account in accounts))

    def _of(self, schedule: str) -> str:
        return f"{self._schedules}/{quote(schedule, safe='')}"


class Opsgenie:
    """Implements `core.ports.OnCall`. A team's schedules are read by name, in order."""

    def __init__(self, name: str, http: Http, teams: Mapping[str, tuple[str, ...]]) -> None:
        self.name = name
        self._http = http
        self.teams = frozenset(teams)
        self._of_team = teams

    async def people(self, team_id: str, at: datetime) -> Sequence[str]:
        asked = {
            "scheduleIdentifierType": "name",
            "flat": "true",
            "date": at.astimezone(UTC).isoformat(timespec="seconds"),
        }

        async def people_of(schedule: str) -> list[str]:
            return (await self._http.parsed(f"v2/schedules/{quote(schedule, safe='')}/on-calls", _REPLY, asked)).people

        listed = await kept(self.name, [(each, people_of(each)) for each in self._of_team.get(team_id, ())])
        return Partial(dict.fromkeys(filter(None, listed)), listed.gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if the key, its permissions or the connection are wrong."""
        await self._http.parsed("v2/schedules", _ANY)
