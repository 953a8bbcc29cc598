"""What happens in Teams beside messages: the app comes and goes, people edit, bring back and react, tenants differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.incidents.incident_questions import CommandName, parse_command
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatClosed, ChatUnavailable
from core.model.messages import IncidentMessage
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import BOT, CHANNEL, GROUP_CHAT, PERSONAL_CHAT, TENANT
from tests.samples import incident
from tests.scenario.teams import THREAD, chat

__all__ = ["chat"]  # the fixture

OTHER_TENANT = "9b1d3c55-0f6f-4b2a-8f6c-2d0a5f1f7e21"
SAYS_NOTHING = {"text": None, "entities": []}


def whole_channel(**fields: Any) -> dict[str, Any]:
    """What Teams tells of the channel itself and not of a thread in it."""
    here = {"id": CHANNEL, "conversationType": "channel", "isGroup": True, "tenantId": TENANT}
    return {"conversation": here, **SAYS_NOTHING, **fields}


# --- the app comes and goes ------------------------------------------------------------------------------------------


async def test_where_the_app_is_added_it_greets_once(chat: TeamsAdapter) -> None:
    added = whole_channel(type="installationUpdate", action="add", id="i1")
    told_again = whole_channel(type="conversationUpdate", membersAdded=[{"id": BOT}], id="c1")
    for event in (added, told_again, added | {"id": "i2"}):
        assert (await chat.deliver(chat.connector.activity(**event))).status == 200
    [greeting] = chat.inbox.questions
    assert parse_command(greeting.text).name is CommandName.HELLO
    assert greeting.place == Place(Platform.TEAMS, CHANNEL, CHANNEL, TENANT)


async def test_where_the_app_is_added_again_it_greets_again(chat: TeamsAdapter) -> None:
    times = ("2026-03-14T09:30:00Z", "2026-03-14T09:31:00Z", "2026-03-16T09:30:00Z")
    for action, at in zip(("add", "remove", "add"), times, strict=True):
        event = whole_channel(type="installationUpdate", action=action, timestamp=at, id=at)
        assert (await chat.deliver(chat.connector.activity(**event))).status == 200
    assert [parse_command(each.text).name for each in chat.inbox.questions] == [CommandName.HELLO] * 2


async def test_the_greeting_begins_no_thread_of_an_answer(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(**whole_channel(type="installationUpdate", action="add")))
    await chat.messenger.post(chat.inbox.questions[0].place, IncidentMessage(incident()), "hello")
    assert chat.connector.sent[0].conversation == CHANNEL


@pytest.mark.parametrize(
    "event",
    [
        {"type": "installationUpdate", "action": "add-upgrade"},
        {"type": "conversationUpdate", "membersAdded": [{"id": "29:mateo"}]},
        {"type": "conversationUpdate", "channelData": {"eventType": "channelRenamed"}},
    ],
)
async def test_what_brings_nobody_new_is_not_greeted(chat: TeamsAdapter, event: dict[str, Any]) -> None:
    assert (await chat.deliver(chat.connector.activity(**whole_channel(**event)))).status == 200
    assert chat.inbox.questions == []


@pytest.mark.parametrize(
    "event",
    [
        {"type": "installationUpdate", "action": "remove"},
        {"type": "conversationUpdate", "membersRemoved": [{"id": BOT}]},
    ],
)
async def test_where_the_app_is_removed_it_forgets_the_team(chat: TeamsAdapter, event: dict[str, Any]) -> None:
    team = {"tenant": {"id": TENANT}, "team": {"id": "19:team@thread.tacv2"}}
    await chat.deliver(chat.connector.activity(channelData=team))
    await chat.deliver(chat.connector.personal(id="2"))
    general = {"id": "19:team@thread.tacv2", "conversationType": "channel", "tenantId": TENANT}
    gone = chat.connector.activity(**{**SAYS_NOTHING, "conversation": general, "channelData": team, **event})
    assert (await chat.deliver(gone)).status == 200
    assert {PERSONAL_CHAT} == {key for key in chat.references.stored if not key.startswith(("tenant:", "team:"))}


# --- edits -----------------------------------------------------------------------------------------------------------


def edited(chat: TeamsAdapter, text: str, kind: str = "editMessage", **fields: Any) -> dict[str, Any]:
    told = {"type": "messageUpdate", "timestamp": "2026-03-14T09:31:00Z", "text": text}
    return chat.connector.activity(**{**told, "channelData": {"eventType": kind}, **fields})


async def test_an_edited_question_is_asked_again(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity())
    await chat.deliver(edited(chat, "<at>Plumbline</at> how do I roll back a release?"))
    first, again = chat.inbox.questions
    assert (again.id, again.place) == (first.id, first.place)
    assert again.text == "how do I roll back a release?"
    assert (first.revision, again.revision) == ("", "2026-03-14T09:31:00Z")


async def test_a_message_that_means_somebody_else_after_its_edit_is_no_question_any_more(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity())
    await chat.deliver(edited(chat, "never mind", entities=[]))
    assert len(chat.inbox.questions) == 1
    assert chat.inbox.retracted == [(chat.inbox.questions[0].id, chat.inbox.questions[0].place)]


async def test_a_message_that_never_meant_the_bot_may_do_so_after_its_second_edit(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(**SAYS_NOTHING))
    await chat.deliver(edited(chat, "a slip is mended", entities=[]))
    assert (chat.inbox.questions, chat.inbox.retracted) == ([], [])
    await chat.deliver(edited(chat, "<at>Plumbline</at> how do I roll back a release?"))
    assert [question.text for question in chat.inbox.questions] == ["how do I roll back a release?"]


async def test_a_deleted_question_that_is_brought_back_is_answered_anew(chat: TeamsAdapter) -> None:
    question = "<at>Plumbline</at> how do I roll back a canary?"
    await chat.deliver(chat.connector.activity())
    await chat.deliver(chat.connector.activity(type="messageDelete", channelData={"eventType": "softDeleteMessage"}))
    await chat.deliver(edited(chat, question, "undeleteMessage"))
    first, again = chat.inbox.questions
    assert again.id != first.id  # the first one's answer was taken back for good
    assert again.text == first.text


# --- reactions -------------------------------------------------------------------------------------------------------


async def test_a_reaction_is_feedback_and_taking_it_away_takes_it_back(chat: TeamsAdapter) -> None:
    added = {"type": "messageReaction", "replyToId": "1710", "reactionsAdded": [{"type": "like"}]}
    removed = {"type": "messageReaction", "replyToId": "1710", "reactionsRemoved": [{"type": "like"}]}
    for number, event in enumerate((added, added, removed)):
        await chat.deliver(chat.connector.activity(id=f"r{number // 2}", **SAYS_NOTHING, **event))
    first, second = chat.inbox.reactions
    assert first.message == MessageReference(THREAD, "1710")
    assert (first.approves, first.taken_back) == (True, False)
    assert (second.approves, second.taken_back) == (True, True)
    assert first.person.id == "5c1f-asha"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("heart", True),
        ("1f44d_thumbsup", True),
        ("1f44e_thumbsdown-tone3", False),
        ("angry", False),
        ("laugh", None),
        ("sad", None),
        ("surprised", None),
        ("plusOne", None),
        ("", None),
    ],
)
async def test_only_what_says_yes_or_no_is_feedback(chat: TeamsAdapter, kind: str, says: bool | None) -> None:
    event = {"type": "messageReaction", "replyToId": "1710", "reactionsAdded": [{"type": kind}], **SAYS_NOTHING}
    assert (await chat.deliver(chat.connector.activity(**event))).status == 200
    assert [reaction.approves for reaction in chat.inbox.reactions] == ([] if says is None else [says])


async def test_a_reaction_happened_when_teams_says_so_however_late_it_arrives(chat: TeamsAdapter) -> None:
    event = {"type": "messageReaction", "replyToId": "1710", "reactionsAdded": [{"type": "like"}], **SAYS_NOTHING}
    for number, stamp in enumerate(("2026-01-14T09:30:00.1234567Z", "9999-12-31T23:59:59-23:00", "soon", "2026-01-14")):
        await chat.deliver(chat.connector.activity(**event | {"id": f"r{number}", "timestamp": stamp}))
    first, *others = chat.inbox.reactions
    assert first.at == datetime(2026, 1, 14, 9, 30, 0, 123456, tzinfo=UTC)
    assert len(others) == 3
    assert all(each.at - first.at > timedelta(days=1) for each in others), "when it arrived"


async def test_a_reaction_that_is_exchanged_for_one_that_says_the_same_is_not_taken_back(chat: TeamsAdapter) -> None:
    exchanged = {"reactionsAdded": [{"type": "heart"}], "reactionsRemoved": [{"type": "like"}, {"type": "angry"}]}
    event = {"type": "messageReaction", "replyToId": "1710"} | exchanged
    await chat.deliver(chat.connector.activity(**event, **SAYS_NOTHING))
    assert [(each.approves, each.taken_back) for each in chat.inbox.reactions] == [(True, False), (False, True)]


async def test_a_reaction_to_no_message_is_ignored(chat: TeamsAdapter) -> None:
    event = {"type": "messageReaction", "reactionsAdded": [{"type": "like"}], **SAYS_NOTHING}
    assert (await chat.deliver(chat.connector.activity(**event))).status == 200
    assert chat.inbox.reactions == []


# --- tenants ---------------------------------------------------------------------------------------------------------


def from_tenant(chat: TeamsAdapter, tenant: str, conversation: str, **fields: Any) -> dict[str, Any]:
    here = {"id": conversation, "conversationType": "groupChat", "isGroup": True, "tenantId": tenant}
    return chat.connector.activity(conversation=here, channelData={"tenant": {"id": tenant}}, **fields)


@pytest.mark.parametrize(
    ("allowed", "heard"),
    [
        (frozenset[str](), 3),
        (frozenset({TENANT.upper()}), 1),
        (frozenset({TENANT, OTHER_TENANT}), 2),
    ],
)
async def test_people_of_the_allowed_tenants_are_heard(allowed: frozenset[str], heard: int) -> None:
    async with open_teams("builtin", tenant_ids=allowed) as chat:
        for number, tenant in enumerate((TENANT, OTHER_TENANT, "a-third-one")):
            activity = from_tenant(chat, tenant, f"19:chat{number}@thread.v2", id=str(number))
            assert (await chat.deliver(activity)).status == 200
        assert len(chat.inbox.questions) == heard
        assert len([key for key in chat.references.stored if not key.startswith("tenant:")]) == heard


async def test_a_post_goes_where_its_own_tenant_is_reached() -> None:
    async with open_teams("builtin", tenant_ids=frozenset({TENANT, OTHER_TENANT})) as chat:
        await chat.deliver(from_tenant(chat, TENANT, GROUP_CHAT, id="1"))
        elsewhere = {"service_url": "http://127.0.0.1:9/", "tenant_id": OTHER_TENANT, "threaded": False}
        await chat.references.put(f"tenant:{OTHER_TENANT}", elsewhere)
        await chat.references.put("tenant:", elsewhere)
        await chat.messenger.post(Place(Platform.TEAMS, GROUP_CHAT), IncidentMessage(incident()), "one")
        never_met = "19:never-met@thread.tacv2"
        await chat.messenger.post(Place(Platform.TEAMS, never_met, None, TENANT), IncidentMessage(incident()), "two")
        assert [sent.conversation for sent in chat.connector.sent] == [GROUP_CHAT, never_met]
        with pytest.raises(ChatUnavailable, match="cannot be reached"):
            await chat.messenger.post(
                Place(Platform.TEAMS, never_met, None, OTHER_TENANT), IncidentMessage(incident()), "x"
            )


async def test_of_several_tenants_none_is_guessed() -> None:
    async with open_teams("builtin", tenant_ids=frozenset({TENANT, OTHER_TENANT})) as chat:
        await chat.deliver(from_tenant(chat, TENANT, GROUP_CHAT, id="1"))
        with pytest.raises(ChatClosed, match="Add the app to that team"):
            await chat.messenger.post(
                Place(Platform.TEAMS, "19:never-met@thread.tacv2"), IncidentMessage(incident()), "x"
            )
        assert chat.connector.sent == []
