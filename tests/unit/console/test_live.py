"""Waking the open pages."""

from __future__ import annotations

import asyncio

import pytest

from adapters.console import messages
from adapters.console.messages import Live
from core.model.errors import Unavailable

LONG = 60.0  # seconds; no test waits so long unless it fails


async def test_a_reader_is_woken_by_news() -> None:
    hub = Live()
    with hub.reader() as reader:
        waiting = asyncio.create_task(reader.news(LONG))
        await asyncio.sleep(0)
        assert not waiting.done()
        hub.notify()
        await waiting


async def test_news_that_came_while_a_reader_was_busy_wake_it_once() -> None:
    hub = Live()
    with hub.reader() as reader:
        hub.notify()
        hub.notify()
        await reader.news(LONG)
        waiting = asyncio.create_task(reader.news(LONG))
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()


async def test_a_reader_without_news_loses_patience() -> None:
    with Live().reader() as reader:
        await reader.news(0.0)
        assert not reader.closed


async def test_closing_lets_every_reader_go() -> None:
    hub = Live()
    with hub.reader() as first, hub.reader() as second:
        waiting = [asyncio.create_task(reader.news(LONG)) for reader in (first, second)]
        await asyncio.sleep(0)
        hub.close()
        await asyncio.gather(*waiting)
        assert first.closed
        assert second.closed


async def test_too_many_readers_are_asked_to_come_back_and_a_place_becomes_free_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "MAX_READERS", 1)
    hub = Live()
    with hub.reader(), pytest.raises(Unavailable), hub.reader():
        pass
    with hub.reader() as reader:
        assert not reader.closed
