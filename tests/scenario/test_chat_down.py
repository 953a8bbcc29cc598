"""A chat that is down, or asks for patience: the bot keeps trying, and everybody else is served meanwhile."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from bot.work import workflows
from bot.work.workflows import FIRST_DELAY, LONGEST_DELAY, MAX_RUNNING
from core.model.running import LimiterState
from tests.fakes.slack_api import CHANNEL
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import is_done
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "help"


class Sleep:
    """Stands in for the workflows' sleep, durable or not: remembers each, and takes no time unless it is told to wait."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.over = asyncio.Event()
        self.over.set()

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self.over.wait()


@pytest.fixture
def sleep(monkeypatch: pytest.MonkeyPatch) -> Sleep:
    sleep = Sleep()
    monkeypatch.setattr(workflows, "pause", sleep)
    # The pause of a channel is not slept through here, so that nobody else may keep to it.
    monkeypatch.setattr(LimiterState, "rest", lambda lane, *_asked: lane)
    return sleep


async def test_an_answer_is_posted_once_the_chat_is_up_again(bot: RunningBot, sleep: Sleep) -> None:
    bot.slack.refuse(503, method="chat.postMessage", times=3, channel=CHANNEL)
    asked = await bot.slack.asks(bot.address, QUESTION)
    await bot.slack.until(lambda: bot.slack.replies(asked))
    assert len(bot.slack.replies(asked)) == 1
    assert sleep.seconds == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]


async def test_the_pauses_grow_up_to_a_limit_and_the_bot_never_gives_up(bot: RunningBot, sleep: Sleep) -> None:
    bot.slack.refuse(500, method="chat.postMessage", times=12, channel=CHANNEL)
    asked = await bot.slack.asks(bot.address, QUESTION)
    await bot.slack.until(lambda: bot.slack.replies(asked))
    assert len(sleep.seconds) == 12
    assert all(earlier <= later for earlier, later in pairwise(sleep.seconds))
    assert sleep.seconds[-1] == LONGEST_DELAY


async def test_ten_minutes_without_a_chat_lose_nothing(bot: RunningBot, sleep: Sleep) -> None:
    bot.slack.refuse(503, method="chat.postMessage", times=25, channel=CHANNEL)
    asked = await bot.slack.asks(bot.address, QUESTION)
    await bot.slack.until(lambda: bot.slack.replies(asked))
    assert sum(sleep.seconds) > 600
    assert len(bot.slack.replies(asked)) == 1


async def test_a_pause_that_the_chat_asks_for_is_kept(bot: RunningBot, sleep: Sleep) -> None:
    bot.slack.refuse(429, headers={"Retry-After": "600"}, method="chat.postMessage", channel=CHANNEL)
    asked = await bot.slack.asks(bot.address, QUESTION)
    await bot.slack.until(lambda: bot.slack.replies(asked))
    assert sleep.seconds == [600.0]


async def test_however_many_wait_for_a_chat_everybody_else_is_served(bot: RunningBot, sleep: Sleep) -> None:
    sleep.over.clear()
    waiting = 2 * MAX_RUNNING
    bot.slack.refuse(503, method="chat.postMessage", times=waiting, channel=CHANNEL)
    asked = [await bot.slack.asks(bot.address, QUESTION) for _ in range(waiting)]
    await bot.slack.until(lambda: not bot.slack.refusals)
    incident_id = await bot.deliver("while Slack is down", alert("meanwhile"))
    assert incident_id is not None
    assert is_done(await bot.incident(incident_id, is_done))
    sleep.over.set()
    await bot.slack.until(lambda: all(bot.slack.replies(ts) for ts in asked))
    assert [len(bot.slack.replies(ts)) for ts in asked] == [1] * waiting
