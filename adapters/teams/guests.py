"""Guests in Teams conversations, who may not read what is for members of the organisation."""

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

KEPT = timedelta(minutes=10)  # for so long, the result is cached
PATIENCE = aiohttp.ClientTimeout(total=5.0)  # seconds per page
DEADLINE = 10.0  # seconds in total; Teams waits 15 s for the acknowledgement
PAGE = 500  # people per request; the maximum of Teams
MAX_PAGES = 20  # Teams lists at most 10 000 members
MAX_CONVERSATIONS = 1_000  # conversations cached
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
    """Looks up members with the connector service. Without an answer, guests are assumed to be present."""

    def __init__(self, token: AccessToken, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._known: dict[str, tuple[bool, datetime]] = {}

    async def read_along(self, service_url: str, conversation_id: str, tenant_id: str) -> bool:
        """Return whether a member is or may be a guest, or of another tenant. Does not raise."""
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
    """Return whether a member is from another organisation.

    With external access, the role is that of a user, but the tenant differs.
    """
    return (member.userRole or "").lower() in GUESTS or (member.tenantId or tenant_id) != tenant_id
