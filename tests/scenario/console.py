"""A browser at the local page: what it loads, sends and is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest
from bs4 import BeautifulSoup

from core.model.conversation import MessageReference, Place, Platform
from tests.fakes.console_site import Site, console_site

HELP = Place(Platform.CONSOLE, "help")
INCIDENTS = Place(Platform.CONSOLE, "incidents")
LIVE = {"HX-Request": "true"}
TIMEOUT = 10.0  # seconds until what is waited for must have come


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with console_site() as served:
        yield served


@pytest.fixture
async def http(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(site.address, timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
        yield session


async def page(http: aiohttp.ClientSession, path: str) -> BeautifulSoup:
    async with http.get(path) as response:
        assert response.status == 200, await response.text()
        return BeautifulSoup(await response.text(), "html.parser")


async def send(http: aiohttp.ClientSession, path: str, **form: str) -> str:
    async with http.post(path, data=form, headers=LIVE) as response:
        assert response.status in (200, 204), await response.text()
        return await response.text()


def thread_of(reference: MessageReference) -> Place:
    return replace(reference.place, thread=reference.message_id)
