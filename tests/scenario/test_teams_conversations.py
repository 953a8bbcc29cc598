"""From a signed request to what the chat shows, on both transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.teams.access_token import AccessToken
from adapters.teams.transport import open_transport
from core.conversation import PUBLIC, Channel, MessageReference, Person, Place, Platform, Speaker, Turn
from core.errors import ChatUnavailable, ConfigurationError, MessageNotFound, PlumblineError
from core.messages import AnswerMessage, IncidentDetails, IncidentMessage, Verdict
from core.samples import answer, explained_incident, incident
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import (
    APP_ID,
    BOT,
    CHANNEL,
    GROUP_CHAT,
    MENTION,
    PERSONAL_CHAT,
    TENANT,
    Failure,
    TeamsConnector,
)

SDKS = ("agents", "botbuilder")
ASHA = Person(Platform.TEAMS, "5c1f-asha", "Asha Brandt")
THREAD = Place(Platform.TEAMS, CHANNEL, "1700000000001", TENANT)
ANSWER = AnswerMessage(answer())


@pytest.fixture(params=SDKS)
async def teams(request: pytest.FixtureRequest) -> AsyncIterator[TeamsAdapter]:
    channels = [Channel("incidents", {Platform.TEAMS: CHANNEL})]
    async with open_teams(request.param, channels=channels) as chat:
        yield chat


@pytest.fixture
async def chat() -> AsyncIterator[TeamsAdapter]:
    """One transport, where none is used."""
    async with open_teams("agents", channels=[Channel("incidents", {Platform.TEAMS: CHANNEL})]) as chat:
        yield chat


def card_action(teams: TeamsConnector, data: Any, **fields: Any) -> dict[str, Any]:
    value = {"action": {"type": "Action.Execute", "verb": "helpful", "data": data}, "trigger": "manual"}
    return teams.activity(type="invoke", name="adaptiveCard/action", text=None, value=value, **fields)


def button(message: dict[str, Any], title: str) -> dict[str, Any]:
    return next(action for action in message["actions"] if action["title"] == title)


# --- questions -------------------------------------------------------------------------------------------------------


async def test_a_mention_in_a_channel_becomes_a_question(chat: TeamsAdapter) -> None:
    assert (await chat.deliver(chat.connector.activity())).status == 200
    [question] = chat.inbox.questions
    assert question.id == f"teams:{CHANNEL};messageid=1700000000001:1700000000002"
    assert question.text == "how do I roll back a canary?"
    assert question.asker == ASHA
    assert question.place == THREAD
    assert question.audience.readers == {PUBLIC, "channel:incidents", f"channel:teams:{CHANNEL}"}
    assert question.asked_at == datetime(2023, 11, 14, 22, 13, 20, 2_000, tzinfo=UTC), "as its id says"


async def test_a_deleted_message_is_retracted_in_case_it_was_a_question(chat: TeamsAdapter) -> None:
    asked = chat.connector.activity()
    await chat.deliver(asked)
    await chat.deliver(asked | {"type": "messageDelete", "channelData": {"eventType": "softDeleteMessage"}})
    assert chat.inbox.retracted == [(chat.inbox.questions[0].id, chat.inbox.questions[0].place)]


async def test_a_personal_chat_is_one_thread_that_only_this_person_reads(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.personal())
    [question] = chat.inbox.questions
    assert question.place == Place(Platform.TEAMS, PERSONAL_CHAT, PERSONAL_CHAT, TENANT)
    assert question.audience.readers == {PUBLIC, "person:teams:5c1f-asha"}


async def test_a_group_chat_is_read_as_a_channel(chat: TeamsAdapter) -> None:
    group = {"id": GROUP_CHAT, "conversationType": "groupChat", "isGroup": True, "tenantId": TENANT}
    await chat.deliver(chat.connector.activity(conversation=group, channelData={"tenant": {"id": TENANT}}))
    [question] = chat.inbox.questions
    assert question.place == Place(Platform.TEAMS, GROUP_CHAT, GROUP_CHAT, TENANT)
    assert question.audience.readers == {PUBLIC, f"channel:teams:{GROUP_CHAT}"}


@pytest.mark.parametrize(
    "seen_by_guests",
    [{"channel": {"id": CHANNEL, "type": "shared"}}, {"channel": {"id": CHANNEL}, "meeting": {"id": "MCMx"}}],
)
async def test_where_guests_may_read_along_nothing_public_is_shown(
    chat: TeamsAdapter, seen_by_guests: dict[str, Any]
) -> None:
    await chat.deliver(chat.connector.activity(channelData=seen_by_guests))
    [question] = chat.inbox.questions
    assert question.audience.readers == {"channel:incidents", f"channel:teams:{CHANNEL}"}


@pytest.mark.parametrize(("kind", "public"), [("standard", True), ("private", False), ("", True)])
async def test_what_is_said_in_a_private_channel_is_for_it_alone(chat: TeamsAdapter, kind: str, public: bool) -> None:
    await chat.deliver(chat.connector.activity(channelData={"channel": {"id": CHANNEL, "type": kind}}))
    [question] = chat.inbox.questions
    assert (PUBLIC in question.audience.disclosed_to) is public
    assert PUBLIC in question.audience.readers


@pytest.mark.parametrize("place", [CHANNEL, PERSONAL_CHAT])
async def test_where_a_guest_is_a_member_nothing_public_is_shown(chat: TeamsAdapter, place: str) -> None:
    chat.connector.guests.add(place)
    await chat.deliver(chat.connector.personal() if place == PERSONAL_CHAT else chat.connector.activity())
    [question] = chat.inbox.questions
    assert PUBLIC not in question.audience.readers


async def test_a_guest_elsewhere_changes_nothing_here(chat: TeamsAdapter) -> None:
    chat.connector.guests.add(GROUP_CHAT)
    await chat.deliver(chat.connector.activity())
    assert PUBLIC in chat.inbox.questions[0].audience.readers


async def test_nothing_public_is_shown_while_teams_does_not_say_who_reads(chat: TeamsAdapter) -> None:
    chat.connector.roster_down = True
    await chat.deliver(chat.connector.activity(id="1"))
    chat.connector.roster_down = False
    await chat.deliver(chat.connector.activity(id="2"))
    assert [PUBLIC in question.audience.readers for question in chat.inbox.questions] == [False, True]


async def test_who_is_in_a_conversation_is_asked_for_once_in_ten_minutes(chat: TeamsAdapter) -> None:
    for number in range(3):
        await chat.deliver(chat.connector.activity(id=str(number)))
    assert chat.connector.rosters_told == 1
    chat.clock.advance(601)
    await chat.deliver(chat.connector.activity(id="later"))
    assert chat.connector.rosters_told == 2


async def test_people_of_another_tenant_are_not_heard(chat: TeamsAdapter) -> None:
    elsewhere = {"id": PERSONAL_CHAT, "conversationType": "personal", "tenantId": "another-tenant"}
    assert (await chat.deliver(chat.connector.personal(conversation=elsewhere))).status == 200
    assert chat.inbox.questions == []
    assert chat.references.stored == {}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"text": f"{MENTION}&nbsp;is 3 &lt; 4?"}, "is 3 < 4?"),
        ({"text": f"ask <at>Mateo</at> or {MENTION}?"}, "ask Mateo or  ?"),
        ({"text": f"<p>{MENTION} why <b>red</b>?</p><p>twice</p>", "textFormat": "xml"}, "why red?\ntwice"),
        ({"text": f"{MENTION}<script>alert(1)</script> hi<br>there", "textFormat": "xml"}, "hi\nthere"),
        ({"text": f"{MENTION} if a < b then", "textFormat": "plain"}, "if a < b then"),
        ({"text": f"{MENTION} tri\x00age\x1b[31m"}, "triage[31m"),
        ({"text": MENTION}, ""),
        ({"text": None, "entities": [{"type": "mention", "mentioned": {"id": BOT}}]}, ""),
    ],
)
async def test_the_text_is_what_was_said_to_the_bot(chat: TeamsAdapter, fields: dict[str, Any], text: str) -> None:
    await chat.deliver(chat.connector.activity(**fields))
    assert [question.text for question in chat.inbox.questions] == [text]


async def test_what_a_message_quotes_is_its_context(chat: TeamsAdapter) -> None:
    quote = (
        '<blockquote itemscope="" itemtype="http://schema.skype.com/Reply" itemid="1700000000000">'
        '<strong itemprop="mri" itemid="8:orgid:mateo">Mateo</strong><span itemprop="time" itemid="1"></span>'
        '<p itemprop="preview">p99 of the till is&nbsp;4 s</p></blockquote><p>how do we fix this?</p>'
    )
    attachments = [{"contentType": "text/html", "content": quote}, {"contentType": "image/png"}, None, "text"]
    await chat.deliver(chat.connector.activity(attachments=attachments))
    [question] = chat.inbox.questions
    assert question.history == (Turn(Speaker.PERSON, "p99 of the till is 4 s"),)


async def test_a_channel_message_that_does_not_mention_the_bot_is_left_alone(chat: TeamsAdapter) -> None:
    other = {"type": "mention", "mentioned": {"id": "29:mateo", "name": "Mateo"}, "text": "<at>Mateo</at>"}
    for entities in ([], [other], ["mention"], [{"type": "mention", "mentioned": None}]):
        assert (await chat.deliver(chat.connector.activity(entities=entities))).status == 200
    assert chat.inbox.questions == []


async def test_bots_are_not_answered(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(**{"from": {"id": "28:other", "role": "bot"}}))
    assert chat.inbox.questions == []


async def test_a_message_that_is_delivered_twice_is_asked_once(chat: TeamsAdapter) -> None:
    for _ in range(3):
        assert (await chat.deliver(chat.connector.activity())).status == 200
    assert len(chat.inbox.questions) == 1


@pytest.mark.parametrize(
    "kind", ["typing", "messageReaction", "conversationUpdate", "endOfConversation", "event", "trace"]
)
async def test_everything_else_is_acknowledged(chat: TeamsAdapter, kind: str) -> None:
    assert (await chat.deliver(chat.connector.activity(type=kind))).status == 200
    assert chat.inbox.questions == []


async def test_other_channels_of_the_bot_service_are_ignored(chat: TeamsAdapter) -> None:
    chat.connector.endorsements = ["msteams", "webchat"]
    assert (await chat.deliver(chat.connector.activity(channelId="webchat"))).status == 200
    assert chat.inbox.questions == []


# --- buttons ---------------------------------------------------------------------------------------------------------


async def test_a_pressed_button_becomes_feedback_and_is_thanked_for(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity())
    await chat.messenger.post(THREAD, ANSWER, "answer")
    pressed = button(chat.connector.sent[0].card, "Wrong")
    answered = await chat.deliver(card_action(chat.connector, pressed["data"], id="f:42"))
    assert answered.status == 200
    assert '"statusCode": 200' in answered.text
    assert '"type": "application/vnd.microsoft.activity.message"' in answered.text
    [feedback] = chat.inbox.feedback
    assert (feedback.verdict, feedback.subject, feedback.person) == (Verdict.WRONG, "answer-1", ASHA)
    assert feedback.place == THREAD
    assert feedback.id == f"teams:{THREAD.channel};messageid={THREAD.thread}:f:42"


async def test_an_older_client_sends_the_button_as_a_message(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity())
    await chat.messenger.post(THREAD, IncidentMessage(explained_incident()), "incident")
    fallback = button(chat.connector.sent[0].card, "Take it")["fallback"]
    assert fallback["type"] == "Action.Submit"
    await chat.deliver(chat.connector.activity(id="f:43", text=None, entities=[], value=fallback["data"]))
    assert [(feedback.verdict, feedback.subject) for feedback in chat.inbox.feedback] == [
        (Verdict.TAKE_IT, "incident-1")
    ]
    assert len(chat.inbox.questions) == 1


@pytest.mark.parametrize(
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


# --- posts -----------------------------------------------------------------------------------------------------------


async def test_an_answer_is_posted_into_the_thread(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    reference = await teams.messenger.post(teams.inbox.questions[0].place, ANSWER, "answer")
    [sent] = teams.connector.sent
    assert sent.conversation == f"{CHANNEL};messageid=1700000000001"
    assert sent.activity["type"] == "message"
    assert sent.activity["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert sent.activity["summary"].startswith("Run `slipway rollback SERVICE`")
    assert sent.authorization == "Bearer token-1"
    assert reference == MessageReference(THREAD, sent.id)


async def test_an_incident_begins_a_thread_and_its_details_follow_in_it(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(type="installationUpdate", action="add", text=None))
    root = await teams.messenger.post(Place(Platform.TEAMS, CHANNEL), IncidentMessage(incident()), "incident")
    await teams.messenger.edit(root, IncidentMessage(explained_incident()))
    thread = Place(Platform.TEAMS, CHANNEL, root.message_id)
    await teams.messenger.post(thread, IncidentDetails(explained_incident()), "details")
    posted, details = teams.connector.sent
    [edited] = teams.connector.updated
    assert posted.conversation == CHANNEL
    assert details.conversation == f"{CHANNEL};messageid={root.message_id}"
    assert (edited.conversation, edited.id) == (f"{CHANNEL};messageid={root.message_id}", root.message_id)
    assert "Payments" in str(edited.card)
    assert "Payments" not in str(posted.card)


@pytest.mark.parametrize(("conversation", "kind"), [(PERSONAL_CHAT, "personal"), (GROUP_CHAT, "groupChat")])
async def test_a_chat_has_no_threads(teams: TeamsAdapter, conversation: str, kind: str) -> None:
    here = {"id": conversation, "conversationType": kind, "tenantId": TENANT}
    await teams.deliver(teams.connector.activity(conversation=here))
    place = teams.inbox.questions[0].place
    reference = await teams.messenger.post(place, ANSWER, "answer")
    await teams.messenger.post(Place(Platform.TEAMS, conversation, reference.message_id), ANSWER, "more")
    await teams.messenger.edit(reference, ANSWER)
    shown = [*teams.connector.sent, *teams.connector.updated]
    assert [message.conversation for message in shown] == [conversation] * 3


async def test_where_a_personal_chat_has_threads_each_answer_stands_where_it_was_asked(teams: TeamsAdapter) -> None:
    asked_in = [PERSONAL_CHAT, f"{PERSONAL_CHAT};messageid=1700000000001"]
    for conversation in asked_in:
        here = {"id": conversation, "conversationType": "personal", "tenantId": TENANT}
        await teams.deliver(teams.connector.personal(conversation=here))
    for question in teams.inbox.questions:
        await teams.messenger.edit(await teams.messenger.post(question.place, ANSWER, question.id), ANSWER)
    assert [sent.conversation for sent in teams.connector.sent] == asked_in
    assert [updated.conversation for updated in teams.connector.updated] == asked_in


async def test_a_channel_that_never_spoke_is_reached_the_way_its_tenant_was(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.personal())
    place = Place(Platform.TEAMS, "19:never-heard-of@thread.tacv2")
    root = await teams.messenger.post(place, IncidentMessage(incident()), "incident")
    await teams.messenger.post(Place(Platform.TEAMS, place.channel, root.message_id), ANSWER, "details")
    assert [sent.conversation for sent in teams.connector.sent] == [
        place.channel,
        f"{place.channel};messageid={root.message_id}",
    ]


async def test_before_anybody_spoke_a_post_says_what_to_do(teams: TeamsAdapter) -> None:
    with pytest.raises(ChatUnavailable, match="add the app to its team"):
        await teams.messenger.post(THREAD, ANSWER, "answer")


async def test_a_stored_address_that_is_not_teams_is_never_called(teams: TeamsAdapter) -> None:
    elsewhere = {"service_url": "https://attacker.example/", "tenant_id": TENANT, "threaded": True}
    await teams.references.put(CHANNEL, elsewhere)
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")


async def test_what_is_known_already_is_not_written_again(chat: TeamsAdapter) -> None:
    for number in range(5):
        await chat.deliver(chat.connector.activity(id=str(number)))
    assert chat.references.writes == len(chat.references.stored)


async def test_a_very_long_conversation_id_is_sent_whole(teams: TeamsAdapter) -> None:
    conversation = {"id": "a:" + "x" * 300, "conversationType": "personal", "tenantId": TENANT}
    await teams.deliver(teams.connector.personal(conversation=conversation))
    await teams.messenger.post(teams.inbox.questions[0].place, ANSWER, "answer")
    assert teams.connector.sent[0].conversation == conversation["id"]


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "error", "retry_after"),
    [
        (Failure(429, {"Retry-After": "7"}), ChatUnavailable, 7.0),
        (Failure(429, {"Retry-After": "soon"}), ChatUnavailable, None),
        (Failure(429), ChatUnavailable, None),
        (Failure(412), ChatUnavailable, None),
        (Failure(500), ChatUnavailable, None),
        (Failure(502, body="<html>Bad gateway</html>", content_type="text/html"), ChatUnavailable, None),
        (Failure(503, {"Retry-After": "60"}), ChatUnavailable, 60.0),
        (Failure(503, body="{"), ChatUnavailable, None),
        (Failure(504), ChatUnavailable, None),
        (Failure(404, body='{"error": {"code": "ConversationNotFound", "message": "gone"}}'), MessageNotFound, None),
        (Failure(403, body='{"error": {"code": "BotNotInConversationRoster"}}'), ConfigurationError, None),
        (Failure(400, body='{"error": {"code": "BadSyntax", "message": "no"}}'), PlumblineError, None),
    ],
)
@pytest.mark.parametrize("editing", [False, True])
async def test_a_refusal_is_translated_and_not_repeated_by_the_sdk(
    teams: TeamsAdapter, failure: Failure, error: type[Exception], retry_after: float | None, editing: bool
) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [failure]
    edit, post = teams.messenger.edit(MessageReference(THREAD, "1"), ANSWER), teams.messenger.post(THREAD, ANSWER, "a")
    (post if editing else edit).close()
    with pytest.raises(error) as raised:
        await (edit if editing else post)
    assert getattr(raised.value, "retry_after", None) == retry_after
    assert teams.connector.failures == []
    assert teams.connector.sent == teams.connector.updated == []


async def test_a_service_that_is_not_there_is_unavailable(teams: TeamsAdapter) -> None:
    nowhere = {"service_url": "http://127.0.0.1:9/teams/", "tenant_id": TENANT, "threaded": True}
    await teams.references.put(CHANNEL, nowhere)
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")


async def test_nothing_is_ever_said_about_an_exception_in_the_chat(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [Failure(500)]
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")
    assert teams.connector.sent == []


async def test_the_access_token_is_fetched_once(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    await asyncio.gather(*(teams.messenger.post(THREAD, ANSWER, f"answer-{number}") for number in range(5)))
    assert teams.connector.tokens_issued == 1
    assert len(teams.connector.sent) == 5


@pytest.mark.parametrize(
    ("token_answer", "error"),
    [
        ((401, {"error": "invalid_client"}), ConfigurationError),
        ((400, {"error": "unauthorized_client"}), ConfigurationError),
        ((503, {}), ChatUnavailable),
        ((429, {}), ChatUnavailable),
        ((200, {}), ChatUnavailable),
        ((200, {"access_token": "x", "expires_in": "never"}), ChatUnavailable),
    ],
)
async def test_without_an_access_token_nothing_is_sent(
    teams: TeamsAdapter, token_answer: tuple[int, dict[str, Any]], error: type[Exception]
) -> None:
    await teams.deliver(teams.connector.activity(type="typing"))
    teams.connector.token_answer = token_answer
    with pytest.raises(error):
        await teams.messenger.post(THREAD, ANSWER, "answer")
    assert teams.connector.sent == []


async def test_a_wrong_password_is_a_matter_of_the_configuration(teams: TeamsAdapter) -> None:
    transport = open_transport("agents", AccessToken(APP_ID, "wrong", frozenset({TENANT}), teams.connector.cloud))
    await teams.deliver(teams.connector.activity())
    teams.messenger._transport = transport
    with pytest.raises(ConfigurationError, match="TEAMS_APP_PASSWORD"):
        await teams.messenger.post(THREAD, ANSWER, "answer")


# --- a post is made once, as far as can be ---------------------------------------------------------------------------


async def test_a_post_whose_caller_was_cancelled_is_found(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    posting = asyncio.create_task(teams.messenger.post(THREAD, ANSWER, "answer"))
    await asyncio.sleep(0)
    posting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await posting
    assert await teams.messenger.find(THREAD, "answer") == MessageReference(THREAD, teams.connector.sent[0].id)
    assert len(teams.connector.sent) == 1


async def test_a_post_that_failed_or_was_never_made_is_not_found(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [Failure(503)]
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")
    assert await teams.messenger.find(THREAD, "answer") is None
    assert await teams.messenger.find(THREAD, "another") is None
