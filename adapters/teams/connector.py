"""A client of the connector service of Teams: its token, its requests, and the errors for what it refuses.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/get-teams-context
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import aiohttp
import structlog
from pydantic import BaseModel
from yarl import URL

from adapters.http import CHAT, HttpAnswer, TryAgain, exchange, may_pass, reason_in
from adapters.microsoft_login import AppToken, ClientLogin, CredentialsRefused, Login
from adapters.teams.references import (
    ConversationReference,
    ConversationReferences,
    is_restricted,
    recall,
    teams_of,
)
from core.model.conversation import Place
from core.model.errors import (
    ChatBusy,
    ChatClosed,
    ChatUnavailable,
    MessageNotFound,
    PlumblineError,
    Undeliverable,
)
from core.ports import Clock

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

RESOURCE = "https://api.botframework.com"
MULTI_TENANT = "botframework.com"  # the tenant that issues the token of a multi-tenant bot; none can be made since 2025
ANSWER_TIMEOUT = 5.0  # seconds for one answer
TIMEOUT = 30  # seconds for a message; long, because one whose answer is lost may be posted twice
MAX_ANSWER = 8 * 1024 * 1024  # bytes
MAX_TEAMS = 50  # teams that are searched for an unknown channel
NOT_OURS = frozenset({400, 403, 404})  # HTTP status codes for a team that the app is not in (any more)
GUESTS_KEPT = timedelta(minutes=10)  # how long it is cached whether a conversation has guests
DEADLINE = 10.0  # seconds for all pages of members; Teams waits 15 s for its acknowledgement
PAGE = 500  # members per request; the maximum of Teams
MAX_PAGES = 20  # Teams lists at most 10 000 members
GUESTS = frozenset({"guest", "anonymous"})  # roles of members

CREDENTIALS = "They are TEAMS_TENANT_ID, TEAMS_APP_ID and TEAMS_APP_PASSWORD, or what stands for it."
SINGLE_TENANT = " A single-tenant bot needs its own tenant alone in TEAMS_TENANT_ID."

log = structlog.get_logger()


class AccessToken:
    """The access token of requests to Teams, with the errors of a chat. The SDKs would request it with a blocking call."""

    def __init__(self, login: Login, session: aiohttp.ClientSession) -> None:
        self.login = login
        self._token = AppToken(login, RESOURCE, session)

    async def get(self) -> str:
        """Return the token. Raises ChatUnavailable without an answer, ChatClosed for refused credentials."""
        try:
            return await self._token.get()
        except TryAgain as error:
            raise ChatUnavailable(str(error), error.retry_after) from None
        except CredentialsRefused as error:
            is_multi_tenant = isinstance(self.login, ClientLogin) and self.login.tenant == MULTI_TENANT
            raise ChatClosed(f"{error} {CREDENTIALS}{SINGLE_TENANT if is_multi_tenant else ''}") from None

    async def used(self, request: Callable[[str], Awaitable[T]]) -> T:
        """Return what a request with the token returns; with a new one, if Teams refuses the first with 401."""
        token = await self.get()
        try:
            return await request(token)
        except TokenRefused:
            self._token.refused(f"Bearer {token}")
            return await request(await self.get())


class TokenRefused(ChatClosed):
    """Teams refuses the access token (HTTP 401)."""


Operation = Literal["send_to_conversation", "update_activity", "delete_activity"]  # as botbuilder calls them
METHODS: dict[Operation, str] = {"send_to_conversation": "POST", "update_activity": "PUT", "delete_activity": "DELETE"}


class Connector:
    """A client of connector services, with the access token; without one, none is sent, as the playground expects.

    https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference
    """

    def __init__(self, token: AccessToken | None, session: aiohttp.ClientSession) -> None:
        self._token = token
        self._session = session

    async def call(
        self, service_url: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> str:
        """Send the JSON of an activity, if any, and return the id in the answer; empty without one.

        Raises ChatUnavailable when Teams does not answer or asks to wait (408, 412, 429, 5xx), MessageNotFound for 404,
        ChatClosed when the bot may not post there (401 twice, 403), MessageTooLarge for 413, Undeliverable when it
        refuses the message.
        """
        return await self._used(lambda token: self._sent(service_url, token, operation, *ids, activity=activity))

    async def _used(self, request: Callable[[str], Awaitable[T]]) -> T:
        return await (self._token.used(request) if self._token else request(""))

    async def _sent(
        self, service_url: str, token: str, operation: Operation, *ids: str, activity: dict[str, Any] | None
    ) -> str:
        conversation, *message = (quote(each, safe="") for each in ids)
        address = "/".join((service_url.rstrip("/"), "v3/conversations", conversation, "activities", *message))
        answer = await self._exchange(METHODS[operation], URL(address, encoded=True), token, TIMEOUT, json=activity)
        if answer.status >= 300:
            raise failure(answer.status, answer.retry_after, answer.body.decode(errors="replace"))
        try:
            return str(json.loads(answer.body)["id"])
        except (ValueError, KeyError, TypeError):  # a deletion has no answer
            return ""

    async def get(
        self,
        service_url: str,
        path: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Return an answer whose status is a success, or means that the app is not there (NOT_OURS).

        Raises ChatUnavailable, and the errors of the token.
        """
        url = f"{service_url.rstrip('/')}/v3/{path}" if path else service_url
        answer = await self._used(partial(self._answer, url, parameters))
        if answer.status >= 300 and answer.status not in NOT_OURS:
            raise ChatUnavailable(f"Teams did not return this (HTTP {answer.status}).", answer.retry_after)
        return answer

    async def _answer(self, url: str, parameters: Mapping[str, str] | None, token: str) -> HttpAnswer:
        answer = await self._exchange("GET", url, token, ANSWER_TIMEOUT, params=parameters)
        if answer.status == 401:
            raise failure(answer.status, None, answer.body.decode(errors="replace"))
        return answer

    async def _exchange(self, method: str, url: str | URL, token: str, seconds: float, **options: Any) -> HttpAnswer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        options |= {"seconds": seconds, "max_body": MAX_ANSWER, "headers": headers}
        return await exchange(self._session, method, url, system="Teams", errors=CHAT, **options)

    async def members(self, service_url: str, conversation_id: str, parameters: Mapping[str, str]) -> HttpAnswer:
        """Return a page of the members of a conversation. Raises the errors of `get`."""
        return await self.get(service_url, f"conversations/{quote(conversation_id, safe='')}/pagedmembers", parameters)


