"""Posts in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from core.model.conversation import MessageReference, Place
from core.ports import Post


@dataclass(slots=True)
class InMemoryPosts:
    by_intent: dict[str, Post] = field(default_factory=dict)
    asked: dict[str, datetime] = field(default_factory=dict)
    wished: dict[str, int] = field(default_factory=dict)
    counted: dict[str, tuple[str, datetime]] = field(default_factory=dict)  # by intent: the channel, and when

    async def mark_stale(self, intent: str, place: Place, at: datetime, patience: timedelta) -> int | None:
        await self.intend(intent, place)
        self.wished[intent] = self.wished.get(intent, 0) + 1
        since = self.asked.get(intent)
        if since is not None and abs(at - since) < patience:
            return None
        self.asked[intent] = at
        return self.wished[intent]

    async def pending_updates(self, intent: str) -> int:
        return self.wished.get(intent, 0)

    async def mark_current(self, intent: str, pending_updates: int) -> bool:
        if self.wished.get(intent, 0) != pending_updates:
            return False
        self.asked.pop(intent, None)
        return True

    async def admit(self, intent: str, place: Place, at: datetime, since: datetime, limit: int) -> bool:
        await self.intend(intent, place)
        channel = f"{place.platform}:{place.channel}"
        count = sum(there == channel and when > since for there, when in self.counted.values())
        if intent not in self.counted and count >= limit:
            return False
        self.counted.setdefault(intent, (channel, at))
        return True

    async def intend(self, intent: str, place: Place) -> Post:
        return self.by_intent.setdefault(intent, Post(intent, place))

    async def find(self, intent: str) -> Post | None:
        return self.by_intent.get(intent)

    async def attempt(self, intent: str, place: Place) -> Post | None:
        post = self.by_intent.get(intent)
        await self.intend(intent, place)
        if post is None or not (post.reference or post.withdrawn):
            self._change(intent, attempted=True)
        return post

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> bool:
        self._change(intent, reference=reference, content_hash=content_hash, claim=claim)
        return not self.by_intent[intent].withdrawn

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None:
        self._change(intent, content_hash=content_hash, claim=claim)

    async def at(self, reference: MessageReference) -> Post | None:
        return next((post for post in self.by_intent.values() if _is_at(post, reference)), None)

    async def forget(self, intent: str) -> None:
        self._change(intent, attempted=False, reference=None, content_hash="", claim="")

    async def withdraw(self, intent: str, place: Place) -> Post:
        await self.intend(intent, place)
        self._change(intent, withdrawn=True)
        return self.by_intent[intent]

    def _change(self, intent: str, **values: object) -> None:
        self.by_intent[intent] = replace(self.by_intent[intent], **values)


def _is_at(post: Post, reference: MessageReference) -> bool:
    """Whether it is this message, whatever thread that is known to stand in."""
    known = post.reference
    return known is not None and (
        replace(known.place, thread=None, workspace=""),
        known.message_id,
    ) == (replace(reference.place, thread=None, workspace=""), reference.message_id)
