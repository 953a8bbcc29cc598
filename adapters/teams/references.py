"""References to conversations, kept from the last activity of each, so that the bot can speak first."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol


class ConversationReferences(Protocol):
    """Durable references by key. A key is a conversation's id, or names the last conversation of a tenant."""

    async def get(self, conversation_id: str) -> dict[str, Any] | None: ...

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        """Insert or replace."""
        ...

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        """The references whose keys begin so."""
        ...

    async def remove(self, conversation_id: str, team_id: str) -> None:
        """Forget a conversation and, unless it is empty, all of this team; nothing where none is known."""
        ...


@dataclass(frozen=True, slots=True)
class ConversationReference:
    """A conversation and the connector service that it is reached through.

    `threaded` tells whether its messages have threads of their own, as a channel's have. `personal`: one person alone
    speaks with us there, whose id is `person`, empty where it is not known. `team_id` is the team that a channel belongs to.
    """

    service_url: str
    tenant_id: str
    threaded: bool
    personal: bool = False
    team_id: str = ""
    person: str = ""


async def remember(references: ConversationReferences, conversation_id: str, reference: ConversationReference) -> None:
    """Keep how a conversation was reached; writes only what is new."""
    anywhere = replace(reference, threaded=False, personal=False, team_id="", person="")
    known = {
        conversation_id: reference,
        _tenant_key(reference.tenant_id): anywhere,
        _tenant_key(""): anywhere,
    }
    if reference.team_id:
        known[_team_key(reference.team_id)] = replace(anywhere, team_id=reference.team_id)
    for key, value in known.items():
        if await references.get(key) != asdict(value):
            await references.put(key, asdict(value))


async def is_member(references: ConversationReferences, conversation_id: str, team_id: str) -> bool:
    """Return whether the app is known to be in a conversation, or in the team that it belongs to."""
    keys = [conversation_id, *([_team_key(team_id)] if team_id else [])]
    return any([await references.get(key) is not None for key in keys])


async def teams_of(references: ConversationReferences, tenant_id: str) -> list[ConversationReference]:
    """The teams of a tenant that the app is known to be in."""
    known = [ConversationReference(**stored) for stored in await references.beginning_with(_team_key(""))]
    return [team for team in known if team.tenant_id == tenant_id]


async def recall(
    references: ConversationReferences, conversation_id: str, tenant_id: str | None
) -> ConversationReference | None:
    """How to reach a conversation; for one that never spoke with us, by the way that its tenant was last reached.

    With an empty `tenant_id`, any tenant will do; None: the tenant is not known, and must not be guessed. None if
    nobody there ever spoke with us.
    """
    stored = await references.get(conversation_id)
    if stored is not None:
        return ConversationReference(**stored)
    stored = await references.get(_tenant_key(tenant_id)) if tenant_id is not None else None
    if stored is None:
        return None
    return replace(ConversationReference(**stored), threaded=_is_channel(conversation_id))


def _tenant_key(tenant_id: str) -> str:
    return f"tenant:{tenant_id}"


def _team_key(team_id: str) -> str:
    return f"team:{team_id}"


def _is_channel(conversation_id: str) -> bool:
    """Teams names a channel so; a chat ends in `@thread.v2` or begins with `a:`."""
    return conversation_id.endswith(("@thread.tacv2", "@thread.skype"))
