"""`plumbline webhook-check`: show how a recorded webhook would be parsed and routed, without any effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from bot.commands.commands import print_json, recorded
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.web.webhook_sources import webhook_parser
from bot.wiring.application import places_for
from core.model.alert import Alert, AlertDelivery
from core.model.conversation import Place


@dataclass(frozen=True, slots=True)
class WebhookReading:
    """A parsed webhook (None if it contains no alert), and the places of its incident."""

    delivery: AlertDelivery | None
    places: tuple[Place, ...]


def run_webhook_check(settings: Settings, file: Path, source: str, out: Console, *, as_json: bool) -> None:
    """Print the result. Raises MalformedInput with the error that the sender would receive."""
    workspace = load_workspace(settings.config)
    delivery = webhook_parser(workspace.webhooks, source)(recorded(file), datetime.now(UTC))
    places = places_for(settings, workspace)(delivery) if delivery is not None and delivery.fires else ()
    reading = WebhookReading(delivery, places)
    if as_json:
        print_json(TypeAdapter(WebhookReading), reading)
    else:
        out.print(Text("\n".join(_lines(reading))), soft_wrap=True)


def _lines(reading: WebhookReading) -> Iterator[str]:
    delivery = reading.delivery
    if delivery is None:
        yield "Understood, but it contains no new alert. Nothing would be posted."
        return
    yield f"group     {delivery.group_key}"
    for alert in delivery.alerts:
        yield from _alert_lines(alert)
    yield from (f"left out  {part}" for part in delivery.unread)
    for place in reading.places:
        yield f"posted in {place.platform} {place.channel}, unless the group already has an open incident"
    if not reading.places:
        yield "posts nothing new, but changes the incident of the group if there is one"


def _alert_lines(alert: Alert) -> Iterator[str]:
    acknowledged = alert.acknowledged
    yield f"alert     {alert.name}"
    status = "ended" if alert.end is not None and not alert.is_cured else alert.status
    yield f"  status  {status}, {alert.severity}, since {alert.starts_at:%Y-%m-%d %H:%M:%S} UTC"
    if acknowledged is not None:
        what = "acknowledgement withdrawn" if acknowledged.withdrawn else "acknowledged"
        yield f"  {what} by {acknowledged.by or 'somebody'}, {acknowledged.at:%Y-%m-%d %H:%M:%S} UTC"
    facts = (
        ("end", alert.end.text if alert.end is not None else ""),
        ("service", alert.service),
        ("text", alert.description),
        ("link", alert.url),
        ("runbook", alert.runbook_url),
    )
    yield from (f"  {name:<7} {' '.join(value.split())}" for name, value in facts if value)
    yield from (f"  label   {name}={value}" for name, value in alert.labels.items())
