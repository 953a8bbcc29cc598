"""The labels with which the rules of kube-prometheus and their siblings fire, and the service that each alert means."""

from __future__ import annotations

from dataclasses import dataclass

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
