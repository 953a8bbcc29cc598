"""Alerts that fire because data is missing say so, and not what their rule would say."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest

from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import open_from
from core.model.alert import Alert
from core.model.conversation import Place, Platform
from core.model.incident import Incident
from tests.cases import every_case
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.datadog import Datadog
from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.system import Payload, encoded

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PARSERS = webhook_parsers({})
CLAIM = "Sailings are delayed"


def opened(source: str, payload: Payload) -> Incident:
    delivery = PARSERS[source](encoded(payload), NOW)
    assert delivery is not None
    return open_from(delivery, "i1", Place(Platform.CONSOLE, "incidents"))


def rule(name: str, annotations: dict[str, str], **labels: str) -> Payload:
    return Grafana().group("firing", {"alertname": name, **labels}, annotations=annotations)


@every_case(
    ("payload", "title", "name"),
    [
        (
            rule("DatasourceNoData", {"summary": CLAIM}, rulename="Sailing delay", datasource_uid="u7"),
            "No data for rule “Sailing delay”",
            "Sailing delay",
        ),
        (rule("DatasourceNoData", {}, datasource_uid="u7"), "No data for rule “u7”", "u7"),
        (
            rule("DatasourceError", {"summary": CLAIM, "Error": "no route to host"}, rulename="Sailing delay"),
            "Cannot evaluate rule “Sailing delay”",
            "Sailing delay",
        ),
        (
            rule("Sailing delay", {"summary": CLAIM, "grafana_state_reason": "NoData"}),
            "No data for rule “Sailing delay”",
            "Sailing delay",
        ),
        (
            rule("Sailing delay", {"summary": CLAIM, "grafana_state_reason": "Error"}),
            "Cannot evaluate rule “Sailing delay”",
            "Sailing delay",
        ),
        (rule("Sailing delay", {"summary": CLAIM, "grafana_state_reason": "Updated"}), CLAIM, "Sailing delay"),
    ],
)
def test_the_title_names_the_rule_and_what_it_lacks(payload: Payload, title: str, name: str) -> None:
    for source, sent in (("grafana", payload), ("alertmanager", payload | {"version": "4"})):
        incident = opened(source, sent)
        assert (incident.title, incident.alerts[0].name) == (title, name)


def test_what_the_rule_would_say_and_the_error_are_told_as_that() -> None:
    annotations = {"summary": CLAIM, "description": "By 20 minutes.", "Error": "no route to host"}
    incident = opened("grafana", rule("DatasourceError", annotations, rulename="Sailing delay", datasource_uid="u7"))
    said = incident.alerts[0].description
    assert f"If its condition held, the rule would say: {CLAIM}. By 20 minutes." in said
    assert said.startswith("Whether its condition holds is unknown.")
    assert "Error: no route to host" in said
    assert "Data source: u7" in said


def test_each_rule_of_a_group_without_data_is_named() -> None:
    payload = rule("DatasourceNoData", {}, rulename="Sailing delay")
    other = payload["alerts"][0] | {"fingerprint": "f2"}
    other["labels"] = other["labels"] | {"rulename": "Cabin prices"}
    payload["alerts"].append(other)
    assert {alert.name for alert in opened("grafana", payload).alerts} == {"Sailing delay", "Cabin prices"}


def of_expression(expression: str) -> Alert:
    address = f"http://prometheus.example/graph?{urlencode({'g0.expr': expression, 'g0.tab': '1'})}"
    labels = {"alertname": "TideGaugeGone"}
    payload = Alertmanager().group("firing", labels, annotations={"summary": CLAIM}, generatorURL=address)
    return opened("alertmanager", payload).alerts[0]


@pytest.mark.parametrize(
    "expression",
    [
        'absent(up{job="tide-gauge"} == 1)',
        " absent_over_time(tide_level[10m])",
        '(absent(up{job="a"}) or absent(up{job="b"}))',
        "absent (tide_level) > 0",
    ],
)
def test_a_rule_on_absence_says_that_data_is_missing_and_keeps_its_sentence(expression: str) -> None:
    assert of_expression(expression).summary == f"No data for rule “TideGaugeGone”: {CLAIM}"


@every_case(
    "expression",
    ["tide_level > 4 or absent(tide_level)", "absentees_total > 3", "tide_level > 4", "", "sum(absent_seats) > 4"],
)
def test_a_rule_that_may_fire_with_data_keeps_its_sentence_alone(expression: str) -> None:
    assert of_expression(expression).summary == CLAIM


@pytest.mark.parametrize("address", ["http://[", "http://x/?g0.expr=%ff%fe", "x" * 5_000, "http://x/?" + "a=1&" * 400])
def test_a_strange_address_is_no_rule_on_absence(address: str) -> None:
    payload = Alertmanager().group("firing", {"alertname": "A"}, annotations={"summary": CLAIM}, generatorURL=address)
    assert opened("alertmanager", payload).title == CLAIM


@pytest.mark.parametrize("transition", ["No Data", "Re-No Data"])
def test_a_monitor_of_datadog_without_data_says_so(transition: str) -> None:
    payload = Datadog("7").event(transition, title=f"[{transition} on {{host:quay}}] {CLAIM}")
    assert opened("datadog", payload).title == f"No data for “{CLAIM}”"
    assert opened("datadog", payload | {"alert_transition": "Triggered"}).title == CLAIM
