"""Turns in a channel: nobody comes too early, the newest edit counts, and one channel's pause is nobody else's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from adapters import chat as chats
from adapters.chat import EARLY, SHORT, Budget, LocalRateLimiter, RateLimitedMessenger
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatBusy
from core.model.messages import Message, Notice
from tests.fakes.messenger import RecordingMessenger

HERE, THERE = Place(Platform.SLACK, "C0HERE"), Place(Platform.SLACK, "C0THERE")
HELLO = Notice("hello")


class Time:
    """Stands still until somebody sleeps."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


class TimedChat(RecordingMessenger):
    """Knows when each post and edit was made, and asks to wait if told so."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self.time = time
        self.taken_at: list[float] = []
        self.pause: float | None = None

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        if self.pause is not None:
            pause, self.pause = self.pause, None
            raise ChatBusy("Slow down.", pause)
        self.taken_at.append(self.time.at)
        return await super().post(place, message, intent)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(chats, "asyncio", SimpleNamespace(sleep=time.sleep))
    return time


@pytest.fixture
def chat(time: Time) -> TimedChat:
    return TimedChat(time)


@pytest.fixture
def paced(chat: TimedChat, time: Time) -> RateLimitedMessenger:
    return RateLimitedMessenger(chat, Budget(post=1.0, edit=2.0), LocalRateLimiter(time.now), now=time.now)


async def wait(paced: RateLimitedMessenger, intent: str, place: Place = HERE) -> float:
    """The seconds that a post is told to wait, 0 once it is made."""
    try:
        await paced.post(place, HELLO, intent)
    except ChatBusy as busy:
        return busy.retry_after or 0.0
    return 0.0


async def test_whoever_comes_too_early_is_told_when_his_turn_is_and_keeps_it(
    paced: RateLimitedMessenger, chat: TimedChat, time: Time
) -> None:
    assert [await wait(paced, intent) for intent in "abc"] == [0, 1 - EARLY, 2 - EARLY]
    assert await wait(paced, "b") == 1 - EARLY, "asking again costs no turn"
    time.at += 1 - EARLY
    assert await wait(paced, "b") == 0
    time.at += 1 - EARLY
    assert await wait(paced, "c") == 0
    assert chat.taken_at == pytest.approx([100, 101, 102])


async def test_a_storm_is_one_post_a_second_in_the_order_of_arrival(
    paced: RateLimitedMessenger, chat: TimedChat, time: Time
) -> None:
    coming = {str(number): 100.0 for number in range(30)}
    while coming:
        intent = min(coming, key=lambda each: coming[each])
        time.at = max(time.at, coming.pop(intent))
        if again := await wait(paced, intent):
            coming[intent] = time.at + again + 0.3 * (int(intent) % 2)  # some come a little late
    gaps = [later - earlier for earlier, later in zip(chat.taken_at, chat.taken_at[1:], strict=False)]
    assert min(gaps) > 0.999
    assert chat.taken_at[-1] < 100 + 29 * 1.5


async def test_another_channel_is_served_at_once(paced: RateLimitedMessenger) -> None:
    assert [await wait(paced, "a"), await wait(paced, "b", THERE)] == [0, 0]


async def test_a_pause_that_a_platform_asks_for_holds_for_that_channel_alone(
    paced: RateLimitedMessenger, chat: TimedChat, time: Time
) -> None:
    chat.pause = 30
    assert await wait(paced, "a") == 30
    assert await wait(paced, "b") >= 30 - EARLY
    assert await wait(paced, "c", THERE) == 0
    time.at += 31 + SHORT
    assert await wait(paced, "a") == 0


async def test_edits_of_one_message_share_a_turn_and_the_newest_is_made(
    paced: RateLimitedMessenger, chat: TimedChat, time: Time
) -> None:
    first = await paced.post(HERE, HELLO, "a")
    await paced.edit(first, Notice("1"))
    for text in ("2", "3", "4"):
        with pytest.raises(ChatBusy):
            await paced.edit(first, Notice(text))
    time.at += 2
    await paced.edit(first, Notice("5"))
    assert [message for _, message in chat.edited] == [Notice("1"), Notice("5")]


async def test_a_turn_that_nobody_takes_keeps_nobody_waiting_for_ever(paced: RateLimitedMessenger, time: Time) -> None:
    assert [await wait(paced, intent) for intent in "ab"] == [0, 1 - EARLY]
    time.at += 600
    assert await wait(paced, "c") == 0


async def test_a_platform_that_allows_a_burst_gets_one_and_the_storm_after_it_is_paced(
    chat: TimedChat, time: Time
) -> None:
    paced = RateLimitedMessenger(chat, Budget(post=2.0, edit=2.0, burst=3), LocalRateLimiter(time.now), now=time.now)
    assert [await wait(paced, intent) for intent in "abcde"] == [0, 0, 0, 2 - EARLY, 4 - EARLY]
    for intent in "de":
        time.at += 2
        assert await wait(paced, intent) == 0
    assert chat.taken_at == pytest.approx([100, 100, 100, 102, 104])
    time.at += 4
    assert [await wait(paced, intent) for intent in "fgh"] == [0, 0, 2 - EARLY], "two turns were saved meanwhile"
