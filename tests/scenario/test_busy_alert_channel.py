"""Five bots post 300 messages in one channel: alerts of ten shapes, updates, chatter, and some alerts as webhooks too."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from core.model.incident import Incident, IncidentState
from tests.fakes.slack_api import BOT_USER
from tests.scenario import webhooks
from tests.scenario.application import RunningBot

CHANNEL = "C0ALERTS"
ALERTS, ROUNDS = 60, ("update", "again", "resolve")
CHATTER = 84
RED, GREEN = "a30200", "2eb886"

pytestmark = pytest.mark.asyncio(loop_scope="session")


def shapes(name: str, host: str, *, ends: bool) -> list[dict[str, Any]]:
    """The ways in which monitoring systems say that something fires, or is over."""
    colour = GREEN if ends else RED
    word, tag = ("Resolved", "RESOLVED") if ends else ("Triggered", "FIRING:1")
    sign, verb = (":white_check_mark:", "has recovered") if ends else (":red_circle:", "is CRITICAL")
    host_field = {"title": "Host", "value": host, "short": True}
    severity = {"title": "Severity", "value": "high", "short": True}

    def attached(title: str, *fields: dict[str, Any], **more: str) -> dict[str, Any]:
        return {
            "text": "",
            "attachments": [{"color": colour, "title": title, "fallback": title, "fields": [*fields], **more}],
        }

    def section(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}

    link = f"https://bell.example/incidents/{name}{host}1"
    shown = [{"type": "mrkdwn", "text": "*Severity*\nhigh"}, {"type": "mrkdwn", "text": f"*Host*\n{host}"}]
    return [
        attached(f"[{tag}] {name} ({host} critical)", host_field, severity),
        attached(f"{word}: {name}", host_field, severity),
        attached(name, host_field, severity, {"title": "State", "value": word, "short": True}),
        attached(
            "Service notification",
            host_field,
            {"title": "Check", "value": name},
            {"title": "Status", "value": word},
            severity,
        ),
        {"text": f"{word} {name}", "blocks": [section(f"{sign} *{word}* <{link}|{name} on {host}>", fields=shown)]},
        {
            "text": f"{sign} {name} on {host} {verb}",
            "attachments": [{"color": colour, "text": f"Severity: high\nHost: {host}"}],
        },
        attached(f"{name} on {host} {verb}", text="*Severity:* high"),
        {
            "text": "Bell alert",
            "attachments": [{"color": colour, "blocks": [section(f"[{word}] {name} on {host}", fields=shown)]}],
        },
        attached(f"{word} in 2m: {name}" if ends else f"Problem: {name}", host_field, severity, title_link=link),
        attached(f"{sign} {name}", host_field, severity, text="ALARM → OK" if ends else "OK → ALARM"),
    ]


def chatter(number: int) -> dict[str, Any]:
    told = (
        "Good morning. Who has coffee?",
        f"Deploy of till {number} finished",
        f"Pipeline #{number} has failed",
        "Weekly report: 12 alerts, 11 resolved",
        f"Pull request #{number} opened: handle the critical error",
        "Ines is now on call",
        "[FIRING:1] Watchdog (none)",
    )
    return {"text": told[number % len(told)], "bot_id": f"B0CHAT{number % 2}", "app_id": f"A0CHAT{number % 2}"}


async def _incidents(bot: RunningBot) -> list[Incident]:
    async with bot.store.transaction() as transaction:
        return [each for each in await transaction.incidents.recent(1000) if "Gauge" in str(each.alerts)]


@pytest.mark.external  # a minute
async def test_300_messages_of_five_bots_are_one_incident_each_and_nothing_is_said_outside_threads(
    bot: RunningBot,
) -> None:
    roots = dict[int, str]()
    sent = 0
    for number in range(ALERTS):
        name, host = f"Gauge{number}", f"tower-{number}"
        app = {"bot_id": f"B0BELL{number % 3}", "app_id": f"A0BELL{number % 3}"}
        firing = shapes(name, host, ends=False)[number % 10]
        roots[number] = await bot.slack.posts(bot.address, CHANNEL, **app, **firing)
        if number % 6 == 0:  # also as a webhook
            alert = webhooks.alert(name, alertname=name, audience="bots", service="")
            alert["annotations"] = {"summary": name}
            async with bot.session.post(
                f"{bot.address}webhooks/alertmanager", json=webhooks.delivery(name, alert)
            ) as response:
                assert response.status == 202
        await bot.slack.posts(bot.address, CHANNEL, thread_ts=roots[number], text=f"Ines acknowledged {name}", **app)
        await bot.slack.posts(bot.address, CHANNEL, **app, **firing)  # the sender repeats itself
        sent += 3
    for number in range(CHATTER):
        await bot.slack.posts(bot.address, CHANNEL, **chatter(number))
        sent += 1
    for number in range(0, ALERTS, 5):
        app = {"bot_id": f"B0BELL{number % 3}", "app_id": f"A0BELL{number % 3}"}
        over = shapes(f"Gauge{number}", f"tower-{number}", ends=True)[number % 10]
        edited = {"ts": roots[number]} if number % 2 else {}
        await bot.slack.posts(bot.address, CHANNEL, **app, **over, **edited)
        sent += 1
    again = [each for each in range(ALERTS) if each % 5][:24]
    for number in again:
        app = {"bot_id": f"B0BELL{number % 3}", "app_id": f"A0BELL{number % 3}"}
        over = shapes(f"Gauge{number}", f"tower-{number}", ends=True)[number % 10]
        await bot.slack.posts(bot.address, CHANNEL, **app, **over)
        sent += 1
    assert sent == 300
    incidents = await _incidents(bot)
    named = Counter(alert.name.split()[0] for each in incidents for alert in each.alerts)
    found = {
        number
        for number in range(ALERTS)
        if any(
            f"Gauge{number}" in str(each.alerts[0].name).split() or f"Gauge{number}" in each.title.split()
            for each in incidents
        )
    }
    assert len(found) >= 0.95 * ALERTS, sorted(set(range(ALERTS)) - found)
    assert len(incidents) == len(found), named
    ended = {*range(0, ALERTS, 5), *again} - set(range(0, ALERTS, 6))
    over = {
        number
        for number in ended
        for each in incidents
        if f"Gauge{number}" in each.title.split() and each.state is IncidentState.RESOLVED
    }
    assert len(over) >= 0.95 * len(ended), sorted(ended - over)
    await asyncio.sleep(0)
    await bot.slack.until(lambda: all(bot.slack.replies(ts) for number, ts in roots.items() if number in found))
    ours = [each for each in bot.slack.messages if each.get("user") == BOT_USER and each["channel"] == CHANNEL]
    assert not [each["text"] for each in ours if "thread_ts" not in each]
    chats = {each["ts"] for each in bot.slack.messages if str(each.get("app_id", "")).startswith("A0CHAT")}
    assert not [each["text"] for each in ours if each["thread_ts"] in chats]
