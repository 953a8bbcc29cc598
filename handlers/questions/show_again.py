"""Render messages of the bot again from the stored state."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.badge import NO_POLICY, Policy
from core.model.conversation import Channel, MessageReference
from core.model.filing import FilingTarget
from core.model.messages import Message, ProposalMessage
from core.ports import Store
from handlers.incidents.present_incident import Link, message_now


async def no_link(_reference: MessageReference) -> str:
    """Return an empty address."""
    return ""


class ShownAgain:
    """Implements `core.ports.CardRefresher` for messages that change: incidents and proposed answers."""

    def __init__(
        self,
        store: Store,
        policy: Policy = NO_POLICY,
        channels: Sequence[Channel] = (),
        link: Link = no_link,
        targets: Sequence[FilingTarget] = (),
    ) -> None:
        """Create the renderer. `link` returns the address of a message, for people who may read it."""
        self._store = store
        self._policy = policy
        self._channels = channels
        self._link = link
        self._targets = targets

    async def message(self, reference: MessageReference) -> Message | None:
        async with self._store.transaction() as transaction:
            post = await transaction.posts.at(reference)
            kind, _, subject = post.intent.partition(":") if post is not None else ("", "", "")
            answer = await transaction.curated.get(subject) if kind == "proposal" else None
        if kind == "incident":
            incident_id = subject.partition("@")[0]  # a suffix names the place of a copy
            return await message_now(
                incident_id,
                policy=self._policy,
                channels=self._channels,
                store=self._store,
                link=self._link,
                targets=self._targets,
            )
        return ProposalMessage(answer) if answer is not None else None
