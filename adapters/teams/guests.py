"""Guests of the organisation in a Teams conversation, who may not read what is for its members."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from urllib.parse import quote

import aiohttp
import structlog
from pydantic import BaseModel

from adapters.teams.access_token import AccessToken
from core.model.errors import PlumblineError
from core.ports import Clock

KEPT = timedelta(minutes=10)  # how long it is believed who is in a conversation
PATIENCE = aiohttp.ClientTimeout(total=5.0)  # seconds for one page
DEADLINE = 10.0  # seconds for all of them; Teams waits 15 s for its acknowledgement
PAGE = 500  # people asked for at once: the most that Teams gives
MAX_PAGES = 20  # a team has at most 10 000 members that are told
MAX_CONVERSATIONS = 1_000  # whose answer is remembered
GUESTS = frozenset(
    {"guest", "anonymous"}
)  # https://learn.microsoft.com/microsoftteams/platform/bots/how-to/get-teams-context

log = structlog.get_logger()


class _Member(BaseModel):
    userRole: str | None = None
    tenantId: str | None = None


class _Page(BaseModel):
    members: list[_Member]
    continuationToken: str | None = None


class TeamsGuests:
    """Asks the connector service who is in a conversation. Whatever it does not tell counts as yes."""

    def __init__(self, token: AccessToken, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._known: dict[str, tuple[bool, datetime]] = {}

    async def read_along(self, service_url: str, conversation_id: str, tenant_id: str) -> bool:
        """Return whether a member is or may be a guest, or of another tenant than this one. Does not raise."""
        now = self._clock.now()
        if (known := self._known.get(conversation_id)) is not None and now < known[1]:
            return known[0]
        try:
            async with asyncio.timeout(DEADLINE):
                found = await self._ask(service_url, conversation_id, tenant_id)
        except (aiohttp.ClientError, TimeoutError, ValueError, PlumblineError) as error:
            reason = str(error) or type(error).__name__
            log.warning(
                "teams does not say who reads, so nothing public is shown", place=conversation_id, reason=reason
            )
            return True
        if len(self._known) >= MAX_CONVERSATIONS:
            self._known.clear()
        self._known[conversation_id] = found, now + KEPT
        return found

    async def _ask(self, service_url: str, conversation_id: str, tenant_id: str) -> bool:
        address = f"{service_url.rstrip('/')}/v3/conversations/{quote(conversation_id, safe='')}/pagedmembers"
        headers = {"Authorization": f"Bearer {await self._token.get()}"}
        query = {"pageSize": str(PAGE)}
        async with aiohttp.ClientSession(timeout=PATIENCE, headers=headers) as session:
            for _ in range(MAX_PAGES):
                async with session.get(address, params=query, raise_for_status=True) as response:
                    page = _Page.model_validate(await response.json())
                if any(_is_outsider(member, tenant_id) for member in page.members):
                    return True
                if not page.continuationToken:
                    return False
                query["continuationToken"] = page.continuationToken
        return True


def _is_outsider(member: _Member, tenant_id: str) -> bool:
    """Return whether a member is from another organisation: by external access such a person has a user's
    role, but another tenant.
    """
    return (member.userRole or "").lower() in GUESTS or (member.tenantId or tenant_id) != tenant_id
