"""What `eval load` sends: signed mentions and alerts, each ready to be posted to whichever replica takes it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from slack_sdk.signature import SignatureVerifier

from bot.commands.demo import SAMPLE_COMPANY
from tests.fakes.door_secrets import KNOWN, LOCKED

SIGNING_SECRET = "load-test"
BOT_SECRETS = {"SLACK_BOT_TOKEN": "xoxb-load-test", "SLACK_SIGNING_SECRET": SIGNING_SECRET, **LOCKED}
GROUP_SIZE = 25  # alerts that belong to one group
CHANNELS = 50  # that questions are asked in: a chat takes about one post a second in each


@dataclass(frozen=True, slots=True)
class Mention:
    """A question: the thread that its answer stands in is `ts`."""

    ts: str
    path: str
    body: str
    headers: dict[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FiringAlert:
    """An alert of a group: the group's message names it."""

    group: str
    path: str
    body: str
    headers: dict[str, str] = field(repr=False)


Event = Mention | FiringAlert


def roomy_company(folder: Path) -> Path:
    """The sample company in a channel that takes every message, in this folder; the path of its plumbline.yaml."""
    folder.mkdir(parents=True)
    for part in SAMPLE_COMPANY.iterdir():
        (folder / part.name).symlink_to(part)
    config = folder / "plumbline.yaml"
    text = config.read_text()
    config.unlink()
    config.write_text(re.sub(r"(messages_per_minute:) \d+", r"\1 1000", text))
    return config


def events(questions: Iterator[str]) -> Iterator[Event]:
    """Alerts and mentions in turn, without end; each is made, dated and signed when it is asked for."""
    number = 0
    while True:
        yield mention(number, next(questions)) if number % 2 else alert(number // 2)
        number += 1


def mention(number: int, question: str) -> Mention:
    ts = f"{int(time.time())}.{number:06d}"
    channel = f"C0ASK{number // 2 % CHANNELS:02d}"
    event = {
        "type": "app_mention",
        "user": "U1",
        "text": f"<@U0BOT> {question}",
        "ts": ts,
        "event_ts": ts,
        "channel": channel,
    }
    body = json.dumps(
        {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": f"Ev{number}", "event": event}
    )
    return Mention(ts, "slack/events", body, signed(body))


def signed(body: str) -> dict[str, str]:
    """The headers of a body that Slack sends now."""
    timestamp = str(int(time.time()))
    signature = SignatureVerifier(SIGNING_SECRET).generate_signature(timestamp=timestamp, body=body) or ""
    return {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": signature,
    }


def alert(number: int) -> FiringAlert:
    return alert_of(f"LoadTest{number // GROUP_SIZE:04d}", number)


def alert_of(name: str, number: int) -> FiringAlert:
    """The alert of this number, in the group of this name, whose service nothing else alerts for: a message of its own."""
    labels = {"alertname": name, "service": f"of-{name}", "severity": "warning", "instance": f"pod-{number}"}
    fired = {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": name},
        "startsAt": datetime.now(UTC).isoformat(),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": f"{crc32(name.encode()):08x}{number:08x}",
    }
    payload = {
        "version": "4",
        "groupKey": name,
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "plumbline",
        "groupLabels": {"alertname": name},
        "commonLabels": labels,
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": [fired],
    }
    headers = {"Content-Type": "application/json", **KNOWN}
    return FiringAlert(name, "webhooks/alertmanager", json.dumps(payload), headers)
