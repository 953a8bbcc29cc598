"""An alert arrives: what stands in the channel, from the raw alert to the last word."""

from __future__ import annotations

import asyncio

import pytest

from core.model.alert import Severity
from core.model.messages import IncidentDetails, IncidentMessage
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message, is_done, of_kind
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def opened(bot: RunningBot, group: str, *alerts: Message, omitted: int = 0) -> str:
    incident_id = await bot.deliver(group, *alerts, omitted=omitted)
    assert incident_id is not None
    return incident_id


async def message_of(bot: RunningBot, incident_id: str) -> Message:
    """The one message of an incident."""
    shown = of_kind(await bot.messages("incidents"), "incident")
    (message,) = [message for message in shown if message["payload"]["incident"]["id"] == incident_id]
    return message


async def thread_of(bot: RunningBot, incident_id: str) -> list[Message]:
    """The replies to an incident's message, once there is one."""
    root = (await message_of(bot, incident_id))["id"]
    return await bot.until("incidents", lambda messages: [each for each in messages if each["thread"] == root])


async def test_the_raw_alert_comes_first_then_its_owner_then_its_cause_and_then_the_details(bot: RunningBot) -> None:
    incident_id = await opened(bot, "whole story", alert("story"))
    await bot.incident(incident_id)
    await thread_of(bot, incident_id)
    told = [each for each in bot.said if isinstance(each, IncidentMessage | IncidentDetails)]
    raw, with_owner, *_, with_cause, details = [each for each in told if each.incident.id == incident_id]
    assert (raw.incident.title, raw.incident.severity) == ("till p99 latency above 2 s", Severity.CRITICAL)
    assert (raw.incident.findings.owner, raw.incident.findings.explanation) == (None, None)
    assert (with_owner.incident.findings.owner is not None, with_owner.incident.findings.explanation) == (True, None)
    assert with_cause.incident.findings.explanation is not None
    assert isinstance(details, IncidentDetails)


async def test_owner_and_cause_stand_in_the_one_message_and_details_in_its_thread(bot: RunningBot) -> None:
    incident_id = await opened(bot, "one message", alert("one"))
    incident = await bot.incident(incident_id, is_done)
    assert incident["findings"]["owner"]["owner"]["team_id"] == "payments"
    assert incident["findings"]["owner"]["on_call"] == ["Ada Quist"]
    assert "pool" in incident["findings"]["explanation"]["hypotheses"][0]["cause"].lower()
    assert incident["findings"]["explanation"]["badge"]["probability"] is None, "nothing has been labelled yet"
    (details,) = await thread_of(bot, incident_id)
    assert details["kind"] == "details"
    # Incidents of other scenarios may be more similar.
    assert {each["id"] for each in details["payload"]["incident"]["findings"]["explanation"]["similar"]} & {
        "OLD-1",
        "OLD-2",
    }
    await message_of(bot, incident_id)


async def test_an_incident_is_shown_as_resolved_when_its_last_alert_resolves(bot: RunningBot) -> None:
    incident_id = await opened(bot, "resolves", alert("r1"), alert("r2"))
    await bot.incident(incident_id, is_done)
    assert await bot.deliver("resolves", alert("r1", resolved=True), alert("r2")) == incident_id
    half = await bot.incident(incident_id, lambda incident: incident["delivery_count"] == 2)
    assert (half["state"], half["resolved_at"]) == ("open", None)
    assert await bot.deliver("resolves", alert("r1", resolved=True), alert("r2", resolved=True)) == incident_id
    over = await bot.incident(incident_id, lambda incident: incident["state"] == "resolved")
    assert over["resolved_at"] is not None
    assert over["findings"]["explanation"] is not None, "what was found stays"


async def test_an_alert_that_fires_again_since_the_same_minute_reopens_its_incident(bot: RunningBot) -> None:
    """Byte for byte what was said the first time: Alertmanager after it had lost sight of Prometheus."""
    said = alert("g1")
    first = await opened(bot, "again", said)
    over = alert("g1", resolved=True)
    for times in (1, 2):
        assert await bot.deliver("again", over) == first
        await bot.incident(first, lambda incident: incident["state"] == "resolved")
        assert await bot.deliver("again", said) == first
        shown = await bot.incident(first, lambda incident: incident["state"] == "open")
        assert shown["reopened_count"] == times