class _Team(BaseModel):
    aadGroupId: str | None = None


STANDARD = "standard"


class _Channel(BaseModel):
    id: str = ""
    type: str | None = None  # without one, it is a standard channel, because the service once listed no other


class _Channels(BaseModel):
    conversations: list[_Channel] = []


class TeamGroups:
    """Looks up the group of a channel. It is cached until the process ends, because a channel never moves."""

    def __init__(self, references: ConversationReferences, connector: Connector) -> None:
        self._references = references
        self._connector = connector
        self._known: dict[str, str] = {}

    async def of(self, channel: str, home: ConversationReference) -> str:
        """Return the id of the group; empty if no team of the app is known to have this channel.

        Raises ChatUnavailable.
        """
        if channel not in self._known:
            team_id = home.team_id or await self._team_with(channel, home)
            group = (await self._ask(home, quote(team_id, safe=""), _Team)).aadGroupId if team_id else ""
            if not group:
                return ""
            self._known[channel] = group
        return self._known[channel]

    async def _team_with(self, channel: str, home: ConversationReference) -> str:
        """Return the team with a channel from which no activity has arrived yet; empty if there is none."""
        for team in (await teams_of(self._references, home.tenant_id))[:MAX_TEAMS]:
            if channel in await self._types(team.team_id, home):
                return team.team_id
        return ""

    async def is_open(self, place: Place) -> bool:
        """Return whether everybody in the team may read a channel. Raises ChatUnavailable, and the errors of the token."""
        home = await recall(self._references, place.channel, place.workspace)
        if home is None or await is_restricted(self._references, place.channel):
            return False
        team_id = home.team_id or await self._team_with(place.channel, home)
        return bool(team_id) and (await self._types(team_id, home)).get(place.channel) == STANDARD

    async def _types(self, team_id: str, home: ConversationReference) -> dict[str, str]:
        """Return the type of each channel of a team: standard, private or shared."""
        listed = await self._ask(home, f"{quote(team_id, safe='')}/conversations", _Channels)
        return {each.id: (each.type or STANDARD).lower() for each in listed.conversations}

    async def _ask(self, home: ConversationReference, path: str, kind: type[M]) -> M:
        """Return the answer; an empty one if the app is not in that team."""
        answer = await self._connector.get(home.service_url, f"teams/{path}")
        if answer.status in NOT_OURS:
            return kind()
        try:
            return kind.model_validate_json(answer.body)
        except ValueError as error:
            raise ChatUnavailable("Teams did not return the team of a channel.") from error


