"""A handover and a digest, posted by the schedule: a channel is told what everybody there may read, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.work.schedules import DIGEST, HANDOVER
from core.ports import Task
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import is_done, of_kind
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")
SLACK_CHANNELS = {"pages": "C0PAGES", "partners": "C0SHARED"}


async def scheduled(bot: RunningBot, workflow: str, channel: str) -> str:
    """What the schedule asks for, and the text of what the channel then got in Slack."""
    intent = f"{workflow}:{channel}:{datetime.now(UTC):%H:%M:%S.%f}"
    since = datetime.now(UTC) - timedelta(hours=1)
    before = len(bot.slack.messages)
    async with bot.store.transaction() as transaction:
        await transaction.tasks.add(Task(intent, workflow, channel, {"intent": intent, "since": since.isoformat()}))

    def posted() -> list[dict[str, Any]]:
        new = bot.slack.messages[before:]
        begin = "Handover." if workflow == HANDOVER else "Digest"
        return [each for each in new if each["channel"] == SLACK_CHANNELS[channel] and begin in str(each)]

    await bot.slack.until(posted)
    return str(posted()[0]["blocks"])


async def test_a_handover_tells_what_is_open_who_is_on_call_and_what_changed(bot: RunningBot) -> None:
    incident_id = await bot.deliver("handover-1", alert("handover-1"))
    assert incident_id is not None
    await bot.incident(incident_id, is_done)
    text = await scheduled(bot, HANDOVER, "pages")
    assert "Open:" in text
    assert "till p99 latency above 2 s" in text
    assert "Payments: Ada Quist" in text
    assert "configuration of till by ada: Lower the connection pool of the till from 12 to 4" in text


async def test_a_channel_with_outsiders_is_handed_over_neither_rotas_nor_changes_nor_incidents_of_others(
    bot: RunningBot,
) -> None:
    incident_id = await bot.deliver("handover-2", alert("handover-2"))
    assert incident_id is not None
    await bot.incident(incident_id, is_done)
    text = await scheduled(bot, HANDOVER, "partners")
    assert "p99 latency" not in text
    assert "Ada Quist" not in text
    assert "connection pool" not in text


async def test_a_digest_names_the_pages_that_are_missing_but_not_what_was_asked_in_private(bot: RunningBot) -> None:
    incident_id = await bot.deliver("digest-1", alert("digest-1"))
    assert incident_id is not None
    await bot.incident(incident_id, is_done)
    asked = {
        "help": "How do I refill the toner of the printer in Oslo?",
        "vault": "Which florist sends the wreaths for the founder?",
    }
    for channel, question in asked.items():
        before = len(of_kind(await bot.messages(channel), "answer"))
        await bot.ask(channel, question)
        await bot.until(channel, lambda messages, known=before: len(of_kind(messages, "answer")) > known)
    text = await scheduled(bot, DIGEST, "pages")
    assert "Missing pages" in text
    assert "refill the toner" in text
    assert "wreaths" not in text
    assert "By owner:" in text
    assert "Median time to owner:" in text
