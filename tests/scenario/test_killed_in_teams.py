"""In Teams too, a bot that is killed between a post and its record says nothing twice, where Graph may be asked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from adapters.teams.activity import THREAD_SEPARATOR
from tests.fakes.adaptive_card import texts
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_connector import CHANNEL, MENTION
from tests.scenario.home import alarm
from tests.scenario.mortal_bot import INCIDENT_STEPS, Death, Moment
from tests.scenario.teams_home import TeamsHome, is_added

ROOT = "1700000000001"
ALERT, DETAILS = (
    Death(Moment.SAID, step) for step in (1, len(INCIDENT_STEPS))
)  # the steps of an incident's workflow that post


@pytest.mark.external  # a life or a death takes about a second
@pytest.mark.parametrize(("consented", "deaths"), [(True, [ALERT]), (True, [DETAILS]), (False, [ALERT])])
async def test_an_incident_is_told_once_where_somebody_consented_and_else_once_more(
    teams_home: TeamsHome, consented: bool, deaths: list[Death]
) -> None:
    teams_home.teams.graph.consented = consented
    async with teams_home.life() as bot:
        await is_added(teams_home, await bot.address())
        await bot.finishes("answer")  # the greeting, of whose post none of these deaths is to come
        await bot.stop()
    async with teams_home.life(Death(Moment.ASLEEP)) as bot:
        assert (await alarm(await bot.address()))[0] == 202
        bot.kill()
    for death in deaths:
        async with teams_home.life(death) as bot:
            await bot.dies()
    async with teams_home.life() as bot:
        await bot.finishes("details")
        await bot.stop()
    *before, root = teams_home.said(CHANNEL)
    assert len(before) == (0 if consented else 1)
    assert "Payments" in "\n".join(texts(root.card))
    assert len(teams_home.said(f"{CHANNEL}{THREAD_SEPARATOR}{root.id}")) == 1
    assert ("ChannelMessage.Read.Group" in teams_home.log.read_text()) is not consented


@pytest.mark.external  # lives and deaths take about a second
async def test_a_question_in_the_middle_of_a_thread_is_understood_and_answered_once(teams_home: TeamsHome) -> None:
    teams_home.teams.graph.consented = True
    at = graph_time(datetime.fromtimestamp(int(ROOT) / 1000, UTC))
    teams_home.teams.graph.post(CHANNEL, ROOT, "<p>How do I roll back a canary?</p>", createdDateTime=at)
    async with teams_home.life(Death(Moment.ASLEEP)) as bot:
        await teams_home.deliver(await bot.address(), text=f"{MENTION} and how long does that take?")
        bot.kill()
    async with teams_home.life(Death(Moment.SAID, 1)) as bot:
        await bot.dies()
    async with teams_home.life() as bot:
        await bot.finishes("answer")
        await bot.stop()
    (answer,) = teams_home.said(f"{CHANNEL}{THREAD_SEPARATOR}{ROOT}")
    assert "90 seconds" in "\n".join(texts(answer.card))
