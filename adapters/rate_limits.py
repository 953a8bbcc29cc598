"""A messenger that keeps to the rate limits of its platform. A call that is too early learns when its turn comes."""

from __future__ import annotations

import asyncio
import time
from asyncio import Lock
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf

from core.model.conversation import MessageReference, Place
from core.model.errors import ChatBusy
from core.model.messages import Message
from core.model.running import LimiterState, PostingRate, new_limiter_state
from core.ports import Messenger, RateLimiter

SHORT = 0.5  # seconds to wait here; longer waits are left to the workflow, which holds no resources meanwhile
EARLY = 0.4  # seconds by which the workflow returns before its turn, so as not to miss it
MAX_LANES = 1_000  # lanes for which the last response is remembered
PAUSE = 30.0  # seconds of rest if a platform asks to wait without stating how long


@dataclass(frozen=True, slots=True)
class Budget:
    """The rate limits of a platform: seconds between posts, and between edits, in a channel.

    `burst` of them may be sent at once after a rest; each still uses its share of the rate.
    """

    post: float
    edit: float
    burst: int = 1


@dataclass(slots=True)
class Writer:
    """The writer of one lane in this process. It sends each message after the response to the previous one."""

    rate: PostingRate
    writing: Lock = field(default_factory=Lock)
    answered_at: float = -inf  # by the process's own clock; earlier by the saved burst

    def pause(self, now: float) -> float:
        """Return the seconds until the platform can accept the next message, counted from the last response."""
        return max(self.answered_at + self.rate.interval - now, 0.0)

    def answered(self, now: float) -> None:
        self.answered_at = max(now - self.rate.saved, self.answered_at + self.rate.interval)


class RateLimitedMessenger:
    """Implements `core.ports.Messenger` over another messenger.

    Posts and edits take turns in each channel, in request order, across all users of `limiter`. Several waiting edits of
    one message share a turn, in which the newest is made. A platform's request to wait applies to that channel only.
    """

    def __init__(
        self, messenger: Messenger, budget: Budget, limiter: RateLimiter, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._messenger = messenger
        self._budget = budget
        self._limiter = limiter
        self._now = now
        self._writers: OrderedDict[str, Writer] = OrderedDict()

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        async with self._turn("post", place, self._budget.post, intent):
            return await self._messenger.post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        async with self._turn("edit", reference.place, self._budget.edit, reference.message_id):
            await self._messenger.edit(reference, message)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return await self._messenger.find(place, intent)

    async def delete(self, reference: MessageReference) -> None:
        await self._messenger.delete(reference)

    async def link(self, reference: MessageReference) -> str:
        return await self._messenger.link(reference)

    @asynccontextmanager
    async def _turn(self, kind: str, place: Place, interval: float, ticket: str) -> AsyncGenerator[None]:
        """Wait for this ticket's turn. Raises ChatBusy with the remaining time if that takes long."""
        lane = f"{place.platform}:{kind}:{place.channel}"
        rate = PostingRate(interval, (self._budget.burst - 1) * interval)
        while wait := await self._limiter.take(lane, ticket, rate):
            if wait > SHORT:
                raise ChatBusy("The chat accepts one message at a time. This one waits for its turn.", wait - EARLY)
            await asyncio.sleep(wait)
        writer = self._writer(lane, rate)
        async with writer.writing:
            await asyncio.sleep(writer.pause(self._now()))
            try:
                yield
            except ChatBusy as error:
                await self._limiter.rest(lane, error.retry_after or PAUSE, rate)
                raise
            finally:
                writer.answered(self._now())
                await self._limiter.answered(lane, rate)

    def _writer(self, lane: str, rate: PostingRate) -> Writer:
        writer = self._writers.setdefault(lane, Writer(rate))
        self._writers.move_to_end(lane)
        if len(self._writers) > MAX_LANES:
            self._writers.popitem(last=False)
        return writer


class LocalRateLimiter:
    """Implements `core.ports.RateLimiter` in memory."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Create the limiter. `now` is a clock in seconds."""
        self._now = now
        self._lanes: OrderedDict[str, LimiterState] = OrderedDict()

    async def take(self, lane: str, ticket: str, rate: PostingRate) -> float:
        changed, wait = self._lane(lane, rate).take(ticket, rate, self._now())
        self._keep(lane, changed)
        return wait

    async def answered(self, lane: str, rate: PostingRate) -> None:
        self._keep(lane, self._lane(lane, rate).answered(rate, self._now()))

    async def rest(self, lane: str, seconds: float, rate: PostingRate) -> None:
        self._keep(lane, self._lane(lane, rate).rest(seconds, rate, self._now()))

    def _lane(self, name: str, rate: PostingRate) -> LimiterState:
        return self._lanes.get(name) or new_limiter_state(rate, self._now())

    def _keep(self, name: str, lane: LimiterState) -> None:
        self._lanes[name] = lane
        self._lanes.move_to_end(name)
        if len(self._lanes) > MAX_LANES:
            self._lanes.popitem(last=False)
