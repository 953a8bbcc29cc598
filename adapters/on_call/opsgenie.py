"""Opsgenie's schedules: https://docs.opsgenie.com/docs/who-is-on-call-api"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from pydantic import BaseModel, TypeAdapter

from adapters.http import Http


class _OnCalls(BaseModel):
    onCallRecipients: list[str] = []


class _Reply(BaseModel):
    data: _OnCalls


_REPLY = TypeAdapter(_Reply)
_ANY = TypeAdapter(dict[str, object])


class Opsgenie:
    """Implements `core.ports.OnCall`. A team's schedules are read by name, in order."""

    def __init__(self, name: str, http: Http, teams: Mapping[str, tuple[str, ...]]) -> None:
        self._name = name
        self._http = http
        self._teams = teams

    @property
    def name(self) -> str:
        return self._name

    @property
    def teams(self) -> frozenset[str]:
        return frozenset(self._teams)

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        asked = urlencode(
            {
                "scheduleIdentifierType": "name",
                "flat": "true",
                "date": at.astimezone(UTC).isoformat(timespec="seconds"),
            }
        )
        found = [
            (await self._http.parsed(f"v2/schedules/{quote(schedule, safe='')}/on-calls?{asked}", _REPLY)).data
            for schedule in self._teams.get(team_id, ())
        ]
        return tuple(dict.fromkeys(person for each in found for person in each.onCallRecipients if person))

    async def check(self) -> None:
        """Raise ToolUnavailable if the key, its permissions or the connection are wrong."""
        await self._http.parsed("v2/schedules", _ANY)