class _Member(BaseModel):
    userRole: str | None = None
    tenantId: str | None = None


class _Page(BaseModel):
    members: list[_Member]
    continuationToken: str | None = None


class TeamsGuests:
    """Looks up whether a conversation has guests. If Teams does not answer, it counts as having guests."""

    def __init__(self, connector: Connector, clock: Clock) -> None:
        self._connector = connector
        self._clock = clock
        self._known: dict[str, tuple[bool, datetime]] = {}

    async def read_along(self, service_url: str, conversation_id: str, tenant_id: str) -> bool:
        """Return whether a member is or may be a guest, or of another tenant than this one. Does not raise."""
        now = self._clock.now()
        if (cached := self._known.get(conversation_id)) is not None and now < cached[1]:
            return cached[0]
        try:
            async with asyncio.timeout(DEADLINE):
                has_guests = await self._ask(service_url, conversation_id, tenant_id)
        except (TimeoutError, ValueError, PlumblineError) as error:
            reason = str(error) or type(error).__name__
            log.warning(
                "teams did not report who reads, so nothing public is shown", place=conversation_id, reason=reason
            )
            return True
        self._known[conversation_id] = has_guests, now + GUESTS_KEPT
        return has_guests

    async def _ask(self, service_url: str, conversation_id: str, tenant_id: str) -> bool:
        query = {"pageSize": str(PAGE)}
        for _ in range(MAX_PAGES):
            page = _Page.model_validate_json((await self._connector.members(service_url, conversation_id, query)).body)
            for member in page.members:
                # With external access, a person from another organisation has a user's role, but another tenant.
                if (member.userRole or "").lower() in GUESTS or (member.tenantId or tenant_id) != tenant_id:
                    return True
            if not page.continuationToken:
                return False
            query["continuationToken"] = page.continuationToken
        return True


class MessageTooLarge(Undeliverable):
    """The message is too large for Teams."""


def failure(status: int, retry_after: float | None, detail: str) -> PlumblineError:
    """Return the error for a response other than success."""
    if status == 429:
        return ChatBusy("Teams asked to wait (HTTP 429).", retry_after)
    if may_pass(status):
        return ChatUnavailable(f"Teams did not accept the message (HTTP {status}).", retry_after)
    if status == 404:
        return MessageNotFound("Teams has no such conversation or message, or it was deleted.")
    if status == 413:
        return MessageTooLarge("The message is too large for Teams.")
    reason = f"HTTP {status}{f': {words}' if (words := reason_in(detail.encode())) else ''}"
    if status == 401:
        return TokenRefused(
            f"Teams refuses the bot's token ({reason}): check the app registration and its credentials."
        )
    if status == 403:
        return ChatClosed(
            f"Teams does not let the bot post there ({reason}): install the app in that team or chat, or restore it if it is archived."
        )
    return Undeliverable(f"Teams refused the message ({reason}).")
