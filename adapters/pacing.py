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

from core.conversation import MessageReference, Place
from core.errors import ChatBusy
from core.messages import Message
from core.ports import Messenger, SignallingMessenger

SHORT = 0.5  # seconds that are waited out here; longer ones are slept through by the workflow, which holds nothing
EARLY = 0.4  # seconds by which the workflow is to come before its turn, so as not to miss it
MAX_LANES = 1_000  # channels whose turns are remembered
LATE = 60.0  # seconds after which a turn that nobody took is lost: its process may be gone
PAUSE = 30.0  # seconds for which a channel rests when its platform asks to wait and does not say how long


@dataclass(frozen=True, slots=True)
class Budget:
    """What a platform allows: a post in a channel, and an edit in a channel, every so many seconds.

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
class Lane:
    """The turns in one channel: one every `interval`, and after a rest those that would have been due within `saved`.

    `free_at` is the first moment that nobody has a turn at, `last` the last turn taken. Whoever has his turn is
    `speaking` until the platform has `answered_at` some moment. A burst sets each of them back by up to `saved`.
    """

    interval: float
    saved: float = 0.0
    free_at: float = 0.0
    last: float = -inf
    turns: dict[str, float] = field(default_factory=dict[str, float])
    speaking: Lock = field(default_factory=Lock)
    answered_at: float = -inf

    def wait(self, ticket: str, now: float) -> float:
        """Seconds until the turn of this ticket. It is taken if that is at most SHORT, else kept until then."""
        self.turns = {each: at for each, at in self.turns.items() if now - at < LATE}
        if ticket not in self.turns:
            self.turns[ticket] = max(now, self.free_at)
            self.free_at = max(now - self.saved, self.free_at) + self.interval
        # Who comes late takes the next moment, and whoever has that one comes after him.
        turn = self.turns[ticket] = max(self.turns[ticket], now, self.last + self.interval)
        if turn - now <= SHORT:
            self.last = max(turn - self.saved, self.last + self.interval)
            self.free_at = max(self.free_at, self.last + self.interval)
            del self.turns[ticket]
        return turn - now

    def answered(self, at: float) -> None:
        """The platform has taken a message, or refused it."""
        self.answered_at = max(at - self.saved, self.answered_at + self.interval)

    def rest(self, until: float) -> None:
        """Nobody has a turn before that; the order stays."""
        delay = max(until - min((*self.turns.values(), self.free_at)), 0.0)
        self.turns = {ticket: at + delay for ticket, at in self.turns.items()}
        self.free_at += delay


class PacedMessenger:
    """Implements `core.ports.Messenger` and `SignallingMessenger` over another one.

    Posts and edits take turns in each channel, in the order in which they came. Of several edits of one message that wait
    the newest is made: they share one turn. A platform that asks to wait is believed for that channel alone.
    """

    def __init__(self, messenger: Messenger, budget: Budget, *, now: Callable[[], float] = time.monotonic) -> None:
        self._messenger = messenger
        self._budget = budget
        self._now = now
        self._lanes: OrderedDict[tuple[str, str], Lane] = OrderedDict()

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        lane = self._lane("post", place, self._budget.post)
        async with self._turn(lane, intent):
            return await self._messenger.post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        lane = self._lane("edit", reference.place, self._budget.edit)
        async with self._turn(lane, reference.message_id):
            await self._messenger.edit(reference, message)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return await self._messenger.find(place, intent)

    async def delete(self, reference: MessageReference) -> None:
        await self._messenger.delete(reference)

    async def link(self, reference: MessageReference) -> str:
        return await self._messenger.link(reference)

    async def signal(self, place: Place, text: str) -> bool:
        return isinstance(self._messenger, SignallingMessenger) and await self._messenger.signal(place, text)

    def rest(self, lane: Lane, error: ChatBusy) -> None:
        """Let a channel rest as long as its platform asked for."""
        lane.rest(self._now() + (error.retry_after or PAUSE))

    @asynccontextmanager
    async def _turn(self, lane: Lane, ticket: str) -> AsyncGenerator[None]:
        """A block that begins when it is this ticket's turn. Raises ChatBusy, which says when, if that takes long."""
        wait = lane.wait(ticket, self._now())
        if wait > SHORT:
            raise ChatBusy("The chat takes one message after the other: its turn comes.", wait - EARLY)
        await asyncio.sleep(wait)
        async with lane.speaking:
            # The platform counts from when a message arrives there, which is not known before its answer.
            await asyncio.sleep(max(lane.answered_at + lane.interval - self._now(), 0.0))
            try:
                yield
            except ChatBusy as error:
                self.rest(lane, error)
                raise
            finally:
                lane.answered(self._now())

    def _lane(self, kind: str, place: Place, interval: float) -> Lane:
        key = (kind, place.channel)
        lane = self._lanes.setdefault(key, Lane(interval, (self._budget.burst - 1) * interval))
        self._lanes.move_to_end(key)
        if len(self._lanes) > MAX_LANES:
            self._lanes.popitem(last=False)
        return lane
