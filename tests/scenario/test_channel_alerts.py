"""Alerts that other bots post in a channel: answered in their threads, from the event to the message in Slack."""

from __future__ import annotations

from typing import Any

import pytest

from core.model.incident import Incident, IncidentState
from tests.fakes import slack_payloads
from tests.fakes.slack_api import BOT_USER
from tests.scenario import webhooks
from tests.scenario.alert_bots import ALERTS, OTHER, bell
from tests.scenario.application import RunningBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def incidents(bot: RunningBot) -> list[Incident]:
    async with bot.store.transaction() as transaction:
        return await transaction.incidents.recent(500)


async def _webhook(bot: RunningBot, body: dict[str, Any]) -> None:
    async with bot.session.post(f"{bot.address}webhooks/alertmanager", json=body) as response:
        assert response.status == 202, await response.text()


async def of_title(bot: RunningBot, title: str) -> list[Incident]:
    return [each for each in await incidents(bot) if title in each.title and each.part_of is None]


def ours(bot: RunningBot, channel: str) -> list[dict[str, Any]]:
    return [each for each in bot.slack.messages if each["channel"] == channel and each.get("user") == BOT_USER]


async def test_an_alert_is_answered_in_its_thread_edited_in_place_and_its_details_stay_there(bot: RunningBot) -> None:
    ts = await bot.slack.posts(bot.address, ALERTS, **bell("Firing: TillSlow", Severity="critical", Service="till"))
    await bot.slack.until(lambda: len(bot.slack.replies(ts)) > 1)
    first, _ = bot.slack.replies(ts)
    assert "TillSlow" in first["text"]
    await bot.slack.posts(bot.address, ALERTS, ts=ts, **bell("Resolved: TillSlow", "2eb886", Service="till"))
    await bot.slack.until(lambda: "esolved" in str(bot.slack.message(ALERTS, first["ts"])["blocks"]))
    (incident,) = await of_title(bot, "TillSlow")
    assert incident.state is IncidentState.RESOLVED
    assert not [each for each in ours(bot, ALERTS) if "thread_ts" not in each], "nothing outside threads"


async def test_a_reply_of_the_sender_counts_and_that_of_another_bot_does_not(bot: RunningBot) -> None:
    ts = await bot.slack.posts(bot.address, ALERTS, **bell("Firing: ShelfDown", Severity="high", Service="shelf"))
    await bot.slack.until(lambda: bot.slack.replies(ts))
    other = {"bot_id": "B0ECHO", "app_id": "A0ECHO", "thread_ts": ts, "text": "ShelfDown is resolved"}
    await bot.slack.posts(bot.address, ALERTS, **other)
    assert [each.state for each in await of_title(bot, "ShelfDown")] == [IncidentState.OPEN]
    await bot.slack.posts(bot.address, ALERTS, thread_ts=ts, text="Ines marked it as resolved")
    await bot.slack.posts(bot.address, ALERTS, thread_ts=ts, text="Ines added a note: the shelf was full")
    assert [each.alerts[0].name for each in await of_title(bot, "ShelfDown")] == ["ShelfDown"]
    assert [each.state for each in await of_title(bot, "ShelfDown")] == [IncidentState.RESOLVED]


async def test_chatter_people_and_channels_that_are_not_adopted_get_no_answer(bot: RunningBot) -> None:
    before = len(await incidents(bot))
    for fields in (
        {"text": "Now on call for *Till*: Ines"},
        {"text": "*Last week:* 41 alerts, 38 resolved."},
        bell("Pull request closed: drop the fallback", "cb2431"),
        bell("Pipeline #8 has failed", Branch="main"),
    ):
        await bot.slack.posts(bot.address, ALERTS, **fields)
    await bot.slack.posts(bot.address, OTHER, **bell("Firing: TillSlow", Severity="critical", Service="till"))
    pasted = slack_payloads.message("[FIRING:1] TillSlow", channel=ALERTS, ts="1773480700.1")
    await bot.slack.delivers(bot.address, pasted)
    assert len(await incidents(bot)) == before


async def test_an_unclear_message_is_asked_about_once_and_the_choice_holds(bot: RunningBot) -> None:
    cron = {"bot_id": "B0CRON", "app_id": "A0CRON", "username": "cron"}
    ts = await bot.slack.posts(bot.address, ALERTS, text="backup.sh: rsync ended with code 23", **cron)
    await bot.slack.until(lambda: bot.slack.replies(ts))
    again = await bot.slack.posts(bot.address, ALERTS, text="backup.sh: rsync ended with code 12", **cron)
    (asked,) = bot.slack.replies(ts)
    (yes, _) = [each for block in asked["blocks"] if block["type"] == "actions" for each in block["elements"]]
    await bot.slack.presses(bot.address, yes, asked)
    await bot.slack.until(lambda: any("backup.sh" in each["text"] for each in bot.slack.replies(ts)[1:]))
    third = await bot.slack.posts(bot.address, ALERTS, text="backup.sh: rsync ended with code 11", **cron)
    await bot.slack.until(lambda: bot.slack.replies(third))
    assert not bot.slack.replies(again), "one question for each sender and shape"


