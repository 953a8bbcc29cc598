"""One running bot for all scenarios that do not need one of their own: its start is most of their time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.scenario.application import RunningBot, running_bot


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningBot]:
    async with running_bot(tmp_path_factory.mktemp("bot")) as client:
        yield client
