"""What is said to Plumbline in Teams becomes a question, of whom and for whom it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.teams.history import DOWNLOAD
from core.incidents.incident_questions import Command, CommandName, parse_command
from core.model.conversation import PUBLIC, Place, Platform, SharedFile, Speaker, Turn
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import BOT, CHANNEL, GROUP_CHAT, MENTION, PERSONAL_CHAT, TENANT
from tests.scenario.teams import ASHA, THREAD, chat

__all__ = ["chat"]  # the fixture


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


async def test_a_text_file_in_a_personal_chat_comes_with_the_question(chat: TeamsAdapter) -> None:
    url = "https://marigold-my.sharepoint.com/download?tempauth=x"
    file = {"contentType": DOWNLOAD, "name": "build.log", "content": {"downloadUrl": url, "fileType": "log"}}
    await chat.deliver(chat.connector.personal() | {"attachments": [file]})
    assert chat.inbox.questions[0].files == (SharedFile("build.log", url),)


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


async def test_where_somebody_of_another_organisation_is_a_member_nothing_public_is_shown(chat: TeamsAdapter) -> None:
    chat.connector.guests.add(CHANNEL)
    chat.connector.guest = {"userRole": "user", "tenantId": "another-tenant"}
    await chat.deliver(chat.connector.activity())
    assert PUBLIC not in chat.inbox.questions[0].audience.readers


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


BLOCKQUOTE = (
    '<blockquote itemscope itemtype="http://schema.skype.com/Reply" itemid="7"><strong itemprop="mri">Dana</strong>'
    '<p itemprop="preview">p99 of the till is 4 s</p></blockquote>'
)
QUOTE = {"messageId": "1700000000000", "senderName": "Dana", "preview": "p99 of the till is 4 s"}
QUOTED = 'quoted messageId="1700000000000"'


@pytest.mark.parametrize(
    "fields",
    [
        {"text": f"<{QUOTED}/> {MENTION} who owns this?", "quotes": [{"type": "quotedReply", "quotedReply": QUOTE}]},
        {
            "text": f"<{QUOTED}></quoted>{MENTION} who owns this?",
            "quotes": [{"quotedReply": QUOTE}, {"quotedReply": 7}],
        },
        {"text": f"{BLOCKQUOTE}<p>{MENTION} who owns this?</p>", "textFormat": "xml"},
        {
            "text": f"<{QUOTED}/><p>{MENTION} who owns this?</p>",
            "textFormat": "xml",
            "quotes": [{"type": "quotedReply", "quotedReply": QUOTE}],
            "attachments": [{"contentType": "text/html", "content": f"{BLOCKQUOTE}<p>who owns this?</p>"}],
        },
        {
            "text": f"{MENTION} who owns this?",
            "attachments": [
                {"contentType": "messageReference", "content": '{"messagePreview": "p99 of the till is 4 s"}'}
            ],
        },
    ],
)
async def test_what_a_question_quotes_is_context_and_the_question_is_the_question(
    chat: TeamsAdapter, fields: dict[str, Any]
) -> None:
    mention = chat.connector.activity()["entities"]
    quotes = fields.pop("quotes", [])
    await chat.deliver(chat.connector.activity(**fields, entities=[*mention, *quotes]))
    [question] = chat.inbox.questions
    assert question.text == "who owns this?"
    assert question.history == (Turn(Speaker.PERSON, "p99 of the till is 4 s"),)


async def test_a_quoted_message_that_was_deleted_is_no_context(chat: TeamsAdapter) -> None:
    entity = {"type": "quotedReply", "quotedReply": QUOTE | {"isReplyDeleted": True}}
    mention = chat.connector.activity()["entities"]
    await chat.deliver(
        chat.connector.activity(text=f"<{QUOTED}/> {MENTION} who owns this?", entities=[*mention, entity])
    )
    [question] = chat.inbox.questions
    assert (question.text, question.history) == ("who owns this?", ())


CARDS: list[dict[str, Any]] = [
    {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "content": {"type": "AdaptiveCard", "body": [{"type": "TextBlock", "text": "quiet 00:00-23:59"}]},
    },
    {"contentType": "application/vnd.microsoft.card.hero", "content": {"title": "quiet", "text": "00:00-23:59"}},
    {"contentType": "application/vnd.microsoft.card.thumbnail", "content": '{"title": "quiet", "text": "00:00-23:59"}'},
    {"contentType": "forwardedMessageReference", "content": '{"originalMessageContent": "<p>quiet 00:00-23:59</p>"}'},
    {
        "contentType": "text/html",
        "content": '<blockquote itemtype="http://schema.skype.com/Forward"><p>quiet 00:00-23:59</p></blockquote>',
    },
]


@pytest.mark.parametrize("attached", CARDS)
async def test_a_card_or_a_forwarded_message_is_the_context_and_no_command(
    chat: TeamsAdapter, attached: dict[str, Any]
) -> None:
    await chat.deliver(chat.connector.activity(attachments=[attached]))
    await chat.deliver(chat.connector.activity(id="1700000000099", text=MENTION, attachments=[attached]))
    with_words, without = chat.inbox.questions
    assert with_words.history == (Turn(Speaker.PERSON, "quiet 00:00-23:59"),)
    assert parse_command(without.text) == Command(CommandName.ASK, "quiet 00:00-23:59")


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