@pytest.mark.parametrize("is_webhook_first", [True, False])
async def test_the_webhook_and_the_message_of_one_alert_are_one_incident_in_the_thread(
    bot: RunningBot, is_webhook_first: bool
) -> None:
    name = f"OvenCold{is_webhook_first}"
    sent = webhooks.delivery(name, webhooks.alert(name, alertname=name, audience="bots", service="oven"))
    message = bell(f"[FIRING:1] {name}", Severity="critical", Service="oven")
    if is_webhook_first:
        await _webhook(bot, sent)
        ts = await bot.slack.posts(bot.address, ALERTS, **message)
    else:
        ts = await bot.slack.posts(bot.address, ALERTS, **message)
        await bot.slack.until(lambda: bot.slack.replies(ts))
        await _webhook(bot, sent)
    await bot.slack.until(lambda: len(bot.slack.replies(ts)) > 1)
    (incident,) = [each for each in await incidents(bot) if name in {alert.name for alert in each.alerts}]
    assert incident.source == "alertmanager"
    assert not [each for each in ours(bot, ALERTS) if "thread_ts" not in each]


async def test_an_invitation_is_a_dry_run_of_one_message_and_an_example(bot: RunningBot) -> None:
    for number in range(3):
        message = bell(f"Firing: Lamp{number} is out", Severity="warning", Service="till")
        await bot.slack.posts(bot.address, OTHER, username="Bell", **message)
    joined = slack_payloads.message("joined", channel=OTHER, ts="1773480800.1", user=BOT_USER, subtype="channel_join")
    for _ in range(2):
        await bot.slack.delivers(bot.address, joined)
    await bot.slack.until(lambda: len(ours(bot, OTHER)) > 1)
    offer, example = ours(bot, OTHER)
    assert "Bell 3" in offer["text"], offer["text"]
    assert example["thread_ts"] == offer["ts"]
    buttons = [each for block in offer["blocks"] if block["type"] == "actions" for each in block["elements"]]
    await bot.slack.presses(bot.address, buttons[0], offer)
    await bot.slack.until(lambda: len(ours(bot, OTHER)) > 2)
    ts = await bot.slack.posts(bot.address, OTHER, **bell("Firing: Lamp9 is out", Severity="warning", Service="till"))
    await bot.slack.until(lambda: bot.slack.replies(ts))
    assert [each for each in ours(bot, OTHER) if "thread_ts" not in each] == [offer]


async def test_bots_that_answer_bots_and_another_plumbline_get_one_reply_each(bot: RunningBot) -> None:
    ts = await bot.slack.posts(bot.address, ALERTS, **bell("Firing: KilnHot", Severity="high", Service="kiln"))
    await bot.slack.until(lambda: len(bot.slack.replies(ts)) > 1)
    told = [each for each in bot.slack.replies(ts) if each.get("user") == BOT_USER]
    echo, other = {"bot_id": "B0ECHO", "app_id": "A0ECHO"}, {"bot_id": "B0TWIN", "app_id": "A0TWIN", "user": "U0TWIN"}
    copied = {"text": told[0]["text"], "blocks": told[0]["blocks"]}
    await bot.slack.posts(bot.address, ALERTS, thread_ts=ts, **copied, **other)  # another Plumbline answers it too
    top = await bot.slack.posts(bot.address, ALERTS, **copied, **other)
    in_thread = await bot.slack.posts(bot.address, ALERTS, thread_ts=ts, text=told[0]["text"], **echo)
    twin = await bot.slack.posts(
        bot.address, ALERTS, **bell("Firing: KilnHot", Severity="high", Service="kiln"), **echo
    )
    await bot.slack.until(lambda: bot.slack.replies(twin))
    for reply in bot.slack.replies(twin):  # and so on
        await bot.slack.posts(bot.address, ALERTS, thread_ts=twin, text=reply["text"], **echo)
        await bot.slack.posts(bot.address, ALERTS, text=reply["text"], **echo)
    after = await bot.slack.posts(bot.address, ALERTS, **bell("Firing: KilnCold", Severity="high", Service="kiln"))
    await bot.slack.until(lambda: bot.slack.replies(after))
    mine = [each for each in bot.slack.replies(ts) if each.get("user") == BOT_USER]
    assert mine == told, in_thread
    assert not bot.slack.replies(top)
    assert len([each for each in bot.slack.replies(twin) if each.get("user") == BOT_USER]) == 1
    assert len(await of_title(bot, "KilnHot")) == 1
