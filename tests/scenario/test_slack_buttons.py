"""A button under a message of ours becomes feedback, once per press."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import Person, Place, Platform
from core.model.messages import AnswerMessage, ButtonAction, IncidentMessage
from tests import samples as messages
from tests.fakes import block_kit
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, PERSON
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import button_press


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        yield started


@pytest.mark.parametrize(
    ("message", "label", "verdict", "subject"),
    [
        (AnswerMessage(messages.answer()), "Helpful", ButtonAction.HELPFUL, "answer-1"),
        (AnswerMessage(messages.answer()), "Ask a person", ButtonAction.ASK_A_PERSON, "answer-1"),
        (IncidentMessage(messages.explained_incident()), "Wrong owner", ButtonAction.OWNER_WRONG, "owner-1"),
        (IncidentMessage(messages.explained_incident()), "Right cause", ButtonAction.CAUSE_RIGHT, "cause-1"),
        (IncidentMessage(messages.explained_incident()), "Take", ButtonAction.TAKE_IT, "incident-1"),
    ],
)
async def test_a_posted_button_comes_back_as_its_verdict(
    bot: SlackBot, message: AnswerMessage | IncidentMessage, label: str, verdict: ButtonAction, subject: str
) -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, bot.slack.url))
    reference = await messenger.post(Place(Platform.SLACK, CHANNEL), message, "intent")
    posted = bot.slack.message(CHANNEL, reference.message_id)
    response = await bot.press(button_press(block_kit.buttons(posted["blocks"])[label], posted))
    assert response.status == 200
    (feedback,) = bot.inbox.feedback
    assert (feedback.verdict, feedback.subject) == (verdict, subject)
    assert feedback.person == Person(Platform.SLACK, PERSON, "ines")
    assert feedback.place == Place(Platform.SLACK, CHANNEL, reference.message_id)


async def test_a_press_that_slack_sends_twice_is_one_feedback(bot: SlackBot) -> None:
    press = button_press({"type": "button", "action_id": "feedback:helpful", "value": "answer-1"}, POSTED)
    await bot.press(press)
    await bot.press(press)
    assert len(bot.inbox.feedback) == 1


async def test_two_people_who_press_are_two_feedbacks(bot: SlackBot) -> None:
    button = {"type": "button", "action_id": "feedback:helpful", "value": "answer-1"}
    await bot.press(button_press(button, POSTED))
    await bot.press(button_press(button, POSTED, person="U0DANA"))
    assert [feedback.person.id for feedback in bot.inbox.feedback] == [PERSON, "U0DANA"]


async def test_feedback_in_a_thread_belongs_there(bot: SlackBot) -> None:
    button = {"type": "button", "action_id": "feedback:wrong", "value": "answer-1"}
    await bot.press(button_press(button, POSTED | {"thread_ts": "1773480000.000001"}))
    assert bot.inbox.feedback[0].place.thread == "1773480000.000001"


async def test_a_button_of_another_app_is_acknowledged_and_ignored(bot: SlackBot) -> None:
    response = await bot.press(button_press({"type": "button", "action_id": "approve", "value": "x"}, POSTED))
    assert response.status == 200
    assert bot.inbox.feedback == []


async def test_a_verdict_that_does_not_exist_is_refused(bot: SlackBot) -> None:
    button = {"type": "button", "action_id": "feedback:delete-everything", "value": "x"}
    assert (await bot.press(button_press(button, POSTED))).status == 400
    assert bot.inbox.feedback == []


POSTED = {"channel": CHANNEL, "ts": "1773480600.000001"}
