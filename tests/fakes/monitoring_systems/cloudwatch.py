"""Amazon CloudWatch, whose alarms a topic of Amazon SNS sends: the alarm is a text in the JSON of the notice."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.monitoring_systems.system import RUNBOOK, TITLE, MonitoringSystem, Payload

TOPIC = "arn:aws:sns:eu-north-1:000000000000:alarms"


class CloudWatch(MonitoringSystem):
    source = "cloudwatch"
    acknowledges = False
    rates = False

    def alarm(self, state: str, **changes: Any) -> Payload:
        return {
            "AlarmName": TITLE,
            "AlarmDescription": f"p99 is 4 s. Runbook: {RUNBOOK}",
            "AWSAccountId": "000000000000",
            "NewStateValue": state,
            "NewStateReason": "Threshold Crossed: 1 datapoint was greater than the threshold.",
            "StateChangeTime": f"{self.later:%Y-%m-%dT%H:%M:%S}.000+0000",
            "Region": "EU (Stockholm)",
            "AlarmArn": f"arn:aws:cloudwatch:eu-north-1:000000000000:alarm:{self.id}",
            "OldStateValue": "OK",
            "Trigger": {
                "MetricName": "Latency",
                "Namespace": "Till",
                "Dimensions": [{"name": "ServiceName", "value": "till"}],
                "Period": 60,
                "Threshold": 2.0,
            },
        } | changes

    def notice(self, message: str, **changes: Any) -> Payload:
        return {
            "Type": "Notification",
            "MessageId": "6a1f",
            "TopicArn": TOPIC,
            "Subject": TITLE,
            "Message": message,
            "Timestamp": self.later.isoformat(),
            "SignatureVersion": "1",
        } | changes

    def fire(self) -> Payload:
        return self.notice(json.dumps(self.alarm("ALARM")))

    def update(self) -> Payload:
        return self.notice(json.dumps(self.alarm("ALARM", NewStateReason="It is worse.")))

    def resolve(self) -> Payload:
        return self.notice(json.dumps(self.alarm("OK")))

    def ended(self, word: str) -> Payload:
        return self.notice(json.dumps(self.alarm(word)))

    def test(self) -> Payload:
        return self.notice("A text of somebody who tries the topic.")
