"""A reaction to a message of ours that says yes or no is handed in; every other one is none of our business."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.model.conversation import MessageReference, Person, Place, Platform
from tests.fakes.slack_api import BOT_USER, CHANNEL, PERSON
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import reaction

POSTED = {"channel": CHANNEL, "ts": "1773480600.000001", "user": BOT_USER}


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        yield started


@pytest.mark.parametrize(
    ("name", "approves"),
    [("+1", True), ("+1::skin-tone-4", True), ("white_check_mark", True), ("-1", False), ("x", False)],
)
async def test_a_reaction_says_yes_or_no(bot: SlackBot, name: str, approves: bool) -> None:
    assert (await bot.event(reaction(name, POSTED))).status == 200
    (handed_in,) = bot.inbox.reactions
    assert handed_in.message == MessageReference(Place(Platform.SLACK, CHANNEL), POSTED["ts"])
    assert handed_in.person == Person(Platform.SLACK, PERSON)
    assert (handed_in.approves, handed_in.taken_back) == (approves, False)


async def test_a_reaction_that_is_taken_away_is_taken_back(bot: SlackBot) -> None:
    await bot.event(reaction("+1", POSTED))
    await bot.event(reaction("+1", POSTED, type="reaction_removed", event_ts="1773480801.000100"))
    assert [each.taken_back for each in bot.inbox.reactions] == [False, True]


async def test_a_reaction_that_slack_sends_twice_is_one(bot: SlackBot) -> None:
    for _ in range(3):
        await bot.event(reaction("x", POSTED))
    assert len(bot.inbox.reactions) == 1


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(reaction("eyes", POSTED), id="says neither"),
        pytest.param(reaction("+1", POSTED | {"user": PERSON}), id="to somebody else's message"),
        pytest.param(reaction("+1", POSTED, person=BOT_USER), id="by the bot"),
        pytest.param(reaction("+1", POSTED, item={"type": "file", "file": "F1"}), id="to a file"),
    ],
)
async def test_other_reactions_are_acknowledged_and_ignored(bot: SlackBot, event: dict[str, Any]) -> None:
    assert (await bot.event(event)).status == 200
    assert bot.inbox.reactions == []
