"""Opens what systems are opened with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession

from adapters.section import Host
from bot.config.settings import Settings
from tests.fakes.clock import FakeClock


@asynccontextmanager
async def opened_host(**variables: object) -> AsyncIterator[Host]:
    """A process with these environment variables and no others that Settings reads."""
    async with ClientSession() as session:
        yield Host(Settings.model_validate(variables), session, FakeClock())
