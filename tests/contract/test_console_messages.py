"""The contract of ConsoleMessages, over the fake and the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.console.messages import ConsoleMessages
from adapters.store.conversations import SqlConsoleMessages
from adapters.store.database import open_database
from adapters.store.tables import metadata
from core.model.errors import MessageNotFound
from tests.fakes.console_messages import InMemoryConsoleMessages

AT = datetime(2026, 3, 14, 9, 30, 5, 250_000, tzinfo=UTC)
MANY = 100


@pytest.fixture(params=["fake", "sql"])
async def messages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ConsoleMessages]:
    if request.param == "fake":
        yield InMemoryConsoleMessages()
        return
    engine = open_database(f"sqlite:///{tmp_path / 'plumbline.sqlite'}")
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    yield SqlConsoleMessages(engine)
    await engine.dispose()


async def say(messages: ConsoleMessages, text: str, thread: int | None = None, channel: str = "help") -> int:
    return await messages.append(channel, thread, "person", {"text": text}, f"{channel}:{text}", AT)


async def test_a_message_comes_back_as_it_was_appended(messages: ConsoleMessages) -> None:
    payload = {"text": "naïve ☃ \u2028 line", "numbers": [1, 0.5, None, True], "nested": {"a": []}}
    message_id = await messages.append("help", None, "answer", payload, "intent", AT)
    message = await messages.get(message_id)
    assert message is not None
    assert (message.id, message.channel, message.thread, message.kind) == (message_id, "help", None, "answer")
    assert message.payload == payload
    assert message.at == AT


async def test_an_unknown_message_is_none(messages: ConsoleMessages) -> None:
    assert await messages.get(1) is None


async def test_an_intent_is_appended_once(messages: ConsoleMessages) -> None:
    first = await messages.append("help", None, "notice", {"text": "first"}, "intent", AT)
    again = await messages.append("help", None, "notice", {"text": "again"}, "intent", AT)
    assert again == first
    assert [m.payload for m in await messages.page("help", MANY)] == [{"text": "first"}]


async def test_a_message_is_found_by_its_intent_alone(messages: ConsoleMessages) -> None:
    message_id = await say(messages, "one")
    found = await messages.find("help:one")
    assert found is not None
    assert found.id == message_id
    assert await messages.find("one") is None


async def test_ids_and_revisions_ascend(messages: ConsoleMessages) -> None:
    first, second = await say(messages, "one"), await say(messages, "two", channel="incidents")
    await messages.replace(first, "person", {"text": "changed"})
    third = await say(messages, "three")
    assert first < second < third
    revisions = {m.id: m.revision for channel in ("help", "incidents") for m in await messages.page(channel, MANY)}
    assert revisions[second] < revisions[first] < revisions[third]


async def test_a_replaced_message_says_the_new_thing_in_the_old_place(messages: ConsoleMessages) -> None:
    root = await say(messages, "root")
    reply = await say(messages, "reply", root)
    await messages.replace(reply, "notice", {"text": "replaced"})
    message = await messages.get(reply)
    assert message is not None
    assert (message.kind, message.payload, message.thread, message.at) == ("notice", {"text": "replaced"}, root, AT)


async def test_what_is_not_there_cannot_be_replaced(messages: ConsoleMessages) -> None:
    with pytest.raises(MessageNotFound):
        await messages.replace(7, "notice", {})


async def test_a_page_holds_the_latest_roots_with_all_their_replies(messages: ConsoleMessages) -> None:
    old, middle, new = [await say(messages, text) for text in ("old", "middle", "new")]
    await say(messages, "reply to old", old)
    reply = await say(messages, "reply to middle", middle)
    await say(messages, "elsewhere", channel="incidents")
    assert [m.id for m in await messages.page("help", 2)] == [middle, new, reply]


async def test_a_page_can_end_before_a_message(messages: ConsoleMessages) -> None:
    first, second, third = [await say(messages, text) for text in ("one", "two", "three")]
    assert [m.id for m in await messages.page("help", MANY, before=third)] == [first, second]
    assert [m.id for m in await messages.page("help", 1, before=third)] == [second]
    assert await messages.page("help", MANY, before=first) == []


async def test_changes_are_what_was_appended_or_replaced_since(messages: ConsoleMessages) -> None:
    first, second = await say(messages, "one"), await say(messages, "two")
    seen = max(m.revision for m in await messages.page("help", MANY))
    assert await messages.changed("help", seen, MANY) == []
    await say(messages, "elsewhere", channel="incidents")
    third = await say(messages, "three")
    await messages.replace(first, "person", {"text": "changed"})
    assert [m.id for m in await messages.changed("help", seen, MANY)] == [third, first]
    assert [m.id for m in await messages.changed("help", seen, 1)] == [third]
    assert [m.id for m in await messages.changed("help", 0, MANY)] == [second, third, first]
