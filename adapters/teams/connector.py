"""A client of the connector service of Teams: its token, its requests, the errors for what it refuses, and how it reaches conversations.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/get-teams-context
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import quote

import aiohttp
import structlog
from pydantic import BaseModel
from yarl import URL

from adapters.http import CHAT, HttpAnswer, TryAgain, exchange, may_pass, reason_in
from adapters.microsoft import AppToken, ClientLogin, CredentialsRefused, Login
from adapters.section import LOOPBACK
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

NEVER_MET = (
    "Teams has not told yet where {channel} is reached. Add the app to that team or chat, or mention the bot there once: "
    "what waits is then posted by itself."
)


class ConversationReferences(Protocol):
    """Durable references by key. A key is a conversation's id, or names the last conversation of a tenant.

    All methods raise StoreUnavailable.
    """

    async def get(self, conversation_id: str) -> dict[str, Any] | None: ...

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        """Insert or replace a reference."""
        ...

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        """Return the references whose keys have this prefix."""
        ...

    async def remove(self, conversation_id: str, team_id: str) -> None:
        """Delete a conversation and, if `team_id` is not empty, all conversations of the team.

        Unknown ones are ignored.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConversationReference:
    """A conversation, and the connector service through which it is reached.

    `threaded`: its messages have threads, as in a channel. `personal`: a chat of one person with the bot, whose id is
    `person` (may be empty). `team_id` is the team of a channel.
    """

    service_url: str
    tenant_id: str
    threaded: bool
    personal: bool = False
    team_id: str = ""
    person: str = ""


async def remember(
    references: ConversationReferences,
    conversation_id: str,
    reference: ConversationReference,
    *,
    restricted: bool = False,
) -> None:
    """Store how a conversation was reached, and whether it is a private or shared channel. Writes only changes."""
    anywhere = replace(reference, threaded=False, personal=False, team_id="", person="")
    by_key = {
        conversation_id: reference,
        _tenant_key(reference.tenant_id): anywhere,
        _tenant_key(""): anywhere,
    }
    if restricted:
        by_key[_restricted_key(conversation_id)] = anywhere
    if reference.team_id:
        by_key[_team_key(reference.team_id)] = replace(anywhere, team_id=reference.team_id)
    for key, value in by_key.items():
        if await references.get(key) != asdict(value):
            await references.put(key, asdict(value))


async def is_restricted(references: ConversationReferences, conversation_id: str) -> bool:
    """Return whether an activity said that this is a private or shared channel, which a channel of Teams remains."""
    return await references.get(_restricted_key(conversation_id)) is not None


async def is_member(references: ConversationReferences, conversation_id: str, team_id: str) -> bool:
    """Return whether the app is known to be in a conversation, or in its team."""
    keys = [conversation_id, *([_team_key(team_id)] if team_id else [])]
    return any([await references.get(key) is not None for key in keys])


async def teams_of(references: ConversationReferences, tenant_id: str) -> list[ConversationReference]:
    """Return the teams of a tenant that the app is known to be in."""
    return [
        team
        for stored in await references.beginning_with(_team_key(""))
        if (team := ConversationReference(**stored)).tenant_id == tenant_id
    ]


async def recall(
    references: ConversationReferences, conversation_id: str, tenant_id: str | None
) -> ConversationReference | None:
    """Return the reference of a conversation; for an unknown one, that of the tenant's latest conversation.

    An empty `tenant_id` means any tenant; None means that the tenant is unknown and must not be guessed. Returns None
    if nobody there ever contacted the bot.
    """
    stored = await references.get(conversation_id)
    if stored is not None:
        return ConversationReference(**stored)
    stored = await references.get(_tenant_key(tenant_id)) if tenant_id is not None else None
    if stored is None:
        return None
    # The id of a channel; those of chats end in `@thread.v2` or begin with `a:`.
    is_channel = conversation_id.endswith(("@thread.tacv2", "@thread.skype"))
    return replace(ConversationReference(**stored), threaded=is_channel)


async def home_of(
    references: ConversationReferences, place: Place, tenant_ids: frozenset[str], cloud: Cloud
) -> ConversationReference | None:
    """Return how a place is reached: by itself or, if the place names no tenant, through the only one that is served.

    None if nobody there ever reached the bot, or through another cloud.
    """
    only = next(iter(tenant_ids), "") if len(tenant_ids) <= 1 else None
    home = await recall(references, place.channel, place.workspace or only)
    return home if home is not None and cloud.serves(home.service_url) else None


def _tenant_key(tenant_id: str) -> str:
    return f"tenant:{tenant_id}"


def _team_key(team_id: str) -> str:
    return f"team:{team_id}"


def _restricted_key(conversation_id: str) -> str:
    return f"restricted:{conversation_id}"


@dataclass(frozen=True, slots=True)
class Cloud:
    """A cloud and its addresses.

    `issuer` and `metadata_url` belong to inbound tokens, `login_url` to outbound ones. `service_hosts` are the hosts
    (with subdomains, unless local) that a connector service may have; `graph_url` is Microsoft Graph.
    """

    issuer: str
    metadata_url: str
    login_url: str
    service_hosts: frozenset[str]
    graph_url: str = ""

    def serves(self, service_url: str) -> bool:
        """Return whether a connector service may have this address: over TLS, unless it is local."""
        if not (service_url.isascii() and service_url.isprintable()):
            return False  # clients parse such addresses differently
        try:
            url = URL(service_url)
            host = url.host or ""
        except ValueError:
            return False
        if url.user is not None or url.password is not None or url.query_string or url.fragment:
            return False
        if url.scheme != "https" and not (url.scheme == "http" and host in LOOPBACK):
            return False
        # A name below "localhost" may resolve to any host.
        return host in self.service_hosts or host.endswith(tuple(f".{each}" for each in self.service_hosts - LOOPBACK))


PUBLIC_CLOUD = Cloud(
    issuer="https://api.botframework.com",
    metadata_url="https://login.botframework.com/v1/.well-known/openidconfiguration",
    login_url="https://login.microsoftonline.com",
    service_hosts=frozenset({"smba.trafficmanager.net", "botframework.com", "teams.microsoft.com"}),
    graph_url="https://graph.microsoft.com/v1.0",
)

THIS_MACHINE = Cloud(issuer="", metadata_url="", login_url="", service_hosts=LOOPBACK)  # the playground, without tokens


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

        Only its recipient sees an activity that names one.

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
        address = "/".join((service_url.rstrip("/"), "v3/conversations", conversation, "activities", *message)) + (
            "?isTargetedActivity=true" if activity and "recipient" in activity else ""
        )
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
