"""Find what differs in the objects of a cluster from what they themselves declare as their aim, and hurts now.

An event about an object that is well now is past, and so is the end of a container that was replaced since. Words are a
cause only where no state explains it better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from statistics import median

from core.knowledge.phrases import pattern_of
from core.model.findings import EvidenceKind
from core.rca.cluster.faults import ObjectFault, endpoints_of, halves_of, hurts, is_refused, services_of
from core.rca.cluster.state import (
    STARTING,
    Cluster,
    Complaint,
    Container,
    Event,
    Probe,
    Resource,
    ShownPart,
    app_of,
    is_of_node,
    is_short,
    quantity,
)
from core.rca.failures import FAULTS, WRONG, Saying, cause_offset
from core.rca.log_lines import cut, spoken

PROVEN, LIKELY, POSSIBLE = (
    0.97,
    0.85,
    0.6,
)  # strength: an object shows fault and harm, one of them is inferred, both are
LESS = 0.02  # strength that a state without an event lacks, and one that only may do harm
HASTY = 5.0  # seconds from the start of a container to its first kill, which few programs are quick enough for
SEVERAL = 3  # services that suffer together
MAX_SUFFERING = 2  # further lines about one fault
MAX_ABOUT = 60  # characters before the words of a fault that are told with them
LONG = 1.0  # seconds that packets sent again hardly cost an answer

_REASONS: Mapping[str, tuple[str, ...]] = {
    "create": ("FailedCreate",),
    "pod": ("FailedMount", "FailedAttachVolume", "Failed", "FailedCreate", "FailedCreatePodSandBox", "Evicted"),
    "pull": ("Failed", "FailedToRetrieveImagePullSecret", "InspectFailed", "BackOff"),
}
"""The reasons of the events in which words of a fault are sought."""
_CODES = {126: "its command cannot be executed", 127: "its command is not found", 137: "it was killed", 139: "a segmentation fault", 143: "it was told to end"}  # fmt: skip
"""The meaning of exit codes: those of shells, and 128 and the number of a signal."""
_IMAGE = re.compile(r"image \"([^\"]{1,300})\"")
_QUOTA = re.compile(r"exceeded quota: ([\w.-]+), requested: (\S+), used: (\S+), limited: (\S+)")
_AMOUNT = re.compile(r"(?<![\w./-])([\w./-]{1,60})=(\w[\w.]*)")
_QUOTAS = {
    "storage": "QUOTA_STORAGE", "persistentvolumeclaims": "QUOTA_STORAGE", "cpu": "QUOTA_CPU",
    "memory": "QUOTA_MEMORY", "pods": "QUOTA_PODS", "services": "QUOTA_SERVICES",
}  # fmt: skip
_FAILED_PROBE = re.compile(r"(?P<probe>Liveness|Readiness|Startup) probe (?:failed|errored)")
_OTHER_PROTOCOL = re.compile(
    r"malformed HTTP|HTTP/1\.x transport|server gave HTTP response|first record does not look like|unexpected EOF|"
    r"server preface|tls: |unimplemented|protocol|connection reset|\bEOF\b|parse error",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:(?:jdbc:)?[\w+]{1,20}://)?(?:[^@/\s]{1,100}@)?(?P<host>[a-z][a-z0-9-]{0,62})(?:\.(?P<zone>[a-z0-9.-]{1,200}))?(?::(?P<port>\d{2,5}))?(?:[/,;?]|$)"
)
_HOST = ("HOST", "HOSTNAME", "ADDR", "ADDRESS", "SERVER")  # ends of the names of variables with a host
_ADDRESSES = tuple(f"{name}{end}" for name in (*_HOST, "URL", "URI", "ENDPOINT", "SERVICE") for end in ("", "S", "ES"))
_DATABASES = frozenset({"3306", "5432", "1433", "1521"})  # ports of MySQL, PostgreSQL, SQL Server and Oracle
_HOSTS = re.compile(r"[a-z][a-z0-9-]*")
_THROTTLED = re.compile(r"throttl|saturation.{0,10}cpu|cpu.{0,20}(?:saturat|limit|100 ?%)", re.IGNORECASE)
_LOST = re.compile(
    pattern_of("(retrans | packet loss | (packet | packets) (lost | dropped) | loses packets)"), re.IGNORECASE
)
_SLOW = ("latency", "slowresponse", "responsetime")  # without what stands between words
_RISEN = re.compile(r"-> ?(?:\w{1,20}=)?(\d{1,12}(?:\.\d{1,6})?)")
_TIME = re.compile(r"(?<![\w.])(\d{1,12}(?:\.\d{1,6})?) ?(ms|s)\b")
_FEWER = re.compile(r"(?:traffic|throughput|requests?|rps|pps)\b.{0,80}(?:drop|fell|\(-)", re.IGNORECASE)
_REJECTED = ("refused", "reset by peer")
_FACTOR = re.compile(r"\(\+?(\d{1,12}(?:\.\d{1,3})?)%\)")
_DAEMONS = ("kubelet", "containerd", "docker", "crio", "kube-scheduler", "kube-proxy", "kube-apiserver", "etcd")


def findings(cluster: Cluster) -> list[ObjectFault]:
    """Return what is wrong and hurts, the most certain first; one finding of each fault of an object."""
    rules = (
        _quotas, _words, _daemons, _placements, _claims, _ends, _waits, _conditions, _probes, _selectors, _target_ports, _addresses,
        _replicas, _measures,
    )  # fmt: skip
    strongest: dict[tuple[str, str, str], ObjectFault] = {}
    for each in chain.from_iterable(rule(cluster) for rule in rules):
        key = (each.kind, each.name, each.fault.id)
        if (key not in strongest or strongest[key].strength < each.strength) and hurts(cluster, each):
            strongest[key] = each
    certain = sorted(strongest.values(), key=lambda each: -each.strength)
    return [replace(each, also=_suffering(cluster, each)) for each in certain]


def _suffering(cluster: Cluster, fault: ObjectFault) -> tuple[ShownPart, ...]:
    """Return further lines that show how the workload of a fault suffers: warnings about it, and what it asks of a node."""
    reasons = {event.reason for event in cluster.events}
    lines = [event.shown for event, app in _current(cluster, *reasons) if app == fault.name]
    pods = [each for each in cluster.pods(fault.name) if not cluster.is_well(each)]
    words = ("Node-Selectors:",) if fault.fault.id == "NODE_SELECTOR" else ()
    lines += [_line(each, *words, each.status) for each in pods[:1] if each.status]
    lines += [_line(each, each.status) for each in cluster.of("Claim") if each.name in fault.cause]
    distinct = {line.text: line for line in lines if line.text not in fault.quote and fault.quote not in line.text}
    return tuple(distinct.values())[:MAX_SUFFERING]


def _finding(
    shown: ShownPart,
    fault: str,
    name: str,
    cause: str,
    strength: float = PROVEN,
    *,
    kind: str = "app",
    detail: str = "",
    symptom: str = "",
    at: datetime | None = None,
) -> ObjectFault:
    subject = name if kind == "app" else f"{kind} {name}"
    quote = cut(shown.text, cause_offset(shown.text))
    return ObjectFault(
        kind, name, FAULTS[fault], f"{subject}: {cause}", strength, quote, shown.source, detail, symptom, at=at
    )


def _current(cluster: Cluster, *reasons: str) -> Iterator[tuple[Event, str]]:
    """Yield the warnings with these reasons whose objects are not well, oldest first, each with its object's workload."""
    for each in sorted(cluster.events, key=lambda event: event.at.timestamp() if event.at else 0.0):
        if each.reason in reasons and each.is_warning and not cluster.is_over(each):
            yield each, (cluster.find(each.kind, each.name) or Resource(each.kind, each.name)).app


