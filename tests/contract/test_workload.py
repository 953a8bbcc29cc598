"""The service that an alert means, by the labels with which Kubernetes' rules fire: never the exporter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.alerts.workload import service_of, subject_of
from bot.config.section import WebhooksSection
from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import open_from
from core.model.conversation import Place, Platform
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.system import encoded

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PARSERS = webhook_parsers(WebhooksSection())
Labels = dict[str, str]


def exporter(job: str, pod: str, **more: str) -> Labels:
    """Return the labels that Prometheus adds to everything it reads from an exporter."""
    own = {"job": job, "service": job, "container": job, "pod": pod, "namespace": "monitoring", "endpoint": "https"}
    return own | {"instance": "10.4.0.9:8443", **more}


STATE = exporter("kube-state-metrics", "kube-state-metrics-5d8c7b9f6d-x2k9p")
KUBELET = exporter("kubelet", "", container="", namespace="kube-system", metrics_path="/metrics")
NODE = exporter("node-exporter", "node-exporter-8kq2z", instance="quay-3")
POD = {"namespace": "orders", "pod": "api-7d9f8b6c5d-x2k9p", "container": "server"}


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that fire with the labels `about`, measured by an exporter with the labels `by`."""

    names: str
    by: Labels
    about: Labels
    service: str
    subject: str = ""


