"""What is understood of the documented bodies of each sender that a definition describes, and mappings by name."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from adapters.alerts.generic import GenericSection, definitions
from bot.config.section import FORMATS, WebhookSections
from bot.web.webhook_sources import webhook_parsers
from core.model.alert import Alert, AlertDelivery
from core.model.errors import ConfigurationError, MalformedInput
from tests.contract.sender_payloads import NOW, STORIES
from tests.fakes.monitoring_systems.system import encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS


def facts(alert: Alert) -> dict[str, Any]:
    return {
        "title": alert.name,
        "service": alert.service,
        "severity": str(alert.severity),
        "state": str(alert.status),
        "url": alert.url,
        "description": alert.description,
        "began": alert.starts_at.isoformat().replace("+00:00", "Z"),
        "by": alert.acknowledged.by if alert.acknowledged is not None else "",
        "end": str(alert.end.reason) if alert.end is not None else "",
    }


@pytest.mark.parametrize("source", STORIES)
def test_the_documented_bodies_of_a_sender_are_understood(source: str) -> None:
    parse = webhook_parsers({})[source]
    groups: list[str] = []
    for number, step in enumerate(STORIES[source], 1):
        delivery = parse(encoded(step["body"]), NOW)
        if step["is"] is None:
            assert delivery is None, number
            continue
        assert delivery is not None, number
        (alert,) = delivery.alerts
        wanted = dict(step["is"])
        assert wanted.pop("labels", {}).items() <= alert.labels.items(), number
        assert {name: facts(alert)[name] for name in wanted} == wanted, number
        groups.append(delivery.group_key)
        shown = " ".join((alert.name, alert.description, alert.url, *alert.labels.values()))
        assert not any(mark in shown for mark in ("{", "None", "null")), number
    if source not in ("splunk", "nagios"):  # which tell of two things
        assert len(set(groups)) == 1


def test_every_definition_has_documented_bodies_with_all_its_ends() -> None:
    told = {each.source for each in SYSTEMS}
    assert set(definitions()) - told == set(STORIES)
    for source, story in STORIES.items():
        ends = {each["is"]["end"] for each in story if each["is"] and "end" in each["is"]}
        assert {str(reason) for reason in FORMATS.all()[source].ends.values()} == ends, source


def test_each_name_of_plumbline_yaml_is_a_source_of_its_own() -> None:
    sections = TypeAdapter(WebhookSections).validate_python(
        {
            "billing-checks": {"title": "$.check", "status": "$.state", "severity": ["$.level", "$.prio"]},
            "night-jobs": {"title": "{$.job} on {$.host}", "group": "$.job"},
            "old-zabbix": {"preset": "zabbix", "title": "$.subject"},
            "zabbix": {"secret_env": "ZABBIX_SECRET"},
        }
    )
    parsers = webhook_parsers(sections)

    def read(source: str, **body: Any) -> AlertDelivery:
        delivery = parsers[source](encoded(body), NOW)
        assert delivery is not None
        return delivery

    one = read("billing-checks", check="Totals differ", state="down", prio="P1")
    assert (one.source, one.alerts[0].name, one.alerts[0].severity) == ("billing-checks", "Totals differ", "critical")
    assert read("night-jobs", job="backup", host="till-1").alerts[0].name == "backup on till-1"
    old = read("old-zabbix", subject="Disk", event_id="7", event_value="1")
    assert (old.source, old.alerts[0].name, old.group_key) == ("old-zabbix", "Disk", "7")
    with pytest.raises(MalformedInput, match=r"The night-jobs webhook has no title at \{\$\.job\} on"):
        read("night-jobs", job="backup")


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"preset": "fax"}, "there is no preset fax: use one of argo_cd, "),
        ({"secret_env": "X"}, "needs a `title` or a `preset`"),
        ({"title": "check.name"}, "is not a JSONPath: it has no path"),
        ({"title": "{$.a} {$.[}"}, "is not a JSONPath"),
    ],
)
def test_a_mapping_that_says_too_little_is_a_mistake_in_the_configuration(
    section: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        webhook_parsers({"mine": GenericSection.model_validate(section)})
