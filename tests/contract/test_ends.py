"""An end is not a cure: every format declares how its alerts may end, and only a cure is told as Resolved, or learned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from adapters.alerts.generic import GenericSection
from bot.config.section import FORMATS
from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import fold, open_from
from core.incidents.incident_details import details_view
from core.incidents.incident_view import MAY_BE_OVER, incident_view
from core.model.alert import AlertStatus, EndReason
from core.model.conversation import Place, Platform
from core.model.errors import MalformedInput
from core.model.incident import Incident
from core.model.message_view import Link, Mood
from core.model.messages import IncidentMessage
from tests.cases import every_case
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.home_made import GENERIC, HomeMade
from tests.fakes.monitoring_systems.pagerduty import PagerDuty
from tests.fakes.monitoring_systems.sentry import Sentry
from tests.fakes.monitoring_systems.servicenow import ServiceNow
from tests.fakes.monitoring_systems.system import TITLE, MonitoringSystem, Payload, encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
BEGAN = NOW - timedelta(minutes=4)
WEBHOOKS = {"generic": GenericSection.model_validate(GENERIC)}
PARSERS = webhook_parsers(WEBHOOKS)
SOURCES = sorted({each.source for each in (*SYSTEMS, Alertmanager)})  # the others: test_defined_alerts


def story(system: MonitoringSystem, *payloads: Payload) -> Incident:
    first, *others = [PARSERS[system.source](encoded(payload), NOW) for payload in payloads]
    assert first is not None
    incident = open_from(first, "i1", Place(Platform.CONSOLE, "incidents"))
    for delivery in others:
        assert delivery is not None
        incident = fold(incident, delivery)
    return incident


def after_fire(system: MonitoringSystem, word: str) -> Incident | None:
    fire, payload = system.fire(), system.ended(word)
    return story(system, fire, payload) if payload is not None else None


def systems(source: str) -> list[MonitoringSystem]:
    return [kind("INC1", BEGAN) for kind in (*SYSTEMS, Alertmanager) if kind.source == source]


@every_case("source", SOURCES)
def test_each_end_that_a_format_declares_is_told_and_only_a_cure_as_resolved(source: str) -> None:
    for word, reason in FORMATS.all()[source].ends.items():
        told = [incident for each in systems(source) if (incident := after_fire(each, word)) is not None]
        assert told, f"No alert of {source} ends with {word!r}"
        for incident in told:
            assert (incident.end.reason, incident.firing_count) == (reason, 0), word
            is_cure = reason is EndReason.CURED
            assert (incident.is_cured, incident.is_uncured) == (is_cure, not is_cure)
            view = incident_view(IncidentMessage(incident))
            assert view.mood is (Mood.RESOLVED if is_cure else Mood.ENDED)
            assert view.state.startswith("Resolved ") is is_cure
            if not is_cure:
                assert incident.resolution is None, word
                assert any(MAY_BE_OVER in line.plain for line in view.lines)
                assert MAY_BE_OVER in repr(details_view(incident))


@every_case("source", SOURCES)
def test_an_end_for_a_reason_that_no_table_has_is_told_by_its_word_or_is_no_end(source: str) -> None:
    for system in systems(source):
        try:
            incident = after_fire(system, "evaporated")
        except MalformedInput:
            continue
        if incident is not None and not incident.firing_count:
            assert incident.end.reason is EndReason.UNKNOWN
            assert incident.is_uncured
            assert incident.state_text().startswith("ended: evaporated")


def test_the_message_says_how_it_ended() -> None:
    cases: list[tuple[type[MonitoringSystem], str, str]] = [
        (Sentry, "archived", "Ended: archived in Sentry, 09:30 UTC after 4 min"),
        (ServiceNow, "canceled", "Ended: canceled in ServiceNow, 09:30 UTC after 4 min"),
        (ServiceNow, "duplicate", "Ended in ServiceNow: duplicate of INC0000054, 09:30 UTC after 4 min"),
        (PagerDuty, "merge_resolve_reason", "Merged in PagerDuty into [#6] The till is down, 09:30 UTC after 4 min"),
        (Grafana, "MissingSeries", "Ended without data in Grafana, 09:30 UTC after 3 min"),
        (Grafana, "Paused", "Ended: rule paused in Grafana, 09:30 UTC after 3 min"),
        (HomeMade, "expired", "Ended: expired, 09:30 UTC after 3 min"),
    ]
    for system, word, state in cases:
        incident = after_fire(system("INC1", BEGAN), word)
        assert incident is not None, (system, word, state)
        assert incident_view(IncidentMessage(incident)).state == f"{state} · till", (system, word, state)


def test_what_was_merged_links_to_where_it_goes_on() -> None:
    incident = after_fire(PagerDuty("INC1", BEGAN), "merge_resolve_reason")
    assert incident is not None
    view = incident_view(IncidentMessage(incident))
    link = Link("[#6] The till is down", "https://pagerduty.example/incidents/6")
    assert [line.links for line in view.lines if line.label == "Goes on in"] == [(link,)]


def test_a_cure_after_another_end_counts_and_what_is_put_away_after_a_cure_stays_cured() -> None:
    system = Sentry("INC1", BEGAN)
    archived, resolved, deleted = system.issue("archived"), system.resolve(), system.issue("deleted")
    assert story(system, system.fire(), archived, resolved).is_cured
    assert story(system, system.fire(), resolved, deleted, archived).is_cured
    again = story(system, system.fire(), resolved, system.fire(), archived)
    assert (again.reopened_count, again.end.reason) == (1, EndReason.ARCHIVED)


def test_one_alert_without_a_cure_among_others_leaves_open_whether_all_is_over() -> None:
    system = Grafana("INC1", BEGAN)
    fire, resolve = system.fire(), system.resolve()
    fire["alerts"].append(fire["alerts"][0] | {"fingerprint": "another"})
    resolve["alerts"][1]["annotations"] = {"summary": TITLE, "grafana_state_reason": "RuleDeleted"}
    incident = story(system, fire, resolve)
    assert incident.state_text() == "ended: deleted in Grafana"
    assert incident.resolution is None


def test_an_alert_of_grafana_that_goes_on_without_data_says_so_and_stays_open() -> None:
    system = Grafana("INC1", BEGAN)
    annotations = {"summary": TITLE, "grafana_state_reason": "NoData, KeepLast"}
    last = system.group("firing", {"alertname": "LatencyHigh", "service": "till"}, annotations=annotations)
    incident = story(system, system.fire(), last)
    (alert,) = incident.alerts
    assert (alert.status, incident.title) == (AlertStatus.FIRING, TITLE)
    assert alert.summary == "No data for rule “LatencyHigh”"


def test_a_word_of_plumbline_yaml_may_mean_an_end_that_is_no_cure() -> None:
    webhooks = {"generic": WEBHOOKS["generic"].model_copy(update={"statuses": {"Mothballed": EndReason.ARCHIVED}})}
    parse = webhook_parsers(webhooks)["generic"]
    system = HomeMade("INC1", BEGAN)
    delivery = parse(encoded(system.event("mothballed")), NOW)
    assert delivery is not None
    assert delivery.alerts[0].end is not None
    assert delivery.alerts[0].end.text == "Ended: archived"


def test_who_was_paged_is_told_until_somebody_acknowledges() -> None:
    parsers, system = webhook_parsers({}), PagerDuty()
    people = [{"summary": name, "type": "user_reference"} for name in ("Ada", "Mateo", "Kim")]
    for assignees, paged in ((people[:1], "Ada"), (people, "Ada, Mateo, Kim"), ([], "")):
        delivery = parsers["pagerduty"](encoded(system.event("triggered", assignees=assignees)), NOW)
        assert delivery is not None
        incident = open_from(delivery, "i1", Place(Platform.CONSOLE, "incidents"))
        assert incident.alerts[0].paged == paged
        lines = [line.text for line in incident_view(IncidentMessage(incident)).lines]
        assert (f"Paged by pagerduty: {paged}" in lines) == bool(paged)
        acknowledged = parsers["pagerduty"](encoded(system.acknowledge()), NOW)
        assert acknowledged is not None
        lines = [line.text for line in incident_view(IncidentMessage(fold(incident, acknowledged))).lines]
        assert not any(line.startswith("Paged") for line in lines)
