"""Alarms of Amazon CloudWatch, which Amazon SNS sends: JSON as a text within JSON, or the alarm alone (raw delivery).

https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
"""

from __future__ import annotations

import re
from typing import Any

import structlog
from pydantic import AwareDatetime, model_validator

from adapters.alerts.fields import AlertEvent, Ends, Format, Payload, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.errors import MalformedInput
from core.model.text import load_json

ENDS: Ends = {"OK": EndReason.CURED, "INSUFFICIENT_DATA": EndReason.NO_DATA}
CONFIRMATION = re.compile(r"https://sns\.[a-z0-9-]{1,40}\.amazonaws\.com(?:\.cn)?/\S{1,2000}")
SERVICES = ("ServiceName", "FunctionName", "DBInstanceIdentifier", "QueueName", "LoadBalancer")  # dimensions

log = structlog.get_logger()


class _Trigger(Payload):
    MetricName: Words = ""
    Dimensions: list[dict[str, Any]] | None = None


class _Notification(Payload):
    """A notice of a topic. One that is not of an alarm has no name of one."""

    Message: Any = None
    SubscribeURL: Words = ""
    AlarmName: Words = ""
    AlarmArn: Words = ""
    AlarmDescription: Words = ""
    NewStateValue: Words = ""
    NewStateReason: Words = ""
    StateChangeTime: AwareDatetime | None = None
    Trigger: _Trigger = _Trigger()

    @model_validator(mode="before")
    @classmethod
    def _opened(cls, notice: Any) -> Any:
        """Return the fields of an envelope with those of its message, if that is a JSON object."""
        try:
            return {**notice, **load_json(notice["Message"])}
        except (AttributeError, KeyError, TypeError, ValueError):  # no envelope, or a message that is no object
            return notice


def _understood(notice: _Notification) -> AlertEvent | None:
    """Return the alert; None for a subscription to be confirmed, whose address is logged, and for other notices."""
    if CONFIRMATION.fullmatch(notice.SubscribeURL):
        log.warning("open this address once to confirm the subscription of Amazon SNS", address=notice.SubscribeURL)
    if not notice.AlarmName:
        if not isinstance(notice.Message, str):
            raise MalformedInput("The Amazon CloudWatch webhook holds neither an alarm nor a notice of Amazon SNS.")
        return None
    dimensions = {str(each.get("name")): str(each.get("value")) for each in notice.Trigger.Dimensions or ()}
    return AlertEvent(
        group=notice.AlarmArn or notice.AlarmName,
        title=notice.AlarmName,
        status=AlertStatus.FIRING if notice.NewStateValue == "ALARM" else AlertEnd(word=notice.NewStateValue),
        severity=[],
        labels={"metric": notice.Trigger.MetricName, **dimensions},
        is_unique=True,  # a body holds the time of the change
        services=SERVICES,
        description=" ".join(filter(None, (notice.AlarmDescription, notice.NewStateReason))),
        began=notice.StateChangeTime,
        as_of=notice.StateChangeTime,
    )


FORMAT = Format("cloudwatch", "Amazon CloudWatch", "send an alarm through Amazon SNS", _Notification, ENDS, _understood)
