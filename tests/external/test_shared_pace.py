"""Replicas that post in one channel keep together to what its platform lets one bot do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from adapters.chat import Budget, RateLimitedMessenger
from adapters.store.work import SqlRateLimiter
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatBusy
from core.model.messages import Message, Notice
from tests.databases import database, new_postgres_database
from tests.fakes.messenger import RecordingMessenger

pytestmark = pytest.mark.external

REPLICAS, POSTS = 3, 4  # of each
INTERVAL = 0.75  # seconds
PAUSE = 4.0  # seconds that the chat asks to wait
HERE = Place(Platform.SLACK, "C0HERE")


class TimedChat(RecordingMessenger):
    """Knows when each post was sent to it, and asks whoever sends the first one to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.sent_at: list[float] = []
        self.asked_at = 0.0

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        if not self.asked_at:
            self.asked_at = time.monotonic()
            raise ChatBusy("Slow down.", PAUSE)
        self.sent_at.append(time.monotonic())
        await asyncio.sleep(0.1)
        return await super().post(place, message, intent)


@pytest.fixture
async def replicas(postgres: str) -> AsyncIterator[tuple[TimedChat, list[RateLimitedMessenger]]]:
    chat = TimedChat()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(new_postgres_database(postgres))
        engines = [await stack.enter_async_context(database(url)) for _ in range(REPLICAS)]
        budget = Budget(post=INTERVAL, edit=INTERVAL)
        yield chat, [RateLimitedMessenger(chat, budget, SqlRateLimiter(engine)) for engine in engines]


async def say(replica: RateLimitedMessenger, intent: str) -> None:
    is_said = False
    while not is_said:
        try:
            await replica.post(HERE, Notice(intent), intent)
            is_said = True
        except ChatBusy as busy:
            await asyncio.sleep(busy.retry_after or 0.0)


async def test_replicas_together_post_no_faster_than_one_and_all_wait_when_one_is_asked_to(
    replicas: tuple[TimedChat, list[RateLimitedMessenger]],
) -> None:
    chat, messengers = replicas
    posts = (say(each, f"{number}:{post}") for post in range(POSTS) for number, each in enumerate(messengers))
    await asyncio.gather(*posts)
    assert len(chat.posted) == REPLICAS * POSTS
    assert chat.sent_at[0] - chat.asked_at >= PAUSE - 0.05
    # A process that is kept waiting after its turn has come may be late itself; together they are not too many.
    assert chat.sent_at[-1] - chat.sent_at[0] >= (REPLICAS * POSTS - 1) * INTERVAL - 0.05
