"""The door of the webhooks."""

from __future__ import annotations

from base64 import b64encode

import aiohttp
import pytest

from tests.cases import every_case
from tests.scenario.application import TOKEN, RunningBot
from tests.scenario.webhooks import alert, delivery

pytestmark = pytest.mark.asyncio(loop_scope="session")


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


async def status(bot: RunningBot, authorization: str | None) -> int:
    """How the bot answers a webhook with this credential, sent by somebody who has nothing else."""
    headers = {} if authorization is None else {"Authorization": authorization}
    async with (
        aiohttp.ClientSession() as stranger,
        stranger.post(
            f"{bot.address}webhooks/alertmanager", json=delivery("secret", alert("secret")), headers=headers
        ) as response,
    ):
        if response.status == 401:
            assert "PLUMBLINE_WEBHOOK_SECRET" in (await response.json())["error"]
        return response.status


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic("alertmanager", TOKEN)])
async def test_a_webhook_that_knows_the_secret_is_taken(bot: RunningBot, authorization: str) -> None:
    assert await status(bot, authorization) == 202


@every_case(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        f"Token {TOKEN}",
        basic(TOKEN, "wrong"),
        "Basic !!!",
        "Basic é",
        "Bearer é",
    ],
)
async def test_a_webhook_that_does_not_know_the_secret_is_refused(bot: RunningBot, authorization: str | None) -> None:
    assert await status(bot, authorization) == 401


async def test_a_stranger_is_not_told_which_webhooks_there_are(bot: RunningBot) -> None:
    async with aiohttp.ClientSession() as stranger, stranger.post(f"{bot.address}webhooks/fax", json={}) as response:
        assert response.status == 401
