"""What Microsoft Graph shows of a conversation in Teams: our own posts after a crash, and the thread of a mention."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters import rest
from adapters.microsoft_graph.messages import ChatMessage
from adapters.teams import history, posted, threads
from adapters.teams.elements import Card
from adapters.teams.intents import marked
from adapters.teams.posted import LOOKED_BACK, PATIENCE
from core import samples as messages
from core.conversation import MessageReference, Place, Platform, Speaker, Turn
from core.errors import ChatUnavailable
from core.messages import Notice
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import (
    APP_ID,
    CHANNEL,
    GROUP,
    GROUP_CHAT,
    PERSONAL_CHAT,
    TEAM,
    TENANT,
    Failure,
)

CHANNEL_PLACE = Place(Platform.TEAMS, CHANNEL, workspace=TENANT)
ROOT = "1700000000001"
THREAD = replace(CHANNEL_PLACE, thread=ROOT)
CHAT = Place(Platform.TEAMS, GROUP_CHAT, GROUP_CHAT, TENANT)
HELLO = Notice("hello")


@pytest.fixture
async def teams() -> AsyncIterator[TeamsAdapter]:
    """An app that was added to a team, whose owner consented."""
    async with open_teams("agents") as teams:
        teams.connector.graph.consented = True
        added = {"type": "conversationUpdate", "membersAdded": [{"id": f"28:{APP_ID}"}]}
        await teams.deliver(teams.connector.activity(**added, conversation=_conversation(TEAM)))
        yield teams


def _conversation(id_: str, kind: str = "channel") -> dict[str, Any]:
    return {"id": id_, "conversationType": kind, "tenantId": TENANT}


async def _lost(teams: TeamsAdapter, place: Place = CHANNEL_PLACE, intent: str = "intent") -> MessageReference:
    """A post that Teams took although it answered that it did not."""
    teams.connector.failures = [Failure(504, taken=True)]
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(place, HELLO, intent)
    return MessageReference(place, teams.connector.sent[-1].id)


def _asked(teams: TeamsAdapter) -> list[str]:
    """What Graph was asked for, without the query."""
    return [request.partition("?")[0] for request in teams.connector.graph.refusals.requests]


# --- a post is found again -------------------------------------------------------------------------------------------


async def test_a_post_whose_answer_was_lost_is_found_although_nobody_ever_spoke_in_that_channel(
    teams: TeamsAdapter,
) -> None:
    reference = await _lost(teams)
    assert CHANNEL not in teams.references.stored, "the team that has it has to be asked for"
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference
    assert _asked(teams) == [f"/v1.0/teams/{GROUP}/channels/{CHANNEL}/messages"]


async def test_a_reply_is_looked_for_among_the_replies_of_its_thread(teams: TeamsAdapter) -> None:
    teams.connector.graph.post(CHANNEL, ROOT, "<p>the till is slow</p>")
    reference = await _lost(teams, THREAD)
    assert await teams.messenger.find(THREAD, "intent") == reference
    assert _asked(teams) == [f"/v1.0/teams/{GROUP}/channels/{CHANNEL}/messages/{ROOT}/replies"]


async def test_in_a_group_chat_a_post_is_found_too(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(conversation=_conversation(GROUP_CHAT, "groupChat")))
    reference = await _lost(teams, CHAT)
    await teams.messenger.post(CHAT, HELLO, "another")
    assert await teams.messenger.find(CHAT, "intent") == reference


async def test_in_a_personal_chat_graph_is_not_asked(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.personal())
    place = Place(Platform.TEAMS, PERSONAL_CHAT, PERSONAL_CHAT, TENANT)
    assert await teams.messenger.find(place, "intent") is None
    assert _asked(teams) == []


async def test_the_same_card_from_somebody_else_is_not_taken_for_ours(teams: TeamsAdapter) -> None:
    reference = await _lost(teams)
    copied = dict(teams.connector.graph.messages[CHANNEL][reference.message_id])
    assert copied["attachments"]
    teams.connector.graph.delete(CHANNEL, reference.message_id)
    another = {"application": {"id": "another-app", "displayName": "Plumbline"}, "user": None}
    fields: dict[str, Any] = {"attachments": copied["attachments"], "from": another}
    teams.connector.graph.post(CHANNEL, "1799999999999", "", createdDateTime=graph_time(teams.clock.now()), **fields)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_a_message_of_ours_that_quotes_the_id_of_another_one_is_not_taken_for_it(teams: TeamsAdapter) -> None:
    card = marked(Card({"body": [{"type": "TextBlock", "text": "hello"}]}, ""), "intent")
    (element,) = card.content["body"]
    for number, quoted in enumerate((element["id"], json.dumps(element))):
        await teams.messenger.post(CHANNEL_PLACE, Notice(f"You asked: {quoted}"), f"another {number}")
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_what_cannot_be_understood_does_not_end_the_search(teams: TeamsAdapter) -> None:
    teams.connector.graph.page_size = 1
    reference = await _lost(teams)
    teams.connector.graph.post(CHANNEL, "1800000000001", "<p>hm</p>", createdDateTime="soon")
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_post_is_found_on_a_later_page_but_not_for_ever(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_PAGES", 3)
    teams.connector.graph.page_size = 2
    reference = await _lost(teams)
    now = graph_time(teams.clock.now())
    for number in range(5):
        teams.connector.graph.post(CHANNEL, f"180000000000{number}", "<p>hm</p>", createdDateTime=now)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference
    teams.connector.graph.post(CHANNEL, "1800000000009", "<p>hm</p>", createdDateTime=now)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_a_page_that_is_too_old_ends_the_search(teams: TeamsAdapter) -> None:
    teams.connector.graph.page_size = 2
    long_ago = graph_time(teams.clock.now() - LOOKED_BACK - timedelta(hours=1))
    for number in range(6):
        teams.connector.graph.post(CHANNEL, f"160000000000{number}", "<p>hm</p>", createdDateTime=long_ago)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
    assert len(_asked(teams)) == 1


@pytest.mark.parametrize("name", messages.SAMPLES)
async def test_every_message_carries_its_intent(teams: TeamsAdapter, name: str) -> None:
    reference = await teams.messenger.post(CHANNEL_PLACE, messages.SAMPLES[name], name)
    assert await teams.new_messenger().find(CHANNEL_PLACE, name) == reference


# --- Graph says no, or nothing ---------------------------------------------------------------------------------------


async def test_without_consent_a_post_cannot_be_found_and_the_log_says_what_to_do(
    teams: TeamsAdapter, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    teams.connector.graph.consented = False
    await _lost(teams)
    for _ in range(3):
        assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
    assert len(_asked(teams)) == 1, "it is not asked again at once"
    said = caplog.text + capsys.readouterr().out
    assert "ChannelMessage.Read.Group" in said
    assert "deploy/teams" in said


async def test_who_is_refused_again_and_again_does_not_fill_the_memory(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams.connector.graph.consented = False
    depths: list[int] = []

    def log(*_: object, **__: object) -> None:
        depths.append(len(list(traceback.walk_tb(sys.exc_info()[2]))))

    monkeypatch.setattr(posted.log, "info", log)
    for _ in range(5):
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    assert depths[1] == depths[-1], "an error that is raised again holds whoever met it before"


async def test_consent_that_is_given_later_counts(teams: TeamsAdapter) -> None:
    teams.connector.graph.consented = False
    reference = await _lost(teams)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
    teams.connector.graph.consented = True
    teams.clock.advance(history.CLOSED_FOR.total_seconds())
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_channel_of_a_team_that_is_not_known_is_not_asked_for(teams: TeamsAdapter) -> None:
    elsewhere = replace(CHANNEL_PLACE, channel="19:elsewhere@thread.tacv2")
    assert await teams.messenger.find(elsewhere, "intent") is None
    assert _asked(teams) == []


async def test_a_team_that_the_app_was_removed_from_is_not_asked_for(teams: TeamsAdapter) -> None:
    reference = await _lost(teams)
    teams.connector.team_channels.clear()
    assert await teams.messenger.find(reference.place, "intent") is None
    assert _asked(teams) == []


@pytest.mark.parametrize("headers", [{"Retry-After": "0.1"}, {}])
async def test_a_request_that_is_throttled_for_a_moment_is_made_again(
    teams: TeamsAdapter, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "FIRST_PAUSE", 0.1)
    reference = await _lost(teams)
    teams.connector.graph.refusals.refuse(429, headers)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_request_that_is_throttled_for_long_says_how_long(teams: TeamsAdapter) -> None:
    reference = await _lost(teams)
    teams.connector.graph.refusals.refuse(429, {"Retry-After": "17"})
    with pytest.raises(ChatUnavailable) as raised:
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    assert raised.value.retry_after == 17
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_post_does_not_wait_as_long_as_graph_wants_to_be_left_alone(teams: TeamsAdapter) -> None:
    reference = await _lost(teams)
    teams.connector.graph.refusals.refuse(429, {"Retry-After": "3600"})
    with pytest.raises(ChatUnavailable) as raised:
        await teams.messenger.find(reference.place, "intent")
    assert raised.value.retry_after == PATIENCE.total_seconds()


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_while_graph_is_down_nothing_is_posted_twice_but_nothing_waits_for_ever(
    teams: TeamsAdapter, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "ATTEMPTS", 1)
    await _lost(teams)
    teams.connector.graph.refusals.refuse(status, times=99)
    for _ in range(2):
        with pytest.raises(ChatUnavailable):
            await teams.messenger.find(CHANNEL_PLACE, "intent")
    teams.clock.advance(PATIENCE.total_seconds())
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_of_a_storm_of_posts_in_doubt_none_waits_for_ever(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "ATTEMPTS", 1)
    monkeypatch.setattr(posted, "MAX_DOUBTS", 3)
    teams.connector.graph.refusals.refuse(503, times=99)
    waiting = [f"intent {number}" for number in range(8)]
    for _ in range(2):
        for intent in tuple(waiting):
            with suppress(ChatUnavailable):
                assert await teams.messenger.find(CHANNEL_PLACE, intent) is None
                waiting.remove(intent)
        teams.clock.advance(PATIENCE.total_seconds())
    assert waiting == []


async def test_a_graph_that_hangs_is_one_that_is_down(teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posted, "DEADLINE", 0.2)
    monkeypatch.setattr(threads, "DEADLINE", 0.2)
    hanging = asyncio.Event()
    teams.connector.graph.refusals.hold(hanging)
    with pytest.raises(ChatUnavailable):
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    with pytest.raises(ChatUnavailable):
        await teams.threads.earlier(THREAD, teams.clock.now(), 9)
    hanging.set()


async def test_nobody_waits_again_and_again_for_a_graph_that_hangs(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "DEADLINE", 0.2)
    hanging = asyncio.Event()
    teams.connector.graph.refusals.hold(hanging)
    for _ in range(3):
        with pytest.raises(ChatUnavailable):
            await teams.threads.earlier(THREAD, teams.clock.now(), 9)
    assert len(_asked(teams)) == 1
    hanging.set()
    monkeypatch.undo()
    teams.clock.advance(threads.SILENCE.total_seconds())
    assert await teams.threads.earlier(THREAD, teams.clock.now(), 9) == ()
    assert len(_asked(teams)) == 2


async def test_a_connector_service_that_does_not_tell_the_team_is_unavailable(teams: TeamsAdapter) -> None:
    reference = await _lost(teams)
    teams.connector.teams_down = True
    with pytest.raises(ChatUnavailable):
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    teams.connector.teams_down = False
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_token_that_expired_is_fetched_anew(teams: TeamsAdapter) -> None:
    reference = await _lost(teams)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference
    teams.connector.graph.expire_tokens()
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_token_that_expires_under_several_requests_is_no_missing_consent(teams: TeamsAdapter) -> None:
    posts = [await _lost(teams, intent=f"intent {number}") for number in range(4)]
    assert await teams.messenger.find(CHANNEL_PLACE, "other") is None
    teams.connector.graph.expire_tokens()
    finding = [teams.messenger.find(CHANNEL_PLACE, f"intent {number}") for number in range(4)]
    assert await asyncio.gather(*finding) == posts


async def test_a_tenant_that_gives_the_app_no_token_for_graph_is_one_without_consent(teams: TeamsAdapter) -> None:
    await _lost(teams)
    assert await teams.messenger.find(CHANNEL_PLACE, "other") is None
    teams.connector.graph.expire_tokens()
    teams.connector.token_answer = (401, {"error": "invalid_client"})
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


# --- the thread of a mention -----------------------------------------------------------------------------------------


def _say(teams: TeamsAdapter, number: int, content: str, **fields: Any) -> None:
    at = teams.clock.now() - timedelta(hours=1) + timedelta(minutes=number)
    usual = {"reply_to": ROOT if number else None, "createdDateTime": graph_time(at)}
    teams.connector.graph.post(CHANNEL, ROOT if not number else f"{ROOT}{number}", content, **(usual | fields))


async def test_the_thread_of_a_mention_is_what_people_said_before_it(teams: TeamsAdapter) -> None:
    at = int(teams.clock.now().timestamp() * 1000)
    _say(teams, 0, "<p>The till is <strong>slow</strong>&nbsp;again</p>", subject="Checkout")
    _say(teams, 1, '<p><at id="0">Hana</at>, was it <code>pool_size</code>?</p>')
    _say(teams, 2, "", eventDetail={"@odata.type": "#microsoft.graph.membersAddedEventMessageDetail"})
    mention = {"id": 0, "mentionText": "Plumbline", "mentioned": {"application": {"id": APP_ID}, "user": None}}
    _say(teams, 60, '<p><at id="0">Plumbline</at> why?</p>', mentions=[mention])
    await teams.deliver(teams.connector.activity(id=str(at)))
    question = teams.inbox.questions[-1]
    assert await teams.threads.earlier(question.place, question.asked_at, 20) == (
        Turn(Speaker.PERSON, "**Checkout**\n\nThe till is **slow** again"),
        Turn(Speaker.PERSON, "@Hana, was it `pool_size`?"),
    )


async def test_the_name_of_the_bot_is_no_part_of_what_was_asked_before(teams: TeamsAdapter) -> None:
    mention = {"id": 0, "mentionText": "Plumbline", "mentioned": {"application": {"id": APP_ID}, "user": None}}
    _say(teams, 0, '<p><at id="0">Plumbline</at>&nbsp;why is the till slow?</p>', mentions=[mention])
    assert await teams.threads.earlier(THREAD, teams.clock.now(), 20) == (
        Turn(Speaker.PERSON, "why is the till slow?"),
    )


async def test_the_cards_of_this_and_of_other_applications_are_read_as_text(teams: TeamsAdapter) -> None:
    card = """{"type": "AdaptiveCard", "version": "1.4", "body": [
        {"type": "TextBlock", "text": "Fired: till p99"},
        {"type": "ColumnSet", "columns": [{"type": "Column", "items": [
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": "above "}, "2 s"]}]}]},
        {"type": "FactSet", "facts": [{"title": "Severity", "value": "Sev1"}]},
        {"type": "TextBlock", "text": "unseen", "isVisible": false},
        {"type": "Input.Text", "id": "x", "value": "typed"}], "actions": [{"type": "Action.Submit", "title": "Close"}]}"""
    monitor: dict[str, Any] = {"from": {"application": {"id": "monitor", "displayName": "Monitor"}, "user": None}}
    kind = "application/vnd.microsoft.card.adaptive"
    attached = [{"id": "a", "contentType": kind, "content": card, "name": None}, {"id": "b", "contentType": kind}]
    _say(teams, 0, '<attachment id="a"></attachment>', attachments=attached, **monitor)
    reply = await teams.messenger.post(THREAD, Notice("I am looking into it."), "reply")
    teams.clock.advance(60)
    alert, own = await teams.threads.earlier(THREAD, teams.clock.now(), 20)
    assert alert == Turn(Speaker.PERSON, "Fired: till p99\nabove 2 s\nSeverity Sev1")
    assert own.speaker is Speaker.PLUMBLINE
    assert "I am looking into it." in own.text
    assert reply.message_id in teams.connector.graph.messages[CHANNEL]


async def test_without_consent_there_is_no_context_and_no_error(teams: TeamsAdapter) -> None:
    _say(teams, 0, "<p>the till is slow</p>")
    teams.connector.graph.consented = False
    assert await teams.threads.earlier(THREAD, teams.clock.now(), 20) == ()


async def test_a_chat_is_no_thread_since_not_everybody_may_see_what_was_said_before(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(conversation=_conversation(GROUP_CHAT, "groupChat")))
    teams.connector.graph.post(GROUP_CHAT, ROOT, "<p>the bonus of Ada is 3</p>")
    assert await teams.threads.earlier(CHAT, teams.clock.now(), 20) == ()
    assert _asked(teams) == []


async def test_a_thread_in_a_chat_does_not_show_the_rest_of_the_chat(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(conversation=_conversation(GROUP_CHAT, "groupChat")))
    teams.connector.graph.post(GROUP_CHAT, ROOT, "<p>the bonus of Ada is 3</p>")
    assert await teams.threads.earlier(replace(CHAT, thread=ROOT), teams.clock.now(), 20) == ()


@pytest.mark.parametrize("tag", ["b", "div", "table"])
async def test_a_message_that_is_little_else_but_tags_is_read_as_far_as_anybody_reads(
    teams: TeamsAdapter, tag: str
) -> None:
    _say(teams, 0, f"the till is slow {f'<{tag}>' * 7_000} unread")
    (turn,) = await teams.threads.earlier(THREAD, teams.clock.now(), 20)
    assert turn.text == "the till is slow"


async def test_messages_are_made_text_of_while_the_bot_goes_on(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in: set[int] = set()

    def text_of(message: ChatMessage, addressed: str = "") -> str:
        made_in.add(threading.get_ident())
        return message.id

    monkeypatch.setattr(threads, "text_of", text_of)
    _say(teams, 0, "<p>the till is slow</p>")
    assert len(await teams.threads.earlier(THREAD, teams.clock.now(), 20)) == 1
    assert made_in
    assert threading.get_ident() not in made_in
