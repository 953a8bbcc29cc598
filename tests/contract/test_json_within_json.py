"""JSON as a text within JSON: alarms of CloudWatch through SNS, and envelopes that plumbline.yaml maps."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.alerts.generic import GenericSection
from bot.web.webhook_sources import webhook_parsers
from core.model.alert import AlertDelivery, AlertStatus, EndReason
from core.model.errors import MalformedInput
from tests.cases import every_case
from tests.fakes.monitoring_systems.cloudwatch import TOPIC, CloudWatch
from tests.fakes.monitoring_systems.system import RUNBOOK, TITLE, encoded

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
SYSTEM = CloudWatch("7", NOW - timedelta(minutes=4))


def read(payload: Any, source: str = "cloudwatch", **mapping: Any) -> AlertDelivery | None:
    parsers = webhook_parsers({"generic": GenericSection.model_validate(mapping)} if mapping else {})
    return parsers[source](encoded(payload), NOW)


def test_an_alarm_in_the_envelope_and_alone_is_the_same_alert() -> None:
    for payload in (SYSTEM.fire(), SYSTEM.alarm("ALARM")):
        delivery = read(payload)
        assert delivery is not None
        (alert,) = delivery.alerts
        assert (alert.name, alert.service, alert.status) == (TITLE, "till", AlertStatus.FIRING)
        assert (alert.runbook_url, alert.labels["metric"]) == (RUNBOOK, "Latency")
        assert delivery.group_key.endswith(":alarm:7")


def test_insufficient_data_is_no_cure() -> None:
    delivery = read(SYSTEM.ended("INSUFFICIENT_DATA"))
    assert delivery is not None
    assert delivery.alerts[0].end is not None
    assert delivery.alerts[0].end.reason is EndReason.NO_DATA
    assert delivery.alerts[0].end.text == "Ended without data in Amazon CloudWatch"


@every_case(
    ("address", "is_logged"),
    [
        ("https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription&Token=2336", True),
        ("https://sns.cn-north-1.amazonaws.com.cn/?Action=ConfirmSubscription&Token=2336", True),
        ("http://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription", False),
        ("https://sns.eu-north-1.amazonaws.com.evil.example/?Action=ConfirmSubscription", False),
        ("https://evil.example/?https://sns.eu-north-1.amazonaws.com/", False),
        ("https://sns.eu-north-1.amazonaws.com@evil.example/", False),
    ],
)
def test_only_an_address_of_amazon_is_named_as_one_that_confirms_a_subscription(address: str, is_logged: bool) -> None:
    confirmation = {
        "Type": "SubscriptionConfirmation",
        "TopicArn": TOPIC,
        "Message": "Visit it.",
        "SubscribeURL": address,
    }
    with capture_logs() as logs:
        assert read(confirmation) is None
    assert [entry.get("address") for entry in logs] == ([address] if is_logged else [])


def test_what_is_neither_an_alarm_nor_a_notice_is_refused() -> None:
    with pytest.raises(MalformedInput, match=r"has no status at .*: send an alarm through Amazon SNS"):
        read({"Hello": "there"})


def test_a_path_of_plumbline_yaml_leads_into_json_that_is_a_text() -> None:
    inner = {"detail": {"name": TITLE, "state": "up"}, "labels": json.dumps({"zone": "b"})}
    for envelope, at in (
        ({"Message": json.dumps(inner)}, "$.Message"),
        ({"Records": [{"body": json.dumps({"Message": json.dumps(inner)})}]}, "$.Records[0].body.Message"),
        (inner, "$"),
    ):
        mapping = {
            "title": f"{at}.detail.name",
            "status": f"{at}.detail.state",
            "labels": {"zone": f"{at}.labels.zone"},
        }
        delivery = read(envelope, "generic", **mapping)
        assert delivery is not None
        (alert,) = delivery.alerts
        assert (alert.name, alert.status, alert.labels) == (TITLE, AlertStatus.RESOLVED, {"zone": "b"})


def test_a_text_that_is_json_stays_a_text_where_a_path_ends_at_it() -> None:
    delivery = read({"check": '{"of": "the till"}', "broken": "{"}, "generic", title="$.check", description="$.broken")
    assert delivery is not None
    assert (delivery.alerts[0].name, delivery.alerts[0].description) == ('{"of": "the till"}', "{")
