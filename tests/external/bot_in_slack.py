"""A Slack workspace with the whole bot in it, for all tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.external.slack_emulator import ARTIFACTS, BOT_USER, SlackWorkspace, slack_workspace
from tests.fakes.block_kit import texts

QUESTION = f"<@{BOT_USER}> how do I roll back a canary?"
over_http = pytest.mark.parametrize("workspace", ["http"], indirect=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["http", "socket mode"])
async def workspace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SlackWorkspace]:
    """One for all tests: each speaks in a thread or a channel of its own."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("slack")
    async with slack_workspace(folder, socket_mode=request.param == "socket mode") as started:
        yield started
        assert started.proxy.refused == [], "Slack would have refused a message"
    log = (folder / "bot.log").read_text()
    assert "Traceback" not in log, log


def shown(message: dict[str, Any]) -> str:
    return "\n".join(texts(message.get("blocks") or [])) or message["text"]


async def incident(workspace: SlackWorkspace, name: str) -> dict[str, Any]:
    """The one message of the incident whose text holds this name, once the work on it is done."""

    def done(said: list[dict[str, Any]]) -> bool:
        return any(name in shown(each) and "Right cause" in shown(each) for each in said)

    (message,) = [each for each in await workspace.until(done, "C0INC") if name in shown(each)]
    return message
