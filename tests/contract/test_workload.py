"""The service that an alert means, by the labels with which Kubernetes' rules fire: never the exporter."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from adapters.alerts.workload import service_of, subject_of
from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import open_from
from core.model.conversation import Place, Platform
from tests.cases import every_case
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.kubernetes_rules import (
    NODE,
    POD,
    STATE,
    TABLE,
    Labels,
    as_exported,
)
from tests.fakes.monitoring_systems.system import encoded

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PARSERS = webhook_parsers({})


def test_a_rule_of_kube_prometheus_means_its_workload() -> None:
    expected = {name: (rules.service, rules.subject) for name, rules in TABLE}
    for labelled in (lambda rules: rules.by | rules.about, lambda rules: as_exported(rules.by, rules.about)):
        labels = {name: labelled(rules) for name, rules in TABLE}
        assert {name: (service_of(each, name), subject_of(each, name)) for name, each in labels.items()} == expected


def test_every_rule_is_in_the_table_once() -> None:
    names = [name for name, _ in TABLE]
    assert len(names) == len(set(names)) == 125


def test_the_workload_of_a_pod_is_its_name_without_what_kubernetes_appends() -> None:
    cases: list[tuple[str, str]] = [
        ("booking-api-7d9f8b6c5d-x2k9p", "booking-api"),
        ("booking-api-5f6d-bc2df", "booking-api-5f6d"),
        ("booking-api-6b7f9d8c4-q7w2e", "booking-api"),
        ("pg-bookings-0", "pg-bookings"),
        ("pg-bookings-12", "pg-bookings"),
        ("tide-reader-8kq2z", "tide-reader"),
        ("timetable-29022390-zx8bq", "timetable"),
        ("booking-api", "booking-api"),
        ("kube-proxy-quay-3", "kube-proxy-quay"),
    ]
    for pod, workload in cases:
        assert service_of({"pod": pod}, "PodSlow") == workload, (pod, workload)


def test_the_labels_mean_the_workload_and_not_what_measured_it() -> None:
    cases: list[tuple[Labels, str]] = [
        ({"owner_kind": "ReplicaSet", "owner_name": "api-7d9f8b6c5d"}, "api"),
        ({"owner_kind": "StatefulSet", "owner_name": "ledger-v2"}, "ledger-v2"),
        ({"created_by_kind": "ReplicaSet", "created_by_name": "api-7d9f8b6c5d"}, "api"),
        ({"replicaset": "api-7d9f8b6c5d"}, "api"),
        ({"exported_job": "nightly-invoices", "job": "pushgateway"}, "nightly-invoices"),
        ({"job": "probe/orders/checkout"}, "checkout"),
        ({"job": "orders/booking-api"}, "booking-api"),
        ({"job": "kubernetes-pods", "pod": "api-7d9f8b6c5d-x2k9p"}, "api"),
        ({"kube_deployment": "api", "pod_name": "x-7d9f8b6c5d-x2k9p"}, "api"),
        ({"kube_stateful_set": "ledger", "kube_namespace": "orders"}, "ledger"),
        ({"k8s_pod_name": "api-7d9f8b6c5d-x2k9p", "k8s_container_name": "server"}, "api"),
        ({"k8s_job_name": "timetable-29022390"}, "timetable"),
        ({"service_name": "checkout", "k8s_pod_name": "api-7d9f8b6c5d-x2k9p"}, "checkout"),
        ({"service": "booking-api", "pod": "other-7d9f8b6c5d-x2k9p"}, "booking-api"),
        ({"exported_service": "checkout", "service": "ingress-nginx-controller-metrics"}, "checkout"),
        ({"service": "kps-prometheus-node-exporter", "job": "node-exporter"}, ""),
        ({"job": "blackbox", "instance": "https://shop.example/health"}, ""),
        ({"job": "integrations/node_exporter", "instance": "quay-3"}, ""),
        ({"job": "postgres-exporter", "instance": "pg-bookings:9187"}, ""),
        ({"service": "invoice-exporter"}, "invoice-exporter"),
        ({"service": "node"}, ""),
        ({"service": "node-api"}, "node-api"),
    ]
    for labels, service in cases:
        assert service_of(labels, "Slow") == service, (labels, service)


@given(
    st.dictionaries(
        st.sampled_from(["service", "job", "app", "pod", "container"]), st.sampled_from(list(STATE.values()))
    )
)
def test_no_exporter_is_meant_by_an_alert_that_is_not_about_it(labels: Labels) -> None:
    assert "kube-state-metrics" not in service_of(labels, "PodSlow")


def title(summary: str, **labels: str) -> str:
    annotations = {"summary": summary} if summary else {"description": "Pod orders/api waits.\nSee the events."}
    payload = Alertmanager().group("firing", {"alertname": "PodSlow", **labels}, annotations=annotations)
    delivery = PARSERS["alertmanager"](encoded(payload), NOW)
    assert delivery is not None
    return open_from(delivery, "i1", Place(Platform.CONSOLE, "incidents")).title


def test_a_title_keeps_the_sentence_of_the_alert_and_names_what_it_is_about() -> None:
    assert title("Pod is crash looping.", **STATE | POD) == "Pod is crash looping. (orders/api)"
    assert title("Disk is full.", **NODE) == "Disk is full. (quay-3)"
    assert (
        title("Probe failed.", job="blackbox", target="https://shop.example") == "Probe failed. (https://shop.example)"
    )
    assert title("The api is slow.", **POD) == "The api is slow."
    assert title("It is slow.", service="api", **POD) == "It is slow."


def test_an_alert_without_a_summary_is_titled_with_its_description() -> None:
    assert title("", **POD) == "Pod orders/api waits."


@every_case("length", [0, 1, 400, 500, 600])
def test_a_long_sentence_leaves_room_for_the_subject(length: int) -> None:
    said = title("x" * length, **POD)
    assert len(said) <= 500
    assert length == 0 or said.endswith("(orders/api)")
