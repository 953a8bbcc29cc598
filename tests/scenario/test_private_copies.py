"""An incident stands in a public channel and in a private one, or where a partner reads: what each is shown of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from core.model.incident import Incident, IncidentState, Stage
from tests.fakes.slack_api import PRIVATE_CHANNEL, SHARED_CHANNEL
from tests.scenario.application import RunningBot
from tests.scenario.slack import TIMEOUT
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = "C0PAGES"
REMARK, OUTCOME = "zqremark", "zqoutcome"


def shown_in(bot: RunningBot, channel: str) -> str:
    """Everything that the bot shows in a Slack channel now."""
    return json.dumps([each for each in bot.slack.messages if each["channel"] == channel and "bot_id" in each])


async def root_in(bot: RunningBot, channel: str, title: str) -> str:
    """The message of the latest incident in a channel, once its details stand in its thread."""

    def roots() -> list[dict[str, Any]]:
        own = [each for each in bot.slack.messages if each["channel"] == channel and "thread_ts" not in each]
        return [each for each in own if title in json.dumps(each) and bot.slack.replies(each["ts"])]

    await bot.slack.until(roots)
    return roots()[-1]["ts"]


async def stored(bot: RunningBot, incident_id: str, reached: Callable[[Incident], object]) -> Incident:
    """The incident once this is true of it."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            async with bot.store.transaction() as transaction:
                incident = await transaction.incidents.get(incident_id)
            if incident is not None and reached(incident):
                return incident
            await asyncio.sleep(0.05)


async def opened(bot: RunningBot, group: str, audience: str = "") -> Incident:
    incident_id = await bot.deliver(group, alert(group, audience=audience))
    assert incident_id is not None
    return await stored(bot, incident_id, lambda incident: incident.stage is Stage.DONE)


async def test_what_is_said_below_a_private_copy_stays_there(bot: RunningBot) -> None:
    incident_id = (await opened(bot, "split", audience="split")).id
    private = await root_in(bot, PRIVATE_CHANNEL, "till p99")
    public = await root_in(bot, PAGES, "till p99")
    said = f"The root cause is cfg-17, {REMARK}"
    await bot.slack.asks(bot.address, said, channel=PRIVATE_CHANNEL, thread_ts=private)

    await stored(
        bot,
        incident_id,
        lambda incident: incident.findings.explanation and incident.findings.explanation.rechecked_after,
    )
    await bot.slack.until(lambda: REMARK in shown_in(bot, PRIVATE_CHANNEL))
    await bot.slack.asks(
        bot.address,
        f"root cause: a smaller pool {OUTCOME}; fix: restore it {OUTCOME}",
        channel=PRIVATE_CHANNEL,
        thread_ts=private,
    )
    await stored(bot, incident_id, lambda incident: incident.resolution)
    await bot.deliver("split", alert("split", audience="split", resolved=True))
    await stored(bot, incident_id, lambda incident: incident.state is IncidentState.RESOLVED)
    for question in ("what is the cause?", "postmortem"):
        before = len(bot.slack.replies(public))
        await bot.slack.asks(bot.address, question, channel=PAGES, thread_ts=public)
        await bot.slack.until(lambda before=before: len(bot.slack.replies(public)) > before + 1)
    assert REMARK not in shown_in(bot, PAGES)
    assert OUTCOME not in shown_in(bot, PAGES)

    assert OUTCOME not in repr(await opened(bot, "later"))


async def test_a_partner_is_shown_no_runbook_and_no_past_incident_of_the_members(bot: RunningBot) -> None:
    assert (await opened(bot, "inside")).findings.precedents, "members are shown past incidents"
    await opened(bot, "partners", audience="partners")
    await root_in(bot, SHARED_CHANNEL, "till p99")
    assert "maximum pool size" in shown_in(bot, SHARED_CHANNEL) or "cfg-17" in shown_in(bot, SHARED_CHANNEL)
    assert "OLD-" not in shown_in(bot, SHARED_CHANNEL)
    assert "restore the old value" not in shown_in(bot, SHARED_CHANNEL)
