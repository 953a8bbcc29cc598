"""Five bots post 300 messages in one channel: alerts of ten shapes, updates, chatter, and some alerts as webhooks too."""

from __future__ import annotations

import pytest

from core.model.incident import IncidentState
from tests.scenario.alert_bots import ENDED, GAUGES, assert_all_is_in_threads, root, send, sendings
from tests.scenario.application import RunningBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.external  # a minute
async def test_300_messages_of_five_bots_are_one_incident_each_and_nothing_is_said_outside_threads(
    bot: RunningBot,
) -> None:
    sent = list(sendings())
    assert sum(not each.webhook for each in sent) == 300
    for each in sent:
        await send(each, bot.slack, bot.session, bot.address)
    async with bot.store.transaction() as transaction:
        every = await transaction.incidents.recent(1000)
    incidents = [each for each in every if "Gauge" in str(each.alerts)]
    names = {number: f"Gauge{number}" for number in range(GAUGES)}
    of = {
        number: [each for each in incidents if name in {*each.title.split(), *each.alerts[0].name.split()}]
        for number, name in names.items()
    }
    assert len(incidents) == GAUGES
    assert [names[number] for number, each in of.items() if len(each) != 1] == []
    over = {number for number, (each,) in of.items() if each.state is IncidentState.RESOLVED}
    assert over == {number for number in ENDED if number % 6}, "a webhook's alert ends with its webhook"
    await bot.slack.until(lambda: all(bot.slack.replies(root(number)) for number in of))
    assert_all_is_in_threads(bot.slack)
