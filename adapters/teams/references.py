"""Where a conversation can be reached: kept from what it last sent us, so that we can speak first."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol


class ConversationReferences(Protocol):
    """Durable references by key. A key is a conversation's id, or names the last conversation of a tenant."""

    async def get(self, conversation_id: str) -> dict[str, Any] | None: ...

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        """Insert or replace."""
        ...


@dataclass(frozen=True, slots=True)
class ConversationReference:
    """`threaded` tells whether the messages of this conversation have threads of their own, as a channel's have."""

    service_url: str
    tenant_id: str
    threaded: bool


async def remember(references: ConversationReferences, conversation_id: str, reference: ConversationReference) -> None:
    """Keep how a conversation was reached; writes only what is new."""
    anywhere = replace(reference, threaded=False)
    known = {
        conversation_id: reference,
        _tenant_key(reference.tenant_id): anywhere,
        _tenant_key(""): anywhere,
    }
    for key, value in known.items():
        if await references.get(key) != asdict(value):
            await references.put(key, asdict(value))


async def recall(
    references: ConversationReferences, conversation_id: str, tenant_id: str
) -> ConversationReference | None:
    """How to reach a conversation; for one that never spoke with us, by the way that its tenant was last reached.

    With an empty `tenant_id`, any tenant will do. None if nobody there ever spoke with us.
    """
    stored = await references.get(conversation_id)
    if stored is not None:
        return ConversationReference(**stored)
    stored = await references.get(_tenant_key(tenant_id))
    if stored is None:
        return None
    return replace(ConversationReference(**stored), threaded=_is_channel(conversation_id))


def _tenant_key(tenant_id: str) -> str:
    return f"tenant:{tenant_id}"


def _is_channel(conversation_id: str) -> bool:
    """Teams names a channel so; a chat ends in `@thread.v2` or begins with `a:`."""
    return conversation_id.endswith(("@thread.tacv2", "@thread.skype"))
