"""What Teams waits for: cards that are answered with fresh ones, dialogs, and “Ask Plumbline about this”."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.incidents.incident_questions import Command, CommandName, parse_command
from core.model.conversation import PUBLIC, Place, Platform, Speaker, Turn
from core.model.messages import (
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    Form,
    HandoverRequest,
    IncidentMessage,
)
from tests.cases import every_case
from tests.fakes.adaptive_card import of_type, texts
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import CHANNEL, TENANT
from tests.samples import explained_incident
from tests.samples.messages import SAMPLES

THREAD = Place(Platform.TEAMS, CHANNEL, "1700000000001", TENANT)
HANDOVER = HandoverRequest("incident-1", "Payments", (("bookings", "Bookings"), ("web", "Web Store")))


def fields_of(card: dict[str, Any]) -> list[dict[str, Any]]:
    return [*of_type(card, "Input.ChoiceSet"), *of_type(card, "Input.Text")]


@pytest.fixture(params=["builtin", "botbuilder"])
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[TeamsAdapter]:
    async with open_teams(request.param) as chat:
        yield chat


async def invoke(chat: TeamsAdapter, name: str, value: Any, **fields: Any) -> dict[str, Any]:
    activity = chat.connector.activity(type="invoke", name=name, value=value, text=None, replyToId="1710", **fields)
    answered = await chat.deliver(activity)
    assert answered.status == 200
    return json.loads(answered.text) if answered.text else {}


def pressed(verdict: str, subject: str = "incident-1", **typed: str) -> dict[str, Any]:
    return {"action": {"type": "Action.Execute", "data": {"verdict": verdict, "subject": subject, **typed}}}


# --- thumbs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reaction", "feedback", "told"),
    [
        ("like", '{"feedbackText": ""}', (True, "")),
        ("dislike", '{"feedbackText": "The command is old."}', (False, "The command is old.")),
        ("dislike", "no JSON", (False, "")),
        ("dislike", None, (False, "")),
    ],
)
async def test_a_thumb_below_an_answer_is_a_reaction_with_its_comment(
    chat: TeamsAdapter, reaction: str, feedback: str | None, told: tuple[bool, str]
) -> None:
    value = {"actionName": "feedback", "actionValue": {"reaction": reaction, "feedback": feedback}}
    await invoke(chat, "message/submitAction", value)
    await invoke(chat, "message/submitAction", value)  # sent twice
    [given] = chat.inbox.reactions
    assert (given.approves, given.comment) == told
    assert given.message.message_id == "1710"


@pytest.mark.parametrize("value", [None, {}, {"actionValue": "like"}, {"actionValue": {"reaction": "shrug"}}])
async def test_a_thumb_that_says_nothing_is_ignored(chat: TeamsAdapter, value: Any) -> None:
    await invoke(chat, "message/submitAction", value)
    assert chat.inbox.reactions == []


# --- cards -----------------------------------------------------------------------------------------------------------


async def test_a_card_that_is_looked_at_again_is_answered_as_it_stands_now(chat: TeamsAdapter) -> None:
    chat.standing.known["1710"] = IncidentMessage(explained_incident(taken_by="Mateo"))
    answer = await invoke(chat, "adaptiveCard/action", {"action": {"verb": "refresh", "data": {}}, "trigger": "auto"})
    assert (answer["statusCode"], answer["type"]) == (200, "application/vnd.microsoft.card.adaptive")
    assert "taken by Mateo" in "\n".join(texts(answer["value"]["body"]))
    assert answer["value"]["refresh"]["action"]["verb"] == "refresh"
    assert chat.inbox.feedback == []


async def test_a_card_of_a_message_that_does_not_change_is_left_as_it_is(chat: TeamsAdapter) -> None:
    answer = await invoke(chat, "adaptiveCard/action", {"action": {"verb": "refresh"}})
    assert answer["statusCode"] == 400


async def test_a_draft_opens_in_a_dialog_and_comes_back_as_it_was_edited(chat: TeamsAdapter) -> None:
    draft = SAMPLES["filing request"]
    assert isinstance(draft, FilingRequest)
    chat.forms.known[ButtonAction.CREATE_ISSUE] = draft
    data = {"verdict": "create-issue", "subject": "incident-1", "msteams": {"type": "task/fetch"}}
    window = (await invoke(chat, "task/fetch", {"data": data}))["task"]["value"]
    card = window["card"]["content"]
    shown = {field["id"]: field["value"] for field in fields_of(card)}
    assert shown == {"choice": "Payments board", "title": draft.title, "text": draft.text}
    (send,) = card["actions"]
    sent = shown | {"text": "Edited.", **send["data"]}
    await invoke(chat, "task/submit", {"data": sent}, id="1700000000003")
    opened, filed = chat.inbox.feedback
    assert (opened.verdict, opened.in_form) == (ButtonAction.CREATE_ISSUE, True)
    assert (filed.verdict, filed.subject, filed.choice) == (ButtonAction.FILE, "incident-1", "Payments board")
    assert (filed.title, filed.text) == (draft.title, "Edited.")


async def test_an_update_opens_in_a_dialog_and_is_sent_to_the_channel_that_was_picked(chat: TeamsAdapter) -> None:
    draft = SAMPLES["stakeholder update"]
    assert isinstance(draft, FilingRequest)
    chat.forms.known[ButtonAction.WRITE_UPDATE] = draft
    data = {"verdict": "write-update", "subject": "incident-1", "msteams": {"type": "task/fetch"}}
    card = (await invoke(chat, "task/fetch", {"data": data}))["task"]["value"]["card"]["content"]
    shown = {field["id"]: field["value"] for field in fields_of(card)}
    (send,) = card["actions"]
    await invoke(chat, "task/submit", {"data": shown | {"choice": "incidents", **send["data"]}}, id="1700000000003")
    opened, sent = chat.inbox.feedback
    assert (opened.verdict, opened.in_form) == (ButtonAction.WRITE_UPDATE, True)
    assert (sent.verdict, sent.subject, sent.choice) == (ButtonAction.SEND_UPDATE, "incident-1", "incidents")
    assert (sent.title, sent.text) == (draft.title, draft.text)


async def test_whoever_takes_an_incident_sees_it_at_once(chat: TeamsAdapter) -> None:
    chat.standing.known["1710"] = IncidentMessage(explained_incident())
    answer = await invoke(chat, "adaptiveCard/action", pressed("take-it"))
    assert "taken by Asha Brandt" in "\n".join(texts(answer["value"]["body"]))
    assert "Take" not in [action["title"] for action in answer["value"]["actions"]]
    assert [feedback.verdict for feedback in chat.inbox.feedback] == [ButtonAction.TAKE_IT]


@pytest.mark.parametrize(("verdict", "has_it"), [("take-it", "Mateo"), ("take-over", "Asha Brandt")])
async def test_whoever_takes_what_somebody_else_has_sees_who_has_it_then(
    chat: TeamsAdapter, verdict: str, has_it: str
) -> None:
    chat.standing.known["1710"] = IncidentMessage(explained_incident(taken_by="Mateo"))
    answer = await invoke(chat, "adaptiveCard/action", pressed(verdict))
    assert f"taken by {has_it}" in "\n".join(texts(answer["value"]["body"]))


@pytest.mark.parametrize("verdict", ["reassign", "not-ours", "correction"])
async def test_a_form_in_a_card_is_answered_with_a_card_without_it(chat: TeamsAdapter, verdict: str) -> None:
    answer = await invoke(chat, "adaptiveCard/action", pressed(verdict, choice="bookings", text="theirs"))
    assert texts(answer["value"]["body"]) == ["✓ Received."]
    [feedback] = chat.inbox.feedback
    assert (feedback.choice, feedback.text) == ("bookings", "theirs")


# --- dialogs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "form", "title", "sends"),
    [
        (ButtonAction.WRONG, CorrectionRequest("answer-1"), "What is right?", ["correction"]),
        (ButtonAction.CAUSE_WRONG, CauseRequest("cause-1"), "Wrong cause", ["cause-wrong"]),
        (ButtonAction.HAND_OVER, HANDOVER, "Reassign", ["reassign", "not-ours"]),
        (ButtonAction.OWNER_WRONG, HANDOVER, "Reassign", ["reassign", "not-ours"]),
    ],
)
async def test_a_button_that_asks_opens_a_dialog(
    chat: TeamsAdapter, verdict: ButtonAction, form: Form, title: str, sends: list[str]
) -> None:
    chat.forms.known[verdict] = form
    value = {"data": {"verdict": verdict, "subject": "answer-1", "msteams": {"type": "task/fetch"}}}
    answer = await invoke(chat, "task/fetch", value)
    assert answer["task"]["type"] == "continue"
    window = answer["task"]["value"]
    assert window["title"] == title
    card = window["card"]["content"]
    assert [action["data"]["verdict"] for action in card["actions"]] == sends
    assert {action["type"] for action in card["actions"]} == {"Action.Submit"}
    assert "msteams" not in json.dumps(card["actions"])
    assert list(of_type(card, "Input.Text"))
    [feedback] = chat.inbox.feedback
    assert (feedback.verdict, feedback.in_form) == (verdict, True)


async def test_what_a_dialog_sends_is_feedback(chat: TeamsAdapter) -> None:
    value = {"data": {"verdict": "reassign", "subject": "incident-1", "choice": "bookings", "text": "theirs"}}
    answer = await invoke(chat, "task/submit", value)
    assert answer == {"task": {"type": "message", "value": "Received."}}
    [feedback] = chat.inbox.feedback
    assert (feedback.verdict, feedback.choice, feedback.text, feedback.in_form, feedback.place) == (
        ButtonAction.REASSIGN,
        "bookings",
        "theirs",
        True,
        THREAD,
    )


async def test_where_nothing_is_to_be_asked_the_press_alone_is_noted(chat: TeamsAdapter) -> None:
    answer = await invoke(chat, "task/fetch", {"data": {"verdict": "wrong", "subject": "gone"}})
    assert answer["task"]["type"] == "message"
    assert [feedback.in_form for feedback in chat.inbox.feedback] == [False]


@every_case("name", ["task/fetch", "task/submit"])
@every_case("value", [None, [], {}, {"data": None}, {"data": {"verdict": "x", "subject": "y"}}])
async def test_a_dialog_that_is_none_of_ours_is_answered_politely(chat: TeamsAdapter, name: str, value: Any) -> None:
    answer = await invoke(chat, name, value)
    assert "too old" in answer["task"]["value"]
    assert chat.inbox.feedback == []


async def test_a_client_without_dialogs_sends_the_button_as_a_message(chat: TeamsAdapter) -> None:
    value = {"verdict": "wrong", "subject": "answer-1", "msteams": {"type": "task/fetch"}}
    await chat.deliver(chat.connector.activity(text=None, entities=[], value=value))
    [feedback] = chat.inbox.feedback
    assert (feedback.verdict, feedback.in_form) == (ButtonAction.WRONG, False)


# --- the message extension -------------------------------------------------------------------------------------------


def about(text: str, question: str = "", kind: str = "html") -> dict[str, Any]:
    return {
        "commandId": "ask",
        "commandContext": "message",
        "data": {"text": question},
        "messagePayload": {"id": "1700000000001", "body": {"contentType": kind, "content": text}},
    }


async def test_ask_about_this_opens_a_dialog(chat: TeamsAdapter) -> None:
    answer = await invoke(chat, "composeExtension/fetchTask", about("<p>p99 is 4 s</p>"))
    assert answer["task"]["value"]["title"] == "Ask Plumbline about this"
    assert [field["id"] for field in of_type(answer["task"]["value"]["card"], "Input.Text")] == ["text"]


async def test_what_is_asked_about_a_message_is_a_question_in_its_thread(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(type="typing"))
    value = about("<p>p99 of the till is&nbsp;4 s</p>", "how do we fix this?")
    answer = await invoke(chat, "composeExtension/submitAction", value, id="f:1")
    assert "below the message" in answer["task"]["value"]
    [question] = chat.inbox.questions
    assert parse_command(question.text) == Command(CommandName.ASK, "how do we fix this?")
    assert question.place == THREAD
    assert question.history == (Turn(Speaker.PERSON, "p99 of the till is 4 s"),)
    assert PUBLIC in question.audience.readers


@pytest.mark.parametrize("data", [None, [], "why?", {"text": 7}, {"text": ["why?"]}])
async def test_window_without_text_asks_message_itself(chat: TeamsAdapter, data: Any) -> None:
    await chat.deliver(chat.connector.activity(type="typing"))
    await invoke(chat, "composeExtension/submitAction", about("<p>p99 is 4 s</p>") | {"data": data})
    assert [question.text for question in chat.inbox.questions] == ["ask p99 is 4 s"]


async def test_a_card_is_asked_about_by_its_text(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(type="typing"))
    value = about("")
    card = {"contentType": "application/vnd.microsoft.card.hero", "content": {"title": "Till", "text": "p99 is 4 s"}}
    value["messagePayload"]["attachments"] = [card]
    await invoke(chat, "composeExtension/submitAction", value)
    assert [question.text for question in chat.inbox.questions] == ["ask Till p99 is 4 s"]


@pytest.mark.parametrize("text", ["how do I roll back?", "status", "thanks", "quiet off"])
async def test_without_words_the_message_itself_is_the_question_and_never_a_command(
    chat: TeamsAdapter, text: str
) -> None:
    await chat.deliver(chat.connector.activity(type="typing"))
    await invoke(chat, "composeExtension/submitAction", about(text, kind="text"))
    [question] = chat.inbox.questions
    assert parse_command(question.text) == Command(CommandName.ASK, text)
    assert question.history == ()


async def test_in_another_channel_of_a_team_that_has_the_app_it_answers_too(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(type="typing"))
    elsewhere = {"id": "19:other@thread.tacv2;messageid=17", "conversationType": "channel", "tenantId": TENANT}
    await invoke(chat, "composeExtension/submitAction", about("<p>why?</p>"), conversation=elsewhere)
    assert [question.place.channel for question in chat.inbox.questions] == ["19:other@thread.tacv2"]


async def test_where_the_app_is_not_a_member_it_says_so(chat: TeamsAdapter) -> None:
    answer = await invoke(chat, "composeExtension/submitAction", about("<p>hello?</p>"))
    assert "Add Plumbline" in answer["task"]["value"]
    assert chat.inbox.questions == []
    assert chat.references.stored == {}


@every_case("payload", [None, [], {"body": None}, {"body": {"content": 7}}, {"body": {"content": ""}}])
async def test_a_message_without_text_asks_nothing(chat: TeamsAdapter, payload: Any) -> None:
    await chat.deliver(chat.connector.activity(type="typing"))
    value = {"commandId": "ask", "messagePayload": payload, "data": {}}
    answer = await invoke(chat, "composeExtension/submitAction", value)
    assert "no text" in answer["task"]["value"]
    assert chat.inbox.questions == []
