"""Agent sessions: Slack shows that the bot works in a thread, with a stop button of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import Place, Platform
from core.model.messages import AnswerMessage, ButtonAction, Notice, NoticeKind
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, PERSON
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import session_stopped
from tests.samples import answer

ROOT = "1773480500.000100"
THREAD = Place(Platform.SLACK, CHANNEL, ROOT)


def working(stop_id: str) -> Notice:
    return Notice("Reading what I found …", NoticeKind.PROGRESS, stop_id=stop_id)


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        started.slack.messages.append({"channel": CHANNEL, "ts": ROOT, "user": PERSON, "text": "New thread"})
        yield started


@pytest.fixture
def messenger(bot: SlackBot) -> SlackMessenger:
    return SlackMessenger(slack_client(BOT_TOKEN, bot.slack.url))


async def test_a_thread_is_worked_in_while_a_message_can_be_stopped(bot: SlackBot, messenger: SlackMessenger) -> None:
    first = await messenger.post(THREAD, working("q1"), "one")
    second = await messenger.post(THREAD, working("q2"), "two")
    await messenger.edit(first, working("q1"))
    assert bot.slack.sessions == {(CHANNEL, ROOT): "processing"}
    await messenger.edit(first, AnswerMessage(answer()))
    assert bot.slack.sessions == {(CHANNEL, ROOT): "processing"}
    await messenger.delete(second)
    assert bot.slack.sessions == {(CHANNEL, ROOT): "active"}
    assert len(bot.slack.called("agents.sessions.setStatus")) == 2


async def test_what_nobody_can_stop_is_no_session(bot: SlackBot, messenger: SlackMessenger) -> None:
    await messenger.edit(await messenger.post(THREAD, Notice("Thinking"), "one"), AnswerMessage(answer()))
    await messenger.post(Place(Platform.SLACK, CHANNEL), working("q1"), "outside a thread")
    assert bot.slack.called("agents.sessions.setStatus") == []


@pytest.mark.parametrize(("error", "asked"), [("unknown_method", 1), ("not_authorized", 1), ("internal_error", 4)])
async def test_a_slack_without_sessions_is_asked_once_and_takes_the_messages(
    bot: SlackBot, messenger: SlackMessenger, error: str, asked: int
) -> None:
    bot.slack.refuse(200, f'{{"ok": false, "error": "{error}"}}', method="agents.sessions.setStatus", times=4)
    for intent in ("one", "two"):
        reference = await messenger.post(THREAD, working("q1"), intent)
        await messenger.edit(reference, AnswerMessage(answer()))
        assert bot.slack.message(CHANNEL, reference.message_id)["blocks"]
    assert len(bot.slack.called("agents.sessions.setStatus")) == asked


async def test_the_stop_button_of_slack_presses_those_of_the_bot_in_its_thread(
    bot: SlackBot, messenger: SlackMessenger
) -> None:
    await messenger.post(THREAD, working("q1"), "one")
    await messenger.post(THREAD, working("q2"), "two")
    elsewhere = "1773480500.000200"
    bot.slack.messages.append({"channel": CHANNEL, "ts": elsewhere, "user": PERSON, "text": "Another thread"})
    await messenger.post(Place(Platform.SLACK, CHANNEL, elsewhere), working("q3"), "three")
    forged = {**bot.slack.messages[-1], "user": "U0OTHERAPP", "thread_ts": ROOT, "ts": "1773480500.000300"}
    bot.slack.messages.append(forged)
    assert (await bot.event(session_stopped(CHANNEL, ROOT))).status == 200
    pressed = bot.inbox.feedback
    assert [(each.verdict, each.subject) for each in pressed] == [(ButtonAction.STOP, "q1"), (ButtonAction.STOP, "q2")]
    assert {each.place for each in pressed} == {THREAD}
    assert bot.slack.sessions == {(CHANNEL, ROOT): "active", (CHANNEL, elsewhere): "processing"}


async def test_a_press_where_nobody_works_ends_the_session(bot: SlackBot) -> None:
    bot.slack.sessions[CHANNEL, ROOT] = "processing"
    assert (await bot.event(session_stopped(CHANNEL, ROOT))).status == 200
    assert bot.inbox.feedback == []
    assert bot.slack.sessions == {(CHANNEL, ROOT): "active"}
