"""The thread of a mention in Teams, as Microsoft Graph shows it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.microsoft import GraphMessage
from adapters.teams import history
from core.model.conversation import Speaker, Turn
from core.model.messages import Notice
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import APP_ID, CHANNEL, GROUP_CHAT
from tests.scenario.teams_history import CHAT, ROOT, THREAD, asked_of_graph, conversation_of, teams

__all__ = ["teams"]  # the fixture


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
    await teams.deliver(teams.connector.activity(conversation=conversation_of(GROUP_CHAT, "groupChat")))
    teams.connector.graph.post(GROUP_CHAT, ROOT, "<p>the bonus of Ada is 3</p>")
    assert await teams.threads.earlier(CHAT, teams.clock.now(), 20) == ()
    assert asked_of_graph(teams) == []


async def test_a_thread_in_a_chat_does_not_show_the_rest_of_the_chat(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(conversation=conversation_of(GROUP_CHAT, "groupChat")))
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

    def text_of(message: GraphMessage, addressed: str = "") -> str:
        made_in.add(threading.get_ident())
        return message.id

    monkeypatch.setattr(history, "text_of", text_of)
    _say(teams, 0, "<p>the till is slow</p>")
    assert len(await teams.threads.earlier(THREAD, teams.clock.now(), 20)) == 1
    assert made_in
    assert threading.get_ident() not in made_in
