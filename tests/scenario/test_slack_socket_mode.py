"""Socket Mode brings the same events as HTTP, without an address that Slack can reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.fakes.slack_api import APP_TOKEN, CHANNEL
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import (
    button_press,
    event_callback,
    form_submission,
    mention,
    message_shortcut,
    reaction,
    slash_command,
)

LONGEST_WAIT = 10.0  # seconds until a test that hangs fails


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot(app_token=APP_TOKEN) as started:
        yield started


async def test_a_mention_is_recorded_and_then_acknowledged(bot: SlackBot) -> None:
    acknowledged = await asyncio.wait_for(bot.slack.send("events_api", event_callback(mention())), LONGEST_WAIT)
    assert acknowledged == {"envelope_id": "e-1"}
    assert [question.text for question in bot.inbox.questions] == ["how do I roll back a canary?"]


async def test_a_slash_command_shows_in_the_channel(bot: SlackBot) -> None:
    acknowledged = await asyncio.wait_for(bot.slack.send("slash_commands", slash_command("status")), LONGEST_WAIT)
    assert acknowledged["payload"] == {"response_type": "in_channel"}
    assert [question.text for question in bot.inbox.questions] == ["status"]


async def test_a_button_is_acknowledged(bot: SlackBot) -> None:
    button = {"type": "button", "action_id": "feedback:helpful", "value": "answer-1"}
    press = button_press(button, {"channel": "C0ASK", "ts": "1773480600.000001"})
    await asyncio.wait_for(bot.slack.send("interactive", press), LONGEST_WAIT)
    assert [feedback.subject for feedback in bot.inbox.feedback] == ["answer-1"]


async def test_http_works_beside_it(bot: SlackBot) -> None:
    assert (await bot.event(mention())).status == 200
    assert len(bot.inbox.questions) == 1


async def test_without_a_signing_secret_nothing_is_taken_over_http() -> None:
    async with slack_bot(app_token=APP_TOKEN, signing_secret=None) as bot:
        assert (await bot.event(mention())).status == 401
        assert bot.inbox.questions == []


async def test_a_form_and_the_menu_of_a_message_come_this_way_too(bot: SlackBot) -> None:
    asked = message_shortcut({"channel": CHANNEL, "ts": "1773480600.000001", "text": "how do I drain a runner?"})
    await asyncio.wait_for(bot.slack.send("interactive", asked), LONGEST_WAIT)
    (view,) = bot.slack.views
    await asyncio.wait_for(bot.slack.send("interactive", form_submission(view, {})), LONGEST_WAIT)
    assert [question.text for question in bot.inbox.questions] == ["ask how do I drain a runner?"]


async def test_a_reaction_comes_this_way_too(bot: SlackBot) -> None:
    event = event_callback(reaction("+1", {"channel": CHANNEL, "ts": "1773480600.000001"}))
    await asyncio.wait_for(bot.slack.send("events_api", event), LONGEST_WAIT)
    assert [each.approves for each in bot.inbox.reactions] == [True]
