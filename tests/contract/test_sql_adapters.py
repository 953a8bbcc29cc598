"""What the local page and Teams keep in the database, with writers beside each other, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.conversations import SqlConsoleMessages, SqlTeamsConversations
from adapters.store.database import open_database
from adapters.teams.connector import ConversationReference, remember, teams_of

AT = datetime(2026, 3, 14, 9, 30, 5, 250_000, tzinfo=UTC)
MANY = 100


@pytest.fixture
async def two_pages(engine: AsyncEngine) -> AsyncIterator[list[SqlConsoleMessages]]:
    """The same messages seen by two processes."""
    other = open_database(engine.url.render_as_string(hide_password=False))
    yield [SqlConsoleMessages(engine), SqlConsoleMessages(other)]
    await other.dispose()


async def test_two_processes_that_post_one_intent_post_one_message(two_pages: list[SqlConsoleMessages]) -> None:
    ids = await asyncio.gather(
        *(page.append("help", None, "notice", {"text": "hello"}, "intent", AT) for page in two_pages * 5)
    )
    assert len(set(ids)) == 1
    assert len(await two_pages[0].page("help", MANY)) == 1


async def test_no_reader_misses_a_change_whoever_wrote_it(two_pages: list[SqlConsoleMessages]) -> None:
    """A reader who has seen revision n has seen every revision below it."""
    seen: list[int] = []

    async def write(number: int) -> None:
        page = two_pages[number % 2]
        message_id = await page.append("help", None, "notice", {"number": number}, f"intent {number}", AT)
        await page.replace(message_id, "notice", {"number": -number})

    async def read() -> None:
        while len(seen) < 20:
            after = seen[-1] if seen else 0
            seen.extend(message.revision for message in await two_pages[0].changed("help", after, MANY))

    writing = [asyncio.create_task(write(number)) for number in range(20)]
    reading = asyncio.create_task(read())
    await asyncio.gather(*writing)
    complete = await two_pages[1].changed("help", 0, MANY)
    async with asyncio.timeout(10):
        await reading
    assert all(earlier < later for earlier, later in pairwise(seen))
    assert [each.revision for each in complete if each.revision <= seen[-1] and each.revision not in seen] == []
    assert [message.payload["number"] for message in complete if message.payload["number"] > 0] == []


async def test_a_teams_conversation_is_remembered_and_replaced(engine: AsyncEngine) -> None:
    conversations = SqlTeamsConversations(engine)
    assert await conversations.get("19:incidents@thread.tacv2") is None
    await conversations.put("19:incidents@thread.tacv2", {"service_url": "https://one.example", "threaded": True})
    await conversations.put("19:other@thread.tacv2", {"service_url": "https://other.example"})
    await conversations.put("19:incidents@thread.tacv2", {"service_url": "https://two.example", "naïve": "☃"})
    assert await conversations.get("19:incidents@thread.tacv2") == {"service_url": "https://two.example", "naïve": "☃"}


async def test_the_teams_of_a_tenant_are_known(engine: AsyncEngine) -> None:
    conversations = SqlTeamsConversations(engine)
    for tenant, team in (
        ("ours", "19:b_%@thread.tacv2"),
        ("ours", "19:a@thread.tacv2"),
        ("theirs", "19:c@thread.tacv2"),
    ):
        reference = ConversationReference("https://x/", tenant, threaded=True, team_id=team)
        await remember(conversations, f"{team}-general", reference)
    assert [team.team_id for team in await teams_of(conversations, "ours")] == [
        "19:a@thread.tacv2",
        "19:b_%@thread.tacv2",
    ]
    assert await conversations.beginning_with("team_") == []


async def test_two_who_remember_one_teams_conversation_leave_one(engine: AsyncEngine) -> None:
    conversations = SqlTeamsConversations(engine)
    references = [{"service_url": f"https://{number}.example"} for number in range(5)]
    await asyncio.gather(*(conversations.put("19:incidents@thread.tacv2", each) for each in references))
    assert await conversations.get("19:incidents@thread.tacv2") in references


async def test_a_team_that_the_app_leaves_is_forgotten_with_all_its_channels(engine: AsyncEngine) -> None:
    conversations = SqlTeamsConversations(engine)
    for channel, team in (("19:general", "19:general"), ("19:ops", "19:general"), ("19:other", "19:else"), ("a:1", "")):
        await conversations.put(channel, {"service_url": "https://x/", "team_id": team})
    await conversations.put("19:from-before", {"service_url": "https://x/"})
    await conversations.remove("19:general", "19:general")
    await conversations.remove("19:unknown", "")
    kept = [await conversations.get(id_) is not None for id_ in ("19:general", "19:ops", "19:other", "a:1")]
    assert kept == [False, False, True, True]
    assert await conversations.get("19:from-before") is not None
