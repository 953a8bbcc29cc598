"""What is said, edited and fires is told to an open page at once, and nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from bs4 import BeautifulSoup

from adapters.console import screens
from core.model.conversation import MessageReference
from core.model.incident import Stage
from core.model.messages import IncidentMessage, Notice
from tests import samples as messages
from tests.fakes.console_site import Site, console_site
from tests.scenario.console import HELP, INCIDENTS, TIMEOUT, http, page, send, site

__all__ = ["http", "site"]  # the fixtures


class Page:
    """The server-sent events of an open page."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self, name: str = "message") -> tuple[str, BeautifulSoup]:
        """The id and the content of the next event of that name. Raises EOFError when the server has hung up."""
        while True:
            block = (await self._response.content.readuntil(b"\n\n")).decode()
            if not block:
                raise EOFError(name)
            fields = [line.partition(": ") for line in block.splitlines()]
            event = {key: value for key, _, value in fields if key in ("event", "id")}
            if event.get("event") == name:
                data = "\n".join(value for key, _, value in fields if key == "data")
                return event.get("id", ""), BeautifulSoup(data, "html.parser")


@asynccontextmanager
async def opened(http: aiohttp.ClientSession, channel: str = "help", last_event_id: str = "") -> AsyncIterator[Page]:
    """Load a page and connect as its script does."""
    columns = (await page(http, f"/?channel={channel}")).select_one("[sse-connect]")
    assert columns is not None
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    async with http.get(str(columns["sse-connect"]), headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield Page(response)


def swaps(html: BeautifulSoup) -> list[str]:
    """Where each part of an event goes."""
    return [str(part["hx-swap-oob"]) for part in html.select("[hx-swap-oob]")]


async def test_what_is_said_arrives_on_an_open_page(site: Site, http: aiohttp.ClientSession) -> None:
    async with opened(http) as opened_page:
        await send(http, "/console/messages", channel="help", text="hello")
        _, html = await opened_page.next()
        assert swaps(html) == ["beforeend:#messages"]
        assert html.select(".thread#root-1 #m-1 .said")
        await site.post(replace(HELP, thread="1"), Notice("good morning"))
        _, html = await opened_page.next()
        assert swaps(html) == ["beforeend:#t-1"]
        assert html.select("#m-2 .notice")[0].get_text(strip=True) == "good morning"


async def test_an_edit_replaces_the_message_where_it_stands(site: Site, http: aiohttp.ClientSession) -> None:
    reference = await site.post(INCIDENTS, IncidentMessage(messages.incident()))
    async with opened(http, "incidents") as opened_page:
        await site.messenger.edit(
            reference, IncidentMessage(messages.incident(stage=Stage.EXPLAINING, owner=messages.owner()))
        )
        _, html = await opened_page.next()
        assert swaps(html) == ["true"]
        assert html.select("article#m-1")
        assert "Payments" in html.get_text()


async def test_a_page_that_was_away_is_told_what_it_missed_and_nothing_twice(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with opened(http) as opened_page:
        await site.post(HELP, Notice("seen"))
        event_id, _ = await opened_page.next()
        await site.post(HELP, Notice("missed"))
        await site.messenger.edit(MessageReference(HELP, "1"), Notice("changed"))
    async with opened(http, last_event_id=event_id) as again:
        _, html = await again.next()
        assert swaps(html) == ["true", "beforeend:#messages"]
        assert [notice.get_text(strip=True) for notice in html.select(".notice")] == ["changed", "missed"]


async def test_a_page_is_not_told_what_it_was_loaded_with(site: Site, http: aiohttp.ClientSession) -> None:
    await site.post(HELP, Notice("on the page already"))
    async with opened(http) as opened_page:
        await site.post(HELP, Notice("new"))
        _, html = await opened_page.next()
        assert [notice.get_text(strip=True) for notice in html.select(".notice")] == ["new"]


async def test_a_page_that_missed_too_much_is_loaded_afresh(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens, "MAX_CHANGES", 3)
    for number in range(5):
        await site.post(HELP, Notice(f"notice {number}"))
    async with http.get("/console/live?channel=help&after=0.0") as response:
        opened_page = Page(response)
        event_id, _ = await opened_page.next("reload")
        assert event_id == "5.5"
        await site.post(HELP, Notice("after it"))
        _, html = await opened_page.next()
        assert [notice.get_text(strip=True) for notice in html.select(".notice")] == ["after it"]


async def test_open_incidents_are_listed_as_they_come_and_go(site: Site, http: aiohttp.ClientSession) -> None:
    async with opened(http) as opened_page:
        site.happen(messages.incident())
        _, html = await opened_page.next("incidents")
        assert "payment-gateway p99 latency" in html.get_text()
        site.happen(replace(messages.resolved_incident(), revision=2))
        _, html = await opened_page.next("incidents")
        assert html.get_text(strip=True) == "No open incidents."


async def test_an_open_page_does_not_hold_up_the_end_of_the_process() -> None:
    async with console_site() as site, aiohttp.ClientSession(site.address) as http, opened(http) as opened_page:
        site.live.close()
        async with asyncio.timeout(TIMEOUT):
            with pytest.raises(EOFError):
                await opened_page.next("never")
