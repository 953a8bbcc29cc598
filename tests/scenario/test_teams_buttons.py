"""A pressed button of a card becomes feedback, once it is one of ours."""

from __future__ import annotations

from typing import Any

from core.model.messages import ButtonAction, IncidentMessage
from tests.cases import every_case
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import TeamsConnector
from tests.samples import explained_incident
from tests.scenario.teams import ANSWER, ASHA, THREAD, button, chat

__all__ = ["chat"]  # the fixture


def card_action(teams: TeamsConnector, data: Any, **fields: Any) -> dict[str, Any]:
    value = {"action": {"type": "Action.Execute", "verb": "helpful", "data": data}, "trigger": "manual"}
    return teams.activity(type="invoke", name="adaptiveCard/action", text=None, value=value, **fields)


async def test_a_pressed_button_becomes_feedback_and_is_thanked_for(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity())
    await chat.messenger.post(THREAD, ANSWER, "answer")
    pressed = button(chat.connector.sent[0].card, "Wrong")
    answered = await chat.deliver(card_action(chat.connector, pressed["data"], id="f:42"))
    assert answered.status == 200
    assert '"statusCode": 200' in answered.text
    assert '"type": "application/vnd.microsoft.activity.message"' in answered.text
    [feedback] = chat.inbox.feedback
    assert (feedback.verdict, feedback.subject, feedback.person) == (ButtonAction.WRONG, "answer-1", ASHA)
    assert feedback.place == THREAD
    assert feedback.id == f"teams:{THREAD.channel};messageid={THREAD.thread}:f:42"


async def test_an_older_client_sends_the_button_as_a_message(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity())
    await chat.messenger.post(THREAD, IncidentMessage(explained_incident()), "incident")
    fallback = button(chat.connector.sent[0].card, "Take")["fallback"]
    assert fallback["type"] == "Action.Submit"
    await chat.deliver(chat.connector.activity(id="f:43", text=None, entities=[], value=fallback["data"]))
    assert [(feedback.verdict, feedback.subject) for feedback in chat.inbox.feedback] == [
        (ButtonAction.TAKE_IT, "incident-1")
    ]
    assert len(chat.inbox.questions) == 1


@every_case(
    "data",
    [None, [], "helpful", {}, {"verdict": "helpful"}, {"verdict": "delete-all", "subject": "x"}, {"verdict": []}]
    + [{"verdict": "helpful", "subject": subject} for subject in ("", None, 7, {})],
)
async def test_a_button_that_is_none_of_ours_is_answered_politely(chat: TeamsAdapter, data: Any) -> None:
    answered = await chat.deliver(card_action(chat.connector, data))
    assert answered.status == 200
    assert '"statusCode": 400' in answered.text
    assert chat.inbox.feedback == []


async def test_an_invoke_without_an_action_does_no_harm(chat: TeamsAdapter) -> None:
    for value in (None, [], {"action": None}, {"action": []}):
        invoke = chat.connector.activity(type="invoke", name="adaptiveCard/action", value=value)
        assert '"statusCode": 400' in (await chat.deliver(invoke)).text
    assert (await chat.deliver(chat.connector.activity(type="invoke", name="task/fetch"))).status == 200
