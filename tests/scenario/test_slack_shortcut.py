"""“Ask Plumbline about this”: a form opens, and the answer belongs to the thread of the message."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.slack.interactions import FormOrigin
from core.incidents.incident_questions import Command, CommandName, parse_command
from core.model.conversation import PUBLIC, Place, Platform, Speaker, Turn
from tests.fakes.slack_api import CHANNEL, EXPIRED, PERSON
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import form_submission, message, message_shortcut

ALERT = message("payment-gateway p99 is above 2 s <@U0DANA|dana>", ts="1773480600.000100", user="U0DANA")


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        yield started


async def test_what_is_typed_is_asked_about_the_message(bot: SlackBot) -> None:
    assert (await bot.press(message_shortcut(ALERT))).status == 200
    assert bot.inbox.questions == [], "nothing is asked before the form is sent"
    (view,) = bot.slack.views
    submitted = form_submission(view, {"correction": "who owns this?"})
    for _ in range(2):
        assert (await bot.press(submitted)).status == 200
    (question,) = bot.inbox.questions
    assert question.text == "ask who owns this?"
    assert question.history == (Turn(Speaker.PERSON, "payment-gateway p99 is above 2 s @dana"),)
    assert question.place == Place(Platform.SLACK, CHANNEL, ALERT["ts"])
    assert "channel:ask-plumbline" in question.audience.readers


async def test_without_words_the_message_itself_asks(bot: SlackBot) -> None:
    await bot.press(message_shortcut(ALERT))
    await bot.press(form_submission(bot.slack.views[0], {}))
    (question,) = bot.inbox.questions
    assert (question.text, question.history) == ("ask payment-gateway p99 is above 2 s @dana", ())


async def test_an_alert_of_blocks_is_asked_about_by_its_blocks(bot: SlackBot) -> None:
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "payment-gateway p99 &gt; 2 s"}}
    await bot.press(message_shortcut(ALERT | {"text": "", "attachments": [{"blocks": [block]}]}))
    await bot.press(form_submission(bot.slack.views[0], {}))
    assert bot.inbox.questions[0].text == "ask payment-gateway p99 > 2 s"


async def test_a_form_that_opens_too_late_is_not_needed(bot: SlackBot) -> None:
    assert (await bot.press(message_shortcut(ALERT, trigger_id=EXPIRED))).status == 200
    assert [question.text for question in bot.inbox.questions] == ["ask payment-gateway p99 is above 2 s @dana"]


@pytest.mark.parametrize("said", ["quiet 00:00-23:59 unless critical", "correct: pay with shells", "help"])
async def test_what_somebody_else_wrote_is_no_command_of_whoever_asks_about_it(bot: SlackBot, said: str) -> None:
    await bot.press(message_shortcut(ALERT | {"text": said}))
    await bot.press(form_submission(bot.slack.views[0], {}))
    assert parse_command(bot.inbox.questions[0].text) == Command(CommandName.ASK, said)


async def test_a_reply_is_asked_about_in_its_thread(bot: SlackBot) -> None:
    await bot.press(message_shortcut(ALERT | {"thread_ts": "1773480000.000001"}))
    await bot.press(form_submission(bot.slack.views[0], {}))
    assert bot.inbox.questions[0].place.thread == "1773480000.000001"


async def test_where_the_bot_is_not_it_answers_whoever_asks_alone(bot: SlackBot) -> None:
    await bot.press(message_shortcut(ALERT | {"channel": "C0ELSEWHERE"}))
    await bot.press(form_submission(bot.slack.views[0], {"correction": "who owns this?"}))
    (question,) = bot.inbox.questions
    assert question.place == Place(Platform.SLACK, PERSON)
    assert question.audience.readers == {PUBLIC, f"person:slack:{PERSON}"}


async def test_where_the_bot_is_not_it_answers_alone_also_without_a_form(bot: SlackBot) -> None:
    await bot.press(message_shortcut(ALERT))
    (view,) = bot.slack.views
    submitted = form_submission(view, {}) | {}
    submitted["view"]["private_metadata"] = FormOrigin(
        channel="C0ELSEWHERE", ts=ALERT["ts"], quoted="?"
    ).model_dump_json()
    await bot.press(submitted)
    assert bot.inbox.questions[0].place == Place(Platform.SLACK, PERSON)


async def test_a_message_of_any_length_opens_the_form(bot: SlackBot) -> None:
    await bot.press(message_shortcut(ALERT | {"text": "\u0001é🙂<&>\n" * 2_000}))
    assert len(bot.slack.views) == 1