IN_ORDERS = {"namespace": "orders"}
KUBE_PROMETHEUS = [
    Rules("KubePodCrashLooping KubePodNotReady KubeContainerWaiting", STATE, POD, "api", "orders/api"),
    Rules("CPUThrottlingHigh", {}, POD, "api", "orders/api"),
    Rules(
        "KubeDeploymentGenerationMismatch KubeDeploymentReplicasMismatch KubeDeploymentRolloutStuck",
        STATE,
        IN_ORDERS | {"deployment": "api"},
        "api",
        "orders/api",
    ),
    Rules(
        "KubeStatefulSetGenerationMismatch KubeStatefulSetReplicasMismatch KubeStatefulSetUpdateNotRolledOut",
        STATE,
        IN_ORDERS | {"statefulset": "ledger"},
        "ledger",
        "orders/ledger",
    ),
    Rules(
        "KubeDaemonSetMisScheduled KubeDaemonSetNotScheduled KubeDaemonSetRolloutStuck",
        STATE,
        IN_ORDERS | {"daemonset": "tides"},
        "tides",
        "orders/tides",
    ),
    Rules(
        "KubeJobFailed KubeJobNotCompleted",
        STATE,
        IN_ORDERS | {"job_name": "timetable-29022390"},
        "timetable",
        "orders/timetable",
    ),
    Rules(
        "KubeHpaMaxedOut KubeHpaReplicasMismatch",
        STATE,
        IN_ORDERS | {"horizontalpodautoscaler": "api"},
        "api",
        "orders/api",
    ),
    Rules("KubePdbNotEnoughHealthyPods", STATE, IN_ORDERS | {"poddisruptionbudget": "api"}, "api", "orders/api"),
    Rules("KubeQuotaAlmostFull KubeQuotaExceeded KubeQuotaFullyUsed", STATE, IN_ORDERS, "", "orders"),
    Rules(
        "KubePersistentVolumeFillingUp KubePersistentVolumeInodesFillingUp",
        KUBELET,
        IN_ORDERS | {"persistentvolumeclaim": "data-ledger-0", "node": "quay-3"},
        "",
        "data-ledger-0",
    ),
    Rules("KubePersistentVolumeErrors", STATE, {"persistentvolume": "pv-7"}, "", "pv-7"),
    Rules(
        "KubeNodeEviction KubeNodeNotReady KubeNodePressure KubeNodeReadinessFlapping KubeNodeUnreachable",
        STATE,
        {"node": "quay-3"},
        "",
        "quay-3",
    ),
    Rules(
        "KubeletClientCertificateExpiration KubeletClientCertificateRenewalErrors KubeletDown KubeletInstanceUnreachable "
        "KubeletPlegDurationHigh KubeletPodStartUpLatencyHigh KubeletServerCertificateExpiration "
        "KubeletServerCertificateRenewalErrors KubeletTooManyPods",
        KUBELET,
        {"node": "quay-3"},
        "kubelet",
        "quay-3",
    ),
    Rules(
        "NodeBondingDegraded NodeCPUHighUsage NodeClockNotSynchronising NodeClockSkewDetected NodeDiskIOSaturation "
        "NodeFileDescriptorLimit NodeFilesystemAlmostOutOfFiles NodeFilesystemAlmostOutOfSpace "
        "NodeFilesystemFilesFillingUp NodeFilesystemSpaceFillingUp NodeHighNumberConntrackEntriesUsed "
        "NodeMemoryHighUtilization NodeMemoryMajorPagesFaults NodeNetworkInterfaceFlapping NodeNetworkReceiveErrs "
        "NodeNetworkTransmitErrs NodeRAIDDegraded NodeRAIDDiskFailure NodeSystemSaturation "
        "NodeSystemdServiceCrashlooping NodeSystemdServiceFailed NodeTextFileCollectorScrapeError",
        NODE,
        {"device": "sda1"},
        "",
        "quay-3",
    ),
    Rules(
        "KubeAPIDown KubeAPIInstanceUnreachable KubeClientCertificateExpiration", {}, {"job": "apiserver"}, "apiserver"
    ),
    Rules("KubeSchedulerDown KubeSchedulerInstanceUnreachable", {}, {"job": "kube-scheduler"}, "kube-scheduler"),
    Rules(
        "KubeControllerManagerDown KubeControllerManagerInstanceUnreachable",
        {},
        {"job": "kube-controller-manager"},
        "kube-controller-manager",
    ),
    Rules("KubeClientErrors", {}, {"job": "apiserver", "instance": "10.4.0.1:6443"}, "apiserver"),
    Rules(
        "KubeAggregatedAPIDown KubeAggregatedAPIErrors",
        {},
        {"name": "v1beta1.metrics.k8s.io"} | IN_ORDERS,
        "",
        "orders",
    ),
    Rules(
        "KubeAPIErrorBudgetBurn KubeAPITerminatedRequests KubeCPUOvercommit KubeCPUQuotaOvercommit KubeMemoryOvercommit "
        "KubeMemoryQuotaOvercommit KubeVersionMismatch InfoInhibitor Watchdog",
        {},
        {},
        "",
    ),
    Rules(
        "KubeStateMetricsListErrors KubeStateMetricsShardingMismatch KubeStateMetricsShardsMissing "
        "KubeStateMetricsWatchErrors",
        {},
        {"job": "kube-state-metrics"},
        "kube-state-metrics",
    ),
    Rules(
        "PrometheusBadConfig PrometheusDuplicateTimestamps PrometheusErrorSendingAlertsToAnyAlertmanager "
        "PrometheusErrorSendingAlertsToSomeAlertmanagers PrometheusHighQueryLoad PrometheusKubernetesListWatchFailures "
        "PrometheusLabelLimitHit PrometheusMissingRuleEvaluations PrometheusNotConnectedToAlertmanagers "
        "PrometheusNotIngestingSamples PrometheusNotificationQueueRunningFull PrometheusOutOfOrderTimestamps "
        "PrometheusRemoteStorageFailures PrometheusRemoteWriteBehind PrometheusRemoteWriteDesiredShards "
        "PrometheusRuleFailures PrometheusSDRefreshFailure PrometheusScrapeBodySizeLimitHit "
        "PrometheusScrapeSampleLimitHit PrometheusTSDBCompactionsFailing PrometheusTSDBReloadsFailing "
        "PrometheusTargetLimitHit PrometheusTargetSyncFailure",
        exporter("prometheus-k8s", "prometheus-k8s-0"),
        {},
        "prometheus-k8s",
    ),
    Rules(
        "AlertmanagerClusterFailedPeers AlertmanagerFailedReload AlertmanagerFailedToSendAlerts "
        "AlertmanagerMembersInconsistent",
        exporter("alertmanager-main", "alertmanager-main-1"),
        {},
        "alertmanager-main",
    ),
    Rules(
        "AlertmanagerClusterCrashlooping AlertmanagerClusterDown AlertmanagerClusterFailedToSendAlerts "
        "AlertmanagerConfigInconsistent",
        {},
        {"job": "alertmanager-main"},
        "alertmanager-main",
    ),
    Rules(
        "PrometheusOperatorListErrors PrometheusOperatorNodeLookupErrors PrometheusOperatorNotReady "
        "PrometheusOperatorReconcileErrors PrometheusOperatorRejectedResources PrometheusOperatorStatusUpdateErrors "
        "PrometheusOperatorSyncFailed PrometheusOperatorWatchErrors",
        {},
        {"namespace": "monitoring", "controller": "alertmanager", "job": "prometheus-operator"},
        "prometheus-operator",
    ),
    Rules(
        "ConfigReloaderSidecarErrors",
        {},
        {"namespace": "monitoring", "pod": "prometheus-k8s-1"},
        "prometheus-k8s",
        "monitoring/prometheus-k8s",
    ),
    Rules("GrafanaRequestsFailing", {}, {"namespace": "monitoring", "job": "grafana", "handler": "/login"}, "grafana"),
    Rules("TargetDown", {}, {"job": "booking-api", "service": "booking-api", "namespace": "orders"}, "booking-api"),
]
TABLE = [(name, rules) for rules in KUBE_PROMETHEUS for name in rules.names.split()]