def _line(resource: Resource, *words: str) -> ShownPart:
    """Return the first line that shows a property of an object, with its source."""
    for word in words:
        for shown in reversed(resource.shown):
            for line in shown.text.splitlines():
                if word in line:
                    return ShownPart(shown.source, cut(line.strip(), line.strip().find(word)))
    return (
        ShownPart(resource.shown[0].source, cut(resource.shown[0].text))
        if resource.shown
        else ShownPart("", resource.name)
    )


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _quotas(cluster: Cluster) -> Iterator[ObjectFault]:
    namespaces = (each.namespace for each in cluster.of("Pod", "Workload", "Service", "Quota") if each.namespace)
    here = next(namespaces, "default")
    for event, app in _current(cluster, "FailedCreate", "ProvisioningFailed"):
        if match := _QUOTA.search(event.message):
            demand, used, hard = (dict(_AMOUNT.findall(match[place])) for place in (2, 3, 4))
            over = (key for key in hard if is_short(used.get(key, "0"), demand.get(key, "0"), hard[key]))
            key = next(over, next(iter(hard), ""))
            cause = f"exceeded quota {match[1]}: it allows {hard.get(key)} of {key}, of which {used.get(key)} are used, and {app} asks for {demand.get(key)}"
            fault = next((fault for word, fault in _QUOTAS.items() if word in key), "QUOTA_OTHER")
            yield _finding(event.shown, fault, here, cause, kind="namespace", symptom="uncreated", at=event.at)


