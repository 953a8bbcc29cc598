"""A person's own page in Slack: their incidents, what is known, and nothing that they may not read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.slack.render import body_blocks
from core.model.conversation import MessageReference, Place, Platform
from core.model.messages import Home, KnownSource
from core.ports import Ingestion
from core.views import home_view
from handlers.common.ports import KEPT
from tests import samples as messages
from tests.fakes import block_kit
from tests.fakes.slack_api import CHANNEL, PERSON, PRIVATE_CHANNEL, Refusal
from tests.fakes.slack_bot import SlackBot, slack_bot

OPENED = {
    "type": "app_home_opened",
    "user": PERSON,
    "channel": "D0INES",
    "tab": "home",
    "event_ts": "1773480600.000100",
}
PUBLIC, PRIVATE = Place(Platform.SLACK, CHANNEL), Place(Platform.SLACK, PRIVATE_CHANNEL)


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        started.slack.people[PERSON] |= {"real_name": "Ines Okafor", "profile": {"display_name": "Ines"}}
        taken = messages.explained_incident(
            id="taken", title="Taken by her", taken_by="ines", place=PUBLIC, message=MessageReference(PUBLIC, "17.1")
        )
        called = replace(taken, id="called", title="Her team is called", taken_by="", group_key="2")
        other = replace(called, id="other", title="Somebody else has it", taken_by="dana", group_key="3")
        hidden = replace(other.with_placement(place=PRIVATE), id="hidden", title="Of a private channel", group_key="4")
        over = replace(
            messages.resolved_incident().with_placement(place=PUBLIC), id="over", title="It is over", group_key="5"
        )
        async with started.store.transaction() as transaction:
            for incident in (taken, called, other, hidden, over):
                await transaction.incidents.save(incident)
            await transaction.ingestions.record(Ingestion("handbook", messages.START, 42))
            await transaction.ingestions.record(Ingestion("wiki", messages.START, 7, "the token is wrong"))
        yield started


def shown(bot: SlackBot) -> str:
    return "\n".join(block_kit.texts(bot.slack.homes[PERSON]["blocks"]))


async def test_the_page_tells_what_is_theirs_what_is_open_and_what_is_known(bot: SlackBot) -> None:
    assert (await bot.event(OPENED)).status == 200
    mine, _, rest = shown(bot).partition("Other open incidents")
    assert "Taken by her" in mine
    assert "Her team is called" in mine
    assert "Somebody else has it" in rest
    assert "https://marigold.slack.example/archives/C0ASK/p171" in mine
    for told in ("handbook", "42 documents", "could not be read since", "quoted from the documents", "help: "):
        assert told in rest
    assert "It is over" not in shown(bot)


async def test_nothing_of_a_private_channel_stands_there(bot: SlackBot) -> None:
    await bot.event(OPENED)
    assert "private channel" not in shown(bot)
    assert "token is wrong" not in shown(bot), "why a source cannot be read is for operators"


async def test_nothing_of_a_channel_that_turned_private_stands_there_until_it_is_public_again(bot: SlackBot) -> None:
    for is_private in (False, True, False):
        bot.slack.channels[CHANNEL]["is_private"] = is_private
        bot.clock.advance(KEPT.total_seconds())
        await bot.event(OPENED)
        assert ("Somebody else has it" in shown(bot)) is not is_private
        assert ("Taken by her" in shown(bot)) is not is_private


async def test_nothing_of_channels_stands_there_while_slack_does_not_say_who_reads_them(bot: SlackBot) -> None:
    bot.slack.refusals.append(Refusal(503, "", method="conversations.info", times=99))
    await bot.event(OPENED)
    assert "Somebody else has it" not in shown(bot)
    assert "handbook" in shown(bot)


async def test_a_guest_sees_neither_incidents_nor_what_is_known(bot: SlackBot) -> None:
    bot.slack.people[PERSON]["is_restricted"] = True
    await bot.event(OPENED)
    for told in ("Somebody else has it", "handbook", "quoted from the documents"):
        assert told not in shown(bot)
    assert "Only members of this workspace" in shown(bot)


async def test_no_page_is_made_for_the_messages_tab(bot: SlackBot) -> None:
    assert (await bot.event(OPENED | {"tab": "messages"})).status == 200
    assert bot.slack.homes == {}


@pytest.mark.parametrize("method", ["views.publish", "users.info"])
async def test_a_slack_that_does_not_answer_leaves_the_page_as_it_was(bot: SlackBot, method: str) -> None:
    bot.slack.refuse(503, "down", method=method)
    assert (await bot.event(OPENED)).status == 200
    assert bot.slack.homes == {}


@pytest.mark.parametrize("text", ["<!channel> *x* `y`", "é" * 5_000, " "])
def test_a_page_of_any_size_is_one_that_slack_takes(text: str) -> None:
    incidents = tuple(messages.explained_incident(id=str(number), title=text or "x") for number in range(40))
    home = Home(
        mine=incidents,
        others=incidents,
        passages=10**9,
        sources=tuple(KnownSource(text, 10**6, messages.START, is_read=False) for _ in range(90)),
        settings=tuple((text, text) for _ in range(90)),
        can=(text,) * 90,
    )
    page = home_view(home, {incident.id: f"https://x.example/{text}" for incident in incidents})
    view = {"type": "home", "blocks": body_blocks(page)}
    assert block_kit.view_problems(view) == []
    assert not any("<!channel" in each for each in block_kit.texts(view["blocks"]))


@pytest.mark.parametrize(
    ("field", "entries"), [("mine", 10), ("others", 10), ("sources", 40)], ids=["theirs", "others", "sources"]
)
def test_a_page_lists_as_many_of_a_kind_as_it_announces(field: str, entries: int) -> None:
    title = "Checkout on the north shore answers slower than two seconds for five minutes"
    opened = tuple(messages.explained_incident(id=str(number), title=title) for number in range(10))
    known = tuple(KnownSource(f"handbook of team {number}", 420, messages.START) for number in range(40))
    empty = Home(mine=(), others=(), passages=0, sources=(), settings=(), can=())
    home = replace(empty, **{field: known if field == "sources" else opened})
    page = home_view(
        home, {each.id: f"https://marigold.slack.example/archives/C0ASK/p1773480600{each.id}" for each in opened}
    )
    texts = "\n".join(block_kit.texts(body_blocks(page)))
    assert (texts.count("• ") - (field == "sources"), "more" in texts) == (entries, False)