async def test_more_alerts_of_a_group_are_folded_into_its_message_with_a_count(bot: RunningBot) -> None:
    incident_id = await opened(bot, "grows", alert("w1"))
    for number in (2, 3):
        assert await bot.deliver("grows", *(alert(f"w{each}") for each in range(1, number + 1))) == incident_id
    await bot.incident(incident_id, lambda incident: incident["alert_count"] == incident["delivery_count"] == 3)
    await message_of(bot, incident_id)


async def test_the_same_delivery_again_is_dropped(bot: RunningBot) -> None:
    said = alert("twice")
    incident_id = await opened(bot, "twice", said)
    assert await bot.deliver("twice", said) is None
    assert (await bot.incident(incident_id, is_done))["delivery_count"] == 1


async def test_a_resolved_alert_that_nobody_knew_opens_nothing(bot: RunningBot) -> None:
    assert await bot.deliver("unknown", alert("unknown", resolved=True)) is None
    incident_id = await opened(bot, "unknown", alert("known"))
    assert (await bot.incident(incident_id))["alert_count"] == 1


async def test_a_storm_of_one_group_is_one_message(bot: RunningBot) -> None:
    """120 deliveries, 20 at a time, each with an alert that no other has; more than the 50 alerts that are kept."""
    incident_id = await opened(bot, "storm", alert("s0"))
    places = asyncio.Semaphore(20)

    async def one(number: int) -> None:
        async with places:
            assert await bot.deliver("storm", alert(f"s{number}", pod=f"till-{number}")) == incident_id

    async with asyncio.TaskGroup() as group:
        for number in range(1, 120):
            group.create_task(one(number))
    shown = await bot.incident(incident_id, lambda incident: incident["alert_count"] == 120 and is_done(incident))
    assert (shown["delivery_count"], len(shown["alerts"]), len(shown["also_firing"])) == (120, 50, 70)
    await message_of(bot, incident_id)
    assert len(await thread_of(bot, incident_id)) == 1


async def test_the_alerts_that_a_delivery_leaves_out_are_counted(bot: RunningBot) -> None:
    incident_id = await opened(bot, "left out", alert("l1"), omitted=41)
    assert (await bot.incident(incident_id))["alert_count"] == 42


async def test_what_an_alert_says_is_shown_and_never_obeyed(bot: RunningBot) -> None:
    hostile = "<script>alert(1)</script> @channel [here](javascript:alert(1)) \u202e"
    said = alert("hostile") | {"annotations": {"summary": hostile, "description": hostile}}
    incident_id = await opened(bot, "hostile", said)
    assert (await bot.incident(incident_id, is_done))["title"] == hostile
    async with bot.session.get(bot.address, params={"channel": "incidents"}) as response:
        page = await response.text()
    assert "<script>alert(1)" not in page
    assert 'href="javascript:' not in page


async def test_what_alerts_say_does_not_answer_is_the_one_message_for_them(bot: RunningBot) -> None:
    """No graph of calls knows the store, whose own alert comes last and names no service."""
    down = {**alert("ledger-db down"), "annotations": {"summary": "PostgresDown on ledger-db"}}
    down["labels"] = {"alertname": "PostgresDown", "instance": "ledger-db.shop.svc:5432", "severity": "critical"}
    said = "dial tcp: connection to ledger-db.shop.svc:5432 refused"
    apps: list[str] = []
    for name in ("stamps", "vouchers", "parcels"):
        failing = alert(f"{name} fails", service=name, severity="warning")
        failing["annotations"] = {"summary": f"Errors of {name}", "description": said}
        apps.append(await opened(bot, f"errors of {name}", failing))
    store = await opened(bot, "ledger-db", down)
    await bot.incident(store, is_done)
    (message,) = await bot.until(
        "incidents",
        lambda messages: [
            each
            for each in of_kind(messages, "incident")
            if each["payload"]["incident"]["id"] == store and all(app in str(each["payload"]) for app in apps)
        ],
    )
    assert "PostgresDown on ledger-db" in str(message)
