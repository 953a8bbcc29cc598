"""The first message about an alert that nobody prepared for Plumbline says what fires, and where."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import open_from
from core.model.conversation import Place, Platform
from core.model.messages import IncidentMessage
from tests.cases import every_case
from tests.fakes.monitoring_systems.kubernetes_rules import TABLE
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import of_kind
from tests.scenario.first_day.payloads import DEFAULTS, NOW, WATCHDOG, Sent, alertmanager
from tests.scenario.first_day.sample import shown
from tests.scenario.webhooks import alert

PARSERS = webhook_parsers({})
FOR_NOBODY = {"Watchdog", "InfoInhibitor"}

_ids = count(1)


def first_message(source: str, body: bytes) -> list[str]:
    """Return the lines of the message that is posted before anything is known."""
    delivery = PARSERS[source](body, NOW)
    assert delivery is not None
    incident = open_from(delivery, "i1", Place(Platform.CONSOLE, "incidents"))
    return [line.strip("│╭╰─╮╯ ") for line in shown(IncidentMessage(incident)).splitlines()][1:]


def test_a_rule_of_kube_prometheus_is_told_in_its_own_words_with_what_it_is_about() -> None:
    told: dict[str, list[str]] = {}
    expected: dict[str, list[str]] = {}
    for name, rules in TABLE:
        sentence = f"{re.sub('(?<=[a-z])(?=[A-Z])', ' ', name).capitalize()}."
        labels = {"alertname": name, "severity": "warning", **rules.by, **rules.about}
        annotations = {"summary": sentence, "description": "It began at nine."}
        told[name] = first_message("alertmanager", json.dumps(alertmanager(labels, annotations)).encode())[:3]
        about = rules.subject if rules.subject.rpartition("/")[2] not in sentence else ""
        expected[name] = [
            f"{sentence} ({about})" if about else sentence,
            "Warning since 09:26 UTC" + (f" · {rules.service}" if rules.service else ""),
            "It began at nine.",
        ]
    assert told == expected


@pytest.mark.parametrize("name", sorted(FOR_NOBODY))
def test_what_is_for_nobody_opens_no_incident(name: str) -> None:
    alone = json.loads(json.dumps(WATCHDOG).replace("Watchdog", name))
    assert PARSERS["alertmanager"](json.dumps(alone).encode(), NOW) is None
    among = alertmanager({"alertname": "TargetDown", "job": "api"}, {"summary": "A target is down."})
    among["alerts"] += alone["alerts"]
    delivery = PARSERS["alertmanager"](json.dumps(among).encode(), NOW)
    assert delivery is not None
    assert [each.name for each in delivery.alerts] == ["TargetDown"]


@every_case("sent", DEFAULTS)
def test_a_default_payload_is_told_without_the_marks_of_its_sender(sent: Sent) -> None:
    message = first_message(sent.source, sent.body)
    assert message[0] == sent.title
    assert sent.told in message[2]
    assert sent.unwanted not in "\n".join(message)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_alert_that_flaps_is_one_message_that_says_so(bot: RunningBot) -> None:
    group, began = f"flapping-{next(_ids)}", datetime.now(UTC) - timedelta(minutes=30)
    fired = alert("flap", alertname="Flapping")
    opened = None
    for turn in range(6):
        times = {"startsAt": (began + timedelta(minutes=2 * turn)).isoformat()}
        opened = opened or await bot.deliver(group, fired | times)
        if turn:
            await bot.deliver(group, fired | times)
        over = {"status": "resolved", "endsAt": (began + timedelta(minutes=2 * turn + 1)).isoformat()}
        await bot.deliver(group, fired | times | over)
    assert opened is not None
    await bot.incident(
        opened, lambda each: each["flapping"] and each["state"] == "resolved" and each["reopened_count"] == 5
    )
    roots = [each for each in of_kind(await bot.messages("incidents"), "incident") if each["thread"] is None]
    assert len([each for each in roots if each["payload"]["incident"]["id"] == opened]) == 1
