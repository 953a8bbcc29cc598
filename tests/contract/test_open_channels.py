"""Whether the whole workspace may read a channel now: the narrower of what its chat and plumbline.yaml say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from adapters.slack.channels import is_open as is_open_in_slack
from adapters.slack.client import BotIdentity, slack_client
from adapters.teams.connector import Connector, ConversationReference, TeamGroups, remember
from core.knowledge.retriever import Retriever
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    Place,
    Platform,
    channel_audience,
    channel_reader,
    current_readers,
    kept_private,
)
from core.model.document import Document
from core.model.errors import ChatUnavailable
from core.model.incident import Silenced
from core.ports import OpenToAll
from handlers.common.ports import KEPT, SILENCE, Chats, OpenChannels, current_channels
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from tests.cases import every_case
from tests.contract.records import incident
from tests.fakes import slack_api
from tests.fakes.clock import FakeClock
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.slack_api import FakeSlack, Refusal
from tests.fakes.teams_connector import CHANNEL, GROUP_CHAT, TEAM, TENANT, FakeReferences, TeamsConnector, access_token

SLACK, TEAMS = Place(Platform.SLACK, "C0OPS"), Place(Platform.TEAMS, CHANNEL)
BOTH = Channel("ops", {Platform.SLACK: "C0OPS", Platform.TEAMS: CHANNEL})


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


class Slack:
    def __init__(self, server: FakeSlack, clock: FakeClock) -> None:
        self.server = server
        client = slack_client(slack_api.BOT_TOKEN, server.url)

        async def look_up(place: Place) -> bool:
            return await is_open_in_slack(place, client, BotIdentity(client))

        self.is_open = OpenChannels(look_up, clock).is_open


PUBLIC_CHANNEL = {"id": "C0OPS", "is_channel": True, "is_private": False, "is_member": True}


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ({}, True),
        ({"is_archived": True, "is_member": False}, True),  # everybody still reads it
        ({"is_private": True}, False),
        ({"is_private": True, "is_archived": True}, False),
        ({"is_channel": False, "is_group": True, "is_private": True}, False),
        ({"is_mpim": True, "is_private": True}, False),
        ({"is_channel": False, "is_im": True}, False),
        ({"is_ext_shared": True}, True),
        ({"is_ext_shared": True, "is_private": True}, False),
    ],
)
async def test_slack_channel_is_open_as_slack_says(
    changes: dict[str, Any], is_open: bool, stack: AsyncExitStack
) -> None:
    slack = Slack(await stack.enter_async_context(FakeSlack()), FakeClock())
    slack.server.channels["C0OPS"] = PUBLIC_CHANNEL | changes
    assert await slack.is_open(SLACK) is is_open


async def test_no_channel_of_a_whole_organisation_is_open(stack: AsyncExitStack) -> None:
    slack = Slack(await stack.enter_async_context(FakeSlack()), FakeClock())
    slack.server.channels["C0OPS"], slack.server.workspaces = PUBLIC_CHANNEL, {"T0MARI": []}
    assert not await slack.is_open(SLACK)


async def test_slack_channel_turns_private_and_public_again_within_the_age_of_the_cache(stack: AsyncExitStack) -> None:
    clock = FakeClock()
    slack = Slack(await stack.enter_async_context(FakeSlack()), clock)
    for is_private in (False, True, False):
        slack.server.channels["C0OPS"] = PUBLIC_CHANNEL | {"is_private": is_private}
        assert await slack.is_open(SLACK) is not is_private
        lookups = len(slack.server.calls)
        await slack.is_open(SLACK)
        assert len(slack.server.calls) == lookups
        clock.advance(KEPT.total_seconds())


@pytest.mark.parametrize(
    "refusal", [Refusal(503, "", times=9), Refusal(200, '{"ok": false, "error": "channel_not_found"}')]
)
async def test_slack_channel_is_closed_while_slack_does_not_tell(refusal: Refusal, stack: AsyncExitStack) -> None:
    clock = FakeClock()
    slack = Slack(await stack.enter_async_context(FakeSlack()), clock)
    slack.server.channels["C0OPS"] = PUBLIC_CHANNEL
    assert await slack.is_open(SLACK)
    clock.advance(KEPT.total_seconds())
    slack.server.refusals.append(refusal)
    assert not await slack.is_open(SLACK)
    slack.server.refusals.clear()
    clock.advance(SILENCE.total_seconds())
    assert await slack.is_open(SLACK)


class Teams:
    def __init__(self, server: TeamsConnector, session: aiohttp.ClientSession) -> None:
        self.server, self.references, self.clock = server, FakeReferences(), FakeClock()
        token = access_token(server.cloud, session)
        look_up = TeamGroups(self.references, Connector(token, session)).is_open
        self.is_open = OpenChannels(look_up, self.clock).is_open

    async def write(self, channel: str, team: str = TEAM, *, restricted: bool = False) -> None:
        home = ConversationReference(self.server.service_url, TENANT, threaded=True, team_id=team)
        await remember(self.references, channel, home, restricted=restricted)


@pytest.fixture
async def teams(stack: AsyncExitStack) -> Teams:
    server = await stack.enter_async_context(TeamsConnector())
    return Teams(server, await stack.enter_async_context(aiohttp.ClientSession()))


@pytest.mark.parametrize(("kind", "is_open"), [("standard", True), ("", True), ("private", False), ("Shared", False)])
async def test_teams_channel_is_open_if_its_team_lists_it_as_standard(kind: str, is_open: bool, teams: Teams) -> None:
    teams.server.channel_types[CHANNEL] = kind
    await teams.write(CHANNEL)
    assert await teams.is_open(TEAMS) is is_open


async def test_teams_channel_whose_kind_cannot_be_learned_is_closed(teams: Teams) -> None:
    assert not await teams.is_open(TEAMS)  # nobody ever wrote to the bot
    await teams.write(GROUP_CHAT)
    assert not await teams.is_open(Place(Platform.TEAMS, GROUP_CHAT))  # in no team
    await teams.write("19:new@thread.tacv2", team="19:strange@thread.tacv2")
    assert not await teams.is_open(Place(Platform.TEAMS, "19:new@thread.tacv2"))  # in a team without the app


async def test_teams_channel_is_closed_while_teams_does_not_answer(teams: Teams) -> None:
    await teams.write(CHANNEL)
    teams.server.teams_down = True
    assert not await teams.is_open(TEAMS)
    teams.server.teams_down = False
    teams.clock.advance(SILENCE.total_seconds())
    assert await teams.is_open(TEAMS)


async def test_teams_channel_that_an_activity_calls_private_is_closed_whatever_its_team_lists(teams: Teams) -> None:
    await teams.write(CHANNEL, restricted=True)
    assert not await teams.is_open(TEAMS)
    assert ConversationReference(**teams.references.stored[CHANNEL]).team_id == TEAM


def answering(**answers: bool | None) -> dict[Platform, OpenToAll]:
    """Return the look-ups of chats that give these answers; None for one that does not answer."""

    def look_up(answer: bool | None) -> OpenToAll:
        async def is_open(_place: Place) -> bool:
            if answer is None:
                raise ChatUnavailable("It does not answer.")
            return answer

        return OpenChannels(is_open, FakeClock()).is_open

    return {Platform(name): look_up(answer) for name, answer in answers.items()}


@every_case(
    ("private", "answers", "slack_is_public", "teams_is_public"),
    [
        (False, {"slack": True, "teams": True}, True, True),
        (False, {"slack": False, "teams": True}, False, True),  # each place by its own chat
        (False, {"slack": None, "teams": False}, False, False),
        (False, {"teams": None}, True, False),  # Slack is only written down
        (True, {"slack": True, "teams": True}, False, False),
    ],
)
async def test_channel_is_as_public_as_the_narrower_of_chat_and_configuration(
    private: bool, answers: dict[str, bool | None], slack_is_public: bool, teams_is_public: bool
) -> None:
    channel = Channel(BOTH.name, BOTH.ids, private)
    channels = await current_channels(map(channel_reader, channel.places), [channel], answering(**answers))
    assert (PUBLIC in channel_audience(SLACK, channels).disclosed_to) is slack_is_public
    assert (PUBLIC in channel_audience(TEAMS, channels).disclosed_to) is teams_is_public


async def test_channel_that_nobody_looked_up_counts_as_private() -> None:
    channels = await current_channels([channel_reader(TEAMS)], [BOTH], answering(slack=True, teams=True))
    assert PUBLIC not in channel_audience(SLACK, channels).disclosed_to


async def test_chat_that_only_tells_audiences_is_believed() -> None:
    async def audience_at(place: Place) -> Audience:
        return kept_private(channel_audience(place, [BOTH]))

    chats = Chats(channels=[BOTH], audiences={Platform.SLACK: audience_at})
    channels = await chats.channels_named(map(channel_reader, BOTH.places))
    assert PUBLIC not in channel_audience(SLACK, channels).disclosed_to
    assert PUBLIC in channel_audience(TEAMS, channels).disclosed_to


SAID = frozenset({"channel:ops", channel_reader(SLACK), PUBLIC})


@every_case(
    ("stored", "is_public"),
    [
        (SAID, False),
        (SAID | {channel_reader(TEAMS)}, True),  # also said where everybody still reads
        (frozenset({PUBLIC}), True),
        (frozenset({PUBLIC, "channel:slack:C0ELSE"}), True),  # of a source, whose channel plumbline.yaml does not name
        (frozenset({"channel:ops", channel_reader(SLACK)}), False),
    ],
)
async def test_stored_text_is_public_as_long_as_one_of_its_channels_is(stored: frozenset[str], is_public: bool) -> None:
    channels = await current_channels(stored, [BOTH], answering(slack=False, teams=True))
    assert (PUBLIC in current_readers(stored, channels)) is is_public
    assert current_readers(stored, channels) - {PUBLIC} == stored - {PUBLIC}


class Corrections:
    name = "corrections"

    async def documents(self) -> AsyncIterator[Document]:
        yield Document(
            "curated/1", self.name, self.name, "How do I feed the otter?", "Feed the otter herring.", readers=SAID
        )


async def test_indexed_answer_of_a_channel_that_turned_private_is_found_by_its_members_alone() -> None:
    index, encoders, state = FakePassageIndex(), FakeEncoderStore(), {"slack": True}
    await ingest_knowledge([Corrections()], index, encoders, None)

    async def channels_now(readers: Any) -> list[Channel]:
        return await current_channels(readers, [BOTH], answering(**state))

    retriever = Retriever(index, encoders, channels_now=channels_now)
    everybody, members = Audience(), channel_audience(SLACK, [BOTH])
    (passage,) = [each.passage for each in await retriever.retrieve("feed the otter", everybody, 5)]
    for state["slack"], shown in ((True, True), (False, False)):
        assert bool(await retriever.retrieve("feed the otter", everybody, 5)) is shown
        assert bool(await retriever.page(passage.document_id, everybody)) is shown
        assert await retriever.holds(frozenset({passage.id}), everybody) is shown
        assert await retriever.retrieve("feed the otter", members, 5) != []


@pytest.mark.parametrize(("is_open", "reason"), [(True, "disk swap"), (False, "")])
async def test_reason_of_maintenance_is_shown_elsewhere_as_long_as_it_was_declared_in_public(
    is_open: bool, reason: str
) -> None:
    channels = [Channel("ops", {Platform.SLACK: "C0OPS"}), Channel("shop", {Platform.TEAMS: CHANNEL})]
    chats = Chats(channels=channels, openness=answering(slack=is_open, teams=True))
    silenced = Silenced("maintenance", "disk swap", FakeClock().now(), tuple(SAID))
    seen = await chats.readable_at(TEAMS, incident(place=TEAMS, silenced=silenced))
    assert seen.silenced == replace(silenced, reason=reason)
