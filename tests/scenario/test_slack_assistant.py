"""The conversation with the app: prompts where one begins, and the steps of the work in the message."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import Place, Platform
from core.model.errors import Undeliverable
from core.model.messages import AnswerMessage, Notice, NoticeKind
from tests.fakes.block_kit import buttons
from tests.fakes.slack_api import BOT_TOKEN, DIRECT, PERSON
from tests.fakes.slack_bot import EXAMPLES, SlackBot, slack_bot
from tests.fakes.slack_payloads import message
from tests.samples import answer

ROOT = "1773480500.000100"
THREAD = Place(Platform.SLACK, DIRECT, ROOT)
WORKING = Notice("Reading what I found …", NoticeKind.PROGRESS, steps=("Searched",))


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        yield started


async def test_the_messages_tab_offers_prompts_outside_any_thread(bot: SlackBot) -> None:
    opened = {"type": "app_home_opened", "user": PERSON, "channel": DIRECT, "tab": "messages", "event_ts": ROOT}
    assert (await bot.event(opened)).status == 200
    (sent,) = bot.slack.called("assistant.threads.setSuggestedPrompts")
    assert [prompt["message"] for prompt in sent["prompts"]] == [*EXAMPLES, "status"]
    assert sent["channel_id"] == DIRECT
    assert "thread_ts" not in sent


async def test_what_a_person_looks_at_is_acknowledged(bot: SlackBot) -> None:
    entity = {"type": "slack#/types/channel_id", "value": "C0ASK", "team_id": "T0MARI"}
    for context in ({"entities": [entity]}, {}):
        assert (await bot.event({"type": "app_context_changed", "context": context})).status == 200
    assert bot.inbox.questions == []


async def test_a_message_in_the_messages_tab_is_answered_in_its_own_thread(bot: SlackBot) -> None:
    await bot.event(message("How do I drain a drydock runner?", channel=DIRECT, channel_type="im", ts=ROOT))
    assert bot.inbox.questions[0].place == THREAD


async def test_a_slack_that_takes_no_prompts_costs_nothing(bot: SlackBot) -> None:
    bot.slack.refuse(200, '{"ok": false, "error": "missing_scope"}', method="assistant.threads.setSuggestedPrompts")
    opened = {"type": "app_home_opened", "user": PERSON, "channel": DIRECT, "tab": "messages", "event_ts": ROOT}
    assert (await bot.event(opened)).status == 200


async def older_slack(bot: SlackBot) -> SlackMessenger:
    """A messenger in a workspace that refused the newest blocks once."""
    messenger = SlackMessenger(slack_client(BOT_TOKEN, bot.slack.url))
    bot.slack.messages.append({"channel": DIRECT, "ts": ROOT, "text": "New thread"})
    bot.slack.refuse(200, '{"ok": false, "error": "invalid_blocks"}', method="chat.postMessage")
    await messenger.delete(await messenger.post(THREAD, WORKING, "a sign"))
    return messenger


async def test_the_steps_stand_in_the_message_until_the_answer_takes_their_place(bot: SlackBot) -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, bot.slack.url))
    bot.slack.messages.append({"channel": DIRECT, "ts": ROOT, "text": "New thread"})
    reference = await messenger.post(THREAD, WORKING, "intent")
    ((plan,),) = [bot.slack.message(DIRECT, reference.message_id)["blocks"]]
    shown = [(task["title"], task["status"]) for task in plan["tasks"]]
    assert (plan["type"], shown) == ("plan", [("Searched", "complete"), (WORKING.text, "in_progress")])
    assert await messenger.find(THREAD, "intent") == reference
    await messenger.edit(reference, AnswerMessage(answer()))
    blocks = bot.slack.message(DIRECT, reference.message_id)["blocks"]
    assert "plan" not in {block["type"] for block in blocks}


async def test_a_slack_that_does_not_know_the_newest_blocks_shows_the_buttons_of_before(bot: SlackBot) -> None:
    messenger = await older_slack(bot)
    reference = await messenger.post(THREAD, AnswerMessage(answer()), "intent")
    blocks = bot.slack.message(DIRECT, reference.message_id)["blocks"]
    assert {"Helpful", "Wrong"} <= buttons(blocks).keys()
    assert "context_actions" not in {block["type"] for block in blocks}


async def test_a_message_that_is_refused_for_another_reason_is_not_sent_twice(bot: SlackBot) -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, bot.slack.url))
    bot.slack.messages.append({"channel": DIRECT, "ts": ROOT, "text": "New thread"})
    bot.slack.refuse(200, '{"ok": false, "error": "invalid_blocks"}', method="chat.postMessage")
    with pytest.raises(Undeliverable):
        await messenger.post(THREAD, Notice("The answer."), "intent")
    assert len(bot.slack.called("chat.postMessage")) == 1
