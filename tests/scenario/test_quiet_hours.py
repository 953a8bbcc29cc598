"""A channel that wants to be left alone: what can wait is told when its quiet hours end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.ports import Task
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message, incidents, is_done, of_kind
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")


def notice(messages: list[Message], words: str) -> Message | None:
    said = [each for each in of_kind(messages, "notice") if words in str(each["payload"])]
    return said[-1] if said else None


async def set_quiet(bot: RunningBot, hours: str, told: str) -> None:
    await bot.ask("incidents", f"quiet {hours}")
    await bot.until("incidents", lambda messages: notice(messages, told))


async def end_of_quiet_hours(bot: RunningBot, key: str) -> None:
    """What the schedule asks for every five minutes."""
    async with bot.store.transaction() as transaction:
        await transaction.tasks.add(Task(f"end-quiet-hours:{key}", "end_quiet_hours", "end_quiet_hours", {}))


async def test_a_warning_at_night_waits_and_a_critical_alert_does_not(bot: RunningBot) -> None:
    now = datetime.now(UTC)
    start, end = (now + timedelta(hours=hours) for hours in (-1, 2))
    await set_quiet(bot, f"{start:%H:%M}-{end:%H:%M} UTC", f"{end:%H:%M} UTC")
    try:
        waits = await bot.deliver("quiet-warning", alert("quiet-1", service="mail", severity="warning"))
        calls = await bot.deliver("quiet-critical", alert("quiet-2", service="chart", severity="critical"))
        assert waits is not None
        assert calls is not None
        await bot.incident(calls, is_done)
        async with bot.store.transaction() as transaction:
            held = {each.incident_id for each in await transaction.held_incidents.waiting()}
        assert waits in held
        assert calls not in held
        assert waits not in [incident["id"] for incident in incidents(await bot.messages("incidents"))]
    finally:
        await set_quiet(bot, "off", "Quiet hours: none")

    await end_of_quiet_hours(bot, "one")
    await bot.until("incidents", lambda messages: notice(messages, "While it was quiet here"))
    await bot.incident(waits, is_done)
    async with bot.store.transaction() as transaction:
        assert waits not in {each.incident_id for each in await transaction.held_incidents.waiting()}
