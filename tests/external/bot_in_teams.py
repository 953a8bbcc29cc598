"""The Agents Playground with the whole bot in it, for all tests of a module, through both SDKs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.external.slack_emulator import HERE
from tests.external.teams_playground import Playground, teams_playground

LIVE = HERE.parent.parent / "bot" / "sample_company" / "live"
QUESTION = "how do I roll back a canary?"


@pytest.fixture(params=["builtin", "botbuilder"], scope="module")
def sdk(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(sdk: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Playground]:
    """Once: the bot needs a while to read the company's documents."""
    folder = tmp_path_factory.mktemp(sdk)
    async with teams_playground(folder, sdk) as started:
        yield started
    log = (folder / "bot.log").read_text()
    assert "Traceback" not in log, log


@pytest.fixture
def playground(started: Playground) -> Playground:
    """With nothing said yet, as far as this test sees."""
    started.shown.clear()
    return started


async def fire(playground: Playground, incident: str) -> None:
    alert = json.loads((LIVE / incident / "alert.json").read_text())
    async with playground.session.post(f"{playground.bot}/webhooks/alertmanager", json=alert) as response:
        assert response.status == 202, await response.text()
