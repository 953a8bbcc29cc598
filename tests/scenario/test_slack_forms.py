"""A press that leaves a question open opens a form in Slack; if none opens, the question stands in the thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.badge import Evaluation, Prediction, PredictionKind
from core.model.conversation import Place, Platform
from core.model.messages import AnswerMessage, ButtonAction, IncidentMessage
from tests import samples as messages
from tests.fakes import block_kit
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, EXPIRED
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import button_press, form_submission

PLACE = Place(Platform.SLACK, CHANNEL)
CLAIMS = {
    "answer-1": (PredictionKind.ANSWER, "q1"),
    "owner-1": (PredictionKind.OWNER, "incident-1"),
    "cause-1": (PredictionKind.CAUSE, "incident-1"),
}


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        async with started.store.transaction() as transaction:
            await transaction.incidents.save(messages.explained_incident(place=PLACE))
            for id_, (kind, subject) in CLAIMS.items():
                claim = Prediction(id_, kind, subject, "x", Evaluation(0.5, 0.5), "evidence", "v1", messages.START)
                await transaction.predictions.add(claim)
        yield started


async def posted(bot: SlackBot, message: AnswerMessage | IncidentMessage) -> dict[str, Any]:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, bot.slack.url))
    reference = await messenger.post(PLACE, message, "intent")
    return bot.slack.message(CHANNEL, reference.message_id)


async def press(bot: SlackBot, message: AnswerMessage | IncidentMessage, label: str, **fields: str) -> None:
    shown = await posted(bot, message)
    response = await bot.press(button_press(block_kit.buttons(shown["blocks"])[label], shown) | fields)
    assert response.status == 200


ANSWER = AnswerMessage(messages.answer())
INCIDENT = IncidentMessage(messages.explained_incident())


@pytest.mark.parametrize(
    ("message", "label", "title", "recorded"),
    [
        (ANSWER, "Wrong", "What is right?", [ButtonAction.WRONG]),
        (INCIDENT, "Wrong cause", "Wrong cause", [ButtonAction.CAUSE_WRONG]),
        (INCIDENT, "Wrong owner", "Reassign", [ButtonAction.OWNER_WRONG]),
        (INCIDENT, "Reassign…", "Reassign", []),
    ],
)
async def test_the_form_opens_and_what_was_pressed_is_recorded(
    bot: SlackBot, message: AnswerMessage | IncidentMessage, label: str, title: str, recorded: list[ButtonAction]
) -> None:
    await press(bot, message, label)
    (view,) = bot.slack.views
    assert view["title"]["text"] == title
    assert [feedback.verdict for feedback in bot.inbox.feedback] == recorded
    assert all(feedback.in_form for feedback in bot.inbox.feedback), "the thread is not asked as well"


@pytest.mark.parametrize(("message", "label"), [(ANSWER, "Wrong"), (INCIDENT, "Reassign…")])
async def test_a_trigger_that_is_too_old_leaves_the_question_to_the_thread(
    bot: SlackBot, message: AnswerMessage | IncidentMessage, label: str
) -> None:
    await press(bot, message, label, trigger_id=EXPIRED)
    assert bot.slack.views == []
    (feedback,) = bot.inbox.feedback
    assert not feedback.in_form


async def test_a_slack_that_does_not_open_forms_in_time_leaves_the_question_to_the_thread(
    bot: SlackBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.slack.interactions.CALL_TIMEOUT", 0.0)
    await press(bot, ANSWER, "Wrong")
    assert [feedback.in_form for feedback in bot.inbox.feedback] == [False]


@pytest.mark.parametrize("label", ["Helpful", "Ask a person"])
async def test_a_press_that_leaves_nothing_open_opens_no_form(bot: SlackBot, label: str) -> None:
    await press(bot, ANSWER, label)
    assert bot.slack.views == []


@pytest.mark.parametrize(
    ("message", "label", "values", "verdict", "subject", "text", "choice"),
    [
        (ANSWER, "Wrong", {"correction": "Say it twice."}, ButtonAction.CORRECTION, "answer-1", "Say it twice.", ""),
        (INCIDENT, "Wrong cause", {"correction": "DNS."}, ButtonAction.CAUSE_WRONG, "cause-1", "DNS.", ""),
        (INCIDENT, "Reassign…", {"team": "bookings"}, ButtonAction.REASSIGN, "owner-1", "", "bookings"),
        (INCIDENT, "Reassign…", {"correction": "not us"}, ButtonAction.NOT_OURS, "owner-1", "not us", ""),
        (INCIDENT, "Wrong owner", {"team": "bookings"}, ButtonAction.REASSIGN, "owner-1", "", "bookings"),
    ],
)
async def test_what_is_filled_in_is_feedback_in_the_thread_of_the_message(
    bot: SlackBot,
    message: AnswerMessage | IncidentMessage,
    label: str,
    values: dict[str, str],
    verdict: ButtonAction,
    subject: str,
    text: str,
    choice: str,
) -> None:
    await press(bot, message, label)
    submitted = form_submission(bot.slack.views[0], values)
    for _ in range(2):  # a form that Slack sends twice is one feedback
        assert (await bot.press(submitted)).status == 200
    feedback = bot.inbox.feedback[-1]
    assert (feedback.verdict, feedback.subject, feedback.text, feedback.choice) == (verdict, subject, text, choice)
    assert feedback.place == Place(Platform.SLACK, CHANNEL, bot.slack.messages[0]["ts"])
    assert "channel:ask-plumbline" in feedback.audience.readers
    assert [each.verdict for each in bot.inbox.feedback].count(verdict) <= 2


async def test_a_form_that_is_sent_empty_says_nothing_more(bot: SlackBot) -> None:
    await press(bot, ANSWER, "Wrong")
    assert (await bot.press(form_submission(bot.slack.views[0], {}))).status == 200
    assert [feedback.verdict for feedback in bot.inbox.feedback] == [ButtonAction.WRONG]


async def test_a_form_that_is_none_of_ours_is_refused_or_ignored(bot: SlackBot) -> None:
    await press(bot, ANSWER, "Wrong")
    view = bot.slack.views[0]
    forged = form_submission(view | {"private_metadata": '{"channel": "../etc", "ts": "1"}'}, {"correction": "x"})
    assert (await bot.press(forged)).status == 400
    assert (await bot.press(form_submission(view | {"callback_id": "survey"}, {}))).status == 200
    assert len(bot.inbox.feedback) == 1