def _words(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield what events, evicted pods and logs say in words; of a pull that failed, the first fault that its words tell."""
    for where, reasons in _REASONS.items():
        for event, app in _current(cluster, *reasons):
            if where != "pull" or "pull" in event.message.lower() or "image" in event.message.lower():
                faults = list(_first(where, event.shown, event.message, app, PROVEN, at=event.at))
                cause = f"its pod cannot start: {spoken(event.message)}"
                other = [_finding(event.shown, "START", app, cause, LIKELY, at=event.at)] if where == "pod" else []
                yield from faults or other
    for pod in cluster.of("Pod"):
        if pod.message and not cluster.is_well(pod) and not cluster.is_past(pod):
            shown = _line(pod, pod.message[:60], pod.reason or pod.status)
            yield from _first("pod", replace(shown, text=pod.message), pod.message, pod.app, PROVEN - LESS)
    for each in cluster.said:
        is_unwell = not cluster.unwell or each.name in cluster.unwell
        for finding in _first("log", each.shown, each.text, each.name, LIKELY if is_unwell else POSSIBLE):
            yield replace(finding, evidence=EvidenceKind.LOG)


def _first(
    where: str, shown: ShownPart, text: str, app: str, strength: float, *, at: datetime | None = None
) -> Iterator[ObjectFault]:
    for fault, saying in SAYINGS[where]:
        # The last, because errors that wrap each other end with the innermost.
        if match := max(saying.words.finditer(text), key=lambda each: each.start(), default=None):
            quote = ShownPart(shown.source, cut(shown.text, max(0, shown.text.find(match[0]))))
            cause = saying.cause.format(x=match.groupdict().get("x"))
            if where == "pull" and (image := _IMAGE.search(text)):
                cause = cause.replace("its image", f"its image {image[1]}", 1)
            # With the part of the statement before the words that names what they are about.
            start = max(text.rfind(": ", 0, match.start()) + 1, match.start() - MAX_ABOUT, 0)
            cause += "" if match.groupdict().get("x") else f" (“{' '.join(text[start : match.end()].split())}”)"
            yield _finding(quote, fault, app, cause, strength, symptom="said", at=at)
            return


SAYINGS: Mapping[str, Sequence[tuple[str, Saying]]] = {
    where: [(name, saying) for name, fault in FAULTS.items() for saying in fault.says if saying.where == where]
    for where in (*_REASONS, "place", "log")
}
"""The words of faults, by where they are said."""


def _daemons(cluster: Cluster) -> Iterator[ObjectFault]:
    down = set[str]()
    for each in cluster.daemons:
        if each.state in ("inactive", "failed", "deactivating", "activating") and each.name in _DAEMONS:
            down.add(each.node)
            shown = ShownPart(each.source, each.line)
            cause, strength = f"{each.name} does not run", PROVEN + LESS / 2
            yield _finding(shown, "DAEMON", each.node, cause, strength, kind="node", detail=each.name)
    for node in cluster.of("Node"):
        if node.status in ("NotReady", "Unknown") and node.name not in down:
            why = next((each.message for each in node.conditions if each.type == "Ready"), "")
            cause, daemon = f"the node is not ready{why and ': '}{why}", "containerd" if "runtime" in why else "kubelet"
            shown = _line(node, "NotReady", "Ready  ", "NodeStatusUnknown")
            yield _finding(shown, "DAEMON", node.name, cause, PROVEN - LESS, kind="node", detail=daemon)


def _placements(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield why pods are not placed: for the reason that most nodes give, or that a node gives which the pod selects."""
    nodes = list(cluster.of("Node"))
    control = sum(bool(each.is_control and each.cordoned) for each in nodes)
    workers_cordoned = any(each.cordoned and not each.is_control for each in nodes)
    latest = {event.name: (event, app) for event, app in _current(cluster, "FailedScheduling")}
    for event, app in latest.values():
        pod = cluster.find(event.kind, event.name)
        selected = pod.node_selector if pod else dict[str, str]()
        exists = bool(selected) and any(selected.items() <= each.labels.items() for each in nodes)
        weighed: list[tuple[int, str, str]] = []
        for fault, saying in SAYINGS["place"]:
            if match := saying.words.search(event.message.partition(" preemption:")[0]):
                count = int(match["x"]) if match["x"].isdecimal() else 1
                count += 0 if fault != "CORDON" else len(nodes) if workers_cordoned else -control
                weighed.append(
                    (0 if fault == "AFFINITY" and exists else count, fault, saying.cause.format(x=match["x"]))
                )
        count, fault, cause = max(weighed, key=lambda each: each[0], default=(0, "VOLUME", ""))
        if fault == "AFFINITY" and selected:
            fault, cause = "NODE_SELECTOR", f"no node has the labels of its node selector ({_pairs(selected)})"
        if count > 0:
            strength = PROVEN - 2 * LESS if fault == "VOLUME" else PROVEN  # a quota may have refused the claim
            cause, symptom = f"its pod cannot be scheduled: {cause}", "" if pod else "pending"
            yield _finding(event.shown, fault, app, cause, strength, symptom=symptom, at=event.at)


def _claims(cluster: Cluster) -> Iterator[ObjectFault]:
    for claim in cluster.of("Claim"):
        users = [each.app for each in cluster.of("Pod", "Workload") if claim.name in each.claims]
        users += [app_of(claim.owner)] if claim.owner else []
        users += [each.app for each in cluster.of("Pod") if claim.name.endswith(f"-{each.name}")]  # of a StatefulSet
        if claim.status in ("Pending", "Lost") and users:
            events = [
                event
                for event, _ in _current(cluster, "FailedBinding", "ProvisioningFailed")
                if event.name == claim.name
            ]
            shown = events[0].shown if events else _line(claim, "Pending", "Lost")
            fault, why = _unbound(cluster, claim)
            strength, symptom = (PROVEN, "said") if events else (PROVEN - LESS, "")
            cause = f"its PersistentVolumeClaim {claim.name} is not bound: {why}"
            yield _finding(shown, fault, users[0], cause, strength, symptom=symptom)


def _unbound(cluster: Cluster, claim: Resource) -> tuple[str, str]:
    """Return why no volume fits a claim: what keeps the volume that fits best from being bound."""
    volumes = list(cluster.of("Volume"))
    classes = {each.name for each in cluster.of("StorageClass")} | {each.storage_class for each in volumes}
    if claim.storage_class and claim.storage_class not in classes:
        return "VOLUME_CLASS", f"the storage class {claim.storage_class} is not found"
    tried: list[Sequence[tuple[str, str]]] = []
    for volume in volumes:
        has, wants = volume.storage_class or "none", claim.storage_class or "none"
        size, demand = quantity(volume.capacity), quantity(claim.capacity)
        unmet = (
            (has != wants, "VOLUME_CLASS", f"has the storage class {has}, and it asks for {wants}"),
            (
                bool(volume.modes) and not set(claim.modes) <= set(volume.modes),
                "VOLUME_MODE",
                f"offers {', '.join(volume.modes)}, and it asks for {', '.join(claim.modes)}",
            ),
            (
                bool(claim.selector.items() - volume.labels.items()),
                "VOLUME_LABELS",
                f"lacks the labels that it selects ({_pairs(claim.selector)})",
            ),
            (
                bool(size and demand and size < demand),
                "VOLUME_SIZE",
                f"has {volume.capacity}, and it asks for {claim.capacity}",
            ),
            (volume.target not in ("", claim.name), "VOLUME_TAKEN", f"is bound to the claim {volume.target}"),
        )
        tried.append([(fault, f"the volume {volume.name} {why}") for is_unmet, fault, why in unmet if is_unmet])
    if not all(tried):  # nothing that was read keeps one of them from being bound
        return "VOLUME", "no volume was bound to it, and none is provisioned"
    free_first = sorted(tried, key=lambda unmet: (unmet[-1][0] == "VOLUME_TAKEN", len(unmet)))
    return free_first[0][0] if free_first else ("VOLUME", "no volume fits, and none is provisioned")


def _unwell_containers(cluster: Cluster) -> Iterator[tuple[Resource, Container, str]]:
    """Yield the containers of pods that are not well, each with its name in a sentence: “the container istio-proxy”."""
    for pod in cluster.of("Pod"):
        if not cluster.is_well(pod) and not cluster.is_past(pod):
            for container in pod.containers:
                kind = "init container" if container.is_init else "container"
                yield pod, container, f"the {kind} {container.name}"


def _ends(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield the containers that ran out of memory, or that keep ending for a reason which their state does not tell."""
    for pod, container, named in _unwell_containers(cluster):
        is_out = "OOMKilled" in (container.ended, container.last)
        keeps_ending = container.ended not in (None, "", "Completed") and not is_out
        if not (container.ended == "OOMKilled" or keeps_ending or cluster.has_ended(pod, container)):
            continue
        if is_out:
            limit = f" at its limit of {container.limits['memory']}" if "memory" in container.limits else ""
            code = "" if container.code is None else f", exit code {container.code}"
            cause = f"{named} was OOMKilled: it ran out of memory{limit}{code}"
            yield _finding(_line(pod, "OOMKilled"), "MEMORY", pod.app, cause, at=container.at)
            continue
        code = "" if container.code is None else f" with exit code {container.code}"
        code += f", {_CODES[container.code]}" if container.code in _CODES else ""
        message = container.message or ""
        says = "" if message.lower().startswith("back-off") else spoken(message)
        shown = _line(pod, *([message[:60]] if says else []), "Exit Code", "exitCode", "CrashLoopBackOff", "Terminated")
        cause = f"{named} keeps ending{code}{says and ': '}{says}"
        yield _finding(shown, "CRASH", pod.app, cause, LIKELY if says else POSSIBLE, at=container.at)
    for pod in cluster.of("Pod"):
        if not pod.containers and pod.status in ("CrashLoopBackOff", "Error", "OOMKilled") and not cluster.is_past(pod):
            fault = "MEMORY" if pod.status == "OOMKilled" else "CRASH"
            yield _finding(
                _line(pod, pod.status), fault, pod.app, f"its container keeps ending ({pod.status})", POSSIBLE
            )


def _waits(cluster: Cluster) -> Iterator[ObjectFault]:
    for pod, container, named in _unwell_containers(cluster):
        if (container.waits or "") in (*STARTING, "CrashLoopBackOff"):
            continue
        message = container.message or ""
        shown = _line(pod, message[:60] or str(container.waits), str(container.waits))
        typed = [
            *_first("pod", shown, message, pod.app, PROVEN - LESS),
            *_first("pull" if "mage" in str(container.waits) else "pod", shown, message, pod.app, PROVEN - LESS),
        ]
        yield from typed[:1]
        cause = f"{named} waits in {container.waits}{message and ': '}{spoken(message)}"
        yield _finding(shown, "WAITING", pod.app, cause, LIKELY - LESS if message else POSSIBLE)


def _conditions(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield what the controllers of objects of any kind report to be wrong now; pods and nodes that are lost say it better."""
    for each in cluster.resources.values():
        for condition in each.conditions:
            rule = next((rule for rule in WRONG if rule.fits(condition.type, condition.status, condition.reason)), None)
            if rule is None or each.kind in ("Pod", "ReplicaSet") or (each.kind, condition.type) == ("Node", "Ready"):
                continue
            events = (event.at for event in cluster.events if event.name == each.name and event.at)
            at = condition.at or max(events, default=None)
            if not cluster.is_recent(at, unknown=each.kind != "Job"):
                continue
            is_target = cluster.find("Workload", each.target) or cluster.find("Service", each.target)
            name, kind = each.target if is_target else each.app, "node" if each.kind == "Node" else "app"
            why = ": ".join(part for part in (condition.reason, condition.message) if part)
            who = "it" if kind == "node" else f"its {each.kind} {each.name}"
            cause = f"{who} reports {condition.type}={condition.status}{why and f' ({spoken(why)})'}"
            shown = _line(each, *filter(None, (condition.message[:60], condition.reason)), condition.type)
            symptom = rule.symptom if rule.symptom != "said" or at is not None else ""
            strength = POSSIBLE if rule.fault == "CONDITION" else LIKELY
            yield _finding(shown, rule.fault, name, cause, strength, kind=kind, symptom=symptom, at=at)


def _probes(cluster: Cluster) -> Iterator[ObjectFault]:
    for event, app in _current(cluster, "Unhealthy"):
        match, pod = _FAILED_PROBE.search(event.message), cluster.find(event.kind, event.name)
        if match is None:
            continue
        name, message = match["probe"].lower(), event.message.partition(": ")[2] or event.message
        probes = [(one, one.probes[name]) for one in (pod.containers if pod else ()) if name in one.probes]
        faults = [_probe_fault(container, name, probe, event.message) for container, probe in probes]
        for fault, reason in [each or ("PROBE", message) for each in faults or [None]]:
            strength = {"PROBE": POSSIBLE, "PROBE_TIMING": LIKELY}.get(fault, PROVEN - LESS)
            strength += LESS / 2 if name == "liveness" else 0.0  # it restarts, from which other failures follow
            cause = f"its {name} probe fails: {reason}"
            yield _finding(event.shown, fault, app, cause, strength, detail=name, symptom="said", at=event.at)


def _probe_fault(container: Container, name: str, probe: Probe, message: str) -> tuple[str, str] | None:
    """Return the mistake in a probe, and the cause in words; None if its settings show none."""
    offered = [each.number for each in container.ports] + [each.name for each in container.ports if each.name]
    others = [each.handler for key, each in container.probes.items() if key != name and each.port == probe.port]
    instead = next((each for each in others if each != probe.handler and "exec" not in (each, probe.handler)), "")
    if offered and probe.port and probe.port not in offered:
        return (
            "PROBE_PORT",
            f"it asks port {probe.port}, and the container {container.name} declares {', '.join(offered)}",
        )
    if instead or _OTHER_PROTOCOL.search(message):
        instead = instead or "another protocol"
        return "PROBE_PROTOCOL", f"it speaks {probe.handler} to port {probe.port}, which serves {instead}"
    if name == "liveness" and probe.delay + probe.period * (probe.failures - 1) < HASTY:
        after = probe.delay + probe.period * probe.failures
        times = f"delay={probe.delay:.0f}s period={probe.period:.0f}s #failure={probe.failures}"
        return "PROBE_TIMING", f"it kills the container {after:.0f} s after its start ({times})"
    return None


def _selectors(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield the services whose selectors match no pod. Pods whose labels were not read may match, unless they are ready."""
    if not any(each.labels for each in cluster.of("Pod", "Workload")):
        return
    for service in cluster.of("Service"):
        named_half, other_half = ([each for each in half if not each.labels] for half in halves_of(cluster, service))
        idle = any(each.wanted == 0 for each in named_half or other_half) and not any(each.ready for each in named_half)
        unread = [each for each in cluster.pods(service.name) if not each.labels]
        may_be_selected = bool(unread) and not any(map(cluster.is_well, unread))
        is_served = bool(cluster.selected_by(service) or endpoints_of(cluster, service))
        if service.selector and not (is_served or idle or may_be_selected):
            cause = f"the selector of its service matches no pod ({_pairs(service.selector)})"
            shown = _line(service, "Selector:", "selector", "<none>")
            yield _finding(shown, "SELECTOR", service.name, cause, PROVEN - LESS)


def _target_ports(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield the services that lead to a port on which no container of their pods listens.

    A container may listen where it declares nothing, and a description has no names of ports: then only what refuses
    connections, or has no endpoint, is known not to listen. If several services refuse them, something else does.
    """
    rejected = [each for each in cluster.of("Service") if is_refused(cluster, each.name, _REJECTED)]
    for service in cluster.of("Service"):
        pods, is_rejected = cluster.selected_by(service), service in rejected and len(rejected) < SEVERAL
        offered = {(port.number, port.protocol) for pod in pods for one in pod.containers for port in one.ports}
        named = {port.name for pod in pods for one in pod.containers for port in one.ports if port.name}
        numbers = {number for number, _ in offered}
        is_unserved = endpoints_of(cluster, service) == ()
        for port in service.ports if pods else ():
            shown, is_number = _line(service, "TargetPort", "targetPort"), port.target.isdecimal()
            if port.target in numbers | named:
                if port.target in numbers and (port.target, port.protocol) not in offered:
                    other = next(protocol for number, protocol in offered if number == port.target)
                    cause = (
                        f"its service {service.name} passes {port.protocol} on, and the container listens for {other}"
                    )
                    yield _finding(_line(service, port.protocol), "PROTOCOL", pods[0].app, cause, PROVEN - LESS)
            elif not is_number and (named or is_rejected or is_unserved):
                cause = f"its service {service.name} has the target port {port.target}, and no port of its containers is named so"
                yield _finding(shown, "TARGET_PORT", pods[0].app, cause, PROVEN - LESS if named else LIKELY)
            elif is_rejected:
                declared = (
                    f"its containers declare {', '.join(sorted(numbers))}" if numbers else "nothing answers there"
                )
                cause = f"its service {service.name} leads to port {port.target}, and {declared}"
                yield _finding(shown, "TARGET_PORT", pods[0].app, cause, PROVEN - LESS if numbers else LIKELY)


def _called(cluster: Cluster) -> Iterator[tuple[Resource, str, str, re.Match[str]]]:
    """Yield the addresses within the namespace in environments: who has one, its variable, its value, its parts.

    A host and a port that two variables give (`DB_HOST`, `DB_PORT`) are one address.
    """
    for pod in cluster.of("Pod", "Workload"):
        for environment in (each.environment for each in pod.containers):
            for key, value in environment.items():
                stem, _, last = key.rpartition("_")
                port = environment.get(f"{stem}_PORT", "") if last.upper() in _HOST else ""
                given = f"{value.strip()}:{port}" if port and ":" not in value else value.strip()
                if (address := _ADDRESS.match(given)) and address["host"] != "localhost":
                    is_near = (address["zone"] or "").partition(".")[0] in ("", "svc", pod.namespace)
                    if is_near and (key.upper().endswith(_ADDRESSES) or address["port"]):
                        yield pod, key, value if port == "" else port, address


def _addresses(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield the addresses in environments that lead nowhere, and of which somebody complains."""
    services = {each.name: each for each in cluster.of("Service")}
    lamented = {word for each in chain(cluster.refusals, cluster.said) for word in _HOSTS.findall(each.text)}
    for pod, key, value, address in _called(cluster) if services else ():
        host, service = address["host"], services.get(address["host"])
        if service is None:
            alike = any(host.startswith(name) or name.startswith(host) for name in services)
            if host in lamented or alike:  # else it is optional, as far as anybody can tell
                cause, symptom = f"{key} is {value}, and there is no service {host}", "said" if host in lamented else ""
                strength = PROVEN - LESS if host in lamented else LIKELY
                yield _finding(_line(pod, value), "ENVIRONMENT", pod.app, cause, strength, symptom=symptom)
        elif (
            address["port"]
            and service.ports
            and address["port"] not in (offered := [each.number for each in service.ports])
        ):
            fault = "DATABASE_PORT" if _DATABASES.intersection(offered) else "ENVIRONMENT"
            cause = f"{key} leads to {host}:{address['port']}, and the service {host} offers port {', '.join(offered)}"
            symptom = "said" if any(each.name == pod.app for each in chain(cluster.refusals, cluster.said)) else ""
            yield _finding(_line(pod, value), fault, pod.app, cause, PROVEN - LESS, symptom=symptom)


def _replicas(cluster: Cluster) -> Iterator[ObjectFault]:
    for each in cluster.of("Workload"):
        if each.wanted == 0:
            selected = {value for service in services_of(cluster, each.name) for value in service.selector.values()}
            is_chosen = (
                bool(each.labels)
                or not selected
                or any(value in each.name for value in selected if value not in cluster.focus)
            )
            shown, cause = _line(each, "0/0", "0 desired", "replicas: 0", "replicas"), "it is scaled to 0 replicas"
            yield _finding(shown, "NO_REPLICAS", each.app, cause, PROVEN - LESS if is_chosen else POSSIBLE)


def _measures(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield what monitoring says of CPU and network, which no object shows.

    A lost packet is sent again after 200 ms (the minimum of TCP's timer), so that retransmissions with longer answers
    follow from a delay. Where several services suffer, it is the network of the node that sends most packets again; else
    that of the service which calls no other that suffers.
    """
    of_apps = [each for each in cluster.measured if not is_of_node(each.kind)]
    lost = [each for each in cluster.measured if _LOST.search(each.text)]
    slow = [
        each for each in of_apps if any(phrase in "".join(filter(str.isalpha, each.text.lower())) for phrase in _SLOW)
    ]
    if busy := [each for each in of_apps if _THROTTLED.search(each.text)]:
        most = max(busy, key=_growth)
        yield _finding(most.shown, "BUSY", most.name, "its CPU is saturated", LIKELY, symptom="measured")
    if not lost and not slow:
        return
    fault = "LOSS" if lost and median([*map(_waiting, slow)] or [0.0]) < LONG else "DELAY"
    cause = "its network is slow" if fault == "DELAY" else "its network loses packets"
    suffering = {each.name for each in slow} | {each.name for each in of_apps if _FEWER.search(each.text)}
    if (of_node := [each for each in lost if is_of_node(each.kind)]) and len(suffering) >= SEVERAL:
        worst, strength = max(of_node, key=_now), LIKELY - 5 * LESS
    else:
        callers = {pod.app for pod, *_, address in _called(cluster) if address["host"] in suffering - {pod.app}}
        last = [each for each in chain(lost, slow) if each.name not in callers] or [*slow, *lost]
        worst, strength = max(last, key=_growth), POSSIBLE + 5 * LESS
    kind = "node" if is_of_node(worst.kind) else "app"
    yield _finding(worst.shown, fault, worst.name, cause, strength, kind=kind, symptom="measured")


def _growth(complaint: Complaint) -> float:
    return max((float(each) for each in _FACTOR.findall(complaint.text)), default=0.0)


def _now(complaint: Complaint) -> float:
    """Return the last value that a complaint says something has risen to."""
    return max((float(each) for each in _RISEN.findall(complaint.text)[-1:]), default=0.0)


def _waiting(complaint: Complaint) -> float:
    """Return the longest time in a complaint, in seconds."""
    times = (float(count) * (1e-3 if unit == "ms" else 1.0) for count, unit in _TIME.findall(complaint.text))
    return max(times, default=0.0)
