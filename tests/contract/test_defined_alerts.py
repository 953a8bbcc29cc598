"""What is understood of the documented bodies of each sender that a definition describes, and mappings by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from adapters.alerts.fields import Parser
from adapters.alerts.generic import GenericSection, definitions
from bot.config.section import FORMATS, WebhookSections
from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import fold, open_from
from core.model.alert import NAMELESS, Alert, AlertDelivery
from core.model.conversation import Place, Platform
from core.model.errors import ConfigurationError, MalformedInput
from tests.cases import every_case
from tests.contract.sender_payloads import NOW, STORIES
from tests.fakes.monitoring_systems.system import encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS

UNKNOWN = yaml.safe_load(Path(__file__).with_name("unknown_senders.yaml").read_text("utf-8"))
"""Senders without a format, each with the mapping that somebody wrote from its documentation."""


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


def told(parse: Parser, story: list[dict[str, Any]]) -> list[AlertDelivery]:
    """Return the deliveries of a story, after each was compared with what is to be understood."""
    deliveries: list[AlertDelivery] = []
    for number, step in enumerate(story, 1):
        delivery = parse(encoded(step["body"]), NOW)
        if step["is"] is None:
            assert delivery is None, number
            continue
        assert delivery is not None, number
        (alert,) = delivery.alerts
        wanted = dict(step["is"])
        assert wanted.pop("labels", {}).items() <= alert.labels.items(), number
        assert {name: facts(alert)[name] for name in wanted} == wanted, number
        shown = " ".join((alert.name, alert.description, alert.url, *alert.labels.values()))
        assert not any(mark in shown for mark in ("{", "None", "null")), number
        deliveries.append(delivery)
    return deliveries


@every_case("source", STORIES)
def test_the_documented_bodies_of_a_sender_are_understood(source: str) -> None:
    deliveries = told(webhook_parsers({})[source], STORIES[source])
    if source not in ("splunk", "nagios"):  # which tell of two things
        assert len({each.group_key for each in deliveries}) == 1


@every_case("name", UNKNOWN)
def test_a_sender_without_a_format_is_understood_by_a_mapping_from_its_documentation(name: str) -> None:
    sender = UNKNOWN[name]
    sections = TypeAdapter(WebhookSections).validate_python({name: sender["mapping"]})
    first, *others = told(webhook_parsers(sections)[name], sender["bodies"])
    incident = open_from(first, "i1", Place(Platform.CONSOLE, "incidents"))
    for each in others:
        incident = fold(incident, each)
    assert incident.is_cured
    assert (len(incident.alerts), incident.title) == (1, first.alerts[0].summary)
    assert incident.alerts[0].name != NAMELESS


def test_every_definition_has_documented_bodies_with_all_its_ends() -> None:
    in_python = {each.source for each in SYSTEMS}
    expected = set(definitions()) - in_python
    assert expected == set(STORIES), "a sender has either a file in recorded_alerts or a class in SYSTEMS"
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
