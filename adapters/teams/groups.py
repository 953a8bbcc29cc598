"""The group of a channel. Microsoft Graph identifies a team by its group's id, Teams by another id.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/get-teams-context
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel

from adapters.teams.access_token import AccessToken
from adapters.teams.references import ConversationReference, ConversationReferences, teams_of
from core.model.errors import ChatUnavailable

M = TypeVar("M", bound=BaseModel)

PATIENCE = aiohttp.ClientTimeout(total=5.0)  # seconds per response
MAX_TEAMS = 50  # searched for an unknown channel
MAX_CHANNELS = 1_000  # groups cached
NOT_OURS = frozenset({400, 401, 403, 404})  # HTTP status codes for a team without the app


class _Team(BaseModel):
    aadGroupId: str | None = None


class _Channel(BaseModel):
    id: str = ""


class _Channels(BaseModel):
    conversations: list[_Channel] = []


class TeamGroups:
    """Looks up groups with the connector service, and caches them until the process ends: a channel never moves."""

    def __init__(self, references: ConversationReferences, token: AccessToken, session: aiohttp.ClientSession) -> None:
        self._references = references
        self._token = token
        self._session = session
        self._known: dict[str, str] = {}

    async def of(self, channel: str, home: ConversationReference) -> str:
        """Return the id of the group; empty if no known team with the app has this channel.

        Raises ChatUnavailable.
        """
        if channel not in self._known:
            team_id = home.team_id or await self._team_with(channel, home)
            group = await self._group(team_id, home) if team_id else ""
            if not group:
                return ""
            if len(self._known) >= MAX_CHANNELS:
                del self._known[next(iter(self._known))]
            self._known[channel] = group
        return self._known[channel]

    async def _team_with(self, channel: str, home: ConversationReference) -> str:
        """Return the team with this channel, searched among those with the app, because no message came from it yet."""
        for team in (await teams_of(self._references, home.tenant_id))[:MAX_TEAMS]:
            path = f"{quote(team.team_id, safe='')}/conversations"
            if any(each.id == channel for each in (await self._ask(home, path, _Channels)).conversations):
                return team.team_id
        return ""

    async def _group(self, team_id: str, home: ConversationReference) -> str:
        return (await self._ask(home, quote(team_id, safe=""), _Team)).aadGroupId or ""

    async def _ask(self, home: ConversationReference, path: str, answer: type[M]) -> M:
        """Return the response, or an empty one if the app is not in that team."""
        address = f"{home.service_url.rstrip('/')}/v3/teams/{path}"
        headers = {"Authorization": f"Bearer {await self._token.get()}"}
        try:
            async with self._session.get(address, headers=headers, timeout=PATIENCE) as response:
                if response.status in NOT_OURS:
                    return answer()
                response.raise_for_status()
                return answer.model_validate_json(await response.read())
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            reason = getattr(error, "status", None) or type(error).__name__
            raise ChatUnavailable(f"Teams does not say now which team a channel belongs to ({reason}).") from None
