"""A messenger that keeps to what its platform lets a bot do: whoever comes too early is told when his turn is."""

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
from core.model.pace import Pace
from core.ports import Messenger, Pacer, SignallingMessenger

SHORT = 0.5  # seconds that are waited out here; longer ones are slept through by the workflow, which holds nothing
EARLY = 0.4  # seconds by which the workflow is to come before its turn, so as not to miss it
MAX_LANES = 1_000  # in which it is remembered when the platform answered
PAUSE = 30.0  # seconds for which a channel rests when its platform asks to wait and does not say how long


@dataclass(frozen=True, slots=True)
class Budget:
    """The rate limits of a platform: the seconds between two posts, and between two edits, in a channel.

    `burst` are those that may come at once after a rest; each takes its share of the time all the same.
    """

    post: float
    edit: float
    burst: int = 1


# https://docs.slack.dev/apis/web-api/rate-limits: one message a second in a channel; edits are of tier 3, 50 a minute.
SLACK_EDIT = 1.25  # seconds where a post takes one
# https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit: in a conversation 7 messages a second,
# 60 within 30 seconds, and 1 800 within an hour, of which the last counts for a storm.
TEAMS = Budget(post=2.0, edit=2.0, burst=7)


def slack_budget(post: float) -> Budget:
    """With so many seconds between posts in a channel, and edits in proportion."""
    return Budget(post, SLACK_EDIT * post)


@dataclass(slots=True)
class Writer:
    """The writer of one lane in this process: it sends each message after the one before was answered."""

    pace: Pace
    writing: Lock = field(default_factory=Lock)
    answered_at: float = -inf  # by the process's own clock; earlier by what a burst has saved

    def pause(self, now: float) -> float:
        """Seconds until the platform can take the next message, which counts from when the last one arrived there."""
        return max(self.answered_at + self.pace.interval - now, 0.0)

    def answered(self, now: float) -> None:
        self.answered_at = max(now - self.pace.saved, self.answered_at + self.pace.interval)


class PacedMessenger:
    """Implements `core.ports.Messenger` and `SignallingMessenger` over another one.

    Posts and edits take turns in each channel, in the order in which they came, with whoever shares `pacer`. Of several
    edits of one message that wait the newest is made: they share one turn. A platform that asks to wait is believed for
    that channel alone.
    """

    def __init__(
        self, messenger: Messenger, budget: Budget, pacer: Pacer, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._messenger = messenger
        self._budget = budget
        self._pacer = pacer
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

    async def signal(self, place: Place, text: str) -> bool:
        return isinstance(self._messenger, SignallingMessenger) and await self._messenger.signal(place, text)

    @asynccontextmanager
    async def _turn(self, kind: str, place: Place, interval: float, ticket: str) -> AsyncGenerator[None]:
        """A block that begins when it is this ticket's turn. Raises ChatBusy, which says when, if that takes long."""
        lane = f"{place.platform}:{kind}:{place.channel}"
        pace = Pace(interval, (self._budget.burst - 1) * interval)
        while wait := await self._pacer.take(lane, ticket, pace):
            if wait > SHORT:
                raise ChatBusy("The chat takes one message after the other: its turn comes.", wait - EARLY)
            await asyncio.sleep(wait)
        writer = self._writer(lane, pace)
        async with writer.writing:
            await asyncio.sleep(writer.pause(self._now()))
            try:
                yield
            except ChatBusy as error:
                await self._pacer.rest(lane, error.retry_after or PAUSE, pace)
                raise
            finally:
                writer.answered(self._now())
                await self._pacer.answered(lane, pace)

    def _writer(self, lane: str, pace: Pace) -> Writer:
        writer = self._writers.setdefault(lane, Writer(pace))
        self._writers.move_to_end(lane)
        if len(self._writers) > MAX_LANES:
            self._writers.popitem(last=False)
        return writer
