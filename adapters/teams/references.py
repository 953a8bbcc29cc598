"""The Microsoft cloud of a bot, and references to conversations, so that the bot can post there on its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from yarl import URL

from adapters.section import LOOPBACK
from core.model.conversation import Place

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
    teams = [ConversationReference(**stored) for stored in await references.beginning_with(_team_key(""))]
    return [team for team in teams if team.tenant_id == tenant_id]


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
