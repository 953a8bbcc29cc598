"""A fault of an object, and whether it hurts now.

A fault counts only with a symptom that `knowledge.toml` names for it, and with nothing that acquits its object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.model.findings import EvidenceKind
from core.rca.cluster.state import RECENT, Cluster, Resource, ShownPart
from core.rca.failures import Fault


@dataclass(frozen=True, slots=True)
class ObjectFault:
    """A fault of an object (`app`, `node` or `namespace`), and its cause in a sentence.

    `quote` are verbatim lines of `source`. `detail` is the part of the object: the daemon of a node, or a probe.
    `strength` in [0, 1] says how certain it is that the object has this fault. `symptom` is the one that the evidence
    itself shows, empty if another has to. `at` is when it was seen, None if that is not told. `also` are further lines
    that show how the object suffers.
    """

    kind: str
    name: str
    fault: Fault
    cause: str
    strength: float
    quote: str
    source: str
    detail: str = ""
    symptom: str = ""
    evidence: EvidenceKind = EvidenceKind.TOPOLOGY
    at: datetime | None = None
    also: tuple[ShownPart, ...] = ()

    @property
    def trouble(self) -> str:
        """Return the cause without the name of the object."""
        return self.cause.partition(": ")[2] or self.cause


BACK_OFF = timedelta(minutes=5)  # most that Kubernetes waits before it starts a container again

Symptom = Callable[[Cluster, ObjectFault], bool]


def hurts(cluster: Cluster, finding: ObjectFault) -> bool:
    """Return whether one of the symptoms of a fault is there, and nothing acquits its object."""
    shown = finding.symptom in finding.fault.hurts or any(
        SYMPTOMS[name](cluster, finding) for name in finding.fault.hurts if name in SYMPTOMS
    )
    is_old = bool(cluster.focus) and finding.name not in cluster.focus and _is_chronic(cluster, finding)
    return shown and not is_old and not any(ACQUITTALS[name](cluster, finding) for name in finding.fault.acquits)


def _is_chronic(cluster: Cluster, finding: ObjectFault) -> bool:
    """Return whether the trouble of a workload's pods began before the present: they restarted too often to be new to it.

    A container that fails again and again is started at most every BACK_OFF.
    """
    pods = [each for each in cluster.pods(finding.name) if not cluster.is_well(each)]
    return bool(pods) and all((each.restarts or 0) * BACK_OFF > 2 * RECENT for each in pods)


def services_of(cluster: Cluster, app: str) -> list[Resource]:
    """Return the services that select a workload's pods or template, or are named like it as far as no labels were read."""
    workload = cluster.find("Workload", app)
    is_labelled = workload is not None and bool(workload.labels)
    return [
        each
        for each in cluster.of("Service")
        if each.name == app
        or any(one.app == app for one in cluster.selected_by(each))
        or (not is_labelled and app.startswith(f"{each.name}-"))
    ]


def endpoints_of(cluster: Cluster, service: Resource) -> tuple[str, ...] | None:
    """Return the ready addresses of a service; None if they were not read."""
    listed = cluster.find("Endpoints", service.name)
    return listed.endpoints if listed is not None and listed.endpoints is not None else service.endpoints


def is_refused(cluster: Cluster, name: str, how: tuple[str, ...] = ("",)) -> bool:
    """Return whether a check fails, or others report by its name or address, in one of these phrases, that a service does not
    answer.
    """
    service = cluster.find("Service", name)
    names = [name, *(part for part in ((service.address if service else ""),) if part)]
    words = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")
    return any(
        each.name == name
        if each.kind == "check"
        else each.name != name and words.search(each.text) and any(phrase in each.text.lower() for phrase in how)
        for each in cluster.refusals
    )


def _is_unserved(cluster: Cluster, finding: ObjectFault) -> bool:
    """Return whether a service that is asked about, or whose pods are ready, has no ready endpoint."""
    return any(
        not (cluster.selected_by(each) if (ready := endpoints_of(cluster, each)) is None else ready)
        and (
            bool({each.name, finding.name} & cluster.focus)
            or any(pod.status == "Running" and cluster.is_well(pod) for pod in cluster.pods(each.name))
        )
        for each in services_of(cluster, finding.name)
    )


def _is_down(cluster: Cluster, finding: ObjectFault) -> bool:
    node = cluster.find("Node", finding.name)
    pods = [each for each in cluster.of("Pod") if each.node == finding.name]
    if node is not None and node.cordoned and not pods:
        return False
    return (node is not None and not cluster.is_well(node)) or any(each.app in cluster.unwell for each in pods)


SYMPTOMS: Mapping[str, Symptom] = {
    "unready": lambda cluster, finding: finding.name in cluster.unwell,
    "pending": lambda cluster, finding: any(
        each.status == "Pending"
        for each in (cluster.pods(finding.name) if finding.kind == "app" else cluster.of("Pod"))
    ),
    "refused": lambda cluster, finding: (
        bool(cluster.refusals)
        if finding.kind == "node"
        else any(
            is_refused(cluster, name)
            for name in {finding.name, *(each.name for each in services_of(cluster, finding.name))}
        )
    ),
    "unserved": _is_unserved,
    "down": _is_down,
}
"""The symptoms that other evidence shows; `said`, `measured` and `uncreated` are shown by the finding's own."""


def halves_of(cluster: Cluster, service: Resource) -> tuple[list[Resource], list[Resource]]:
    """Return the workloads, such as blue and green, of a service: those that its selector names, and the others."""
    alike = [each for each in cluster.of("Workload") if each.name.startswith(f"{service.name}-")]
    named = [each for each in alike if each.name.removeprefix(f"{service.name}-") in service.selector.values()]
    return named, [each for each in alike if each not in named]


def _is_other_half(cluster: Cluster, finding: ObjectFault) -> bool:
    """Return whether another half of the same service has ready pods, and this one is not what the service selects."""
    halves = [halves_of(cluster, service) for service in services_of(cluster, finding.name)]
    return any(
        any(each.ready for each in (*named, *others)) and finding.name not in {each.name for each in named}
        for named, others in halves
    )


ACQUITTALS: Mapping[str, Symptom] = {
    "served": lambda cluster, finding: any(endpoints_of(cluster, each) for each in services_of(cluster, finding.name)),
    # An autoscaler decides about the workload's replicas.
    "scaled": lambda cluster, finding: any(each.target == finding.name for each in cluster.of("Autoscaler")),
    "other_half": _is_other_half,
}
