"""An incident resolves: its thread is told where the draft of the postmortem is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.scenario.application import RunningBot
from tests.scenario.bot_client import is_done, of_kind
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_thread_of_a_resolved_incident_leads_to_its_postmortem(bot: RunningBot) -> None:
    began = {"startsAt": (datetime.now(UTC) - timedelta(minutes=9)).isoformat()}
    incident_id = await bot.deliver("postmortem", alert("p1") | began)
    assert incident_id is not None
    await bot.incident(incident_id, is_done)
    assert not [each for each in of_kind(await bot.messages("incidents"), "notice") if incident_id in str(each)]
    await bot.deliver("postmortem", alert("p1", resolved=True) | began)
    page = f"/incidents/{incident_id}/postmortem"
    (told,) = await bot.until(
        "incidents",
        lambda messages: [each for each in of_kind(messages, "notice") if each["payload"]["text"].endswith(page)],
    )
    shown = of_kind(await bot.messages("incidents"), "incident")
    (root,) = [each for each in shown if each["payload"]["incident"]["id"] == incident_id]
    assert told["thread"] == root["id"]