def as_exported(by: Labels, about: Labels) -> Labels:
    """Return the labels as Prometheus keeps them without `honorLabels`: those that both have are renamed."""
    return by | {f"exported_{name}" if name in by else name: value for name, value in about.items()}


@pytest.mark.parametrize(("name", "rules"), TABLE, ids=[name for name, _ in TABLE])
def test_a_rule_of_kube_prometheus_means_its_workload(name: str, rules: Rules) -> None:
    for labels in (rules.by | rules.about, as_exported(rules.by, rules.about)):
        assert (service_of(labels, name), subject_of(labels, name)) == (rules.service, rules.subject)


def test_every_rule_is_in_the_table_once() -> None:
    names = [name for name, _ in TABLE]
    assert len(names) == len(set(names)) == 125


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("booking-api-7d9f8b6c5d-x2k9p", "booking-api"),
        ("booking-api-5f6d-bc2df", "booking-api-5f6d"),
        ("booking-api-6b7f9d8c4-q7w2e", "booking-api"),
        ("pg-bookings-0", "pg-bookings"),
        ("pg-bookings-12", "pg-bookings"),
        ("tide-reader-8kq2z", "tide-reader"),
        ("timetable-29022390-zx8bq", "timetable"),
        ("booking-api", "booking-api"),
        ("kube-proxy-quay-3", "kube-proxy-quay"),
    ],
)
def test_the_workload_of_a_pod_is_its_name_without_what_kubernetes_appends(pod: str, workload: str) -> None:
    assert service_of({"pod": pod}, "PodSlow") == workload


@pytest.mark.parametrize(
    ("labels", "service"),
    [
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
    ],
)
def test_the_labels_mean_the_workload_and_not_what_measured_it(labels: Labels, service: str) -> None:
    assert service_of(labels, "Slow") == service


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


@pytest.mark.parametrize("length", [0, 1, 400, 500, 600])
def test_a_long_sentence_leaves_room_for_the_subject(length: int) -> None:
    said = title("x" * length, **POD)
    assert len(said) <= 500
    assert length == 0 or said.endswith("(orders/api)")
