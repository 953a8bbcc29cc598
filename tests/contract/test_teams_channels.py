"""Channels of Microsoft Teams over Graph: what a thread becomes, who may read it, and what a delta brings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.errors import SourceUnavailable
from core.ports import SourceChanges
from tests.contract.source_worlds.remote import TeamsWorld, teams_world
from tests.contract.source_worlds.world import HIDDEN_CHANNEL, TEAM, TEAMS_CHANNEL

HERE = f"channel:teams:{TEAMS_CHANNEL}"
DAY = 24 * 60 * 60


@pytest.fixture
async def teams() -> AsyncIterator[TeamsWorld]:
    async with teams_world() as world:
        yield world


async def read(teams: TeamsWorld, cursor: str = "", known: frozenset[str] = frozenset()) -> list[SourceChanges]:
    return [part async for part in teams.source.changes(cursor, known)]


async def documents(teams: TeamsWorld) -> list[Document]:
    """As the source holds them at the end: a delta may name what was read before it."""
    found = {document.id: document for part in await read(teams) for document in part.documents}
    return [found[key] for key in sorted(found)]


# --- a thread --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        (
            "application/vnd.microsoft.card.adaptive",
            {"body": [{"type": "TextBlock", "text": "Till slow"}]},
            "Till slow",
        ),
        (
            "application/vnd.microsoft.card.hero",
            {"title": "Till", "text": "slow", "buttons": [{"title": "x"}]},
            "Till slow",
        ),
        ("application/vnd.microsoft.card.thumbnail", {"title": "Till", "subtitle": "slow"}, "Till slow"),
        (
            "application/vnd.microsoft.teams.card.o365connector",
            {"title": "Till", "sections": [{"activityTitle": "slow", "facts": [{"name": "p99", "value": "4 s"}]}]},
            "Till\nslow\np99 4 s",
        ),
        ("forwardedMessageReference", {"originalMessageContent": "<p>Till <b>slow</b></p>"}, "Till **slow**"),
        ("application/vnd.microsoft.card.hero", "no JSON", ""),
    ],
)
async def test_the_text_of_cards_and_forwarded_messages_is_read_and_a_root_without_text_keeps_its_replies(
    teams: TeamsWorld, kind: str, content: Any, said: str
) -> None:
    attached = {"id": "a", "contentType": kind, "content": content if said == "" else json.dumps(content)}
    teams.server.post(TEAMS_CHANNEL, "1000", '<attachment id="a"></attachment>', attachments=[attached])
    teams.server.post(TEAMS_CHANNEL, "1001", "Restart the till.", reply_to="1000")
    (found,) = await documents(teams)
    assert found.text == f"Message: {said}\n\nThis message has the following responses:\n\nRestart the till."


async def test_a_message_is_one_document_with_all_its_replies_as_they_were_posted(teams: TeamsWorld) -> None:
    mention = {
        "id": 0,
        "mentionText": "Mateo Silvestri",
        "mentioned": {"user": {"id": "u-2", "displayName": "Mateo Silvestri"}},
    }
    content = '<p>Why is build 7 red, <at id="0">Mateo Silvestri</at>?&nbsp;</p><attachment id="a1"></attachment>'
    files = [{"id": "a1", "contentType": "reference", "name": "build.log"}]
    teams.server.post(TEAMS_CHANNEL, "1000", content, subject="Red again", mentions=[mention], attachments=files)
    for number in range(1, 6):
        teams.server.post(TEAMS_CHANNEL, f"100{number}", f"<div>Answer {number}.</div>", reply_to="1000")
    (found,) = await documents(teams)
    assert found == Document(
        id=f"docs/{TEAMS_CHANNEL}/1000",
        source="docs",
        family="chat",
        title="#ci-cd: Red again",
        text="Message: **Red again**\n\nWhy is build 7 red, @Mateo Silvestri?\n(attachment: build.log)\n\n"
        "This message has the following responses:\n\nAnswer 1.\n\nAnswer 2.\n\nAnswer 3.\n\nAnswer 4.\n\nAnswer 5.",
        kind=DocumentKind.THREAD,
        url="https://teams.example/l/message/19%3Acicd%40thread.tacv2/1000",
        updated_at=datetime(2026, 2, 1, 10, 5, tzinfo=UTC),
        readers=frozenset({PUBLIC, HERE}),
        people=(("Asha Brandt", "asha@marigold.example"), ("Mateo Silvestri",)),
        part_urls=tuple(
            f"https://teams.example/l/message/19%3Acicd%40thread.tacv2/{message}"
            for message in (1000, 1000, 1000, 1001, 1002, 1003, 1004, 1005)
        ),
    )


async def test_tags_within_tags_within_tags_stop_no_reading_and_lose_no_text(teams: TeamsWorld) -> None:
    teams.server.post(TEAMS_CHANNEL, "1000", f"{'<div>' * 4_000}Why is build 7 red?{'</div>' * 4_000}")
    (found,) = await documents(teams)
    assert found.text == "Message: Why is build 7 red?"


async def test_html_becomes_text_with_its_code_and_links(teams: TeamsWorld) -> None:
    html = (
        '<p>Run <code>kube_pod_status</code> <emoji alt="👍"></emoji>, see <a href="https://x.example">x</a></p>'
        "<codeblock><code>kubectl get pods<br>exit</code></codeblock><img src='https://graph/hosted'>"
    )
    teams.server.post(TEAMS_CHANNEL, "1000", html)
    teams.server.post(TEAMS_CHANNEL, "2000", "a < b & c", html=False)
    first, second = await documents(teams)
    assert first.text.startswith(
        "Message: Run `kube_pod_status` 👍, see [x](https://x.example)\n\n```\nkubectl get pods"
    )
    assert second.text == "Message: a < b & c"


async def test_events_and_what_a_policy_withholds_are_no_documents_and_no_replies(teams: TeamsWorld) -> None:
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>A question?</p>")
    withheld: dict[str, Any] = {"policyViolation": {"dlpAction": "blockAccess"}}
    teams.server.post(TEAMS_CHANNEL, "1001", "<p>card 4111</p>", reply_to="1000", **withheld)
    event: dict[str, Any] = {"messageType": "unknownFutureValue", "eventDetail": {"@odata.type": "#x"}, "from": None}
    teams.server.post(TEAMS_CHANNEL, "2000", "<systemEventMessage/>", **event)
    (found,) = await documents(teams)
    assert found.text == "Message: A question?"


async def test_what_a_bot_says_is_a_document_only_if_somebody_answered(teams: TeamsWorld) -> None:
    bot: dict[str, Any] = {"from": {"application": {"id": "bot-1", "displayName": "Alerts"}, "user": None}}
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>Latency is high.</p>", **bot)
    teams.server.post(TEAMS_CHANNEL, "1001", "<p>It is the pool.</p>", reply_to="1000")
    teams.server.post(TEAMS_CHANNEL, "2000", "<p>Latency is higher.</p>", **bot)
    (found,) = await documents(teams)
    assert found.text.endswith("It is the pool.")


async def test_what_we_said_ourselves_is_not_learned_from(teams: TeamsWorld) -> None:
    teams.source._bot_id = "plumbline"
    ours: dict[str, Any] = {"from": {"application": {"id": "plumbline"}, "user": None}}
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>A question?</p>")
    teams.server.post(TEAMS_CHANNEL, "1001", "<p>An answer of ours.</p>", reply_to="1000", **ours)
    (found,) = await documents(teams)
    assert found.text == "Message: A question?"


async def test_a_message_that_makes_no_sense_is_left_out_and_the_others_are_read(teams: TeamsWorld) -> None:
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>Good.</p>")
    teams.server.post(TEAMS_CHANNEL, "2000", "<p>Bad.</p>", createdDateTime="yesterday")
    assert [document.text for document in await documents(teams)] == ["Message: Good."]


# --- who may read it -------------------------------------------------------------------------------------------------


async def test_a_channel_of_a_private_team_is_read_by_its_people_and_the_team_s_other_channels(
    teams: TeamsWorld,
) -> None:
    teams.server.team(TEAM, visibility="private")
    teams.server.channel(TEAM, "19:other@thread.tacv2", "other")
    teams.server.channel(TEAM, HIDDEN_CHANNEL, "hidden", "private")
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>x</p>")
    (found,) = await documents(teams)
    assert found.readers == {HERE, "channel:teams:19:other@thread.tacv2", "person:teams:u-1"}


@pytest.mark.parametrize("membership", ["private", "shared", "unknownFutureValue"])
async def test_a_channel_with_members_of_its_own_is_read_by_these_alone(teams: TeamsWorld, membership: str) -> None:
    teams.server.channel(TEAM, HIDDEN_CHANNEL, "hidden", membership)
    teams.server.member(HIDDEN_CHANNEL, "u-7", "Ruth Castellan")
    teams.server.post(HIDDEN_CHANNEL, "1000", "<p>x</p>")
    (found,) = await documents(teams)
    assert found.readers == {f"channel:teams:{HIDDEN_CHANNEL}", "person:teams:u-7"}


async def test_members_whom_we_may_not_see_read_in_their_channel_only(teams: TeamsWorld) -> None:
    teams.server.team(TEAM, visibility="hiddenMembership")
    teams.server.members_visible = False
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>x</p>")
    (found,) = await documents(teams)
    assert found.readers == {HERE}


# --- what a delta brings ---------------------------------------------------------------------------------------------


async def first_reading(teams: TeamsWorld) -> str:
    for number in range(1, 8):
        teams.server.post(TEAMS_CHANNEL, f"{number}000", f"<p>Question {number}?</p>")
        teams.server.post(TEAMS_CHANNEL, f"{number}001", "<p>Answer.</p>", reply_to=f"{number}000")
    cursor = (await read(teams))[-1].cursor
    teams.server.refusals.requests.clear()
    return cursor


def known(*ids: str) -> frozenset[str]:
    return frozenset(f"docs/{TEAMS_CHANNEL}/{each}" for each in ids)


ALL = known(*(f"{number}000" for number in range(1, 8)))


async def test_after_the_first_reading_only_what_changed_is_asked_for(teams: TeamsWorld) -> None:
    cursor = await first_reading(teams)
    teams.server.post(TEAMS_CHANNEL, "3002", "<p>Another answer.</p>", reply_to="3000")
    teams.server.edit(TEAMS_CHANNEL, "5001", "<p>A better answer.</p>")
    teams.server.delete(TEAMS_CHANNEL, "6000")
    parts = await read(teams, cursor, ALL)
    texts = {document.id.rpartition("/")[2]: document.text for part in parts for document in part.documents}
    assert texts == {
        "3000": "Message: Question 3?\n\nThis message has the following responses:\n\nAnswer.\n\nAnother answer.",
        "5000": "Message: Question 5?\n\nThis message has the following responses:\n\nA better answer.",
        "6000": "Message: Answer.",  # of a question that was deleted
    }
    assert not any(part.removed_ids for part in parts)
    listed = [path for path in teams.server.refusals.requests if "/messages?" in path]
    assert listed == []


async def test_a_deleted_reply_is_gone_from_its_thread(teams: TeamsWorld) -> None:
    cursor = await first_reading(teams)
    teams.server.delete(TEAMS_CHANNEL, "2001")
    found = [document.text for part in await read(teams, cursor, ALL) for document in part.documents]
    assert found == ["Message: Question 2?"]


async def test_a_link_that_graph_no_longer_knows_leads_to_a_whole_reading(teams: TeamsWorld) -> None:
    cursor = await first_reading(teams)
    teams.server.oldest_link = 10_000
    teams.server.purge(TEAMS_CHANNEL, "4000")
    parts = await read(teams, cursor, ALL)
    assert sum(len(part.documents) for part in parts) == 6
    assert parts[-2].removed_ids == known("4000")


async def test_a_channel_without_deltas_is_read_whole_each_time(teams: TeamsWorld) -> None:
    teams.server.delta_supported = False
    cursor = await first_reading(teams)
    assert sum(len(part.documents) for part in await read(teams, cursor, ALL)) == 7


async def test_what_vanished_without_a_trace_is_seen_within_a_month(teams: TeamsWorld) -> None:
    cursor = await first_reading(teams)
    teams.server.purge(TEAMS_CHANNEL, "4000")
    assert [part.removed_ids for part in await read(teams, cursor, ALL) if part.removed_ids] == []
    teams.clock.advance(31 * DAY)
    assert [part.removed_ids for part in await read(teams, cursor, ALL) if part.removed_ids] == [known("4000")]


async def test_a_token_that_expired_while_reading_is_renewed(teams: TeamsWorld) -> None:
    cursor = await first_reading(teams)
    teams.server.expire_tokens()
    teams.server.edit(TEAMS_CHANNEL, "5000", "<p>Edited.</p>")
    found = [document.text for part in await read(teams, cursor, ALL) for document in part.documents]
    assert [text.splitlines()[0] for text in found] == ["Message: Edited."]


async def test_a_channel_that_the_team_does_not_show_is_told(teams: TeamsWorld) -> None:
    teams.source._teams = {TEAM: ("19:typo@thread.tacv2",)}
    with pytest.raises(SourceUnavailable, match="has no channel 19:typo"):
        await read(teams)


async def test_a_channel_that_is_no_longer_there_goes(teams: TeamsWorld) -> None:
    parts = await read(teams, "", frozenset({"docs/19:old@thread.tacv2/1"}))
    assert parts[-1].removed_ids == {"docs/19:old@thread.tacv2/1"}


async def read_until_it_fails(teams: TeamsWorld, known: frozenset[str], error: str) -> list[SourceChanges]:
    parts = list[SourceChanges]()

    async def collect() -> None:
        async for part in teams.source.changes("", known):
            parts.append(part)

    with pytest.raises(SourceUnavailable, match=error):
        await collect()
    return parts


GONE = "19:gone@thread.tacv2"


async def test_a_channel_that_was_deleted_goes_and_keeps_no_other_from_being_read(teams: TeamsWorld) -> None:
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>A question?</p>")
    teams.source._teams = {TEAM: (GONE, TEAMS_CHANNEL)}
    parts = await read_until_it_fails(teams, frozenset({f"docs/{GONE}/1"}), f"has no channel {GONE}")
    assert {document.text for part in parts for document in part.documents} == {"Message: A question?"}
    assert parts[-1].removed_ids == {f"docs/{GONE}/1"}


@pytest.mark.parametrize(("status", "removed"), [(404, {f"docs/{GONE}/1"}), (403, set[str]())])
async def test_a_team_that_refuses_keeps_no_other_from_being_read(
    teams: TeamsWorld, status: int, removed: set[str]
) -> None:
    """What was read in it goes only with the team itself: a consent may come back."""
    teams.server.post(TEAMS_CHANNEL, "1000", "<p>A question?</p>")
    teams.source._teams = {"team-refusing": (), TEAM: ()}
    if status == 403:
        teams.server.forbidden_teams.add("team-refusing")
    parts = await read_until_it_fails(teams, frozenset({f"docs/{GONE}/1"}), f"HTTP status {status}")
    assert {document.text for part in parts for document in part.documents} == {"Message: A question?"}
    assert parts[-1].removed_ids == removed
