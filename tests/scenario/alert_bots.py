"""Bots that post alerts in channels of Slack and of Teams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp

from tests.fakes.graph_server import FakeGraph, graph_time
from tests.fakes.slack_api import BOT_USER
from tests.scenario import webhooks
from tests.scenario.slack import WatchedSlack

ALERTS, OTHER = "C0ALERTS", "C0OTHER"  # the first is adopted


def bell(title: str, colour: str = "a30200", **fields: str) -> dict[str, Any]:
    """A message of a monitoring system of nobody\u2019s."""
    shown = [{"title": name, "value": value, "short": True} for name, value in fields.items()]
    return {"text": "", "attachments": [{"title": title, "color": colour, "fields": shown, "fallback": title}]}


# --- five bots that post 300 messages in one channel ---

GAUGES, CHATTER = 60, 84  # numbers of alerts, and of other messages
ENDED = [*range(0, GAUGES, 5), *[number for number in range(GAUGES) if number % 5][:24]]
RED, GREEN = "a30200", "2eb886"


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


@dataclass(frozen=True)
class Sending:
    """A message of a bot, or a webhook. `fields` has the `ts` of a message that is edited, the `thread_ts` of a reply."""

    fields: dict[str, Any]
    webhook: str = ""


def root(number: int) -> str:
    """The first message about an alert."""
    return f"{1_773_480_000 + number}.000300"


def sendings() -> Iterator[Sending]:
    """300 messages, and the webhooks of some of them."""

    def of(number: int, *, ends: bool, **more: str) -> Sending:
        app = {"bot_id": f"B0BELL{number % 3}", "app_id": f"A0BELL{number % 3}"}
        return Sending(shapes(f"Gauge{number}", f"tower-{number}", ends=ends)[number % 10] | app | more)

    for number in range(GAUGES):
        yield of(number, ends=False, ts=root(number))
        if number % 6 == 0:
            yield Sending({}, webhook=f"Gauge{number}")
        acknowledged = {"text": f"Ines acknowledged Gauge{number}", "attachments": [], "blocks": []}
        yield Sending(of(number, ends=False).fields | acknowledged | {"thread_ts": root(number)})
        yield of(number, ends=False)  # the sender repeats itself
    for number in range(CHATTER):
        yield Sending(chatter(number))
    for number in ENDED:
        is_edited = number % 5 == 0 and number % 2
        yield of(number, ends=True, **({"ts": root(number)} if is_edited else {}))


async def send(sending: Sending, slack: WatchedSlack, session: aiohttp.ClientSession, address: str) -> None:
    if sending.webhook:
        await sound(sending.webhook, session, address)
    else:
        await slack.posts(address, ALERTS, **sending.fields)


async def sound(name: str, session: aiohttp.ClientSession, address: str) -> None:
    """Send an alert as a webhook."""
    alert = webhooks.alert(name, alertname=name, audience="bots", service="")
    alert["annotations"] = {"summary": name}
    async with session.post(f"{address}webhooks/alertmanager", json=webhooks.delivery(name, alert)) as response:
        assert response.status == 202


def ours(slack: WatchedSlack) -> list[dict[str, Any]]:
    return [each for each in slack.messages if each.get("user") == BOT_USER and each["channel"] == ALERTS]


def assert_all_is_in_threads(slack: WatchedSlack) -> None:
    assert not [each["text"] for each in ours(slack) if "thread_ts" not in each]
    chats = {each["ts"] for each in slack.messages if str(each.get("app_id", "")).startswith("A0CHAT")}
    assert not [each["text"] for each in ours(slack) if each["thread_ts"] in chats]


# --- the same in Teams ---

SIGNS = {":red_circle:": "\U0001f534", ":white_check_mark:": "\u2705"}
LINK = re.compile(r"<(https[^|>]*)[|]([^>]*)>")


def show_in_teams(sending: Sending, graph: FakeGraph, channel: str) -> None:
    """Post, or edit, the same message in a channel of Teams: every other one as a card of an Office connector."""
    fields, now = sending.fields, datetime.now(UTC)
    id_ = teams_id(fields.get("ts") or f"{2e9 + len(graph.messages[channel]):.6f}")
    reply_to = teams_id(fields["thread_ts"]) if "thread_ts" in fields else None
    cards = [_card(each, is_adaptive=int(id_) // 1000 % 2 == 0) for each in fields.get("attachments", ())]
    cards += [_card(fields, is_adaptive=True)] if fields.get("blocks") else []
    app = {"id": fields["app_id"], "displayName": fields["app_id"], "applicationIdentityType": "bot"}
    earlier = graph.messages[channel].get(id_)
    times = {"createdDateTime": graph_time(now)}
    if earlier is not None:
        times = {"createdDateTime": earlier["createdDateTime"], "lastEditedDateTime": graph_time(now)}
    sender: dict[str, Any] = {"from": {"application": app, "device": None, "user": None}}
    graph.post(channel, id_, _marked(fields["text"]), reply_to=reply_to, attachments=cards, **times, **sender)


def teams_id(ts: str) -> str:
    return str(int(float(ts) * 1000))


def _card(shown: dict[str, Any], *, is_adaptive: bool) -> dict[str, Any]:
    sections = [each for each in shown.get("blocks", ()) if each["type"] == "section"]
    texts = [
        shown.get("title", ""),
        "" if sections else shown.get("text", ""),
        *(each["text"]["text"] for each in sections),
    ]
    pairs = [(each["title"], each["value"]) for each in shown.get("fields", ())]
    pairs += [each["text"].replace("*", "").split("\n") for section in sections for each in section.get("fields", ())]
    lines, colour = [_marked(each) for each in texts if each], shown.get("color", "")
    address = shown.get("title_link", "")
    if is_adaptive:
        facts = [{"title": name, "value": value} for name, value in pairs]
        style = {"color": {RED: "attention", GREEN: "good"}.get(colour, "default")}
        body = [{"type": "TextBlock", "text": line, **style} for line in lines] + [{"type": "FactSet", "facts": facts}]
        actions = [{"type": "Action.OpenUrl", "title": "Open", "url": address}] if address else []
        card, kind = {"type": "AdaptiveCard", "body": body, "actions": actions}, "card.adaptive"
    else:
        facts = [{"name": name, "value": value} for name, value in pairs]
        card = {"title": lines[0], "text": "\n\n".join(lines[1:]), "themeColor": colour, "sections": [{"facts": facts}]}
        kind = "teams.card.o365connector"
    return {"id": "1", "contentType": f"application/vnd.microsoft.{kind}", "content": json.dumps(card)}


def _marked(text: str) -> str:
    for name, sign in SIGNS.items():
        text = text.replace(name, sign)
    return LINK.sub(r"[\2](\1)", text)
