"""Guests of a Slack workspace are not the public: where one reads along, nothing is shown that is for members."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.model.conversation import PUBLIC
from tests.fakes.slack_api import BOT_USER, CHANNEL, DIRECT, PERSON, PRIVATE_CHANNEL, FakeSlack
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import mention, message

GUEST = "U0GUEST"


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        started.slack.people[GUEST] = {"id": GUEST, "is_restricted": True}
        yield started


def invite(slack: FakeSlack, channel: str = CHANNEL) -> None:
    slack.members[channel].append(GUEST)


async def is_public(bot: SlackBot, number: int = 1, channel: str = CHANNEL) -> bool:
    await bot.event(mention(ts=f"1773480600.{number:06}", channel=channel))
    return PUBLIC in bot.inbox.questions[-1].audience.readers


async def test_a_channel_with_a_guest_is_answered_from_what_is_shared_with_it_alone(bot: SlackBot) -> None:
    invite(bot.slack)
    assert not await is_public(bot)
    assert bot.inbox.questions[0].audience.readers == {"channel:ask-plumbline", f"channel:slack:{CHANNEL}"}


async def test_a_guest_elsewhere_changes_nothing_here(bot: SlackBot) -> None:
    invite(bot.slack, PRIVATE_CHANNEL)
    assert await is_public(bot)


@pytest.mark.parametrize("kind", ["is_restricted", "is_ultra_restricted", "is_stranger"])
async def test_a_guest_who_writes_directly_is_answered_from_what_is_shared_with_the_guest(
    bot: SlackBot, kind: str
) -> None:
    bot.slack.people[PERSON] = {"id": PERSON, kind: True}
    await bot.event(message("how do I roll back a canary?", channel=DIRECT, channel_type="im"))
    assert bot.inbox.questions[0].audience.readers == {f"person:slack:{PERSON}"}


@pytest.mark.parametrize("somebody", [{PERSON: {"id": PERSON, "team_id": "T0OTHER"}}, {}])
async def test_nobody_of_another_organisation_reads_directly_what_is_for_members(
    bot: SlackBot, somebody: dict[str, dict[str, Any]]
) -> None:
    bot.slack.people = somebody
    await bot.event(message("how do I roll back a canary?", channel=DIRECT, channel_type="im"))
    assert bot.inbox.questions[0].audience.readers == {f"person:slack:{PERSON}"}


async def test_everybody_of_the_same_enterprise_is_a_member(bot: SlackBot) -> None:
    bot.slack.people[PERSON] |= {"team_id": "T0OTHER", "enterprise_user": {"enterprise_id": "E0MARIGOLD"}}
    bot.slack.enterprise = "E0MARIGOLD"
    await bot.event(message("how do I roll back a canary?", channel=DIRECT, channel_type="im"))
    assert PUBLIC in bot.inbox.questions[0].audience.readers


async def test_a_slash_command_is_heard_by_the_guests_of_its_channel(bot: SlackBot) -> None:
    invite(bot.slack)
    await bot.command("status")
    assert PUBLIC not in bot.inbox.questions[0].audience.readers


@pytest.mark.parametrize("method", ["users.list", "conversations.members"])
async def test_nothing_public_is_shown_while_slack_does_not_say_who_is_a_guest(bot: SlackBot, method: str) -> None:
    bot.slack.refuse(200, '{"ok": false, "error": "missing_scope"}', method=method)
    assert not await is_public(bot, 1)
    assert await is_public(bot, 2)


async def test_the_list_of_guests_outlives_an_outage_of_less_than_an_hour(bot: SlackBot) -> None:
    assert await is_public(bot, 1)
    bot.slack.refuse(503, method="users.list", times=100)
    bot.clock.advance(1_800)
    assert await is_public(bot, 2)
    bot.clock.advance(1_801)
    assert not await is_public(bot, 3)


async def test_whoever_becomes_a_member_is_believed_to_be_one_after_an_hour_at_most(bot: SlackBot) -> None:
    invite(bot.slack)
    assert not await is_public(bot, 1)
    bot.slack.people[GUEST] = {"id": GUEST}
    bot.clock.advance(3_600)
    assert await is_public(bot, 2)


async def test_the_members_of_a_channel_are_not_asked_for_where_nobody_is_a_guest(bot: SlackBot) -> None:
    del bot.slack.people[GUEST]
    assert await is_public(bot)
    assert bot.slack.called("conversations.members") == []


OTHER = "U0OTHER"
INSTALLATION = {"enterprise_id": "E0MARIGOLD", "team_id": None, "user_id": BOT_USER, "is_enterprise_install": True}


@pytest.fixture
def organisation(bot: SlackBot) -> SlackBot:
    """A bot whose app is installed in a whole organisation, with two workspaces."""
    bot.slack.enterprise = "E0MARIGOLD"
    for person in (PERSON, OTHER, BOT_USER):
        bot.slack.people[person] = {"id": person, "enterprise_user": {"enterprise_id": "E0MARIGOLD"}}
    bot.slack.workspaces = {"T0FERRIES": [PERSON, BOT_USER], "T0PORTS": [OTHER, GUEST]}
    return bot


async def test_members_and_guests_of_an_organisation_are_those_of_all_its_workspaces(organisation: SlackBot) -> None:
    for number, (person, is_member) in enumerate({PERSON: True, OTHER: True, GUEST: False, "U0NOBODY": False}.items()):
        ts = f"1773480600.{number:06}"
        event = message("how?", channel=DIRECT, channel_type="im", user=person, ts=ts)
        await organisation.event(event, team_id="T0PORTS", authorizations=[INSTALLATION])
        assert (PUBLIC in organisation.inbox.questions[-1].audience.readers) is is_member, person
    assert [each.get("team_id") for each in organisation.slack.called("users.list")] == ["T0FERRIES", "T0PORTS"]


async def test_a_public_channel_of_an_organisation_keeps_to_itself_what_is_said_there(organisation: SlackBot) -> None:
    assert await is_public(organisation), "what is for everybody is quoted there"
    assert PUBLIC not in organisation.inbox.questions[-1].audience.disclosed_to
    invite(organisation.slack)
    organisation.clock.advance(3_700)
    assert not await is_public(organisation, 2), "a guest reads along"


async def test_without_the_workspaces_of_an_organisation_everybody_counts_as_a_guest(organisation: SlackBot) -> None:
    organisation.slack.workspaces = {}
    assert not await is_public(organisation)
    organisation.slack.refuse(200, '{"ok": false, "error": "internal_error"}', method="auth.teams.list", times=9)
    assert not await is_public(organisation, 2)


async def test_who_is_in_no_workspace_with_the_app_counts_as_a_guest(organisation: SlackBot) -> None:
    organisation.slack.members[CHANNEL].append("U0ELSEWHERE")
    assert not await is_public(organisation)
