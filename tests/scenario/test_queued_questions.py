"""Whoever asks while nobody has time to answer is told that the question waits, and then answered, in one message."""

from __future__ import annotations

import json

import pytest

from handlers.common import post_message
from tests.scenario.application import RunningBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_question_does_not_wait_in_silence_and_its_answer_is_not_a_second_message(
    bot: RunningBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_message, "QUEUE_NOTICE_DELAY", 0.05)
    monkeypatch.setattr(post_message, "CHECK_INTERVAL", 0.05)
    with monkeypatch.context() as busy:
        busy.setattr("bot.work.inbox.CLAIMED_BATCH", 0)  # no task is claimed
        ts = await bot.slack.asks(bot.address, "how do I roll back a canary?")
        await bot.slack.until(lambda: bot.slack.replies(ts))
        (sign,) = bot.slack.replies(ts)
        assert post_message.QUEUED in json.dumps(sign)
    await bot.slack.until(lambda: post_message.QUEUED not in json.dumps(bot.slack.replies(ts)))
    (answer,) = bot.slack.replies(ts)
    assert answer["ts"] == sign["ts"]
