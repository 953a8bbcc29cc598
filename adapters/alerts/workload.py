"""The service that labels mean: the workload that an alert is about, and never the exporter that measured it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

NAMED = (
    *("exported_service", "service", "service_name", "app_kubernetes_io_name", "app", "component"),
    "destination_service_name",
)
KINDS = (
    "deployment deployment_name statefulset stateful_set statefulset_name daemonset daemon_set daemonset_name cronjob "
    "cronjob_name job_name rollout workload owner_name created_by_name replicaset replicaset_name pod pod_name container "
    "container_name horizontalpodautoscaler poddisruptionbudget"
).split()
WORKLOADS = [
    f"{source}{kind}" for kind in KINDS for source in ("", "kube_", "k8s_")
]  # the latter in Datadog, OpenTelemetry
SCRAPED = ("exported_job", "job")
NODES = ("node", "nodename", "host", "hostname", "kubernetes_node")
PLACES = ("persistentvolumeclaim", "persistentvolume", "target", *NODES, "instance")
"""Labels by what they name. In Prometheus, a label of the measured thing is called `exported_…` if the exporter has it too."""

NAMING = (*NAMED, *WORKLOADS, *(f"exported_{name}" for name in WORKLOADS), *SCRAPED, *PLACES)

STATE_METRICS = "kube-state-metrics"
EXPORTED = (
    "node blackbox mysqld? postgres(?:ql)? redis kafka elasticsearch mongodb rabbitmq memcached nginx haproxy snmp windows "
    "process statsd cloudwatch stackdriver azure(?:-metrics)? dcgm jmx consul graphite influxdb apache json ssl domain "
    "smartctl ipmi celery oracledb sql proxysql pgbouncer varnish bind ping script systemd event x509-certificate"
)
_EXPORTER = re.compile(
    rf"kube-?state-?metrics|cadvisor|kubelet|pushgateway|blackbox|o(?:pen)?tel(?:emetry)?-?collector|"
    rf"(?:{'|'.join(EXPORTED.split())})[-_]?exporter|"
    r"\A(?:node|snmp|unix|windows|kubernetes-(?:pods|nodes|services|endpoints|service-endpoints|apiservers|ingresses))\Z"
)
_SOURCE = re.compile(r"\A(?:exported_|kube_|k8s_)")
_HASH = r"(?:[bcdf-hj-np-tv-xz2456789]{6,10}|(?=[a-z]*\d)[a-z0-9]{8,10})"  # without vowels, as Kubernetes makes them
_SUFFIX = r"(?:[bcdf-hj-np-tv-xz2456789]{5}|(?=[a-z]*\d)[a-z0-9]{5}|\d{1,4})"
_GENERATED = {
    "pod": re.compile(rf"(?:-{_HASH}-[a-z0-9]{{5}}|(?:-\d{{8,10}})?-{_SUFFIX})\Z"),
    "replicaset": re.compile(rf"-{_HASH}\Z"),
    "job_name": re.compile(r"-\d{8,10}\Z"),
}
"""The end of a name that Kubernetes appends to that of the workload, by label."""


def service_of(labels: Mapping[str, str], alert: str, more: Sequence[str] = ()) -> str:
    """Return the service that the labels mean; empty if they name only exporters. `more` are further labels to ask.

    An exporter is meant only by an alert whose name is about it.
    """
    return next(_candidates(labels, alert, (*NAMED, *_workloads(), *SCRAPED, *more)), "")


def subject_of(labels: Mapping[str, str], alert: str) -> str:
    """Return what an alert is about, if no label names its service: `namespace/workload`, a node, a volume, an address.

    Of an agent that runs on every node, such as the kubelet, it is the node.
    """
    if service := next(_candidates(labels, alert, NAMED), ""):
        is_agent = _EXPORTER.search(service.lower()) is not None
        return next((labels[name] for name in NODES if labels.get(name)), "") if is_agent else ""
    namespace = labels.get("exported_namespace") or labels.get("namespace", "")
    if workload := next(_candidates(labels, alert, _workloads()), ""):
        return f"{namespace}/{workload}" if namespace else workload
    if any(_candidates(labels, alert, SCRAPED)):
        return ""
    about_objects = any(
        STATE_METRICS in labels.get(name, "") for name in ("service", "job")
    )  # then it is its own instance
    places = (labels.get(name, "") for name in PLACES if not (about_objects and name == "instance"))
    return next(filter(None, places), namespace)


def _workloads() -> Iterator[str]:
    return (f"{prefix}{name}" for prefix in ("exported_", "") for name in WORKLOADS)


def _candidates(labels: Mapping[str, str], alert: str, names: Iterable[str]) -> Iterator[str]:
    topic = _letters(alert)
    for name in names:
        value = _without_end(name, labels.get(name, ""), labels)
        exporter = _EXPORTER.search(value.lower())
        if value and (exporter is None or _letters(exporter[0]) in topic):
            yield value


def _without_end(label: str, value: str, labels: Mapping[str, str]) -> str:
    kind = _SOURCE.sub("", label)
    kind = kind.removesuffix("_name") if kind != "job_name" else kind
    if kind in ("owner", "created_by"):
        kind = labels.get(label.replace("_name", "_kind"), "").lower()
    if kind in SCRAPED:
        return value.rpartition("/")[2]  # of a monitor for pods or probes: NAMESPACE/NAME
    end = _GENERATED.get(kind)
    return end.sub("", value) if end is not None else value


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
